"""Drawings of a classification report: reliability, sparsification, risk against coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from uq_tracking.figures import style
from uq_tracking.figures.header import report_header
from uq_tracking.figures.ranking import sparsified
from uq_tracking.figures.recalibration import STYLES, WIDE, of_half, panel_title
from uq_tracking.figures.source import (
    Columns,
    NothingToDrawError,
    chance_band,
    columns,
    curve_axes,
    curve_of,
    finish,
    floor_text,
    report_figure,
    score_text,
    start,
    undefined_figure,
)
from uq_tracking.figures.style import (
    legend,
    line,
    new_figure,
    plain_texts,
    points,
    reference,
    style_axes,
)
from uq_tracking.figures.text import counted

if TYPE_CHECKING:
    from uq_tracking.curves import Curve
    from uq_tracking.report import Report

CORRECT = "#8FB8D8"
MOST_LABELLED = 10
"""Up to this many bins, each bar carries its count."""
NAMES = ("confidence_low", "confidence_high", "confidence", "accuracy", "count")


@report_figure("Reliability")
def class_reliability(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the accuracy of each bin of confidence against its mean confidence, over the number of samples.

    The bars show the accuracy; the gap between a bar and the bin's mean confidence is what ECE averages: orange where
    the confidence is too high, blue where it is too low. The lower bars show the samples per bin. A calibrated
    model's point lies in the grey bar on the diagonal in 95 % of cases.

    Parameters
    ----------
    report : Report
        With the curve ``reliability``: columns ``low``, ``high``, ``confidence``, ``accuracy``, ``count``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on, without the numbers of samples; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Guo et al., "On Calibration of Modern Neural Networks", 2017, fig. 1.
    .. [2] Gustafsson et al., "Evaluating Scalable Bayesian Deep Learning Methods for Robust Computer Vision",
       2020, fig. 9.
    """
    bins, curve = columns(report, "reliability", NAMES, score="ece"), curve_of(report, "reliability")
    scores = [score_text(report, "ece", "ECE"), floor_text(report, "ece"), score_text(report, "mce", "MCE")]
    if ax is not None:
        _accuracies(ax, bins, curve)
        _along(ax, curve, style.TEXT)
        return finish(ax, ax, report, "Reliability", scores, "calibration")
    upper, lower = new_figure().subplots(2, 1, sharex=True, height_ratios=(3.4, 1.0))
    _accuracies(upper, bins, curve)
    _counts(lower, bins, curve)
    return finish(upper, None, report, "Reliability", scores, "calibration")


@report_figure("Reliability without bins")
def reliability_isotonic(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the accuracy as the best-fitting increasing step function of the confidence.

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
    table = columns(report, "reliability_isotonic", ("predicted", "observed"), score="ece")
    on = curve_axes(start(ax), curve_of(report, "reliability_isotonic"))
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    on.set(xlim=(0, 1), ylim=(0, 1), xticks=ticks, yticks=ticks)
    on.set_box_aspect(1)
    chance_band(on, table, "predicted")
    reference(on, [0, 1], [0, 1], label="calibrated")
    line(on, table["predicted"], table["observed"])
    scores = [score_text(report, "ece", "ECE"), floor_text(report, "ece")]
    return finish(on, ax, report, "Reliability without bins", scores, "calibration")


def _along(ax: Axes, curve: Curve, size: float) -> None:
    """Label the confidence below a panel without counts below it."""
    ax.tick_params(labelbottom=True)
    ax.set_xlabel(curve.x_label, fontsize=size)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0])


def _accuracies(ax: Axes, bins: Columns, curve: Curve) -> None:
    style_axes(ax, "", curve.y_label)
    ax.tick_params(labelbottom=False)
    left, width = bins["confidence_low"], bins["confidence_high"] - bins["confidence_low"]
    accuracy, gap = bins["accuracy"], bins["confidence"] - bins["accuracy"]
    look: dict[str, Any] = {"width": width, "align": "edge", "edgecolor": "white", "linewidth": 0.8}
    ax.bar(left, accuracy, color=CORRECT, zorder=1.6, **look)
    handles = [Patch(color=CORRECT, label="accuracy")]
    for over, color, name in (
        (gap > 0, style.OVERCONFIDENT, "gap: overconfident"),
        (gap < 0, style.UNDERCONFIDENT, "gap: underconfident"),
    ):
        if over.any():
            parts = {name: value[over] for name, value in (("left", left), ("width", width))}
            ax.bar(
                parts["left"], gap[over], parts["width"], bottom=accuracy[over], align="edge", color=color,
                alpha=0.55, edgecolor=color, linewidth=0.8, zorder=1.7,
            )  # fmt: skip
            handles.append(Patch(color=color, alpha=0.55, label=name))
    if "chance_low" in bins:
        ax.vlines(
            bins["confidence"], bins["chance_low"], bins["chance_high"], color=style.REFERENCE, alpha=0.35,
            linewidth=5, zorder=1.9,
        )  # fmt: skip
    reference(ax, [0, 1], [0, 1], zorder=2.5, label="calibrated")
    line(
        ax, bins["confidence"], accuracy, linestyle="", marker="o", markersize=6, markeredgecolor="white",
        clip_on=False,
    )  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(0, 1), yticks=[0, 0.25, 0.5, 0.75, 1.0])
    legend(ax, loc="upper left", handles=handles)


