"""The most important figures of a report, on one sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from uq_tracking import plugins
from uq_tracking.figures.header import report_header
from uq_tracking.figures.style import new_figure, plain_texts

if TYPE_CHECKING:
    from uq_tracking.report import Report

SHOWN = {
    "regression": ("reliability", "calibration", "sparsification", "error_vs_std"),
    "classification": ("reliability", "sparsification", "risk_coverage"),
}
PANEL = (4.9, 4.4)
"""Size of each panel in inches."""
HEAD = 1.1


def overview(report: Report) -> Figure:
    """Draw the four most important figures (three for a classification), below the verdict.

    Parameters
    ----------
    report : Report

    Returns
    -------
    matplotlib.figure.Figure
    """
    known = plugins.figures(report.task)
    names = [name for name in SHOWN.get(report.task, tuple(known)[:4]) if name in known]
    wide = 2 if len(names) == 4 else max(len(names), 1)
    high = max(-(-len(names) // wide), 1)
    figure = new_figure((PANEL[0] * wide, PANEL[1] * high + HEAD))
    for place, name in enumerate(names, start=1):
        known[name].draw(report, ax=figure.add_subplot(high, wide, place))
    report_header(figure, report, "Uncertainty", judged="both")
    return plain_texts(figure)
