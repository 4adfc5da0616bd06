"""What the literal formulas share: exact sums, the standard normal, ties, bins and order statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

Floats = Sequence[float]

LEVELS = [i / 100 for i in range(1, 100)]
"""The 99 levels .01, .02 ... .99."""


LITERAL: dict[str, Callable[..., float]] = {}
"""Scores of the regression suite as functions of (y, mu, s), by key."""
LITERAL_CURVES: dict[str, Callable[..., dict[str, list[float]]]] = {}
"""Its curves, by name: columns of numbers."""


def literal(function: Callable[..., float]) -> Callable[..., float]:
    """Enter the function into the table of scores, under its own name."""
    LITERAL[function.__name__] = function
    return function


def literal_curve(function: Callable[..., dict[str, list[float]]]) -> Callable[..., dict[str, list[float]]]:
    """Enter the function into the table of curves, under its own name."""
    LITERAL_CURVES[function.__name__] = function
    return function


class UndefinedScoreError(ValueError):
    """The formula has no value for this input; the message says why."""


def mean(values: Floats) -> float:
    """Return the correctly rounded sum divided by the count."""
    return math.fsum(values) / len(values)


def phi(z: float) -> float:
    """Density of the standard normal."""
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def Phi(z: float) -> float:
    """Distribution function of the standard normal; 0 and 1 at minus and plus infinity."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def quantile(p: float) -> float:
    """Quantile of the standard normal, infinite at 0 and 1."""
    if p <= 0.0:
        return -math.inf
    if p >= 1.0:
        return math.inf
    return NormalDist().inv_cdf(p)


def central(p: float) -> float:
    """Half width, in standard deviations, of the central interval of level p."""
    return quantile((1.0 + p) / 2.0) if p > 0.0 else 0.0


def errors(y: Floats, mu: Floats) -> list[float]:
    """e = y - mu."""
    return [float(a) - float(b) for a, b in zip(y, mu, strict=True)]


def standardized(y: Floats, mu: Floats, s: Floats) -> list[float]:
    """z = e / s; where s is 0, z is 0 for a right prediction and infinite for a wrong one."""
    return [
        e / float(d) if d > 0 else math.copysign(math.inf, e) if e else 0.0
        for e, d in zip(errors(y, mu), s, strict=True)
    ]


def positive(s: Floats, what: str) -> list[float]:
    """Return s, which a density needs to be positive."""
    if any(d == 0 for d in s):
        raise UndefinedScoreError(f"{what}: a standard deviation of 0 has no density")
    return [float(d) for d in s]


def divided(numerator: float, denominator: float, what: str) -> float:
    """Return the ratio, which a zero denominator leaves undefined."""
    if denominator == 0.0:
        raise UndefinedScoreError(f"{what} is 0")
    return numerator / denominator


def in_expected_order(key: Floats, payload: Floats) -> list[float]:
    """Payload in increasing order of key, each tied group replaced by its mean.

    In a uniformly random order inside a tied group every place of the group is taken by each member equally
    often, so the expected payload at that place is the group's mean, and the expected cumulative sum is
    linear inside the group.
    """
    groups: dict[float, list[float]] = {}
    for k, p in zip(key, payload, strict=True):
        groups.setdefault(float(k), []).append(float(p))
    ordered = []
    for k in sorted(groups):
        ordered += [mean(groups[k])] * len(groups[k])
    return ordered


def equal_count_bins(n: int, n_bins: int) -> list[range]:
    """Consecutive ranges whose sizes differ by one at most, the larger ones first."""
    small, larger = divmod(n, n_bins)
    bins, start = [], 0
    for b in range(n_bins):
        stop = start + small + (1 if b < larger else 0)
        bins.append(range(start, stop))
        start = stop
    return bins


def kept(n: int, percent_removed: int) -> int:
    """How many samples are left when the given per cent of them has been removed, at least one."""
    return max(1, n * (100 - percent_removed) // 100)


def order_statistic(values: Floats, share: float) -> float:
    """The ceil(share * N)-th smallest value, with the share read as the decimal number it is printed as."""
    place = math.ceil(Fraction(str(float(share))) * len(values))
    return sorted(values)[max(place, 1) - 1]


def trapezoid(heights: Floats, step: float) -> float:
    """Trapezoid rule on an even grid."""
    return math.fsum((a + b) / 2.0 * step for a, b in pairwise(heights))
