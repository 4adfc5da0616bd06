"""Scores of class probabilities, for samples or pixels."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.metrics import gaps
from uq_tracking.metrics.events import area_under_roc, several_classes, two_classes
from uq_tracking.metrics.ranking import Sparsification, order_of, sparsification, sum_of_prefix_means
from uq_tracking.metrics.registry import Infinite, Undefined, metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.classification import samples_by_class
from uq_tracking.statistics.orders import Order
from uq_tracking.statistics.statistics import Statistics

of_classes = partial(metric, task="classification", direction="lower", bounds=(0.0, 1.0))
"""Declares a score of class probabilities."""
of_top_label = partial(of_classes, of_top=True)
"""Declares one that needs the top label only."""
of_labels = partial(of_top_label, family="accuracy", direction="higher", headline=True)
"""Declares a headline score of the predicted classes."""
of_calibration = partial(of_classes, family="calibration")
"""Declares a score of stated probabilities against what occurs."""
of_confidence = partial(of_top_label, family="ranking")
"""Declares a score of errors told from correct samples by the confidence."""


@of_labels(
    formula="mean 1[argmax p = y]",
    share=True,
    in_curves=True,
    means=("correct",),
)
def accuracy(statistics: Statistics, settings: Settings) -> float:
    """Share of samples classified correctly.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("accuracy", "classification")
    0.833333
    """
    _, _, correct = samples_by_class(statistics)
    return float(correct.sum()) / statistics.n


@of_top_label(
    family="scoring",
    unit="nats",
    formula="mean -log p_y",
    source="Gneiting and Raftery 2007",
    bounds=(0.0, math.inf),
    headline=True,
    in_curves=True,
    means=("log_loss",),
)
def nll(statistics: Statistics, settings: Settings) -> float:
    """Negative log likelihood of the true class.

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


@of_classes(
    family="scoring",
    formula="mean sum_c (p_c - 1[y = c])^2",
    source="Brier 1950",
    bounds=(0.0, 2.0),
    headline=True,
    in_curves=True,
    means=("brier",),
)
def brier(statistics: Statistics, settings: Settings) -> float:
    """Brier score over all classes.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("brier", "classification")
    0.252917
    """
    return whole_order(statistics, "brier").sum("brier") / statistics.n


@of_calibration(
    of_top=True,
    formula="sum over equal-width bins of N_b/N |observed - stated|",
    source="Naeini 2015 (event); Guo 2017, Gustafsson 2020 section 4.3 (top label)",
    headline=True,
    gap=gaps.CONFIDENCE,
    reduction=gaps.Reduction("absolute", over="samples"),
    in_curves=True,
)
def ece() -> None:
    """Mean gap between stated probability and what occurs, in bins of the former.

    Expected calibration error (ECE): of two classes that of the event, of more that of the top label, whose stated
    probability is the confidence, and which occurs where it is correct.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ece", "classification")
    0.166667
    """


@of_calibration(
    of_top=True,
    formula="max over the bins of ECE of |observed - stated|",
    source="Naeini 2015 (event); Guo 2017 (top label)",
    gap=gaps.CONFIDENCE,
    reduction=gaps.Reduction("largest"),
)
def mce() -> None:
    """Largest gap between stated probability and what occurs, in bins of the former.

    The bins are those of ``ece``.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("mce", "classification")
    0.4
    """


@of_calibration(
    of_top=True,
    formula="mean over equal-count bins of |observed - stated|",
    source="Nixon 2019",
    gap=gaps.EQUAL_COUNT_CONFIDENCE,
    reduction=gaps.Reduction("absolute"),
)
def ace() -> None:
    """Mean gap between stated probability and what occurs, in bins of equal count.

    The stated probability is that of ``ece``.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ace", "classification")
    0.19
    """


@of_calibration(
    formula="sum over equal-width bins of N_b/N |accuracy - confidence|",
    source="Guo 2017",
    gap=gaps.TOP_CONFIDENCE,
    reduction=gaps.Reduction("absolute", over="samples"),
    when=two_classes,
)
def ece_top() -> None:
    """Mean gap between confidence and accuracy, in bins of confidence.

    That is ``ece`` of the top label, which does not see that a rare event is forecast too often.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ece_top", "classification")
    0.166667
    """


@of_calibration(
    formula="mean over classes of sum over equal-width bins of N_b/N |share of the class - mean p_c|",
    source="Nixon 2019 (static calibration error); Kull 2019",
    gap=gaps.CLASSES,
    reduction=gaps.Reduction("absolute", over="samples"),
    when=several_classes,
)
def cwece() -> None:
    """Class-wise expected calibration error: the mean over classes of the ``ece`` of each against the rest.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("cwece", "classification")
    0.194444
    """


