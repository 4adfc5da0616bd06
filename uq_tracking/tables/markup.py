"""Tables for papers and other programs: Markdown, LaTeX, CSV."""

from __future__ import annotations

import csv
import io
import re

from uq_tracking.formatting import one_line
from uq_tracking.tables.model import NO_VALUE, RANK_NOTE, Cell, Column, Row, Table

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
FORMULA_STARTS = ("=", "+", "-", "@", "\t")
"""A spreadsheet takes text that starts this way for a formula."""
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
    "relative",
    "effect",
    "verdict",
    "interval_from",
    "undefined",
)


def markdown_escaped(text: str) -> str:
    """A user's text on one line, escaped so that no Markdown renderer takes it for markup."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def latex_escaped(text: str) -> str:
    """A user's text on one line, escaped so that LaTeX prints it verbatim."""
    return "".join(_LATEX.get(letter, letter) for letter in one_line(text))


def table_markdown(table: Table) -> str:
    """Warnings, table, notes and remarks."""
    rows = [[table.corner, *map(_markdown_heading, table.columns)]]
    rows.append([":--", *("--:" if column.numeric else ":--" for column in table.columns)])
    rows += (
        [_markdown_name(row), *(_markdown_cell(row[c.key]) for c in table.columns)] for row in table.rows
    )
    lines = [f"> **Warning:** {markdown_escaped(text)}\n" for text in table.warnings]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += [f"\n{markdown_escaped(text)}" for text in table.lead]
    notes = [RANK_NOTE] * table.ranked + list(table.notes)
    if notes:
        lines += ["", markdown_escaped("; ".join(notes)) + "."]
    return "\n".join([*lines, *(f"\n{markdown_escaped(text)}" for text in table.remarks)]) + "\n"


def _markdown_heading(column: Column) -> str:
    return "<br>".join(markdown_escaped(part) for part in (column.key, column.unit, column.better) if part)


def _markdown_name(row: Row) -> str:
    name = markdown_escaped(row.label)
    return f"*{name}*" if row.kind in ("bound", "recalibrated") else name


def _markdown_cell(cell: Cell) -> str:
    if not cell.ranked:
        return markdown_escaped(cell.text) if cell.words else cell.text
    text = f"**{cell.text}**" if cell.best else f"*{cell.text}*" if cell.mark == "worst" else cell.text
    return f"{text} ({cell.rank}){markdown_escaped(cell.sign)}"


def table_latex(table: Table) -> str:
    """A ``tabular`` with a comment naming the packages it needs."""
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage[table]{xcolor}",
        *(f"% warning: {one_line(text)}" for text in table.warnings),
        rf"\begin{{tabular}}{{l{alignment}}}",
        r"\toprule",
        " & ".join([latex_escaped(table.corner), *map(_latex_heading, table.columns)]) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        cells = (_latex_cell(row[column.key]) for column in table.columns)
        lines.append(" & ".join([_latex_name(row), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_heading(column: Column) -> str:
    unit = f" [{latex_escaped(column.unit)}]" if column.unit else ""
    arrow = ARROWS.get(column.better, rf"$\to {column.better}$")
    return f"{latex_escaped(column.key)}{unit} {arrow}".rstrip()


def _latex_name(row: Row) -> str:
    name = latex_escaped(row.label)
    return rf"\textit{{{name}}}" if row.kind in ("bound", "recalibrated") else name


def _latex_cell(cell: Cell) -> str:
    text = latex_escaped(cell.text) if cell.words else _math(cell.text)
    if cell.best:
        text = rf"\textbf{{{text}}}"
    elif cell.mark == "worst":
        text = rf"\textcolor{{gray}}{{{text}}}"
    if cell.mark == "tied":
        text += r"$^{=}$"
    if cell.place is None or cell.mark == "worst":
        return text
    return rf"\cellcolor{{red!{round(45 * cell.place)}!yellow!35}}{text}"


def _math(text: str) -> str:
    """Numbers with proper minus and plus-minus signs, powers of ten and thousands separators."""
    text = re.sub(r"(\d)e(-?\d+)", r"\1\\cdot10^{\2}", text)
    text = text.replace("inf", r"\infty").replace(",", "{,}").replace("±", r"\pm").replace(" .. ", "$--$")
    return "--" if text == NO_VALUE else f"${text}$"


def table_csv(scores: Table, differences: Table | None = None, baseline: str | None = None) -> str:
    """One line per method and metric; numbers in full precision, missing values empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for name in scores.names():
        for column in scores.columns:
            found = (
                differences is not None and name in differences and differences[name].cells.get(column.key)
            )
            values = _csv_row(name, column.key, scores[name][column.key], found or Cell(), baseline)
            writer.writerow([_csv_text(value) for value in values])
    return buffer.getvalue()


def _csv_row(name: str, key: str, cell: Cell, difference: Cell, baseline: str | None) -> list[object]:
    low, high = cell.interval or (None, None)
    below, above = difference.interval or (None, None)
    return [
        *(name, key, cell.value, cell.spread, cell.runs, cell.rank, low, high, int(cell.mark == "tied")),
        *(baseline, difference.value, below, above, difference.relative, difference.effect),
        *(difference.mark, difference.words, cell.reason),
    ]


def _csv_text(value: object) -> str:
    """A number in full precision, or text that a spreadsheet does not take for a formula."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    text = str(value).replace("\r\n", "\n").replace("\r", "\n")  # the csv module does not quote a lone \r
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA_STARTS) else text
