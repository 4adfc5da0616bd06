"""Exact statistics: the samples themselves, sorted in several ways, with ties resolved on request.

A row is one sample. Sums are taken in float64, block by block, whatever the dtype of the columns, so nothing of the
input's length is ever copied to float64.

numpy sorts plain integers several times faster than it argsorts floats, so samples are sorted as 64-bit keys: the
bits of the value on top, and below them the sample's index or, if both are float32, another column.
"""

from __future__ import annotations

import itertools
import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import block_size, inner, map_spans, spans, sum_of_squares
from uq_tracking.statistics.orders import Block, FloatArray, IntArray, Order, Side, Ties, run_starts
from uq_tracking.typed import cached_property, override

Column = npt.NDArray[Any]

Bits = npt.NDArray[Any]
SIGN = np.uint32(1 << 31)

SIDES: tuple[Side, Side] = ("left", "right")

STEP = 64
"""Rows between two stored prefix sums; those in between are summed on demand."""

LARGE = 10**6
"""From this many samples on, float32 errors stay float32, rounded once: a single sample pushed across a threshold by
rounding is then at most 1e-6 of them. Fewer samples are processed in float64."""

SAFE = 1e30
"""Factor by which float32 errors may be above or below the stds so that z stays within the range of float32."""

SUM_BLOCK = 1 << 16
"""Samples summed at a time: few enough for the cache, and many enough that the loop costs nothing."""

FEW = 1 << 14
"""Up to this many rows, payloads and all their prefix sums are stored."""


