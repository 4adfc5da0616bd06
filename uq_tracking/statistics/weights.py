"""Sample weights: how much each sample counts.

Statistics hold weights in units of the lightest sample. So multiplying all weights by a constant changes nothing, and
samples with weights 1, 2 and 3 behave as if they occurred once, twice and three times: in sums and order statistics,
and also where numbers of samples matter (bin edges, fractions, degrees of freedom). A weight of 0 excludes a sample
before anything is counted.

Certainty is a separate question: one sample that counts twice is not two samples. Noise floors, bands and
verdicts use the effective sample size, ``(sum w)^2 / sum w^2`` (Kish 1965).

Moments merge without cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import TABLE_BLOCK, spans

WEIGHT = "weight"
"""Name of the column of rows, and of the moments of statistics, when samples have weights."""

ROUNDING = 1e-9
"""Multiples of a unit this close to a whole number are taken as whole."""

LARGEST = 2**53
"""Up to here, every whole number is exactly representable in float64."""


def whole(total: float) -> float:
    """Return a total as an int if it is a whole number up to rounding; else the total itself.

    >>> whole(3 * 0.1 / 0.1), whole(2.5)
    (3, 2.5)
    """
    if isinstance(total, int) or not total < LARGEST:
        return total
    near = round(total)
    return near if abs(total - near) <= ROUNDING * max(total, 1.0) else total


def in_units(weights: npt.NDArray[Any], unit: float) -> npt.NDArray[np.float64]:
    """Weights in units of one of them, with rounding removed where they are multiples of it.

    >>> in_units(np.asarray([0.1, 0.3]), 0.1)
    array([1., 3.])
    """
    made = np.asarray(weights / unit, dtype=np.float64)
    near = np.rint(made)
    return np.where(np.abs(made - near) <= ROUNDING * near, near, made)


def equal_edges(total: float, parts: int) -> npt.NDArray[Any]:
    """Edges of parts of equal weight, starting with 0; for whole numbers, with the sizes of ``numpy.array_split``.

    >>> equal_edges(7, 3)
    array([0, 3, 5, 7])
    """
    if not isinstance(total, int):
        return np.arange(parts + 1) * (total / parts)
    size, larger = divmod(total, parts)
    return np.concatenate([[0], np.cumsum(np.full(parts, size) + (np.arange(parts) < larger))])


def middle_ranks(total: float) -> tuple[float, float]:
    """The two ranks that the median lies midway between, with half of the total on either side.

    >>> middle_ranks(4), middle_ranks(5)
    ((2, 3), (3, 3))
    """
    if isinstance(total, int):
        return (total + 1) // 2, total // 2 + 1
    return total / 2, total / 2 * (1 + ROUNDING)


def _of_block(values: npt.NDArray[Any], weights: npt.NDArray[np.float64] | None) -> tuple[float, ...]:
    """Count, mean, sum of squared deviations and range."""
    origin = float(values[0])
    if not np.isfinite(origin):
        origin = 0.0
    shifted = np.subtract(values, origin, dtype=np.float64)  # a constant gives exactly zero spread
    count = len(values) if weights is None else float(weights.sum())
    mean = float(shifted.sum() if weights is None else (shifted * weights).sum()) / count
    shifted -= mean
    np.square(shifted, out=shifted)
    if weights is not None:
        shifted *= weights
    return count, origin + mean, float(shifted.sum()), float(values.min()), float(values.max())


@dataclass(frozen=True)
class Moments:
    """Count, mean, sum of squared deviations and range of a variable (Chan et al. 1979 for the merge)."""

    count: float = 0
    """Number of values, or the sum of their weights."""
    mean: float = 0.0
    m2: float = 0.0
    low: float = float("inf")
    high: float = float("-inf")

    @classmethod
    def of(cls, values: npt.NDArray[Any], weights: npt.NDArray[np.float64] | None = None) -> Moments:
        """Moments of an array, in cache-sized blocks; positive ``weights`` say how much each value counts."""
        if not len(values):
            return cls()
        with np.errstate(invalid="ignore", over="ignore"):  # infinite z of a zero std
            parts = (
                cls(*_of_block(values[start:end], None if weights is None else weights[start:end]))
                for start, end in spans(len(values), TABLE_BLOCK)
            )
            return reduce(cls.merge, parts)

    def merge(self, other: Moments) -> Moments:
        """Moments of both sets of values."""
        if not self.count or not other.count:
            return self if self.count else other
        count = self.count + other.count
        with np.errstate(invalid="ignore", over="ignore"):
            gap = float(np.subtract(other.mean, self.mean))
            mean = self.mean + gap * other.count / count
            m2 = self.m2 + other.m2 + gap * gap * self.count * other.count / count
        return Moments(count, mean, m2, min(self.low, other.low), max(self.high, other.high))

    def scaled(self, factor: float) -> Moments:
        """The same values, each counting ``factor`` times as much."""
        return replace(self, count=self.count * factor, m2=self.m2 * factor)

    def times(self, factor: float) -> Moments:
        """Return moments of the values times a factor above 0."""
        return replace(
            self,
            mean=self.mean * factor,
            m2=self.m2 * factor * factor,
            low=self.low * factor,
            high=self.high * factor,
        )

    def to_array(self) -> npt.NDArray[np.float64]:
        """Mean, m2, low and high; the count is stored once for all variables."""
        return np.asarray([self.mean, self.m2, self.low, self.high])

    @classmethod
    def from_array(cls, count: float, values: npt.NDArray[Any]) -> Moments:
        """Inverse of ``to_array``."""
        mean, m2, low, high = (float(value) for value in values)
        return cls(count, mean, m2, low, high)

    def variance(self, ddof: int = 0) -> float:
        """Variance with ``ddof`` delta degrees of freedom."""
        return self.m2 / (self.count - ddof)
