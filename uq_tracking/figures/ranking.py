"""Drawings of how well uncertainty ranks the errors: sparsification, MeRCI, risk, and errors against std."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import ListedColormap, LogNorm

from uq_tracking import plugins
from uq_tracking.figures import style
from uq_tracking.figures.curves import Columns, interval_band
from uq_tracking.figures.style import QUARTERS, FloatArray, legend, line, points, readable

if TYPE_CHECKING:
    from uq_tracking.report import Report

ROUNDING = 1e-9  # edges shared by two cells may differ in the last digits
FEW, THIN = 150, 0.02
"""Fewer cells than this, each smaller than this share of the axis, are drawn as dots to be visible."""
HIDDEN = 0.005
"""Largest share of (the smallest) errors that may fall below the axis; the figure states it."""


def sparsification(ax: Axes, curve: Columns, report: Report, alone: bool) -> None:
    """Draw the score of the rest as the most uncertain samples are removed, over that of all.

    The oracle removes the samples with the largest error; the shaded area between them is AUSE. The dotted line
    removes samples at random. After Ilg et al., "Uncertainty Estimates and Multi-Hypotheses Networks for Optical
    Flow", 2018; for the MAE, which is less sensitive to single large errors, Xiong et al., "Evaluating Metrics for
    Uncertainty in Deep Regression", 2024, fig. 5; for classes, Gustafsson et al., "Evaluating Scalable Bayesian Deep
    Learning Methods for Robust Computer Vision", 2020, section 4.3.
    """
    x, model, oracle, random = (curve[name] for name in ("fraction", "model", "oracle", "random"))
    top = max(1.0, *(float(values.max()) for values in (model, oracle, random)))
    style.band(ax, x, oracle, model, alpha=0.18, label="area: AUSE")
    interval_band(ax, report, curve, "fraction")
    points(ax, x, random, color=style.RANDOM, linestyle=":", label="random")
    points(ax, x, model, label=f"by {plugins.tasks()[report.task].uncertainty}")
    points(ax, x, oracle, color=style.ORACLE, linestyle="--", label="oracle")
    ax.set(xlim=(0, 1), ylim=(0, 1.1 * top), xticks=QUARTERS)
    if model.mean() > 0.5 * top:
        legend(ax, loc="lower left")
    else:  # below the line of a random order
        legend(ax, loc="upper right", bbox_to_anchor=(1.0, 0.89))


def n_merci_by_alpha(ax: Axes, curve: Columns, report: Report, alone: bool) -> None:
    """Draw n-MeRCI against the share of errors that the rescaled uncertainty must cover.

    0 is the oracle and 1 a constant standard deviation. The denominator of n-MeRCI is zero at the share of errors
    that are below the mean absolute error (often near .6): there the line leaves the picture, and the part to the
    left of that pole, where the denominator is negative, is drawn faint. After n-MeRCI, 2019, fig. 2.
    """
    x, y = curve["alpha"], curve["n_merci"]
    across = min(0.5, float(x.min())), max(1.0, float(x.max()))
    low, high = ax.get_ylim()  # those of the declaration
    line(ax, across, [1, 1], color=style.RANDOM, linestyle=":", label="constant std")
    line(ax, across, [0, 0], color=style.ORACLE, linestyle="--", label="oracle")
    beyond = np.where(y < low, -1, np.where(y > high, 1, 0))
    poles = np.flatnonzero(beyond[1:] * beyond[:-1] < 0) + 1  # jumps across the whole picture
    pole = int(poles[-1]) if len(poles) else 0
    line(ax, x[:pole], y[:pole], color=style.PALE, linewidth=1.2)
    points(ax, x[pole:], y[pole:], label="model")
    ax.set_xlim(across)
    legend(ax, loc="best")


def merci_by_alpha(ax: Axes, curve: Columns, report: Report, alone: bool) -> None:
    """Draw MeRCI against the share of errors to cover, between the oracle's and a constant's (2018, fig. 3)."""
    x = curve["alpha"]
    line(ax, x, curve["constant"], color=style.RANDOM, linestyle=":", label="constant std")
    line(ax, x, curve["oracle"], color=style.ORACLE, linestyle="--", label="oracle")
    points(ax, x, curve["merci"], label="model")
    ax.set_ylim(0, None)
    legend(ax, loc="best")


def risk_coverage(ax: Axes, curve: Columns, report: Report, alone: bool) -> None:
    """Draw the error rate of the decided samples when only the most confident share is decided.

    After Geifman and El-Yaniv, "Selective Classification for Deep Neural Networks", 2017.
    """
    x, risk = curve["coverage"], curve["risk"]
    style.band(ax, x, 0, risk, alpha=0.18, label="area: AURC")
    line(ax, [0, 1], [risk[-1], risk[-1]], color=style.RANDOM, linestyle=":", label="random order")
    points(ax, x, risk, label="by confidence")
    top = float(risk.max())
    ax.set(xlim=(0, 1), ylim=(0, 1.15 * top if top > 0 else 1.0), xticks=QUARTERS)
    legend(ax, loc="best")


@dataclass(frozen=True)
class _Side:
    """One side of every cell on a logarithmic axis; cells that hold zero go in a strip at the lower end."""

    low: FloatArray
    high: FloatArray
    limits: tuple[float, float]
    zero: tuple[float, float] | None

    @property
    def middle(self) -> FloatArray:
        return np.sqrt(self.low * self.high)

    @property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Cells below the axis."""
        return self.low < self.limits[0] * (1 - ROUNDING)


