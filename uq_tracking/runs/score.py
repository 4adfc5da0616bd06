"""New report of a logged run: what it is scored from, under which settings, and with which recalibrations."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from uq_tracking import plugins
from uq_tracking.errors import BackendError, FileFormatError, RecalibrationError, SettingsError
from uq_tracking.evaluation.plan import Plan, check_family
from uq_tracking.evaluation.recalibrated import AT_RANDOM, BY_GROUPS, add_recalibration
from uq_tracking.evaluation.scoring import score
from uq_tracking.inference.intervals import with_intervals
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.forms.mean_std import Numbers
from uq_tracking.metrics.registry import Metric, MetricInputs, select
from uq_tracking.recalibration import Recalibration
from uq_tracking.report import Report
from uq_tracking.runs.carry_over import carried_over
from uq_tracking.runs.read import NO_REPORT, LoggedRun
from uq_tracking.runs.request import Request
from uq_tracking.settings import ScoreOptions, Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import task_of
from uq_tracking.tracking.names import PREDICTIONS_FILE, REPORT_FILE, STATISTICS_FILE

HALVES = "the halves of a cross-fit need predictions"
EXACT, SKETCHED = (1e-6, 1e-9), (1e-3, 5e-4)
"""How far a recomputed score may deviate from the stored one, relatively and absolutely."""


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
    # a floor is applied to the source, whose digest already ties it to the report
    then = cache(lambda: _scored(source, Settings.from_dict(old.settings), request, old, later=True))
    if not request.options.force and not request.alters_floor(old):
        _check_scores(old, then, source.name)
    report = _scored(source, settings, request, old)
    if old.recalibration and changed:
        with suppress(RecalibrationError):  # what it showed is kept, marked with the old settings
            report = _recalibrated_as_before(report, source, settings, old)
    if old is not NO_REPORT:
        report = carried_over(report, old, then if changed else None)
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
    for read in (_predictions, _statistics) if reason else (_statistics, _predictions):
        if is_needed and read is _statistics:
            continue
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
    statistics = run.statistics(old)
    if old is not NO_REPORT and dict(statistics.counts) != dict(old.counts):
        raise FileFormatError(
            f"{STATISTICS_FILE} counts {statistics.counts['n']} samples but {REPORT_FILE} {old.counts.get('n')}: "
            "they come from different predictions; log the run again"
        )
    return Source(statistics)


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
    if (
        floor is None
        or not isinstance(predictions.form, Numbers)
        or (floor or None) == predictions.form.std_floor
    ):
        return predictions
    known = predictions.form.std_floor
    if known is not None and floor < known:
        raise SettingsError(
            f"std was raised to {known:g} before it was stored; a floor of {floor:g} needs the "
            "model's original predictions"
        )
    return predictions.replace(std_floor=floor)


def _check_scores(old: Report, again: Callable[[], Report], source: str) -> None:
    """Raise FileFormatError if a stable score, recomputed under the old settings, differs from the stored one."""
    kept, known = old.provenance.get("kept", ()), plugins.metrics(old.task)
    stored = {
        key: value
        for key, value in old.scores.items()
        if key in known and known[key].stable and key not in kept
    }
    found = again().scores_of(stored) if stored else {}
    for key, value in found.items():
        is_exact = known[key].stable == "sums" or source == "exact statistics"
        relative, absolute = EXACT if is_exact else SKETCHED
        if not math.isclose(value, stored[key], rel_tol=relative, abs_tol=absolute):
            raise FileFormatError(
                f"the report says {key} = {stored[key]:.6g}, but its {source} say {value:.6g}: they come from "
                "different predictions; log the run again, or rescore with force to replace the report"
            )


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
    # from the stored statistics of the groups, which are coarser than when counted; unchanged scores keep theirs
    made = with_intervals(report, statistics.groups, settings, chosen, level_of(old))
    as_before = {
        key: interval
        for key, interval in old.intervals.items()
        if key in made.scores and math.isclose(made.scores[key], old.scores.get(key, math.nan), rel_tol=1e-12)
    }
    return replace(made, intervals={**made.intervals, **as_before})


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
