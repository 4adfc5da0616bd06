"""Curves: named columns, their declaration, and how they are built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.errors import FileFormatError, PluginError, warn
from uq_tracking.formatting import axis_label
from uq_tracking.metrics import registry
from uq_tracking.metrics.gaps import Gap
from uq_tracking.metrics.registry import MetricInputs, TaskName, Undefined
from uq_tracking.settings import Settings
from uq_tracking.typed import DAMAGE

FloatArray = npt.NDArray[np.float64]
Columns = Mapping[str, FloatArray]
Steps = Callable[[Columns], npt.NDArray[Any]]
Limits = Callable[[FloatArray, FloatArray], tuple[float, float]]

RECALIBRATED = "_recalibrated"
"""Suffix of the names of curves after recalibration in a report."""


def percent(column: str) -> Steps:
    """Steps from a column, in per cent."""
    return lambda columns: np.rint(100 * columns[column])


def row_number(columns: Columns) -> npt.NDArray[Any]:
    """Steps 0, 1, 2 ..."""
    return np.arange(len(next(iter(columns.values()))))


@dataclass(frozen=True, eq=False)
class Curve:
    """Columns of equal length; ``x`` names the horizontal one and ``main`` the one drawn when runs are overlaid."""

    name: str
    columns: Mapping[str, FloatArray]
    x: str
    main: str
    x_label: str
    y_label: str
    title: str
    score: str | None = None
    """Key of the score that summarizes the curve."""
    steps: npt.NDArray[np.int64] | None = None
    """Increasing integers for trackers whose axis is an integer step: per cent of x, or the bin's index."""
    labels: tuple[str, ...] | None = None
    """Names of the rows, if ``x`` only numbers them."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        plain = {name: getattr(self, name) for name in _TEXTS}
        columns = {name: column.tolist() for name, column in self.columns.items()}
        steps = None if self.steps is None else self.steps.tolist()
        made = {**plain, "columns": columns, "steps": steps}
        return made if self.labels is None else {**made, "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Curve:
        """Inverse of ``to_dict``; FileFormatError for anything else."""
        try:
            columns = {name: np.asarray(column, dtype=float) for name, column in values["columns"].items()}
            steps = None if values["steps"] is None else np.asarray(values["steps"], dtype=np.int64)
            labels = values.get("labels")
            labels = None if labels is None else tuple(str(label) for label in labels)
            return cls(columns=columns, steps=steps, labels=labels, **{name: values[name] for name in _TEXTS})
        except DAMAGE as error:
            raise FileFormatError(f"this is not a curve ({error!r})") from error


_TEXTS = ("name", "x", "main", "x_label", "y_label", "title", "score")


def finite(curve: Curve) -> Curve:
    """The curve without points that 64-bit numbers cannot represent."""
    kept = np.all([np.isfinite(column) for column in curve.columns.values()], axis=0)
    if kept.all():
        return curve
    columns = {name: column[kept] for name, column in curve.columns.items()}
    labels = None if curve.labels is None else tuple(np.asarray(curve.labels, dtype=object)[kept].tolist())
    return replace(
        curve, columns=columns, steps=None if curve.steps is None else curve.steps[kept], labels=labels
    )


F = TypeVar("F", bound=Callable[..., Columns])


def not_declared(statistics: Any, settings: Settings) -> Columns:
    """Stand in for the missing function of a curve that does not decorate one."""
    raise PluginError("the curve has no function; decorate one with @curve(...)")


@dataclass(frozen=True)
class CurveSpec:
    """Everything about a curve except its numbers, declared by decorating the function that computes them.

    Attributes
    ----------
    name : str
        Name in reports and trackers, unique within the task; must be an identifier. By default the function's name.
    x, y : str
        Columns of the axes; ``y`` is the one drawn when runs are overlaid.
    x_label, y_label, title : str
        Axis labels and title in figures, trackers and comparisons.
    score : str or None
        Key of the score that summarizes the curve.
    task : str
    needs : tuple of str
        Inputs besides the statistics, as for metrics; a function that needs any receives `MetricInputs` instead.
    default : bool
        Whether it is built by default.
    steps : callable or None
        Function from the columns to increasing integers, for trackers whose axis is an integer step.
    reference : "diagonal" or tuple of float
        Where a perfect model lies: on the diagonal, or at these heights.
    ceiling : float or None
        Largest possible value, for a non-negative curve that gets a band from resamples of the groups; None for a
        curve without a band.
    recalibrated : bool
        Whether reports also hold it after a recalibration, as ``<name>_recalibrated``.
    settings : tuple of str
        Settings that define it; non-default ones become part of its name in trackers.
    gap : Gap, "isotonic", "pit" or None
        The gap between a point and the reference; reports then hold the band in which the points of a calibrated
        forecast lie by chance.
    overlaid : bool
        Whether comparisons overlay the curves of runs.
    units : (str, str)
        Units of the axes; ``target`` stands for the target's.
    limits : callable or None
        ``limits(x, y) -> (low, high)``: the y range worth showing, if some points lie far beyond the others.
    figure : str or None
        Name of the figure logged with every report; None for one drawn on demand, named as the curve.
    header : dict
        Keys of the scores above its figure, and the names they have there; by default its ``score``.
    draw : callable, str or None
        Function, or its dotted name, that draws it on axes whose labels are set: ``draw(ax, columns, report,
        alone)``, where ``alone`` is False if the figure shows more than this curve. It may return further texts for
        the header. By default the curve is drawn as a line, with its bands and its reference.
    function : callable
        ``function(statistics, settings) -> dict of columns``, of equal length; raises ``Undefined`` if there is no
        curve. The curve's score says why.
    """

    name: str = ""
    _: KW_ONLY
    x: str
    y: str
    x_label: str
    y_label: str
    title: str
    score: str | None = None
    task: TaskName = "regression"
    needs: tuple[str, ...] = ()
    default: bool = True
    steps: Steps | None = None
    reference: Literal["diagonal"] | tuple[float, ...] = ()
    ceiling: float | None = None
    recalibrated: bool = False
    settings: tuple[str, ...] = ()
    gap: Gap | Literal["isotonic", "pit"] | None = None
    overlaid: bool = True
    units: tuple[str, str] = ("", "")
    limits: Limits | None = None
    figure: str | None = None
    header: Mapping[str, str] = field(default_factory=dict, hash=False)
    draw: Callable[..., Iterable[str] | None] | str | None = None
    function: Callable[..., Columns] = not_declared

    def __call__(self, function: F) -> F:
        """Declare that the function builds the columns of the curve; the function itself is unchanged.

        Raises
        ------
        PluginError
            The declaration says what cannot be.
        """
        name = self.name or function.__name__
        what = f"curve {name!r}"
        registry.require_declarable(what, name, self.needs)
        for setting in self.settings:
            registry.require_known(what, "settings", setting, [option.name for option in fields(Settings)])
        return plugins.declare("uq_curves", replace(self, name=name, function=function), function)

    def build(self, statistics: Any, settings: Settings, inputs: MetricInputs | None = None) -> Curve:
        """Build the curve from statistics, and from further inputs if needed; its points are finite.

        Raises
        ------
        Undefined
            There is no such curve.
        PluginError
            The function fails, or returns columns other than those declared.
        """
        given = registry.input_for(self.needs, statistics, inputs)
        with registry.faults_named(f"curve {self.name!r}", self.function):
            columns: Columns = self.function(given, settings)
            shapes = {name: np.shape(column) for name, column in columns.items()}
        lacking = [name for name in (self.x, self.y) if name not in shapes]
        if lacking:
            raise PluginError(f"curve {self.name!r}: its function returns no column {lacking[0]!r}")
        if len(set(shapes.values())) > 1 or len(shapes[self.x]) != 1:
            raise PluginError(
                f"curve {self.name!r}: its columns have shapes {shapes}; return 1-D columns of equal length"
            )
        numbers = None if self.steps is None else np.asarray(self.steps(columns))
        steps = None if numbers is None else np.where(np.isfinite(numbers), numbers, 0).astype(np.int64)
        x_label = axis_label(self.x_label, self.units[0], settings.unit)
        y_label = axis_label(self.y_label, self.units[1], settings.unit)
        curve = Curve(self.name, columns, self.x, self.y, x_label, y_label, self.title, self.score, steps)
        curve = finite(curve)
        if not len(curve.columns[self.x]):
            raise Undefined(f"the curve {self.name} has no finite point")
        return curve


curve = CurveSpec
"""The decorator that declares a curve: ``@curve(...)`` above its function."""


def build_curves(
    statistics: Any,
    settings: Settings,
    task: str = "regression",
    *,
    inputs: MetricInputs | None = None,
) -> dict[str, Curve]:
    """The curves of a task that are built by default, if they are defined.

    A curve whose function fails is left out with a `TrackingWarning`.
    """
    built: dict[str, Curve] = {}
    for spec in plugins.curves(task).values():
        if not spec.default:
            continue
        try:
            built[spec.name] = spec.build(statistics, settings, inputs)
        except Undefined:
            continue  # the score that summarizes the curve is also undefined and carries the reason
        except PluginError as fault:
            warn(f"{fault}; it is left out")
    return built


def spec_of(name: str, task: str = "regression") -> CurveSpec | None:
    """The declaration of a report's curve, recalibrated or not; None for an undeclared one."""
    return plugins.curves(task).get(name.removesuffix(RECALIBRATED))


def is_overlaid(name: str, task: str = "regression") -> bool:
    """Return whether comparisons overlay the curves of this name; undeclared ones are overlaid."""
    spec = spec_of(name, task)
    return spec is None or spec.overlaid
