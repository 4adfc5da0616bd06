"""Scores of class probabilities, for samples or pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from uq_tracking.families import FloatArray
from uq_tracking.metrics.intermediate import intermediate
from uq_tracking.metrics.ranking import FRACTIONS, Sparsification, remaining_counts, sum_of_prefix_means
from uq_tracking.metrics.registry import Infinite, Undefined, metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.classification import confusion_matrix
from uq_tracking.statistics.orders import Order
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import equal_edges


@metric(
    "accuracy",
    family="accuracy",
    direction="higher",
    summary="Share of samples classified correctly",
    formula="mean 1[argmax p = y]",
    task="classification",
    bounds=(0.0, 1.0),
    headline=True,
    share=True,
    stable="sums",
    in_curves=True,
)
def accuracy(statistics: Statistics, settings: Settings) -> float:
    """Share of the samples whose most probable class is the true one.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("accuracy", "classification")
    0.833333
    """
    return float(np.trace(confusion_matrix(statistics))) / statistics.n


@metric(
    "nll",
    family="scoring",
    direction="lower",
    unit="nats",
    summary="Negative log likelihood of the true class",
    formula="mean -log p_y",
    source="Gneiting and Raftery 2007",
    task="classification",
    bounds=(0.0, math.inf),
    headline=True,
    stable="samples",
    in_curves=True,
)
def nll(statistics: Statistics, settings: Settings) -> float:
    """Mean negative log probability of the true class.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("nll", "classification")
    0.486169
    """
    if statistics.sums["impossible"]:
        share = statistics.sums["impossible"] / statistics.n
        raise Infinite(f"{share:.3g} of the true classes have probability 0")
    return statistics.sums["log_loss"] / statistics.n


@metric(
    "brier",
    family="scoring",
    direction="lower",
    summary="Brier score over all classes",
    formula="mean sum_c (p_c - 1[y = c])^2",
    source="Brier 1950",
    task="classification",
    bounds=(0.0, 2.0),
    headline=True,
    stable="samples",
    in_curves=True,
)
def brier(statistics: Statistics, settings: Settings) -> float:
    """Squared distance of the probabilities from the truth, summed over classes.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("brier", "classification")
    0.252917
    """
    return statistics.orders["brier"].sum("brier") / statistics.n


@dataclass(frozen=True)
class ConfidenceBins:
    """Bins of the samples by top probability; empty ones hold zeros, not NaN."""

    low: FloatArray
    high: FloatArray
    count: FloatArray
    accuracy: FloatArray
    confidence: FloatArray


ON_EDGE = 1e-10
"""Doubts within this relative distance of a bin's edge lie on it: the rest is rounding of the probabilities."""


def equal_width_bins(statistics: Statistics, n_bins: int) -> ConfidenceBins:
    """Bins ``[b/n, (b+1)/n)`` of the top probability, the last one closed."""
    edges = np.arange(n_bins + 1) / n_bins
    # doubt = 1 - confidence: a confidence at an edge belongs to the bin above, a doubt to the one that starts lower
    by_doubt = statistics.orders["one_minus_confidence"]
    positions = by_doubt.position((1 - edges[1:-1]) * (1 + ON_EDGE), side="right")
    ends = np.concatenate([[by_doubt.total], positions, [0.0]])
    return _bins(by_doubt, ends, edges[:-1], edges[1:])


def equal_count_bins(statistics: Statistics, n_bins: int) -> ConfidenceBins:
    """Equal-count bins by top probability, with the sizes of ``numpy.array_split``."""
    n = statistics.n
    if n < n_bins:
        raise Undefined(f"{n:g} samples cannot fill {n_bins} bins; lower n_bins")
    ends = (n - equal_edges(n, n_bins)).astype(float)  # ascending confidence is descending doubt
    values = 1 - statistics.orders["one_minus_confidence"].value(np.clip(ends, 1, n))
    return _bins(statistics.orders["one_minus_confidence"], ends, values[:-1], values[1:])


def _bins(by_doubt: Order, ends: FloatArray, low: FloatArray, high: FloatArray) -> ConfidenceBins:
    count = -np.diff(ends)
    held = np.maximum(count, 1e-300)
    doubt, correct = (
        by_doubt.between(name, ends[::-1])[::-1] for name in ("one_minus_confidence", "correct")
    )
    some = count > 0
    return ConfidenceBins(
        low, high, count, np.where(some, correct / held, 0.0), np.where(some, 1 - doubt / held, 0.0)
    )


def _gaps(bins: ConfidenceBins) -> FloatArray:
    return np.where(bins.count > 0, np.abs(bins.accuracy - bins.confidence), 0.0)


