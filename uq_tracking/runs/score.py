"""New report of a logged run: what it is scored from, under which settings, and with which recalibrations.

Parts of the old report that are still valid are carried over, so that a rescore never replaces a report with a less
complete one. Three things can make a new report poorer than the old one: its source knows less (a sketch of exact
statistics), something cannot be recomputed (a score that needs samples, intervals, scores after a recalibration), or
a metric is no longer installed. Whatever the new settings do not affect is kept; whatever they affect but cannot be
recomputed is kept too, and marked: ``provenance["exact"]`` names what is more exact than its source,
``provenance["kept"]`` what could not be recomputed, with the settings behind it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from uq_tracking import plugins
from uq_tracking.curves import Curve
from uq_tracking.curves.spec import RECALIBRATED
from uq_tracking.errors import BackendError, FileFormatError, RecalibrationError, SettingsError
from uq_tracking.evaluation.plan import Plan, check_family
from uq_tracking.evaluation.recalibrated import AT_RANDOM, BY_GROUPS, add_recalibration
from uq_tracking.evaluation.scoring import score
from uq_tracking.inference import Judgement, no_verdict
from uq_tracking.inference.intervals import with_intervals
from uq_tracking.inference.words import UNORDERED
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.forms.mean_std import Numbers
from uq_tracking.metrics.registry import Metric, MetricInputs, has_failed, select
from uq_tracking.recalibration import Recalibration
from uq_tracking.report import Report
from uq_tracking.runs.read import NO_REPORT, LoggedRun
from uq_tracking.runs.request import Request
from uq_tracking.settings import ScoreOptions, Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import task_of
from uq_tracking.tracking.names import PREDICTIONS_FILE, REPORT_FILE, STATISTICS_FILE

HALVES = "the halves of a cross-fit need predictions"
SKETCHED = (1e-3, 5e-4)
"""How far a score from a sketch may deviate from the exact one, relatively and absolutely: good models have
calibration errors near 0."""


class NothingStoredError(BackendError):
    """A run holds nothing to score."""


@dataclass(frozen=True)
class Source:
    """Statistics or predictions from which a run is scored."""

    statistics: Statistics | None = None
    predictions: Predictions | None = None
    digest: str | None = None
    """Digest of the predictions as stored, which a std floor does not change."""

    @property
    def name(self) -> str:
        """The source in words."""
        if self.statistics is None:
            return "predictions"
        return "exact statistics" if self.statistics.kind == "exact" else "sketch"


def new_report(run: LoggedRun, request: Request, old: Report) -> tuple[Report, Source]:
    """Score a run as requested, and carry over what is still valid in its old report; also return the source.

    Raises NothingStoredError if the run holds nothing to score, FileFormatError if that is damaged, too large, or of
    other predictions than its report, and SettingsError if the request needs predictions that are not stored.
    """
    source, settings = _read_source(run, request, old), request.settings(old)
    changed = old is not NO_REPORT and request.alters(old)
    report = _scored(source, settings, request, old)
    if old.recalibration and changed:
        with suppress(RecalibrationError):  # what it showed is kept, marked with the old settings
            report = _recalibrated_as_before(report, source, settings, old)
    if old is not NO_REPORT:
        then = (
            _scored(source, Settings.from_dict(old.settings), request, old, later=True) if changed else None
        )
        report = carried_over(report, old, then)
    if request.recalibrates:
        calibration = _calibration(run, request)
        report = _recalibrated(report, source, settings, calibration, request.recalibration or None)
    asked = list(dict.fromkeys((*old.provenance.get("asked", ()), *request.metrics)))
    stored = source.digest or _stored_digest(old)
    about = {"from": source.name, **({"predictions": stored} if stored else {})}
    provenance = {name: value for name, value in report.provenance.items() if name != "asked"}
    provenance |= {name: old.provenance[name] for name in ("not_stored",) if name in old.provenance}
    return replace(
        report, provenance={**provenance, **({"asked": asked} if asked else {}), "rescored": about}
    ), source


def _stored_digest(report: Report) -> str | None:
    """Return the digest of the predictions from which the report was rescored, as they are stored."""
    return (report.provenance.get("rescored") or {}).get("predictions")


def _read_source(run: LoggedRun, request: Request, old: Report) -> Source:
    """Read statistics, unless predictions would give more; if one is missing or damaged, the other if it suffices."""
    reason, is_needed = _needs_predictions(request, old)
    problems: list[str] = []
    ways = (_predictions, _statistics) if reason else (_statistics, _predictions)
    for read in ways[:1] if is_needed else ways:
        try:
            return read(run, request, old)
        except FileNotFoundError:
            continue
        except FileFormatError as error:
            problems.append(str(error))
    if problems:
        raise FileFormatError("; ".join(problems))
    if is_needed and run.has(STATISTICS_FILE):
        raise SettingsError(f"{reason}, and the run stores none")
    splits = run.whole.splits()
    if (splits and run.split not in splits) or (run.split is not None and run.whole.has(REPORT_FILE)):
        raise NothingStoredError(f"it has {run.lacking()}")
    raise NothingStoredError(
        "it holds neither statistics nor predictions from uq_tracking; log its own files to it with uq.log"
    )


def _needs_predictions(request: Request, old: Report) -> tuple[str, bool]:
    """Return why predictions are better than statistics, "" if they are not, and whether they are indispensable."""
    if request.alters_floor(old):
        return "a std floor can only be applied to predictions", True
    keys = [key for key in request.metrics if _needs_samples(key, old)]
    if keys:
        return f"{', '.join(keys)} cannot be computed from statistics, only from predictions", True
    crossed = request.calibration
    if crossed is True or (crossed and any(isinstance(item, str) for item in crossed)):
        return HALVES, False
    changes = request.alters(old)
    reason = task_of(old).needs_predictions
    if reason and (request.recalibrates or (changes and old.recalibrations)):
        return reason, False
    if changes and any(_needs_samples(key, old) for key in old.scores):
        return "some of the run's scores cannot be computed from statistics", False
    if changes and _is_cross_fitted(old):
        return HALVES, False
    without = old is not NO_REPORT and old.blocks is None and not old.intervals
    return ("sums of consecutive samples are not in the run's report" if without else ""), False


def _needs_samples(key: str, old: Report) -> bool:
    metric = plugins.metrics(old.task).get(key)
    return metric is not None and bool(metric.needs)


def _is_cross_fitted(old: Report) -> bool:
    return any(entry.get("how") in (AT_RANDOM, BY_GROUPS) for entry in old.recalibrations.values())


def _statistics(run: LoggedRun, request: Request, old: Report) -> Source:
    return Source(run.statistics(old))


def _predictions(run: LoggedRun, request: Request, old: Report) -> Source:
    predictions = run.predictions()
    digest = predictions.digest()
    known = _stored_digest(old) or old.provenance.get("digest")
    if isinstance(known, str) and len(known) == len(digest) and digest != known:
        raise FileFormatError(
            f"{PREDICTIONS_FILE} is not what {REPORT_FILE} was made from (digests {digest} and {known}); log the run "
            "again with predictions=True"
        )
    return Source(predictions=_floored(predictions, request, old), digest=digest)


def _floored(predictions: Any, request: Request, old: Report) -> Any:
    """Apply the requested std floor, else the report's."""
    floor = request.changes.get("std_floor", old.settings.get("std_floor"))
    if floor is None or not isinstance(predictions.form, Numbers):
        return predictions
    known = predictions.form.std_floor
    if (floor or None) == known:
        return predictions
    if known is not None and floor < known:
        raise SettingsError(
            f"std was raised to {known:g} before it was stored; a floor of {floor:g} needs the "
            "model's original predictions"
        )
    return predictions.replace(std_floor=floor)


