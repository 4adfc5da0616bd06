"""Count samples into coarse statistics of the labelled parts (images, scenes, strata) they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.building import BUILD_BLOCK
from uq_tracking.statistics.cells import compact, dense
from uq_tracking.statistics.group_cells import GroupCells
from uq_tracking.statistics.group_pooling import Label, digest_of
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.layout import Layout, Rows
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.sketch import bucket_edges, coarse_bucket
from uq_tracking.statistics.weights import WEIGHT

GROUP_BITS, GROUP_TABLE_BITS = 5, 3
"""Mantissa bits in the sketch of a group (an image, say), of which there may be thousands."""

STRATUM_BITS, STRATUM_TABLE_BITS = 8, 4
"""Mantissa bits in the sketch of a stratum, of which there are few."""

WAITING = 1 << 18
"""At least this many cells may wait before they are summed."""


class GroupTally:
    """Counts samples by label; a new label gets the next number.

    Parameters
    ----------
    layout, facts
        As of `Statistics`.
    bits, table_bits : int
        Mantissa bits of the buckets, and of the cells of grids.
    """

    def __init__(
        self,
        layout: Layout,
        facts: Mapping[str, Any],
        bits: int = GROUP_BITS,
        table_bits: int = GROUP_TABLE_BITS,
    ) -> None:
        self.layout, self.facts, self.bits, self.table_bits = layout, facts, bits, table_bits
        self._numbers: dict[tuple[type, Label], int] = {}
        self._cells: dict[tuple[str, str], list[GroupCells]] = {}
        self._sizes: dict[str, int] = {}
        self._sums: dict[str, FloatArray] = {}
        self._moments: dict[str, list[Moments]] = {name: [] for name in layout.moments}
        self._waiting = self._held = 0

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def add(self, labels: npt.NDArray[Any], codes: npt.NDArray[Any], rows: Rows) -> None:
        """Count samples.

        Parameters
        ----------
        labels : array, shape (L,)
            Distinct labels.
        codes : int array, shape (n,)
            Position of each sample's label among them.
        rows : Rows
            Validated samples, as the layout takes them.
        """
        order = None if np.all(codes[1:] >= codes[:-1]) else np.argsort(codes, kind="stable")
        numbers = np.full(len(labels), -1, dtype=np.int64)
        for start in range(0, len(codes), BUILD_BLOCK):
            part: Any = slice(start, start + BUILD_BLOCK)
            part = part if order is None else order[part]
            self._add_block(
                labels, codes[part], numbers, {name: column[part] for name, column in rows.items()}
            )

    def _add_block(
        self, labels: npt.NDArray[Any], codes: npt.NDArray[Any], numbers: IntArray, rows: Rows
    ) -> None:
        """Count a block whose samples are sorted by code."""
        starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
        found = codes[starts]
        fresh = found[numbers[found] < 0]
        numbers[fresh] = self._places(plain_labels(labels[fresh]))
        used = numbers[found]
        row = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(codes))))
        columns, weight = self.layout.columns(rows), rows.get(WEIGHT)
        for name, payloads in self.layout.orders.items():
            buckets, index = dense(coarse_bucket(columns[name], self.bits))
            key = bucket_edges(buckets.astype(np.uint64), self.bits)[0]
            self._put(("order", name), _cells(used, row, key, index, columns, payloads, weight))
        for name, (key, index, size) in self.layout.places(columns, self.facts, self.table_bits).items():
            self._sizes[name] = size
            self._put(("table", name), _cells(used, row, key, index, columns, (), weight))
        self._add_sums(used, starts, columns, weight)

    def _add_sums(
        self,
        used: IntArray,
        starts: IntArray,
        columns: Mapping[str, npt.NDArray[Any]],
        weight: FloatArray | None,
    ) -> None:
        ones = np.ones(len(next(iter(columns.values()))))
        summed = {"n": ones, **{name: columns[name] for name in self.layout.counted}}
        summed |= {
            name: columns[name] if weight is None else columns[name] * weight for name in self.layout.sums
        }
        for name, column in summed.items():
            total = self._sums.setdefault(name, np.zeros(0))
            if len(total) < len(self._numbers):
                total = np.concatenate([total, np.zeros(len(self._numbers) - len(total))])
            total[used] += np.add.reduceat(column.astype(np.float64), starts)
            self._sums[name] = total
        found = {name: _moments(columns[name], starts, weight) for name in self.layout.moments}
        if weight is not None:
            self._moments.setdefault(WEIGHT, [])
            found[WEIGHT] = _moments(weight, starts)
        for name, known in self._moments.items():
            known.extend([Moments()] * (len(self._numbers) - len(known)))
            for number, moments in zip(used.tolist(), found[name], strict=True):
                known[number] = known[number].merge(moments)

    def _places(self, labels: Iterable[Label]) -> IntArray:
        numbers = self._numbers
        return np.asarray(
            [numbers.setdefault((type(label), label), len(numbers)) for label in labels], dtype=np.int64
        )

    def absorb(self, tables: GroupTables) -> None:
        """Add groups counted elsewhere with the same bits."""
        places = self._places(tables.labels)
        for kind, parts in (("order", tables.orders), ("table", tables.tables)):
            for name, cells in parts.items():
                self._put((kind, name), cells.moved(places))
        self._sizes.update(tables.sizes)
        for name, column in tables.sums.items():
            total = np.concatenate([self._sums.get(name, np.zeros(0)), np.zeros(len(self._numbers))])
            total[places] += column
            self._sums[name] = total[: len(self._numbers)]
        for name, counts, rows in zip(tables.variables, tables.moment_counts, tables.moments, strict=True):
            known = self._moments.setdefault(name, [])
            known.extend([Moments()] * (len(self._numbers) - len(known)))
            for place, n, row in zip(places.tolist(), counts.tolist(), rows.T.tolist(), strict=True):
                known[place] = known[place].merge(Moments(n, *row))

    def _put(self, name: tuple[str, str], cells: GroupCells) -> None:
        self._cells.setdefault(name, []).append(cells)
        self._waiting += len(cells.row)
        if self._waiting > max(
            WAITING, self._held
        ):  # joined once doubled, so each cell is joined only a few times
            self._join()

    def _join(self) -> None:
        for name, parts in self._cells.items():
            if len(parts) > 1:
                self._cells[name] = [GroupCells.joined(parts)]
        self._held = sum(len(part.row) for parts in self._cells.values() for part in parts)
        self._waiting = 0

    def tables(self) -> GroupTables | None:
        """Tables of everything counted, in the order of the labels; None if nothing was."""
        if not self._numbers:
            return None
        self._join()
        labels = tuple(label for _, label in self._numbers)
        counted = ("n", *self.layout.counted)
        moments = [[(m.mean, m.m2, m.low, m.high) for m in known] for known in self._moments.values()]
        made = GroupTables(
            layout=self.layout,
            labels=labels,
            orders={name: self._cells["order", name][0] for name in self.layout.orders},
            tables={name: self._cells["table", name][0] for name in self.layout.tables},
            sizes=dict(self._sizes),
            sums={
                name: np.rint(column).astype(np.int64) if name in counted else column
                for name, column in self._sums.items()
            },
            moments=np.moveaxis(np.asarray(moments, dtype=float).reshape(len(moments), len(labels), 4), 1, 2),
            bits=self.bits,
            facts=dict(self.facts),
            members=digest_of(labels),
            n_groups=len(labels),
        )
        return made.in_order()


def plain_labels(labels: npt.NDArray[Any]) -> list[Label]:
    """Labels as plain Python text and numbers; dates as ISO text."""
    if labels.dtype.kind in "mM":
        labels = labels.astype(str)
    plain: list[Label] = labels.tolist()
    return plain


def _cells(
    used: IntArray,
    row: IntArray,
    key: npt.NDArray[Any],
    index: IntArray,
    columns: Mapping[str, npt.NDArray[Any]],
    payloads: Sequence[str],
    weight: FloatArray | None,
) -> GroupCells:
    """Counts and sums by group and bucket: sample i lies in row ``used[row[i]]`` and bucket ``key[index[i]]``."""
    order = np.argsort(key, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    cell, place, count = compact(rank[index] * len(used) + row, len(key) * len(used))
    sums: dict[str, npt.NDArray[Any]] = {
        "count": count if weight is None else np.bincount(place, weight, len(cell))
    }
    for name in payloads:
        column = columns[name] if weight is None else columns[name] * weight
        sums[name] = np.bincount(place, column, len(cell))
    return GroupCells(key[order], used[cell % len(used)], cell // len(used), sums)


def _moments(values: FloatArray, starts: IntArray, weight: FloatArray | None = None) -> list[Moments]:
    """Moments of consecutive parts of an array."""
    size = np.diff(np.append(starts, len(values)))
    count: npt.NDArray[Any] = size if weight is None else np.add.reduceat(weight, starts)
    factor = 1.0 if weight is None else weight
    origin = np.where(np.isfinite(values[starts]), values[starts], 0.0)
    with np.errstate(invalid="ignore", over="ignore"):  # a zero std gives infinite z
        shifted = values - np.repeat(origin, size)  # a constant gives exactly zero spread
        mean = np.add.reduceat(shifted * factor, starts) / count
        m2 = np.add.reduceat(np.square(shifted - np.repeat(mean, size)) * factor, starts)
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    rows = zip(count.tolist(), origin + mean, m2, low, high, strict=True)
    return [Moments(n, *(float(v) for v in row)) for n, *row in rows]
