"""Declarations of curves, and how the curves are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.curves.curve import Curve, FloatArray, finite
from uq_tracking.formatting import axis_label
from uq_tracking.metrics.registry import MetricInputs, Task, Undefined, input_for
from uq_tracking.settings import Settings

Columns = Mapping[str, FloatArray]
Steps = Callable[[Columns], npt.NDArray[Any]]
Limits = Callable[[FloatArray, FloatArray], tuple[float, float]]

RECALIBRATED = "_recalibrated"
"""Ending of the curves after recalibration in a report."""


def percent(column: str) -> Steps:
    """Steps that are a column in per cent."""
    return lambda columns: np.rint(100 * columns[column])


def row_number(columns: Columns) -> npt.NDArray[Any]:
    """Steps 0, 1, 2 ..."""
    return np.arange(len(next(iter(columns.values()))))


@dataclass(frozen=True)
class CurveSpec:
    """Everything about a curve except its numbers.

    Attributes
    ----------
    name : str
        Name in reports and trackers, unique within the task.
    function : callable
        ``function(statistics, settings) -> dict of columns``, of equal length; raises ``Undefined`` where there is
        no curve. The score of the curve says why.
    x, y : str
        Columns of the axes; ``y`` is what runs are overlaid by.
    x_label, y_label, title : str
        What figures, trackers and comparisons write on the axes and over them.
    score : str or None
        Key of the score that summarises the curve.
    task : {"regression", "classification"}
    needs : tuple of str
        Input besides the statistics, as for metrics; a function that needs any gets `MetricInputs` in their place.
    default : bool
        Whether it is built without being asked for.
    steps : callable or None
        Increasing integers of the columns, for trackers whose axis is an integer step.
    reference : "diagonal" or tuple of float
        Where a perfect model lies: on the diagonal, or at these heights.
    ceiling : float or None
        The largest value that a point can have, where resamples of the groups give the curve a band (its values are
        not negative); None for a curve without a band.
    recalibrated : bool
        Whether reports hold it after a recalibration too, under ``<name>_recalibrated``.
    settings : tuple of str
        Settings that it is defined by; where one is not the default its name in trackers says so.
    gaps : str or None
        What kind of gap lies between a point and the reference, as in `uq_tracking.inference.gaps`, "isotonic" or
        "pit"; reports then hold the band of the gaps that a calibrated forecast has by chance.
    overlaid : bool
        Whether comparisons lay the curves of runs over one another.
    units : (str, str)
        Units of the axes; ``target`` stands for the target's.
    limits : callable or None
        ``limits(x, y) -> (low, high)`` of the heights worth showing, where some points lie far beyond the others.
    draw : str or None
        Dotted name of the function that draws it, ``draw(report) -> Figure``.
    figure : str or None
        Name of the figure that is logged with every report; None for one that is drawn when asked for.
    """

    name: str
    function: Callable[[Any, Settings], Columns]
    x: str
    y: str
    x_label: str
    y_label: str
    title: str
    score: str | None = None
    task: Task = "regression"
    needs: tuple[str, ...] = ()
    default: bool = True
    steps: Steps | None = None
    reference: Literal["diagonal"] | tuple[float, ...] = ()
    ceiling: float | None = None
    recalibrated: bool = False
    settings: tuple[str, ...] = ()
    gaps: str | None = None
    overlaid: bool = True
    units: tuple[str, str] = ("", "")
    limits: Limits | None = None
    draw: str | None = None
    figure: str | None = None

    def build(self, statistics: Any, settings: Settings, inputs: MetricInputs | None = None) -> Curve:
        """Build the curve of statistics, or of more where it needs more; its points are finite.

        Raises
        ------
        Undefined
            There is no such curve.
        """
        columns = self.function(input_for(self.needs, statistics, inputs), settings)
        numbers = None if self.steps is None else np.asarray(self.steps(columns))
        steps = None if numbers is None else np.where(np.isfinite(numbers), numbers, 0).astype(np.int64)
        x_label = axis_label(self.x_label, self.units[0], settings.unit)
        y_label = axis_label(self.y_label, self.units[1], settings.unit)
        curve = Curve(self.name, columns, self.x, self.y, x_label, y_label, self.title, self.score, steps)
        curve = finite(curve)
        if not len(curve.columns[self.x]):
            raise Undefined(f"the curve {self.name} has no finite point")
        return curve


F = TypeVar("F", bound=Callable[..., Columns])


def curve(
    name: str,
    *,
    x: str,
    y: str,
    x_label: str,
    y_label: str,
    title: str,
    score: str | None = None,
    task: Task = "regression",
    needs: tuple[str, ...] = (),
    default: bool = True,
    steps: Steps | None = None,
    reference: Literal["diagonal"] | tuple[float, ...] = (),
    ceiling: float | None = None,
    recalibrated: bool = False,
    settings: tuple[str, ...] = (),
    gaps: str | None = None,
    overlaid: bool = True,
    units: tuple[str, str] = ("", ""),
    limits: Limits | None = None,
    draw: str | None = None,
    figure: str | None = None,
) -> Callable[[F], F]:
    """Declare that the function below builds the columns of a curve; the function itself is unchanged.

    Parameters are those of `CurveSpec`.
    """

    def declare(function: F) -> F:
        declared = CurveSpec(
            name, function, x, y, x_label, y_label, title, score, task, needs, default, steps, reference, ceiling,
            recalibrated, settings, gaps, overlaid, units, limits, draw, figure,
        )  # fmt: skip
        return plugins.declare("uq_curves", declared, function)

    return declare


def build_curves(
    statistics: Any,
    settings: Settings,
    task: str = "regression",
    *,
    inputs: MetricInputs | None = None,
) -> dict[str, Curve]:
    """The curves of a task that are built by default, as far as they are defined."""
    built: dict[str, Curve] = {}
    for spec in plugins.curves(task).values():
        if not spec.default:
            continue
        try:
            built[spec.name] = spec.build(statistics, settings, inputs)
        except Undefined:
            continue  # the score that summarises the curve is undefined too and carries the reason
    return built


def spec_of(name: str, task: str = "regression") -> CurveSpec | None:
    """The declaration of a curve of a report, recalibrated or not; None for one that is not declared."""
    return plugins.curves(task).get(name.removesuffix(RECALIBRATED))


def is_overlaid(name: str, task: str = "regression") -> bool:
    """Whether comparisons lay the curves of this name over one another; those that are not declared are."""
    spec = spec_of(name, task)
    return spec is None or spec.overlaid
