"""From predictions to a report; no tracker is involved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

import numpy as np

from uq_tracking._version import __version__
from uq_tracking.bootstrap import RESAMPLES, check_level, group_tables, with_intervals
from uq_tracking.curves import build_curves
from uq_tracking.curves.extra import Wanted, extra_curves
from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.outputs import Reports, split_all
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.lazy import is_lazy
from uq_tracking.metrics.reference import as_reference
from uq_tracking.metrics.registry import Metric, MetricInputs, select
from uq_tracking.metrics.registry import compute as compute
from uq_tracking.report import SCHEMA, Report
from uq_tracking.settings import Family, Method, Settings
from uq_tracking.statistics.make import make_statistics
from uq_tracking.statistics.parallel import begin
from uq_tracking.statistics.regression import RegressionStatistics
from uq_tracking.statistics.store import Statistics

if TYPE_CHECKING:
    from typing_extensions import Unpack


class EvaluateOptions(TypedDict, total=False):
    """Options of ``evaluate``, explained there."""

    mask: Any
    groups: Any
    by: Any
    metrics: Iterable[str] | None
    alpha: float
    n_bins: int
    family: Family
    dof: float
    std_floor: float | None
    on_invalid: Literal["raise", "drop"]
    method: Method
    unit: str | None
    calibration: Any
    recalibration: str | Iterable[str] | None
    intervals: bool | None
    level: float
    n_boot: int
    seed: int
    reference: Any
    curves: str | Iterable[str] | None
    by_target: Any
    curve_metrics: str | Iterable[str] | None


@overload
def evaluate(
    y_true: Any,
    y_pred: Any = ...,
    y_std: Any = ...,
    *,
    outputs: None = ...,
    **options: Unpack[EvaluateOptions],
) -> Report: ...


@overload
def evaluate(
    y_true: Any, y_pred: Any, y_std: Any, *, outputs: Sequence[str], **options: Unpack[EvaluateOptions]
) -> Reports: ...


def evaluate(
    y_true: Any,
    y_pred: Any = None,
    y_std: Any = None,
    *,
    mask: Any = None,
    groups: Any = None,
    by: Any = None,
    outputs: Sequence[str] | None = None,
    metrics: Iterable[str] | None = None,
    alpha: float = 0.95,
    n_bins: int = 10,
    family: Family = "gaussian",
    dof: float = 5.0,
    std_floor: float | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
    method: Method = "auto",
    unit: str | None = None,
    calibration: Any = None,
    recalibration: str | Iterable[str] | None = None,
    intervals: bool | None = None,
    level: float = 0.95,
    n_boot: int = RESAMPLES,
    seed: int = 0,
    reference: Any = None,
    curves: str | Iterable[str] | None = None,
    by_target: Any = None,
    curve_metrics: str | Iterable[str] | None = None,
) -> Report | Reports:
    """Score predicted means and standard deviations against targets.

    Parameters
    ----------
    y_true : array of any shape, or Predictions
        Targets, in their unit; a non-finite target means that there is no ground truth. A ``Predictions`` stands
        for the first three arguments and the input options. Dask arrays are scored chunk by chunk on the active
        scheduler, without loading them whole; ``groups="chunk"`` makes each chunk a group.
    y_pred, y_std : arrays of the same shape
        Predictive means and standard deviations, in the target's unit.
    mask, groups, by, std_floor, on_invalid
        As for ``Predictions``.
        ``groups`` make confidence intervals, ``by`` a curve of every chosen metric over its labels.
    outputs : sequence of str, optional
        Names of the outputs along the last axis of the arrays, each of which gets a report of its own.
    metrics : iterable of str, optional
        Keys to compute; by default the whole suite.
    alpha, n_bins, family, dof, unit
        As for ``Settings``.
    method : {"auto", "exact", "sketch"}
        Exact statistics, or a sketch of constant size; "auto" is exact up to ten million samples.
    calibration : optional
        Adds scores after recalibration, in ``report.recalibration``, and says how they came about:

        - a second set (``Predictions``, ``Report``, statistics, or a tuple ``(y_true, y_pred, y_std)``) to fit on;
        - fitted parameters (`recalibrate`), or a list of them;
        - True, or the name of a method or a list of names: no second set. Each half of the samples is recalibrated
          with parameters fitted on the other half; whole groups where ``groups`` are given, else at random.
    recalibration : str or iterable of str, optional
        Methods to fit to a second set or to the halves; by default ``std_scaling``.
    intervals : bool, optional
        Whether to make confidence intervals, ``report.intervals``. By default where ``groups`` are given, which are
        then resampled. True without groups resamples the samples as if they were independent: neighbouring pixels
        are not, and their intervals come out much too narrow.
    level, n_boot, seed
        Confidence level of the intervals, number of bootstrap resamples, and seed of all that is drawn at random.
    reference : (mean, std), optional
        Arrays of the target's shape that ``kl_to_reference`` compares with, such as those of a long MCMC run.
    curves : str or iterable of str, optional
        Curves to make beyond the usual ones: ``scale_sweep`` (proper scores with all stds multiplied by .1 ... 10),
        ``by_members`` (metrics against the size of an ensemble), ``stability`` (metrics on growing subsets, with a
        verdict on the size of the test set in ``report.verdicts``).
    by_target : float or sequence of float, optional
        Width, or edges, of intervals of the target that the chosen metrics are computed in.
    curve_metrics : iterable of str, optional
        Metrics of these curves; by default six of different kinds.

    Returns
    -------
    Report
        With ``outputs``, `Reports`: a mapping of the outputs' names to reports.

    Raises
    ------
    InputError
        Arrays that cannot be scored; the message names what, where and the cure.
    SettingsError
        An option out of range, or an unknown metric.

    Examples
    --------
    >>> report = evaluate([1.5, 3.0, 2.0], [1.0, 2.0, 3.0], [0.1, 0.5, 1.0])
    >>> round(report.scores["crps"], 6)
    0.590806
    """
    plan = _Plan(
        Settings(alpha=alpha, n_bins=n_bins, family=family, dof=dof, unit=unit),
        None if metrics is None else tuple([metrics] if isinstance(metrics, str) else metrics),
        Wanted.of(curves, by_target, curve_metrics),
        method,
        calibration,
        recalibration,
        intervals,
        level,
        n_boot,
        seed,
        reference,
    )
    given = {"mask": mask, "groups": groups, "by": by, "std_floor": std_floor, "on_invalid": on_invalid}
    if is_lazy(y_true):
        return plan.counted(y_true, y_pred, y_std, outputs, given)
    if outputs is None:
        return plan.report(as_predictions(y_true, y_pred, y_std, **given, unit=unit))
    options = {**given, "unit": unit, "calibration": calibration, "reference": reference}
    parts = split_all(y_true, y_pred, y_std, outputs, options)
    return Reports({name: replace(plan, **own).report(part) for name, (part, own) in parts.items()})


@dataclass(frozen=True)
class _Plan:
    """What ``evaluate`` was asked for, apart from the arrays."""

    settings: Settings
    metrics: tuple[str, ...] | None
    wanted: Wanted
    method: Method
    calibration: Any
    recalibration: str | Iterable[str] | None
    intervals: bool | None
    level: float
    n_boot: int
    seed: int
    reference: Any

    def report(self, predictions: Predictions) -> Report:
        """The report of arrays in memory."""
        settings = self.settings
        if settings.unit is None and predictions.unit is not None:
            settings = replace(settings, unit=predictions.unit)
        check_level(self.level, self.n_boot)
        extra = MetricInputs(None, predictions, as_reference(self.reference, predictions), self.seed)
        chosen = select("regression", self.metrics, given=extra.given)
        digest = begin(predictions.digest)
        statistics = make_statistics(predictions, self.method)
        report = score(statistics, settings, chosen, digest=digest(), extra=extra)
        tables = group_tables(predictions, self.intervals)
        if tables is not None:
            options = {"level": self.level, "n_boot": self.n_boot, "seed": self.seed}
            report = with_intervals(report, tables, settings, chosen, **options)
        made = extra_curves(self.wanted, statistics, settings, extra, tables=tables, method=self.method)
        report = replace(report, curves={**report.curves, **made.curves}, verdicts=made.verdicts)
        return self._recalibrated(report, settings, chosen, predictions)

    def _recalibrated(
        self, report: Report, settings: Settings, chosen: Iterable[Metric], predictions: Predictions
    ) -> Report:
        if self.calibration is None or self.calibration is False:
            if self.recalibration is not None:
                raise SettingsError(
                    "recalibration= names methods, but not what to fit on; pass calibration=, or True"
                )
            return report
        from uq_tracking.evaluation.recalibrated import add_recalibration

        plain = [metric for metric in chosen if not metric.needs]
        return add_recalibration(
            report,
            self.calibration,
            self.recalibration,
            score=lambda statistics, settings: score(statistics, settings, plain),
            settings=settings,
            predictions=predictions,
        )

    def counted(self, y_true: Any, y_pred: Any, y_std: Any, outputs: Any, given: Mapping[str, Any]) -> Report:
        """The report of lazy arrays, which are counted and never in memory as a whole."""
        asked = {
            "outputs": outputs,
            "intervals": self.intervals or None,
            "reference": self.reference,
            "curves": self.wanted.curves or None,
            "by_target": self.wanted.by_target,
        }
        refused = [name for name, value in asked.items() if value is not None]
        if refused:
            raise SettingsError(
                f"{', '.join(refused)}: lazy arrays have no such thing; load them into memory"
            )
        from uq_tracking.streams.dask_arrays import count_dask

        options = {**self.settings.to_dict(), **given, "metrics": self.metrics}
        stream = count_dask(y_true, y_pred, y_std, method=self.method, **options)
        return stream.compute(
            calibration=self.calibration,
            recalibration=self.recalibration,
            intervals=self.intervals,
            level=self.level,
            n_boot=self.n_boot,
            seed=self.seed,
        )


def as_predictions(y_true: Any, y_pred: Any, y_std: Any, **options: Any) -> Predictions:
    """The arguments as one ``Predictions``."""
    if not isinstance(y_true, Predictions):
        if y_pred is None or y_std is None:
            raise SettingsError("y_pred and y_std are missing; pass y_true, y_pred, y_std or one Predictions")
        return Predictions(y_true, y_pred, y_std, **options)
    usual = {"on_invalid": "raise"}
    given = [
        name
        for name, value in options.items()
        if value is not None and value is not usual.get(name) and name != "unit"
    ]
    given += [name for name, value in (("y_pred", y_pred), ("y_std", y_std)) if value is not None]
    if given:
        raise SettingsError(f"{', '.join(given)}: give these to Predictions, which holds the input already")
    return y_true


def score(
    statistics: RegressionStatistics,
    settings: Settings | None = None,
    metrics: Iterable[Metric] | None = None,
    *,
    digest: Any = None,
    extra: MetricInputs | None = None,
) -> Report:
    """Every score and curve of statistics: the pure function behind ``evaluate``, rescoring and pooling."""
    settings = settings or Settings()
    chosen = list(select("regression") if metrics is None else metrics)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # a score beyond float64 is undefined
        inputs = extra and replace(extra, statistics=statistics)
        scores, undefined = compute(statistics, settings, chosen, inputs)
        curves = build_curves(statistics, settings, inputs=inputs)
    return Report(
        task="regression",
        scores=scores,
        undefined=undefined,
        curves=curves,
        counts=statistics.counts,
        settings={**settings.to_dict(), "std_floor": statistics.std_floor},
        provenance={**provenance(statistics, digest), "targets": target_summary(statistics)},
        statistics=statistics,
    )


def target_summary(statistics: RegressionStatistics) -> dict[str, float]:
    """What tells whether two runs were scored on the same targets, whatever their order, dtype or batches."""
    moments = statistics.moments["target"]
    spread = math.sqrt(max(moments.m2, 0.0) / statistics.n) if statistics.n else 0.0
    summary = {"mean": moments.mean, "std": spread, "low": moments.low, "high": moments.high}
    return {name: float(value) for name, value in summary.items() if math.isfinite(value)}


def provenance(statistics: Statistics, digest: Any) -> dict[str, Any]:
    """Where the numbers come from; nothing that names a machine or a person."""
    return {
        "package": "uq_tracking",
        "version": __version__,
        "schema": SCHEMA,
        "statistics": statistics.kind,
        "accuracy": ACCURACY[statistics.kind],
        "digest": digest,
    }


ACCURACY = {
    "exact": "exact; sums in float64",
    "sketch": "buckets of relative width 2^-11: about 1e-6 relative for scores that are sums (nll, crps, sharpness), "
    "1e-4 absolute for areas (ause unless single errors carry most of it, auce, calibration_error), 1e-3 relative "
    "for merci, n_merci and ence, the last two not below 1e-3 and 0.05 / sqrt(n) absolute (from 1e5 samples on); "
    "standard deviations closer than a bucket count as tied",
}
