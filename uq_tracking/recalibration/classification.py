"""Recalibrations of class probabilities: of an event, and of the logits of several classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from uq_tracking.errors import RecalibrationError, warn
from uq_tracking.inputs.forms.probabilities import log_softmax
from uq_tracking.metrics.events import fitted_odds
from uq_tracking.recalibration.base import (
    ClassificationRecalibration,
    FloatArray,
    Labels,
    Logits,
    Weights,
    recalibrator,
)
from uq_tracking.typed import override

BLOCK = 1 << 16
"""Samples processed at a time."""
WIDEST = math.log(1e4)
"""The search covers temperatures between exp(-WIDEST) and exp(WIDEST)."""
PER_CLASS = 50
"""Samples per class that offsets need: with 30, they are worse than a temperature alone on calibrated data."""
CERTAIN = math.log(1e7)
"""Logit that a probability of 1 counts as, unless finite logits tell of a coarser grid; minus this of 0."""
LOG_OF_ZERO = -708.0
"""What counts as the logarithm of a probability of 0 where the fitted set had none."""


def farthest(logits: FloatArray) -> float:
    """Return the size that infinite logits count as: that of half of the smallest probability that is not 0."""
    return min(CERTAIN, float(np.abs(logits[np.isfinite(logits)]).max(initial=0.0)) + math.log(2))


def floor_of(scores: Logits) -> float:
    """Return what the logarithms of zeros among more than two classes count as."""
    return -farthest(log_softmax(scores.astype(np.float64))) if np.isneginf(scores).any() else LOG_OF_ZERO


def floored(scores: FloatArray, floor: float) -> FloatArray:
    """Return logits without infinite ones; of a set that had zeros, log probabilities of at least the floor."""
    if floor > LOG_OF_ZERO:
        return np.maximum(log_softmax(scores.astype(np.float64)), floor)
    return np.where(np.isneginf(scores), floor, scores)


@recalibrator
@dataclass(frozen=True, kw_only=True)
class Temperature(ClassificationRecalibration):
    """One divisor for every logit, by maximum likelihood (Guo 2017 section 4.2).

    ``softmax(logits / temperature)``; for a single logit per sample, ``sigmoid(logit / temperature)``.

    Attributes
    ----------
    temperature : float
        Above 1 if the classifier is overconfident.
    floor : float
        What the logarithm of a probability of 0 counts as: that of half of the smallest other one of the fitted set,
        at least log(10^-7).
    """

    method = "temperature"

    temperature: float
    floor: float = LOG_OF_ZERO

    def __post_init__(self) -> None:
        self._check_positive("temperature", [self.temperature])
        self._check_positive("n_logits", [self.n_logits])

    @classmethod
    @override
    def best(cls, labels: Labels, logits: Logits, weights: Weights) -> dict[str, Any]:
        """Find the temperature that minimizes the negative log likelihood (Guo et al. 2017)."""
        floor = floor_of(logits)
        return {"temperature": _search(labels, floored(logits, floor), weights), "floor": floor}

    @override
    def scalars(self) -> dict[str, float]:
        return {"temperature": self.temperature}

    @override
    def new_logarithms(self, logarithms: FloatArray) -> FloatArray:
        return log_softmax(floored(logarithms, self.floor) / self.temperature)


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
    floor : float
        As of `Temperature`.
    """

    method = "bias_temperature"

    temperature: float
    offsets: tuple[float, ...]
    floor: float = LOG_OF_ZERO

    def __post_init__(self) -> None:
        self._check_positive("temperature", [self.temperature])
        self._check_finite("offsets", self.offsets)
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
        floor = floor_of(logits)
        logits = floored(logits, floor)
        temperature = _search(labels, logits, weights)
        why = lacks_samples(labels, classes)
        if why:
            warn(f"bias_temperature {why}; fitted a temperature without offsets")
            return {"temperature": temperature, "offsets": (0.0,) * classes, "floor": floor}
        return {**_search_offsets(labels, logits, weights, temperature), "floor": floor}

    @override
    def scalars(self) -> dict[str, float]:
        return {"bias_temperature": self.temperature, "bias_largest": max(map(abs, self.offsets))}

    @override
    def new_logarithms(self, logarithms: FloatArray) -> FloatArray:
        logs = floored(logarithms, self.floor) / self.temperature
        return log_softmax(logs + np.asarray(self.offsets))


