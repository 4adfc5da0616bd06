"""Tests of a regression: the scale of its standard deviations or the coverage of its intervals, shape, and bias."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import special

from uq_tracking.families import Standard, family_of
from uq_tracking.formatting import format_number
from uq_tracking.inference import words
from uq_tracking.inference.enough import heavy_tails
from uq_tracking.inference.intervals import effective_share_limits
from uq_tracking.inference.limits import Estimated, Influence, Range, share_limits
from uq_tracking.inference.noise import floor_of, kolmogorov_floor
from uq_tracking.inference.ranking import Order
from uq_tracking.inference.verdict import LEVEL, TEST_LEVEL, Calibrated, Estimate, Tests, concluded
from uq_tracking.inputs.forms import form_of
from uq_tracking.metrics import groups
from uq_tracking.metrics.accuracy import cv
from uq_tracking.metrics.calibration import pit_ks
from uq_tracking.metrics.forms import interval_coverage
from uq_tracking.metrics.gaps import QUANTILE, Reduction
from uq_tracking.metrics.ranking import Sparsification, n_merci, sparsification
from uq_tracking.metrics.registry import Undefined
from uq_tracking.metrics.scoring import LEVELS
from uq_tracking.settings import Settings
from uq_tracking.statistics.groups import bucket_spans
from uq_tracking.statistics.orders import FloatArray
from uq_tracking.statistics.regression import HIGH, LOW, POINT, is_distribution
from uq_tracking.typed import override

ENOUGH_DRAWS = 50
"""With at least this many draws, the noise of their std inflates the spread of z by less than 3 %."""
ALIKE = 0.02
"""Standard deviations with a coefficient of variation below this count as all alike."""
DEEPEST = 8.2
"""Gaussian score of the largest F(y) below 1 in float64."""
LARGEST_LOG = 600.0
"""Limits on the log beyond this are 0, or infinite, in float64."""


class RegressionTests(Tests):
    """Tests of predictive distributions of a number."""

    order = Order("std", "sq_error", errors="abs_error", power=2)

    @override
    def too_little(self) -> str | None:
        few = super().too_little()
        if few is None and not self.statistics.orders["abs_error"].sum("abs_error"):
            return "every error is 0"
        return few

    @override
    def scale(self) -> Estimated:
        found = self._std_scale()
        return replace(found, dominance=math.inf) if heavy_tails(self.statistics) else found

    def _std_scale(self) -> Estimated:
        """Root of the mean squared standardized error.

        Errors are standardized by their stated distribution: Gaussian scores of F(y), which for Gaussian forecasts
        equal z. For distributions in another form (draws, mixtures ...) it is the ratio of the sums of squared errors
        and of variances, which a few samples of skewed or heavy-tailed ones do not show; so the limits include 1 if
        those of the Gaussian scores do. Quantiles and intervals have no variance: their std is read off a line, and
        says nothing about scale. Under families without a fourth moment, z itself has no interval.
        """
        statistics, family = self.statistics, family_of(self.settings)
        if statistics.counts["n_zero_std"] and statistics.moments["std"].low <= 0:
            count = statistics.counts["n_zero_std"]
            are = "deviation is" if count == 1 else "deviations are"
            raise Undefined(f"{count} standard {are} 0, so errors have no scale; set std_floor")
        if is_distribution(statistics):
            return _unless_scores_fit(_ratio_of_sums(statistics, TEST_LEVEL), statistics, TEST_LEVEL)
        if groups.count(statistics) is not None:
            if not family.has_variance:
                raise Undefined("the family has no variance, and nothing else is known about groups")
            mean, influence = _grouped_square(statistics)
        else:
            mean, influence = _independent_square(statistics, family)
        if mean <= 0 or not math.isfinite(influence.fourth):
            raise Undefined(
                "every error is 0" if mean <= 0 else "standardized errors overflow 64-bit numbers"
            )
        return _root(mean, influence, TEST_LEVEL)

    @override
    def shape(self) -> float | None:
        statistics = self.statistics
        if statistics.counts["n_zero_std"] and statistics.moments["std"].low <= 0:
            return None
        if groups.count(statistics) is None:
            if "pit_ks" in self.noise:
                return self.noise["pit_ks"].p
            return kolmogorov_floor(round(statistics.n_effective), pit_ks(statistics, self.settings)).p
        below = groups.below_quantiles(statistics, family_of(self.settings), LEVELS).sum(axis=0)
        gap = float(np.abs(below / groups.total(statistics) - LEVELS).max())
        return floor_of(QUANTILE.law_of_groups(statistics, self.settings)(Reduction("largest")), gap).p

    @override
    def calibrated(self, scale: Estimate | None, shape_p: float | None, *, dominated: bool) -> Calibrated:
        inside = inside_widest(self.statistics, self.settings, TEST_LEVEL)
        calibration = (inside and inside.misses) or concluded(scale, shape_p, dominated=dominated)
        if dominated and calibration == "overconfident":
            few = few_samples(self.statistics, family_of(self.settings))
            if few is not None:
                return Calibrated("overconfident in few samples", words.of_few(few))
        if inside is not None:
            return Calibrated(calibration, words.of_interval(calibration, shape_p, inside), by_scale=False)
        return Calibrated(calibration, words.of_deviations(calibration, scale, shape_p, self.settings))

    @override
    def bias(self) -> Estimated:
        statistics = self.statistics
        moments = statistics.moments["error"]
        if groups.count(statistics) is not None:
            count, mean, _ = groups.moments(statistics, "error")
            left = ((count * mean).sum() - count * mean) / (count.sum() - count)
            influence = Influence.left_out(-left, groups.freedom(statistics))
        elif (
            known := groups.weighted_rows(statistics)
        ) is not None:  # errors may be larger where weights are
            rows, weight = known
            influence = Influence.of(weight * (moments.mean - rows["error"]) / weight.sum())
        else:
            n, share = groups.effective(statistics)
            spread = moments.m2 * share
            influence = Influence(n, spread / n**2, 0.0, 3 * spread * spread / n**5)
        low, high = influence.limits(-moments.mean, LEVEL, cautious=True)
        if not math.isfinite(low + high):
            raise Undefined("errors overflow 64-bit numbers")
        return Estimated(-moments.mean, low, high, influence.dominance)

    @override
    def bias_sentence(self, bias: Estimate) -> str:
        return words.of_bias(bias, self.settings)

    @override
    def sparsification(self) -> Sparsification:
        return sparsification(self.statistics, "sq_error")

    @override
    def of_data(self) -> list[str]:
        """Caveats on stds that are estimates, and on a target that may stand for missing ones."""
        caveats, size = [], self.statistics.moments.get("size")
        form, repeated = form_of(self.statistics.facts), groups.repeated_target(self.statistics)
        if form.noisy_std and size is not None and size.low < ENOUGH_DRAWS:
            caveats.append(
                f"The std of {size.low:.0f} draws is noisy, which inflates ence, uce and z_std, so ence and uce have "
                "no noise floor; coverage, crps and the scale above do not depend on the number of draws."
            )
        elif form.std_caveat:
            caveats.append(f"There is no noise floor for ence and uce: {form.std_caveat}.")
        if repeated is not None:
            value, share = repeated
            caveats.append(
                f"{format_number(100 * share, 2)} % of the true values are exactly {format_number(value)}: if that "
                "stands for missing values, mask them (mask=)."
            )
        return caveats

    @override
    def of_ranking(self) -> list[str]:
        """Caveats on uncertainties that sort errors but hardly vary, or do not follow the sizes of errors."""
        caveats, dispersion, width = [], self._score(cv), self._score(n_merci)
        if dispersion is not None and dispersion < ALIKE:
            caveats.append(
                f"Standard deviations vary by only {format_number(100 * dispersion, 2)} %: they sort errors, but "
                "state nearly the same size for all."
            )
        if width is not None and width >= 1:
            caveats.append(
                "The uncertainty sorts errors, but intervals scaled by it are no shorter than those of a constant "
                f"(n_merci {format_number(width)})."
            )
        return caveats

    def _score(self, metric: Callable[[Any, Settings], float]) -> float | None:
        try:
            return metric(self.statistics, self.settings)
        except Undefined:
            return None


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

        samples, below, total = groups.power_sums(statistics, "z", within).tolist()
        if 0 < below < total / 2:
            return Few(order.total - samples, order.total, 1 - below / total, math.sqrt(below / samples))
    return None


def _ratio_of_sums(statistics: Any, level: float) -> Estimated:
    """Root of the sum of squared errors over the sum of variances.

    Noisy stds, such as those of a few draws, inflate z but not this ratio.
    """
    if statistics.facts.get("spread"):
        raise Undefined("a predicted distribution has no variance")
    if form_of(statistics.facts).is_interval:
        raise Undefined("a few quantiles do not determine the variance")
    if groups.count(statistics) is not None:
        square, variance = groups.squares(statistics)
        ratio = float(square.sum() / variance.sum())
        left = (square.sum() - square) / np.maximum(variance.sum() - variance, groups.ZERO_GAP)
        influence = Influence.left_out(left, groups.freedom(statistics))
    else:
        square, variance, count = groups.sample_squares(statistics)
        total = float(statistics.orders["std"].sum("std2"))
        ratio = float(statistics.orders["abs_error"].sum("sq_error")) / total
        share = groups.effective(statistics)[1]
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
    rows, weight = groups.weighted_rows(statistics) or (statistics.rows(), None)
    square = mean_square_scores(rows["pit_low"], rows["pit_high"])
    mean = float(np.average(square, weights=weight))
    n, share = groups.effective(statistics)
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
    """Mean square of the Gaussian scores of groups; None where F(y) is known between two values only, as of draws."""
    table = statistics.groups.orders[LOW]
    if np.any(table.sums["point"].data < table.sums["count"].data):
        return None
    low, width = bucket_spans(table.bucket, statistics.groups.bits)
    score = np.clip(low + width / 2, -DEEPEST, DEEPEST)
    count = groups.sums_of(table, "count")
    square = np.asarray(table.sums["count"] @ np.square(score))
    left = (square.sum() - square) / (count.sum() - count)
    return float(square.sum() / count.sum()), Influence.left_out(left, groups.freedom(statistics))


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
    n, share = groups.effective(statistics)
    if family.name == "gaussian":
        z = statistics.moments["z"]
        mean = z.variance() + z.mean * z.mean
    else:
        total = groups.power_sums(statistics, "z", lambda z: np.square(normal_scores(family, z))[None])[0]
        mean = total / statistics.n

    def powers(z: FloatArray) -> FloatArray:
        u = (np.square(normal_scores(family, z)) - mean) / n
        square = u * u
        return np.stack([square, square * u, square * square])

    return float(mean), Influence(n, *(groups.power_sums(statistics, "z", powers) * share).tolist())


def _grouped_square(statistics: Any) -> tuple[float, Influence]:
    count, mean, spread = groups.moments(statistics, "z")
    square = spread + count * mean**2
    estimate = float(square.sum() / count.sum())
    left = (square.sum() - square) / (count.sum() - count)
    return estimate, Influence.left_out(left, groups.freedom(statistics))


@dataclass(frozen=True)
class Inside:
    """The share of the targets inside the widest interval, with its limits, and the share it states.

    A target that equals an end is neither clearly inside nor outside: a quantile q of counts, say, is valid if
    P(y < q) <= p <= P(y <= q). So intervals contain too few if they do with their ends, and too many only if they do
    without.
    """

    share: float
    low: float
    high: float
    least: float
    """Lower limit of the share between the ends."""
    stated: float

    @property
    def misses(self) -> Literal["overconfident", "underconfident"] | None:
        """Return what a share that differs from the stated one by more than chance says of the intervals."""
        if self.high < self.stated:
            return "overconfident"
        return "underconfident" if self.least > self.stated else None


def inside_widest(statistics: Any, settings: Settings, level: float) -> Inside | None:
    """The share inside the widest central interval of quantiles; None where predictions have none."""
    try:
        share = interval_coverage(statistics, settings)
    except Undefined:
        return None
    levels = sorted(statistics.facts["levels"])
    within, between = _counts(statistics, levels)
    least = _limits(statistics, between, level)[0]
    return Inside(share, *_limits(statistics, within, level), least, levels[-1] - levels[0])


def _counts(statistics: Any, levels: list[float]) -> tuple[FloatArray, FloatArray]:
    """Targets of each group (or all) inside the interval, with its ends and without.

    The PIT of a target between two quantiles is spread over their levels, that of a target equal to a quantile over
    the levels around it.
    """
    total = statistics.n if statistics.groups is None else statistics.groups.sizes_by_weight
    below, most = _up_to(statistics, HIGH, [(levels[0] + levels[1]) / 2, (levels[-1] + 1) / 2])
    low, inner = _up_to(statistics, LOW, [levels[0] / 2, (levels[-2] + levels[-1]) / 2])
    return inner - below, np.clip(most - low, 0, total)


def _up_to(statistics: Any, order: str, places: list[float]) -> FloatArray:
    """Targets with an end of the PIT up to each place: of each group, or all; shape (places, groups)."""
    score = special.ndtri(places)
    if statistics.groups is None:
        return np.asarray(statistics.orders[order].position(score), dtype=np.float64)[:, None]
    table = statistics.groups.orders[order]
    at = groups.whole(table, order, statistics.groups.bits).position(score)
    return groups.sums_below(table, "count", at).T


def _limits(statistics: Any, inside: FloatArray, level: float) -> Range:
    if statistics.groups is None:
        count = statistics.n_effective
        return share_limits(float(inside[0]) / statistics.n * count, count, level)
    sizes = statistics.groups.sizes_by_weight
    left = (inside.sum() - inside) / (sizes.sum() - sizes)
    influence = Influence.left_out(left, groups.freedom(statistics))
    return effective_share_limits(inside.sum() / sizes.sum(), influence, len(sizes), level)
