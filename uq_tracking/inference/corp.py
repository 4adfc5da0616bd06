r"""Reliability without bins, and the parts of a proper score: miscalibration, discrimination, uncertainty.

The forecasts are recalibrated by the increasing step function that best fits the outcomes (pool adjacent violators).
Then

.. math:: S = \underbrace{S - S_{rc}}_{MCB} - \underbrace{(S_{mg} - S_{rc})}_{DSC} + \underbrace{S_{mg}}_{UNC}

with the score of the recalibrated forecasts and that of the best constant; miscalibration and discrimination are
never below 0 (Dimitriadis, Gneiting and Jordan 2021, PNAS 118). No bins need to be chosen.

* A regression: the forecast is the variance, the outcome the squared error, the score
  :math:`(\log s^2 + e^2 / s^2) / 2`, which is the Gaussian log score minus a constant.
* A classification: the forecast is the top probability, the outcome whether that class is correct, the score their
squared difference, the Brier score of the top label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uq_tracking.metrics.isotonic import Isotonic, isotonic_confidence, isotonic_variance
from uq_tracking.metrics.registry import Undefined
from uq_tracking.statistics.orders import FloatArray


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The parts of a score, and the curve of its isotonic recalibration.

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
        Forecasts, ascending, and their recalibrated values: standard deviation and root mean squared error, or
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
    if report.statistics is None:
        raise Undefined("the report holds no statistics; read it with Report.from_npz")
    if report.task == "classification":
        return _of_confidence(report.statistics)
    return _of_variance(report.statistics)


def _of_variance(statistics: Any) -> Decomposition:
    if statistics.moments["std"].low <= 0:
        raise Undefined("a standard deviation of 0 has no log score; set std_floor")
    fit = isotonic_variance(statistics)
    if fit.fitted[0] <= 0:
        raise Undefined(
            "the samples of smallest standard deviation have zero error, so their best variance is 0"
        )

    def score(forecast: FloatArray) -> float:
        total = float(np.sum(fit.count * (np.log(forecast) + fit.outcome / forecast)))
        return total / (2 * float(fit.count.sum()))

    return Decomposition(*_parts(fit, score), np.sqrt(fit.forecast), np.sqrt(fit.fitted))


def _of_confidence(statistics: Any) -> Decomposition:
    fit = isotonic_confidence(statistics)

    def score(forecast: FloatArray) -> float:
        total = float(np.sum(fit.count * (fit.outcome * (1 - 2 * forecast) + forecast**2)))
        return total / float(fit.count.sum())

    return Decomposition(*_parts(fit, score), fit.forecast, fit.fitted)


def _parts(fit: Isotonic, score: Callable[[FloatArray], float]) -> tuple[float, float, float, float]:
    constant = np.full(len(fit.count), np.dot(fit.count, fit.outcome) / fit.count.sum())
    stated, recalibrated, best = score(fit.forecast), score(fit.fitted), score(constant)
    return stated, stated - recalibrated, best - recalibrated, best