def _scored(
    source: Source, settings: Settings, request: Request, old: Report, *, later: bool = False
) -> Report:
    """Score the source, now or on first access; without recalibrations."""
    if source.statistics is None:
        return _scored_predictions(source.predictions, settings, request, old, later=later)
    statistics = source.statistics
    digest = old.provenance.get("digest")
    chosen = _chosen(statistics.task, request, old, frozenset())
    check_family(settings, statistics.facts)
    about = about_input(statistics, old)
    report = score(statistics, settings, chosen, digest=digest, about=about, later=later)
    if statistics.groups is None or not old.intervals:
        return report
    return with_intervals(report, statistics.groups, settings, chosen, level_of(old))


def _scored_predictions(
    predictions: Any, settings: Settings, request: Request, old: Report, *, later: bool
) -> Report:
    task = task_of(predictions)
    kind = old.provenance.get("statistics")
    given = MetricInputs(None, predictions).given
    chosen = _chosen(task.name, request, old, given)
    known = {*old.scores, *old.undefined}
    named = [metric.key for metric in chosen if metric.when is None or metric.key in known]
    suite = {metric.key for metric in select(task.name, given=given)}
    options = ScoreOptions(
        **settings.to_dict(),
        metrics=None if {metric.key for metric in chosen} == suite else named,
        statistics=kind if kind in ("exact", "sketch") else "auto",
        intervals=True if old.intervals else None,
        level=level_of(old),
    )
    return Plan(task, options).report(predictions, later=later)


