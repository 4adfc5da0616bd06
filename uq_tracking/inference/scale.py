"""The factor by which stated uncertainties should be multiplied, the bias, and how well both are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from uq_tracking.families import Standard
from uq_tracking.inference import read
from uq_tracking.inference.few_errors import too_few_errors
from uq_tracking.inference.limits import Influence, Range, poisson_limits, size_freedom
from uq_tracking.metrics.registry import Undefined
from uq_tracking.statistics.distribution import LOW, POINT, is_distribution
from uq_tracking.statistics.group_tables import bucket_spans
from uq_tracking.statistics.orders import Block, FloatArray

FEW_ERRORS = 30
"""Up to this many samples that are misclassified, or classified right, their number is taken for a Poisson number."""
DEEPEST = 8.2
"""Gaussian score of the largest F(y) below 1 in float64."""
LARGEST_LOG = 600.0
"""Limits on the log beyond this are 0, or infinite, in float64."""


@dataclass(frozen=True)
class Estimated:
    """An estimate with its limits, and how much a few units dominate it (see ``limits.Influence``)."""

    value: float
    low: float
    high: float
    dominance: float = 0.0


def std_scale(statistics: Any, family: Standard, level: float) -> Estimated:
    """Root of the mean squared standardized error.

    Errors are standardized by their stated distribution: Gaussian scores of F(y), which for Gaussian forecasts equal
    z. For distributions in another form (draws, mixtures ...) it is the ratio of the sums of squared errors and of
    variances, which a few samples of skewed or heavy-tailed ones do not show; so the limits include 1 if those of the
    Gaussian scores do. Quantiles and intervals have no variance: their std is read off a line, and says nothing about
    scale. Under families without a fourth moment, z itself has no interval.
    """
    if statistics.counts["n_zero_std"] and statistics.moments["std"].low <= 0:
        count = statistics.counts["n_zero_std"]
        raise Undefined(
            f"{count} standard deviation{' is' if count == 1 else 's are'} 0, so errors have no scale; set std_floor"
        )
    if is_distribution(statistics):
        return _unless_scores_fit(_ratio_of_sums(statistics, level), statistics, level)
    if read.group_count(statistics) is not None:
        if not family.has_variance:
            raise Undefined("the family has no variance, and nothing else is known about groups")
        mean, influence = _grouped_square(statistics)
    else:
        mean, influence = _independent_square(statistics, family)
    if mean <= 0 or not math.isfinite(influence.fourth):
        raise Undefined("every error is 0" if mean <= 0 else "standardized errors overflow 64-bit numbers")
    return _root(mean, influence, level)


@dataclass(frozen=True)
class Few:
    """The few samples that carry most of the squared standardized errors."""

    samples: float
    of: float
    share: float
    rest: float
    """Scale of all others."""


def few_samples(statistics: Any, family: Standard) -> Few | None:
    """The sample with the largest standardized error, or a thousandth of all, if it carries most of the squares.

    For calibrated Gaussian forecasts, the thousandth carries a hundredth.
    """
    if family.name != "gaussian" or is_distribution(statistics):
        return None
    order = statistics.orders["z"]
    counts = sorted({1, max(order.total // 1000, 1)})
    for limit in order.absolute_value([max(order.total - count, 1) for count in counts]).tolist():

        def within(z: FloatArray, limit: float = limit) -> FloatArray:
            square, inside = np.square(z), np.abs(z) <= limit
            return np.stack([inside, square * inside, square])

        samples, below, total = read.power_sums(statistics, "z", within).tolist()
        if 0 < below < total / 2:
            return Few(order.total - samples, order.total, 1 - below / total, math.sqrt(below / samples))
    return None


def _ratio_of_sums(statistics: Any, level: float) -> Estimated:
    """Root of the sum of squared errors over the sum of variances.

    Noisy stds, such as those of a few draws, inflate z but not this ratio.
    """
    if statistics.facts.get("spread"):
        raise Undefined("a predicted distribution has no variance")
    if statistics.facts.get("distribution") in ("quantiles", "interval"):
        raise Undefined("a few quantiles do not determine the variance")
    if read.group_count(statistics) is not None:
        square, variance = read.group_squares(statistics)
        ratio = float(square.sum() / variance.sum())
        left = (square.sum() - square) / np.maximum(variance.sum() - variance, read.ZERO_GAP)
        influence = Influence.left_out(left, read.group_freedom(statistics))
    else:
        square, variance, count = read.squares(statistics)
        total = float(statistics.orders["std"].sum("std2"))
        ratio = float(statistics.orders["abs_error"].sum("sq_error")) / total
        share = read.effective(statistics)[1]
        influence = Influence.of(
            (square - ratio * variance) / (total * share), None if count is None else count * share
        )
    if ratio <= 0:
        raise Undefined("every error is 0")
    return _root(ratio, influence, level)


def _unless_scores_fit(found: Estimated, statistics: Any, level: float) -> Estimated:
    """The estimate, its limits extended to 1 where the mean square of the Gaussian scores may be 1."""
    known = None if statistics.groups is None else _scores_of_groups(statistics)
    known = known or _scores_of_samples(statistics)
    if known is None:
        return found
    of_scores = _root(*known, level)
    if not of_scores.low <= 1 <= of_scores.high:
        return found
    return Estimated(found.value, min(found.low, 1.0), max(found.high, 1.0), found.dominance)


def _scores_of_samples(statistics: Any) -> tuple[float, Influence] | None:
    """Mean square of the Gaussian scores of F(y) and the contributions of samples; None of a sketch."""
    if statistics.kind != "exact":
        return None
    rows, weight = read.weighted_rows(statistics) or (statistics.rows(), None)
    square = mean_square_scores(rows["pit_low"], rows["pit_high"])
    mean = float(np.average(square, weights=weight))
    n, share = read.effective(statistics)
    return mean, Influence.of((square - mean) / n, None if weight is None else weight * share)


def mean_square_scores(low: FloatArray, high: FloatArray) -> FloatArray:
    """Mean of the squared Gaussian scores of values that are spread evenly over intervals."""
    width = np.asarray(high - low, dtype=np.float64)
    middle, one, other = (
        np.clip(special.ndtri(end), -DEEPEST, DEEPEST) for end in ((low + high) / 2, low, high)
    )
    inside = other * np.exp(-other * other / 2) - one * np.exp(-one * one / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = 1 - inside / math.sqrt(2 * math.pi) / width
    return np.asarray(np.where(width <= POINT, np.square(middle), spread))


def _scores_of_groups(statistics: Any) -> tuple[float, Influence] | None:
    """The same of groups; None where F(y) is known between two values only, as of draws."""
    groups = statistics.groups
    table, size = groups.orders[LOW], len(groups)
    if np.any(table.sums["point"] < table.sums["count"]):
        return None
    low, width = bucket_spans(table.bucket, groups.bits)
    score = np.clip(low + width / 2, -DEEPEST, DEEPEST)[table.column]
    count = read.added(table.row, table.sums["count"], size)
    square = read.added(table.row, table.sums["count"] * np.square(score), size)
    left = (square.sum() - square) / (count.sum() - count)
    return float(square.sum() / count.sum()), Influence.left_out(left, read.group_freedom(statistics))


def _root(mean: float, influence: Influence, level: float) -> Estimated:
    """Root of a mean square, with limits on the log scale, where a mean of few squares is less skewed."""
    low, high = influence.scaled(1 / mean).limits(0.0, level)
    return Estimated(
        math.sqrt(mean),
        math.sqrt(mean * math.exp(max(low, -LARGEST_LOG))),
        math.sqrt(mean * math.exp(min(high, LARGEST_LOG))),
        influence.dominance,
    )


def normal_scores(family: Standard, z: FloatArray) -> FloatArray:
    """Gaussian scores of standardized errors: ``Phi^-1(F(z))``, computed in the nearer tail."""
    if family.name == "gaussian":
        return z
    with np.errstate(divide="ignore"):
        made = -special.ndtri(family.cdf(-np.abs(z)))
    return np.asarray(np.minimum(made, 38.0) * np.sign(z))


def _independent_square(statistics: Any, family: Standard) -> tuple[float, Influence]:
    n, share = read.effective(statistics)
    if family.name == "gaussian":
        z = statistics.moments["z"]
        mean = z.variance() + z.mean * z.mean
    else:
        total = read.power_sums(statistics, "z", lambda z: np.square(normal_scores(family, z))[None])[0]
        mean = total / statistics.n

    def powers(z: FloatArray) -> FloatArray:
        u = (np.square(normal_scores(family, z)) - mean) / n
        square = u * u
        return np.stack([square, square * u, square * square])

    return float(mean), Influence(n, *(read.power_sums(statistics, "z", powers) * share).tolist())


def _grouped_square(statistics: Any) -> tuple[float, Influence]:
    count, mean, spread = read.group_moments(statistics, "z")
    square = spread + count * mean**2
    estimate = float(square.sum() / count.sum())
    left = (square.sum() - square) / (count.sum() - count)
    return estimate, Influence.left_out(left, read.group_freedom(statistics))


def mean_bias(statistics: Any, level: float) -> Estimated:
    """Mean of prediction minus truth."""
    moments = statistics.moments["error"]
    if read.group_count(statistics) is not None:
        count, mean, _ = read.group_moments(statistics, "error")
        left = ((count * mean).sum() - count * mean) / (count.sum() - count)
        influence = Influence.left_out(-left, read.group_freedom(statistics))
    elif (known := read.weighted_rows(statistics)) is not None:  # errors may be larger where weights are
        rows, weight = known
        influence = Influence.of(weight * (moments.mean - rows["error"]) / weight.sum())
    else:
        n, share = read.effective(statistics)
        spread = moments.m2 * share
        influence = Influence(n, spread / n**2, 0.0, 3 * spread * spread / n**5)
    low, high = influence.limits(-moments.mean, level, cautious=True)
    if not math.isfinite(low + high):
        raise Undefined("errors overflow 64-bit numbers")
    return Estimated(-moments.mean, low, high, influence.dominance)


def error_scale(statistics: Any, level: float) -> Estimated:
    """Errors of the predicted class over the errors that its probabilities imply."""
    doubt = statistics.orders["one_minus_confidence"].sum("one_minus_confidence")
    wrong = statistics.n - statistics.orders["one_minus_confidence"].sum("correct")
    if doubt <= 0:
        raise Undefined("every stated probability is 1, which implies no errors")
    ratio, share = wrong / doubt, read.effective(statistics)[1]
    if (rare := _rare_limits(statistics, wrong, level)) is not None:
        return Estimated(ratio, *(end / doubt for end in rare))
    if read.group_count(statistics) is not None:
        count, own, correct = read.class_sums(statistics)
        left = (wrong - (count - correct)) / np.maximum(doubt - own, read.ZERO_GAP)
        influence = Influence.left_out(left, read.group_freedom(statistics))
    else:
        influence = _binary_influence(statistics, ratio, doubt * share)
    low, high = influence.limits(ratio, level)
    return Estimated(ratio, max(low, 0.0), high, influence.dominance)


def _rare_limits(statistics: Any, wrong: float, level: float) -> Range | None:
    """Limits of the number of errors where few samples are misclassified, or few are right; else None.

    The smaller number is Poisson's. Groups that show too few errors count as one sample each, as if all samples of a
    group were right or wrong together.
    """
    n = statistics.n
    share, rare = read.effective(statistics)[1], min(wrong, n - wrong)
    if read.group_count(statistics) is not None:
        if too_few_errors(statistics.groups) is None:
            return None
        share = (size_freedom(read.class_sums(statistics)[0]) + 1) / n
    elif rare * share > FEW_ERRORS:
        return None
    low, high = (min(end / share, n) for end in poisson_limits(rare * share, level))
    return (low, high) if wrong == rare else (n - high, n - low)


def _binary_influence(statistics: Any, ratio: float, doubt: float) -> Influence:
    """Contributions ``(wrong - ratio doubt) / sum of doubts`` of samples, with their group's doubts."""

    def powers(block: Block) -> FloatArray:
        own, right = block.sums["one_minus_confidence"] / block.count, block.sums["correct"]
        hit, miss = -ratio * own / doubt, (1 - ratio * own) / doubt
        return np.asarray([np.dot(right, hit**k) + np.dot(block.count - right, miss**k) for k in (2, 3, 4)])

    parts = statistics.orders["one_minus_confidence"].map_blocks(
        powers, ("one_minus_confidence", "correct"), "free"
    )
    n, share = read.effective(statistics)
    return Influence(n, *(np.sum(parts, axis=0) * share).tolist())


