"""Counting blocks of samples into the buckets of a sketch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uq_tracking.parallel import keep_memory
from uq_tracking.statistics.layout import Layout, Parts, Rows
from uq_tracking.statistics.orders import bucketed
from uq_tracking.statistics.sketch import SKETCH_BITS, BucketSums, CellCounts, Grid
from uq_tracking.statistics.weights import WEIGHT, Moments

BUILD_BLOCK = 1 << 17
"""Samples counted at a time: bucket tables are added once per block."""

WORKING = 256
"""Working memory per sample of a block, in bytes."""

JOINED_AT_ONCE = 16
"""How many blocks' tables are collected before they are added in one go."""


class Builder:
    """Counts rows into buckets; ``finish`` returns the parts of the sketch so far.

    Parameters
    ----------
    layout : Layout
    facts : dict
        As in `Statistics`.
    bits : int
        Mantissa bits of a bucket.
    """

    def __init__(self, layout: Layout, facts: Mapping[str, Any], bits: int = SKETCH_BITS) -> None:
        self.layout, self.facts, self.bits = layout, facts, bits
        self.n = 0
        self._waiting: list[Rows] = []
        self._filled = 0
        self._orders = {name: BucketSums(name, payloads, bits) for name, payloads in layout.orders.items()}
        self._grids = {
            name: Grid(self._orders[one], self._orders[other]) for name, (one, other) in layout.grids.items()
        }
        self._sums = dict.fromkeys(layout.sums, 0.0)
        self._moments = {name: Moments() for name in layout.moments}
        self._counted = dict.fromkeys(layout.counted, 0)
        self._tables: dict[str, list[CellCounts]] = {name: [] for name in layout.tables}

    def add(self, rows: Rows) -> None:
        """Count validated samples, once they fill a block; those that do not are copied."""
        start, size = 0, row_count(rows)
        while start < size:
            end = min(start + BUILD_BLOCK - self._filled, size)
            part = {name: column[start:end] for name, column in rows.items()}
            whole = end - start == BUILD_BLOCK
            self._waiting.append(part if whole else {name: column.copy() for name, column in part.items()})
            self._filled, start = self._filled + end - start, end
            if self._filled == BUILD_BLOCK:
                self._flush()

    def _flush(self) -> None:
        """Count what waits."""
        if not self._waiting:
            return
        keep_memory(WORKING * self._filled)
        rows = joined_rows(self._waiting)
        self.n += self._filled
        self._waiting, self._filled = [], 0
        columns, weight = self.layout.columns(rows), rows.get(WEIGHT)
        if weight is not None:
            columns[WEIGHT] = weight
        places = {name: buckets.places(columns[name]) for name, buckets in self._orders.items()}
        for name, cells in self.layout.cells(columns, self.facts).items():
            self._join(name, cells)
        for name, (one, other) in self.layout.grids.items():
            apart = self._grids[name].add(places[one], places[other], weight)
            if apart is not None:
                self._join(name, apart)
        for name, buckets in self._orders.items():
            buckets.add(places[name], columns, weight)
        for name in self._sums.keys() & columns.keys():
            column = columns[name] if weight is None else columns[name] * weight
            self._sums[name] += float(column.sum())
        for name in (self._moments.keys() & columns.keys()) - {WEIGHT}:
            self._moments[name] = self._moments[name].merge(Moments.of(columns[name], weight))
        if weight is not None:
            self._moments[WEIGHT] = self._moments.get(WEIGHT, Moments()).merge(Moments.of(weight))
        for name in self._counted:
            self._counted[name] += int(np.count_nonzero(columns[name]))

    def _join(self, name: str, cells: CellCounts) -> None:
        waiting = self._tables[name]
        waiting.append(cells)
        if len(waiting) > JOINED_AT_ONCE:
            self._tables[name] = [type(cells).total(waiting)]

    def absorb(self, parts: Parts) -> None:
        """Add the samples of a finished sketch of the same resolution."""
        self._flush()
        parts = parts.in_units(1 / parts.unit)
        for name, buckets in self._orders.items():
            buckets.absorb(bucketed(parts.orders[name]))
        for name, table in parts.tables.items():
            self._join(name, table)
        for name in self._sums:
            self._sums[name] += parts.sums[name]
        for name, moments in parts.moments.items():
            self._moments[name] = self._moments.get(name, Moments()).merge(moments)
        for name in self._counted:
            self._counted[name] += parts.counts[name]
        self.n += parts.counts["n"]

    def finish(self) -> Parts:
        """Return everything added."""
        self._flush()
        return self.counted_parts()

    def counted_parts(self) -> Parts:
        """Return everything counted, without what waits."""
        empty = self.layout.empty_tables(self.facts)
        tables = {name: [empty[name], *parts] for name, parts in self._tables.items()}
        for name, grid in self._grids.items():
            tables[name].append(grid.joint())
        made = Parts(
            {name: sums.buckets() for name, sums in self._orders.items()},
            dict(self._sums),
            dict(self._moments),
            {name: parts[0].total(parts) for name, parts in tables.items()},
            counts={"n": self.n, **self._counted},
        )
        return made.in_units(made.unit)


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts together."""
    if len(parts) < 2:
        return parts[0] if parts else {}
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def row_count(rows: Rows) -> int:
    """Return the number of samples."""
    return len(next(iter(rows.values()), ()))