def _chosen(task: str, request: Request, old: Report, given: Set[str]) -> list[Metric]:
    """Return the default suite, the metrics that the run has, and those requested.

    A metric whose needs are not met is included only if it is requested and the run has no value for it: then the
    report says why there is none.
    """
    known = plugins.metrics(task)
    had = {**old.scores, **old.undefined}
    keys = {key for key, metric in known.items() if metric.default or key in had}
    asked = set(request.metrics) - had.keys()
    return [
        replace(metric, when=None) if key in request.metrics else metric
        for key, metric in known.items()
        if key in asked or ((key in keys or key in request.metrics) and given >= set(metric.needs))
    ]


def about_input(statistics: Statistics, old: Report) -> dict[str, Any]:
    """Return what the report says about the input, besides its settings."""
    own = {item.name for item in fields(Settings)}
    known = {name: value for name, value in old.settings.items() if name not in own}
    return {**statistics.facts, **known}


def level_of(report: Report) -> float:
    """Return the confidence level of a report's intervals."""
    return float((report.provenance.get("intervals") or {}).get("level", 0.95))


def _calibration(run: LoggedRun, request: Request) -> Any:
    """Return what to fit on, or what was fitted."""
    if request.calibration_split is None:
        return request.calibration
    try:
        return replace(run, split=request.calibration_split).scored()
    except FileNotFoundError:
        raise RecalibrationError(
            f"nothing was logged under the split {request.calibration_split!r} to fit on; log it with split="
        ) from None


def _recalibrated_as_before(report: Report, source: Source, settings: Settings, old: Report) -> Report:
    """Return the report with scores after the run's recalibrations, under the new settings.

    Raises RecalibrationError if the source does not hold what that requires.
    """
    entries = old.recalibrations
    stored = [entry["recalibration"] for entry in entries.values() if entry.get("recalibration")]
    if _is_cross_fitted(old):
        if source.predictions is None:
            raise RecalibrationError(f"{HALVES}, and only statistics are read")
        new = _recalibrated(report, source, settings, True, list(entries))
    elif stored:
        new = _recalibrated(report, source, settings, list(map(Recalibration.from_dict, stored)), None)
    else:
        return report
    redone = {name: {**entry, "how": entries[name]["how"]} for name, entry in new.recalibrations.items()}
    return replace(new, recalibration={**(new.recalibration or {}), "methods": {**entries, **redone}})


def _recalibrated(report: Report, source: Source, settings: Settings, calibration: Any, names: Any) -> Report:
    """Add scores after these recalibrations to those that the report has."""
    known = plugins.metrics(report.task)
    chosen = [known[key] for key in (*report.scores, *report.undefined) if key in known]
    new = add_recalibration(
        report,
        calibration,
        names,
        metrics=[metric for metric in chosen if not metric.needs],
        settings=settings,
        data=source.predictions,
    )
    methods = {**report.recalibrations, **new.recalibrations}
    return replace(new, recalibration={**(new.recalibration or {}), "methods": methods})


JUDGED_BY = ("family", "dof", "unit")
"""Settings that a verdict on a regression depends on."""


