"""Scores that need more than statistics: a reference distribution, raw samples, or random groups."""

from __future__ import annotations

import math

import numpy as np

from uq_tracking.inputs import Predictions
from uq_tracking.inputs.forms.form import picked
from uq_tracking.inputs.forms.probabilities import probabilities_of
from uq_tracking.metrics.gaps import PROPORTIONS, coverage_at
from uq_tracking.metrics.registry import Infinite, MetricInputs, Undefined, metric
from uq_tracking.parallel import BLOCK
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.weights import WEIGHT

GROUP_SIZES = np.linspace(0, 1, 10)
"""Sizes of the random groups, as shares of the samples."""
TRIALS = 10
GROUPS_PER_TRIAL = 10
SMALLEST_GROUP = 2


@metric(
    family="scoring",
    direction="lower",
    unit="nats",
    formula="mean of log(s_r/s) + (s^2 + (mu - mu_r)^2)/(2 s_r^2) - 1/2",
    source="Gustafsson 2020 section 4.1",
    bounds=(0, math.inf),
    needs=("predictions", "reference"),
)
def kl_to_reference(given: MetricInputs, settings: Settings) -> float:
    """Divergence of the predictions from a reference distribution.

    ``log(s_r / s) + (s^2 + (mu - mu_r)^2) / (2 s_r^2) - 1/2``, zero if both are equal.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("kl_to_reference")
    0.127407
    """
    predictions: Predictions = given.predictions
    rows = predictions.rows()
    mean, std, weight = rows["mean"], rows["std"], rows.get(WEIGHT)
    mean_r, std_r = (predictions.select(part) for part in given.reference or ())
    bad = int(np.count_nonzero(~np.isfinite(mean_r) | ~(std_r > 0) | ~np.isfinite(std_r)))
    if bad:
        raise Undefined(f"the reference is invalid at {bad} samples (non-finite, or a std not above 0)")
    if np.any(std == 0):
        raise Infinite("a standard deviation of 0 is infinitely far from any reference; set std_floor")
    total = 0.0
    for start in range(0, len(std), BLOCK):
        part = slice(start, start + BLOCK)
        m, s, mr, sr = (column[part].astype(np.float64) for column in (mean, std, mean_r, std_r))
        ratio = s / sr
        terms = -np.log(ratio) + 0.5 * (ratio * ratio + np.square((m - mr) / sr) - 1)
        total += float((terms if weight is None else terms * weight[part]).sum())
    return total / (len(std) if weight is None else float(weight.sum()))


@metric(
    "kl_to_reference",
    family="scoring",
    direction="lower",
    unit="nats",
    formula="mean of sum over classes of p log(p / p_r)",
    source="Gustafsson 2020 section 4.1",
    bounds=(0, math.inf),
    task="classification",
    needs=("predictions", "reference"),
)
def class_kl_to_reference(given: MetricInputs, settings: Settings) -> float:
    """Divergence of the predicted probabilities from a reference.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("kl_to_reference", "classification")
    0.0176385
    """
    predictions: Predictions = given.predictions
    form, other = probabilities_of(predictions), probabilities_of(given.reference)
    total = mass = 0.0
    weights = predictions.weights
    for place, keep in predictions.pieces():
        labels = picked(predictions.truth, place, keep, predictions.truth.ndim).astype(np.int64)
        probs, reference = (each.known(labels, place, keep).probs for each in (form, other))
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(probs > 0, probs * np.log(probs / reference), 0.0)
        if np.isinf(terms).any():
            raise Infinite(
                "the reference gives probability 0 to a class that the predictions consider possible"
            )
        if weights is not None:
            weight = picked(weights, place, keep, weights.ndim)
            terms, mass = terms.sum(axis=-1) * weight, mass + float(weight.sum())
        total += float(terms.sum())
    return total / (predictions.n if weights is None else mass)


def group_calibration(given: MetricInputs, settings: Settings) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Calibration error of the worst of ten random groups, by the groups' share of the samples.

    Only the numbers of samples between the levels' intervals matter, so drawing a group without replacement means
    drawing these from a multivariate hypergeometric distribution, at no cost per sample. Weighted samples count as
    their effective number.

    Returns
    -------
    share, mean, error : arrays, shape (10,)
        Share of the samples, mean over ten trials of the worst group's ``mace``, and its standard error.
    """
    n, rng = round(given.statistics.n_effective), np.random.default_rng(given.seed)
    if n < SMALLEST_GROUP:
        raise Undefined("one sample cannot form a group")
    inside = np.rint(coverage_at(given.statistics, settings, PROPORTIONS) * n).astype(np.int64)
    cells = np.diff(np.concatenate([[0], np.maximum.accumulate(inside)]))
    worst = np.asarray([_worst(cells, max(round(n * share), SMALLEST_GROUP), rng) for share in GROUP_SIZES])
    return GROUP_SIZES, worst.mean(axis=1), worst.std(axis=1, ddof=1) / math.sqrt(TRIALS)


def _worst(cells: IntArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Error of the worst group in each trial."""
    draws = rng.multivariate_hypergeometric(cells, size, TRIALS * GROUPS_PER_TRIAL, method="marginals")
    gap = np.cumsum(draws, axis=1) / size - PROPORTIONS
    error = np.abs(gap).mean(axis=1).reshape(TRIALS, GROUPS_PER_TRIAL)
    return np.asarray(error.max(axis=1))


@metric(
    family="calibration",
    direction="lower",
    formula="mean over group sizes linspace(0, 1, 10) N and 10 trials of the largest mace of 10 random groups",
    source="Zhao 2020; grid as uncertainty-toolbox",
    bounds=(0, 1),
    needs=("seed",),
    default=False,
)
def adversarial_group_calibration(given: MetricInputs, settings: Settings) -> float:
    """Calibration error of the worst of random groups.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("adversarial_group_calibration")
    0.225054
    """
    return float(group_calibration(given, settings)[1].mean())
