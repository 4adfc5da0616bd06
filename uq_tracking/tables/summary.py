"""A report in at most forty lines, and its scores as rows, grouped by what they judge."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from uq_tracking import plugins
from uq_tracking.formatting import format_interval, format_number, format_score, one_line
from uq_tracking.metrics.registry import Metric
from uq_tracking.tables.model import Table, better_text, unit_text
from uq_tracking.tables.report import report_table

if TYPE_CHECKING:
    from uq_tracking.report import Report

WIDTH = 100
MOST_LINES = 40


def report_summary(report: Report) -> str:
    """The verdict, and the scores by what they judge: headline scores first, one line each."""
    lines = [*textwrap.wrap(one_line(report.verdict.text), WIDTH), scored_title(report)]
    for family, metrics in _families(report):
        lines += ["", family, *_family(report, metrics)]
    last = "print(report) explains every score, report.plot() draws it, report.to_frame() is a table"
    kept = lines if len(lines) <= MOST_LINES - 2 else [*lines[: MOST_LINES - 3], "..."]
    return "\n".join([*kept, "", last])


def scored_title(report: Report) -> str:
    """What was scored: method, split and samples."""
    told = [report.provenance.get(name) for name in ("method", "split")]
    return one_line(", ".join([*(str(part) for part in told if part), report_table(report, ()).title]))


def _families(report: Report) -> Iterator[tuple[str, list[Metric]]]:
    """Metrics with a score in the report, by what they judge."""
    known = plugins.metrics(report.task)
    found = [known[key] for key in report.scores if key in known]
    for family, metrics in groupby(sorted(found, key=lambda m: m.place), key=lambda m: m.family):
        yield family, list(metrics)


def _family(report: Report, metrics: list[Metric]) -> Iterator[str]:
    """One line per headline score; the others follow in running text."""
    for metric in metrics:
        if metric.headline:
            unit = unit_text(metric.unit, report.settings.get("unit"))
            told = f"  {metric.key:<18}{format_score(report.shown(metric.key)[0]):>12} {unit:<8}"
            yield f"{told}{_certainty(report, metric.key)}".rstrip()
    others = [m.key for m in metrics if not m.headline]
    text = ", ".join(f"{key} {format_number(report.shown(key)[0])}" for key in others)
    yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _certainty(report: Report, key: str) -> str:
    """The score's interval, else what it would be by chance alone."""
    interval = report.shown(key)[1]
    if interval is not None:
        return format_interval(interval)
    floor = report.noise.get(key)
    return "" if floor is None else f"by chance to {format_number(floor.high)}"


def score_rows(report: Report) -> list[dict[str, Any]]:
    """A row per score: key, value, interval, score by chance alone, unit, direction, family, meaning."""
    known = plugins.metrics(report.task)
    return [_row(report, key, known.get(key)) for key in report.scores]


def _row(report: Report, key: str, metric: Metric | None) -> dict[str, Any]:
    low, high = report.intervals.get(key, (None, None))
    floor = report.noise.get(key)
    row: dict[str, Any] = {"score": key, "value": report.scores[key], "low": low, "high": high}
    row |= {"by_chance": None if floor is None else floor.high, "p": None if floor is None else floor.p}
    if metric is None:
        return {**row, "unit": "", "better": "", "judges": "", "meaning": ""}
    return {
        **row,
        "unit": unit_text(metric.unit, report.settings.get("unit")),
        "better": better_text(metric),
        "judges": metric.family,
        "meaning": metric.summary,
    }


def grouped_tables(report: Report, *, headline: bool = False) -> list[tuple[str, Table]]:
    """One table per family of scores, with all scores or only the headline."""
    shown = {
        family: [metric.key for metric in metrics if metric.headline or not headline]
        for family, metrics in _families(report)
    }
    return [(family, report_table(report, keys)) for family, keys in shown.items() if keys]
