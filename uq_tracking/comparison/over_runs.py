"""Differences of mean scores over runs (seeds, folds), for one pair of methods or for all pairs jointly.

Welch's t for a pair. Jointly, the largest studentised difference of all pairs is compared with the studentised range,
each pair with its own degrees of freedom (Games and Howell 1976, Journal of Educational Statistics 1, 113), because
methods vary unequally from run to run. Intervals that are not of runs are widened in the same proportion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import variance

import numpy as np
from scipy import special

from uq_tracking.statistics.orders import FloatArray

Range = tuple[float, float]
DRAWS = 50_000
"""Number of simulated ranges; their 95 % point is then known to 1 %, with a single degree of freedom to 4 %."""
FREEDOMS = np.geomspace(1, 200, 24)
"""Degrees of freedom for which ranges are simulated."""
MOSTLY = 0.8
"""A difference is found mostly if it is in this share of cases."""


def welch(one: Sequence[float], other: Sequence[float], level: float, methods: int = 2) -> Range:
    """Interval of a difference of means, jointly for all pairs of ``methods``; the difference if neither varies.

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
    """What the largest studentised difference of equal methods exceeds in ``1 - level`` of cases."""
    if methods == 2:
        return np.asarray(special.stdtrit(freedom, (1 + level) / 2))
    logs = np.interp(np.log(freedom), np.log(FREEDOMS), _largest_ranges(methods, level))
    return np.asarray(np.exp(logs))


def joint_factor(methods: int, level: float) -> float:
    """How many times wider intervals of all pairs of methods jointly are than that of one, with many groups.

    >>> [round(joint_factor(methods, 0.95), 2) for methods in (2, 7)]
    [1.0, 1.51]
    """
    many = np.asarray(FREEDOMS[-1])
    return float(largest_by_chance(methods, many, level) / largest_by_chance(2, many, level))


@lru_cache(maxsize=32)
def _largest_ranges(methods: int, level: float) -> FloatArray:
    """Logarithm of the same for some degrees of freedom, by simulation, as the integral takes seconds."""
    rng = np.random.default_rng(0)
    ranges = np.ptp(rng.normal(size=(DRAWS, methods)), axis=1) / math.sqrt(2)
    spreads = (np.sqrt(rng.standard_gamma(freedom / 2, DRAWS) * 2 / freedom) for freedom in FREEDOMS)
    return np.log([np.quantile(ranges / spread, level) for spread in spreads])


@lru_cache(maxsize=32)
def found_mostly(runs: int, level: float, methods: int) -> float:
    """The difference of two of so many methods, of so many runs each, that is found in 80 % of cases.

    In standard deviations of the runs, by simulation of normal runs that vary alike.

    >>> [round(found_mostly(runs, 0.95, 2), 1) for runs in (3, 5, 10)]
    [3.5, 2.1, 1.3]
    """
    one, other = np.random.default_rng(0).normal(size=(2, DRAWS, runs))
    a, b = (values.var(axis=1, ddof=1) / runs for values in (one, other))
    freedom = (a + b) ** 2 / ((a**2 + b**2) / (runs - 1))
    half = largest_by_chance(methods, freedom, level) * np.sqrt(a + b)
    return float(np.quantile(half + one.mean(axis=1) - other.mean(axis=1), MOSTLY))
