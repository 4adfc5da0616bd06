"""Exact statistics: the samples themselves, sorted three times, with ties resolved on request.

A row is one sample. Sums are taken in float64, block by block, whatever the dtype of the columns, so nothing of the
input's length is ever copied to float64.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import block_size, map_spans, spans, sum_of_squares
from uq_tracking.statistics.orders import Block, FloatArray, IntArray, Order, Side, Ties
from uq_tracking.typed import override

Column = npt.NDArray[Any]

SIDES: tuple[Side, Side] = ("left", "right")

STEP = 64
"""Rows between two stored prefix sums; those in between are summed on demand."""

LARGE = 10**6
"""From this many samples on, float32 errors stay float32, rounded once: a single sample pushed across a threshold by
rounding is then at most 1e-6 of them. Fewer samples are processed in float64."""

SUM_BLOCK = 1 << 16
"""Samples summed at a time: few enough for the cache, and many enough that the loop costs nothing."""

FEW = 1 << 14
"""Up to this many rows, payloads and all their prefix sums are stored."""

FEW_RANKS = 8
"""For more ranks than this, the absolute values of few rows are sorted: two runs, one falling, one rising."""


@dataclass(frozen=True, eq=False)
class SortedRows(Order):
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
        return _Payloads(self.columns, part)[name]

    def _payloads(self, names: Collection[str], part: slice) -> dict[str, FloatArray]:
        if self.total <= FEW:
            return {name: self._all[name][part] for name in names}
        made = _Payloads(self.columns, part)
        return {name: made[name] for name in names}

    @cached_property
    def _all(self) -> _Payloads:
        """Payloads of all rows, when there are few."""
        return _Payloads(self.columns, slice(None))

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
        first, last = -(-start // STEP), end // STEP
        if self.total <= FEW:
            return float(self._all[name][start:end].sum())
        if first >= last:
            return float(self.payload(name, slice(start, end)).sum())
        head, tail = (
            self.payload(name, slice(*ends)) for ends in ((start, first * STEP), (last * STEP, end))
        )
        return math.fsum(float(part.sum()) for part in (head, self._steps(name)[first:last], tail))

    def _run_around(self, positions: FloatArray) -> tuple[IntArray, IntArray]:
        """First and last row boundary of the run of ties that each position cuts; elsewhere both are the position."""
        last = np.minimum(np.maximum(np.ceil(positions).astype(np.int64) - 1, 0), self.total - 1)
        value, whole = self.values[last], positions.astype(np.int64)
        left, right = (self.values.searchsorted(value, side) for side in SIDES)
        between = (positions <= left) | (positions >= right)
        return np.where(between, whole, left), np.where(between, whole, right)

    def _prefix(self, name: str, rows: IntArray) -> FloatArray:
        """Sum of a payload over the first ``rows`` rows."""
        if self.total <= FEW:
            return self._sums(name)[rows]
        stored = rows // STEP
        between = stored[:, None] * STEP + np.arange(STEP)
        values = self.payload(name, np.minimum(between, self.total - 1))
        with np.errstate(invalid="ignore"):
            return np.asarray(
                self._sums(name)[stored] + np.where(between < rows[:, None], values, 0.0).sum(axis=1)
            )

    def _sums(self, name: str) -> FloatArray:
        """Prefix sums of a payload every ``STEP`` rows; for few rows, all of them."""
        cache: dict[str, FloatArray] = self.__dict__.setdefault("_stored_sums", {})
        if name not in cache:
            with np.errstate(invalid="ignore"):
                cache[name] = (
                    _prefix_sums(self._all[name])
                    if self.total <= FEW
                    else np.cumsum(np.concatenate([np.zeros(1), self._steps(name)]))
                )
        return cache[name]

    def _steps(self, name: str) -> FloatArray:
        """Sums of a payload over ``STEP`` rows each."""
        cache: dict[str, FloatArray] = self.__dict__.setdefault("_stored_steps", {})
        if name not in cache:
            cache.update(self._make_steps({name, *_TOGETHER.get(self.by, ())}))
        return cache[name]

    def _make_steps(self, names: Collection[str]) -> dict[str, FloatArray]:
        def steps(start: int, end: int) -> list[FloatArray]:
            columns, at = self._payloads(names, slice(start, end)), np.arange(0, end - start, STEP)
            return [np.add.reduceat(column, at) for column in columns.values()]

        parts = map_spans(steps, spans(self.total))
        return {
            name: np.concatenate(found) for name, found in zip(names, zip(*parts, strict=True), strict=True)
        }

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
            if end < self.total:  # whole runs only, long ones on their own
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
    def block(self, names: Sequence[str], start: int, end: int, ties: Ties = "merged") -> Block:
        part = slice(start, end)
        values = self.values[part]
        if ties in ("merged", "shared") and end - start > 1 and values[0] == values[-1]:
            value, count = values[:1].astype(np.float64), np.asarray([float(end - start)])
            sums = {name: np.asarray([self._sum(name, start, end)]) for name in names}
            return Block(value, value, count, np.asarray([float(end)]), sums)
        sums = self._payloads(names, part)
        if ties == "merged" and (values[1:] == values[:-1]).any():
            first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
            value = values[first].astype(np.float64)
            stops = np.append(first[1:], len(values))
            sums = {name: np.add.reduceat(column, first) for name, column in sums.items()}
            return Block(value, value, np.diff(stops, prepend=0).astype(float), stops + float(start), sums)
        if ties == "shared" and set(names) != {self.by}:
            sums |= TiedRuns.of(values).shared({name: sums[name] for name in names if name != self.by})
        value = values.astype(np.float64)
        return Block(value, value, np.ones(len(value)), np.arange(start + 1.0, end + 1), sums)

    @property
    @override
    def size(self) -> int:
        return self.total

    @override
    def steps(self, index: IntArray) -> Block:
        value = self.values[index].astype(np.float64)
        return Block(value, value, np.ones(len(index)), (index + 1).astype(np.float64), {})

    @override
    def absolute_value(self, ranks: npt.ArrayLike) -> FloatArray:
        values, total, wanted = self.values, self.total, np.atleast_1d(np.asarray(ranks)).astype(np.int64)
        if total <= FEW and len(wanted) > FEW_RANKS:
            return np.asarray(np.sort(np.abs(values), kind="stable")[wanted - 1], dtype=np.float64)
        below = int(
            np.searchsorted(values, values.dtype.type(0))
        )  # these fall towards 0, the others rise from it

        def one(rank: int) -> float:
            low, high = max(0, rank - (total - below)), min(rank, below)
            taken = bisect_left(
                range(high),
                True,
                low,
                key=lambda k: bool(values[below + rank - k - 1] <= -values[below - k - 1]),
            )
            return float(
                max(
                    -values[below - taken] if taken else 0,
                    values[below + rank - taken - 1] if rank > taken else 0,
                )
            )

        return np.asarray([one(rank) for rank in wanted.tolist()])


class LazyRows(SortedRows):
    """Samples that are sorted when something first depends on their order; sums over all of them do not.

    Parameters
    ----------
    by : str
        The column to sort by.
    total : int
        Number of samples.
    sort : callable
        Returns the sorted columns.
    columns : callable
        Returns the columns in any order.
    """

    def __init__(
        self,
        by: str,
        total: int,
        sort: Callable[[], Mapping[str, Column]],
        columns: Callable[[], Mapping[str, Column]],
    ) -> None:
        vars(self).update(by=by, _total=total, _sort=sort, _unsorted=columns, _sorted=None)

    @property
    def columns(self) -> Mapping[str, Column]:
        """The sorted columns."""
        made: Mapping[str, Column] | None = vars(self)["_sorted"]
        if made is None:  # two threads may both get here, with the same result
            made = vars(self)["_sort"]()
            vars(self).update(_sort=None, _unsorted=lambda: made, _sorted=made)
        return made

    @property
    @override
    def total(self) -> int:
        total: int = vars(self)["_total"]
        return total

    @property
    @override
    def is_sorted(self) -> bool:
        return vars(self)["_sorted"] is not None

    @override
    def sum(self, name: str) -> float:
        if self.is_sorted:
            return super().sum(name)
        columns, root = vars(self)["_unsorted"](), _ROOT_OF.get(name)

        def one(start: int, end: int) -> float:
            payloads = _Payloads(columns, slice(start, end))
            return float(payloads[name].sum()) if root is None else sum_of_squares(payloads[root])

        starts = range(0, self.total, SUM_BLOCK)
        return float(
            np.sum(map_spans(one, [(start, min(start + SUM_BLOCK, self.total)) for start in starts]))
        )

    @override
    def block(self, names: Sequence[str], start: int, end: int, ties: Ties = "merged") -> Block:
        if ties != "unordered" or self.is_sorted:
            return super().block(names, start, end, ties)
        made = _Payloads(vars(self)["_unsorted"](), slice(start, end))
        value, ends = made[self.by], np.arange(start + 1.0, end + 1)
        return Block(value, value, np.ones(end - start), ends, {name: made[name] for name in names})

    def __reduce__(self) -> tuple[Any, ...]:
        return SortedRows, (self.by, dict(self.columns))


def _prefix_sums(column: FloatArray) -> FloatArray:
    """Sums of the first 0, 1, ... values, first within short rows so that rounding errors do not accumulate."""
    even = len(column) // STEP * STEP
    sums = np.zeros(len(column) + 1)
    rows = sums[1 : even + 1].reshape(-1, STEP)
    np.cumsum(column[:even].reshape(-1, STEP), axis=1, out=rows)
    rows[1:] += np.cumsum(rows[:-1, -1])[:, None]
    sums[even + 1 :] = sums[even] + np.cumsum(column[even:])
    return sums


@dataclass(frozen=True)
class TiedRuns:
    """Runs of two or more equal values among sorted ones."""

    first: IntArray
    count: IntArray

    @classmethod
    def of(cls, values: Column) -> TiedRuns:
        """Runs of sorted values."""
        alike = np.flatnonzero(values[1:] == values[:-1])  # to the next value
        if not len(alike):
            return cls(alike, alike)
        start = np.concatenate([[0], np.flatnonzero(alike[1:] > alike[:-1] + 1) + 1, [len(alike)]])
        return cls(alike[start[:-1]], start[1:] - start[:-1] + 1)

    @cached_property
    def members(self) -> IntArray:
        """Indices of all values that belong to a run."""
        ends = np.cumsum(self.count)
        return np.repeat(self.first - ends + self.count, self.count) + np.arange(self.count.sum())

    def shared(self, columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """The columns, with each of these values replaced by the mean of its run."""
        if not len(self.first):
            return dict(columns)
        made, start = (
            {name: column.copy() for name, column in columns.items()},
            np.cumsum(self.count) - self.count,
        )
        for name, column in columns.items():
            means = np.add.reduceat(column[self.members], start) / self.count
            made[name][self.members] = np.repeat(means, self.count)
        return made


class _Payloads(dict[str, FloatArray]):
    """Payloads of some rows; shared intermediates are computed once."""

    def __init__(self, columns: Mapping[str, Column], part: slice | IntArray) -> None:
        super().__init__()
        self.columns, self.part = columns, part

    def __missing__(self, name: str) -> FloatArray:
        known = name in self.columns
        made = np.asarray(self.column(name), dtype=np.float64) if known else _DERIVED[name](self)
        self[name] = made
        return made

    def column(self, name: str) -> Column:
        """Values as they are held; errors follow from targets and means."""
        if name != "error" or name in self.columns:
            return self.columns[name][self.part]
        target, mean = (self.columns[each][self.part] for each in ("target", "mean"))
        if stay_small(self.columns):
            with np.errstate(over="ignore"):
                error = np.subtract(target, mean)
            if np.isfinite(error).all():
                return np.asarray(error)
        return np.asarray(np.subtract(target, mean, dtype=np.float64))


def stay_small(rows: Mapping[str, Column]) -> bool:
    """True if errors are computed in float32, because samples are float32 and many."""
    columns = [rows[name] for name in ("target", "mean", "std")]
    return len(columns[0]) >= LARGE and all(column.dtype == np.float32 for column in columns)


def _inverse(made: _Payloads) -> FloatArray:
    with np.errstate(divide="ignore"):
        return 1 / made["std"]


_TOGETHER = {
    "std": ("std2", "abs_error", "sq_error"),
    "abs_error": ("abs_error", "sq_error"),
    "z": ("std", "error"),
}
"""Payloads that scores sum along an order, computed in one pass once any of them is requested."""


def z_column(error: Column, std: Column) -> Column:
    """``z = e / s`` in the dtype of the errors, without negative zeros.

    For a point mass (s = 0) it is 0 if e = 0, else infinite.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z: Column = np.divide(error, std, dtype=error.dtype)
    z += z.dtype.type(0)
    unknown = np.isnan(z)
    if unknown.any():
        z[unknown] = 0
    return z


def _standardized(made: _Payloads) -> FloatArray:
    return z_column(made.column("error"), made.column("std")).astype(np.float64, copy=False)


def _error(made: _Payloads) -> FloatArray:
    if "mean" in made.columns:
        return np.asarray(made.column("error"), dtype=np.float64)
    return made["z"] * made["std"]


_ROOT_OF = {"std2": "std", "z2": "z", "sq_error": "error"}
"""Payloads that are squares of others."""

_DERIVED: dict[str, Callable[[_Payloads], FloatArray]] = {
    "z": _standardized,
    "std2": lambda made: np.square(made["std"]),
    "z2": lambda made: np.square(made["z"]),
    "abs_error": lambda made: np.abs(made["error"]),
    "sq_error": lambda made: np.square(made["abs_error"]),
    "one_minus_confidence2": lambda made: np.square(made["one_minus_confidence"]),
    "error": _error,
    "inv_std": _inverse,
    "inv_sqrt_std": lambda made: np.sqrt(made["inv_std"]),
}