def confidence_gap(statistics: Any, level: float) -> Estimated:
    """Mean confidence minus accuracy."""
    (n, share), by = read.effective(statistics), statistics.orders["one_minus_confidence"]
    gap = (by.sum("correct") + by.sum("one_minus_confidence")) / statistics.n
    gap = 1 - gap
    if read.group_count(statistics) is not None:
        count, doubt, correct = read.class_sums(statistics)
        own = count - doubt - correct
        left = (own.sum() - own) / (count.sum() - count)
        influence = Influence.left_out(left, read.group_freedom(statistics))
    elif (known := read.weighted_rows(statistics)) is not None:
        rows, weight = known
        wrong = 1 - rows["correct"] - rows["one_minus_confidence"]
        influence = Influence.of(weight * (wrong - gap) / weight.sum())
    else:

        def powers(block: Block) -> FloatArray:
            doubt, right = block.sums["one_minus_confidence"] / block.count, block.sums["correct"]
            hit, miss = (-doubt - gap) / n, (1 - doubt - gap) / n
            return np.asarray(
                [np.dot(right, hit**k) + np.dot(block.count - right, miss**k) for k in (2, 3, 4)]
            )

        parts = by.map_blocks(powers, ("one_minus_confidence", "correct"), "free")
        influence = Influence(n, *(np.sum(parts, axis=0) * share).tolist())
    low, high = influence.limits(gap, level, cautious=True)
    if (rare := _rare_limits(statistics, statistics.n - by.sum("correct"), level)) is not None:
        doubt = by.sum("one_minus_confidence")
        few, many = ((end - doubt) / statistics.n for end in rare)
        low, high = min(low, few), max(high, many)
    return Estimated(gap, low, high, influence.dominance)
