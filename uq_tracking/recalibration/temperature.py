"""One temperature for all logits of a classifier."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import RecalibrationError, ShapeError
from uq_tracking.inputs.convert import read, read_floats
from uq_tracking.inputs.forms.probabilities import log_softmax
from uq_tracking.inputs.labels import check_weights, read_weights, zero_where_left_out
from uq_tracking.recalibration.base import (
    ClassificationRecalibration,
    FittedOn,
    FloatArray,
    check_positive,
    recalibrator,
)
from uq_tracking.typed import override

if TYPE_CHECKING:
    from typing_extensions import Self

BLOCK = 1 << 16
"""Samples processed at a time."""
WIDEST = math.log(1e4)
"""The search covers temperatures between exp(-WIDEST) and exp(WIDEST)."""


@recalibrator
@dataclass(frozen=True, kw_only=True)
class Temperature(ClassificationRecalibration):
    """``softmax(logits / temperature)``; for a single logit per sample, ``sigmoid(logit / temperature)``.

    Attributes
    ----------
    temperature : float
        Above 1 if the classifier is overconfident.
    """

    method = "temperature"
    summary = "One divisor for every logit, by maximum likelihood"
    source = "Guo 2017 section 4.2"

    temperature: float

    def __post_init__(self) -> None:
        check_positive("temperature", [self.temperature])
        check_positive("n_logits", [self.n_logits])

    @classmethod
    def fit(
        cls,
        labels: Any,
        logits: Any,
        fitted_on: FittedOn | None = None,
        ignore_label: int | None = None,
        weights: Any = None,
    ) -> Self:
        """Find the temperature that minimizes the negative log likelihood (Guo et al. 2017).

        Parameters
        ----------
        labels : integer array, shape (...)
            Classes, from 0.
        logits : array, shape (..., C), or the shape of labels for a binary classifier with one logit
        fitted_on : FittedOn, optional
            What is known about the set; the number of samples is filled in.
        ignore_label : int, optional
            Label of samples to leave out.
        weights : array, optional
            How much each sample counts, as for `Predictions`; samples with weight 0 are left out.

        Raises
        ------
        ShapeError
            The shapes do not match.
        RecalibrationError
            Labels are out of range, logits are not finite, or there is no best temperature because every sample, or
            hardly any, is classified correctly.
        """
        truth, scores, weight, n_logits = _checked(labels, logits, ignore_label, weights)
        known = fitted_on or FittedOn(n=0, source="arrays")
        return cls(
            temperature=_search(truth, scores, weight),
            n_logits=n_logits,
            fitted_on=replace(known, n=len(truth), source="arrays"),
        )

    @override
    def scalars(self) -> dict[str, float]:
        return {"temperature": self.temperature}

    @override
    def new_logarithms(self, logarithms: FloatArray) -> FloatArray:
        return log_softmax(logarithms / self.temperature)


def _checked(
    labels: Any, logits: Any, ignore_label: int | None, weights: Any
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[Any] | None, int]:
    """Return labels (n,), logits (n, C) and weights (n,) that count, and the number of logits given per sample."""
    truth, scores = read(labels, "labels").values, read_floats(logits, "logits").values
    if truth.dtype.kind not in "iub":
        raise RecalibrationError(f"labels have dtype {truth.dtype}; pass class indices as integers")
    binary = truth.shape == scores.shape
    if not binary and truth.shape != scores.shape[:-1]:
        raise ShapeError(
            f"labels have shape {truth.shape} and logits {scores.shape}; pass logits with the classes "
            "along the last axis"
        )
    scores = np.stack([np.zeros_like(scores), scores], axis=-1) if binary else scores
    weight = None
    if weights is not None:
        weight = zero_where_left_out(read_weights(weights, read(labels, "labels"))).reshape(-1)
    truth, scores = truth.reshape(-1), scores.reshape(-1, scores.shape[-1])
    keep = np.ones(len(truth), dtype=bool) if ignore_label is None else truth != ignore_label
    if weight is not None:
        check_weights(weight, keep)
        keep &= weight > 0
        weight = weight[keep]
    if not keep.all():
        truth, scores = truth[keep], scores[keep]
    truth = truth.astype(np.int64)
    _check_values(truth, scores)
    return truth, scores, weight, 1 if binary else scores.shape[-1]


def _check_values(truth: npt.NDArray[np.int64], scores: npt.NDArray[Any]) -> None:
    if not len(truth) or scores.shape[-1] < 2:
        raise RecalibrationError("temperature needs at least one labelled sample and two classes")
    outside = (truth < 0) | (truth >= scores.shape[-1])
    if outside.any():
        raise RecalibrationError(
            f"{int(outside.sum())} labels are outside 0 ... {scores.shape[-1] - 1} (first: {truth[outside][0]}); "
            "pass ignore_label= if one means 'no class'"
        )
    bad = int(np.count_nonzero(~np.isfinite(scores)))
    if bad:
        raise RecalibrationError(
            f"{bad} logits are not finite; for probabilities pass numpy.log(numpy.clip(probs, 1e-12, None))"
        )


def _search(truth: npt.NDArray[np.int64], scores: npt.NDArray[Any], weight: npt.NDArray[Any] | None) -> float:
    """Minimize over the log temperature; the loss is convex in the inverse temperature, so it has one minimum.

    If every label has the largest logit there is none, but the loss soon equals its limit to the last digit.
    """
    from scipy.optimize import minimize_scalar

    if np.all(scores[np.arange(len(truth)), truth] >= scores.max(axis=-1)):
        raise _no_best("0: every label already has the largest logit")
    spread = np.ptp(scores, axis=-1)
    unit = (
        float(np.median(spread)) or float(spread.max()) or 1.0
    )  # so that the search works at any scale of logits
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


def _loss(
    truth: npt.NDArray[np.int64],
    scores: npt.NDArray[Any],
    weight: npt.NDArray[Any] | None,
    temperature: float,
) -> float:
    """Return the mean negative log likelihood, in float64."""
    total = 0.0
    for start in range(0, len(truth), BLOCK):
        part = slice(start, start + BLOCK)
        labels, z = truth[part], scores[part].astype(np.float64) / temperature
        z -= z.max(axis=-1, keepdims=True)
        losses = np.log(np.exp(z).sum(axis=-1)) - z[np.arange(len(labels)), labels]
        total += float((losses if weight is None else losses * weight[part]).sum())
    return total / (len(truth) if weight is None else float(weight.sum()))
