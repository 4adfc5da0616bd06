"""Differences between methods, with intervals: which methods the data can distinguish.

The first of three ways that the runs allow:

* **over runs**: both methods have three or more runs (seeds, folds). Welch's interval of the difference of means; it
  is about the methods on this test set. Also used with two runs if groups are not known.
* **paired groups**: the runs stored statistics of the same groups (images, scenes) of the same data; sets of groups
  are left out for both together, so what is hard for both cancels. It is about these runs on such data.
* **from the intervals**: single runs whose reports hold confidence intervals, combined as if they were
  independent (MOVER: Zou and Donner 2008, Statistics in Medicine 27, 1693). Methods scored on the same data tend to
  err together, so this is wider than a paired interval.

Each interval is for one difference. Ties with the best are decided for all pairs jointly: the largest studentised
difference of all pairs is compared with the studentised range, each pair with its own degrees of freedom (Games and
Howell 1976, Journal of Educational Statistics 1, 113), because methods vary unequally from run to run. Intervals that
are not of runs are widened in the same proportion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, variance
from typing import Literal

import numpy as np
from scipy import special

from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.inference.paired import relative_change
from uq_tracking.metrics.registry import Metric
from uq_tracking.statistics.orders import FloatArray

How = Literal["paired groups", "over runs", "from the intervals", "none"]
Verdict = Literal["better", "worse", "indistinguishable", "unknown"]

Range = tuple[float, float]

ROUNDING = 1e-12
"""Differences up to this share of the losses are rounding: they count as 0."""
DRAWS = 50_000
"""Number of simulated ranges; their 95 % point is then known to 1 %, with a single degree of freedom to 4 %."""
FREEDOMS = np.geomspace(1, 200, 24)
"""Degrees of freedom for which ranges are simulated."""
MOSTLY = 0.8
"""A difference is found mostly if it is in this share of cases."""


@dataclass(frozen=True)
class Difference:
    """One metric of a method minus that of a reference.

    Attributes
    ----------
    method, reference, metric : str
    value : float
        Difference of the means over runs; for a metric with a target value, difference of the distances to it.
    interval : (float, float) or None
        Confidence interval; None if the runs allow none.
    how : str
        How the interval was obtained.
    verdict : {"better", "worse", "indistinguishable", "unknown"}
        What the interval says about the method; "unknown" without one.
    effect : float or None
        Cohen's d: ``value`` over the standard deviation of the groups' differences, or over the root of the mean
        variance of the two methods' runs; None if neither is known, or it is 0.
    relative : float or None
        ``value`` relative to the reference's mean; None if the metric has no natural zero.
    """

    method: str
    reference: str
    metric: str
    value: float
    interval: Range | None
    how: How
    verdict: Verdict
    effect: float | None = None
    relative: float | None = None


def difference(
    one: Sequence[ScoredRun],
    other: Sequence[ScoredRun],
    metric: Metric,
    level: float,
    paired: tuple[Range, float | None] | None = None,
    methods: int = 2,
) -> Difference | None:
    """Return the difference of two methods in one metric; None if either has no value, or an infinite one.

    ``paired`` is the interval and effect size of the difference over groups, if known. With more than two
    ``methods``, the interval is one of all pairs of these, which contain the true values jointly.
    """
    mine, theirs = _losses(one, metric), _losses(other, metric)
    if not mine or not theirs or not all(map(math.isfinite, (*mine, *theirs))):
        return None
    means = [fmean(mine), fmean(theirs)]
    value = means[0] - means[1]
    interval, how = _interval(one, other, metric, level, None if paired is None else paired[0], methods)
    effect = cohens_d(mine, theirs) if how == "over runs" else None
    if how == "paired groups" and paired is not None:
        effect = paired[1]
    if max(map(abs, (value, *(interval or ())))) <= ROUNDING * max(map(abs, means)):
        value, interval = 0.0, None if interval is None else (0.0, 0.0)
        effect = None if effect is None else 0.0
    verdict = _verdict(interval)
    if metric.direction == "higher":
        value, interval = -value, None if interval is None else (-interval[1], -interval[0])
        effect = None if effect is None else -effect
    relative = relative_change(metric, *means)
    names = one[0].method, other[0].method
    return Difference(*names, metric.key, value, interval, how, verdict, effect, relative)


def _losses(runs: Sequence[ScoredRun], metric: Metric) -> list[float]:
    return [metric.loss(value) for run in runs if (value := run.score(metric)) is not None]


def _verdict(interval: Range | None) -> Verdict:
    """Return what an interval of a difference of losses says."""
    if interval is None:
        return "unknown"
    low, high = interval
    if low == high == 0:
        return "indistinguishable"
    return "better" if high < 0 else "worse" if low > 0 else "indistinguishable"


def _interval(
    one: Sequence[ScoredRun],
    other: Sequence[ScoredRun],
    metric: Metric,
    level: float,
    paired: Range | None,
    methods: int,
) -> tuple[Range | None, How]:
    mine, theirs = _losses(one, metric), _losses(other, metric)
    runs = min(len(mine), len(theirs))
    if runs > 2 or (runs == 2 and paired is None):
        return welch(mine, theirs, level, methods), "over runs"
    if paired is not None:
        return paired, "paired groups"
    if len(mine) == len(theirs) == 1:
        ranges = [_loss_range(runs, metric) for runs in (one, other)]
        if ranges[0] is not None and ranges[1] is not None:
            wider = joint_factor(methods, level)
            return mover(mine[0], ranges[0], theirs[0], ranges[1], wider), "from the intervals"
    return None, "none"


def cohens_d(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the difference of means over the root of the mean variance; None if nothing varies.

    >>> cohens_d([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    -1.0
    """
    spread = math.sqrt((variance(one) + variance(other)) / 2)
    return (math.fsum(one) / len(one) - math.fsum(other) / len(other)) / spread if spread > 0 else None


