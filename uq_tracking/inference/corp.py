r"""Reliability without bins, and what a proper score is made of: miscalibration, discrimination, uncertainty.

The forecasts are recalibrated by the rising step function that fits the outcomes best (pool adjacent violators). Then

.. math:: S = \underbrace{S - S_{rc}}_{MCB} - \underbrace{(S_{mg} - S_{rc})}_{DSC} + \underbrace{S_{mg}}_{UNC}

with the score of the recalibrated forecasts and that of the best constant; miscalibration and discrimination are
never below 0 (Dimitriadis, Gneiting and Jordan 2021, PNAS 118). No bins have to be chosen.

* A regression: the forecast is the variance, the outcome the squared error, the score
  :math:`(\log s^2 + e^2 / s^2) / 2`, which is the Gaussian log score less a constant.
* A classification: the forecast is the top probability, the outcome whether that class is right, the score their
  squared difference, the Brier score of the top label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uq_tracking.metrics.registry import Undefined
from uq_tracking.statistics.grouped import FloatArray


@dataclass(frozen=True, eq=False)
class Decomposition:
    """What a score is made of, and the curve of its isotonic recalibration.

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
    predicted, observed : arrays
        Forecasts, ascending, and what they are recalibrated to: standard deviation and root mean squared error, or
        confidence and accuracy.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    predicted: FloatArray
    observed: FloatArray


def decompose(report: Any) -> Decomposition:
    """Decompose the score of a report, from its statistics.

    Raises
    ------
    Undefined
        The report holds no statistics, or a standard deviation, or the error of a level, is 0.

    Examples
    --------
    >>> import numpy as np, uq_tracking as uq
    >>> rng = np.random.default_rng(0)
    >>> std = rng.gamma(4, 0.25, 2000)
    >>> found = decompose(uq.evaluate(2 * std * rng.normal(size=2000), np.zeros(2000), std))
    >>> found.miscalibration > found.discrimination > 0
    True
    """
    if report.statistics is None:
        raise Undefined("the report holds no statistics; read it with Report.from_npz")
    if report.task == "classification":
        return _of_confidence(report.statistics)
    return _of_variance(report.statistics)


def _of_variance(statistics: Any) -> Decomposition:
    if statistics.moments["std"].low <= 0:
        raise Undefined("a standard deviation of 0 has no log score; set std_floor")
    count, variance, square = _sums(statistics.orders["std"], ("std2", "sq_error"))
    fitted = rising_fit(square / count, count)
    if fitted[0] <= 0:
        raise Undefined(
            "the samples of smallest standard deviation have no error, so their best variance is 0"
        )

    def score(forecast: FloatArray) -> float:
        return float(np.sum(count * np.log(forecast) + square / forecast)) / (2 * float(count.sum()))

    constant = np.full(len(count), square.sum() / count.sum())
    parts = _parts(score(variance / count), score(fitted), score(constant))
    return Decomposition(*parts, np.sqrt(variance / count), np.sqrt(fitted))


def _of_confidence(statistics: Any) -> Decomposition:
    order = statistics.orders["one_minus_confidence"]
    count, doubt, correct = (part[::-1] for part in _sums(order, ("one_minus_confidence", "correct")))
    confidence = 1 - doubt / count
    fitted = rising_fit(correct / count, count)

    def score(forecast: FloatArray) -> float:
        return float(np.sum(correct * (1 - 2 * forecast) + count * forecast**2)) / float(count.sum())

    constant = np.full(len(count), correct.sum() / count.sum())
    return Decomposition(*_parts(score(confidence), score(fitted), score(constant)), confidence, fitted)


def _sums(order: Any, names: tuple[str, str]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Samples of each group of an order, and two of its sums."""
    blocks = list(order.blocks(names))
    count = np.concatenate([block.count for block in blocks]).astype(float)
    first, second = (np.concatenate([block.sums[name] for block in blocks]) for name in names)
    return count, first, second


def rising_fit(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The rising sequence of least weighted squares.

    >>> rising_fit(np.asarray([1.0, 3.0, 2.0, 4.0]), np.ones(4))
    array([1. , 2.5, 2.5, 4. ])
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, weights=weights).x)


def _parts(score: float, recalibrated: float, constant: float) -> tuple[float, float, float, float]:
    return score, score - recalibrated, constant - recalibrated, constant
