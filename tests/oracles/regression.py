"""Every score of the regression suite, written out from its definition over raw y, mu and s.

``LITERAL`` maps each key to a function of (y, mu, s). A function raises ``UndefinedScoreError`` where the
formula has no value. Speed is no concern here: sums are ``math.fsum`` over Python lists, and whatever lies
below a threshold is counted one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from .literal import (
    LEVELS,
    Floats,
    Phi,
    UndefinedScoreError,
    central,
    divided,
    equal_count_bins,
    errors,
    in_expected_order,
    kept,
    mean,
    order_statistic,
    phi,
    positive,
    quantile,
    standardised,
    trapezoid,
)

# --- accuracy of the mean ---


def mae(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([abs(e) for e in errors(y, mu)])


def rmse(y: Floats, mu: Floats, s: Floats) -> float:
    return math.sqrt(mean([e * e for e in errors(y, mu)]))


def trimmed_mae(y: Floats, mu: Floats, s: Floats, alpha: float = 0.95) -> float:
    a = sorted(abs(e) for e in errors(y, mu))
    return mean(a[: math.ceil(Fraction(str(alpha)) * len(a))])


def medae(y: Floats, mu: Floats, s: Floats) -> float:
    a = sorted(abs(e) for e in errors(y, mu))
    n = len(a)
    return a[n // 2] if n % 2 else (a[n // 2 - 1] + a[n // 2]) / 2.0


def bias(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([-e for e in errors(y, mu)])


def r2(y: Floats, mu: Floats, s: Floats) -> float:
    if all(t == y[0] for t in y):
        raise UndefinedScoreError("all targets are equal")
    centre = mean([float(t) for t in y])
    total = math.fsum((float(t) - centre) ** 2 for t in y)
    return 1.0 - math.fsum(e * e for e in errors(y, mu)) / total


# --- densities that share mean and standard deviation ---


def gaussian_density(e: float, s: float) -> float:
    return phi(e / s) / s


def laplace_density(e: float, s: float) -> float:
    b = s / math.sqrt(2.0)
    return math.exp(-abs(e) / b) / (2.0 * b)


def uniform_density(e: float, s: float) -> float:
    w = s * math.sqrt(3.0)
    return 1.0 / (2.0 * w) if abs(e) <= w else 0.0


def gaussian_energy(s: float) -> float:
    """Integral of the squared density."""
    return 1.0 / (2.0 * s * math.sqrt(math.pi))


def laplace_energy(s: float) -> float:
    return 1.0 / (4.0 * (s / math.sqrt(2.0)))


def uniform_energy(s: float) -> float:
    return 1.0 / (2.0 * s * math.sqrt(3.0))


DENSITIES: dict[str, tuple[Callable[[float, float], float], Callable[[float], float]]] = {
    "": (gaussian_density, gaussian_energy),
    "_laplace": (laplace_density, laplace_energy),
    "_uniform": (uniform_density, uniform_energy),
}


def nll(y: Floats, mu: Floats, s: Floats) -> float:
    s = positive(s, "nll")
    return mean(
        [
            0.5 * math.log(2.0 * math.pi) + math.log(d) + 0.5 * (e / d) ** 2
            for e, d in zip(errors(y, mu), s, strict=True)
        ]
    )


def nll_laplace(y: Floats, mu: Floats, s: Floats) -> float:
    s = positive(s, "nll_laplace")
    return mean(
        [
            math.log(2.0) + math.log(d / math.sqrt(2.0)) + abs(e) / (d / math.sqrt(2.0))
            for e, d in zip(errors(y, mu), s, strict=True)
        ]
    )


def nll_uniform(y: Floats, mu: Floats, s: Floats) -> float:
    s = positive(s, "nll_uniform")
    if any(abs(e) > d * math.sqrt(3.0) for e, d in zip(errors(y, mu), s, strict=True)):
        raise UndefinedScoreError("a target lies outside the support: the score is infinite")
    return mean([math.log(2.0) + math.log(d * math.sqrt(3.0)) for d in s])


def crps_gaussian_at(e: float, s: float) -> float:
    if s == 0:
        return abs(e)
    z = e / s
    return s * (z * (2.0 * Phi(z) - 1.0) + 2.0 * phi(z) - 1.0 / math.sqrt(math.pi))


def crps_laplace_at(e: float, s: float) -> float:
    if s == 0:
        return abs(e)
    b = s / math.sqrt(2.0)
    return abs(e) + b * math.exp(-abs(e) / b) - 0.75 * b


def crps_uniform_at(e: float, s: float) -> float:
    if s == 0:
        return abs(e)
    w = s * math.sqrt(3.0)
    return e * e / (2.0 * w) + w / 6.0 if abs(e) <= w else abs(e) - w / 3.0


def crps(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([crps_gaussian_at(e, float(d)) for e, d in zip(errors(y, mu), s, strict=True)])


def crps_laplace(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([crps_laplace_at(e, float(d)) for e, d in zip(errors(y, mu), s, strict=True)])


def crps_uniform(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([crps_uniform_at(e, float(d)) for e, d in zip(errors(y, mu), s, strict=True)])


def quadratic_score(y: Floats, mu: Floats, s: Floats, prior: str = "") -> float:
    density, energy = DENSITIES[prior]
    s = positive(s, "quadratic_score")
    return mean([2.0 * density(e, d) - energy(d) for e, d in zip(errors(y, mu), s, strict=True)])


def spherical_score(y: Floats, mu: Floats, s: Floats, prior: str = "") -> float:
    density, energy = DENSITIES[prior]
    s = positive(s, "spherical_score")
    return mean([density(e, d) / math.sqrt(energy(d)) for e, d in zip(errors(y, mu), s, strict=True)])


def interval_score(y: Floats, mu: Floats, s: Floats) -> float:
    """Width plus 2/(1 - p) times how far the target is outside, averaged over samples and 99 levels."""
    scores = []
    for p in LEVELS:
        k = central(p)
        for e, d in zip(errors(y, mu), s, strict=True):
            outside = max(0.0, abs(e) - k * float(d))
            scores.append(2.0 * k * float(d) + 2.0 / (1.0 - p) * outside)
    return mean(scores)


def pinball(y: Floats, mu: Floats, s: Floats) -> float:
    """Loss q * (y - x) above the predicted quantile x and (1 - q) * (x - y) below, over 99 levels q."""
    losses = []
    for q in LEVELS:
        k = quantile(q)
        for e, d in zip(errors(y, mu), s, strict=True):
            above = e - k * float(d)
            losses.append(q * above if above >= 0.0 else (q - 1.0) * above)
    return mean(losses)


# --- calibration ---


def share_inside(z: Floats, p: float) -> float:
    """Share of targets inside the central interval of level p, its ends included."""
    k = central(p)
    return sum(1 for v in z if abs(v) <= k) / len(z)


def share_below(z: Floats, p: float) -> float:
    """Share of targets at or below the predicted quantile of level p."""
    k = quantile(p)
    return sum(1 for v in z if v <= k) / len(z)


def coverage(y: Floats, mu: Floats, s: Floats, p: float = 0.95) -> float:
    return share_inside(standardised(y, mu, s), p)


def interval_width_95(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([2.0 * central(0.95) * float(d) for d in s])


def auce(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardised(y, mu, s)
    return trapezoid([abs(share_inside(z, p) - p) for p in LEVELS], 0.01)


def auce_over(y: Floats, mu: Floats, s: Floats) -> float:
    """The part where the intervals cover too little."""
    z = standardised(y, mu, s)
    return trapezoid([max(0.0, p - share_inside(z, p)) for p in LEVELS], 0.01)


def auce_under(y: Floats, mu: Floats, s: Floats) -> float:
    """The part where the intervals cover too much."""
    z = standardised(y, mu, s)
    return trapezoid([max(0.0, share_inside(z, p) - p) for p in LEVELS], 0.01)


def calibration_error(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardised(y, mu, s)
    return mean([(p - share_below(z, p)) ** 2 for p in LEVELS])


HUNDRED_LEVELS = [i / 99 for i in range(100)]


def mace(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardised(y, mu, s)
    return mean([abs(share_inside(z, p) - p) for p in HUNDRED_LEVELS])


def rmsce(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardised(y, mu, s)
    return math.sqrt(mean([(share_inside(z, p) - p) ** 2 for p in HUNDRED_LEVELS]))


def miscalibration_area(y: Floats, mu: Floats, s: Floats) -> float:
    """Area between the observed proportions, joined by straight lines, and the diagonal."""
    z = standardised(y, mu, s)
    gaps = [share_inside(z, p) - p for p in HUNDRED_LEVELS]
    area = []
    for left, right in pairwise(gaps):
        if left * right < 0.0:  # the lines cross: two triangles
            crossing = left / (left - right)
            area.append((abs(left) * crossing + abs(right) * (1.0 - crossing)) / 2.0 / 99.0)
        else:
            area.append((abs(left) + abs(right)) / 2.0 / 99.0)
    return math.fsum(area)


def pit_ks(y: Floats, mu: Floats, s: Floats) -> float:
    u = sorted(Phi(v) for v in standardised(y, mu, s))
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


def ence(y: Floats, mu: Floats, s: Floats, n_bins: int = 10) -> float:
    terms = []
    for variance, squared, _, _, _ in binned(y, mu, s, n_bins):
        rmv, rms = math.sqrt(variance), math.sqrt(squared)
        terms.append(divided(abs(rmv - rms), rmv, "the mean variance of a bin"))
    return mean(terms)


def uce(y: Floats, mu: Floats, s: Floats, n_bins: int = 10) -> float:
    return math.fsum(
        count / len(s) * abs(squared - variance)
        for variance, squared, count, _, _ in binned(y, mu, s, n_bins)
    )


def z_mean(y: Floats, mu: Floats, s: Floats) -> float:
    return mean(standardised(y, mu, positive(s, "z_mean")))


def z_std(y: Floats, mu: Floats, s: Floats) -> float:
    z = standardised(y, mu, positive(s, "z_std"))
    centre = mean(z)
    return math.sqrt(mean([(v - centre) ** 2 for v in z]))


# --- sharpness ---


def cv(y: Floats, mu: Floats, s: Floats) -> float:
    if len(s) < 2:
        raise UndefinedScoreError("one standard deviation has no spread")
    if all(d == s[0] for d in s):
        return divided(0.0, float(s[0]), "the mean standard deviation")
    centre = mean([float(d) for d in s])
    spread = math.sqrt(math.fsum((float(d) - centre) ** 2 for d in s) / (len(s) - 1))
    return divided(spread, centre, "the mean standard deviation")


def sharpness(y: Floats, mu: Floats, s: Floats) -> float:
    return math.sqrt(mean([float(d) ** 2 for d in s]))


def mean_std(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([float(d) for d in s])


# --- ranking ---


def rmse_of_kept(ordered_squares: Floats) -> list[float]:
    """RMSE of what is left when 0, 1 ... 99 per cent have been removed from the end, over the full RMSE."""
    full = math.sqrt(mean(ordered_squares))
    n = len(ordered_squares)
    return [divided(math.sqrt(mean(ordered_squares[: kept(n, i)])), full, "the RMSE") for i in range(100)]


def ause_rmse(y: Floats, mu: Floats, s: Floats) -> float:
    squares = [e * e for e in errors(y, mu)]
    model = rmse_of_kept(in_expected_order(s, squares))
    oracle = rmse_of_kept(sorted(squares))
    return trapezoid([m - o for m, o in zip(model, oracle, strict=True)], 0.01)


def aurg_rmse(y: Floats, mu: Floats, s: Floats) -> float:
    model = rmse_of_kept(in_expected_order(s, [e * e for e in errors(y, mu)]))
    return trapezoid([1.0 - m for m in model], 0.01)


def ause_mae(y: Floats, mu: Floats, s: Floats) -> float:
    a = [abs(e) for e in errors(y, mu)]
    model, oracle = in_expected_order(s, a), sorted(a)
    gaps = [mean(model[:k]) - mean(oracle[:k]) for k in range(1, len(a) + 1)]
    return divided(mean(gaps), mean(a), "the MAE")


def least_factor(y: Floats, mu: Floats, s: Floats, alpha: float) -> float:
    """Smallest factor by which s has to be multiplied to reach a share alpha of the absolute errors."""
    factor = order_statistic([abs(v) for v in standardised(y, mu, s)], alpha)
    if math.isinf(factor):
        raise UndefinedScoreError("no factor makes a standard deviation of 0 reach the error")
    return factor


def merci(y: Floats, mu: Floats, s: Floats, alpha: float = 0.95) -> float:
    return least_factor(y, mu, s, alpha) * mean_std(y, mu, s)


def n_merci(y: Floats, mu: Floats, s: Floats, alpha: float = 0.95) -> float:
    a = [abs(e) for e in errors(y, mu)]
    constant, oracle = order_statistic(a, alpha), mean(a)
    if constant <= oracle * (1 + 1e-12):  # .1 added up three times and divided by three is not .1
        raise UndefinedScoreError(
            "the percentile of the errors is not above their mean: the scale runs backwards"
        )
    return (merci(y, mu, s, alpha) - oracle) / (constant - oracle)


def average_ranks(values: Floats) -> list[float]:
    """1-based rank of each value; tied values share the mean of their places."""
    ordered = sorted(float(v) for v in values)
    ranks = []
    for v in values:
        first = ordered.index(float(v))
        ranks.append(first + (ordered.count(float(v)) + 1) / 2.0)
    return ranks


def spearman(y: Floats, mu: Floats, s: Floats) -> float:
    a = [abs(e) for e in errors(y, mu)]
    if len(set(a)) < 2 or len({float(d) for d in s}) < 2:
        raise UndefinedScoreError("a constant has no rank correlation")
    left, right = average_ranks(s), average_ranks(a)
    centre = (len(a) + 1) / 2.0
    covariance = math.fsum((p - centre) * (q - centre) for p, q in zip(left, right, strict=True))
    spreads = math.fsum((p - centre) ** 2 for p in left) * math.fsum((q - centre) ** 2 for q in right)
    return covariance / math.sqrt(spreads)


Score = Callable[[Floats, Floats, Floats], float]

LITERAL: dict[str, Score] = {
    "mae": mae,
    "rmse": rmse,
    "medae": medae,
    "trimmed_mae": trimmed_mae,
    "bias": bias,
    "r2": r2,
    "nll": nll,
    "nll_laplace": nll_laplace,
    "nll_uniform": nll_uniform,
    "crps": crps,
    "crps_laplace": crps_laplace,
    "crps_uniform": crps_uniform,
    "quadratic_score": quadratic_score,
    "quadratic_score_laplace": lambda y, mu, s: quadratic_score(y, mu, s, "_laplace"),
    "quadratic_score_uniform": lambda y, mu, s: quadratic_score(y, mu, s, "_uniform"),
    "spherical_score": spherical_score,
    "spherical_score_laplace": lambda y, mu, s: spherical_score(y, mu, s, "_laplace"),
    "spherical_score_uniform": lambda y, mu, s: spherical_score(y, mu, s, "_uniform"),
    "interval_score": interval_score,
    "pinball": pinball,
    "coverage_50": lambda y, mu, s: coverage(y, mu, s, 0.50),
    "coverage_90": lambda y, mu, s: coverage(y, mu, s, 0.90),
    "coverage_95": lambda y, mu, s: coverage(y, mu, s, 0.95),
    "interval_width_95": interval_width_95,
    "auce": auce,
    "auce_over": auce_over,
    "auce_under": auce_under,
    "calibration_error": calibration_error,
    "mace": mace,
    "rmsce": rmsce,
    "miscalibration_area": miscalibration_area,
    "pit_ks": pit_ks,
    "ence": ence,
    "uce": uce,
    "cv": cv,
    "z_mean": z_mean,
    "z_std": z_std,
    "sharpness": sharpness,
    "mean_std": mean_std,
    "ause_rmse": ause_rmse,
    "ause_mae": ause_mae,
    "aurg_rmse": aurg_rmse,
    "merci": merci,
    "n_merci": n_merci,
    "spearman": spearman,
}
