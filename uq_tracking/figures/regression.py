"""Drawings of the calibration of a regression report: reliability, quantiles, coverage and PIT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from uq_tracking.figures import style
from uq_tracking.figures.sides import BARS, Line, corner, name_side, name_sides
from uq_tracking.figures.source import (
    Columns,
    chance_band,
    columns,
    coverage_text,
    curve_axes,
    curve_of,
    finish,
    floor_text,
    report_figure,
    score_text,
    start,
)
from uq_tracking.figures.style import legend, legend_below, line, points, reference
from uq_tracking.figures.text import counted

if TYPE_CHECKING:
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]

LOG_ABOVE = 30.0
"""Above this ratio of the largest to the smallest bin, reliability is drawn on logarithmic axes."""
THINNEST = 0.012
"""Minimum width of a bar, as a share of the axis; a bin of equal standard deviations has zero width."""


@report_figure("Reliability")
def reliability(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the RMSE of each bin against the standard deviation it claims (RMV).

    Points on the dashed line are calibrated; above it the errors are larger than claimed (overconfident). The grey
    bars show the distribution of the predicted standard deviations: one bar over the range of each bin, with an area
    proportional to its number of samples. Bars at the points are confidence intervals, if groups were given; the pale
    band, if the curve has one, is where calibrated predictions lie by chance. The axes are logarithmic if the bins
    span more than a factor of 30.

    Parameters
    ----------
    report : Report
        With the curve ``reliability``: columns ``rmv``, ``rmse``, ``count``, ``std_low``, ``std_high``, and
        optionally ``low`` and ``high`` (interval), ``chance_low`` and ``chance_high``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Levi et al., "Evaluating and Calibrating Uncertainty Prediction in Regression Tasks", 2019, fig. 2.
    """
    bins = reliability_columns(report)
    on = start(ax)
    reliability_axes(on, report, [bins])
    _density_bars(on, bins)
    chance_band(on, bins, "rmv")
    _intervals(on, bins)
    line(
        on, bins["rmv"], bins["rmse"], marker="o", markersize=7, markeredgecolor="white", clip_on=False,
        label=_count_text(bins),
    )  # fmt: skip
    lines, faint = lines_of(bins), band_of(bins)
    if ax is None:
        legend_below(on.figure.figure, on)
        name_sides(on, lines, faint)
    else:
        place = corner(on, lines, style.legend_size(on))
        legend(on, loc="lower left", bbox_to_anchor=place[:2], borderaxespad=0.0)
        name_sides(on, lines, faint, place)
    scores = [score_text(report, "ence", "ENCE"), floor_text(report, "ence")]
    return finish(on, ax, report, "Reliability", scores, "calibration")


def reliability_columns(report: Report) -> Columns:
    """Return the finite bins of the report's reliability curve."""
    return columns(report, "reliability", ("rmv", "rmse", "count", "std_low", "std_high"), score="ence")


