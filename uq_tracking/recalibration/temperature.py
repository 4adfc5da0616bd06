"""One temperature for all logits of a classifier."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from uq_tracking.errors import RecalibrationError
from uq_tracking.inputs.forms.probabilities import log_softmax
from uq_tracking.recalibration.base import (
    ClassificationRecalibration,
    FloatArray,
    Labels,
    Logits,
    Weights,
    check_positive,
    recalibrator,
)
from uq_tracking.typed import override

BLOCK = 1 << 16
"""Samples processed at a time."""
WIDEST = math.log(1e4)
"""The search covers temperatures between exp(-WIDEST) and exp(WIDEST)."""


@recalibrator
@dataclass(frozen=True, kw_only=True)
class Temperature(ClassificationRecalibration):
    """One divisor for every logit, by maximum likelihood (Guo 2017 section 4.2).

    ``softmax(logits / temperature)``; for a single logit per sample, ``sigmoid(logit / temperature)``.

    Attributes
    ----------
    temperature : float
        Above 1 if the classifier is overconfident.
    """

    method = "temperature"

    temperature: float

    def __post_init__(self) -> None:
        check_positive("temperature", [self.temperature])
        check_positive("n_logits", [self.n_logits])

    @classmethod
    @override
    def best(cls, labels: Labels, logits: Logits, weights: Weights) -> dict[str, Any]:
        """Find the temperature that minimizes the negative log likelihood (Guo et al. 2017)."""
        return {"temperature": _search(labels, logits, weights)}

    @override
    def scalars(self) -> dict[str, float]:
        return {"temperature": self.temperature}

    @override
    def new_logarithms(self, logarithms: FloatArray) -> FloatArray:
        return log_softmax(logarithms / self.temperature)


def _search(truth: Labels, scores: Logits, weight: Weights) -> float:
    """Minimize over the log temperature; the loss is convex in the inverse temperature, so it has one minimum.

    If every label has the largest logit there is none, but the loss soon equals its limit to the last digit.
    """
    from scipy.optimize import minimize_scalar

    if np.all(scores[np.arange(len(truth)), truth] >= scores.max(axis=-1)):
        raise _no_best("0: every label already has the largest logit")
    spread = np.ptp(scores, axis=-1)
    # so that the search works at any scale of logits
    unit = float(np.median(spread)) or float(spread.max()) or 1.0
    found = minimize_scalar(
        lambda log_t: _loss(truth, scores, weight, unit * math.exp(log_t)),
        bounds=(-WIDEST, WIDEST),
        method="bounded",
        options={"xatol": 1e-10},
    )
    if abs(found.x) > WIDEST - 0.01:
        raise _no_best(
            "0: nearly every label has the largest logit"
            if found.x < 0
            else "infinity: the logits do not help"
        )
    return unit * math.exp(found.x)


def _no_best(tends_to: str) -> RecalibrationError:
    return RecalibrationError(f"there is no best temperature: it tends to {tends_to}; fit on held-out data")


def _loss(truth: Labels, scores: Logits, weight: Weights, temperature: float) -> float:
    """Return the mean negative log likelihood, in float64."""
    total = 0.0
    for start in range(0, len(truth), BLOCK):
        part = slice(start, start + BLOCK)
        labels, z = truth[part], scores[part].astype(np.float64) / temperature
        z -= z.max(axis=-1, keepdims=True)
        losses = np.log(np.exp(z).sum(axis=-1)) - z[np.arange(len(labels)), labels]
        total += float((losses if weight is None else losses * weight[part]).sum())
    return total / (len(truth) if weight is None else float(weight.sum()))
