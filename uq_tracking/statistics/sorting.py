"""The sorts behind exact statistics, and the rank correlation that comes with them.

numpy sorts plain integers several times faster than it argsorts floats, so samples are packed into 64-bit keys: the
bits of the value on top, and below them the sample's index or, if both are float32, another column.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import BLOCK, inner, spans
from uq_tracking.statistics.exact import Column, SortedRows, TiedRuns, z_column
from uq_tracking.statistics.orders import IntArray

Keys = npt.NDArray[np.uint64]
Bits = npt.NDArray[Any]
SIGN = np.uint32(1 << 31)


def sort_by_std(std: Column, error: Column) -> SortedRows:
    """Samples sorted by std.

    Parameters
    ----------
    std, error : arrays, shape (N,), float32 or float64
        Standard deviations (>= 0) and errors ``y - mu``, all finite.
    """
    return (_Packed if _packable(std, error) else _Plain).by_std(std, error)


def sort_by_abs_error(by_std: SortedRows) -> tuple[SortedRows, float | None]:
    """The same by absolute error, and its rank correlation with the std; None if either is constant."""
    std, error = by_std.columns["std"], by_std.columns["error"]
    std_ranks, spread = centered_ranks(std)
    by_abs_error, ranks = (_Packed if _packable(std, error) else _Plain).by_abs_error(error, std_ranks)
    return by_abs_error, _rank_correlation(ranks, spread, by_abs_error.values)


def sort_by_z(std: Column, error: Column) -> SortedRows:
    """The same by z."""
    return (_Packed if _packable(std, error) else _Plain).by_z(std, error)


def stable_order(values: Column) -> tuple[IntArray, Column]:
    """Indices that stably sort floats without NaN, and the sorted values."""
    n = len(values)
    keys, index = np.empty(n, dtype=np.uint64), np.uint64((1 << (n - 1).bit_length()) - 1)
    for start, end in spans(n):
        keys[start:end] = _without(index, values[start:end]) | np.arange(start, end, dtype=np.uint64)
    keys.sort()
    keys &= index
    order = keys.view(np.int64)
    ordered = gathered(values, order)
    if (ordered[1:] < ordered[:-1]).any():
        alike = _alike(ordered, index)
        near = slice(None) if alike.all() else alike  # a slice copies nothing
        step = np.argsort(ordered[near], kind="stable")
        order[near] = order[near][step]
        ordered[near] = ordered[near][step]
    return order, ordered


def _without(index: np.uint64, values: Column) -> Keys:
    """Keys that sort like the values, except for the bits that make room for an index."""
    keys: Keys = _ordered(_bits(values.astype(np.float64, copy=False)))
    keys &= ~index
    return keys


def _alike(ordered: Column, index: np.uint64) -> npt.NDArray[np.bool_]:
    """Which values have a neighbor that differs at most in those bits."""
    same = np.zeros(len(ordered) + 1, dtype=bool)
    for start, end in spans(len(ordered) - 1):
        keys = _without(index, ordered[start : end + 1])
        np.equal(keys[1:], keys[:-1], out=same[start + 1 : end + 1])
    return np.asarray(same[1:] | same[:-1])


def sorted_rows(by: str, columns: Mapping[str, Column], payloads: Sequence[str]) -> SortedRows:
    """Samples sorted by one of their columns, together with some others."""
    order, ordered = stable_order(columns[by])
    return SortedRows(by, {by: ordered, **{name: gathered(columns[name], order) for name in payloads}})


def gathered(values: Column, order: IntArray) -> Column:
    """``values[order]``, block by block."""
    made = np.empty(len(order), dtype=values.dtype)
    for part in starmap(slice, spans(len(order))):
        made[part] = values.take(order[part])
    return made


class _Plain:
    """Any dtype: sort indices, gather columns."""

    @staticmethod
    def by_std(std: Column, error: Column) -> SortedRows:
        return sorted_rows("std", {"std": std, "error": error}, ("error",))

    @staticmethod
    def by_abs_error(error: Column, ranks: Column) -> tuple[SortedRows, Column]:
        order, ordered = stable_order(np.abs(error))
        return SortedRows("abs_error", {"abs_error": ordered}), gathered(ranks, order)

    @staticmethod
    def by_z(std: Column, error: Column) -> SortedRows:
        order, z = stable_order(z_column(error, std))
        columns = {"z": z, "std": gathered(std, order)}
        if (
            z.dtype != np.float32 or not std.all()
        ):  # else z * std is the error, to the last digit of a float32
            columns["error"] = gathered(error, order)
        return SortedRows("z", columns)


class _Packed:
    """float32 without zero std: sort 64-bit keys, value above and payload below."""

    @staticmethod
    def by_std(std: Column, error: Column) -> SortedRows:
        keys = _keys(len(std))
        _upper(keys)[:], _lower(keys)[:] = std.view(np.uint32), error.view(np.uint32)
        keys.sort()
        return SortedRows("std", {"std": _floats(_upper(keys)), "error": _floats(_lower(keys))})

    @staticmethod
    def by_abs_error(error: Column, ranks: Column) -> tuple[SortedRows, Column]:
        keys = _keys(len(error))
        np.bitwise_and(error.view(np.uint32), ~SIGN, out=_upper(keys))
        np.add(ranks, len(error) - 1, out=_lower(keys), casting="unsafe")
        keys.sort()
        along = _lower(keys).view(np.int32) - np.int32(len(error) - 1)
        return SortedRows("abs_error", {"abs_error": _floats(_upper(keys))}), along

    @staticmethod
    def by_z(std: Column, error: Column) -> SortedRows:
        keys = _keys(len(std))
        for part in starmap(slice, spans(len(std))):
            _upper(keys)[part] = _ordered(z_column(error[part], std[part]).view(np.uint32))
        _lower(keys)[:] = std.view(np.uint32)
        keys.sort()
        z = np.empty(len(std), dtype=np.float32)
        for part in starmap(slice, spans(len(std))):
            z[part] = _unordered(np.ascontiguousarray(_upper(keys)[part])).view(np.float32)
        return SortedRows("z", {"z": z, "std": _floats(_lower(keys))})


def _packable(std: Column, error: Column) -> bool:
    return (
        std.dtype == error.dtype == np.float32
        and sys.byteorder == "little"
        and len(std) < 1 << 30
        and bool(std.min() > 0)
    )


def _keys(n: int) -> Keys:
    return np.empty(n, dtype=np.uint64)


def _upper(keys: Keys) -> Bits:
    return keys.view(np.uint32)[1::2]


def _lower(keys: Keys) -> Bits:
    return keys.view(np.uint32)[0::2]


def _floats(bits: Bits) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(bits).view(np.float32)


def _bits(values: Column) -> Bits:
    """A copy of floats as unsigned integers, which sort like the floats if those are non-negative."""
    return (values + 0.0).view(f"u{values.dtype.itemsize}")  # + 0.0 turns -0.0 into 0.0


def _ordered(bits: Bits) -> Bits:
    """Turn the bits, in place, into integers that sort like the floats: negatives are reversed and go below."""
    size = bits.dtype.itemsize
    flip = (bits.view(f"i{size}") >> (8 * size - 1)).view(bits.dtype)
    flip |= bits.dtype.type(1 << (8 * size - 1))
    bits ^= flip
    return bits


def _unordered(ordered: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Inverse of ``_ordered`` for 32 bits."""
    positive = (ordered.view(np.int32) >> 31).view(np.uint32)
    return ordered ^ (~positive | SIGN)


