"""Whether the uncertainty tells large errors from small ones, from the definitions."""

from __future__ import annotations

import math

from ..literal import (
    Floats,
    UndefinedScoreError,
    divided,
    errors,
    in_expected_order,
    kept,
    literal,
    mean,
    order_statistic,
    standardized,
    trapezoid,
)
from .spread import mean_std


def rmse_of_kept(ordered_squares: Floats) -> list[float]:
    """RMSE of what is left when 0, 1 ... 99 per cent have been removed from the end, over the full RMSE."""
    full = math.sqrt(mean(ordered_squares))
    n = len(ordered_squares)
    return [divided(math.sqrt(mean(ordered_squares[: kept(n, i)])), full, "the RMSE") for i in range(100)]


@literal
def ause_rmse(y: Floats, mu: Floats, s: Floats) -> float:
    squares = [e * e for e in errors(y, mu)]
    model = rmse_of_kept(in_expected_order(s, squares))
    oracle = rmse_of_kept(sorted(squares))
    return trapezoid([m - o for m, o in zip(model, oracle, strict=True)], 0.01)


@literal
def aurg_rmse(y: Floats, mu: Floats, s: Floats) -> float:
    model = rmse_of_kept(in_expected_order(s, [e * e for e in errors(y, mu)]))
    return trapezoid([1.0 - m for m in model], 0.01)


@literal
def ause_mae(y: Floats, mu: Floats, s: Floats) -> float:
    a = [abs(e) for e in errors(y, mu)]
    model, oracle = in_expected_order(s, a), sorted(a)
    gaps = [mean(model[:k]) - mean(oracle[:k]) for k in range(1, len(a) + 1)]
    return divided(mean(gaps), mean(a), "the MAE")


def least_factor(y: Floats, mu: Floats, s: Floats, alpha: float) -> float:
    """Smallest factor by which s has to be multiplied to reach a share alpha of the absolute errors."""
    factor = order_statistic([abs(v) for v in standardized(y, mu, s)], alpha)
    if math.isinf(factor):
        raise UndefinedScoreError("no factor makes a standard deviation of 0 reach the error")
    return factor


@literal
def merci(y: Floats, mu: Floats, s: Floats, alpha: float = 0.95) -> float:
    return least_factor(y, mu, s, alpha) * mean_std(y, mu, s)


@literal
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


@literal
def spearman(y: Floats, mu: Floats, s: Floats) -> float:
    a = [abs(e) for e in errors(y, mu)]
    if len(set(a)) < 2 or len({float(d) for d in s}) < 2:
        raise UndefinedScoreError("a constant has no rank correlation")
    left, right = average_ranks(s), average_ranks(a)
    centre = (len(a) + 1) / 2.0
    covariance = math.fsum((p - centre) * (q - centre) for p, q in zip(left, right, strict=True))
    spreads = math.fsum((p - centre) ** 2 for p in left) * math.fsum((q - centre) ** 2 for q in right)
    return covariance / math.sqrt(spreads)
