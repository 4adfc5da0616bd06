"""One small data set on which every metric has a value, for examples in docstrings and docs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import uq_tracking as uq

TARGET = np.array([2.1, 3.4, 1.9, 5.0, 4.2, 2.8, 3.9, 1.2, 4.8, 3.1, 2.6, 4.4])
MEAN = np.array([2.0, 3.0, 2.1, 4.2, 4.5, 2.6, 3.3, 1.3, 4.6, 3.7, 2.7, 4.9])
STD = np.array([0.2, 0.4, 0.3, 0.6, 0.5, 0.2, 0.4, 0.1, 0.3, 0.5, 0.2, 0.5])

SAMPLES = MEAN + STD * np.array([-1.2, -0.4, 0.1, 0.5, 1.3])[:, None]
LEVELS = [0.025, 0.5, 0.975]
QUANTILES = MEAN + STD * np.array([-1.1, 0.1, 1.3])[:, None]
REFERENCE = (MEAN + 0.1, 0.9 * STD)

LABELS = np.array([0, 1, 2, 1, 0, 2, 2, 1, 0, 0, 1, 2])
PROBS = np.array(
    [
        [0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.5, 0.4, 0.1],
        [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3], [0.1, 0.8, 0.1],
        [0.9, 0.05, 0.05], [0.4, 0.35, 0.25], [0.2, 0.5, 0.3], [0.05, 0.05, 0.9],
    ]
)  # fmt: skip
CLASS_REFERENCE = 0.8 * PROBS + 0.2 / 3


def _forms() -> Iterator[uq.Predictions]:
    """Return the data as draws, quantiles, an interval and vectors."""
    yield uq.Predictions.from_samples(TARGET, SAMPLES)
    yield uq.Predictions.from_quantiles(TARGET, QUANTILES, LEVELS, axis=0)
    yield uq.Predictions.from_interval(TARGET, QUANTILES[0], QUANTILES[-1], LEVELS[-1] - LEVELS[0])
    std = STD.reshape(6, 2)
    cov = std[:, :, None] * std[:, None] * np.array([[1.0, 0.4], [0.4, 1.0]])
    yield uq.Predictions.from_covariance(TARGET.reshape(6, 2), MEAN.reshape(6, 2), cov)


def example_score(key: str, task: str = "regression") -> float:
    """The value of a metric on the example data, to six digits.

    >>> example_score("rmse")
    0.409268
    """
    if task == "classification":
        report = uq.evaluate(LABELS, probs=PROBS, metrics=[key], reference=CLASS_REFERENCE)
        if key not in report.scores:  # a score of two classes: class 0 against the rest
            report = uq.evaluate(LABELS == 0, probs=PROBS[:, 0], metrics=[key])
    else:
        report, forms = uq.evaluate(TARGET, MEAN, STD, metrics=[key], reference=REFERENCE), _forms()
        while key not in report.scores:  # the first form for which the metric has a value
            report = uq.evaluate(next(forms), metrics=[key])
    return float(f"{report.scores[key]:.6g}")
