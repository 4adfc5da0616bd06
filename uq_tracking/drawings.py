"""The table of figures and maps: drawing functions by dotted name, imported when used."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking import plugins
from uq_tracking.errors import SettingsError
from uq_tracking.hookspecs import hookimpl
from uq_tracking.metrics.registry import TaskName
from uq_tracking.parallel import begin

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from uq_tracking.curves.spec import CurveSpec
    from uq_tracking.inputs.predictions import Case
    from uq_tracking.report import Report

LARGEST_PICTURE = 750_000
"""Bytes of a picture above which it gets 256 colors: only maps of noise, whose colors nobody can tell apart."""


@dataclass(frozen=True)
class FigureSpec:
    """A figure drawn from a task's reports; stored as ``uq_<name>.png`` if the report has what it needs.

    Attributes
    ----------
    name : str
    function : callable or str
        ``function(report) -> Figure``, or its dotted name.
    needs : tuple of str
        Curves it is drawn from; ``by_target_*`` is met by any curve whose name starts that way.
    task : str
    default : bool
        Whether it is drawn by default.
    needs_places : bool
        Whether it draws the parts of the samples in which the verdict looked for errors.
    needs_classes : bool
        Whether it draws the probability of each of more than two classes.
    """

    name: str
    function: Callable[..., Figure] | str
    needs: tuple[str, ...] = ()
    task: TaskName = "regression"
    default: bool = True
    needs_places: bool = False
    needs_classes: bool = False

    def draw(self, report: Any, ax: Axes | None = None) -> Figure:
        """Draw the figure of a report, on the given axes if it accepts them.

        Raises
        ------
        SettingsError
            The figure lays out its own axes: it has several, or a plugin draws it.
        """
        function = plugins.named(self.function)
        if ax is not None and "ax" not in signature(function).parameters:
            raise SettingsError(f"the figure {self.name!r} lays out its own axes; omit ax")
        return function(report) if ax is None else function(report, ax=ax)

    def lacks(self, report: Report) -> str:
        """Say what the report lacks for the figure; "" if it can be drawn."""
        if not all(fnmatch.filter(report.curves, need) for need in self.needs):
            return (
                f"the report has no curves for {self.name!r}, which needs {', '.join(self.needs)}; "
                "request them with curves=, by=, by_target= or calibration="
            )
        if self.needs_places and not (report.verdict.places and report.verdict.places.parts):
            return (
                f"{self.name!r} draws parts of the samples, and the verdict looked at none; it needs 40 independent "
                "samples in memory, not a stream, with a mean and a std that differ between them"
            )
        table = report.class_table if self.needs_classes else None
        if self.needs_classes and (table is None or not table.bins or len(table) < 3):
            return (
                f"{self.name!r} draws the probabilities of 3 to 100 classes, and the report has no sums of them; "
                "evaluate labels and probs"
            )
        return ""


@dataclass(frozen=True)
class MapSpec:
    """A panel drawn for one case of spatial predictions, stored as ``uq_map/<case>``.

    ``function(target, mean, std, *, scale, unit, image=None, title=None, **more)``, or its dotted name, receives 2-D
    arrays of equal shape, with NaN targets where there is no ground truth; ``scale`` maps std to the error's color
    scale (MeRCI's lambda), so that it covers ``alpha`` of the errors; ``epistemic`` and ``aleatoric`` are passed if
    known. Panels with a name other than ``uncertainty`` are stored as ``uq_map/<case>_<name>``. With ``limits``, a
    function of all cases, or its dotted name, each panel receives its result as ``limits``.

    For ``task="classification"`` it is ``function(labels, probs, *, classes=None, image=None, title=None)``, with
    labels of shape (height, width), -1 where missing, and probabilities of shape (height, width, C).

    Comparisons show what ``compared`` makes of a case: a function of the same arrays and options, or its dotted name,
    which returns arrays ``target``, ``prediction``, ``error`` (NaN without a truth) and ``uncertainty``, and a
    ``scale``: the factor by which the uncertainty was multiplied to share the error's colors, or None if target and
    prediction are numbers of classes, the error is 0 or 1, and the uncertainty an entropy. ``note`` says how to read
    that.
    """

    name: str
    function: Callable[..., Figure] | str
    task: TaskName = "regression"
    limits: Callable[..., Mapping[str, tuple[float, float]]] | str | None = None
    compared: Callable[..., Mapping[str, Any]] | str | None = None
    note: str = ""

    def common_limits(
        self, cases: Iterable[Case], **options: Any
    ) -> Mapping[str, tuple[float, float]] | None:
        """Return color limits that all cases share."""
        return None if self.limits is None else plugins.named(self.limits)(cases, **options)

    def draw(self, *arrays: Any, **options: Any) -> Figure:
        """Draw the panel of a case."""
        return plugins.named(self.function)(*arrays, **options)


def pictured(figure: Figure) -> Figure:
    """Turn a figure into a picture, which every tracker stores and shows without redrawing.

    Its file is compressed in the background.
    """
    from uq_tracking.figures.picture import Picture, drawn, packed

    if isinstance(figure, Picture):
        return figure
    pixels = drawn(figure)
    height, width = pixels.shape[:2]
    return Picture(begin(partial(packed, pixels, figure.get_dpi(), LARGEST_PICTURE)), (width, height))


def png_of(figure: Figure) -> bytes:
    """Draw any figure as a PNG file; the same figure gives the same bytes."""
    from uq_tracking.figures.picture import to_png

    return to_png(figure)


def picture_of(path: Path) -> Figure:
    """Return a stored PNG file as a figure, which every tracker shows in its own way."""
    from uq_tracking.figures.picture import picture

    return picture(path)


@hookimpl
def uq_figures() -> list[FigureSpec]:
    """Return the figures of every declared curve, those of curves on demand, and before and after recalibration."""
    calibration, small = "uq_tracking.figures.calibration", "uq_tracking.figures.small_multiples"
    needs = ("reliability_recalibrated", "calibration_recalibrated")
    of_classes = ("reliability", "reliability_recalibrated")
    return [
        *(_of_curve(spec) for task in plugins.tasks() for spec in plugins.curves(task).values()),
        FigureSpec("recalibration", f"{calibration}.before_after", needs),
        FigureSpec("recalibration", f"{calibration}.class_before_after", of_classes, "classification"),
        *(
            FigureSpec("overview", "uq_tracking.figures.curves.overview", task=task, default=False)
            for task in plugins.tasks()
        ),
        FigureSpec("where", "uq_tracking.figures.where.where", needs_places=True),
        FigureSpec("by_class", f"{small}.by_class", task="classification", needs_classes=True),
        FigureSpec("scale_sweep", f"{small}.scale_sweep", ("scale_sweep",)),
        FigureSpec("by_target", f"{small}.by_target", ("by_target_*",)),
        *(
            FigureSpec(name, f"{small}.{name}", (f"{name}_*",), task)
            for task in plugins.tasks()
            for name in ("by_group", "by_members", "stability")
        ),
    ]


def _of_curve(spec: CurveSpec) -> FigureSpec:
    def draw(report: Any, ax: Axes | None = None) -> Figure:
        from uq_tracking.figures.curves import draw_curve

        return draw_curve(spec, report, ax)

    return FigureSpec(
        spec.figure or spec.name, draw, (spec.name,), spec.task, default=spec.figure is not None
    )


@hookimpl
def uq_maps() -> list[MapSpec]:
    """Return the map panels: target, prediction, error and uncertainty."""
    return [
        MapSpec(
            "uncertainty",
            "uq_tracking.figures.maps.uncertainty_map",
            limits="uq_tracking.figures.maps.common_limits",
            compared="uq_tracking.figures.maps.compared_values",
            note="Errors and uncertainties of all methods share one color scale. Each standard deviation is "
            "multiplied so that it covers the same share of its method's errors: a useful uncertainty looks like the "
            "error above it.",
        ),
        MapSpec(
            "uncertainty",
            "uq_tracking.figures.maps.class_map",
            "classification",
            compared="uq_tracking.figures.maps.compared_classes",
            note="Entropies of all methods share one color scale: a useful uncertainty is bright where the error "
            "above it is.",
        ),
    ]
