"""Calibration: coverage, quantiles, bins and standardized errors."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from uq_tracking.families import family_of
from uq_tracking.inputs.forms import form_of
from uq_tracking.metrics.gaps import COVERAGE, ERROR, PROPORTION, QUANTILE, VARIANCE, Reduction, coverage_at
from uq_tracking.metrics.other_forms import form_score, largest_pit_gap
from uq_tracking.metrics.proper_scores import require_density, require_variance
from uq_tracking.metrics.registry import NeedsGroups, Undefined, metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import Block
from uq_tracking.statistics.regression import PERCENT, is_distribution
from uq_tracking.statistics.statistics import Statistics


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


for percent in PERCENT:
    metric(
        f"coverage_{percent}",
        family="calibration",
        direction=percent / 100,
        summary=f"Share of the targets inside the central {percent} % interval",
        formula=f"share of |z| <= Q({(1 + percent / 100) / 2:g})",
        source="MeRCI 2018 eq. 2",
        bounds=(0, 1),
        headline=percent == 95,
        instead_of="coverage_95" if percent < 95 else "",
        glance=f"want {percent / 100:g}",
        arguments={"level": percent / 100},
        share=True,
        in_curves=percent == 95,
        means=(f"inside_{percent}",),
    )(coverage)


@metric(
    family="calibration",
    direction=None,
    unit="target",
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
    formula="trapezoid of |coverage(p) - p| over p = .01 ... .99",
    source="Gustafsson 2020 section 4.2",
    gap=COVERAGE,
    reduction=Reduction("absolute", over="area"),
    in_curves=True,
)
def auce() -> None:
    """Area under the coverage error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auce")
    0.150967
    """


@of_shares(
    formula="trapezoid of (p - coverage(p))+",
    source="Gustafsson 2020, released scripts (negative error)",
    gap=COVERAGE,
    reduction=Reduction("absolute", over="area", side=-1),
)
def auce_over() -> None:
    """Part of AUCE from intervals that cover too little (overconfident).

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auce_over")
    0.133817
    """


@of_shares(
    formula="trapezoid of (coverage(p) - p)+",
    source="Gustafsson 2020, released scripts (positive error)",
    gap=COVERAGE,
    reduction=Reduction("absolute", over="area", side=1),
)
def auce_under() -> None:
    """Part of AUCE from intervals that cover too much (underconfident).

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auce_under")
    0.01715
    """


@of_shares(
    formula="mean over p = .01 ... .99 of (p - share of F(y) <= p)^2",
    source="Xiong 2024 eq. 7; Kuleshov 2018",
    headline=True,
    gap=QUANTILE,
    reduction=Reduction("square"),
)
def calibration_error() -> None:
    """Mean squared gap of quantile calibration.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("calibration_error")
    0.00940236
    """


@of_shares(
    formula="mean over linspace(0, 1, 100) of |coverage(p) - p|",
    source="uncertainty-toolbox, interval proportions",
    gap=PROPORTION,
    reduction=Reduction("absolute"),
)
def mace() -> None:
    """Mean absolute calibration error of intervals.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("mace")
    0.148207
    """


@of_shares(
    formula="sqrt mean over linspace(0, 1, 100) of (coverage(p) - p)^2",
    source="uncertainty-toolbox, interval proportions",
    gap=PROPORTION,
    reduction=Reduction("root"),
)
def rmsce() -> None:
    """Root mean squared calibration error of intervals.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("rmsce")
    0.179089
    """


@of_shares(
    formula="integral of |coverage(p) - p| over the polygon on linspace(0, 1, 100)",
    source="uncertainty-toolbox, interval proportions",
    gap=PROPORTION,
    reduction=Reduction("absolute", over="polygon"),
)
def miscalibration_area() -> None:
    """Area between coverage and the diagonal.

    The polygon of coverage is split exactly where it crosses the diagonal.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("miscalibration_area")
    0.149036
    """


@of_shares(
    formula="sup over u of |share of F(y) <= u - u|",
    source="Dawid 1984; Kolmogorov-Smirnov statistic",
    gap=QUANTILE,
    reduction=Reduction("supremum"),
)
def pit_ks(statistics: Statistics, settings: Settings) -> float:
    """Kolmogorov-Smirnov distance of the PIT from uniform.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("pit_ks")
    0.191462
    """
    if is_distribution(statistics):
        return largest_pit_gap(statistics)
    order, cdf = statistics.orders["z"], family_of(settings).cdf

    def within(block: Block) -> float:
        below, upto = (block.ends - block.count) / order.total, block.ends / order.total
        return float(max((cdf(block.low) - below).max(), (upto - cdf(block.high)).max()))

    return max(0.0, *order.map_blocks(within, (), "free"))


of_bins = partial(metric, family="calibration", direction="lower", bounds=(0, math.inf))
"""Declares a calibration score of bins by std."""


@of_bins(
    formula="mean over equal-count bins by s of |RMV - RMSE| / RMV",
    source="Levi 2019 eq. 6-8",
    headline=True,
    gap=ERROR,
    reduction=Reduction("absolute"),
    needs_groups=NeedsGroups(weighted=12),
)
def ence() -> None:
    """Mean relative gap between stated and observed error, in bins of std.

    Expected normalized calibration error (ENCE).

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ence")
    0.216953
    """


@of_bins(
    unit="target^2",
    formula="sum over the bins of ENCE of N_b/N |MSE_b - MV_b|",
    source="Laves 2020 eq. 10",
    gap=VARIANCE,
    reduction=Reduction("absolute", over="samples"),
    needs_groups=NeedsGroups(equal=25, weighted=25),
)
def uce() -> None:
    """Mean gap between stated and observed variance, in bins of std.

    Uncertainty calibration error (UCE).

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("uce")
    0.0575
    """


def _spread(mean: float, mean_of_squares: float) -> float:
    """Return the standard deviation."""
    return math.sqrt(max(mean_of_squares - mean * mean, 0.0))


@metric(
    family="calibration",
    direction=0.0,
    formula="mean z",
    means=("z",),
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
    family="calibration",
    direction=1.0,
    formula="population std of z",
    bounds=(0, math.inf),
    headline=True,
    glance=">1 is too sure",
    squares=True,
    means=("z", "z2"),
    of_means=_spread,
)
def z_std(statistics: Statistics, settings: Settings) -> float:
    """Spread of the standardized errors.

    Their population standard deviation.

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