def lacks_samples(labels: Labels, classes: int) -> str:
    """Say why offsets cannot be fitted; "" if they can."""
    if len(labels) < PER_CLASS * classes:
        return f"needs {PER_CLASS * classes} samples for {classes} classes, but there are {len(labels)}"
    lacking = np.flatnonzero(np.bincount(labels, minlength=classes) == 0)
    return f"needs samples of every class, but class {lacking[0]} does not occur" if len(lacking) else ""


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


FEWEST_SAMPLES, FEWEST_EVENTS = 1000, 50
"""Samples, and samples of the rarer class, that `Isotonic` needs."""


def _log_odds(scores: Logits) -> FloatArray:
    """Return the logit of class 1, given logits or log probabilities of both classes, shape (n, 2)."""
    with np.errstate(invalid="ignore"):
        return np.asarray(scores[:, 1].astype(np.float64) - scores[:, 0])


def _check_two_classes(method: str, labels: Labels, scores: Logits) -> None:
    """Raise RecalibrationError unless there are two classes and both occur."""
    if scores.shape[1] != 2:
        raise RecalibrationError(
            f"{method} recalibrates two classes, but there are {scores.shape[1]}; use temperature or bias_temperature"
        )
    if labels.min() == labels.max():
        raise RecalibrationError(
            f"{method} needs samples of both classes, but all are of class {labels[0]}; pass a larger set"
        )


@recalibrator
@dataclass(frozen=True, kw_only=True)
class Logistic(ClassificationRecalibration):
    """Offset and slope on the logit of the event, by maximum likelihood (Platt 1999; Cox 1958).

    ``expit(offset + slope logit(p))``, with p the probability of class 1.

    Attributes
    ----------
    slope : float
        Below 1 if probabilities are too extreme.
    offset : float
        Below 0 if, at p = 0.5, the event is stated too often.
    limit : float
        Logits are cut to ``[-limit, limit]``: the largest of the fit set, at least log(10^7). With probabilities of
        0 or 1, at most that, and log(2) beyond the largest other: half of the step of those that are rounded.
    """

    method = "logistic"
    takes_certainty: ClassVar[bool] = True

    slope: float
    offset: float
    limit: float

    def __post_init__(self) -> None:
        self._check_finite("offset", [self.offset])
        self._check_positive("slope", [self.slope])
        self._check_positive("limit", [self.limit])

    @classmethod
    @override
    def best(cls, labels: Labels, logits: Logits, weights: Weights) -> dict[str, Any]:
        """Find the offset and slope that minimize the negative log likelihood."""
        _check_two_classes(cls.method, labels, logits)
        x = _log_odds(logits)
        limit = max(CERTAIN, float(np.abs(x).max())) if np.isfinite(x).all() else farthest(x)
        x = x.clip(-limit, limit)
        unit = float(np.sqrt(np.mean(np.square(x))))  # so that steps fit any scale of logits
        w = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
        found = fitted_odds(w * (labels == 1), w, x / unit, slope=True) if unit else None
        if found is None:
            raise RecalibrationError(
                "there is no best slope: one probability separates the samples with the event from those without; "
                "fit on more, held-out data"
            )
        offset, slope = found[0], found[1] / unit
        if slope <= 0:
            raise RecalibrationError(
                f"the event is no more frequent where its probability is higher (slope {slope:.3g}); check which "
                "class is the event"
            )
        return {"slope": slope, "offset": offset, "limit": limit}

    @override
    def scalars(self) -> dict[str, float]:
        return {"logistic_slope": self.slope, "logistic_offset": self.offset}

    @override
    def new_logarithms(self, logarithms: FloatArray) -> FloatArray:
        x = _log_odds(logarithms).clip(-self.limit, self.limit)
        log_odds = self.offset + self.slope * x
        return np.stack([-np.logaddexp(0, log_odds), -np.logaddexp(0, -log_odds)], axis=1)


