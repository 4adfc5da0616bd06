"""Curves of several runs in one picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uq_tracking.errors import SettingsError, closest
from uq_tracking.figures.style import (
    SMALL,
    TEXT,
    cut,
    legend,
    legend_below,
    new_figure,
    plain_texts,
    points,
    reference,
    style_axes,
)
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
    if name == "overview":
        if ax is not None:
            raise SettingsError("the overview has several axes; to use ax=, name one curve")
        names = [shown for shown in SHOWN if shown in curves][:4] or list(curves)[:4]
        wide = min(2, max(len(names), 1))
        high = max(-(-len(names) // wide), 1)
        figure = new_figure((PANEL * wide, PANEL * high + 0.6), "constrained")
    elif name in curves:
        names, wide, high = [name], 1, 1
        found = new_figure((6.2, 5.6), "constrained") if ax is None else ax.get_figure(root=True)
        if found is None:
            raise SettingsError("ax does not belong to a figure")
        figure = found
    else:
        raise SettingsError(
            f"the runs have no curve {name!r}{closest(name, curves)}; choose from "
            f"{', '.join(curves)}, or 'overview'"
        )
    for place, shown in enumerate(names, start=1):
        overlay(curves[shown], places, ax or figure.add_subplot(high, wide, place))
    if ax is not None:
        legend(ax)
    elif names:
        legend_below(figure, figure.axes[0])
    return plain_texts(figure, ax)


def overlay(curves: Overlay, place: Mapping[str, int], ax: Axes) -> None:
    """Overlay the curves of all runs, with one color per method."""
    style_axes(ax, curves.x_label, curves.y_label)
    names = dict(zip(place, shortened([one_line(method) for method in place], LETTERS), strict=True))
    seen: set[str] = set()
    for one in curves.lines:
        if one.chance is not None:
            ax.fill_between(one.x, *one.chance, color=CHANCE, linewidth=0, zorder=0.4)
    for one in curves.lines:
        k = place.get(one.method, len(place))
        label = None if one.method in seen or len(seen) >= MOST_NAMED else names.get(one.method)
        seen.add(one.method)
        color, dash = COLORS[k % len(COLORS)], DASHES[(k // len(COLORS)) % len(DASHES)]
        look: dict[str, Any] = {"linestyle": "", "marker": "o"} if curves.labels else {"linestyle": dash}
        points(ax, one.x, one.y, color=color, linewidth=1.8, label=label, **look)
        if one.low is not None and one.high is not None and len(place) <= 3:
            ax.fill_between(one.x, one.low, one.high, color=color, alpha=0.15, linewidth=0)
    if curves.labels:
        step = -(-len(curves.labels) // MOST_LABELS)  # every label, or every second, third ... of many
        places = list(range(0, len(curves.labels), step))
        room = PANEL * 60 / len(places)
        ax.set_xticks(places, [cut(one_line(curves.labels[k]), SMALL - 1, room) for k in places])
    if curves.y_limits is not None:
        ax.set_ylim(*curves.y_limits)
    x, y = ax.get_xlim(), ax.get_ylim()  # of the runs, whatever a perfect model does
    if curves.diagonal:
        ends = (min(x[0], y[0]), max(x[1], y[1]))
        reference(ax, ends, ends)
    for level in curves.levels:
        reference(ax, x, (level, level))
    ax.set(xlim=x, ylim=y)
    ax.set_title(curves.title, fontsize=TEXT, fontweight="bold", color="black", loc="left", pad=8)
