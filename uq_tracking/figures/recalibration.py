"""Drawings of a report before and after a recalibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uq_tracking.figures import style
from uq_tracking.figures.header import report_header
from uq_tracking.figures.regression import (
    calibration_axes,
    calibration_columns,
    lines_of,
    reliability_axes,
    reliability_columns,
)
from uq_tracking.figures.sides import name_sides
from uq_tracking.figures.source import NothingToDrawError, undefined_figure
from uq_tracking.figures.style import legend_below, line, new_figure, plain_texts
from uq_tracking.figures.text import counted, readable, text_width
from uq_tracking.formatting import one_line

if TYPE_CHECKING:
    from uq_tracking.report import Report

WIDE = (8.6, 5.1)
PANEL_WIDTH = 290.0
"""Maximum width, in points, of the title of one of two panels."""
STYLES = (
    {"label": "before", "color": style.BEFORE, "linestyle": "--", "marker": "s"},
    {"label": "after", "color": style.MODEL, "linestyle": "-", "marker": "o"},
)


def before_after(before: Report, after: Report | None = None, method: str | None = None) -> Figure:
    """Draw reliability and calibration before and after a recalibration, on common axes.

    Parameters
    ----------
    before, after : Report
        Both with the curves ``reliability`` and ``calibration``. By default ``after`` is what ``before`` holds after
        its first recalibration; if that is of one half of the samples, the scores are of this half on both sides.
    method : str, optional
        Name of the recalibration, for the title.

    Returns
    -------
    matplotlib.figure.Figure
    """
    entry: Mapping[str, Any] = {}
    if after is None:
        after, (method, entry) = before.after(), next(iter(before.scored_methods().items()))
    name = f"Before and after {one_line(method) if method else 'recalibration'}"
    try:
        figure = _before_after(before, after, entry)
    except NothingToDrawError as nothing:
        return undefined_figure(before, name, str(nothing), WIDE)
    of = of_half(entry, "after, and the scores" if "before" in entry else "after")
    report_header(figure, before, name, judged="calibration", when="Before: ", samples=of)
    return plain_texts(figure)


def of_half(entry: Mapping[str, Any], what: str = "after") -> str:
    """Say which samples this is of, if not of all."""
    if "split" not in entry:
        return ""
    return f"{what}: the {counted(entry['split']['scored'])} that nothing was fitted to"


def _before_after(before: Report, after: Report, entry: Mapping[str, Any]) -> Figure:
    bins = [reliability_columns(report) for report in (before, after)]
    shares = [calibration_columns(report) for report in (before, after)]
    figure = new_figure(WIDE)
    left, right = figure.subplots(1, 2)
    reliability_axes(left, before, bins)
    name_sides(
        left, [line for table in bins for line in lines_of({key: table[key] for key in ("rmv", "rmse")})]
    )
    calibration_axes(right, before)
    for table, look in zip(bins, STYLES, strict=True):
        line(left, table["rmv"], table["rmse"], **look, markersize=6.5, markeredgecolor="white")
    for table, look in zip(shares, STYLES, strict=True):
        line(right, table["expected"], table["observed"], **{**look, "marker": ""})
    scores = entry.get("before", before.scores), after.scores
    _scores(left, "ENCE", "ence", scores)
    _scores(right, "miscalibration area", "miscalibration_area", scores)
    legend_below(figure, left)
    return figure


def _scores(ax: Axes, label: str, key: str, scores: Sequence[Mapping[str, float]]) -> None:
    """Title a panel with its score before and after; there is no room for intervals."""
    values = [readable(found[key], padded=True) if key in found else "undefined" for found in scores]
    panel_title(ax, "", [f"{label} {values[0]} → {values[1]}"])


def panel_title(ax: Axes, name: str, scores: Sequence[str]) -> None:
    """Title one of two panels: its name, and as many of the scores as fit next to each other."""
    text = name
    for score in scores:
        longer = ": ".join(filter(None, (text, score))) if text == name else f"{text}, {score}"
        if not text or text_width(longer, style.TEXT) <= PANEL_WIDTH:
            text = longer
    ax.set_title(text, fontsize=style.TEXT, color="black", fontweight="normal")