def _counts(ax: Axes, bins: Columns, curve: Curve) -> None:
    count = bins["count"]
    style_axes(ax, curve.x_label, "Samples")
    ax.grid(False)
    width = bins["confidence_high"] - bins["confidence_low"]
    ax.bar(
        bins["confidence_low"],
        count,
        width=width,
        align="edge",
        color=style.COUNTS,
        edgecolor="white",
        linewidth=0.8,
    )
    ax.set(ylim=(0, 1.45 * float(count.max())), yticks=[], xticks=[0, 0.25, 0.5, 0.75, 1.0])
    if width.min() > 0.9 / MOST_LABELLED:
        for x, height in zip(bins["confidence_low"] + width / 2, count, strict=True):
            ax.text(x, height, short_count(height), fontsize=style.SMALL - 1.5, ha="center", va="bottom")
    else:
        total = f"{counted(count.sum())} samples"
        ax.text(0.02, 0.95, total, fontsize=style.SMALL, va="top", transform=ax.transAxes)


def short_count(value: float) -> str:
    """Write a count in at most four characters.

    >>> [short_count(n) for n in (7, 999, 1234, 45678, 999_600, 3.2e6, 1e9)]
    ['7', '999', '1.2k', '46k', '1.0M', '3.2M', '1.0G']
    """
    if value < 999.5:
        return f"{value:.0f}"
    letter, unit = next(((one, of) for one, of in (("k", 1e3), ("M", 1e6)) if value < 999.5 * of), ("G", 1e9))
    share = value / unit
    return f"{share:.0f}{letter}" if share >= 9.95 else f"{share:.1f}{letter}"


@report_figure("Sparsification")
def class_sparsification(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the remaining Brier score as the samples of highest entropy are removed, over that of all.

    The oracle removes the samples with the largest Brier score; the shaded area between them is AUSE.

    Parameters
    ----------
    report : Report
        With the curve ``sparsification_brier``: columns ``fraction``, ``model``, ``oracle``, ``random``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Gustafsson et al., "Evaluating Scalable Bayesian Deep Learning Methods for Robust Computer Vision",
       2020, section 4.3.
    """
    scores = [score_text(report, "ause_brier", "AUSE"), score_text(report, "brier", "Brier score")]
    return sparsified(report, "sparsification_brier", "ause_brier", scores, label="by entropy", ax=ax)


@report_figure("Risk and coverage")
def risk_coverage(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the error rate of the decided samples when only the most confident share is decided.

    Parameters
    ----------
    report : Report
        With the curve ``risk_coverage``: columns ``coverage``, ``risk``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Geifman and El-Yaniv, "Selective Classification for Deep Neural Networks", 2017.
    """
    curve = columns(report, "risk_coverage", ("coverage", "risk"), score="aurc")
    on = start(ax)
    curve_axes(on, curve_of(report, "risk_coverage"))
    x, risk = curve["coverage"], curve["risk"]
    on.fill_between(x, 0, risk, color=style.MODEL, alpha=0.18, linewidth=0, label="area: AURC")
    line(on, [0, 1], [risk[-1], risk[-1]], color=style.RANDOM, linestyle=":", label="random order")
    points(on, x, risk, label="by confidence")
    top = float(risk.max())
    on.set(xlim=(0, 1), ylim=(0, 1.15 * top if top > 0 else 1.0), xticks=[0, 0.25, 0.5, 0.75, 1])
    legend(on, loc="best")
    scores = [score_text(report, "aurc", "AURC"), score_text(report, "accuracy", "accuracy")]
    return finish(on, ax, report, "Risk and coverage", scores, "ranking")


def class_before_after(before: Report, after: Report | None = None) -> Figure:
    """Draw the reliability before and after a recalibration, side by side.

    Parameters
    ----------
    before, after : Report
        Both with the curve ``reliability``. By default ``after`` is what ``before`` holds after its recalibration.

    Returns
    -------
    matplotlib.figure.Figure
    """
    entry: Mapping[str, Any] = {}
    if after is None:
        after, entry = before.after(), next(iter(before.scored_methods().values()))
    name = "Before and after temperature scaling"
    try:
        tables = [columns(report, "reliability", NAMES, score="ece") for report in (before, after)]
    except NothingToDrawError as nothing:
        return undefined_figure(before, name, str(nothing), WIDE)
    figure, curve = new_figure(WIDE), curve_of(before, "reliability")
    for ax, bins, report, look in zip(figure.subplots(1, 2), tables, (before, after), STYLES, strict=True):
        _accuracies(ax, bins, curve)
        _along(ax, curve, style.SMALL)
        ax.set_box_aspect(1)
        panel_title(
            ax, str(look["label"]), [score_text(report, "ece", "ECE"), score_text(report, "nll", "NLL")]
        )
    report_header(figure, before, name, judged="calibration", when="Before: ", samples=of_half(entry))
    return plain_texts(figure)
