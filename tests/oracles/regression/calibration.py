"""Whether the stated uncertainty comes true, from the definitions."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

from ..literal import (
    LEVELS,
    LITERAL,
    Floats,
    Phi,
    UndefinedScoreError,
    central,
    divided,
    equal_count_bins,
    errors,
    in_expected_order,
    literal,
    mean,
    positive,
    quantile,
    standardized,
    trapezoid,
)


def share_inside(z: Floats, p: float) -> float:
    """Share of targets inside the central interval of level p, its ends included."""
    k = central(p)
    return sum(1 for v in z if abs(v) <= k) / len(z)


def share_below(z: Floats, p: float) -> float:
    """Share of targets at or below the predicted quantile of level p."""
    k = quantile(p)
    return sum(1 for v in z if v <= k) / len(z)


def coverage(y: Floats, mu: Floats, s: Floats, p: float = 0.95) -> float:
    return share_inside(standardized(y, mu, s), p)


@literal
def interval_width_95(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([2.0 * central(0.95) * float(d) for d in s])


@literal
def auce(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardized(y, mu, s)
    return trapezoid([abs(share_inside(z, p) - p) for p in LEVELS], 0.01)


@literal
def auce_over(y: Floats, mu: Floats, s: Floats) -> float:
    """The part where the intervals cover too little."""
    z = standardized(y, mu, s)
    return trapezoid([max(0.0, p - share_inside(z, p)) for p in LEVELS], 0.01)


@literal
def auce_under(y: Floats, mu: Floats, s: Floats) -> float:
    """The part where the intervals cover too much."""
    z = standardized(y, mu, s)
    return trapezoid([max(0.0, share_inside(z, p) - p) for p in LEVELS], 0.01)


@literal
def calibration_error(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardized(y, mu, s)
    return mean([(p - share_below(z, p)) ** 2 for p in LEVELS])


HUNDRED_LEVELS = [i / 99 for i in range(100)]


@literal
def mace(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardized(y, mu, s)
    return mean([abs(share_inside(z, p) - p) for p in HUNDRED_LEVELS])


@literal
def rmsce(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardized(y, mu, s)
    return math.sqrt(mean([(share_inside(z, p) - p) ** 2 for p in HUNDRED_LEVELS]))


@literal
def miscalibration_area(y: Floats, mu: Floats, s: Floats) -> float:
    """Area between the observed proportions, joined by straight lines, and the diagonal."""
    z = standardized(y, mu, s)
    gaps = [share_inside(z, p) - p for p in HUNDRED_LEVELS]
    area = []
    for left, right in pairwise(gaps):
        if left * right < 0.0:  # the lines cross: two triangles
            crossing = left / (left - right)
            area.append((abs(left) * crossing + abs(right) * (1.0 - crossing)) / 2.0 / 99.0)
        else:
            area.append((abs(left) + abs(right)) / 2.0 / 99.0)
    return math.fsum(area)


@literal
def pit_ks(y: Floats, mu: Floats, s: Floats) -> float:
    u = sorted(Phi(v) for v in standardized(y, mu, s))
    n = len(u)
    return max(max((i + 1) / n - v, v - i / n) for i, v in enumerate(u))


def binned(y: Floats, mu: Floats, s: Floats, n_bins: int) -> list[tuple[float, float, int, float, float]]:
    """(mean variance, mean squared error, count, least s, greatest s) of each equal-count bin."""
    n = len(s)
    if n < n_bins:
        raise UndefinedScoreError(f"{n} samples do not fill {n_bins} bins")
    variance = in_expected_order(s, [float(d) ** 2 for d in s])
    squared = in_expected_order(s, [e * e for e in errors(y, mu)])
    ordered = sorted(float(d) for d in s)
    return [
        (
            mean([variance[i] for i in b]),
            mean([squared[i] for i in b]),
            len(b),
            ordered[b[0]],
            ordered[b[-1]],
        )
        for b in equal_count_bins(n, n_bins)
    ]


@literal
def ence(y: Floats, mu: Floats, s: Floats, n_bins: int = 10) -> float:
    terms = []
    for variance, squared, _, _, _ in binned(y, mu, s, n_bins):
        rmv, rms = math.sqrt(variance), math.sqrt(squared)
        terms.append(divided(abs(rmv - rms), rmv, "the mean variance of a bin"))
    return mean(terms)


@literal
def uce(y: Floats, mu: Floats, s: Floats, n_bins: int = 10) -> float:
    return math.fsum(
        count / len(s) * abs(squared - variance)
        for variance, squared, count, _, _ in binned(y, mu, s, n_bins)
    )


@literal
def z_mean(y: Floats, mu: Floats, s: Floats) -> float:
    return mean(standardized(y, mu, positive(s, "z_mean")))


@literal
def z_std(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardized(y, mu, positive(s, "z_std"))
    centre = mean(z)
    return math.sqrt(mean([(v - centre) ** 2 for v in z]))


for percent in (50, 68, 80, 90, 95):
    LITERAL[f"coverage_{percent}"] = partial(coverage, p=percent / 100)