def mover(one: float, of_one: Range, other: float, of_other: Range, wider: float = 1.0) -> Range:
    """Return the interval of a difference from the intervals of its parts, assumed independent, that much wider."""
    gap = one - other
    below = math.hypot(one - of_one[0], of_other[1] - other)
    above = math.hypot(of_one[1] - one, other - of_other[0])
    return gap - wider * below, gap + wider * above


def _loss_range(runs: Sequence[ScoredRun], metric: Metric) -> Range | None:
    """Return the report's interval, transformed like the loss."""
    run = next(run for run in runs if metric.key in run.report.scores)
    interval = run.report.intervals.get(metric.key)
    if interval is None:
        return None
    ends = sorted(metric.loss(end) for end in interval)
    if isinstance(metric.direction, float) and interval[0] <= metric.direction <= interval[1]:
        ends[0] = 0.0
    return ends[0], ends[1]


def welch(one: Sequence[float], other: Sequence[float], level: float, methods: int = 2) -> Range:
    """Return Welch's interval of a difference of means, jointly for all pairs of ``methods``; a point if none varies.

    >>> low, high = welch([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 0.95)
    >>> round(low, 3), round(high, 3)
    (-3.267, 1.267)
    """
    gap = math.fsum(one) / len(one) - math.fsum(other) / len(other)
    a, b = (variance(values) / len(values) for values in (one, other))
    if a + b == 0:
        return gap, gap
    freedom = (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(other) - 1))
    half = float(largest_by_chance(methods, np.asarray(freedom), level)) * math.sqrt(a + b)
    return gap - half, gap + half


def largest_by_chance(methods: int, freedom: FloatArray, level: float) -> FloatArray:
    """Return what the largest studentised difference of equal methods exceeds in ``1 - level`` of cases."""
    if methods == 2:
        return np.asarray(special.stdtrit(freedom, (1 + level) / 2))
    logs = np.interp(np.log(freedom), np.log(FREEDOMS), _largest_ranges(methods, level))
    return np.asarray(np.exp(logs))


def joint_factor(methods: int, level: float) -> float:
    """Return how many times wider joint intervals of all pairs of methods are than that of one, with many groups.

    >>> [round(joint_factor(methods, 0.95), 2) for methods in (2, 7)]
    [1.0, 1.51]
    """
    many = np.asarray(FREEDOMS[-1])
    return float(largest_by_chance(methods, many, level) / largest_by_chance(2, many, level))


@lru_cache(maxsize=32)
def _largest_ranges(methods: int, level: float) -> FloatArray:
    """Return the logarithm of the same for each of FREEDOMS, by simulation, as the integral takes seconds."""
    rng = np.random.default_rng(0)
    ranges = np.ptp(rng.normal(size=(DRAWS, methods)), axis=1) / math.sqrt(2)
    spreads = (np.sqrt(rng.standard_gamma(freedom / 2, DRAWS) * 2 / freedom) for freedom in FREEDOMS)
    return np.log([np.quantile(ranges / spread, level) for spread in spreads])


@lru_cache(maxsize=32)
def found_mostly(runs: int, level: float, methods: int) -> float:
    """Return the difference of two of so many methods, of so many runs each, that is found in 80 % of cases.

    In standard deviations of the runs, by simulation of normal runs that vary alike.

    >>> [round(found_mostly(runs, 0.95, 2), 1) for runs in (3, 5, 10)]
    [3.5, 2.1, 1.3]
    """
    one, other = np.random.default_rng(0).normal(size=(2, DRAWS, runs))
    a, b = (values.var(axis=1, ddof=1) / runs for values in (one, other))
    freedom = (a + b) ** 2 / ((a**2 + b**2) / (runs - 1))
    half = largest_by_chance(methods, freedom, level) * np.sqrt(a + b)
    return float(np.quantile(half + one.mean(axis=1) - other.mean(axis=1), MOSTLY))
