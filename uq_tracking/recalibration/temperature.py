"""One temperature for all logits of a classifier, and an offset for each class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from uq_tracking.errors import RecalibrationError, warn
from uq_tracking.inputs.forms.probabilities import log_softmax
from uq_tracking.recalibration.base import (
    ClassificationRecalibration,
    FloatArray,
    Labels,
    Logits,
    Weights,
    check_finite,
    check_positive,
    recalibrator,
)
from uq_tracking.typed import override

BLOCK = 1 << 16
"""Samples processed at a time."""
WIDEST = math.log(1e4)
"""The search covers temperatures between exp(-WIDEST) and exp(WIDEST)."""
PER_CLASS = 50
"""Samples per class that offsets need: with 30, they are worse than a temperature alone on calibrated data."""


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


@recalibrator
@dataclass(frozen=True, kw_only=True)
class BiasTemperature(ClassificationRecalibration):
    """One divisor for every logit and an offset for each class, by maximum likelihood (Alexandari et al. 2020).

    ``softmax(logits / temperature + offsets)``, for more than two classes. With fewer than 50 samples per class, or
    if a class does not occur, a warning says so and the offsets are 0.

    Attributes
    ----------
    temperature : float
    offsets : tuple of float
        One per class, with sum 0; below 0 for a class that is stated too often.
    """

    method = "bias_temperature"

    temperature: float
    offsets: tuple[float, ...]

    def __post_init__(self) -> None:
        check_positive("temperature", [self.temperature])
        check_finite("offsets", self.offsets)
        if len(self.offsets) != self.n_logits:
            raise RecalibrationError(
                f"offsets must be of {self.n_logits} classes, not of {len(self.offsets)}"
            )

    @classmethod
    @override
    def best(cls, labels: Labels, logits: Logits, weights: Weights) -> dict[str, Any]:
        """Find the temperature and offsets that minimize the negative log likelihood."""
        classes = logits.shape[1]
        if classes == 2:
            raise RecalibrationError(
                "bias_temperature is for more than two classes; use logistic, which has an offset and a slope"
            )
        temperature = _search(labels, logits, weights)
        lacking = np.flatnonzero(np.bincount(labels, minlength=classes) == 0)
        why = ""
        if len(labels) < PER_CLASS * classes:
            why = f"needs {PER_CLASS * classes} samples for {classes} classes, but there are {len(labels)}"
        elif len(lacking):
            why = f"needs samples of every class, but class {lacking[0]} does not occur"
        if why:
            warn(f"bias_temperature {why}; fitted a temperature without offsets")
            return {"temperature": temperature, "offsets": (0.0,) * classes}
        return _search_offsets(labels, logits, weights, temperature)

    @override
    def scalars(self) -> dict[str, float]:
        return {"bias_temperature": self.temperature, "bias_largest": max(map(abs, self.offsets))}

    @override
    def new_logarithms(self, logarithms: FloatArray) -> FloatArray:
        return log_softmax(logarithms / self.temperature + np.asarray(self.offsets))


def _search_offsets(truth: Labels, scores: Logits, weight: Weights, temperature: float) -> dict[str, Any]:
    """Minimize over the inverse temperature, relative to a first guess, and the offsets; the loss is convex."""
    from scipy.optimize import minimize

    total = len(truth) if weight is None else float(weight.sum())

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        value, slopes = 0.0, np.zeros_like(parameters)
        for start in range(0, len(truth), BLOCK):
            part = slice(start, start + BLOCK)
            labels, z = truth[part], scores[part].astype(np.float64) / temperature
            z -= z.max(axis=1, keepdims=True)
            logs = log_softmax(parameters[0] * z + parameters[1:])
            rows = np.arange(len(labels))
            w = np.ones(len(labels)) if weight is None else weight[part]
            value -= float(w @ logs[rows, labels])
            off = np.exp(logs)
            off[rows, labels] -= 1
            slopes[0] += w @ np.einsum("ij,ij->i", off, z)
            slopes[1:] += w @ off
        return value / total, slopes / total

    widest = math.exp(WIDEST)
    found = minimize(
        loss,
        np.concatenate([[1.0], np.zeros(scores.shape[1])]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(1 / widest, widest), *[(None, None)] * scores.shape[1]],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000, "maxls": 50},
    )
    inverse, offsets = float(found.x[0]), found.x[1:] - found.x[1:].mean()
    if not 1.01 / widest < inverse < 0.99 * widest:
        raise _no_best(
            "0: offsets separate the classes" if inverse > 1 else "infinity: the logits do not help"
        )
    return {"temperature": temperature / inverse, "offsets": tuple(offsets.tolist())}
