"""Digests of samples: in their order, whatever their dtype, and independent of order and batches.

The latter hashes every sample to 64 bits and adds modulo 2 ** 64, so digests of parts add up to that of the whole.
Both distinguish data sets that differ by accident; they are no protection against deliberate collisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from uq_tracking.parallel import BLOCK


def digest(blocks: Iterable[npt.NDArray[Any]], about: str = "") -> str:
    """Sixteen hexadecimal digits: XXH3 of ``about`` and of the values, read as float64 in C order.

    It distinguishes data sets that differ by accident; it is no protection against deliberate collisions.
    """
    state = xxhash.xxh3_64(about.encode())
    for values in blocks:
        numbers = values.astype("<f8", order="C")
        numbers += 0.0  # which turns -0.0 into 0.0
        state.update(numbers.data)
    return state.hexdigest()


MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Odd constants of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), one per column."""
SHIFT = 32
MODULUS = 1 << 64


def hashes(targets: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Hash of each target, shape (n,), read as float32, so that a copy in that precision agrees."""
    with np.errstate(over="ignore"):
        values = targets.astype(np.float32) + np.float32(0)  # which turns -0.0 into 0.0
    return _mixed(values.view(np.uint32).astype(np.uint64), MULTIPLIERS[0])


def with_column(state: npt.NDArray[np.uint64], column: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return the hash of each sample together with a further column, read as float32."""
    return _mixed(state + hashes(column), MULTIPLIERS[1])


def _mixed(state: npt.NDArray[np.uint64], multiplier: int) -> npt.NDArray[np.uint64]:
    """Mix the bits of each number, in place."""
    for _ in range(2):
        state *= np.uint64(multiplier)
        state ^= state >> np.uint64(SHIFT)
    return state


def _of_rows(table: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Hash of each row, read as float32: the bits of each column times an odd factor, added."""
    with np.errstate(over="ignore"):
        bits = (table.astype(np.float32, copy=False) + np.float32(0)).view(np.uint32)
    summed: npt.NDArray[np.uint64] = np.einsum("ij,j->i", bits, _factors(bits.shape[1])).astype(np.uint64)
    return summed << np.uint64(SHIFT)


@lru_cache(maxsize=8)
def _factors(count: int) -> npt.NDArray[np.uint32]:
    """Odd factors of the columns of a table."""
    mixed = _mixed(np.arange(1, count + 1, dtype=np.uint64), MULTIPLIERS[0])
    return (mixed >> np.uint64(SHIFT)).astype(np.uint32) | np.uint32(1)


def sum_of_hashes(*columns: npt.NDArray[Any]) -> int:
    """Sum of the samples' hashes: of target, forecast and weights, if any; arrays of shape (N,) or (N, C)."""
    total, multipliers = 0, [*MULTIPLIERS] * len(columns)
    widest = max((column[:1].size for column in columns), default=1)
    step = min(BLOCK, max(8 * BLOCK // max(widest, 1), 1))
    for start in range(0, len(columns[0]), step):
        state = np.zeros(len(columns[0][start : start + step]), dtype=np.uint64)
        for column, multiplier in zip(columns, multipliers, strict=False):
            part = column[start : start + step]
            if part.ndim == 1:
                state += (part.astype(np.float64) + 0.0).view(np.uint64)  # adding 0 turns -0.0 into 0.0
            else:
                state += _of_rows(part.reshape(len(state), -1))
            state = _mixed(state, multiplier)
        total += int(state.sum(dtype=np.uint64))
    return total % MODULUS


def digest_of_sum(total: int) -> str:
    """Digest of samples in any order, for a report: ``sum64:`` and sixteen hexadecimal digits."""
    return f"sum64:{total % MODULUS:016x}"
