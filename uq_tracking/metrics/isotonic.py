r"""Reliability without bins, and the parts of a proper score: miscalibration, discrimination, uncertainty.

The forecasts are recalibrated by the increasing step function that best fits the outcomes (pool adjacent violators).
Then

.. math:: S = \underbrace{S - S_{rc}}_{MCB} - \underbrace{(S_{mg} - S_{rc})}_{DSC} + \underbrace{S_{mg}}_{UNC}

with the score of the recalibrated forecasts and that of the best constant; miscalibration and discrimination are
never below 0 (Dimitriadis, Gneiting and Jordan 2021, PNAS 118). No bins need to be chosen.

* A regression: the forecast is the variance, the outcome the squared error, the score
  :math:`(\log s^2 + e^2 / s^2) / 2`, which is the Gaussian log score minus a constant.
* Two classes: the forecast is the probability of the event, the outcome whether it occurs, the score their squared
difference, half of ``brier``.
* More classes: the forecast is the top probability, the outcome whether that class is correct, the score their
squared difference, the Brier score of the top label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uq_tracking.metrics.events import event_order, two_classes
from uq_tracking.metrics.registry import Undefined, intermediate
from uq_tracking.statistics.orders import FloatArray, Order
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import cached_property


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Forecasts in ascending order, and their recalibrated values.

    Attributes
    ----------
    count : array, shape (levels,)
        Number of samples at each level of the forecast.
    forecast, outcome : arrays, shape (levels,)
        Mean forecast and mean outcome at each level: variance and squared error, or confidence and accuracy.
    """

    count: FloatArray
    forecast: FloatArray
    outcome: FloatArray

    @cached_property
    def fitted(self) -> FloatArray:
        """The non-decreasing sequence nearest to the outcomes (pool adjacent violators)."""
        return rising_fit(self.outcome, self.count)

    def corners(self) -> tuple[FloatArray, FloatArray]:
        """Forecasts and recalibrated values at both ends of every flat part of the fit."""
        change = np.flatnonzero(np.diff(self.fitted) > 0)
        ends = np.sort(np.concatenate([[0], change, change + 1, [len(self.fitted) - 1]]))
        return self.forecast[ends], self.fitted[ends]


@intermediate
def isotonic_variance(statistics: Statistics) -> Isotonic:
    """Squared errors regressed on stated variances."""
    count, variance, square = _sums(statistics.orders["std"], ("std2", "sq_error"))
    return Isotonic(count, variance / count, square / count)


@intermediate
def isotonic_confidence(statistics: Statistics) -> Isotonic:
    """Events regressed on their probabilities; of more than two classes, correctness on top probabilities."""
    if two_classes(statistics):
        count, stated, events = _sums(event_order(statistics), ("probability", "event"))
        return Isotonic(count, stated / count, events / count)
    order = statistics.orders["one_minus_confidence"]
    count, doubt, correct = (part[::-1] for part in _sums(order, ("one_minus_confidence", "correct")))
    return Isotonic(count, 1 - doubt / count, correct / count)


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


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The parts of a score; the curve ``reliability_isotonic`` shows the forecasts and their recalibrated values.

    Attributes
    ----------
    score : float
        ``miscalibration - discrimination + uncertainty``.
    miscalibration : float
        What recalibration would gain; 0 at best.
    discrimination : float
        What the recalibrated forecasts gain over a constant; higher is better.
    uncertainty : float
        Score of the best constant.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def decompose(report: Any) -> Decomposition:
    """Decompose the score of a report, from its statistics.

    Raises
    ------
    Undefined
        The report holds no statistics, or a standard deviation or the error of a level is 0.

    Examples
    --------
    >>> import numpy as np, uq_tracking as uq
    >>> rng = np.random.default_rng(0)
    >>> std = rng.gamma(4, 0.25, 2000)
    >>> found = decompose(uq.evaluate(2 * std * rng.normal(size=2000), np.zeros(2000), std))
    >>> found.miscalibration > found.discrimination > 0
    True
    """
    statistics = report.statistics
    if statistics is None:
        raise Undefined("the report holds no statistics; read it with Report.from_npz")
    is_variance = "std" in statistics.orders
    if is_variance and statistics.moments["std"].low <= 0:
        raise Undefined("a standard deviation of 0 has no log score; set std_floor")
    fit = isotonic_variance(statistics) if is_variance else isotonic_confidence(statistics)
    if is_variance and fit.fitted[0] <= 0:
        raise Undefined(
            "the samples of smallest standard deviation have zero error, so their best variance is 0"
        )

    def score(forecast: FloatArray) -> float:
        if is_variance:
            losses = (np.log(forecast) + fit.outcome / forecast) / 2
        else:
            losses = fit.outcome * (1 - 2 * forecast) + forecast**2
        return float(np.average(losses, weights=fit.count))

    constant = np.full(len(fit.count), np.average(fit.outcome, weights=fit.count))
    stated, recalibrated, best = score(fit.forecast), score(fit.fitted), score(constant)
    return Decomposition(stated, stated - recalibrated, best - recalibrated, best)
