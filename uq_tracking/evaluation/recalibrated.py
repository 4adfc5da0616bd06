"""Scores before and after: what a recalibration does to predictions it was not fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.curves.spec import RECALIBRATED, Curve
from uq_tracking.errors import RecalibrationError, SettingsError, warn
from uq_tracking.evaluation.scoring import score
from uq_tracking.families import Standard, shaped
from uq_tracking.inference.noise import noise_floors
from uq_tracking.inputs import Predictions
from uq_tracking.metrics.other_forms import Undetermined
from uq_tracking.metrics.registry import Metric
from uq_tracking.recalibration.base import Recalibration
from uq_tracking.recalibration.fitting import FitSet, find_recalibrator
from uq_tracking.report import Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.layout import Rows, joined_rows
from uq_tracking.statistics.regression import is_distribution, plain
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import task_of

SCHEMA = 1

STRETCHED = (
    "a new standard deviation does not determine the whole distribution; see the scores of mean and std"
)
SECOND_SET = "second set"
FITTED_OBJECT = "fitted object"
SEEN = "fitted on the samples it is scored on"
BY_GROUPS = "fitted on half of the groups, scored on the others"
AT_RANDOM = "fitted on a random half of the samples, scored on the others"
REPEATS = 4
"""Number of further splits of a cross-fit."""
MOST_REPEATED = 50_000
"""Splits are repeated for up to this many samples; with more, one split is much like another."""

ONE_GROUP = "cross-fitting needs at least two groups; pass a second set as calibration="


def add_recalibration(
    report: Report,
    calibration: Any,
    recalibration: str | Iterable[str] | None = None,
    *,
    metrics: Sequence[Metric],
    settings: Settings,
    data: Any = None,
    seed: int = 0,
) -> Report:
    """Add scores and curves after recalibration to a report; arguments as for ``evaluate``.

    Without ``data``, exact regression statistics in the report suffice; the halves of a cross-fit are then random. A
    method that cannot be fitted gets an entry with the reason, and a warning.
    """
    statistics = report.statistics
    if statistics is None:
        raise RecalibrationError("the report holds no statistics; read it with Report.from_npz")
    task, known = task_of(report), plain(statistics)
    samples = task.samples(known, data)
    of_form = is_distribution(statistics)
    bench = _Bench(report, known, samples, tuple(metrics), settings, seed, of_form, of_errors=data is None)
    how, asked = _asked(report, calibration, recalibration)
    second = task.second_set(calibration, data) if how == SECOND_SET else None
    if how == AT_RANDOM and samples.groups is not None:
        how = BY_GROUPS
    entries: dict[str, Any] = {}
    curves: dict[str, Curve] = {}
    for each in asked:
        name = each.method
        try:
            if isinstance(each, Recalibration):
                after, entries[name] = bench.applied(each, how)
            elif second is not None:
                after, entries[name] = bench.applied(second.fit(each, settings), how)
            else:
                after, entries[name] = bench.cross_fitted(each, how)
        except RecalibrationError as refusal:
            entries[name] = {"how": how, "refused": str(refusal)}
            warn(f"no scores after {name}: {refusal}")
            continue
        curves = curves or _curves_after(after)
    return replace(
        report,
        recalibration={"schema": SCHEMA, "methods": entries},
        curves={**report.curves, **curves},
    )


def with_refusal(
    report: Report,
    calibration: Any,
    recalibration: str | Iterable[str] | None,
    refusal: RecalibrationError,
) -> Report:
    """Add the reason why no method has scores after it, and warn; arguments as for ``evaluate``."""
    how, asked = _asked(report, calibration, recalibration)
    entries = {each.method: {"how": how, "refused": str(refusal)} for each in asked}
    warn(f"{', '.join(entries)}: no scores after recalibration: {refusal}")
    return replace(report, recalibration={"schema": SCHEMA, "methods": entries})


def _asked(
    report: Report, calibration: Any, recalibration: str | Iterable[str] | None
) -> tuple[str, list[Recalibration] | list[type[Recalibration]]]:
    """Say how parameters are obtained, and return what was fitted already, or the methods to fit."""
    given, names = _all_of(calibration, Recalibration), _all_of(calibration, str)
    if (given or names) and recalibration is not None:
        raise SettingsError("calibration= already names the methods; omit recalibration=")
    if given:
        return FITTED_OBJECT, given
    task, facts = task_of(report), {} if report.statistics is None else report.statistics.facts
    wanted = names or recalibration or task.recalibration_of(facts)
    methods = [find_recalibrator(name) for name in ([wanted] if isinstance(wanted, str) else wanted)]
    for method in methods:
        if method.task != task.name:
            raise SettingsError(
                f"{method.method} recalibrates a {method.task}; choose a method for a {task.name}"
            )
    return AT_RANDOM if calibration is True or names else SECOND_SET, methods


@dataclass(frozen=True)
class _Bench:
    """Samples to recalibrate, and how to score them."""

    before: Report
    statistics: Statistics
    """Those of means and standard deviations."""
    samples: Predictions
    metrics: tuple[Metric, ...]
    settings: Settings
    seed: int
    of_form: bool = False
    """True if the predictions were distributions in a form other than mean and std."""
    of_errors: bool = False
    """True if the samples hold errors in place of the truth, because no more is known."""

    def applied(self, fitted: Recalibration, how: str) -> tuple[Report, dict[str, Any]]:
        """Return the report of all samples after a recalibration, and its entry."""
        if fitted.task != self.samples.task:
            raise SettingsError(
                f"{fitted.method} recalibrates a {fitted.task}; pass a recalibration of a {self.samples.task}"
            )
        after, digest = self._scored(fitted.rows_after(self.samples), fitted.shape), fitted.fitted_on.digest
        if digest is not None and digest == self.before.provenance.get("digest"):
            how = SEEN
            cure = "pass a second set, or calibration=True to score one half after a fit to the other"
            warn(f"{fitted.method} was {SEEN}, so its scores say nothing about fresh data; {cure}")
        return after, _entry(how, fitted, after, self.settings)

    def _scored(self, blocks: Iterable[Rows], shape: Standard | None = None) -> Report:
        """Score rows, whose standardized errors may have a distribution of their own."""
        if shape is None and self.of_form:
            shape = Undetermined(STRETCHED)
        settings = self.settings if shape is None else shaped(self.settings, shape)
        return score(self._statistics(blocks), settings, self.metrics)

    def _statistics(self, blocks: Iterable[Rows]) -> Statistics:
        known = self.statistics
        own = ("n", "n_effective", *known.layout.counted)
        left_out = {name: count for name, count in known.counts.items() if name not in own}
        if known.kind == "sketch":
            made = Statistics.counted(known.layout, blocks, facts=known.facts)
        else:
            rows = dict(joined_rows(list(blocks)))
            if self.of_errors:
                rows["error"] = rows.pop("target") - rows.pop("mean")
            of_truth = known if self.of_errors else None
            made = Statistics.exact(known.layout, rows, facts=known.facts, known=of_truth)
        made = made.with_counts(left_out)
        target = made.moments.get("target")
        if target is None or target.count == made.n:
            return made
        # only each sample's error is known, so targets in a part are assumed to vary like those of all samples
        whole = known.moments["target"]
        share = replace(whole, count=made.n, m2=whole.m2 * made.n / max(whole.count, 1))
        return replace(made, moments={**made.moments, "target": share})

    def cross_fitted(self, method: type[Recalibration], how: str) -> tuple[Report, dict[str, Any]]:
        """Fit to one half of the samples, score the other; further splits show how much depends on the split.

        The entry holds the parameters to use from now on, of a fit to all samples.
        """
        half, unseen, after = self._split(method, self.seed)
        repeats = REPEATS if self.samples.n <= MOST_REPEATED else 0
        others = [self._split(method, self.seed + number + 1)[2] for number in range(repeats)]
        held = self.samples if method.of_samples else self.statistics
        whole = FitSet(held, self.before.provenance.get("digest")).fit(method, self.settings)
        return after, {
            **_entry(how, whole, after, self.settings),
            "split": {"fitted": half.fitted_on.n, "scored": after.counts["n"], "scalars": half.scalars()},
            "spread": _spread([after, *others], self.metrics),
            "before": dict(self._scored(unseen.row_blocks()).scores),
        }

    def _split(self, method: type[Recalibration], seed: int) -> tuple[Recalibration, Predictions, Report]:
        """Return parameters fitted to one half, the other half, and its report with them."""
        side = halves(self.samples, seed)
        if not 0 < side.sum() < len(side):
            raise RecalibrationError(ONE_GROUP)
        fit_on, score_on = (self.samples.part(self.samples.placed(side == half)) for half in (0, 1))
        held = fit_on if method.of_samples else self._statistics(fit_on.row_blocks())
        fitted = FitSet(held).fit(method, self.settings)
        return fitted, score_on, self._scored(fitted.rows_after(score_on), fitted.shape)


def _spread(reports: Sequence[Report], metrics: Sequence[Metric]) -> dict[str, float]:
    """Measure how scores vary over splits: their standard deviation, or the mean distance to a target value.

    Never the distance of their mean: scale errors of two splits cancel, whereas fresh data meet each by itself.
    """
    found: dict[str, float] = {}
    for metric in metrics:
        values = [report.scores[metric.key] for report in reports if metric.key in report.scores]
        if len(values) < 2 or len(values) < len(reports):
            continue
        if isinstance(metric.direction, float):
            found[metric.key] = float(np.mean(np.abs(np.asarray(values) - metric.direction)))
        else:
            size = max(map(abs, values)) or 1.0  # its square may overflow float64
            found[metric.key] = size * float(np.std(np.asarray(values) / size, ddof=1))
    return found


def halves(samples: Predictions, seed: int) -> npt.NDArray[np.int8]:
    """Draw the half (0 or 1) of each sample at random; groups, if any, stay whole."""
    items = (
        np.arange(samples.n) if samples.groups is None else samples.select(samples.label_codes("groups")[1])
    )
    used, place = np.unique(items, return_inverse=True)
    side = np.zeros(len(used), dtype=np.int8)
    side[np.random.default_rng(seed).permutation(len(used))[: len(used) // 2]] = 1
    return side[place]


def _all_of(value: Any, kind: type[Any]) -> list[Any]:
    """Return the values as a list if they are all of this kind; otherwise an empty one."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, tuple | list) and value and all(isinstance(item, kind) for item in value):
        return list(value)
    return []


def _entry(how: str, fitted: Recalibration, after: Report, settings: Settings) -> dict[str, Any]:
    """Return one method's entry in ``Report.recalibration``; ``settings`` are the original report's."""
    settings = settings if fitted.shape is None else shaped(settings, fitted.shape)
    floors = noise_floors(after.statistics, after.task, settings, after.scores)
    return {
        "how": how,
        "scalars": fitted.scalars(),
        "scores": dict(after.scores),
        "undefined": dict(after.undefined),
        "curves": {name: curve.to_dict() for name, curve in _kept_curves(after).items()},
        "recalibration": fitted.to_dict(),
        "noise": {key: asdict(floor) for key, floor in floors.items()},
    }


def _kept_curves(after: Report) -> dict[str, Curve]:
    """Return the curves that a report also holds after a recalibration."""
    known = plugins.curves(after.task)
    return {name: curve for name, curve in after.curves.items() if name in known and known[name].recalibrated}


def _curves_after(after: Report) -> dict[str, Curve]:
    """Return the curves after recalibration, under their names in a report."""
    return {
        name + RECALIBRATED: replace(
            curve, name=name + RECALIBRATED, title=f"{curve.title} after recalibration", score=None
        )
        for name, curve in _kept_curves(after).items()
    }
