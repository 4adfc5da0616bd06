"""The three sorts behind exact statistics, and the rank correlation that falls out of them.

Up to a few million samples a radix argsort is fastest. Beyond, its gathers miss the cache: float32 samples then
travel as the two halves of 64-bit keys, so that one sort of plain integers carries the payload along. Either way a
sort holds about 22 bytes a sample while it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import starmap
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import BLOCK, inner, map_threads, spans
from uq_tracking.statistics.exact import Column, SortedRows
from uq_tracking.statistics.grouped import FloatArray, IntArray

PACK_ABOVE = 1 << 22
"""From this many float32 samples on, keys are packed and two sorts run side by side."""

DIGIT = 16
"""Bits sorted by at a time: numpy's stable sort of 16-bit integers is a radix sort."""

Keys = npt.NDArray[np.uint64]
Bits = npt.NDArray[Any]
Order = npt.NDArray[Any]
SIGN = np.uint32(1 << 31)


def sort_by_std(std: Column, error: Column) -> SortedRows:
    """Samples sorted by std.

    Parameters
    ----------
    std, error : arrays, shape (N,), float32 or float64
        Standard deviations (>= 0) and errors ``y - mu``, all finite.
    """
    return (_Packed if _packable(std, error) else _Plain).by_std(std, error)


@dataclass(frozen=True, eq=False)
class OtherOrders:
    """Samples by absolute error and by z, and the rank correlation of std and absolute error (None if constant)."""

    by_abs_error: SortedRows
    by_z: SortedRows
    rank_correlation: float | None


def other_orders(by_std: SortedRows) -> OtherOrders:
    """The orders that are made of samples already sorted by std."""
    std, error = by_std.columns["std"], by_std.columns["error"]
    way = _Packed if _packable(std, error) else _Plain

    def by_size() -> tuple[SortedRows, float | None]:
        by_abs_error, order = way.by_abs_error(error)
        return by_abs_error, _rank_correlation(std, by_abs_error.values, order)

    works: list[Callable[[], Any]] = [by_size, lambda: way.by_z(std, error)]
    together = 2 if len(std) >= PACK_ABOVE else 3  # numpy's sorts release the interpreter lock
    (by_abs_error, correlation), by_z = map_threads(lambda work: work(), works, least=together)
    return OtherOrders(by_abs_error, by_z, correlation)


def standardised(error: Column, std: Column) -> FloatArray:
    """``z = e / s`` in float64; of a point mass (s = 0) it is 0 where e = 0 and infinite elsewhere."""
    error, std = error.astype(np.float64), std.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = error / std
    return np.where(np.isnan(z), 0.0, z)


def z_column(error: Column, std: Column) -> Column:
    """``standardised`` in the dtype of the errors, without a float64 copy of all; no zero is negative."""
    z = np.empty(len(std), dtype=error.dtype)
    for part in starmap(slice, spans(len(std))):
        with np.errstate(over="ignore"):
            z[part] = standardised(error[part], std[part]) + 0.0
    return z


def radix_order(values: Column) -> Order:
    """Indices that sort floats without NaN; equal ones stay in their order."""
    if values.dtype.itemsize > 4:  # the last digit of a float64 hardly ever decides
        order = _order_by(_digits(values)[:-1], len(values))
        ordered = gathered(values, order)
        if (ordered[1:] >= ordered[:-1]).all():
            return order
    n, digits = len(values), _digits(values)
    del values  # whatever is not held while sorting is memory saved
    return _order_by(digits, n)


def _order_by(digits: list[npt.NDArray[np.uint16]], n: int) -> Order:
    """Indices that sort by digits, the most significant first; the list is used up."""
    narrow = np.uint32 if n < 1 << 32 else np.int64
    order: Order | None = None
    spare = None
    while digits:
        digit = digits.pop()
        if digit.min() == digit.max():
            continue
        if order is None:
            order = np.argsort(digit, kind="stable").astype(narrow)
        else:
            digit = gathered(digit, order, out=spare)
            step = np.argsort(digit, kind="stable")
            order[:] = gathered(order, step, out=step)
            del step
        spare = digit
    return np.arange(n, dtype=narrow) if order is None else order


def _digits(values: Column) -> list[npt.NDArray[np.uint16]]:
    """Sort keys of floats in parts, the most significant first."""
    size, signed = values.dtype.itemsize, bool(values.min() < 0)
    made = [np.empty(len(values), dtype=np.uint16) for _ in range(0, 8 * size, DIGIT)]
    for part in starmap(slice, spans(len(values))):
        bits = _ordered(_bits(values[part])) if signed else _bits(values[part])
        for digit in reversed(made):
            digit[part] = bits.astype(np.uint16)
            bits >>= bits.dtype.type(DIGIT)
    return made


def gathered(values: Column, order: Order, out: Column | None = None) -> Column:
    """``values[order]`` without a wide copy of narrow indices."""
    made = np.empty(len(order), dtype=values.dtype) if out is None else out
    for part in starmap(slice, spans(len(order))):
        made[part] = values.take(order[part])
    return made


