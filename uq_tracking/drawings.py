"""The table of figures and maps: drawing functions by dotted name, imported when they draw."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from uq_tracking import plugins
from uq_tracking.hookspecs import hookimpl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.curves.spec import CurveSpec

Task: TypeAlias = str
TASKS: tuple[Task, ...] = ("regression", "classification")


@dataclass(frozen=True)
class FigureSpec:
    """A figure drawn from a report of a task: stored as ``uq_<name>.png`` when it has every curve in ``needs``.

    Attributes
    ----------
    name : str
    function : callable or str
        ``function(report) -> Figure``, or its dotted name.
    needs : tuple of str
        Curves it is drawn from. A need that ends in ``*`` is met by any curve whose name starts so.
    task : {"regression", "classification"}
    default : bool
        Whether it is drawn without being asked for.
    """

    name: str
    function: Callable[..., Figure] | str
    needs: tuple[str, ...] = ()
    task: Task = "regression"
    default: bool = True

    def draw(self, report: Any) -> Figure:
        """Draw the figure of a report."""
        figure: Figure = _drawing(self.function)(report)
        return figure

    def has_curves(self, names: Collection[str]) -> bool:
        """Whether curves of these names are all that the figure needs."""
        return all(
            need in names or (need.endswith("*") and any(name.startswith(need[:-1]) for name in names))
            for need in self.needs
        )


@dataclass(frozen=True)
class MapSpec:
    """A panel drawn for one case of spatial predictions, stored as ``uq_map/<case>``.

    ``function(target, mean, std, *, scale, unit, image=None, title=None)``, or its dotted name, gets 2-D arrays of
    equal shape, the target being NaN where there is no ground truth; ``scale`` brings std onto the error's colour
    scale (MeRCI's lambda). Panels of a name other than ``uncertainty`` are stored as ``uq_map/<case>_<name>``.

    For ``task="classification"`` it is ``function(labels, probs, *, class_names=None, image=None, title=None)``, with
    labels of shape (height, width), -1 where there is none, and probabilities of shape (height, width, C).
    """

    name: str
    function: Callable[..., Figure] | str
    task: Task = "regression"

    def draw(self, *arrays: Any, **options: Any) -> Figure:
        """Draw the panel of a case."""
        figure: Figure = _drawing(self.function)(*arrays, **options)
        return figure


def _drawing(function: Callable[..., Figure] | str) -> Callable[..., Any]:
    return plugins.named(function) if isinstance(function, str) else function


@hookimpl
def uq_figures() -> list[FigureSpec]:
    """Figures named by the declarations of curves, those of curves on demand, and before and after recalibration."""
    small = "uq_tracking.figures.small_multiples"
    return [
        *(_of_curve(spec) for task in TASKS for spec in plugins.curves(task).values() if spec.draw),
        FigureSpec(
            "recalibration",
            "uq_tracking.figures.comparison.before_after",
            ("reliability_recalibrated", "calibration_recalibrated"),
        ),
        FigureSpec(
            "recalibration",
            "uq_tracking.figures.classification.class_before_after",
            ("reliability", "reliability_recalibrated"),
            "classification",
        ),
        FigureSpec("scale_sweep", f"{small}.scale_sweep", ("scale_sweep",)),
        FigureSpec("by_target", f"{small}.by_target", ("by_target_*",)),
        *(
            FigureSpec(name, f"{small}.{name}", (f"{name}_*",), task)
            for task in TASKS
            for name in ("by_group", "by_members", "stability")
        ),
    ]


def _of_curve(spec: CurveSpec) -> FigureSpec:
    drawing = spec.draw or ""
    name = spec.figure or drawing.rpartition(".")[2]
    return FigureSpec(name, drawing, (spec.name,), spec.task, default=spec.figure is not None)


@hookimpl
def uq_maps() -> list[MapSpec]:
    """The panel of target, prediction, error and uncertainty."""
    return [
        MapSpec("uncertainty", "uq_tracking.figures.maps.uncertainty_map"),
        MapSpec("uncertainty", "uq_tracking.figures.class_maps.class_map", "classification"),
    ]
