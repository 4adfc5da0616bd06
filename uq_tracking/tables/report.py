"""A report as a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from uq_tracking import plugins
from uq_tracking.formatting import format_number
from uq_tracking.metrics.registry import Metric
from uq_tracking.tables.model import Cell, Column, Row, Table, better_text, unit_text

if TYPE_CHECKING:
    from uq_tracking.report import Report

BY_CHANCE = (
    "by chance: a calibrated forecast scores up to this value in 95 % of samples like this one; p is the share of "
    "calibrated forecasts that score at least as high as this one"
)
COLUMNS = (
    Column("value"),
    Column("interval"),
    Column("by chance"),
    Column("unit", numeric=False),
    Column("better", numeric=False),
    Column("meaning", numeric=False),
)


def report_table(report: Report, keys: Collection[str] | None = None) -> Table:
    """One row per score, in the registry's order; only those of ``keys`` if given."""
    known = plugins.metrics(report.task)
    rows = tuple(_row(report, key, known.get(key)) for key in report.scores if keys is None or key in keys)
    empty = {"interval": not report.intervals, "by chance": not report.noise}
    columns = tuple(column for column in COLUMNS if not empty.get(column.key))
    return Table(
        corner="score",
        columns=columns,
        rows=rows,
        title=_title(report),
        lead=(report.verdict.text,),
        notes=(BY_CHANCE,) if report.noise else (),
        remarks=(
            *report.verdict.caveats,
            *(
                f"{key}: {remark}"
                for key, value in report.scores.items()
                if (metric := known.get(key)) and metric.remark and (remark := metric.remark(value))
            ),
            *(
                f"{key}: undefined, {why}"
                for key, why in report.undefined.items()
                if keys is None or key in keys
            ),
            *(f"{key}: {verdict}" for key, verdict in report.verdicts.items()),
        ),
    )


def _row(report: Report, key: str, metric: Metric | None) -> Row:
    """One score; for a metric whose plugin is not installed here, only its value."""
    value, interval = report.shown(key)
    cell = Cell(value, interval=interval)
    cells = {"value": cell, "interval": Cell(words=cell.interval_text), "by chance": _by_chance(report, key)}
    unit, better, meaning = "", "", ""
    if metric is not None:
        unit = unit_text(metric.unit, report.settings.get("unit"))
        better, meaning = better_text(metric), metric.summary
    texts = {"unit": unit, "better": better, "meaning": meaning}
    return Row(key, cells | {name: Cell(words=text) for name, text in texts.items()}, "score")


def _by_chance(report: Report, key: str) -> Cell:
    """What a calibrated forecast scores on as much data, and how often it scores as high as this one."""
    floor = report.noise.get(key)
    if floor is None:
        return Cell(words="")
    p = "p < 0.001" if floor.p < 0.001 else f"p = {format_number(floor.p, 2)}"
    return Cell(words=f"to {format_number(floor.high)}, {p}")


def _title(report: Report) -> str:
    """What was scored, in one line."""
    left_out = [
        f"{count:,} {key.removeprefix('n_')}" for key, count in report.counts.items() if key != "n" and count
    ]
    rest = f" ({', '.join(left_out).replace('_', ' ')})" if left_out else ""
    return f"{report.counts['n']:,} samples{rest}; {report.provenance.get('statistics')} statistics"


def outputs_table(reports: Mapping[str, Report]) -> Table:
    """One row per score, one column per output of a model, below the verdict on each."""
    keys = dict.fromkeys(key for report in reports.values() for key in report.scores)
    rows = (
        Row(key, {name: _of_output(report, key) for name, report in reports.items()}, "score") for key in keys
    )
    lead = tuple(f"{name}: {report.verdict.text}" for name, report in reports.items())
    return Table("output", tuple(Column(name) for name in reports), tuple(rows), lead=lead)


def _of_output(report: Report, key: str) -> Cell:
    if key not in report.scores:
        return Cell(reason=report.undefined.get(key))
    value, interval = report.shown(key)
    return Cell(value, interval=interval)
