"""Mean and spread that merge without cancellation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import spans


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
        """Moments of an array, in cache-sized blocks; ``weights``, above 0, say how much each value counts."""
        result = cls()
        for start, end in spans(len(values)):
            own = None if weights is None else weights[start:end]
            result = result.merge(cls._of_block(values[start:end].astype(np.float64), own))
        return result

    @classmethod
    def _of_block(
        cls, values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64] | None = None
    ) -> Moments:
        origin = float(values[0])
        if not np.isfinite(origin):
            origin = 0.0
        with np.errstate(invalid="ignore", over="ignore"):  # infinite z of a zero std
            shifted = values - origin  # a constant gives exactly zero spread
            count = len(values) if weights is None else float(weights.sum())
            mean = float(shifted.mean() if weights is None else (shifted * weights).sum() / count)
            shifted -= mean
            np.square(shifted, out=shifted)
            if weights is not None:
                shifted *= weights
            m2 = float(shifted.sum())  # np.dot would start threads for so little
        return cls(count, origin + mean, m2, float(values.min()), float(values.max()))

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