def carried_over(new: Report, old: Report, again: Report | None) -> Report:
    """Complete the new report with what only the old one has.

    ``again`` is the report of the same source under the old settings: whatever is equal there and in the new report
    is unaffected by the change. None if nothing was changed.
    """
    then = new if again is None else again
    kept: dict[str, Mapping[str, Any]] = {}
    exact: list[str] = []
    scores = _scores(new, old, then, kept, exact)
    curves = _curves(new, old, then, None if again is None else kept, exact)
    undefined = {key: reason for key, reason in new.undefined.items() if key not in scores}
    undefined |= {key: reason for key, reason in old.undefined.items() if key not in scores | undefined}
    told = {name: found for name, found in (("kept", kept), ("exact", exact)) if found}
    # Stored statistics of groups are coarser than when they were counted: unchanged scores keep their intervals.
    as_before = {
        key: interval
        for key, interval in old.intervals.items()
        if math.isclose(scores.get(key, math.nan), old.scores.get(key, math.nan), rel_tol=1e-12)
        or (not new.intervals and key in scores and scores[key] == then.scores.get(key))
    }
    return replace(
        new,
        scores=scores,
        undefined=undefined,
        curves=curves,
        verdicts={**old.verdicts, **new.verdicts},
        intervals={**new.intervals, **as_before} if new.samples is None else new.intervals or as_before,
        provenance={**new.provenance, **told},
        judgement=_judgement(new, old),
        left_out=new.left_out or (old.left_out if again is None else None),
        counted_blocks=new.blocks or old.blocks,
        recalibration=new.recalibration or _recalibration(old, changed=again is not None),
    )


def _judgement(new: Report, old: Report) -> Judgement | None:
    """Return the old verdict where it rests on samples that the new report lacks, and on settings that still hold."""
    was = None if new.samples is not None or old.judgement is None else old.judgement.verdict
    if was is None or (was.places is None and was.worth is None):
        return new.judgement
    if all(new.settings.get(name) == old.settings.get(name) for name in JUDGED_BY):
        return Judgement(new.noise, was)
    return new.judgement if was.worth is None else Judgement(new.noise, no_verdict(UNORDERED))


def _is_coarser(new: Report, old: Report, name: str) -> bool:
    """True if the old score or curve was computed from the samples, but the new one from a sketch."""
    was_exact = old.provenance.get("statistics") == "exact" or name in old.provenance.get("exact", ())
    return was_exact and new.provenance.get("statistics") == "sketch"


def _scores(
    new: Report, old: Report, then: Report, kept: dict[str, Mapping[str, Any]], exact: list[str]
) -> dict[str, float]:
    """Return scores in the old order, new ones last; note those kept, with their settings, and those still exact."""
    scores = {**{key: new.scores[key] for key in old.scores if key in new.scores}, **new.scores}
    for key, value in old.scores.items():
        is_coarser, why = _is_coarser(new, old, key), new.undefined.get(key)
        if key not in scores:
            # what has no value under the new settings, or by a corrected definition, is gone
            if why is None or has_failed(key, why) or (is_coarser and key in then.undefined):
                scores[key] = value
                kept[key] = _settings_behind(old, key)
        elif (
            is_coarser
            and then.scores.get(key) == scores[key]
            and math.isclose(value, scores[key], rel_tol=SKETCHED[0], abs_tol=SKETCHED[1])
        ):
            scores[key] = value
            exact.append(key)
    return scores


def _settings_behind(old: Report, name: str) -> Mapping[str, Any]:
    """Return the settings of the report from which a score or curve was first kept."""
    known: Mapping[str, Mapping[str, Any]] = old.provenance.get("kept", {})
    return known.get(name) or {name: value for name, value in old.settings.items() if value is not None}


def _curves(
    new: Report, old: Report, then: Report, kept: dict[str, Mapping[str, Any]] | None, exact: list[str]
) -> dict[str, Curve]:
    """Return new curves, and old ones that cannot be rebuilt or are more exact; note these, if anything changed."""
    curves = dict(new.curves)
    for name, curve in old.curves.items():
        shown = f"curve {name}"
        if name not in curves:
            is_after = name.endswith(RECALIBRATED)
            if name not in then.curves and (not is_after or not new.recalibrations):
                curves[name] = curve
                if kept is not None:
                    kept[shown] = _settings_behind(old, shown)
        elif (
            _is_coarser(new, old, shown)
            and name in then.curves
            and same_curve(then.curves[name], curves[name])
        ):
            curves[name] = curve
            exact.append(shown)
    return curves


def same_curve(one: Curve, other: Curve) -> bool:
    """True if two curves hold the same numbers."""
    if one.columns.keys() != other.columns.keys():
        return False
    return all(np.array_equal(column, other.columns[name]) for name, column in one.columns.items())


def _recalibration(old: Report, *, changed: bool) -> Mapping[str, Any] | None:
    """Return the old recalibrations; if the settings changed, with the settings behind their scores."""
    if not old.recalibration or not changed:
        return old.recalibration
    settings = dict(old.settings)
    methods = {name: {"settings": settings, **entry} for name, entry in old.recalibrations.items()}
    return {**old.recalibration, "methods": methods}