class SortedRows(Order):
    """Samples sorted by one of their columns.

    Parameters
    ----------
    by : str
        The column.
    columns : dict of arrays
        The sorted columns.
    unsorted : callable, optional
        Returns the columns in any order; they are sorted when something first depends on the order.
    sort : callable, optional
        Returns the sorted columns, if that is done in a way of its own.
    """

    def __init__(
        self,
        by: str,
        columns: Mapping[str, Column] | None = None,
        *,
        unsorted: Callable[[], Mapping[str, Column]] | None = None,
        sort: Callable[[], Mapping[str, Column]] | None = None,
    ) -> None:
        self.by, self._sorted, self._unsorted, self._sort = by, columns or {}, unsorted, sort
        if unsorted is not None and sort is None:
            self._sort = lambda: sort_columns(by, unsorted())

    @property
    def columns(self) -> Mapping[str, Column]:
        """The sorted columns, of which ``by`` is one."""
        if (sort := self._sort) is not None:
            self._sorted = sort()  # two threads may both get here, with the same result
            self._unsorted = self._sort = None  # what they refer to only takes up memory
        return self._sorted

    @property
    def is_sorted(self) -> bool:
        """False if samples are left unsorted until something depends on their order."""
        return self._sort is None

    @property
    def values(self) -> Column:
        """The sorted column."""
        return self.columns[self.by]

    @cached_property
    @override
    def total(self) -> int:
        held = self._sorted if self._unsorted is None else self._unsorted()
        return len(next(iter(held.values())))

    def payload(self, name: str, part: slice | IntArray) -> FloatArray:
        """One payload of the rows ``part``, a slice or indices, in float64."""
        return np.asarray(_Payloads(self.columns, part)[name])

    def _payloads(self, names: Collection[str], part: slice) -> dict[str, FloatArray]:
        if self.total <= FEW:
            return {name: self._all[name][part] for name in names}
        held = _Payloads(self.columns, part)
        return {name: held[name] for name in names}

    @cached_property
    def _all(self) -> _Payloads:
        """Payloads of all rows, when there are few."""
        return _Payloads(self.columns, slice(None))

    @override
    def position(self, values: npt.ArrayLike, side: Side = "right") -> FloatArray:
        wanted = np.atleast_1d(np.asarray(values, dtype=np.float64))
        if self.values.dtype == np.float32:  # the nearest that no value lies between
            with np.errstate(over="ignore"):
                near = wanted.astype(np.float32)
            is_past, end = (near > wanted, -np.inf) if side == "right" else (near < wanted, np.inf)
            wanted = np.where(is_past, np.nextafter(near, np.float32(end)), near)
        return np.searchsorted(self.values, wanted, side=side).astype(float)

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

        def sums(starts: IntArray, ends: IntArray) -> FloatArray:
            found = np.zeros(len(starts))
            for place in np.flatnonzero(starts < ends).tolist():
                found[place] = self._sum(name, int(starts[place]), int(ends[place]))
            return found

        cut, size = sums(left, right), np.maximum(right - left, 1)
        head, tail = cut * ((right - wanted) / size), cut * ((wanted - left) / size)
        whole = sums(right[:-1], np.maximum(left[1:], right[:-1]))
        alike = (left[1:] == left[:-1]) & (right[1:] == right[:-1])  # both cut the same run of ties
        in_run = cut[1:] * (np.diff(wanted) / size[1:])
        return np.asarray(np.where(alike, in_run, head[:-1] + whole + tail[1:]))

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
        values, whole = self.columns[self.by], positions.astype(np.int64)
        last = np.minimum(np.maximum(np.ceil(positions).astype(np.int64) - 1, 0), self.total - 1)
        left, right = (values.searchsorted(values[last], side) for side in SIDES)
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
            names = {name, *_TOGETHER.get(self.by, ())}

            def steps(start: int, end: int) -> list[FloatArray]:
                columns, at = self._payloads(names, slice(start, end)), np.arange(0, end - start, STEP)
                return [np.add.reduceat(column, at) for column in columns.values()]

            parts = map_spans(steps, spans(self.total))
            cache.update(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))
        return cache[name]

    @override
    def sum(self, name: str) -> float:
        if self._unsorted is None:
            return float(self._sums(name)[-1])
        columns, root = self._unsorted(), _ROOT_OF.get(name)

        def one(start: int, end: int) -> float:
            payloads = _Payloads(columns, slice(start, end))
            return float(payloads[name].sum()) if root is None else sum_of_squares(payloads[root])

        return float(np.sum(map_spans(one, spans(self.total, SUM_BLOCK))))

    def __reduce__(self) -> tuple[Any, ...]:
        return SortedRows, (self.by, dict(self.columns))

    @override
    def value(self, ranks: npt.ArrayLike) -> FloatArray:
        ranks = np.atleast_1d(np.asarray(ranks)).astype(np.int64)
        return np.asarray(self.columns[self.by][ranks - 1], dtype=np.float64)

    @override
    def spans(self, ties: Ties = "merged") -> list[tuple[int, int]]:
        if ties != "merged":
            return spans(self.total)
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
    def block(self, names: Sequence[str], start: int, end: int, ties: Ties = "merged") -> Block:
        part = slice(start, end)
        if ties == "unordered" and self._unsorted is not None:
            made = _Payloads(self._unsorted(), part)
            value, ends = made[self.by], np.arange(start + 1.0, end + 1)
            return Block(value, value, np.ones(end - start), ends, {name: made[name] for name in names})
        values = self.values[part]
        if ties == "merged" and end - start > 1 and values[0] == values[-1]:
            value, count = values[:1].astype(np.float64), np.asarray([float(end - start)])
            sums = {name: np.asarray([self._sum(name, start, end)]) for name in names}
            return Block(value, value, count, np.asarray([float(end)]), sums)
        sums = self._payloads(names, part)
        if ties == "merged" and (values[1:] == values[:-1]).any():
            first = run_starts(values)
            value = values[first].astype(np.float64)
            stops = np.append(first[1:], len(values))
            sums = {name: np.add.reduceat(column, first) for name, column in sums.items()}
            return Block(value, value, np.diff(stops, prepend=0).astype(float), stops + float(start), sums)
        value = values.astype(np.float64)
        return Block(value, value, np.ones(len(value)), np.arange(start + 1.0, end + 1), sums)

    @override
    def absolute_value(self, ranks: npt.ArrayLike) -> FloatArray:
        values, total, wanted = self.values, self.total, np.atleast_1d(np.asarray(ranks)).astype(np.int64)
        # the first ``below`` fall towards 0, the others rise from it
        below = int(np.searchsorted(values, values.dtype.type(0)))

        def one(rank: int) -> float:
            def is_enough(k: int) -> bool:
                return bool(values[below + rank - k - 1] <= -values[below - k - 1])

            low, high = max(0, rank - (total - below)), min(rank, below)
            taken = bisect_left(range(high), True, low, key=is_enough)
            falling = -values[below - taken] if taken else 0
            rising = values[below + rank - taken - 1] if rank > taken else 0
            return float(max(falling, rising))

        return np.asarray([one(rank) for rank in wanted.tolist()])


