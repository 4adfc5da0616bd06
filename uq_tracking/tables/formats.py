"""Tables for papers, other programs and notebooks: Markdown, LaTeX, CSV, HTML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from uq_tracking.formatting import one_line, typographic
from uq_tracking.tables import NO_VALUE, RANK_NOTE, Cell, Table, rank_color

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")
_LATEX_NAMES = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater"}
_LATEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {letter: rf"\text{name}{{}}" for letter, name in _LATEX_NAMES.items()}
)
ARROWS = {"lower": r"$\downarrow$", "higher": r"$\uparrow$", "": ""}
FORMULA_STARTS = ("=", "+", "-", "@", "\t")
"""A spreadsheet takes text that starts this way for a formula."""


def markdown_escaped(text: str) -> str:
    """Put a user's text on one line, escaped so that no Markdown renderer takes it for markup."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def latex_escaped(text: str) -> str:
    """Put a user's text on one line, escaped so that LaTeX prints it verbatim."""
    return one_line(text).translate(_LATEX)


def table_markdown(table: Table) -> str:
    """Render warnings, table, notes and remarks in Markdown."""
    heads = [[c.key, c.unit, c.better] for c in table.columns]
    rows = [[table.corner, *("<br>".join(markdown_escaped(part) for part in head if part) for head in heads)]]
    rows.append([":--", *("--:" if column.numeric else ":--" for column in table.columns)])
    for row in table.rows:
        name = markdown_escaped(row.label)
        name = f"*{name}*" if row.kind in ("bound", "recalibrated") else name
        rows.append([name, *(_markdown_cell(row[column.key]) for column in table.columns)])
    lines = [f"> **Warning:** {markdown_escaped(text)}\n" for text in table.warnings]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += [f"\n{markdown_escaped(text)}" for text in table.lead]
    notes = [RANK_NOTE] * table.ranked + list(table.notes)
    if notes:
        lines += ["", markdown_escaped("; ".join(notes)) + "."]
    return "\n".join([*lines, *(f"\n{markdown_escaped(text)}" for text in table.remarks)]) + "\n"


def _markdown_cell(cell: Cell) -> str:
    if not cell.ranked:
        return markdown_escaped(cell.text) if cell.words else cell.text
    stars = {"best": "**", "worst": "*"}.get(cell.mark or "", "")
    return f"{stars}{cell.text}{stars} ({cell.rank}){markdown_escaped(cell.sign)}"


def table_latex(table: Table) -> str:
    """Render a ``tabular`` with a comment naming the packages it needs."""
    alignment, heads = "", [latex_escaped(table.corner)]
    for column in table.columns:
        alignment += "r" if column.numeric else "l"
        unit = f" [{latex_escaped(column.unit)}]" if column.unit else ""
        arrow = ARROWS.get(column.better, rf"$\to {column.better}$")
        heads.append(f"{latex_escaped(column.key)}{unit} {arrow}".rstrip())
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage[table]{xcolor}",
        *(f"% warning: {one_line(text)}" for text in table.warnings),
        rf"\begin{{tabular}}{{l{alignment}}}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        name = latex_escaped(row.label)
        name = rf"\textit{{{name}}}" if row.kind in ("bound", "recalibrated") else name
        cells = (_latex_cell(row[column.key]) for column in table.columns)
        lines.append(" & ".join([name, *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(cell: Cell) -> str:
    text = latex_escaped(cell.text) if cell.words else _math(cell.text)
    if cell.mark == "best":
        text = rf"\textbf{{{text}}}"
    elif cell.mark == "worst":
        text = rf"\textcolor{{gray}}{{{text}}}"
    if cell.mark == "tied":
        text += r"$^{=}$"
    if cell.place is None or cell.mark == "worst":
        return text
    return rf"\cellcolor{{red!{round(45 * cell.place)}!yellow!35}}{text}"


def _math(text: str) -> str:
    """Render numbers with proper minus and plus-minus signs, powers of ten and thousands separators."""
    text = re.sub(r"(\d)e(-?\d+)", r"\1\\cdot10^{\2}", text)
    text = text.replace("inf", r"\infty").replace(",", "{,}").replace("±", r"\pm").replace(" .. ", "$--$")
    return "--" if text == NO_VALUE else f"${text}$"


def table_csv(scores: Table, differences: Table | None = None, baseline: str | None = None) -> str:
    """Return one line per method and metric; numbers in full precision, missing values empty."""
    rows = []
    for name in scores.names():
        for column in scores.columns:
            cells = differences[name].cells if differences is not None and name in differences else {}
            difference = cells.get(column.key, Cell())
            rows.append(_csv_row(name, column.key, scores[name][column.key], difference, baseline))
    return csv_of({key: [row[key] for row in rows] for key in _csv_row("", "", Cell(), Cell(), None)})


def csv_of(columns: Mapping[str, Iterable[object]]) -> str:
    """Return a line per row, below the names of the columns; missing numbers are empty."""
    buffer = io.StringIO()
    rows = zip(*columns.values(), strict=True)
    csv.writer(buffer, lineterminator="\n").writerows([columns, *(map(_csv_text, row) for row in rows)])
    return buffer.getvalue()


def _csv_row(name: str, key: str, cell: Cell, difference: Cell, baseline: str | None) -> dict[str, object]:
    low, high = cell.interval or (None, None)
    below, above = difference.interval or (None, None)
    return {
        "method": name,
        "metric": key,
        "value": cell.value,
        "spread": cell.spread,
        "runs": cell.runs,
        "rank": cell.rank,
        "low": low,
        "high": high,
        "tied_with_best": int(cell.mark == "tied"),
        "baseline": baseline,
        "difference": difference.value,
        "difference_low": below,
        "difference_high": above,
        "relative": difference.relative,
        "effect": difference.effect,
        "verdict": difference.mark,
        "interval_from": difference.words,
        "undefined": cell.reason,
    }


def _csv_text(value: object) -> str:
    """Return a number in full precision, or text that a spreadsheet does not take for a formula."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    text = str(value).replace("\r\n", "\n").replace("\r", "\n")  # the csv module does not quote a lone \r
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA_STARTS) else text


@lru_cache(maxsize=4)
def templates(package: str) -> Environment:
    """Return the templates of a package; every value is escaped, whatever the file name."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(one_line=one_line, rank_color=rank_color, typographic=typographic)
    return environment


def tables_html(tables: Sequence[Table]) -> str:
    """Render the tables one below the other, with colors by rank, warnings above and notes below."""
    return templates("uq_tracking.tables").get_template("tables.html").render(tables=tables)