@of_calibration(
    formula="max over classes of |mean p_c - share of the class|",
    source="-",
    when=several_classes,
)
def worst_class_gap(statistics: Statistics, settings: Settings) -> float:
    """Largest difference between the mean probability of a class and the share of its samples.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("worst_class_gap", "classification")
    0.0208333
    """
    sums = gaps.sums_of_classes(statistics)
    return float(np.abs(sums.stated - sums.observed).max())


def whole_order(statistics: Statistics, name: Literal["brier", "entropy"]) -> Order:
    """Return an order of what all probabilities of a sample make; Undefined where these were not read."""
    if name not in statistics.orders:
        raise Undefined("only the top label of each sample was counted, because metrics= needed no more")
    return statistics.orders[name]


def sparsification_brier(statistics: Statistics) -> Sparsification:
    """Brier score of the samples of lowest entropy, over that of all."""
    zero = "every Brier score is 0, so there is no error to normalize by"
    whole_order(statistics, "brier")
    return sparsification(statistics, "brier", "entropy", "brier", zero)


@of_classes(
    family="ranking",
    formula="trapezoid over f = 0, .01 ... .99 of [Brier of the 1 - f of least entropy - oracle's] / Brier",
    source="Gustafsson 2020 section 4.3",
    bounds=(0.0, math.inf),
    headline=True,
    against="accuracy",
    in_curves=True,
)
def ause_brier(statistics: Statistics, settings: Settings) -> float:
    """Area under the sparsification error, Brier score by entropy.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ause_brier", "classification")
    0.0118616
    """
    return sparsification_brier(statistics).area()


@of_labels(
    formula="mean over classes of TP / (TP + FP + FN)",
)
def miou(statistics: Statistics, settings: Settings) -> float:
    """Mean intersection over union of the classes that occur.

    A class occurs if it is among labels or predictions.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("miou", "classification")
    0.716667
    """
    both, either = _overlaps(statistics)
    return float(np.mean(both / (either - both)))


@of_labels(
    formula="mean over classes of 2 TP / (2 TP + FP + FN)",
    source="Dice 1945",
)
def mdice(statistics: Statistics, settings: Settings) -> float:
    """Mean Dice coefficient (F1 score) of the classes that occur.

    A class occurs if it is among labels or predictions.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("mdice", "classification")
    0.832011
    """
    both, either = _overlaps(statistics)
    return float(np.mean(2 * both / either))


def _overlaps(statistics: Statistics) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Samples of each class that occurs which are labelled and predicted as such, and the sum of both counts."""
    labelled, predicted, both = samples_by_class(statistics)
    either = labelled + predicted
    return both[either > 0], either[either > 0]


@of_classes(
    family="spread",
    direction=None,
    unit="nats",
    formula="mean -sum_c p_c log p_c",
    source="Shannon 1948",
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
    return whole_order(statistics, "entropy").sum("entropy") / statistics.n


@of_confidence(
    formula="mean over k of the error rate of the k most confident",
    source="Geifman 2018",
    headline=True,
    in_curves=True,
)
def aurc(statistics: Statistics, settings: Settings) -> float:
    """Area under the risk-coverage curve.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("aurc", "classification")
    0.0382155
    """
    return 1 - sum_of_prefix_means(statistics.orders["one_minus_confidence"], "correct") / statistics.n


@of_confidence(
    direction="higher",
    formula="P(confidence of a correct sample > that of an error) + P(equal) / 2",
    source="Hendrycks and Gimpel 2017",
    headline=True,
)
def failure_auroc(statistics: Statistics, settings: Settings) -> float:
    """Share of pairs of a correct sample and an error of which the former is more confident.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("failure_auroc", "classification")
    0.9
    """
    reason = "all samples, or none, are classified correctly"
    return 1 - area_under_roc(statistics.orders["one_minus_confidence"], "correct", reason)


@of_confidence(
    formula="mean over k of the errors among the k most confident, over N",
    source="Traub 2024",
)
def augrc(statistics: Statistics, settings: Settings) -> float:
    """Area under the generalized risk-coverage curve.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("augrc", "classification")
    0.0347222
    """
    order, n = statistics.orders["one_minus_confidence"], statistics.n
    risk = 1 - order.sum("correct") / n
    mixed = risk * (1 - risk)
    ranked = area_under_roc(order, "correct", "") if mixed > 0 else 0.0
    return ranked * mixed + risk * risk / 2 + risk / (2 * n)


@of_confidence(
    formula="error rate of the ceil(.8 N) most confident",
    source="Geifman and El-Yaniv 2017",
)
def risk_at_80(statistics: Statistics, settings: Settings) -> float:
    """Error rate of the most confident 80 %.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("risk_at_80", "classification")
    0.1
    """
    decided = order_of(0.8, statistics.n)
    correct = statistics.orders["one_minus_confidence"].cumulative("correct", [decided])[0]
    return max(1 - float(correct) / decided, 0.0)