def _prefix_sums(column: FloatArray) -> FloatArray:
    """Sums of the first 0, 1, ... values, first within short rows so that rounding errors do not accumulate."""
    even = len(column) // STEP * STEP
    sums = np.zeros(len(column) + 1)
    rows = sums[1 : even + 1].reshape(-1, STEP)
    np.cumsum(column[:even].reshape(-1, STEP), axis=1, out=rows)
    rows[1:] += np.cumsum(rows[:-1, -1])[:, None]
    sums[even + 1 :] = sums[even] + np.cumsum(column[even:])
    return sums


class Derived(dict[str, Any]):
    """Payloads of some rows, NumPy's or torch's, those that follow from others computed when first asked for."""

    def __missing__(self, name: str) -> Any:
        self[name] = _DERIVED[name](self)
        return self[name]


class _Payloads(Derived):
    """Payloads of a part of some columns, in float64."""

    def __init__(self, columns: Mapping[str, Column], part: slice | IntArray) -> None:
        super().__init__()
        self.columns, self.part = columns, part

    @override
    def __missing__(self, name: str) -> Any:
        if name in self.columns or (name == "error" and "mean" in self.columns):
            made = self.column(name)
        elif name == "z":
            made = z_column(self.column("error"), self.column("std"))
        else:
            with np.errstate(divide="ignore", over="ignore"):
                made = _DERIVED[name](self)
        self[name] = np.asarray(made, dtype=np.float64)
        return self[name]

    def column(self, name: str) -> Column:
        """Values as they are held; errors follow from targets and means."""
        if name != "error" or name in self.columns:
            return self.columns[name][self.part]
        target, mean, std = (self.columns[each] for each in ("target", "mean", "std"))
        return errors(target[self.part], mean[self.part], std[self.part], many=len(std) >= LARGE)


def errors(target: Column, mean: Column, std: Column, *, many: bool) -> Column:
    """Return target minus mean, in float32 if such samples are many and neither errors nor z leave its range."""
    if many and np.result_type(target, mean, std) == np.float32:
        with np.errstate(over="ignore"):
            error = np.asarray(np.subtract(target, mean))
        largest = max(abs(float(error.min())), abs(float(error.max())))
        least = float(std.min()) or float(np.min(std, where=std > 0, initial=np.inf))
        if float(std.max()) / SAFE <= largest <= least * SAFE:
            return error
    return np.asarray(np.subtract(target, mean, dtype=np.float64))


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


_ROOT_OF = {"std2": "std", "z2": "z", "sq_error": "error", "probability2": "probability"}
"""Payloads that are squares of others."""

_DERIVED: dict[str, Callable[[Derived], Any]] = {
    "std2": lambda made: made["std"] * made["std"],
    "z2": lambda made: made["z"] * made["z"],
    "abs_error": lambda made: abs(made["error"]),
    "sq_error": lambda made: made["abs_error"] * made["abs_error"],
    "one_minus_confidence2": lambda made: np.square(made["one_minus_confidence"]),
    "predicted_doubt": lambda made: made["predicted"] * made["one_minus_confidence"],
    "predicted_doubt2": lambda made: made["predicted"] * made["one_minus_confidence2"],
    "predicted_correct": lambda made: made["predicted"] * made["correct"],
    "probability2": lambda made: np.square(made["probability"]),
    "variance": lambda made: made["probability"] * (1 - made["probability"]),
    "error": lambda made: made["z"] * made["std"],
    "inv_std": lambda made: 1 / made["std"],
    "inv_sqrt_std": lambda made: made["inv_std"] ** 0.5,
    "log_std": lambda made: np.log(made["std"]),
    "n_zero_std": lambda made: made["std"] == 0,
}
"""How payloads follow from others."""


