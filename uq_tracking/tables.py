"""A report as a table, for terminals and notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uq_tracking.metrics.registry import Metric
    from uq_tracking.report import Report

Row = tuple[str, str, str, str, str]
HEADER: Row = ("score", "value", "unit", "better", "meaning")


def format_number(value: float) -> str:
    """Four significant digits, without an exponent where it reads well."""
    if value == 0:
        return "0"
    return f"{value:.4g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.3e}"


def unit_text(unit: str, target_unit: str | None) -> str:
    """A metric's unit with the target's filled in."""
    return unit if not target_unit else unit.replace("target", target_unit)


def better_text(metric: Metric) -> str:
    """Which values of a metric are better, in one word."""
    if metric.direction is None:
        return ""
    return metric.direction if isinstance(metric.direction, str) else f"{metric.direction:g}"


def report_rows(report: Report) -> list[Row]:
    """One row per score, in the registry's order."""
    from uq_tracking.metrics.registry import registry

    known, rows = registry(report.task), []
    for key, value in report.scores.items():
        metric, shown = known.get(key), _with_interval(report, key, value)
        if metric is None:  # of a distribution that is not installed here
            rows.append((key, shown, "", "", ""))
            continue
        unit = unit_text(metric.unit, report.settings.get("unit"))
        rows.append((key, shown, unit, better_text(metric), metric.summary))
    return rows


def _with_interval(report: Report, key: str, value: float) -> str:
    shown = format_number(value)
    if key in report.intervals:
        low, high = report.intervals[key]
        shown += f" [{format_number(low)}, {format_number(high)}]"
    return shown


def headline(report: Report) -> str:
    """What was scored, in one line."""
    left_out = [
        f"{report.counts[key]:,} {key[2:]}" for key in report.counts if key != "n" and report.counts[key]
    ]
    rest = f" ({', '.join(left_out).replace('_', ' ')})" if left_out else ""
    return f"{report.counts['n']:,} samples{rest}; {report.provenance.get('statistics')} statistics"


def report_text(report: Report) -> str:
    """Aligned plain text."""
    rows = [HEADER, *report_rows(report)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [headline(report)]
    for key, value, unit, better, meaning in rows:
        cells = (
            key.ljust(widths[0]),
            value.rjust(widths[1]),
            unit.ljust(widths[2]),
            better.ljust(widths[3]),
            meaning,
        )
        lines.append("  ".join(cells).rstrip())
    lines += [f"{key}: undefined, {reason}" for key, reason in report.undefined.items()]
    lines += [f"{key}: {verdict}" for key, verdict in report.verdicts.items()]
    return "\n".join(lines)


def report_html(report: Report) -> str:
    """An HTML table; every text is escaped."""

    def row(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in report_rows(report))
    body += "".join(row((key, "undefined", "", "", reason), "td") for key, reason in report.undefined.items())
    body += "".join(row((key, "", "", "", verdict), "td") for key, verdict in report.verdicts.items())
    return f"<table><caption>{escape(headline(report))}</caption>{row(HEADER, 'th')}{body}</table>"
