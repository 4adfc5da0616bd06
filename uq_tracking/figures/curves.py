"""How a curve of a report is drawn: by its declaration, or by hand on axes that the declaration prepares."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uq_tracking import plugins
from uq_tracking.figures import style
from uq_tracking.figures.header import report_header, score_text
from uq_tracking.figures.style import legend, new_figure, plain_texts, points, readable, reference, style_axes
from uq_tracking.formatting import one_line

if TYPE_CHECKING:
    from uq_tracking.curves import CurveSpec
    from uq_tracking.report import Report

PANEL, HEAD = (4.9, 4.4), 1.1
"""Size of a panel of the overview, and height of its header, in inches."""
POINTWISE = "pointwise: 5 % outside"
"""What figures say of the band that holds each single point of a calibrated model in 95 % of cases."""
LOG_ABOVE = 30.0
"""Above this ratio of the largest to the smallest value, square axes are logarithmic."""


class NothingToDrawError(Exception):
    """A curve is missing or has no finite row; the figure shows the error's text."""


class Columns(dict[str, style.FloatArray]):
    """Columns of a curve; a missing one leaves nothing to draw."""

    def __missing__(self, column: str) -> style.FloatArray:
        raise NothingToDrawError(f"the curve has no column {column!r}")


def columns(report: Report, name: str, *needed: str, score: str | None = None) -> Columns:
    """Return all columns of a curve, at the rows where the needed ones are finite; say why if there are none."""
    reason = report.undefined.get(score) if score else None
    if name not in report.curves:
        raise NothingToDrawError(reason or f"the report has no curve {name!r}")
    found = report.curves[name].columns
    table = Columns({key: np.asarray(column, dtype=np.float64).ravel() for key, column in found.items()})
    finite = np.logical_and.reduce([np.isfinite(table[column]) for column in needed])
    if not finite.any():
        raise NothingToDrawError(reason or f"the curve {name!r} has no finite point")
    return Columns({key: column[finite] for key, column in table.items()})


def draw_curve(spec: CurveSpec, report: Report, ax: Axes | None = None) -> Figure:
    """Draw a curve on a new figure below verdict and scores, or on given axes below its name and first score."""
    metric = plugins.metrics(spec.task).get(spec.score or "")
    family = "" if metric is None else metric.family
    try:
        table = columns(report, spec.name, spec.x, spec.y, score=spec.score)
        on = new_figure().add_subplot() if ax is None else ax
        style_axes(on, report.curves[spec.name].x_label, report.curves[spec.name].y_label)
        if spec.limits is not None:
            on.set_ylim(spec.limits(table[spec.x], table[spec.y]))
        if spec.draw is None:
            _draw_plainly(on, spec, table, report, family)
            more: Iterable[str] = ()
        else:
            more = plugins.named(spec.draw)(on, table, report, ax is None) or ()
    except NothingToDrawError as nothing:
        return undefined_figure(report, spec.title, str(nothing), ax=ax)
    header = spec.header or ({spec.score: spec.score} if spec.score else {})
    with_floor = next((key for key in header if key in report.noise and key in report.scores), None)
    facts = []
    band = POINTWISE if "chance_low" in report.curves[spec.name].columns else ""
    for key, label in header.items():
        facts.append(score_text(report, key, label))
        if key == with_floor:
            facts.append(f"by chance up to {readable(report.noise[key].high)}")
    return _named(on, ax, report, spec.title, [*facts, *more], family, band)


def _named(
    on: Axes,
    given: Axes | None,
    report: Report,
    name: str,
    facts: Iterable[str] = (),
    judged: str = "",
    samples: str = "",
) -> Figure:
    figure = on.figure.figure  # works for a subfigure, too
    if given is None:
        return report_header(figure, report, name, facts, (judged,), samples=samples)
    first = next(filter(None, facts), "")
    on.set_title(f"{name}\n{first}" if first else name, fontsize=style.SMALL, color="black", loc="left")
    return plain_texts(figure, given)


def undefined_figure(
    report: Report, name: str, reason: str, size: tuple[float, float] = style.SIZE, ax: Axes | None = None
) -> Figure:
    """Make a figure, or axes, that say why there is no drawing."""
    on = new_figure(size).add_subplot() if ax is None else ax
    on.set_axis_off()
    on.set_facecolor("white")
    text = "undefined:\n" + textwrap.fill(one_line(reason), 38)
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.TEXT, "color": "#444444"}
    on.text(0.5, 0.5, text, transform=on.transAxes, **look)
    return _named(on, ax, report, name)


