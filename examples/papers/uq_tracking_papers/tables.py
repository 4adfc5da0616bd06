"""Rows of an item as a table: methods as rows, quantities as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uq_tracking.tables.model import Cell
from uq_tracking_papers.results import Item, Row


@dataclass(frozen=True)
class Entry:
    """Our number as a ranked cell, and the paper's beside it."""

    cell: Cell
    paper: Cell

    @property
    def paper_text(self) -> str:
        """The paper's number with the digits printed there."""
        return "" if self.paper.value is None else f"{self.paper.value:.10g}"


@dataclass(frozen=True)
class Grid:
    """A table: ``entries[method][quantity]``, None if there is no row."""

    methods: tuple[str, ...]
    quantities: tuple[str, ...]
    entries: dict[str, dict[str, Entry | None]]


def grid(item: Item, rows: Sequence[Row]) -> Grid | None:
    """The table of an item, in the order in which its numbers were reported; None without any."""
    own = [row for row in rows if row.item == item.name]
    if not own:
        return None
    methods = tuple(dict.fromkeys(row.method for row in own))
    told = dict.fromkeys(row.quantity for row in own)
    quantities = (
        *(key for key in item.better if key in told),
        *(key for key in told if key not in item.better),
    )
    entries: dict[str, dict[str, Entry | None]] = {method: dict.fromkeys(quantities) for method in methods}
    for quantity in quantities:
        column = [row for row in own if row.quantity == quantity]
        ours = _ranks(item, quantity, {row.method: row.ours for row in column})
        theirs = _ranks(item, quantity, {row.method: row.paper_value for row in column})
        for row in column:
            interval = None if row.low is None or row.high is None else (row.low, row.high)
            entries[row.method][quantity] = Entry(
                _cell(row.ours, ours, row.method, interval), _cell(row.paper_value, theirs, row.method)
            )
    return Grid(methods, quantities, entries)


def _cell(
    value: float | None, ranks: dict[str, int], method: str, interval: tuple[float, float] | None = None
) -> Cell:
    worst = max(ranks.values(), default=None)
    rank = ranks.get(method)
    last = rank is not None and rank == worst and rank > 1
    return Cell(value, interval=interval, rank=rank, worst_rank=worst, mark="worst" if last else None)


def _ranks(item: Item, quantity: str, values: dict[str, float | None]) -> dict[str, int]:
    """Rank of each method that is not a bound; equal values share the better rank."""
    direction = item.better.get(quantity)
    if direction is None:
        return {}
    sign = 1.0 if direction == "lower" else -1.0
    judged = {
        method: sign * value
        for method, value in values.items()
        if value is not None and method not in item.bounds
    }
    return {method: 1 + sum(other < value for other in judged.values()) for method, value in judged.items()}
