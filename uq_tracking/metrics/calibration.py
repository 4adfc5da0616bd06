"""Calibration: coverage, quantiles, bins and standardized errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from uq_tracking.families import FloatArray, family_of
from uq_tracking.inputs.forms import form_of
from uq_tracking.metrics.forms import form_score, largest_pit_gap
from uq_tracking.metrics.gaps import COVERAGE, ERROR, PROPORTION, QUANTILE, VARIANCE, Reduction, coverage_at
from uq_tracking.metrics.registry import NeedsGroups, Undefined, metric
from uq_tracking.metrics.scoring import require_density, require_variance
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import Order
from uq_tracking.statistics.regression import is_distribution
from uq_tracking.statistics.statistics import Statistics

PIT_STEPS = 1 << 12
"""Ranges of buckets that ``pit_ks`` examines together."""

PIT_PARTS = 16
"""Parts into which it splits a range."""


def coverage(statistics: Statistics, settings: Settings, level: float) -> float:
    """Share of the targets inside the central interval.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score(f"coverage_{percent}") for percent in (50, 68, 80, 90, 95)]
    [0.416667, 0.416667, 0.833333, 1.0, 1.0]
    """
    if form_of(statistics.facts).is_interval:
        return form_score(statistics, f"inside_{round(100 * level)}")
    return float(coverage_at(statistics, settings, np.asarray([level]))[0])


for percent in (50, 68, 80, 90, 95):
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


of_shares = partial(metric, family="calibration", direction="lower", bounds=(0, 1), of_levels=True)
"""Declares a calibration score of shares at levels."""


@of_shares(
    "auce",
    summary="Area under the coverage error",
    formula="trapezoid of |coverage(p) - p| over p = .01 ... .99",
    source="Gustafsson 2020 section 4.2",
    gap=COVERAGE,
    reduction=Reduction("absolute", over="area"),
    in_curves=True,
)
def auce() -> None:
    """Area under the absolute coverage error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auce")
    0.150967
    """


@of_shares(
    "auce_over",
    summary="Part of AUCE from intervals that cover too little (overconfident)",
    formula="trapezoid of (p - coverage(p))+",
    source="Gustafsson 2020, released scripts (negative error)",
    gap=COVERAGE,
    reduction=Reduction("absolute", over="area", side=-1),
)
def auce_over() -> None:
    """The part of ``auce`` where intervals cover too little.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auce_over")
    0.133817
    """


@of_shares(
    "auce_under",
    summary="Part of AUCE from intervals that cover too much (underconfident)",
    formula="trapezoid of (coverage(p) - p)+",
    source="Gustafsson 2020, released scripts (positive error)",
    gap=COVERAGE,
    reduction=Reduction("absolute", over="area", side=1),
)
def auce_under() -> None:
    """The part of ``auce`` where intervals cover too much.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auce_under")
    0.01715
    """


@of_shares(
    "calibration_error",
    summary="Mean squared gap of quantile calibration",
    formula="mean over p = .01 ... .99 of (p - share of F(y) <= p)^2",
    source="Xiong 2024 eq. 7; Kuleshov 2018",
    headline=True,
    gap=QUANTILE,
    reduction=Reduction("square"),
)
def calibration_error() -> None:
    """Mean squared gap between quantile levels and the shares observed below them.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("calibration_error")
    0.00940236
    """


@of_shares(
    "mace",
    summary="Mean absolute calibration error of intervals",
    formula="mean over linspace(0, 1, 100) of |coverage(p) - p|",
    source="uncertainty-toolbox, interval proportions",
    gap=PROPORTION,
    reduction=Reduction("absolute"),
)
def mace() -> None:
    """Mean absolute gap between interval levels and coverage.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("mace")
    0.148207
    """


@of_shares(
    "rmsce",
    summary="Root mean squared calibration error of intervals",
    formula="sqrt mean over linspace(0, 1, 100) of (coverage(p) - p)^2",
    source="uncertainty-toolbox, interval proportions",
    gap=PROPORTION,
    reduction=Reduction("root"),
)
def rmsce() -> None:
    """Root mean squared gap between interval levels and coverage.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("rmsce")
    0.179089
    """


@of_shares(
    "miscalibration_area",
    summary="Area between coverage and the diagonal",
    formula="integral of |coverage(p) - p| over the polygon on linspace(0, 1, 100)",
    source="uncertainty-toolbox, interval proportions",
    gap=PROPORTION,
    reduction=Reduction("absolute", over="polygon"),
)
def miscalibration_area() -> None:
    """Area between the coverage polygon and the diagonal, split exactly at crossings.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("miscalibration_area")
    0.149036
    """


@of_shares(
    "pit_ks",
    summary="Kolmogorov-Smirnov distance of the PIT from uniform",
    formula="sup over u of |share of F(y) <= u - u|",
    source="Dawid 1984; Kolmogorov-Smirnov statistic",
    gap=QUANTILE,
    reduction=Reduction("supremum"),
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
    return _supremum(statistics.orders["z"], family_of(settings).cdf)


def _supremum(order: Order, cdf: Callable[[FloatArray], FloatArray]) -> float:
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


@metric(
    "ence",
    family="calibration",
    direction="lower",
    summary="Mean relative gap between stated and observed error, in bins of std",
    formula="mean over equal-count bins by s of |RMV - RMSE| / RMV",
    source="Levi 2019 eq. 6-8",
    bounds=(0, math.inf),
    headline=True,
    gap=ERROR,
    reduction=Reduction("absolute"),
    needs_groups=NeedsGroups(weighted=12),
)
def ence() -> None:
    """Expected normalized calibration error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ence")
    0.216953
    """


@metric(
    "uce",
    family="calibration",
    direction="lower",
    unit="target^2",
    summary="Mean gap between stated and observed variance, in bins of std",
    formula="sum over the bins of ENCE of N_b/N |MSE_b - MV_b|",
    source="Laves 2020 eq. 10",
    bounds=(0, math.inf),
    gap=VARIANCE,
    reduction=Reduction("absolute", over="samples"),
    needs_groups=NeedsGroups(equal=25, weighted=25),
)
def uce() -> None:
    """Uncertainty calibration error: mean gap between squared error and variance over the bins.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("uce")
    0.0575
    """


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
    if form_of(statistics.facts).noisy_std and statistics.moments["size"].low <= 3:
        raise Undefined("the std of three or fewer draws varies so much that z has no variance; see crps")
    return math.sqrt(statistics.moments["z"].variance())
