"""Whether the stated uncertainty holds: coverage, quantiles, bins and standardized errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from uq_tracking.families import FloatArray, family_of
from uq_tracking.metrics.forms import central_share, form_score, largest_pit_gap
from uq_tracking.metrics.intermediate import intermediate
from uq_tracking.metrics.registry import NeedsGroups, Undefined, metric, require_squares
from uq_tracking.metrics.scoring import LEVELS, require_density, require_variance
from uq_tracking.settings import Settings
from uq_tracking.statistics.distribution import expected_below, is_distribution
from uq_tracking.statistics.orders import Order
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import equal_edges

PROPORTIONS = np.linspace(0, 1, 100)
"""Grid of ``mace``, ``rmsce`` and ``miscalibration_area``, both ends included."""

PIT_STEPS = 1 << 12
"""Ranges of buckets that ``pit_ks`` examines together."""

PIT_PARTS = 16
"""Parts into which it splits a range."""


def coverage_at(statistics: Statistics, settings: Settings, levels: FloatArray) -> FloatArray:
    """Share of the samples inside the central interval of each level, ends included."""
    if is_distribution(statistics):
        return central_share(statistics, levels)
    half = family_of(settings).central(levels)
    order = statistics.orders["z"]
    return np.minimum((order.position(half) - order.position(-half, side="left")) / statistics.n, 1.0)


def quantile_shares(statistics: Statistics, settings: Settings, levels: FloatArray) -> FloatArray:
    """Share of the samples with ``F(y) <= p`` for each level p."""
    if is_distribution(statistics):
        return expected_below(statistics, levels) / statistics.n
    below = statistics.orders["z"].position(family_of(settings).quantile(levels))
    return np.minimum(below / statistics.n, 1.0)


def coverage(statistics: Statistics, settings: Settings, level: float) -> float:
    """Share of the targets inside the central interval.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score("coverage_50"), example_score("coverage_90"), example_score("coverage_95")]
    [0.416667, 1.0, 1.0]
    """
    if statistics.facts.get("distribution") in ("quantiles", "interval"):
        return form_score(statistics, f"inside_{round(100 * level)}")
    return float(coverage_at(statistics, settings, np.asarray([level]))[0])


for percent in (50, 90, 95):
    metric(
        f"coverage_{percent}",
        family="calibration",
        direction=percent / 100,
        summary=f"Share of the targets inside the central {percent} % interval",
        formula=f"share of |z| <= Q({(1 + percent / 100) / 2:g})",
        source="MeRCI 2018 eq. 2",
        bounds=(0, 1),
        headline=percent == 95,
        glance=f"want {percent / 100:g}",
        arguments={"level": percent / 100},
        share=True,
        in_curves=percent == 95,
    )(coverage)


@metric(
    "interval_width_95",
    family="calibration",
    direction=None,
    unit="target",
    summary="Mean width of the central 95 % interval",
    formula="mean 2 Q(.975) s",
    source="Gustafsson 2020, released scripts (length)",
    bounds=(0, math.inf),
)
def interval_width_95(statistics: Statistics, settings: Settings) -> float:
    """Mean width of the central 95 % interval.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("interval_width_95")
    1.37197
    """
    if is_distribution(statistics):
        return form_score(statistics, "interval_width_95")
    return 2 * float(family_of(settings).central(0.95)) * statistics.moments["std"].mean


@intermediate
def coverage_gaps(statistics: Statistics, settings: Settings) -> FloatArray:
    """Coverage minus level for the levels .01 ... .99."""
    return coverage_at(statistics, settings, LEVELS) - LEVELS


@metric(
    "auce",
    family="calibration",
    direction="lower",
    summary="Area under the coverage error",
    formula="trapezoid of |coverage(p) - p| over p = .01 ... .99",
    source="Gustafsson 2020 section 4.2",
    bounds=(0, 1),
    floor=True,
    of_levels=True,
    in_curves=True,
)
def auce(statistics: Statistics, settings: Settings) -> float:
    """Area under the absolute coverage error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auce")
    0.150967
    """
    return float(np.trapezoid(np.abs(coverage_gaps(statistics, settings)), LEVELS))


@metric(
    "auce_over",
    family="calibration",
    direction="lower",
    summary="Part of AUCE from intervals that cover too little (overconfident)",
    formula="trapezoid of (p - coverage(p))+",
    source="Gustafsson 2020, released scripts (negative error)",
    bounds=(0, 1),
    floor=True,
    of_levels=True,
)
def auce_over(statistics: Statistics, settings: Settings) -> float:
    """The part of ``auce`` where intervals cover too little.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auce_over")
    0.133817
    """
    return float(np.trapezoid(np.maximum(-coverage_gaps(statistics, settings), 0), LEVELS))


@metric(
    "auce_under",
    family="calibration",
    direction="lower",
    summary="Part of AUCE from intervals that cover too much (underconfident)",
    formula="trapezoid of (coverage(p) - p)+",
    source="Gustafsson 2020, released scripts (positive error)",
    bounds=(0, 1),
    floor=True,
    of_levels=True,
)
def auce_under(statistics: Statistics, settings: Settings) -> float:
    """The part of ``auce`` where intervals cover too much.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auce_under")
    0.01715
    """
    return float(np.trapezoid(np.maximum(coverage_gaps(statistics, settings), 0), LEVELS))


@metric(
    "calibration_error",
    family="calibration",
    direction="lower",
    summary="Mean squared gap of quantile calibration",
    formula="mean over p = .01 ... .99 of (p - share of F(y) <= p)^2",
    source="Xiong 2024 eq. 7; Kuleshov 2018",
    bounds=(0, 1),
    headline=True,
    floor=True,
    of_levels=True,
)
def calibration_error(statistics: Statistics, settings: Settings) -> float:
    """Mean squared gap between quantile levels and the shares observed below them.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("calibration_error")
    0.00940236
    """
    return float(np.mean((LEVELS - quantile_shares(statistics, settings, LEVELS)) ** 2))


@intermediate
def _interval_gaps(statistics: Statistics, settings: Settings) -> FloatArray:
    return coverage_at(statistics, settings, PROPORTIONS) - PROPORTIONS


@metric(
    "mace",
    family="calibration",
    direction="lower",
    summary="Mean absolute calibration error of intervals",
    formula="mean over linspace(0, 1, 100) of |coverage(p) - p|",
    source="uncertainty-toolbox, interval proportions",
    bounds=(0, 1),
    floor=True,
    of_levels=True,
)
def mace(statistics: Statistics, settings: Settings) -> float:
    """Mean absolute gap between interval levels and coverage.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("mace")
    0.148207
    """
    return float(np.abs(_interval_gaps(statistics, settings)).mean())


@metric(
    "rmsce",
    family="calibration",
    direction="lower",
    summary="Root mean squared calibration error of intervals",
    formula="sqrt mean over linspace(0, 1, 100) of (coverage(p) - p)^2",
    source="uncertainty-toolbox, interval proportions",
    bounds=(0, 1),
    floor=True,
    of_levels=True,
)
def rmsce(statistics: Statistics, settings: Settings) -> float:
    """Root mean squared gap between interval levels and coverage.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("rmsce")
    0.179089
    """
    return float(np.sqrt(np.square(_interval_gaps(statistics, settings)).mean()))


@metric(
    "miscalibration_area",
    family="calibration",
    direction="lower",
    summary="Area between coverage and the diagonal",
    formula="integral of |coverage(p) - p| over the polygon on linspace(0, 1, 100)",
    source="uncertainty-toolbox, interval proportions",
    bounds=(0, 1),
    floor=True,
    of_levels=True,
)
def miscalibration_area(statistics: Statistics, settings: Settings) -> float:
    """Area between the coverage polygon and the diagonal, split exactly at crossings.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("miscalibration_area")
    0.149036
    """
    gap = _interval_gaps(statistics, settings)
    one, other = np.abs(gap[:-1]), np.abs(gap[1:])
    crossing = gap[:-1] * gap[1:] < 0
    total = one + other
    mean_height = np.where(crossing, (one**2 + other**2) / np.where(total > 0, 2 * total, 1), total / 2)
    return float(np.dot(mean_height, np.diff(PROPORTIONS)))


@metric(
    "pit_ks",
    family="calibration",
    direction="lower",
    summary="Kolmogorov-Smirnov distance of the PIT from uniform",
    formula="sup over u of |share of F(y) <= u - u|",
    source="Dawid 1984; Kolmogorov-Smirnov statistic",
    bounds=(0, 1),
    floor=True,
    of_levels=True,
)
def pit_ks(statistics: Statistics, settings: Settings) -> float:
    """Kolmogorov-Smirnov distance between F(y) and the uniform distribution.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("pit_ks")
    0.191462
    """
    if is_distribution(statistics):
        return largest_pit_gap(statistics)
    return _largest_pit_gap(statistics.orders["z"], family_of(settings).cdf)


def _largest_pit_gap(order: Order, cdf: Callable[[FloatArray], FloatArray]) -> float:
    """Largest distance of F from the steps of the empirical distribution.

    Both rise, so within a range of buckets the distance is bounded by F at one end and the step at the other: a range
    is examined in parts only if that bound exceeds what was found elsewhere.
    """
    n, size, found = order.total, order.size, 0.0
    stride = -(-size // PIT_STEPS)
    waiting = [(np.arange(0, size, stride), stride)]
    while waiting:
        first, stride = waiting.pop()
        one, other = order.steps(first), order.steps(np.minimum(first + stride, size) - 1)
        at_first, at_last = cdf(one.low), cdf(other.high)
        below, upto = (one.ends - one.count) / n, other.ends / n
        found = max(found, float((at_first - below).max()), float((upto - at_last).max()))
        first = first[np.maximum(at_last - below, upto - at_first) > found]
        if stride > 1 and len(first):
            finer = -(-stride // PIT_PARTS)
            parts = (first[:, None] + np.arange(0, stride, finer)).ravel()
            parts = parts[parts < size]
            waiting += [(parts[at : at + PIT_STEPS], finer) for at in range(0, len(parts), PIT_STEPS)]
    return found


@dataclass(frozen=True)
class Bins:
    """Equal-count bins of the samples sorted by std; equal-weight bins if samples have weights."""

    count: FloatArray
    mean_variance: FloatArray
    mean_squared_error: FloatArray
    std_low: FloatArray
    std_high: FloatArray


@intermediate
def equal_count_bins(statistics: Statistics, n_bins: int) -> Bins:
    """Bins with the sizes of ``numpy.array_split``; a tie that straddles an edge is split evenly."""
    if statistics.n < n_bins:
        raise Undefined(f"{statistics.n:g} samples cannot fill {n_bins} bins; lower n_bins")
    std, edges = statistics.moments["std"], equal_edges(statistics.n, n_bins)
    require_squares(std.low, std.high, "standard deviations")
    order, count = statistics.orders["std"], np.diff(edges).astype(float)
    return Bins(
        count,
        order.between("std2", edges) / count,
        order.between("sq_error", edges) / count,
        order.value(edges[:-1] + 1),
        order.value(edges[1:]),
    )


@metric(
    "ence",
    family="calibration",
    direction="lower",
    summary="Mean relative gap between stated and observed error, in bins of std",
    formula="mean over equal-count bins by s of |RMV - RMSE| / RMV",
    source="Levi 2019 eq. 6-8",
    bounds=(0, math.inf),
    headline=True,
    floor=True,
    needs_groups=NeedsGroups(weighted=12),
)
def ence(statistics: Statistics, settings: Settings) -> float:
    """Expected normalized calibration error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ence")
    0.216953
    """
    require_variance(statistics, settings)
    bins = equal_count_bins(statistics, settings.n_bins)
    if np.any(bins.mean_variance <= 0):
        raise Undefined(
            "a bin's standard deviations are all 0, so its error cannot be normalized; set std_floor"
        )
    rmv, rmse = np.sqrt(bins.mean_variance), np.sqrt(bins.mean_squared_error)
    return float(np.mean(np.abs(rmv - rmse) / rmv))


@metric(
    "uce",
    family="calibration",
    direction="lower",
    unit="target^2",
    summary="Mean gap between stated and observed variance, in bins of std",
    formula="sum over the bins of ENCE of N_b/N |MSE_b - MV_b|",
    source="Laves 2020 eq. 10",
    bounds=(0, math.inf),
    floor=True,
    needs_groups=NeedsGroups(equal=25, weighted=25),
)
def uce(statistics: Statistics, settings: Settings) -> float:
    """Uncertainty calibration error: mean gap between squared error and variance over the bins.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("uce")
    0.0575
    """
    require_variance(statistics, settings)
    bins = equal_count_bins(statistics, settings.n_bins)
    gap = np.abs(bins.mean_squared_error - bins.mean_variance)
    return float(np.dot(bins.count, gap) / statistics.n)


@metric(
    "z_mean",
    family="calibration",
    direction=0.0,
    summary="Mean of the standardized errors",
    formula="mean z",
)
def z_mean(statistics: Statistics, settings: Settings) -> float:
    """Mean of the standardized errors.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("z_mean")
    0.0861111
    """
    require_density(statistics)
    return statistics.moments["z"].mean


@metric(
    "z_std",
    family="calibration",
    direction=1.0,
    summary="Spread of the standardized errors",
    formula="population std of z",
    bounds=(0, math.inf),
    headline=True,
    glance=">1 is too sure",
    squares=True,
)
def z_std(statistics: Statistics, settings: Settings) -> float:
    """Population standard deviation of the standardized errors.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("z_std")
    0.962968
    """
    require_variance(statistics, settings)
    require_density(statistics)
    if statistics.facts.get("distribution") == "draws" and statistics.moments["size"].low <= 3:
        raise Undefined("the std of three or fewer draws varies so much that z has no variance; see crps")
    return math.sqrt(statistics.moments["z"].variance())