def _draw_plainly(ax: Axes, spec: CurveSpec, table: Columns, report: Report, family: str) -> None:
    """Draw a line with its bands, and where a perfect model lies."""
    x, y = table[spec.x], table[spec.y]
    chance_band(ax, table, spec.x)
    interval_band(ax, report, table, spec.x)
    points(ax, x, y)
    if spec.reference == "diagonal":
        if all(column.min() >= 0 and column.max() <= 1 for column in (x, y)):
            unit_square(ax)
        else:
            square_axes(ax, [table], spec.x, spec.y)
    else:
        if x.min() >= 0 and x.max() <= 1 and x.max() - x.min() > 0.9:
            ax.set(xlim=(0, 1), xticks=style.QUARTERS)
        across = ax.get_xlim()
        for level in spec.reference:
            name = "calibrated" if family == "calibration" else "perfect"
            reference(ax, across, (level, level), label=name)
        ax.set_xlim(across)
    if ax.get_legend_handles_labels()[0]:
        legend(ax, loc="best")


def unit_square(ax: Axes) -> None:
    """Prepare the unit square with its diagonal, for shares."""
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=style.QUARTERS, yticks=style.QUARTERS)
    ax.set_box_aspect(1)
    reference(ax, [0, 1], [0, 1], label="calibrated")


def square_axes(ax: Axes, tables: Iterable[Mapping[str, style.FloatArray]], x: str, y: str) -> None:
    """Prepare square axes with equal limits around all points and intervals, with 0 if linear, and their diagonal."""
    tables = list(tables)
    values = np.concatenate([table[key] for table in tables for key in (x, y)])
    ends = [table[key] for table in tables for key in ("low", "high") if key in table]
    seen = np.concatenate([values, *ends])
    seen = seen[np.isfinite(seen)]
    low, high = float(values.min()), float(seen.max())
    if low > 0 and float(values.max()) / low > LOG_ABOVE:
        low, high = float(seen[seen > low / LOG_ABOVE].min()) / 1.5, high * 1.5
        style.log_axes(ax, x=(low, high), y=(low, high))
    else:
        low, high = min(0.0, 1.12 * low), high * 1.12 if high > 0 else 1.0
        ticks = style.round_ticks(low, high, 6)
        ax.set(xlim=(low, high), ylim=(low, high), xticks=ticks, yticks=ticks)
    ax.set_box_aspect(1)
    reference(ax, [low, high], [low, high], zorder=2.5, label="calibrated")


def chance_band(ax: Axes, table: Columns, x: str) -> None:
    """Draw where a calibrated model's points lie in 95 % of cases, if the report has that band."""
    if "chance_low" in table and "chance_high" in table:
        ends = table["chance_low"], table["chance_high"]
        style.band(ax, table[x], *ends, color=style.REFERENCE, alpha=0.13, zorder=1.7, label="calibrated")


def interval_band(ax: Axes, report: Report, table: Columns, x: str) -> None:
    """Draw the pointwise confidence band of a curve, if groups gave it one."""
    if "low" in table and "high" in table:
        level = (report.provenance.get("intervals") or {}).get("level", 0.95)
        style.band(ax, table[x], table["low"], table["high"], alpha=0.3, label=f"{100 * level:g} % interval")


def overview(report: Report) -> Figure:
    """Draw the most important figures of a report on one sheet, below the verdict."""
    known = plugins.figures(report.task)
    names = [name for name in plugins.tasks()[report.task].overview if name in known]
    wide = 2 if len(names) == 4 else max(len(names), 1)
    high = max(-(-len(names) // wide), 1)
    figure = new_figure((PANEL[0] * wide, PANEL[1] * high + HEAD))
    for place, name in enumerate(names, start=1):
        known[name].draw(report, ax=figure.add_subplot(high, wide, place))
    banded = any("chance_low" in report.curves[name].columns for name in names if name in report.curves)
    band = f"bands {POINTWISE}" if banded else ""
    return report_header(figure, report, "Uncertainty", judged=("calibration", "ranking"), samples=band)
