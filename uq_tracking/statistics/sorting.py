"""The three sorts behind exact statistics, and the rank correlation that falls out of them.

float32 samples travel as the two halves of 64-bit keys, so that one sort of plain integers carries the payload
along; nothing of the input's length is held in more than eight bytes at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.exact import Column, SortedRows
from uq_tracking.statistics.grouped import BLOCK, FloatArray
from uq_tracking.statistics.parallel import inner, map_threads

PACK_ABOVE = 1 << 17
"""From this many float32 samples on, keys are packed; below, sorting is not what takes the time."""

WORTH_THREADS = 1 << 17
"""Samples from which on sorting on two cores pays."""

Keys = npt.NDArray[np.uint64]
Bits = npt.NDArray[np.uint32]
SIGN = np.uint32(1 << 31)


@dataclass(frozen=True, eq=False)
class ExactOrders:
    """The three orderings and the rank correlation of std and absolute error (None when one is constant)."""

    by_std: SortedRows
    by_abs_error: SortedRows
    by_z: SortedRows
    rank_correlation: float | None


def sort_rows(std: Column, error: Column) -> ExactOrders:
    """Sort the samples by std, absolute error and z.

    Parameters
    ----------
    std, error : arrays, shape (N,), float32 or float64
        Standard deviations (>= 0) and errors ``y - mu``, all finite.
    """
    way = _Packed if _packable(std, error) else _Plain

    def by_size() -> tuple[SortedRows, SortedRows, float | None]:
        by_std = way.by_std(std, error)
        by_abs_error, order = way.by_abs_error(by_std.columns["error"])
        return by_std, by_abs_error, _rank_correlation(by_std.values, by_abs_error.values, order)

    both: list[Callable[[], Any]] = [by_size, lambda: way.by_z(std, error)]
    threads = map_threads if len(std) >= WORTH_THREADS else map  # numpy's sorts release the interpreter lock
    (by_std, by_abs_error, correlation), by_z = threads(lambda work: work(), both)
    return ExactOrders(by_std, by_abs_error, by_z, correlation)


def standardised(error: Column, std: Column) -> FloatArray:
    """``z = e / s`` in float64; of a point mass (s = 0) it is 0 where e = 0 and infinite elsewhere."""
    error, std = error.astype(np.float64), std.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = error / std
    return np.where(np.isnan(z), 0.0, z)


class _Plain:
    """Any dtype: sort indices, gather columns."""

    @staticmethod
    def by_std(std: Column, error: Column) -> SortedRows:
        order = np.argsort(std)
        return SortedRows("std", {"std": std[order], "error": error[order]})

    @staticmethod
    def by_abs_error(error: Column) -> tuple[SortedRows, npt.NDArray[Any]]:
        size = np.abs(error)
        order = np.argsort(size)
        return SortedRows("abs_error", {"abs_error": size[order]}), order

    @staticmethod
    def by_z(std: Column, error: Column) -> SortedRows:
        z = standardised(error, std)
        order = np.argsort(z)
        return SortedRows("z", {"z": z[order], "std": std[order], "error": error[order]})


class _Packed:
    """float32 without zero std: sort 64-bit keys, value above and payload below."""

    @staticmethod
    def by_std(std: Column, error: Column) -> SortedRows:
        keys = _keys(len(std))
        _upper(keys)[:], _lower(keys)[:] = std.view(np.uint32), error.view(np.uint32)
        keys.sort()
        return SortedRows("std", {"std": _floats(_upper(keys)), "error": _floats(_lower(keys))})

    @staticmethod
    def by_abs_error(error: Column) -> tuple[SortedRows, npt.NDArray[Any]]:
        keys = _keys(len(error))
        np.bitwise_and(error.view(np.uint32), ~SIGN, out=_upper(keys))
        _lower(keys)[:] = np.arange(len(error), dtype=np.uint32)
        keys.sort()
        return SortedRows("abs_error", {"abs_error": _floats(_upper(keys))}), _lower(keys).copy()

    @staticmethod
    def by_z(std: Column, error: Column) -> SortedRows:
        keys = _keys(len(std))
        for start in range(0, len(std), BLOCK):
            part = slice(start, start + BLOCK)
            with np.errstate(over="ignore"):
                z = (standardised(error[part], std[part]) + 0.0).astype(np.float32)
            _upper(keys)[part] = _ordered(z.view(np.uint32))
        _lower(keys)[:] = std.view(np.uint32)
        keys.sort()
        z = np.empty(len(std), dtype=np.float32)
        for start in range(0, len(std), BLOCK):
            part = slice(start, start + BLOCK)
            z[part] = _unordered(_upper(keys)[part]).view(np.float32)
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


def _ordered(bits: Bits) -> Bits:
    """Bits of floats as integers that sort alike: negative ones are reversed and put below."""
    negative = (bits.view(np.int32) >> 31).view(np.uint32)
    return bits ^ (negative | SIGN)


def _unordered(ordered: Bits) -> Bits:
    ordered = np.ascontiguousarray(ordered)
    positive = (ordered.view(np.int32) >> 31).view(np.uint32)
    return ordered ^ (~positive | SIGN)


def _rank_correlation(std: Column, size: Column, order: npt.NDArray[Any]) -> float | None:
    """Spearman's correlation from two sorted columns and, for each of the second, its place in the first."""
    std_rank, size_rank = centred_ranks(std), centred_ranks(size)
    product = spread = other = 0.0
    for start in range(0, len(order), BLOCK):
        part = slice(start, start + BLOCK)
        one, two = std_rank[order[part]].astype(float), size_rank[part].astype(float)
        product, spread, other = product + inner(one, two), spread + inner(one, one), other + inner(two, two)
    return float(product / (np.sqrt(spread) * np.sqrt(other))) if spread > 0 and other > 0 else None


def centred_ranks(values: Column) -> Column:
    """Twice the rank of sorted values less its mean, tied values sharing theirs: ``first + last - (n + 1)``."""
    n = len(values)
    ranks = np.empty(n, dtype=np.int32 if n < 1 << 30 else np.int64)
    rows = SortedRows("values", {"values": values})
    for start, end in rows.spans():
        part = values[start:end]
        first = np.flatnonzero(np.concatenate([[True], part[1:] != part[:-1]]))
        stop = np.append(first[1:], end - start)
        ranks[start:end] = np.repeat(first + stop + (2 * start - n), stop - first)
    return ranks
