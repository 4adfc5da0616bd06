"""Curves of several methods in one picture, and their maps on one color scale, as pixels that a page lays out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize, to_hex, to_rgb
from matplotlib.figure import Figure

from uq_tracking import plugins
from uq_tracking.errors import SettingsError, closest
from uq_tracking.figures import panels, style
from uq_tracking.figures.maps import class_colors
from uq_tracking.figures.picture import DPI, packed
from uq_tracking.figures.style import FloatArray
from uq_tracking.formatting import COLORS, one_line, shortened

if TYPE_CHECKING:
    from uq_tracking.comparison.curves import Overlay

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
CHANCE = "#E9ECEF"
"""Color of the bands that contain the points of calibrated runs; opaque, because several overlap."""
SHOWN = (
    "reliability", "calibration", "sparsification_error_rmse", "coverage",
    "sparsification_error_brier", "risk_coverage",
)  # fmt: skip
"""Curves of the overview; the first four available are drawn."""
PANEL = 4.6
LETTERS = 26
"""Maximum characters of a method's name, if names stay distinct."""
MOST_NAMED = 12
"""Maximum number of methods named in a legend; beyond that, see the table."""
MOST_LABELS = 8
"""Maximum number of labels named along an axis."""


def draw(
    curves: Mapping[str, Overlay], places: Mapping[str, int], name: str, ax: Axes | None = None
) -> Figure:
    """Draw one curve of every run, or with ``overview`` the four most important ones.

    ``places`` are those of the methods' colors in the palette.
    """
    known = [item for task in plugins.tasks() for item in plugins.curves(task).items()]
    name = next((key for key, spec in known if spec.figure == name and key in curves), name)
    if name in curves:
        names, size = [name], (6.2, 5.6)
    elif name != "overview":
        choices = ", ".join([*curves, "overview"])
        raise SettingsError(f"the runs have no curve {name!r}{closest(name, curves)}; choose from {choices}")
    elif ax is None:
        names = ([shown for shown in SHOWN if shown in curves] or list(curves))[:4]
        size = (PANEL * max(min(2, len(names)), 1), PANEL * max(-(-len(names) // 2), 1) + 0.6)
    else:
        raise SettingsError("the overview has several axes; to use ax=, name one curve")
    figure = style.new_figure(size) if ax is None else ax.get_figure(root=True)
    if figure is None:
        raise SettingsError("ax does not belong to a figure")
    for place, shown in enumerate(names):
        grid = (-(-len(names) // 2), min(2, len(names)), place + 1)
        overlay(curves[shown], places, ax or figure.add_subplot(*grid))
    if ax is not None:
        style.legend(ax)
    elif names:
        style.legend_below(figure, figure.axes[0])
    return style.plain_texts(figure, ax)


def overlay(curves: Overlay, place: Mapping[str, int], ax: Axes) -> None:
    """Overlay the curves of all runs, with one color per method."""
    style.style_axes(ax, curves.x_label, curves.y_label)
    names = dict(zip(place, shortened([one_line(method) for method in place], LETTERS), strict=True))
    seen: set[str] = set()
    for one in curves.lines:
        if one.chance is not None:
            style.band(ax, one.x, *one.chance, color=CHANCE, zorder=0.4)
    for one in curves.lines:
        k = place.get(one.method, len(place))
        label = None if one.method in seen or len(seen) >= MOST_NAMED else names.get(one.method)
        seen.add(one.method)
        color, dash = COLORS[k % len(COLORS)], DASHES[(k // len(COLORS)) % len(DASHES)]
        look: dict[str, Any] = {"linestyle": "", "marker": "o"} if curves.labels else {"linestyle": dash}
        style.points(ax, one.x, one.y, color=color, linewidth=1.8, label=label, **look)
        if one.low is not None and one.high is not None and len(place) <= 3:
            style.band(ax, one.x, one.low, one.high, color=color, alpha=0.15)
    if curves.labels:
        step = -(-len(curves.labels) // MOST_LABELS)  # every label, or every second, third ... of many
        places = list(range(0, len(curves.labels), step))
        room = PANEL * 60 / len(places)
        ax.set_xticks(places, [style.cut(one_line(curves.labels[k]), style.SMALL - 1, room) for k in places])
    if curves.y_limits is not None:
        ax.set_ylim(*curves.y_limits)
    x, y = ax.get_xlim(), ax.get_ylim()  # of the runs, whatever a perfect model does
    if curves.diagonal:
        ends = (min(x[0], y[0]), max(x[1], y[1]))
        style.reference(ax, ends, ends)
    for level in curves.levels:
        style.reference(ax, x, (level, level))
    ax.set(xlim=x, ylim=y)
    ax.set_title(curves.title, fontsize=style.TEXT, fontweight="bold", color="black", loc="left", pad=8)


IntArray = npt.NDArray[np.int64]

LONGEST = 320
"""Maximum pixels of the longer side; larger maps are reduced to this by block means, classes by subsampling."""


def reduced(values: npt.NDArray[np.floating]) -> FloatArray:
    """Return means of finite values over square blocks, at most ``LONGEST`` a side; NaN if none is finite."""
    ((means, _),) = panels.reduced(values, block=_block(values.shape))
    return np.asarray(means.filled(np.nan))


def reduced_classes(classes: IntArray) -> IntArray:
    """Return one class per square block of those of ``reduced``: that of the pixel in its middle."""
    block = _block(classes.shape)
    middle = [np.minimum(np.arange(0, size, block) + block // 2, size - 1) for size in classes.shape]
    return np.asarray(classes[np.ix_(*middle)])


def _block(shape: tuple[int, ...]) -> int:
    """Return the side of the square blocks of which each becomes a pixel."""
    return max(1, math.ceil(max(shape) / LONGEST))


def map_png(values: FloatArray, limits: tuple[float, float], colors: str) -> bytes:
    """Draw a map, shape (height, width), as a PNG file of one pixel per value, always of the same bytes; NaN is grey.

    ``limits`` have the first and the last color of the scale that ``colors`` names.
    """
    cells = Normalize(*limits, clip=True)(np.ma.masked_invalid(values))
    return packed(_colormap(colors)(cells, bytes=True), DPI)


def class_png(classes: IntArray) -> bytes:
    """Draw a map of classes as ``map_png`` draws one of values; negative classes are grey."""
    table = np.vstack([class_colors(max(int(classes.max()), 0) + 1), to_rgb(style.NO_DATA)])
    return packed(np.rint(255 * table[np.where(classes < 0, -1, classes)]).astype(np.uint8), DPI)


def image_png(image: npt.ArrayLike) -> bytes:
    """Draw a model's input, channels last, as single maps do; ShapeError for anything but a picture."""
    values = panels.picture(panels.plain(image)).values
    colors = values if values.ndim == 3 else np.ma.stack([values] * 3, axis=-1)
    known = ~np.ma.getmaskarray(colors)
    return packed(np.rint(255 * np.where(known, colors.data, to_rgb(style.NO_INPUT))).astype(np.uint8), DPI)


def color_stops(colors: str) -> list[str]:
    """Return nine evenly spaced colors of a color map, from low to high, as ``#rrggbb``."""
    return [to_hex(color) for color in _colormap(colors)(np.linspace(0, 1, 9))]


def _colormap(colors: str) -> Colormap:
    return colormaps[panels.COLORS[colors]].with_extremes(bad=style.NO_DATA)