def _rank_correlation(ranks: Column, spread: int, size: Column) -> float | None:
    """Spearman's correlation of a sorted column with another, of which the ranks and their spread are known."""
    n = len(size)
    product, other = 0.0, n * (n * n - 1)
    for part, size_ranks, lost in rank_blocks(size):
        product += inner(ranks[part].astype(np.float64), size_ranks.astype(np.float64))
        other -= lost
    return 3 * product / math.sqrt(spread * other) if spread and other else None


def centered_ranks(values: Column) -> tuple[Column, int]:
    """Ranks of sorted values, and three times the sum of their squares.

    Each is twice the centered rank, with ties sharing theirs: ``first + last - (n - 1)``.
    """
    n = len(values)
    ranks, spread = np.empty(n, dtype=np.int32 if n < 1 << 30 else np.int64), n * (n * n - 1)
    for part, block, lost in rank_blocks(values):
        ranks[part] = block
        spread -= lost
    return ranks, spread


def rank_blocks(values: Column) -> Iterator[tuple[slice, IntArray, int]]:
    """``centered_ranks``, block by block, and what ties of c samples subtract from the sum: ``c (c^2 - 1)``."""
    n = len(values)
    for start, end in SortedRows("values", {"values": values}).spans():
        part = values[start:end]
        if part[0] == part[-1]:
            lost = (end - start) * ((end - start) ** 2 - 1)
            for at in range(start, end, BLOCK):
                stop = min(at + BLOCK, end)
                yield slice(at, stop), np.full(stop - at, start + end - n), lost if at == start else 0
            continue
        ranks = np.arange(2 * start + 1 - n, 2 * end - n, 2)
        runs, lost = TiedRuns.of(part), 0
        if len(runs.first):
            ranks[runs.members] = np.repeat(2 * (runs.first + start) + runs.count - n, runs.count)
            lost = int((runs.count * (runs.count**2 - 1)).sum())
        yield slice(start, end), ranks, lost