def error_vs_std(ax: Axes, cells: Columns, report: Report, alone: bool) -> list[str]:
    """Draw the distribution of absolute errors at each predicted standard deviation.

    A calibrated Gaussian model has 68 % of its samples below the line ``|e| = std`` and 95 % below
    ``|e| = 2 std``. Both axes are logarithmic; zeros are drawn in a separate strip, marked 0.
    """
    count, top = cells["count"], float(cells["count"].max())
    x = _side(cells["std_low"], cells["std_high"])
    order = np.argsort(cells["error_low"], kind="stable")
    edges, total = cells["error_low"][order], np.concatenate([[0.0], np.cumsum(count[order])])
    zeros = total[np.searchsorted(edges, 0.0, side="right")]
    below = total[np.searchsorted(edges, edges * (1 - ROUNDING))] - zeros
    lowest = edges[(edges > 0) & (below <= HIDDEN * total[-1])].max(initial=0.0)  # what is below is cut off
    y = _side(cells["error_low"], cells["error_high"], float(lowest))
    style.log_axes(ax, x=x.limits, y=y.limits)
    for axis, side, border in ((ax.xaxis, x, ax.axvline), (ax.yaxis, y, ax.axhline)):
        if side.zero is not None:  # a 0 replaces the ticks of the strip
            low, high = side.zero
            ticks = [tick for tick in style.decades(*side.limits) if tick > high]
            style.fixed_ticks(axis, [math.sqrt(low * high), *ticks], _number_above(high))
            edge = math.sqrt(high * (high / low) ** 0.4 * high)
            border(edge, color="#999999", linewidth=0.8, linestyle=":")
    drawn = _draw_cells(ax, x, y, count)
    ends = np.asarray([x.zero[1] if x.zero else x.limits[0], x.limits[1]])
    look: dict[str, Any] = {"color": style.OVERCONFIDENT, "linewidth": 1.8, "zorder": 3}
    line(ax, ends, 2 * ends, **look, linestyle="--", label="|e| = 2 std")
    line(ax, ends, ends, **look, label="|e| = std")
    legend(ax, loc=_emptier_corner(x, y, count))
    bar = ax.figure.colorbar(drawn, ax=ax, pad=0.02, fraction=0.06)
    ticks = [tick for tick in style.decades(1.0, max(top, 2.0)) if tick == round(tick)]
    style.fixed_ticks(bar.ax.yaxis, ticks, "{:,.0f}".format)
    style.style_color_bar(bar, "samples per cell", size=style.TEXT, ticks=style.TICKS)
    share = 100 * count[y.hidden].sum() / count.sum()
    return [f"{readable(share, 2)} % of errors below the axis"] if share > 0 else []


def _number_above(zero: float) -> Callable[[float], str]:
    """Return a format of numbers that writes those up to the strip's upper end as 0."""
    return lambda value: "0" if value <= zero else readable(value)


def _side(low: FloatArray, high: FloatArray, lowest: float = 0.0) -> _Side:
    """Place cells on one axis: limits, cells without width made visible, a strip for cells that hold zero."""
    zeros = low <= 0
    bottom = np.where(low == high, low * 0.95, low)
    top = np.where(low == high, high * 1.05, high)
    shown = ~zeros & (low >= lowest * (1 - ROUNDING))
    first, last = (float(bottom[shown].min()), float(top[shown].max())) if shown.any() else (0.5, 2.0)
    if not zeros.any():  # with a margin around few cells, and none around many
        return _Side(bottom, top, (first, last) if last / first > 3.0 else (first / 1.5, last * 1.5), None)
    width = max(last / first, 2.0)
    strip = (first * width**-0.10, first * width**-0.03)
    return _Side(np.where(zeros, strip[0], bottom), np.where(zeros, strip[1], top), (strip[0], last), strip)


def _draw_cells(ax: Axes, x: _Side, y: _Side, count: FloatArray) -> PathCollection | PolyCollection:
    """Draw rectangles colored by their log count, or dots if few; those below the axis are left out."""
    shown = (count > 0) & ~y.hidden
    look: dict[str, Any] = {  # one hue, without the near-white end, which would hide single samples
        "cmap": ListedColormap(colormaps["Blues"](np.linspace(0.22, 1.0, 256)), name="uq_counts"),
        "norm": LogNorm(1.0, max(float(count.max()), 2.0)),
        "zorder": 2,
    }
    width = np.log(x.high / x.low)[shown].max(initial=0.0) / np.log(x.limits[1] / x.limits[0])
    if shown.sum() <= FEW and width < THIN:
        return ax.scatter(x.middle[shown], y.middle[shown], c=count[shown], s=26, linewidths=0, **look)
    ring = ((x.low, y.low), (x.high, y.low), (x.high, y.high), (x.low, y.high))
    corners = np.log10(np.stack([np.stack(corner, axis=-1) for corner in ring], axis=1))
    cells = PolyCollection(  # in axes coordinates: a scale would be queried for each cell separately
        list(corners[shown]), transform=ax.transLimits + ax.transAxes, antialiaseds=False, linewidths=0,
        edgecolors="none", **look,
    )  # fmt: skip
    cells.set_array(count[shown])
    ax.add_collection(cells, autolim=False)
    return cells


def _emptier_corner(x: _Side, y: _Side, count: FloatArray) -> str:
    """Choose the corner with fewer samples for the legend; the lines run through the two other corners."""
    across, up = (
        (np.log(side.middle) - np.log(side.limits[0])) / (np.log(side.limits[1]) - np.log(side.limits[0]))
        for side in (x, y)
    )
    lower_right = count[(across > 0.55) & (up < 0.2) & (up > 0)].sum()
    upper_left = count[(across < 0.45) & (up > 0.8)].sum()
    return "upper left" if upper_left < lower_right else "lower right"
