"""Tables in a terminal: colored by rank, but readable without colors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from rich.cells import cell_len

from uq_tracking.formatting import encodable, one_line, shortened
from uq_tracking.tables import NO_VALUE, RANK_NOTE, Cell, Column, Table, rank_color
from uq_tracking.typed import cached_property

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

GAP = 2
SHORTEST_NAME = 16
"""Characters a name keeps, however narrow the terminal."""
SHORTEST_WORDS = 30
"""Words at the end of a row are left out if they would get fewer characters than this."""
PAGE = 120
"""Line length if no terminal states one: notebooks, files."""
STRONG, QUIET, WARNING = "bold", "dim", "bold yellow"
STYLES = {"bound": "italic", "recalibrated": "italic", "run": "dim"}

Piece = tuple[str, str]
"""A text and its style."""
Line = list[Piece]


@dataclass(frozen=True)
class View:
    """Renderable for ``rich``: the lines with styles, as wide as the console."""

    tables: Sequence[Table]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text  # draws a random number, which would change a seeded training

        for line in table_lines(self.tables, options.max_width):
            shown = [(encodable(text, options.encoding), style) for text, style in line]
            yield Text.assemble(*shown, no_wrap=len(line) > 1, overflow="fold")


def tables_text(tables: Sequence[Table], width: int | None = None) -> str:
    """Return the lines without styles, by default as wide as the terminal."""
    width = get_terminal_size((PAGE, 0)).columns if width is None else width
    found: list[str] = []
    for line in table_lines(tables, width):
        text = "".join(part for part, _ in line).rstrip()
        found += [text] if len(line) > 1 else _wrapped(text, width)
    return "\n".join(found).rstrip("\n")


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap text into lines, keeping addresses in one piece."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def table_lines(tables: Sequence[Table], width: int) -> Iterator[Line]:
    """Yield everything line by line: each table with its warnings and notes, and the remarks on all of them."""
    for k, table in enumerate(tables):
        if k:
            yield []
        yield from ([(one_line(text), "" if n else STRONG)] for n, text in enumerate(table.lead))
        if len(table.lead) > 1:
            yield []
        if table.title:
            yield [(one_line(table.title), STRONG)]
        yield from ([(f"warning: {one_line(text)}", WARNING)] for text in table.warnings)
        yield from _body(table, width)
        yield from ([(one_line(text), QUIET)] for text in table.notes)
    yield from ([(one_line(text), QUIET)] for table in tables for text in table.remarks)


@dataclass(frozen=True)
class _Laid:
    """A column laid out: heading lines, and one piece per row, whose text may span several lines."""

    heading: tuple[str, ...]
    pieces: tuple[Piece, ...]
    right: bool

    @cached_property
    def width(self) -> int:
        texts = (*self.heading, *(part for text, _ in self.pieces for part in text.split("\n")))
        return max(map(cell_len, texts))

    def fitted(self, text: str) -> str:
        room = " " * (self.width - cell_len(text))
        return room + text if self.right else text + room


def _body(table: Table, width: int) -> Iterator[Line]:
    """Yield one table, or several one below the other if one would be too wide."""
    if not table.rows or not table.columns:
        return
    names = _names(table, max(SHORTEST_NAME, width // 3))
    columns = [_laid(table, column, ranks=True) for column in table.columns]
    notes: tuple[str, ...] = ()
    compact = [_laid(table, column, ranks=False) for column in table.columns]
    if _width(names, columns) > width >= _width(names, compact):
        columns = compact  # without ranks it fits in one table instead of two
    elif table.ranked:
        notes = (RANK_NOTE,)
    columns = _with_words_that_fit(names, columns, width)
    if left_out := [column.key for column in table.columns[len(columns) :]]:
        notes += (f"in a wider terminal: {', '.join(left_out)}",)
    for part in _parts(names, columns, width):
        for k in range(len(names.heading)):
            yield _line([(c.heading[k], STRONG) for c in (names, *part)], [names, *part])
        yield [("-" * _width(names, part), QUIET)]
        for k, row in enumerate(table.rows):
            if row.kind == "bound" and all(column.pieces[k][0].strip() == NO_VALUE for column in part):
                continue
            yield from _row([column.pieces[k] for column in (names, *part)], [names, *part])
        yield []
    yield from ([(note, QUIET)] for note in notes)


def _with_words_that_fit(names: _Laid, columns: list[_Laid], width: int) -> list[_Laid]:
    """Wrap the words at the end of the rows, or leave them out, before splitting the table."""
    while len(columns) > 1 and not columns[-1].right and _width(names, columns) > width:
        *others, last = columns
        room = width - _width(names, others) - GAP
        if room >= SHORTEST_WORDS:
            pieces = tuple(("\n".join(textwrap.wrap(text, room)), style) for text, style in last.pieces)
            return [*others, replace(last, pieces=pieces)]
        columns = others
    return columns


def _names(table: Table, letters: int) -> _Laid:
    heading = ("", "", table.corner)[3 - _heading_lines(table) :]
    labels = shortened([one_line(row.name) for row in table.rows], letters)
    pieces = tuple(
        (
            "  " * (row.kind in ("run", "recalibrated")) + replace(row, name=label).label,
            STYLES.get(row.kind, ""),
        )
        for row, label in zip(table.rows, labels, strict=True)
    )
    return _Laid(heading, pieces, right=False)


def _heading_lines(table: Table) -> int:
    return 3 if any(column.unit or column.better for column in table.columns) else 1


def _laid(table: Table, column: Column, *, ranks: bool) -> _Laid:
    parts = (column.key, column.unit, column.better)[: _heading_lines(table)]
    heading = tuple(one_line(part) for part in parts)
    cells = [row[column.key] for row in table.rows]
    texts = [one_line(cell.text) for cell in cells]
    tails = [_tail(cell, ranks) for cell in cells]
    room = max(map(len, tails), default=0)
    pieces = (
        (text + tail.ljust(room), _style(cell) or STYLES.get(row.kind, ""))
        for text, tail, cell, row in zip(texts, tails, cells, table.rows, strict=True)
    )
    return _Laid(heading, tuple(pieces), right=column.numeric)


def _style(cell: Cell) -> str:
    color = rank_color(cell)
    return "" if color is None else f"{STRONG if cell.mark == 'best' else ''} black on {color}".lstrip()


def _tail(cell: Cell, ranks: bool) -> str:
    """Return rank and mark after a number."""
    rank = f" ({cell.rank})" if cell.ranked and ranks else ""
    return f"{rank}{' ' if cell.is_difference else ''}{cell.sign}"


def _width(names: _Laid, columns: Iterable[_Laid]) -> int:
    return names.width + sum(GAP + column.width for column in columns)


def _parts(names: _Laid, columns: Sequence[_Laid], width: int) -> Iterator[list[_Laid]]:
    part: list[_Laid] = []
    for column in columns:
        if part and _width(names, [*part, column]) > width:
            yield part
            part = []
        part.append(column)
    yield part


def _row(pieces: Sequence[Piece], columns: Sequence[_Laid]) -> Iterator[Line]:
    """Yield the lines of one row."""
    folded = [(text.split("\n"), style) for text, style in pieces]
    for texts in zip_longest(*(lines for lines, _ in folded), fillvalue=""):
        yield _line([(text, style) for text, (_, style) in zip(texts, folded, strict=True)], columns)


def _line(pieces: Sequence[Piece], columns: Sequence[_Laid]) -> Line:
    line: Line = []
    for (text, style), column in zip(pieces, columns, strict=True):
        line += [(" " * GAP, "")] * bool(line) + [(column.fitted(text), style)]
    return line
