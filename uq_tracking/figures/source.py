"""What drawings read from a report: finite rows of a curve, scores as text, reasons for an empty figure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uq_tracking.figures import style
from uq_tracking.figures.header import Judged, report_header
from uq_tracking.figures.style import new_figure, plain_texts, style_axes
from uq_tracking.figures.text import readable
from uq_tracking.formatting import one_line

if TYPE_CHECKING:
    from uq_tracking.curves import Curve
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]
Columns = dict[str, FloatArray]


class NothingToDrawError(Exception):
    """A curve is missing or has no finite row; the figure shows the error's text."""


def columns(report: Report, name: str, needed: tuple[str, ...], *, score: str | None = None) -> Columns:
    """All columns of a curve, at the rows where the needed ones are finite.

    Raises
    ------
    NothingToDrawError
        With the report's reason why the curve's ``score`` is undefined, if it has one.
    """
    curve = curve_of(report, name, score=score)
    lacking = [column for column in needed if column not in curve.columns]
    if lacking:
        raise NothingToDrawError(f"the curve {name!r} has no column {lacking[0]!r}")
    table = {key: np.asarray(column, dtype=np.float64).ravel() for key, column in curve.columns.items()}
    finite = np.logical_and.reduce([np.isfinite(table[column]) for column in needed])
    if not finite.any():
        raise NothingToDrawError(_reason(report, score) or f"the curve {name!r} has no finite point")
    return {key: column[finite] for key, column in table.items()}


def curve_of(report: Report, name: str, *, score: str | None = None) -> Curve:
    """A curve of the report; NothingToDrawError if it has none."""
    if name not in report.curves:
        raise NothingToDrawError(_reason(report, score) or f"the report has no curve {name!r}")
    return report.curves[name]


def _reason(report: Report, score: str | None) -> str | None:
    return report.undefined.get(score) if score else None


def curve_axes(ax: Axes, curve: Curve) -> Axes:
    """Style axes with the labels and units of the curve's declaration."""
    return style_axes(ax, curve.x_label, curve.y_label)


F = TypeVar("F", bound=Callable[..., Figure])


def report_figure(name: str) -> Callable[[F], F]:
    """Decorate a drawing of a report: make texts plain, and if there is nothing to draw, say why."""

    def wrap(draw: F) -> F:
        @wraps(draw)
        def safe(report: Report, **given: Any) -> Figure:
            ax: Axes | None = given.get("ax")
            try:
                return plain_texts(draw(report, **given), ax)
            except NothingToDrawError as nothing:
                return undefined_figure(report, name, str(nothing), ax=ax)

        return cast(F, safe)

    return wrap


def start(ax: Axes | None) -> Axes:
    """The axes to draw on: those given, or those of a new figure."""
    return new_figure().add_subplot() if ax is None else ax


def finish(
    ax: Axes, given: Axes | None, report: Report, name: str, scores: Sequence[str], judged: Judged | None
) -> Figure:
    """Put the header above a new figure, or the name and first score above given axes; return the figure."""
    figure = ax.figure.figure  # works for a subfigure, too
    if given is None:
        report_header(figure, report, name, scores, judged)
    else:
        first = next(filter(None, scores), "")
        ax.set_title(f"{name}\n{first}" if first else name, fontsize=style.SMALL, color="black", loc="left")
    return figure


def undefined_figure(
    report: Report, name: str, reason: str, size: tuple[float, float] = style.SIZE, ax: Axes | None = None
) -> Figure:
    """Make a figure, or axes, that say why there is no drawing."""
    given = ax
    if ax is None:
        ax = new_figure(size).add_subplot()
    ax.set_axis_off()
    ax.set_facecolor("white")
    text = "undefined:\n" + textwrap.fill(one_line(reason), 38)
    ax.text(
        0.5, 0.5, text, ha="center", va="center", fontsize=style.TEXT, color="#444444", transform=ax.transAxes
    )
    return plain_texts(finish(ax, given, report, name, (), None), given)


def score_text(report: Report, key: str, label: str) -> str:
    """Format a score with its interval, or as undefined; empty if the report does not include it."""
    if key in report.undefined:
        return f"{label} undefined"
    if key not in report.scores:
        return ""
    value, interval = report.shown(key)
    text = f"{label} {readable(value, padded=True)}"
    return (
        text
        if interval is None
        else text + " ({} to {})".format(*(readable(end, padded=True) for end in interval))
    )


def floor_text(report: Report, key: str) -> str:
    """Format what a calibrated forecast scores by chance; empty for a score without such a floor."""
    floor = report.noise.get(key)
    return "" if floor is None or key not in report.scores else f"by chance up to {readable(floor.high)}"


def coverage_text(report: Report) -> str:
    """Format how much of the truth the 95 % intervals cover, with its interval."""
    if "coverage_95" not in report.scores:
        return ""
    text = f"95 % intervals cover {percent(report.scores['coverage_95'])} %"
    if "coverage_95" in report.intervals:
        low, high = report.intervals["coverage_95"]
        text += f" ({percent(low)} to {percent(high)})"
    return text


def percent(share: float) -> str:
    """A share in per cent, with enough decimals to distinguish it from 0 and 100.

    >>> percent(0.8123), percent(0.99995), percent(1.0)
    ('81.2', '99.995', '100')
    """
    value = 100 * share
    distance = min(value, 100 - value)
    decimals = 0 if distance <= 0 else 1 if distance >= 0.1 else min(6, int(-np.floor(np.log10(distance))))
    return f"{value:.{decimals}f}"


def band(ax: Axes, report: Report, name: str, x: FloatArray) -> None:
    """Draw the pointwise confidence band of a curve, if groups gave it one."""
    found = report.curves[name].columns
    if "low" in found and len(found["low"]) == len(x):
        level = (report.provenance.get("intervals") or {}).get("level", 0.95)
        ax.fill_between(
            x, found["low"], found["high"], color=style.MODEL, alpha=0.3, linewidth=0,
            label=f"{100 * level:g} % interval",
        )  # fmt: skip


def chance_band(ax: Axes, table: Columns, x: str) -> None:
    """Draw where a calibrated model's points lie in 95 % of cases, if the report has that band."""
    if "chance_low" in table and "chance_high" in table:
        ax.fill_between(
            table[x], table["chance_low"], table["chance_high"], color=style.REFERENCE, alpha=0.13, linewidth=0,
            zorder=1.7, label="calibrated",
        )  # fmt: skip
