"""Isotonic recalibration of variances and confidences: the increasing step function that best fits outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uq_tracking.metrics.intermediate import intermediate
from uq_tracking.statistics.orders import FloatArray, Order
from uq_tracking.statistics.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Forecasts in ascending order, and their recalibrated values.

    Attributes
    ----------
    count : array, shape (levels,)
        Number of samples at each level of the forecast.
    forecast, outcome : arrays, shape (levels,)
        Mean forecast and mean outcome at each level: variance and squared error, or confidence and accuracy.
    fitted : array, shape (levels,)
        The non-decreasing sequence nearest to the outcomes (pool adjacent violators).
    """

    count: FloatArray
    forecast: FloatArray
    outcome: FloatArray
    fitted: FloatArray

    @classmethod
    def of(cls, count: FloatArray, forecast: FloatArray, outcome: FloatArray) -> Isotonic:
        """Fit the outcomes."""
        return cls(count, forecast, outcome, rising_fit(outcome, count))

    def corners(self) -> tuple[FloatArray, FloatArray]:
        """Forecasts and recalibrated values at both ends of every flat part of the fit."""
        change = np.flatnonzero(np.diff(self.fitted) > 0)
        ends = np.sort(np.concatenate([[0], change, change + 1, [len(self.fitted) - 1]]))
        return self.forecast[ends], self.fitted[ends]


@intermediate
def isotonic_variance(statistics: Statistics) -> Isotonic:
    """Squared errors regressed on stated variances."""
    count, variance, square = _sums(statistics.orders["std"], ("std2", "sq_error"))
    return Isotonic.of(count, variance / count, square / count)


@intermediate
def isotonic_confidence(statistics: Statistics) -> Isotonic:
    """Correctness regressed on top probabilities."""
    order = statistics.orders["one_minus_confidence"]
    count, doubt, correct = (part[::-1] for part in _sums(order, ("one_minus_confidence", "correct")))
    return Isotonic.of(count, 1 - doubt / count, correct / count)


def _sums(order: Order, names: tuple[str, str]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Samples of each bucket of an order, and two of its sums."""
    blocks = list(order.blocks(names))
    count = np.concatenate([block.count for block in blocks]).astype(float)
    first, second = (np.concatenate([block.sums[name] for block in blocks]) for name in names)
    return count, first, second


def rising_fit(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The non-decreasing sequence of least weighted squares.

    >>> rising_fit(np.asarray([1.0, 3.0, 2.0, 4.0]), np.ones(4))
    array([1. , 2.5, 2.5, 4. ])
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, weights=weights).x)
