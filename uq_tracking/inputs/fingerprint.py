"""Digests of samples: in their order, whatever their dtype, and independent of order and batches.

The latter hashes every sample to 64 bits and adds modulo 2 ** 64, so digests of parts add up to that of the whole.
Both distinguish data sets that differ by accident; they are no protection against deliberate collisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle
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


@dataclass(frozen=True)
class Fingerprint:
    """Sums of the samples' hashes; 0 without samples."""

    target: int = 0
    """Sum over the targets alone: equal for two methods scored on the same truth."""
    samples: int = 0
    """Sum over target, mean, std and weight together."""

    @classmethod
    def of(cls, *columns: npt.NDArray[Any]) -> Fingerprint:
        """Fingerprint of samples: target, forecast and weights, if any; arrays of shape (N,) or (N, C)."""
        result = cls()
        widest = max((column[:1].size for column in columns), default=1)
        step = min(BLOCK, max(8 * BLOCK // max(widest, 1), 1))
        for start in range(0, len(columns[0]), step):
            result = result + cls._of_block(*(column[start : start + step] for column in columns))
        return result

    @classmethod
    def _of_block(cls, *columns: npt.NDArray[Any]) -> Fingerprint:
        state = np.zeros(len(columns[0]), dtype=np.uint64)
        sums = []
        for column, multiplier in zip(columns, cycle(MULTIPLIERS), strict=False):
            if column.ndim == 1:
                state += (column.astype(np.float64) + 0.0).view(np.uint64)  # adding 0 turns -0.0 into 0.0
            else:
                state += _of_rows(column.reshape(len(state), -1))
            sums.append(int(_mixed(state, multiplier).sum(dtype=np.uint64)))
        return cls(sums[0], sums[-1])

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint((self.target + other.target) % MODULUS, (self.samples + other.samples) % MODULUS)

    @property
    def digest(self) -> str:
        """Digest of all columns, for a report: ``sum64:`` and sixteen hexadecimal digits."""
        return f"sum64:{self.samples:016x}"

    def to_array(self) -> npt.NDArray[np.uint64]:
        """Both sums, shape (2,)."""
        return np.asarray([self.target, self.samples], dtype=np.uint64)

    @classmethod
    def from_array(cls, values: npt.NDArray[Any]) -> Fingerprint:
        """Inverse of ``to_array``."""
        return cls(int(values[0]), int(values[1]))