class _Plain:
    """Any dtype: sort indices, gather columns."""

    @staticmethod
    def by_std(std: Column, error: Column) -> SortedRows:
        order = radix_order(std)
        return SortedRows("std", {"std": gathered(std, order), "error": gathered(error, order)})

    @staticmethod
    def by_abs_error(error: Column) -> tuple[SortedRows, Order]:
        order = radix_order(np.abs(error))
        return SortedRows("abs_error", {"abs_error": np.abs(gathered(error, order))}), order

    @staticmethod
    def by_z(std: Column, error: Column) -> SortedRows:
        order = radix_order(z_column(error, std))
        columns = {"std": gathered(std, order), "error": gathered(error, order)}
        z = z_column(columns["error"], columns["std"])
        if z.dtype == np.float32 and std.min() > 0:
            del columns["error"]  # z * std is the error, to a float32's last digit
        return SortedRows("z", {"z": z, **columns})


class _Packed:
    """float32 without zero std: sort 64-bit keys, value above and payload below."""

    @staticmethod
    def by_std(std: Column, error: Column) -> SortedRows:
        keys = _keys(len(std))
        _upper(keys)[:], _lower(keys)[:] = std.view(np.uint32), error.view(np.uint32)
        keys.sort()
        return SortedRows("std", {"std": _floats(_upper(keys)), "error": _floats(_lower(keys))})

    @staticmethod
    def by_abs_error(error: Column) -> tuple[SortedRows, Order]:
        keys = _keys(len(error))
        np.bitwise_and(error.view(np.uint32), ~SIGN, out=_upper(keys))
        _lower(keys)[:] = np.arange(len(error), dtype=np.uint32)
        keys.sort()
        return SortedRows("abs_error", {"abs_error": _floats(_upper(keys))}), _lower(keys).copy()

    @staticmethod
    def by_z(std: Column, error: Column) -> SortedRows:
        keys = _keys(len(std))
        for part in starmap(slice, spans(len(std))):
            _upper(keys)[part] = _ordered(_bits(z_column(error[part], std[part])))
        _lower(keys)[:] = std.view(np.uint32)
        keys.sort()
        z = np.empty(len(std), dtype=np.float32)
        for part in starmap(slice, spans(len(std))):
            z[part] = _unordered(np.ascontiguousarray(_upper(keys)[part])).view(np.float32)
        return SortedRows("z", {"z": z, "std": _floats(_lower(keys))})


def _packable(std: Column, error: Column) -> bool:
    return (
        len(std) >= PACK_ABOVE
        and std.dtype == error.dtype == np.float32
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
    """A copy of floats, as unsigned integers; those of non-negative floats sort as they do."""
    return (values + 0.0).view(f"u{values.dtype.itemsize}")  # + 0.0 makes -0.0 zero


def _ordered(bits: Bits) -> Bits:
    """Integers, in place, that sort as the floats do: negative ones are reversed and put below."""
    size = bits.dtype.itemsize
    flip = (bits.view(f"i{size}") >> (8 * size - 1)).view(bits.dtype)
    flip |= bits.dtype.type(1 << (8 * size - 1))
    bits ^= flip
    return bits


def _unordered(ordered: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Inverse of ``_ordered`` for 32 bits."""
    positive = (ordered.view(np.int32) >> 31).view(np.uint32)
    return ordered ^ (~positive | SIGN)


def _rank_correlation(std: Column, size: Column, order: Order) -> float | None:
    """Spearman's correlation from two sorted columns and, for each of the second, its place in the first."""
    std_rank = centred_ranks(std)
    product = spread = other = 0.0
    for part, size_rank in rank_blocks(size):
        one, two = std_rank[order[part]].astype(float), size_rank.astype(float)
        product, spread, other = product + inner(one, two), spread + inner(one, one), other + inner(two, two)
    return float(product / (np.sqrt(spread) * np.sqrt(other))) if spread > 0 and other > 0 else None


def centred_ranks(values: Column) -> Column:
    """Twice the rank of sorted values less its mean, tied values sharing theirs: ``first + last - (n - 1)``."""
    ranks = np.empty(len(values), dtype=np.int32 if len(values) < 1 << 30 else np.int64)
    for part, block in rank_blocks(values):
        ranks[part] = block
    return ranks


def rank_blocks(values: Column) -> Iterator[tuple[slice, IntArray]]:
    """``centred_ranks``, block by block."""
    n = len(values)
    for start, end in SortedRows("values", {"values": values}).spans():
        part = values[start:end]
        if part[0] == part[-1]:
            for at in range(start, end, BLOCK):
                stop = min(at + BLOCK, end)
                yield slice(at, stop), np.full(stop - at, start + end - n)
            continue
        ranks = np.arange(2 * start + 1 - n, 2 * end - n, 2)
        tied = np.flatnonzero(part[1:] == part[:-1])  # with the value that follows
        if len(tied):
            run = np.cumsum(np.diff(tied, prepend=-2) > 1) - 1
            first, last = tied[np.diff(tied, prepend=-2) > 1], tied[np.diff(tied, append=n + 1) > 1] + 1
            ranks[tied] = ranks[tied + 1] = (first + last + 2 * start - (n - 1))[run]
        yield slice(start, end), ranks
