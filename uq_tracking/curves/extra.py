"""The curves that are made when asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from uq_tracking.curves.curve import Curve, finite
from uq_tracking.curves.members import by_members
from uq_tracking.curves.scale import best_factor, scale_sweep
from uq_tracking.curves.stability import stability
from uq_tracking.curves.strata import by_group, by_target, strata_of, target_strata
from uq_tracking.errors import SettingsError
from uq_tracking.formatting import format_number
from uq_tracking.inputs import Predictions
from uq_tracking.metrics.registry import MetricInputs, Undefined, compute, find
from uq_tracking.settings import Method, Settings
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.regression import RegressionStatistics

NAMES = ("scale_sweep", "by_members", "stability")
METRICS = ("rmse", "nll", "coverage_95", "auce", "ause_rmse", "n_merci")
"""Metrics of the curves that need a choice."""


@dataclass(frozen=True)
class Wanted:
    """Which curves a caller asks for.

    Attributes
    ----------
    curves : tuple of str
        Out of ``scale_sweep``, ``by_members`` and ``stability``.
    by_target : float, sequence of float or None
        Width or edges of target intervals.
    metrics : tuple of str
        Metrics of all of these curves but ``scale_sweep``.
    """

    curves: tuple[str, ...] = ()
    by_target: Any = None
    metrics: tuple[str, ...] = METRICS

    @classmethod
    def of(
        cls, curves: str | Iterable[str] | None, by_target: Any, metrics: str | Iterable[str] | None
    ) -> Wanted:
        """Check names; SettingsError or UnknownMetricError for one that does not exist."""
        named = (curves,) if isinstance(curves, str) else tuple(curves or ())
        unknown = [name for name in named if name not in NAMES]
        if unknown:
            raise SettingsError(f"no curve is called {', '.join(unknown)}; ask for {', '.join(NAMES)}")
        chosen = METRICS if metrics is None else tuple(metric.key for metric in find(metrics))
        return cls(named, by_target, chosen)


@dataclass(frozen=True)
class Extras:
    """Curves that were asked for, and sentences about them."""

    curves: dict[str, Curve] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)

    def add(self, curves: Iterable[Curve]) -> None:
        """Take in the points that 64-bit numbers hold."""
        whole = (finite(curve) for curve in curves)
        self.curves.update({curve.name: curve for curve in whole if len(curve.columns[curve.x])})


def extra_curves(
    wanted: Wanted,
    statistics: RegressionStatistics,
    settings: Settings,
    extra: MetricInputs,
    *,
    tables: GroupTables | None = None,
    method: Method = "auto",
) -> Extras:
    """Make what was asked for; strata of ``by`` are made where the predictions have them.

    Parameters
    ----------
    wanted : Wanted
    statistics, settings
        Of all samples, and how they are scored.
    extra : MetricInputs
        The predictions, and the seed.
    tables : GroupTables, optional
        Statistics of the groups, for ``stability``.
    method : {"auto", "exact", "sketch"}
        How the statistics of parts are made.
    """
    predictions: Predictions = extra.predictions
    made, metrics = Extras(), [metric for metric in find(wanted.metrics) if not metric.needs]
    if predictions.by is not None:
        made.add(by_group(strata_of(predictions, method), settings, metrics))
    if wanted.by_target is not None:
        made.add(by_target(*target_strata(predictions, wanted.by_target, method), settings, metrics))
    if "by_members" in wanted.curves:
        made.add(by_members(predictions, settings, metrics, seed=extra.seed, method=method))
    if "scale_sweep" in wanted.curves:
        _sweep(made, statistics, settings)
    if "stability" in wanted.curves:
        whole = compute(statistics, settings, metrics)[0]
        found = stability(predictions, settings, metrics, whole, groups=tables, seed=extra.seed)
        made.add(found.curves)
        made.verdicts.update(found.verdicts)
    return made


def _sweep(made: Extras, statistics: RegressionStatistics, settings: Settings) -> None:
    try:
        curve = scale_sweep(statistics, settings)
    except Undefined as reason:
        made.verdicts["scale_sweep"] = f"not made: {reason}"
        return
    made.add([curve])
    key = "nll" if "nll" in curve.columns else curve.main
    factor = best_factor(curve, key)
    made.verdicts["scale_sweep"] = (
        f"{key} is best with every standard deviation times {format_number(factor)}"
    )