def sort_columns(by: str, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return columns of samples, sorted by one of them."""
    first, others = columns[by], {name: column for name, column in columns.items() if name != by}
    if len(others) == 1 and _packable(first, *others.values()):
        ((name, second),) = others.items()
        keys = _keys(_ordered(first.view(np.uint32).copy()), second.view(np.uint32))
        ordered = np.ascontiguousarray(keys[:, 1])
        ordered ^= ~(ordered.view(np.int32) >> 31).view(np.uint32) | SIGN  # undoes what `_ordered` did
        return {by: ordered.view(np.float32), name: _floats(keys[:, 0])}
    order, ordered = stable_order(first)
    return {by: ordered, **{name: column[order] for name, column in others.items()}}


def stable_order(values: Column) -> tuple[IntArray, Column]:
    """Return indices that stably sort floats without NaN, and the sorted values.

    An index takes the place of a value's last bits; values that differ in these alone are sorted afterwards.
    """
    n = len(values)
    index = np.uint64((1 << (n - 1).bit_length()) - 1)
    keys = _ordered((values.astype(np.float64) + 0.0).view(np.uint64))  # + 0.0 turns -0.0 into 0.0
    keys &= ~index
    keys |= np.arange(n, dtype=np.uint64)
    keys.sort()
    keys &= index
    order = keys.view(np.int64)
    ordered = values[order]
    if (ordered[1:] < ordered[:-1]).any():
        step = np.argsort(ordered, kind="stable")
        order, ordered = order[step], ordered[step]
    return order, ordered


def sort_by_abs_error(std: Column, error: Column) -> tuple[dict[str, Column], float | None]:
    """Return the absolute errors sorted, and their rank correlation with the std; None if either is constant.

    The samples must be sorted by std.

    Parameters
    ----------
    std, error : arrays, shape (N,), float32 or float64
        Standard deviations (>= 0) and errors ``y - mu``, all finite.
    """
    n, (std_ranks, spread) = len(std), centered_ranks(std)
    if _packable(std, error):
        keys = _keys(error.view(np.uint32) & ~SIGN, std_ranks + (n - 1))
        ordered, ranks = _floats(keys[:, 1]), keys[:, 0].view(np.int32) - np.int32(n - 1)
    else:
        order, ordered = stable_order(np.abs(error))
        ranks = std_ranks[order]
    own_ranks, other = centered_ranks(ordered)
    product = 3 * inner(ranks.astype(np.float64), own_ranks.astype(np.float64))
    correlation = product / math.sqrt(spread * other) if spread and other else None
    return {"abs_error": ordered}, correlation


def sort_by_z(std: Column, error: Column) -> dict[str, Column]:
    """Return samples, in any order, sorted by z."""
    columns = {"z": z_column(error, std), "std": std}
    if (
        error.dtype != np.float32 or not std.all()
    ):  # else z * std is the error, to the last digit of a float32
        columns["error"] = error
    return sort_columns("z", columns)


def centered_ranks(values: Column) -> tuple[IntArray, float]:
    """Return ranks of sorted values, and three times the sum of their squares.

    Each is twice the centered rank, with ties sharing theirs: ``first + last - (n - 1)``.
    """
    n, first = len(values), run_starts(values)
    kind, spread = np.int32 if n < 1 << 30 else np.int64, float(n) * (float(n) * n - 1)
    if len(first) == n:
        return np.arange(1 - n, n, 2, dtype=kind), spread
    size = np.diff(np.append(first, n))
    tied = size[size > 1].astype(np.float64)
    ranks = np.repeat((2 * first + size - n).astype(kind), size)
    return ranks, spread - float((tied * (tied * tied - 1)).sum())


def _packable(*columns: Column) -> bool:
    """Check whether two columns fit into keys of 64 bits."""
    is_small = sys.byteorder == "little" and len(columns[0]) < 1 << 30
    return is_small and all(column.dtype == np.float32 for column in columns)


def _keys(upper: Bits, lower: Bits) -> Bits:
    """Return two columns of 32 bits sorted as keys of 64, the lower one first, shape (n, 2)."""
    keys = np.empty((len(upper), 2), dtype=np.uint32)
    keys[:, 1], keys[:, 0] = upper, lower
    keys.reshape(-1).view(np.uint64).sort()
    return keys


def _floats(bits: Bits) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(bits).view(np.float32)


def _ordered(bits: Bits) -> Bits:
    """Turn the bits, in place, into integers that sort like the floats: negatives are reversed and go below."""
    size = bits.dtype.itemsize
    flip = (bits.view(f"i{size}") >> (8 * size - 1)).view(bits.dtype)
    flip |= bits.dtype.type(1 << (8 * size - 1))
    bits ^= flip
    return bits
