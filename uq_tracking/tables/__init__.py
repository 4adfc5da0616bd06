"""Tables of scores: cells, columns, rows; `report` makes them, `terminal` and `formats` render them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from uq_tracking.formatting import format_interval, format_number, format_percent, format_score
from uq_tracking.metrics.registry import Metric, check_known
from uq_tracking.typed import cached_property

NO_VALUE = "-"
RowKind = Literal["method", "run", "recalibrated", "bound", "score"]
Mark = Literal["best", "worst", "tied", "better", "worse", "indistinguishable", "unknown"]
RANK_NOTE = "rank in brackets"
SIGNS: Mapping[Mark, str] = {
    "best": "*",
    "worst": "!",
    "tied": "=",
    "better": "better",
    "worse": "worse",
    "indistinguishable": "=",
    "unknown": "?",
}
"""Marks as written without colors."""
BEST, WORST, GREY = (255, 221, 64), (222, 84, 60), "#a8a8a8"
"""Colors of ranks: from yellow for the best to red, as in MeRCI (2018), table 1; the worst is grey."""
UNMARKED = 0.55
"""Share of white in the color of a method that ties with the best."""


@dataclass(frozen=True)
class Cell:
    """One entry of a table: a number and what is known about it, or words.

    Attributes
    ----------
    value : float or None
        The number, or the mean over several runs. None if there is none.
    words : str or None
        Text of a non-numeric cell.
    spread : float or None
        Standard deviation over the runs (``ddof=1``); None for a single run.
    runs, of : int
        Runs that have the metric, and runs of the method.
    interval : (float, float) or None
        Confidence interval of the value.
    upper : float or None
        Upper end of a bound that is a range starting at ``value``.
    rank : int or None
        1 for the best; equal values share the better rank. None if the metric does not judge.
    worst_rank : int or None
        Rank of the last method, so that ``rank`` can be read.
    mark : str or None
        What stands out: ``best``, ``worst``, ``tied`` (with the best), or the verdict of a difference.
    reason : str or None
        Why there is no value, or why it is infinite.
    relative, effect : float or None
        For a difference: its size relative to the baseline, and Cohen's d.
    """

    value: float | None = None
    words: str | None = None
    spread: float | None = None
    runs: int = 0
    of: int = 1
    interval: tuple[float, float] | None = None
    upper: float | None = None
    rank: int | None = None
    worst_rank: int | None = None
    mark: Mark | None = None
    reason: str | None = None
    relative: float | None = None
    effect: float | None = None

    @property
    def infinite(self) -> bool:
        """True if the value is infinite."""
        return self.value is not None and math.isinf(self.value)

    @property
    def ranked(self) -> bool:
        """True if the metric ranks at least two methods, and not all equally."""
        return self.place is not None

    @property
    def place(self) -> float | None:
        """Rank as a number from 0 (best) to 1 (worst)."""
        if self.rank is None or self.worst_rank is None or self.worst_rank == 1:
            return None
        return (self.rank - 1) / (self.worst_rank - 1)

    @property
    def is_difference(self) -> bool:
        """True if the value is the difference of two methods."""
        return self.mark in ("better", "worse", "indistinguishable", "unknown")

    @property
    def sign(self) -> str:
        """The mark to use without colors."""
        return "" if self.mark is None else SIGNS[self.mark]

    @property
    def text(self) -> str:
        """The words, or the value with its spread or range; for a difference, its size or else interval."""
        if self.value is None:
            return NO_VALUE if self.words is None else self.words
        text = format_score(self.value)
        if self.is_difference and self.value > 0:
            text = f"+{text}"
        if self.spread is not None:
            text += f" ± {format_number(self.spread, 2, padded=True)}"
        sizes = [] if self.relative is None else [format_percent(self.relative)]
        sizes += [] if self.effect is None else [f"d {format_number(self.effect, 2)}"]
        text += f" ({', '.join(sizes)})" if sizes else ""
        if self.is_difference and self.interval is not None and not sizes:
            text += f" {self.interval_text}"
        return text if self.upper is None else f"{text} .. {format_score(self.upper)}"

    @property
    def interval_text(self) -> str:
        """The interval in square brackets, or nothing."""
        return "" if self.interval is None else format_interval(self.interval)


@dataclass(frozen=True)
class Column:
    """Heading and properties of the cells of a column.

    Attributes
    ----------
    key : str
        Key of the column's cells in each row.
    unit, better : str
        Shown below the key in the heading: the unit, and which values are better.
    family : str
        What the metric judges, in a word or two.
    headline : bool
        Whether it is shown by default.
    numeric : bool
        Whether cells are aligned as numbers.
    """

    key: str
    unit: str = ""
    better: str = ""
    family: str = ""
    headline: bool = True
    numeric: bool = True


@dataclass(frozen=True)
class Row:
    """A name and its cells by column key.

    Attributes
    ----------
    name : str
    cells : dict of Cell
    kind : {"method", "run", "recalibrated", "bound", "score"}
        ``run`` and ``recalibrated`` rows belong to the method above them.
    notes : tuple of str
        Shown after the name: number of runs, baseline.
    """

    name: str
    cells: Mapping[str, Cell]
    kind: RowKind = "method"
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> Cell:
        return self.cells[key]

    @property
    def label(self) -> str:
        """The name with its notes."""
        return self.name + "".join(f" ({note})" for note in self.notes)


@dataclass(frozen=True)
class Table:
    """Rows of cells, and the sentences around them.

    ``table["a method"]["nll"]`` is a cell.

    Attributes
    ----------
    corner : str
        Heading of the names.
    columns : tuple of Column
    rows : tuple of Row
    title : str
    lead : tuple of str
        Conclusions, a sentence or two each, above everything else.
    warnings : tuple of str
        Shown above the table.
    notes : tuple of str
        Shown below it: what the marks mean.
    remarks : tuple of str
        Shown last: undefined scores, runs left out.
    """

    corner: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    lead: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @cached_property
    def _main(self) -> dict[str, Row]:
        return {row.name: row for row in self.rows if row.kind in ("method", "score")}

    def __getitem__(self, name: str) -> Row:
        return self._main[name]

    def __contains__(self, name: object) -> bool:
        return name in self._main

    @property
    def ranked(self) -> bool:
        """True if any cell has a rank, printed in brackets after it."""
        return any(row[column.key].ranked for row in self.rows for column in self.columns)

    def names(self) -> tuple[str, ...]:
        """Names of the methods or scores."""
        return tuple(self._main)

    def select(self, keys: Iterable[str] | None = None) -> Table:
        """The table with some of its columns: the headline, or those named, in that order.

        Rows of bounds without a value in any of the columns are left out.

        Raises
        ------
        UnknownMetricError
            There is no such column.
        """
        known = {column.key: column for column in self.columns}
        headline = (column.key for column in self.columns if column.headline)
        wanted = list(headline if keys is None else [keys] if isinstance(keys, str) else keys)
        check_known(wanted, known, "the table has no column called", f"it has {', '.join(known)}")
        rows = (
            row
            for row in self.rows
            if row.kind != "bound" or any(row[key].value is not None for key in wanted)
        )
        return replace(self, columns=tuple(known[key] for key in wanted), rows=tuple(rows))


def metric_column(metric: Metric, unit: str | None, family: str, *, headline: bool) -> Column:
    """Return the column of a metric, with the target's unit filled in."""
    return Column(metric.key, unit_text(metric.unit, unit), better_text(metric), family, headline)


def unit_text(unit: str, target_unit: object) -> str:
    """Return a metric's unit with the target's filled in."""
    return unit if not target_unit else unit.replace("target", str(target_unit))


def better_text(metric: Metric) -> str:
    """Say in one word which values of a metric are better."""
    if metric.direction is None:
        return ""
    return metric.direction if isinstance(metric.direction, str) else f"{metric.direction:g}"


def rank_color(cell: Cell) -> str | None:
    """Return the color of a cell as ``#rrggbb``; None if nothing is ranked."""
    if cell.place is None:
        return None
    if cell.mark == "worst":
        return GREY
    mixed = [a + (b - a) * cell.place for a, b in zip(BEST, WORST, strict=True)]
    if cell.mark == "tied":
        mixed = [part + (255 - part) * UNMARKED for part in mixed]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)
