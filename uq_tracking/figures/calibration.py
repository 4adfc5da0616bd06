"""Drawings of calibration: reliability, quantiles, coverage, PIT, and all of it before and after a recalibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.patches import Patch

from uq_tracking.figures import curves, style
from uq_tracking.figures.curves import Columns, NothingToDrawError
from uq_tracking.figures.header import report_header, score_text
from uq_tracking.figures.sides import name_side, name_sides
from uq_tracking.formatting import one_line

if TYPE_CHECKING:
    from uq_tracking.report import Report

THINNEST = 0.012
"""Minimum width of a bar, as a share of the axis; a bin of equal standard deviations has zero width."""
BARS = 0.16
"""Height of the highest bar along the lower border, as a share of the axes."""
CORRECT = "#8FB8D8"
WIDE = (8.6, 5.1)
PANEL_WIDTH = 290.0
"""Maximum width, in points, of the title of one of two panels."""
TITLE: dict[str, Any] = {"fontsize": style.TEXT, "color": "black", "fontweight": "normal"}
STYLES = (
    {"label": "before", "color": style.BEFORE, "linestyle": "--", "marker": "s"},
    {"label": "after", "color": style.MODEL, "linestyle": "-", "marker": "o"},
)


def reliability(ax: Axes, bins: Columns, report: Report, alone: bool) -> None:
    """Draw the RMSE of each bin against the standard deviation it claims (RMV).

    Points on the dashed line are calibrated; above it the errors are larger than claimed (overconfident). The grey
    bars show the distribution of the predicted standard deviations: one bar over the range of each bin, with an area
    proportional to its number of samples. Bars at the points are confidence intervals, if groups were given; the pale
    band, if the curve has one, is where calibrated predictions lie by chance. The axes are logarithmic if the bins
    span more than a factor of 30. After Levi et al., "Evaluating and Calibrating Uncertainty Prediction in Regression
    Tasks", 2019, fig. 2.
    """
    x, counts = bins["rmv"], bins["count"]
    curves.square_axes(ax, [bins], "rmv", "rmse")
    low, high = ax.get_xlim()
    place, back = (np.log, np.exp) if ax.get_xscale() == "log" else (np.asarray, np.asarray)
    ends = place(np.clip([bins["std_low"], bins["std_high"]], low, high))
    width = np.maximum(ends[1] - ends[0], THINNEST * float(place(high) - place(low)))
    left, right = back(ends.mean(axis=0) + np.asarray([[-0.5], [0.5]]) * width)
    density = counts / width
    height = BARS * density / max(float(density.max()), 1e-300)
    look: dict[str, Any] = {"color": style.COUNTS, "transform": ax.get_xaxis_transform(), "zorder": 1.5}
    style.bars(ax, left, height, right - left, **look, linewidth=0.6, label="histogram of std")
    curves.chance_band(ax, bins, "rmv")
    if "low" in bins and "high" in bins:
        look = {"color": style.MODEL, "alpha": 0.45, "linewidth": 4, "label": "95 % interval"}
        ax.vlines(x, bins["low"], bins["high"], zorder=1.95, **look)
    few, many = (f"{count:,.0f}" for count in (counts.min(), counts.max()))
    each = few if few == many else f"{few} to {many}"
    label = f"{len(counts)} bin{'s' * (len(counts) != 1)} of {each} samples"
    look = {"marker": "o", "markersize": 7, "markeredgecolor": "white", "clip_on": False}
    style.line(ax, x, bins["rmse"], **look, label=label)
    rare = counts < style.FEW
    if rare.any():
        pale = {"color": style.PALE, "linestyle": "", "label": f"bin of fewer than {style.FEW}"}
        style.line(ax, x[rare], bins["rmse"][rare], **look | pale)
    if alone:  # inside the axes it would hide the diagonal
        style.legend_below(ax.figure.figure, ax)
    name_sides(ax)


def reliability_isotonic(ax: Axes, table: Columns, report: Report, alone: bool) -> None:
    """Draw the RMSE as the increasing step function of the standard deviation that best fits the errors.

    A calibrated model lies on the dashed line, and within the pale band around it in 95 % of cases at each point.
    After Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams for probabilistic classifiers", 2021.
    """
    curves.square_axes(ax, [table], "predicted", "observed")
    curves.chance_band(ax, table, "predicted")
    style.points(ax, table["predicted"], table["observed"])
    name_sides(ax)


def calibration(ax: Axes, curve: Columns, report: Report, alone: bool) -> None:
    """Draw the observed share of targets below each predicted quantile against the expected share.

    A calibrated model lies on the dashed diagonal. If the tails hold more targets than claimed (above the diagonal in
    the left half, below it in the right half), the model is overconfident; the areas are colored and labelled. A
    curve that stays on one side of the diagonal throughout shows a biased mean. The grey band is the Wilson 95 %
    interval of each observed share; the pale band around the diagonal contains each point of a calibrated model in 95
    % of cases. After Kuleshov et al., "Accurate Uncertainties for Deep Learning Using Calibrated Regression", 2018.
    """
    _calibration_axes(ax)
    _share(ax, curve, "expected", split=0.5)


def _calibration_axes(ax: Axes) -> None:
    """Prepare the unit square, labelling the over- and underconfident side of each half."""
    curves.unit_square(ax)
    style.line(ax, [0.5, 0.5], [0, 1], color="#AAAAAA", linewidth=0.9, linestyle=":", zorder=1.5)
    for x, y, over in ((0.48, 0.94, True), (0.52, 0.94, False), (0.48, 0.03, False), (0.52, 0.03, True)):
        name = "overconfident" if over else "underconfident"
        name_side(ax, x, y, name, over=over, ha="right" if x < 0.5 else "left")


def _share(ax: Axes, curve: Columns, x_name: str, *, split: float) -> None:
    """Draw an observed share with its bands, and fill between it and the diagonal.

    It is overconfident above the diagonal left of ``split`` and below it right of it.
    """
    expected, observed = curve[x_name], curve["observed"]
    order = np.argsort(expected, kind="stable")
    x = np.union1d(np.linspace(expected.min(), expected.max(), 1001), expected)
    y = np.interp(x, expected[order], observed[order])
    over = (y - x) * (split - x) > 0
    for where, color in ((over, style.OVERCONFIDENT), (~over, style.UNDERCONFIDENT)):
        style.band(ax, x, x, y, where=where.tolist(), color=color, alpha=0.35, zorder=1.8)
    curves.chance_band(ax, curve, x_name)
    if "low" in curve and "high" in curve:
        style.band(ax, expected, curve["low"], curve["high"], color="#9A9A9A", alpha=0.45, zorder=1.9)
    style.points(ax, expected, observed)


def coverage(ax: Axes, curve: Columns, report: Report, alone: bool) -> None:
    """Draw the share of targets inside the central intervals, or ellipsoids, against the share they promise.

    Below the diagonal they cover too little (overconfident), above it too much (underconfident). After Gustafsson et
    al., "Evaluating Scalable Bayesian Deep Learning Methods for Robust Computer Vision", 2020, section 3.
    """
    joint_coverage(ax, curve, report, alone, ("auce_over", "auce_under"))


def joint_coverage(
    ax: Axes, curve: Columns, report: Report, alone: bool, areas: tuple[str, str] = ("", "")
) -> None:
    """Draw the share of vectors inside the ellipsoids against the probability they promise."""
    curves.unit_square(ax)
    _share(ax, curve, "nominal", split=0.0)
    over, under = (score_text(report, key, "\narea") for key in areas)
    name_side(ax, 0.97, 0.04, f"overconfident{over}", over=True, ha="right")
    name_side(ax, 0.03, 0.96, f"underconfident{under}", over=False, va="top")


def pit_histogram(ax: Axes, bars: Columns, report: Report, alone: bool) -> None:
    """Draw the histogram of the probability integral transform, which is flat for a calibrated model.

    The grey lines, if the curve has such a band, contain each bar of a calibrated model in 95 % of cases. After
    Gneiting, Balabdaoui and Raftery, "Probabilistic forecasts, calibration and sharpness", 2007.
    """
    cells = len(bars["center"])
    style.bars(ax, bars["center"], bars["density"], 1.0 / cells, align="center")
    highest = max(bars[name].max() for name in ("density", "chance_high") if name in bars)
    if "chance_low" in bars:
        edges = np.linspace(0, 1, cells + 1)
        for end in ("chance_low", "chance_high"):
            ax.stairs(bars[end], edges, baseline=None, color="#777777", linewidth=1.0, zorder=2.5)
    style.reference(ax, [0, 1], [1, 1], zorder=2.6, label="calibrated")
    ax.set(xlim=(0, 1), ylim=(0, max(2.0, 1.12 * float(highest))), xticks=style.QUARTERS)


def class_reliability(ax: Axes, bins: Columns, report: Report, alone: bool) -> list[str]:
    """Draw the accuracy of each bin of confidence against its mean confidence, over the number of samples.

    Of two classes they are the observed share and the stated probability of the event.

    The bars show the accuracy; the gap between a bar and the bin's mean confidence is what ECE averages: orange where
    the confidence is too high, blue where it is too low. The lower bars, if drawn alone, show the samples per bin. A
    calibrated model's point lies in the grey bar on the diagonal in 95 % of cases. After Guo et al., "On Calibration
    of Modern Neural Networks", 2017, fig. 1, and Gustafsson et al., "Evaluating Scalable Bayesian Deep Learning
    Methods for Robust Computer Vision", 2020, fig. 9.

    Returns the MCE, without bins of fewer than 50 samples, which are pale: chance alone makes their gaps.
    """
    many = bins["count"] >= style.FEW
    largest = float(np.abs(bins["confidence"] - bins["accuracy"]).max(where=many, initial=0.0))
    facts = [score_text(report, "mce", "MCE")]
    if not many.all():
        told = f"MCE {style.readable(largest, padded=True)} in bins of {style.FEW} samples or more"
        facts = [told] if many.any() and "mce" in report.scores else []
    accuracies(ax, bins, of_event=report.settings.get("event") is not None)
    ax.set_xticks(style.QUARTERS)
    if not alone:
        return facts
    x_label, counts = ax.get_xlabel(), bins["count"]
    grid = GridSpec(2, 1, height_ratios=(3.4, 1.0), figure=ax.figure.figure)
    ax.set_subplotspec(grid[0])
    ax.tick_params(labelbottom=False)
    ax.set_xlabel("")
    below = style.style_axes(ax.figure.figure.add_subplot(grid[1], sharex=ax), x_label, "Samples")
    below.grid(False)
    width = bins["confidence_high"] - bins["confidence_low"]
    style.bars(below, bins["confidence_low"], counts, width, color=style.COUNTS)
    below.set(ylim=(0, 1.1 * float(counts.max())), yticks=[0, counts.max()], xticks=style.QUARTERS)
    return facts


def accuracies(ax: Axes, bins: Columns, *, of_event: bool) -> None:
    """Draw the bars of the accuracy, and their gaps to the confidence; of two classes those of the event."""
    high, low = ("too high", "too low") if of_event else ("overconfident", "underconfident")
    left, accuracy, confidence = bins["confidence_low"], bins["accuracy"], bins["confidence"]
    width, gap = bins["confidence_high"] - left, confidence - accuracy
    style.bars(ax, left, accuracy, width, color=CORRECT, zorder=1.6)
    handles = [Patch(color=CORRECT, label="observed" if of_event else "accuracy")]
    for over, color, name in (
        (gap > 0, style.OVERCONFIDENT, f"gap: {high}"),
        (gap < 0, style.UNDERCONFIDENT, f"gap: {low}"),
    ):
        if over.any():
            look: dict[str, Any] = {"color": color, "edgecolor": color, "alpha": 0.55, "zorder": 1.7}
            style.bars(ax, left[over], gap[over], width[over], bottom=accuracy[over], **look)
            handles.append(Patch(color=color, alpha=0.55, label=name))
    if "chance_low" in bins:
        ends = bins["chance_low"], bins["chance_high"]
        ax.vlines(confidence, *ends, color=style.REFERENCE, alpha=0.35, linewidth=5, zorder=1.9)
    style.reference(ax, [0, 1], [0, 1], zorder=2.5, label="calibrated")
    look = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgecolor": "white", "clip_on": False}
    style.line(ax, confidence, accuracy, **look)
    rare = bins["count"] < style.FEW if "count" in bins else np.zeros(len(left), dtype=bool)
    if rare.any():
        height = np.maximum(accuracy, confidence)[rare]
        ax.bar(left[rare], height, width[rare], align="edge", color="white", alpha=0.65, zorder=1.8)
        style.line(ax, confidence[rare], accuracy[rare], **look | {"color": style.PALE})
        handles.append(Patch(color=style.PALE, alpha=0.4, label=f"pale: fewer than {style.FEW} samples"))
    ax.set(xlim=(0, 1), ylim=(0, 1), yticks=style.QUARTERS)
    style.legend(ax, loc="upper left", handles=handles)


def before_after(report: Report) -> Figure:
    """Draw reliability and calibration before and after the first recalibration, on common axes.

    If it is of one half of the samples, the scores are of this half on both sides.
    """
    after, (method, entry) = report.after(), next(iter(report.scored_methods().items()))
    name, reports = f"Before and after {one_line(method)}", (report, after)
    try:
        bins = [curves.columns(each, "reliability", "rmv", "rmse", score="ence") for each in reports]
        shares = [
            curves.columns(each, "calibration", "expected", "observed", score="calibration_error")
            for each in reports
        ]
    except NothingToDrawError as nothing:
        return curves.undefined_figure(report, name, str(nothing), WIDE)
    figure, all_scores = style.new_figure(WIDE), (entry.get("before", report.scores), after.scores)
    left, right = figure.subplots(1, 2)
    for ax, curve, label, key in (
        (left, "reliability", "ENCE", "ence"),
        (right, "calibration", "miscalibration area", "miscalibration_area"),
    ):
        style.style_axes(ax, report.curves[curve].x_label, report.curves[curve].y_label)
        one, other = (
            style.readable(scores[key], padded=True) if key in scores else "undefined"
            for scores in all_scores
        )
        ax.set_title(f"{label} {one} → {other}", **TITLE)
    curves.square_axes(left, bins, "rmv", "rmse")
    _calibration_axes(right)
    for table, share, look in zip(bins, shares, STYLES, strict=True):
        style.line(left, table["rmv"], table["rmse"], **look, markersize=6.5, markeredgecolor="white")
        style.line(right, share["expected"], share["observed"], **{**look, "marker": ""})
    name_sides(left)
    style.legend_below(figure, left)
    return _headed(figure, report, name, "after, and the scores" if "before" in entry else "after")


def _headed(figure: Figure, report: Report, name: str, what: str = "after") -> Figure:
    """Put the header above both panels; it says which samples ``what`` is of, if not of all."""
    entry = next(iter(report.scored_methods().values()))
    of = f"{what}: the {entry['split']['scored']:,.0f} that nothing was fitted to" if "split" in entry else ""
    return report_header(figure, report, name, judged=("calibration",), when="Before: ", samples=of)


def class_before_after(report: Report) -> Figure:
    """Draw the reliability of classes before and after the first recalibration, side by side."""
    method, reports = next(iter(report.scored_methods())), (report, report.after())
    name = f"Before and after {one_line(method)}"
    try:
        tables = [
            curves.columns(each, "reliability", "confidence", "accuracy", score="ece") for each in reports
        ]
    except NothingToDrawError as nothing:
        return curves.undefined_figure(report, name, str(nothing), WIDE)
    figure, curve = style.new_figure(WIDE), report.curves["reliability"]
    for ax, bins, each, look in zip(figure.subplots(1, 2), tables, reports, STYLES, strict=True):
        style.style_axes(ax, curve.x_label, curve.y_label)
        ax.xaxis.label.set_fontsize(style.SMALL)
        accuracies(ax, bins, of_event=report.settings.get("event") is not None)
        ax.set_xticks(style.QUARTERS)
        ax.set_box_aspect(1)
        scores = [score_text(each, "ece", "ECE"), score_text(each, "nll", "NLL")]
        titles = [
            ": ".join(filter(None, (str(look["label"]), ", ".join(filter(None, scores[:most])))))
            for most in (2, 1, 0)
        ]
        ax.set_title(style.first_fitting(titles, style.TEXT, PANEL_WIDTH), **TITLE)
    return _headed(figure, report, name)
