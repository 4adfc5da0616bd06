"""The comparison in a terminal: coloured by rank, and readable without colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uq_tracking.comparison import wording
from uq_tracking.comparison.ranks import Cell
from uq_tracking.metrics.registry import Metric

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from uq_tracking.comparison.result import Comparison

GAP = 2
BEST_COLOR, WORST_COLOR = (255, 221, 64), (222, 84, 60)
GREY_COLOR = "#a8a8a8"
BOUND = "italic"
WARNING = "bold yellow"
QUIET = "dim"

Piece = tuple[str, str]
"""A text and its style."""
Line = list[Piece]


@dataclass(frozen=True)
class Column:
    """A column of a table: header lines, and a cell per row."""

    header: tuple[str, ...]
    cells: tuple[Piece, ...]

    @property
    def width(self) -> int:
        """Letters of the longest cell or header line."""
        return max(len(text) for text in (*self.header, *(text for text, _ in self.cells)))


def comparison_text(comparison: Comparison, metrics: Sequence[Metric], width: int) -> str:
    """The lines without styles."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines(comparison, metrics, width))


@dataclass(frozen=True)
class View:
    """What ``rich`` prints: the lines with styles, as wide as the console."""

    comparison: Comparison
    metrics: Sequence[Metric]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        for line in lines(self.comparison, self.metrics, options.max_width):
            yield Text.assemble(*line, no_wrap=len(line) > 1, overflow="fold")


def lines(comparison: Comparison, metrics: Sequence[Metric], width: int) -> Iterator[Line]:
    """Everything, line by line: warnings, table, differences, legend, disagreement, skipped runs."""
    yield [(wording.headline_text(comparison), "bold")]
    for warning in comparison.warnings:
        yield [(f"warning: {one_line(warning)}", WARNING)]
    yield []
    names, columns = _scores(comparison, metrics, ranks=True)
    compact = _scores(comparison, metrics, ranks=False)
    ranks = _width(names, columns) <= width or _width(*compact) > width
    yield from tables(names, columns if ranks else compact[1], width)
    for text in wording.legend(comparison, ranks=ranks):
        yield [(text, QUIET)]
    if comparison.differences:
        yield from _differences(comparison, metrics, width)
    disagreement = wording.disagreement(comparison, metrics)
    if disagreement:
        yield [(disagreement, "")]
    for run in comparison.skipped:
        yield [(f"skipped {one_line(run.label)}: {one_line(run.reason)}", QUIET)]


def one_line(text: str) -> str:
    """A user's text on one line, without control characters that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _width(names: Column, columns: Sequence[Column]) -> int:
    return names.width + sum(GAP + column.width for column in columns)


def _scores(comparison: Comparison, metrics: Sequence[Metric], *, ranks: bool) -> tuple[Column, list[Column]]:
    """Methods and their cells; ranks are left out where that makes one table of two."""
    bounds = [name for name in comparison.bounds if any(m.key in comparison.bounds[name] for m in metrics)]
    names = [*((name, BOUND) for name in bounds), *((_name(comparison, m), "") for m in comparison.methods)]
    columns = []
    for metric in metrics:
        cells = [(_bound(comparison, name, metric.key), BOUND) for name in bounds]
        cells += [_cell(comparison, name, metric.key, ranks) for name in comparison.methods]
        columns.append(Column(wording.heading(metric, comparison.unit), _aligned(cells)))
    return Column(("", "", "method"), tuple(names)), columns


def _name(comparison: Comparison, method: str) -> str:
    runs = len(comparison.groups[method])
    count = f" ({runs} runs)" if runs > 1 else ""
    return one_line(method) + count + (" (baseline)" if method == comparison.baseline else "")


def _bound(comparison: Comparison, name: str, key: str) -> str:
    return wording.bound_text(comparison.bounds[name].get(key))


def _cell(comparison: Comparison, method: str, key: str, ranks: bool) -> Piece:
    """Value, rank and mark; a tab stands where numbers are aligned."""
    cell = comparison.table[method][key]
    rank = f" ({cell.rank})" if cell.ranked and ranks else ""
    return f"{wording.value_text(cell)}\t{rank}{wording.mark(comparison, method, key)}", rank_style(cell)


def _aligned(cells: Iterable[Piece]) -> tuple[Piece, ...]:
    """Cells whose numbers end below one another, whatever mark follows."""
    parts = [(text.partition("\t"), style) for text, style in cells]
    room = max(len(tail) for (_, _, tail), _ in parts)
    return tuple((head + tail.ljust(room), style) for (head, _, tail), style in parts)


def rank_style(cell: Cell) -> str:
    """Yellow for the best to red, the best in bold, the worst grey: MeRCI (2018), table 1."""
    if cell.place is None:
        return ""
    color = GREY_COLOR if cell.worst else rank_color(cell.place)
    return f"{'bold ' if cell.best else ''}black on {color}"


def rank_color(place: float) -> str:
    """The colour between best (0) and worst (1), as ``#rrggbb``."""
    mixed = (round(a + (b - a) * place) for a, b in zip(BEST_COLOR, WORST_COLOR, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _differences(comparison: Comparison, metrics: Sequence[Metric], width: int) -> Iterator[Line]:
    methods = [name for name in comparison.methods if name != comparison.baseline]
    yield []
    yield [(f"difference to {one_line(str(comparison.baseline))}", "bold")]
    columns = []
    for metric in (metric for metric in metrics if metric.direction is not None):
        found = [comparison.difference(name, metric.key) for name in methods]
        cells = tuple((wording.difference_text(d) if d else wording.NO_VALUE, "") for d in found)
        columns.append(Column(wording.heading(metric, comparison.unit), cells))
    names = Column(("", "", "method"), tuple((_name(comparison, name), "") for name in methods))
    yield from tables(names, columns, width)
    level = f"{comparison.level:.0%}"
    meaning = f"at {level}: + better, - worse, = not told apart; ? no interval"
    yield [(meaning, QUIET)]


def tables(names: Column, columns: Sequence[Column], width: int) -> Iterator[Line]:
    """One table, or several below one another where one would be wider than ``width``."""
    for part in _parts(names, columns, width):
        for k in range(len(names.header)):
            yield _line((names.header[k], "bold"), names, [((c.header[k], "bold"), c) for c in part])
        yield [("-" * _width(names, part), QUIET)]
        for k, name in enumerate(names.cells):
            if name[1] == BOUND and all(c.cells[k][0].strip() == wording.NO_VALUE for c in part):
                continue
            yield _line(name, names, [(c.cells[k], c) for c in part])
        yield []


def _parts(names: Column, columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    part: list[Column] = []
    used = names.width
    for column in columns:
        if part and used + GAP + column.width > width:
            yield part
            part, used = [], names.width
        part.append(column)
        used += GAP + column.width
    yield part


def _line(first: Piece, names: Column, cells: Iterable[tuple[Piece, Column]]) -> Line:
    line: Line = [(first[0].ljust(names.width), first[1])]
    for (text, style), column in cells:
        line += [(" " * GAP, ""), (text.rjust(column.width), style)]
    return line
