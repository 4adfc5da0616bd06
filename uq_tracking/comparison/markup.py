"""The comparison for papers and other programs: Markdown, LaTeX, CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from uq_tracking.comparison import wording
from uq_tracking.comparison.ranks import Cell
from uq_tracking.metrics.registry import Metric

if TYPE_CHECKING:
    from uq_tracking.comparison.result import Comparison

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
ARROWS = {"lower": r"$\downarrow$", "higher": r"$\uparrow$", "": ""}
CSV_COLUMNS = (
    "method",
    "metric",
    "value",
    "spread",
    "runs",
    "rank",
    "low",
    "high",
    "tied_with_best",
    "baseline",
    "difference",
    "difference_low",
    "difference_high",
    "verdict",
    "interval_from",
    "undefined",
)


def markdown_escaped(text: str) -> str:
    """A user's text that no Markdown renderer takes for markup, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def latex_escaped(text: str) -> str:
    """A user's text that LaTeX prints as it is, on one line."""
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))


def comparison_markdown(comparison: Comparison, metrics: Sequence[Metric]) -> str:
    """Warnings, table, legend and skipped runs."""
    rows = [["method", *(_markdown_heading(metric, comparison.unit) for metric in metrics)]]
    rows.append([":--", *("--:" for _ in metrics)])
    for name, bounds in comparison.bounds.items():
        if any(metric.key in bounds for metric in metrics):
            rows.append([f"*{name}*", *(wording.bound_text(bounds.get(metric.key)) for metric in metrics)])
    for method in comparison.methods:
        cells = (_markdown_cell(comparison, method, metric.key) for metric in metrics)
        rows.append([markdown_escaped(method), *cells])
    lines = [f"> **Warning:** {markdown_escaped(text)}\n" for text in comparison.warnings]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += ["", markdown_escaped("; ".join(wording.legend(comparison))) + "."]
    for run in comparison.skipped:
        lines.append(f"\nSkipped {markdown_escaped(run.label)}: {markdown_escaped(run.reason)}")
    return "\n".join(lines) + "\n"


def _markdown_heading(metric: Metric, unit: str | None) -> str:
    key, unit_name, better = wording.heading(metric, unit)
    return markdown_escaped(key) + "".join(
        f"<br>{markdown_escaped(part)}" for part in (unit_name, better) if part
    )


def _markdown_cell(comparison: Comparison, method: str, key: str) -> str:
    cell = comparison.table[method][key]
    text = wording.value_text(cell)
    if not cell.ranked:
        return text
    text = f"**{text}**" if cell.best else f"*{text}*" if cell.worst else text
    return f"{text} ({cell.rank}){markdown_escaped(wording.mark(comparison, method, key))}"


def comparison_latex(comparison: Comparison, metrics: Sequence[Metric]) -> str:
    """A ``tabular`` with a comment that names the packages it needs."""
    heads = [_latex_heading(metric, comparison.unit) for metric in metrics]
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage[table]{xcolor}",
        *(f"% warning: {' '.join(text.split())}" for text in comparison.warnings),
        rf"\begin{{tabular}}{{l{'r' * len(metrics)}}}",
        r"\toprule",
        " & ".join(["method", *heads]) + r" \\",
        r"\midrule",
    ]
    for name, bounds in comparison.bounds.items():
        if any(metric.key in bounds for metric in metrics):
            cells = (wording.bound_text(bounds.get(metric.key)) for metric in metrics)
            lines.append(" & ".join([rf"\textit{{{name}}}", *(_math(cell) for cell in cells)]) + r" \\")
    for method in comparison.methods:
        cells = (_latex_cell(comparison, method, metric.key) for metric in metrics)
        lines.append(" & ".join([latex_escaped(method), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_heading(metric: Metric, unit: str | None) -> str:
    key, unit_name, better = wording.heading(metric, unit)
    inside = f" [{latex_escaped(unit_name)}]" if unit_name else ""
    arrow = ARROWS.get(better, rf"$\to {better}$")
    return f"{latex_escaped(key)}{inside} {arrow}".rstrip()


def _latex_cell(comparison: Comparison, method: str, key: str) -> str:
    cell = comparison.table[method][key]
    text = _math(wording.value_text(cell))
    if cell.best:
        text = rf"\textbf{{{text}}}"
    elif cell.worst:
        text = rf"\textcolor{{gray}}{{{text}}}"
    if wording.mark(comparison, method, key) == wording.TIED:
        text += r"$^{=}$"
    return f"{_latex_color(cell)}{text}"


def _latex_color(cell: Cell) -> str:
    if cell.place is None or cell.worst:
        return ""
    return rf"\cellcolor{{red!{round(45 * cell.place)}!yellow!35}}"


def _math(text: str) -> str:
    """Numbers with a proper minus and plus-minus."""
    text = re.sub(r"(\d)e([+-])0*(\d+)", lambda m: rf"{m[1]}\cdot10^{{{m[2].strip('+')}{m[3]}}}", text)
    text = text.replace("±", r"\pm").replace(" .. ", "$--$")
    return "--" if text == wording.NO_VALUE else f"${text}$"


def comparison_csv(comparison: Comparison, metrics: Sequence[Metric]) -> str:
    """One line per method and metric; numbers with all digits, empty where there is none."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for method in comparison.methods:
        for metric in metrics:
            writer.writerow(_csv_row(comparison, method, metric))
    return buffer.getvalue()


def _csv_row(comparison: Comparison, method: str, metric: Metric) -> list[object]:
    cell, against = comparison.table[method][metric.key], comparison.difference(method, metric.key)
    low, high = cell.interval or (None, None)
    found = (against.interval if against else None) or (None, None)
    tied = method in comparison.tied_with_best.get(metric.key, ())
    values = (
        *(method, metric.key, cell.value, cell.spread, cell.runs, cell.rank, low, high),
        *(int(tied), comparison.baseline, against.value if against else None, *found),
        *(against.verdict if against else None, against.how if against else None, cell.reason),
    )
    return ["" if value is None else repr(value) if isinstance(value, float) else value for value in values]
