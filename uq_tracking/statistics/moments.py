"""Mean and spread that merge without cancellation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import TABLE_BLOCK, spans


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
            if len(values) <= TABLE_BLOCK:
                return cls(*_of_block(values, weights))
            stretches = spans(len(values))
            found = np.asarray(
                [
                    _of_block(values[start:end], None if weights is None else weights[start:end])
                    for start, end in stretches
                ]
            )
            count, mean, m2, low, high = found.T
            gap, total = mean - mean[0], count.sum()
            shift = (gap * count).sum() / total
            m2 = m2.sum() + (np.square(gap - shift) * count).sum()
        whole = len(values) if weights is None else float(total)
        return cls(whole, float(mean[0] + shift), float(m2), float(low.min()), float(high.max()))

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