@metric(
    "ece",
    family="calibration",
    direction="lower",
    summary="Mean gap between confidence and accuracy, in bins of confidence",
    formula="sum over equal-width bins of N_b/N |accuracy - confidence|",
    source="Guo 2017; Gustafsson 2020 section 4.3",
    task="classification",
    bounds=(0.0, 1.0),
    headline=True,
    floor=True,
    in_curves=True,
)
def ece(statistics: Statistics, settings: Settings) -> float:
    """Expected calibration error of the top label.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ece", "classification")
    0.166667
    """
    bins = equal_width_bins(statistics, settings.n_bins)
    return float(np.sum(bins.count * _gaps(bins)) / statistics.n)


@metric(
    "mce",
    family="calibration",
    direction="lower",
    summary="Largest gap between confidence and accuracy, in bins of confidence",
    formula="max over the bins of ECE of |accuracy - confidence|",
    source="Guo 2017",
    task="classification",
    bounds=(0.0, 1.0),
    floor=True,
)
def mce(statistics: Statistics, settings: Settings) -> float:
    """Largest gap between confidence and accuracy over the bins of ``ece``.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("mce", "classification")
    0.4
    """
    return float(_gaps(equal_width_bins(statistics, settings.n_bins)).max())


@metric(
    "ace",
    family="calibration",
    direction="lower",
    summary="Mean gap between confidence and accuracy, in bins of equal count",
    formula="mean over equal-count bins of |accuracy - confidence|",
    source="Nixon 2019, top label",
    task="classification",
    bounds=(0.0, 1.0),
    floor=True,
)
def ace(statistics: Statistics, settings: Settings) -> float:
    """Mean gap between confidence and accuracy over bins of equal count.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ace", "classification")
    0.19
    """
    return float(_gaps(equal_count_bins(statistics, settings.n_bins)).mean())


@intermediate
def sparsification_brier(statistics: Statistics) -> Sparsification:
    """Brier score of the samples of lowest entropy, over that of all."""
    total = statistics.orders["brier"].sum("brier") / statistics.n
    if total == 0:
        raise Undefined("every Brier score is 0, so there is no error to normalize by")
    kept = remaining_counts(statistics.n)

    def curve(order: Order) -> FloatArray:
        return np.asarray(order.cumulative("brier", kept) / kept / total)

    return Sparsification(FRACTIONS, curve(statistics.orders["entropy"]), curve(statistics.orders["brier"]))


@metric(
    "ause_brier",
    family="ranking",
    direction="lower",
    summary="Area under the sparsification error, Brier score by entropy",
    formula="trapezoid over f = 0, .01 ... .99 of [Brier of the 1 - f of least entropy - oracle's] / Brier",
    source="Gustafsson 2020 section 4.3",
    task="classification",
    bounds=(0.0, math.inf),
    headline=True,
    against="accuracy",
    in_curves=True,
)
def ause_brier(statistics: Statistics, settings: Settings) -> float:
    """Area between the Brier sparsification curve, ordered by entropy, and the oracle's.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ause_brier", "classification")
    0.0118616
    """
    curve = sparsification_brier(statistics)
    return float(np.trapezoid(curve.model - curve.oracle, FRACTIONS))


@metric(
    "miou",
    family="accuracy",
    direction="higher",
    summary="Mean intersection over union of the classes that occur",
    formula="mean over classes of TP / (TP + FP + FN)",
    task="classification",
    bounds=(0.0, 1.0),
    headline=True,
)
def miou(statistics: Statistics, settings: Settings) -> float:
    """Mean intersection over union of the classes that occur among labels or predictions.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("miou", "classification")
    0.716667
    """
    confusion = confusion_matrix(statistics)
    either = confusion.sum(axis=0) + confusion.sum(axis=1) - np.diag(confusion)
    occurs = either > 0
    return float(np.mean(np.diag(confusion)[occurs] / either[occurs]))


@metric(
    "entropy_mean",
    family="spread",
    direction=None,
    unit="nats",
    summary="Mean predictive entropy",
    formula="mean -sum_c p_c log p_c",
    source="Shannon 1948",
    task="classification",
    bounds=(0.0, math.inf),
)
def entropy_mean(statistics: Statistics, settings: Settings) -> float:
    """Mean predictive entropy.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("entropy_mean", "classification")
    0.779159
    """
    return statistics.orders["entropy"].sum("entropy") / statistics.n


@metric(
    "aurc",
    family="ranking",
    direction="lower",
    summary="Area under the risk-coverage curve",
    formula="mean over k of the error rate of the k most confident",
    source="Geifman 2018",
    task="classification",
    bounds=(0.0, 1.0),
    headline=True,
    in_curves=True,
)
def aurc(statistics: Statistics, settings: Settings) -> float:
    """Mean over k of the error rate of the k most confident samples.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("aurc", "classification")
    0.0382155
    """
    return 1 - sum_of_prefix_means(statistics.orders["one_minus_confidence"], "correct") / statistics.n
