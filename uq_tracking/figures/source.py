"""What drawings read from a report: finite rows of a curve, scores as text, reasons for an empty figure."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uq_tracking.figures import style
from uq_tracking.figures.style import plain_texts, undefined_figure
from uq_tracking.figures.text import readable
from uq_tracking.formatting import one_line

if TYPE_CHECKING:
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]
Columns = dict[str, FloatArray]


class NothingToDrawError(Exception):
    """A curve that is missing or has no finite row; its text becomes the figure's."""


def columns(report: Report, name: str, needed: tuple[str, ...], *, score: str | None = None) -> Columns:
    """All columns of a curve, at the rows where the needed ones are finite.

    Raises
    ------
    NothingToDrawError
        With the report's reason why the curve's ``score`` is undefined, if it has one.
    """
    curve = report.curves.get(name)
    if curve is None:
        raise NothingToDrawError(_reason(report, score) or f"the report has no curve {name!r}")
    lacking = [column for column in needed if column not in curve.columns]
    if lacking:
        raise NothingToDrawError(f"the curve {name!r} has no column {lacking[0]!r}")
    table = {key: np.asarray(column, dtype=np.float64).ravel() for key, column in curve.columns.items()}
    finite = np.logical_and.reduce([np.isfinite(table[column]) for column in needed])
    if not finite.any():
        raise NothingToDrawError(_reason(report, score) or f"the curve {name!r} has no finite point")
    return {key: column[finite] for key, column in table.items()}


def _reason(report: Report, score: str | None) -> str | None:
    return report.undefined.get(score) if score else None


def report_figure(name: str) -> Callable[[Callable[[Report], Figure]], Callable[[Report], Figure]]:
    """Decorate a drawing of a report: texts become plain, and where there is nothing to draw the figure says why."""

    def wrap(draw: Callable[[Report], Figure]) -> Callable[[Report], Figure]:
        @wraps(draw)
        def safe(report: Report) -> Figure:
            try:
                return plain_texts(draw(report))
            except NothingToDrawError as nothing:
                return undefined_figure(heading(report, name), str(nothing))

        return safe

    return wrap


def heading(report: Report, name: str) -> str:
    """Name the figure and, when the settings name one, the uncertainty method."""
    method = report.settings.get("method_label")
    return f"{name}: {one_line(method)}" if method else name


def family_text(report: Report) -> str:
    """Name the predicted distribution, unless it is the Gaussian."""
    form = report.settings.get("distribution")
    if form:
        return f"Scored as {form}"
    family = str(report.settings.get("family", "gaussian"))
    if family == "gaussian":
        return ""
    if family == "student_t":
        return f"Student t distribution, {report.settings.get('dof', 5):g} dof"
    return f"{family.capitalize()} distribution"


def unit_of(report: Report) -> str | None:
    """Return the unit of the target, or None."""
    unit = report.settings.get("unit")
    return str(unit) if unit not in (None, "") else None


def score_text(report: Report, key: str, label: str) -> str:
    """Write a score with its interval, or as undefined; empty when the report was not asked for it."""
    if key in report.undefined:
        return f"{label} undefined"
    if key not in report.scores:
        return ""
    text = f"{label} {readable(report.scores[key], padded=True)}"
    if key in report.intervals:
        low, high = report.intervals[key]
        text += f" ({readable(low, padded=True)} to {readable(high, padded=True)})"
    return text


def band(ax: Axes, report: Report, name: str, x: FloatArray) -> None:
    """Draw the pointwise confidence band of a curve, where groups gave it one."""
    found = report.curves[name].columns
    if "low" in found and len(found["low"]) == len(x):
        ax.fill_between(
            x, found["low"], found["high"], color=style.MODEL, alpha=0.3, linewidth=0, label="interval"
        )


def chance_band(ax: Axes, table: Columns, x: str) -> None:
    """Draw where a calibrated model's points lie in 95 % of cases, where the report says so."""
    if "chance_low" in table and "chance_high" in table:
        ax.fill_between(
            table[x],
            table["chance_low"],
            table["chance_high"],
            color=style.REFERENCE,
            alpha=0.13,
            linewidth=0,
            zorder=1.7,
            label="calibrated, by chance",
        )
