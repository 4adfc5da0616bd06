"""Curves made on demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from uq_tracking import plugins
from uq_tracking.checks import as_names
from uq_tracking.curves.curve import Curve, finite
from uq_tracking.curves.scale import best_factor, scale_sweep
from uq_tracking.curves.spec import CurveSpec
from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.members import by_members
from uq_tracking.evaluation.stability import stability
from uq_tracking.evaluation.strata import by_group, by_target, strata_of, target_strata
from uq_tracking.formatting import format_number
from uq_tracking.metrics.registry import MetricInputs, Undefined, compute, find, in_curves
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import How
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import Task


@dataclass(frozen=True)
class WantedCurves:
    """Which curves a caller asks for.

    Attributes
    ----------
    curves : tuple of str
        Names from ``Task.curves`` and from the declared curves that are not built by default.
    by_target : float, sequence of float or None
        Width or edges of target intervals.
    metrics : tuple of str
        Metrics of all these curves except ``scale_sweep``, and of those over ``by``.
    """

    curves: tuple[str, ...] = ()
    by_target: Any = None
    metrics: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        task: Task,
        curves: str | Iterable[str] | None,
        by_target: Any,
        metrics: str | Iterable[str] | None,
    ) -> WantedCurves:
        """Check names.

        Raises
        ------
        SettingsError
            The task has no such curve; a metric does not exist (UnknownMetricError), or needs more than statistics.
        """
        named = () if curves is None else as_names("curves", curves)
        known = [
            *task.curves,
            *(spec.name for spec in plugins.curves(task.name).values() if not spec.default),
        ]
        unknown = [name for name in named if name not in known]
        if unknown:
            raise SettingsError(
                f"a {task.name} has no curve called {', '.join(unknown)}; choose from {', '.join(known)}"
            )
        chosen = (
            in_curves(task.name) if metrics is None else find(as_names("curve_metrics", metrics), task.name)
        )
        needing = [metric.key for metric in chosen if metric.needs]
        if needing:
            raise SettingsError(
                f"curve_metrics names {', '.join(needing)}, which cannot be computed on parts of the samples; choose "
                "metrics that need only statistics"
            )
        return cls(named, by_target, tuple(metric.key for metric in chosen))


@dataclass(frozen=True)
class Extras:
    """Curves made on demand, and sentences about them."""

    curves: dict[str, Curve] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)

    def add(self, curves: Iterable[Curve]) -> None:
        """Add curves, keeping only points that 64-bit numbers can represent."""
        whole = (finite(curve) for curve in curves)
        self.curves.update({curve.name: curve for curve in whole if len(curve.columns[curve.x])})


def extra_curves(
    wanted: WantedCurves,
    task: Task,
    statistics: Statistics,
    settings: Settings,
    inputs: MetricInputs,
    *,
    tables: GroupTables | None = None,
    how: How = "auto",
) -> Extras:
    """Make the requested curves, and those over the strata of ``by`` if the predictions have any.

    Parameters
    ----------
    wanted : WantedCurves
    task, statistics, settings
        Statistics of all samples, and how to score them.
    inputs : MetricInputs
        The predictions, and the seed.
    tables : GroupTables, optional
        Statistics of the groups, for ``stability``.
    how : {"auto", "exact", "sketch"}
        Kind of statistics for the parts.
    """
    data = inputs.predictions
    made, metrics = Extras(), find(wanted.metrics, task.name)
    if data.by is not None:
        made.add(by_group(strata_of(task.layout_of(data), data, how), settings, metrics))
    if wanted.by_target is not None:
        made.add(
            by_target(*target_strata(task.layout_of(data), data, wanted.by_target, how), settings, metrics)
        )
    if "by_members" in wanted.curves:
        reference = inputs.reference
        made.add(by_members(task, data, settings, metrics, reference=reference, seed=inputs.seed, how=how))
    if "scale_sweep" in wanted.curves:
        _sweep(made, statistics, settings)
    if "stability" in wanted.curves:
        whole = compute(statistics, settings, metrics)[0]
        found = stability(
            task.layout_of(data), data, settings, metrics, whole, groups=tables, seed=inputs.seed
        )
        made.add(found.curves)
        made.verdicts.update(found.verdicts)
    declared = plugins.curves(task.name)
    for name in wanted.curves:
        if name in declared:
            _declared(made, declared[name], settings, replace(inputs, statistics=statistics))
    return made


def _declared(made: Extras, spec: CurveSpec, settings: Settings, inputs: MetricInputs) -> None:
    try:
        made.add([spec.build(inputs.statistics, settings, inputs)])
    except Undefined as reason:
        made.verdicts[spec.name] = f"not made: {reason}"


def _sweep(made: Extras, statistics: Statistics, settings: Settings) -> None:
    try:
        curve = scale_sweep(statistics, settings)
    except Undefined as reason:
        made.verdicts["scale_sweep"] = f"not made: {reason}"
        return
    made.add([curve])
    key = "nll" if "nll" in curve.columns else curve.main
    factor = best_factor(curve, key)
    made.verdicts["scale_sweep"] = (
        f"{key} is best with every standard deviation multiplied by {format_number(factor)}"
    )
