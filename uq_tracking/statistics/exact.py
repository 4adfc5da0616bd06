"""Exact statistics: the samples themselves, sorted three times, with ties resolved when asked.

A row is one sample. Sums are taken in float64, block by block, whatever the dtype of the columns, so nothing of
the input's length is ever copied to float64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import BLOCK, block_size, map_spans, spans
from uq_tracking.statistics.grouped import Block, FloatArray, Groups, IntArray, Side
from uq_tracking.typed import override

Column = npt.NDArray[Any]

SIDES: tuple[Side, Side] = ("left", "right")

STEP = 64
"""Rows between two stored prefix sums; what lies between is added up when asked for."""


@dataclass(frozen=True, eq=False)
class SortedRows(Groups):
    """Samples sorted by one of their columns, which is ``columns[by]``."""

    by: str
    columns: Mapping[str, Column]

    @property
    def values(self) -> Column:
        """The sorted column."""
        return self.columns[self.by]

    @property
    @override
    def total(self) -> int:
        return len(self.values)

    def payload(self, name: str, part: slice | IntArray) -> FloatArray:
        """One payload of the rows ``part``, a slice or indices, in float64."""
        if name in self.columns:
            return np.asarray(self.columns[name][part], dtype=np.float64)
        return _DERIVED[name](self, part)

    @override
    def position(self, values: npt.ArrayLike, side: Side = "right") -> FloatArray:
        wanted = np.atleast_1d(np.asarray(values, dtype=np.float64))
        if self.values.dtype != np.float32:
            return np.searchsorted(self.values, wanted, side=side).astype(float)
        # A float64 threshold lies between two float32 values: compare with the one at or below it.
        with np.errstate(over="ignore"):
            near = wanted.astype(np.float32)
        below = np.where(near > wanted, np.nextafter(near, np.float32(-np.inf)), near)
        exact = below == wanted
        at_most = np.searchsorted(self.values, below, side="right")
        if side == "right":
            return at_most.astype(float)
        return np.where(exact, np.searchsorted(self.values, below, side="left"), at_most).astype(float)

    @override
    def cumulative(self, name: str, positions: npt.ArrayLike) -> FloatArray:
        wanted = np.atleast_1d(np.asarray(positions, dtype=float))
        left, right = self._run_around(wanted)
        sums = self._prefix(name, left)
        cut = np.flatnonzero(wanted > left)  # positions inside a run of ties
        if len(cut):
            share = (wanted - left)[cut] / (right - left)[cut]
            sums[cut] += share * (self._prefix(name, right[cut]) - sums[cut])
        return sums

    @override
    def between(self, name: str, positions: npt.ArrayLike) -> FloatArray:
        wanted = np.atleast_1d(np.asarray(positions, dtype=float))
        left, right = self._run_around(wanted)
        cuts = list(zip(wanted.tolist(), left.tolist(), right.tolist(), strict=True))

        def share(start: int, end: int, of: float) -> float:
            return self._sum(name, start, end) * of / (end - start) if of > 0 else 0.0

        def one(a: float, a_left: int, a_right: int, b: float, b_left: int, b_right: int) -> float:
            if a_left == b_left and a_right == b_right:  # both cut the same run of ties
                return share(b_left, b_right, b - a)
            head, tail = share(a_left, a_right, a_right - a), share(b_left, b_right, b - b_left)
            return head + self._sum(name, a_right, b_left) + tail

        return np.asarray([one(*start, *end) for start, end in pairwise(cuts)])

    def _sum(self, name: str, start: int, end: int) -> float:
        starts = range(start, end, BLOCK)
        return math.fsum(float(self.payload(name, slice(at, min(at + BLOCK, end))).sum()) for at in starts)

    def _run_around(self, positions: FloatArray) -> tuple[IntArray, IntArray]:
        """First and last row boundary of the tied run that each position cuts."""
        last = np.clip(np.ceil(positions).astype(np.int64) - 1, 0, self.total - 1)
        value = self.values[last]
        left = np.searchsorted(self.values, value, side="left")
        right = np.searchsorted(self.values, value, side="right")
        at_start = positions <= left
        return np.where(at_start, positions.astype(np.int64), left), np.where(
            at_start, positions.astype(np.int64), right
        )

    def _prefix(self, name: str, rows: IntArray) -> FloatArray:
        """Sum of a payload over the first ``rows`` rows."""
        stored = rows // STEP
        between = stored[:, None] * STEP + np.arange(STEP)
        values = self.payload(name, np.minimum(between, self.total - 1))
        with np.errstate(invalid="ignore"):
            return np.asarray(
                self._sums(name)[stored] + np.where(between < rows[:, None], values, 0.0).sum(axis=1)
            )

    def _sums(self, name: str) -> FloatArray:
        """Prefix sums of a payload, every ``STEP`` rows."""
        cache: dict[str, FloatArray] = self.__dict__.setdefault("_stored_sums", {})
        if name not in cache:
            cache[name] = self._make_sums(name)
        return cache[name]

    def _make_sums(self, name: str) -> FloatArray:
        def sums(start: int, end: int) -> FloatArray:
            return np.add.reduceat(self.payload(name, slice(start, end)), np.arange(0, end - start, STEP))

        parts = map_spans(sums, spans(self.total))
        with np.errstate(invalid="ignore"):
            return np.cumsum(np.concatenate([np.zeros(1), *parts]))

    @override
    def sum(self, name: str) -> float:
        return float(self._sums(name)[-1])

    @override
    def value(self, ranks: npt.ArrayLike) -> FloatArray:
        ranks = np.atleast_1d(np.asarray(ranks)).astype(np.int64)
        return np.asarray(self.values[ranks - 1], dtype=np.float64)

    @override
    def spans(self) -> list[tuple[int, int]]:
        edges, step = [0], block_size(self.total)
        while edges[-1] < self.total:
            end = min(edges[-1] + step, self.total)
            if end < self.total:  # whole runs only, a long one by itself
                left, right = (
                    int(np.searchsorted(self.values, self.values[end - 1], side)) for side in SIDES
                )
                end = left if right > end + step and left > edges[-1] else right
            edges.append(end)
        return list(itertools.pairwise(edges))

    @override
    def loose_spans(self) -> list[tuple[int, int]]:
        return spans(self.total)

    @override
    def block(self, names: Sequence[str], start: int, end: int, *, ties: bool = True) -> Block:
        part = slice(start, end)
        values = self.values[part]
        if ties and end - start > 1 and values[0] == values[-1]:
            value, count = values[:1].astype(np.float64), np.asarray([float(end - start)])
            sums = {name: np.asarray([self._sum(name, start, end)]) for name in names}
            return Block(value, value, count, np.asarray([float(end)]), sums)
        sums = {name: self.payload(name, part) for name in names}
        first = _run_starts(values) if ties else None
        if first is None:
            value = values.astype(np.float64)
            return Block(value, value, np.ones(len(value)), np.arange(start + 1.0, end + 1), sums)
        value = values[first].astype(np.float64)
        stops = np.append(first[1:], len(values))
        sums = {name: np.add.reduceat(column, first) for name, column in sums.items()}
        return Block(value, value, (stops - first).astype(float), (start + stops).astype(float), sums)

    @override
    def folded(self) -> SortedRows:
        return self._folded

    @cached_property
    def _folded(self) -> SortedRows:
        size = np.abs(self.values)
        size.sort(kind="stable")  # two sorted runs, which the stable sort merges in linear time
        return SortedRows("abs_" + self.by, {"abs_" + self.by: size})


def _run_starts(values: Column) -> IntArray | None:
    """Where the runs of equal values start; None where all values differ."""
    fresh = np.empty(len(values), dtype=bool)
    fresh[0] = True
    np.not_equal(values[1:], values[:-1], out=fresh[1:])
    return None if fresh.all() else np.flatnonzero(fresh)


def _error(rows: SortedRows, part: slice | IntArray) -> FloatArray:
    return rows.payload("z", part) * rows.payload("std", part)


def _inverse(rows: SortedRows, part: slice | IntArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return 1 / rows.payload("std", part)


_DERIVED: dict[str, Callable[[SortedRows, slice | IntArray], FloatArray]] = {
    "std2": lambda rows, part: np.square(rows.payload("std", part)),
    "z2": lambda rows, part: np.square(rows.payload("z", part)),
    "abs_error": lambda rows, part: np.abs(rows.payload("error", part)),
    "sq_error": lambda rows, part: np.square(rows.payload("abs_error", part)),
    "one_minus_confidence2": lambda rows, part: np.square(rows.payload("one_minus_confidence", part)),
    "error": _error,
    "inv_std": _inverse,
    "inv_sqrt_std": lambda rows, part: np.sqrt(rows.payload("inv_std", part)),
}