@recalibrator
@dataclass(frozen=True, kw_only=True)
class Isotonic(ClassificationRecalibration):
    """Probability of the event replaced by an increasing function of itself (Zadrozny and Elkan 2002).

    The blocks of the isotonic regression of events on probabilities become the points of a line: each stands at its
    mean probability and states ``(events + 1/2) / (samples + 1)``, so that none states 0 or 1.

    Attributes
    ----------
    stated : tuple of float
        Mean probability of each block, increasing.
    observed : tuple of float
        What the block states instead: increasing, linear in between, constant outside.
    """

    method = "isotonic"
    takes_certainty: ClassVar[bool] = True

    stated: tuple[float, ...]
    observed: tuple[float, ...]

    def __post_init__(self) -> None:
        self._check_line("stated", self.stated, self.observed)
        if max(self.observed) >= 1:
            raise RecalibrationError("observed must be below 1")

    @classmethod
    @override
    def best(cls, labels: Labels, logits: Logits, weights: Weights) -> dict[str, Any]:
        """Pool neighbours until shares of events increase.

        Raises
        ------
        RecalibrationError
            There are fewer than 1000 samples, or fewer than 50 of either class, which it would follow one by one.
        """
        from scipy.special import expit

        _check_two_classes(cls.method, labels, logits)
        w = np.ones(len(labels))
        if weights is not None:
            w = weights * (weights.sum() / np.square(weights).sum())
        n, events = float(w.sum()), float(w[labels == 1].sum())
        if n < FEWEST_SAMPLES or min(events, n - events) < FEWEST_EVENTS:
            raise RecalibrationError(
                f"isotonic needs at least {FEWEST_SAMPLES} samples and {FEWEST_EVENTS} of either class, but there "
                f"are {n:.0f}, of which {events:.0f} of class 1; use logistic"
            )
        p, place = np.unique(expit(_log_odds(logits)), return_inverse=True)
        columns = (w, w * (labels == 1), w * p[place])
        stated, observed = points(np.stack([np.bincount(place, column) for column in columns]))
        return {"stated": tuple(stated.tolist()), "observed": tuple(observed.tolist())}

    @override
    def scalars(self) -> dict[str, float]:
        return {"isotonic_min": self.observed[0], "isotonic_max": self.observed[-1]}

    @override
    def new_logarithms(self, logarithms: FloatArray) -> FloatArray:
        from scipy.special import expit

        new = np.interp(expit(_log_odds(logarithms)), self.stated, self.observed)
        return np.stack([np.log1p(-new), np.log(new)], axis=1)


def points(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean probability and smoothed share of events of each block of distinct probabilities.

    ``sums`` are samples, events and probabilities of each, shape (3, n). Smoothing moves small blocks most and may
    undo their order; such neighbours are pooled, too.
    """
    from scipy.optimize import isotonic_regression

    first = isotonic_regression(sums[1] / sums[0], weights=sums[0]).blocks[:-1]
    kept: list[FloatArray] = []
    for block in np.add.reduceat(sums, first, axis=1).T:
        whole = block
        while kept and _smoothed(kept[-1]) >= _smoothed(whole):
            whole = kept.pop() + whole
        kept.append(whole)
    pooled = np.stack(kept).T
    return pooled[2] / pooled[0], _smoothed(pooled)


def _smoothed(sums: FloatArray) -> FloatArray:
    """Return (events + 1/2) / (count + 1), for counts and events along the first axis."""
    return np.asarray((sums[1] + 0.5) / (sums[0] + 1))