def reliability_axes(ax: Axes, report: Report, tables: list[Columns], curve: str = "reliability") -> Axes:
    """Prepare square axes with equal limits around all bins and their intervals, and the identity line."""
    curve_axes(ax, curve_of(report, curve))
    values = np.concatenate([table[key] for table in tables for key in ("rmv", "rmse")])
    ends = np.concatenate(
        [values, *(table[key] for table in tables for key in ("low", "high") if key in table)]
    )
    ends = ends[np.isfinite(ends)]
    low, high = float(values.min()), float(ends.max())
    if low > 0 and float(values.max()) / low > LOG_ABOVE:
        low, high = float(ends[ends > low / LOG_ABOVE].min()) / 1.5, high * 1.5
        style.log_axes(ax, (low, high), (low, high))
    else:
        low, high = 0.0, high * 1.12 if high > 0 else 1.0
        ticks = np.asarray(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        ax.set(xlim=(low, high), ylim=(low, high), xticks=ticks, yticks=ticks)
    ax.set_box_aspect(1)
    reference(ax, [low, high], [low, high], zorder=2.5, label="calibrated")
    return ax


def lines_of(table: Columns) -> list[Line]:
    """What is drawn from a table of bins: the dots and the lines joining them, and their intervals."""
    x = table["rmv"]
    ends = zip(x, table["low"], table["high"], strict=True) if "low" in table else ()
    return [(x, table["rmse"]), *((np.asarray([at, at]), np.asarray([low, high])) for at, low, high in ends)]


def band_of(table: Columns) -> list[Line]:
    """The ends of the band in which calibrated predictions lie."""
    return [(table["rmv"], table[key]) for key in ("chance_low", "chance_high") if key in table]


def _density_bars(ax: Axes, bins: Columns) -> None:
    """Bars along the lower border over each bin's range, with areas proportional to counts: a histogram of std."""
    low, high = ax.get_xlim()
    left, right = np.clip(bins["std_low"], low, high), np.clip(bins["std_high"], low, high)
    place = np.log if ax.get_xscale() == "log" else np.asarray
    span = float(place(high) - place(low))
    width = np.maximum(place(right) - place(left), THINNEST * span)
    thin = width <= THINNEST * span
    half = THINNEST * (right if ax.get_xscale() == "log" else high - low) / 2
    left, right = np.where(thin, left - half, left), np.where(thin, right + half, right)
    density = bins["count"] / width
    height = BARS * density / max(float(density.max()), 1e-300)
    ax.bar(
        left, height, width=right - left, align="edge", color=style.COUNTS, edgecolor="white", linewidth=0.6,
        transform=ax.get_xaxis_transform(), zorder=1.5, label="histogram of std",
    )  # fmt: skip


def _intervals(ax: Axes, bins: Columns) -> None:
    """Vertical bars of the bins' confidence intervals."""
    if "low" in bins and "high" in bins:
        ax.vlines(
            bins["rmv"],
            bins["low"],
            bins["high"],
            color=style.MODEL,
            alpha=0.45,
            linewidth=4,
            zorder=1.95,
            label="95 % interval",
        )


def _count_text(bins: Columns) -> str:
    """The number of bins, and of samples in each."""
    counts = bins["count"]
    number = f"{len(counts)} bin{'s' * (len(counts) != 1)}"
    low, high = counted(counts.min()), counted(counts.max())
    return f"{number} of {low} samples" if low == high else f"{number} of {low} to {high} samples"


@report_figure("Reliability without bins")
def reliability_isotonic(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the RMSE as the increasing step function of the standard deviation that best fits the errors.

    A calibrated model lies on the dashed line, and within the pale band around it in 95 % of cases at each point.

    Parameters
    ----------
    report : Report
        With the curve ``reliability_isotonic``: columns ``predicted``, ``observed``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams for probabilistic classifiers", 2021.
    """
    table = columns(report, "reliability_isotonic", ("predicted", "observed"), score="ence")
    on = start(ax)
    bins = table | {"rmv": table["predicted"], "rmse": table["observed"]}
    reliability_axes(on, report, [bins], "reliability_isotonic")
    name_sides(on, lines_of(bins), band_of(bins))
    chance_band(on, table, "predicted")
    points(on, table["predicted"], table["observed"])
    scores = [score_text(report, "ence", "ENCE"), floor_text(report, "ence")]
    return finish(on, ax, report, "Reliability without bins", scores, "calibration")


@report_figure("Calibration")
def calibration(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the observed share of targets below each predicted quantile against the expected share.

    A calibrated model lies on the dashed diagonal. If the tails hold more targets than claimed (above the diagonal in
    the left half, below it in the right half), the model is overconfident; the areas are colored and labelled. A
    curve that stays on one side of the diagonal throughout shows a biased mean. The grey band is the Wilson 95 %
    interval of each observed share; the pale band around the diagonal contains each point of a calibrated model in 95
    % of cases.

    Parameters
    ----------
    report : Report
        With the curve ``calibration``: columns ``expected``, ``observed``, ``low``, ``high``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Kuleshov et al., "Accurate Uncertainties for Deep Learning Using Calibrated Regression", 2018.
    """
    curve = calibration_columns(report)
    on = start(ax)
    calibration_axes(on, report)
    _deviation(on, curve["expected"], curve["observed"], split=0.5)
    chance_band(on, curve, "expected")
    _band(on, curve, "expected")
    points(on, curve["expected"], curve["observed"])
    area = score_text(report, "miscalibration_area", "miscalibration area")
    scores = [coverage_text(report), area, floor_text(report, "miscalibration_area")]
    return finish(on, ax, report, "Calibration", scores, "calibration")


def calibration_columns(report: Report) -> Columns:
    """Return the finite points of the report's calibration curve."""
    return columns(report, "calibration", ("expected", "observed"), score="calibration_error")


def calibration_axes(ax: Axes, report: Report) -> Axes:
    """Prepare the unit square with its diagonal, labelling the over- and underconfident side of each half."""
    curve_axes(ax, curve_of(report, "calibration"))
    _unit_square(ax)
    line(ax, [0.5, 0.5], [0, 1], color="#AAAAAA", linewidth=0.9, linestyle=":", zorder=1.5)
    for x, y, over in ((0.48, 0.94, True), (0.52, 0.94, False), (0.48, 0.03, False), (0.52, 0.03, True)):
        name = "overconfident" if over else "underconfident"
        name_side(ax, x, y, name, over=over, ha="right" if x < 0.5 else "left")
    return ax


def _unit_square(ax: Axes) -> None:
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=ticks, yticks=ticks)
    ax.set_box_aspect(1)
    reference(ax, [0, 1], [0, 1], label="calibrated")


def _band(ax: Axes, curve: Columns, x: str) -> None:
    if "low" in curve and "high" in curve:
        ax.fill_between(
            curve[x], curve["low"], curve["high"], color="#9A9A9A", alpha=0.45, linewidth=0, zorder=1.9
        )


def _deviation(ax: Axes, expected: FloatArray, observed: FloatArray, *, split: float) -> None:
    """Fill between curve and diagonal: overconfident above it left of ``split`` and below it right of it."""
    order = np.argsort(expected, kind="stable")
    x = np.union1d(np.linspace(expected.min(), expected.max(), 1001), expected)
    y = np.interp(x, expected[order], observed[order])
    over = (y - x) * (split - x) > 0
    for where, color in ((over, style.OVERCONFIDENT), (~over, style.UNDERCONFIDENT)):
        ax.fill_between(x, x, y, where=where.tolist(), color=color, alpha=0.35, linewidth=0, zorder=1.8)


@report_figure("Coverage")
def coverage(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the share of targets inside the central intervals against the share they promise.

    Below the diagonal the intervals cover too little (overconfident), above it too much (underconfident).

    Parameters
    ----------
    report : Report
        With the curve ``coverage``: columns ``nominal``, ``observed``, ``low``, ``high``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Gustafsson et al., "Evaluating Scalable Bayesian Deep Learning Methods for Robust Computer Vision",
       2020, section 3.
    """
    areas = [score_text(report, key, "area") for key in ("auce_over", "auce_under")]
    on = _coverage(report, "coverage", "auce", start(ax), areas)
    scores = [coverage_text(report), score_text(report, "auce", "AUCE"), floor_text(report, "auce")]
    return finish(on, ax, report, "Coverage", scores, "calibration")


def _coverage(report: Report, name: str, score: str, on: Axes, areas: Sequence[str]) -> Axes:
    """A curve of coverage on the unit square, with both sides labelled."""
    curve = columns(report, name, ("nominal", "observed"), score=score)
    curve_axes(on, curve_of(report, name))
    _unit_square(on)
    _deviation(on, curve["nominal"], curve["observed"], split=0.0)
    chance_band(on, curve, "nominal")
    _band(on, curve, "nominal")
    points(on, curve["nominal"], curve["observed"])
    over, under = areas
    name_side(on, 0.97, 0.04, f"overconfident\n{over}".strip(), over=True, ha="right")
    name_side(on, 0.03, 0.96, f"underconfident\n{under}".strip(), over=False, va="top")
    return on


@report_figure("Coverage of ellipsoids")
def joint_coverage(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the share of vectors inside the ellipsoids against the probability they promise.

    Parameters
    ----------
    report : Report
        With the curve ``joint_coverage``: columns ``nominal``, ``observed``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    on = _coverage(report, "joint_coverage", "joint_ks", start(ax), ("", ""))
    return finish(
        on,
        ax,
        report,
        "Coverage of ellipsoids",
        [score_text(report, "joint_ks", "KS distance")],
        "calibration",
    )


@report_figure("PIT histogram")
def pit_histogram(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the histogram of the probability integral transform, which is flat for a calibrated model.

    The grey lines, if the curve has such a band, contain each bar of a calibrated model in 95 % of cases.

    Parameters
    ----------
    report : Report
        With the curve ``pit_histogram``: columns ``center``, ``density``, ``count``, and with a band ``chance_low``
        and ``chance_high``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Gneiting, Balabdaoui and Raftery, "Probabilistic forecasts, calibration and sharpness", 2007.
    """
    bars = columns(report, "pit_histogram", ("center", "density", "count"), score="pit_ks")
    on = start(ax)
    curve_axes(on, curve_of(report, "pit_histogram"))
    share = 1.0 / len(bars["center"])
    on.bar(bars["center"], bars["density"], width=share, color=style.MODEL, edgecolor="white", linewidth=0.8)
    highest = max(bars[name].max() for name in ("density", "chance_high") if name in bars)
    if "chance_low" in bars:
        edges = np.linspace(0, 1, len(bars["center"]) + 1)
        for end in ("chance_low", "chance_high"):
            on.stairs(bars[end], edges, baseline=None, color="#777777", linewidth=1.0, zorder=2.5)
    reference(on, [0, 1], [1, 1], zorder=2.6, label="calibrated")
    on.set(xlim=(0, 1), ylim=(0, max(2.0, 1.12 * float(highest))), xticks=[0, 0.25, 0.5, 0.75, 1])
    scores = [
        coverage_text(report),
        score_text(report, "pit_ks", "KS distance"),
        floor_text(report, "pit_ks"),
    ]
    return finish(on, ax, report, "PIT histogram", scores, "calibration")
