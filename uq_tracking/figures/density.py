"""The two-dimensional histogram of absolute error against standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from uq_tracking.figures import style
from uq_tracking.figures.source import (
    Columns,
    columns,
    curve_axes,
    curve_of,
    finish,
    report_figure,
    score_text,
    start,
)
from uq_tracking.figures.style import legend, line
from uq_tracking.figures.text import counted, readable

if TYPE_CHECKING:
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]

ROUNDING = 1e-9  # edges shared by two cells may differ in the last digits
FEW, THIN = 150, 0.02
"""Fewer cells than this, each smaller than this share of the axis, are drawn as dots to be visible."""
HIDDEN = 0.005
"""Largest share of (the smallest) errors that may fall below the axis; the figure states it."""


@dataclass(frozen=True)
class _Side:
    """One side of every cell on a logarithmic axis; cells that hold zero go in a strip at the lower end."""

    low: FloatArray
    high: FloatArray
    limits: tuple[float, float]
    zero: tuple[float, float] | None


@report_figure("Error against uncertainty")
def error_vs_std(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the distribution of absolute errors at each predicted standard deviation.

    A calibrated Gaussian model has 68 % of its samples below the line ``|e| = std`` and 95 % below
    ``|e| = 2 std``. Both axes are logarithmic; zeros are drawn in a separate strip, marked 0.

    Parameters
    ----------
    report : Report
        With the curve ``error_vs_std``, one row per non-empty cell: columns ``std_low``, ``std_high``,
        ``error_low``, ``error_high``, ``count``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    cells = columns(report, "error_vs_std", ("std_low", "std_high", "error_low", "error_high", "count"))
    x = _side(cells["std_low"], cells["std_high"])
    y = _side(cells["error_low"], cells["error_high"], _lowest(cells))
    on = curve_axes(start(ax), curve_of(report, "error_vs_std"))
    style.log_axes(on, x.limits, y.limits)
    _mark_zero(on, x, y)
    drawn_cells = _draw_cells(on, x, y, cells["count"])
    _multiples(on, x.zero[1] if x.zero else x.limits[0], x.limits[1])
    legend(on, loc=_emptier_corner(x, y, cells["count"]))
    _colour_bar(on, drawn_cells, float(cells["count"].max()))
    scores = [score_text(report, "spearman", "Spearman"), _hidden_text(y, cells["count"])]
    return finish(on, ax, report, "Error against uncertainty", scores, "ranking")


def _lowest(cells: Columns) -> float:
    """Find the cell edge with at most ``HIDDEN`` of the samples below it; those are cut off."""
    order = np.argsort(cells["error_low"], kind="stable")
    low, count = cells["error_low"][order], np.concatenate([[0.0], np.cumsum(cells["count"][order])])
    zeros = count[np.searchsorted(low, 0.0, side="right")]
    below = count[np.searchsorted(low, low * (1 - ROUNDING))] - zeros
    return float(low[(low > 0) & (below <= HIDDEN * count[-1])].max(initial=0.0))


def _side(low: FloatArray, high: FloatArray, lowest: float = 0.0) -> _Side:
    """Place cells on one axis: limits, cells without width made visible, a strip for cells that hold zero."""
    zeros = low <= 0
    bottom = np.where(low == high, low * 0.95, low)
    top = np.where(low == high, high * 1.05, high)
    shown = ~zeros & (low >= lowest * (1 - ROUNDING))
    first, last = (float(bottom[shown].min()), float(top[shown].max())) if shown.any() else (0.5, 2.0)
    if not zeros.any():
        return _Side(bottom, top, _padded(first, last), None)
    width = max(last / first, 2.0)
    strip = (first * width**-0.10, first * width**-0.03)
    return _Side(np.where(zeros, strip[0], bottom), np.where(zeros, strip[1], top), (strip[0], last), strip)


def _padded(first: float, last: float) -> tuple[float, float]:
    """Limits with a margin around few cells, and none around many."""
    return (first, last) if last / first > 3.0 else (first / 1.5, last * 1.5)


def _mark_zero(ax: Axes, x: _Side, y: _Side) -> None:
    """Replace the ticks of a strip with a 0."""
    for axis, side in ((ax.xaxis, x), (ax.yaxis, y)):
        if side.zero is None:
            continue
        middle = float(np.sqrt(side.zero[0] * side.zero[1]))
        ticks = [tick for tick in style.decades(*side.limits) if tick > side.zero[1]]
        axis.set_major_locator(FixedLocator([middle, *ticks]))
        axis.set_major_formatter(FuncFormatter(lambda v, _, zero=middle: "0" if v == zero else readable(v)))
        edge = float(np.sqrt(side.zero[1] * (side.zero[1] / side.zero[0]) ** 0.4 * side.zero[1]))
        place = ax.axvline if axis is ax.xaxis else ax.axhline
        place(edge, color="#999999", linewidth=0.8, linestyle=":")


def _draw_cells(ax: Axes, x: _Side, y: _Side, count: FloatArray) -> PathCollection | PolyCollection:
    """Draw rectangles coloured by their log count, or dots if few; those below the axis are left out."""
    shown = (count > 0) & ~_hidden(y)
    norm = LogNorm(1.0, max(float(count.max()), 2.0))
    width = np.log(x.high / x.low)[shown].max(initial=0.0) / np.log(x.limits[1] / x.limits[0])
    if shown.sum() <= FEW and width < THIN:
        across, up = (np.sqrt(side.low * side.high)[shown] for side in (x, y))
        return ax.scatter(across, up, c=count[shown], cmap=_blues(), norm=norm, s=26, linewidths=0, zorder=2)
    ring = ((x.low, y.low), (x.high, y.low), (x.high, y.high), (x.low, y.high))
    corners = np.log10(np.stack([np.stack(corner, axis=-1) for corner in ring], axis=1))
    cells = PolyCollection(  # in axes coordinates: a scale would be queried for each cell separately
        list(corners[shown]), transform=ax.transLimits + ax.transAxes, cmap=_blues(), norm=norm, antialiaseds=False,
        linewidths=0, edgecolors="none", zorder=2,
    )  # fmt: skip
    cells.set_array(count[shown])
    ax.add_collection(cells, autolim=False)
    return cells


def _blues() -> ListedColormap:
    """One hue from pale to dark, without the near-white end, which would hide single samples."""
    return ListedColormap(colormaps["Blues"](np.linspace(0.22, 1.0, 256)), name="uq_counts")


def _hidden(y: _Side) -> npt.NDArray[np.bool_]:
    """Which cells lie below the axis."""
    return y.low < y.limits[0] * (1 - ROUNDING)


def _multiples(ax: Axes, low: float, high: float) -> None:
    x, color = np.asarray([low, high]), style.OVERCONFIDENT
    line(ax, x, 2 * x, color=color, linestyle="--", linewidth=1.8, label="|e| = 2 std", zorder=3)
    line(ax, x, x, color=color, linewidth=1.8, label="|e| = std", zorder=3)


def _emptier_corner(x: _Side, y: _Side, count: FloatArray) -> str:
    """Choose the corner with fewer samples for the legend; the lines run through the two other corners."""

    def place(side: _Side) -> FloatArray:
        low, high = np.log(side.limits)
        return np.asarray((np.log(np.sqrt(side.low * side.high)) - low) / (high - low))

    across, up = place(x), place(y)
    lower_right = count[(across > 0.55) & (up < 0.2) & (up > 0)].sum()
    upper_left = count[(across < 0.45) & (up > 0.8)].sum()
    return "upper left" if upper_left < lower_right else "lower right"


def _hidden_text(y: _Side, count: FloatArray) -> str:
    share = 100 * count[_hidden(y)].sum() / count.sum()
    return f"{readable(share, 2)} % of errors below the axis" if share > 0 else ""


def _colour_bar(ax: Axes, cells: PathCollection | PolyCollection, top: float) -> None:
    """Add a colour bar with plain numbers at whole powers of ten."""
    bar = ax.figure.colorbar(cells, ax=ax, pad=0.02, fraction=0.06)
    ticks = [tick for tick in style.decades(1.0, max(top, 2.0)) if tick == round(tick)]
    bar.ax.yaxis.set_major_locator(FixedLocator(ticks))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: counted(value)))
    style.style_colour_bar(bar, "samples per cell", size=style.TEXT, ticks=style.TICKS)
