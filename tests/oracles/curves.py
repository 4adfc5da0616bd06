"""The numbers behind the plots, written out point by point."""

from __future__ import annotations

import math

from .literal import (
    LEVELS,
    Floats,
    Phi,
    UndefinedScoreError,
    divided,
    errors,
    in_expected_order,
    kept,
    literal_curve,
    mean,
    order_statistic,
    quantile,
)
from .literal import standardized as z_of
from .regression.calibration import binned, share_below, share_inside
from .regression.ranking import merci, n_merci, rmse_of_kept

Columns = dict[str, list[float]]
FRACTIONS = [i / 100 for i in range(100)]


@literal_curve
def sparsification_rmse(y: Floats, mu: Floats, s: Floats) -> Columns:
    squares = [e * e for e in errors(y, mu)]
    return {
        "fraction": FRACTIONS,
        "model": rmse_of_kept(in_expected_order(s, squares)),
        "oracle": rmse_of_kept(sorted(squares)),
        "random": [1.0] * 100,
    }


def mae_of_kept(ordered: Floats) -> list[float]:
    full, n = mean(ordered), len(ordered)
    return [divided(mean(ordered[: kept(n, i)]), full, "the MAE") for i in range(100)]


@literal_curve
def sparsification_mae(y: Floats, mu: Floats, s: Floats) -> Columns:
    a = [abs(e) for e in errors(y, mu)]
    return {
        "fraction": FRACTIONS,
        "model": mae_of_kept(in_expected_order(s, a)),
        "oracle": mae_of_kept(sorted(a)),
        "random": [1.0] * 100,
    }


def error_of(curve: Columns) -> Columns:
    """Model minus oracle of a sparsification curve."""
    gaps = [m - o for m, o in zip(curve["model"], curve["oracle"], strict=True)]
    return {"fraction": curve["fraction"], "error": gaps}


@literal_curve
def sparsification_error_rmse(y: Floats, mu: Floats, s: Floats) -> Columns:
    return error_of(sparsification_rmse(y, mu, s))


@literal_curve
def sparsification_error_mae(y: Floats, mu: Floats, s: Floats) -> Columns:
    return error_of(sparsification_mae(y, mu, s))


@literal_curve
def coverage_error(y: Floats, mu: Floats, s: Floats) -> Columns:
    observed = coverage(y, mu, s)["observed"]
    return {"nominal": LEVELS, "error": [share - p for share, p in zip(observed, LEVELS, strict=True)]}


def wilson(share: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion: where (share - p)^2 = k^2 p (1 - p) / n."""
    k = quantile((1.0 + confidence) / 2.0)
    centre = (share + k * k / (2 * n)) / (1 + k * k / n)
    half = k / (1 + k * k / n) * math.sqrt(share * (1 - share) / n + k * k / (4 * n * n))
    return centre - half, centre + half


def with_band(levels: Floats, shares: Floats, n: int, x: str) -> Columns:
    bands = [wilson(p, n) for p in shares]
    return {
        x: list(levels),
        "observed": list(shares),
        "low": [b[0] for b in bands],
        "high": [b[1] for b in bands],
    }


@literal_curve
def calibration(y: Floats, mu: Floats, s: Floats) -> Columns:
    z = z_of(y, mu, s)
    return with_band(LEVELS, [share_below(z, p) for p in LEVELS], len(z), "expected")


@literal_curve
def coverage(y: Floats, mu: Floats, s: Floats) -> Columns:
    z = z_of(y, mu, s)
    return with_band(LEVELS, [share_inside(z, p) for p in LEVELS], len(z), "nominal")


@literal_curve
def reliability(y: Floats, mu: Floats, s: Floats, n_bins: int = 10) -> Columns:
    rows = binned(y, mu, s, n_bins)
    return {
        "rmv": [math.sqrt(row[0]) for row in rows],
        "rmse": [math.sqrt(row[1]) for row in rows],
        "count": [float(row[2]) for row in rows],
        "std_low": [row[3] for row in rows],
        "std_high": [row[4] for row in rows],
    }


@literal_curve
def pit_histogram(y: Floats, mu: Floats, s: Floats, n_bins: int = 20) -> Columns:
    """Bins are closed on the left; the last one is closed on both sides."""
    counts = [0.0] * n_bins
    for u in map(Phi, z_of(y, mu, s)):
        places = [b for b in range(n_bins) if b / n_bins <= u]
        counts[places[-1]] += 1.0
    return {
        "center": [(b + 0.5) / n_bins for b in range(n_bins)],
        "density": [c / len(s) * n_bins for c in counts],
        "count": counts,
    }


@literal_curve
def n_merci_by_alpha(y: Floats, mu: Floats, s: Floats) -> Columns:
    """n-MeRCI for alpha = .50, .51 ... 1, the levels without a value left out."""
    alphas, values = [], []
    for i in range(50, 101):
        try:
            values.append(n_merci(y, mu, s, alpha=i / 100))
        except UndefinedScoreError:
            continue
        alphas.append(i / 100)
    if not alphas:
        raise UndefinedScoreError("n_merci has no value at any alpha")
    return {"alpha": alphas, "n_merci": values}


@literal_curve
def merci_by_alpha(y: Floats, mu: Floats, s: Floats) -> Columns:
    """MeRCI for alpha = .50, .51 ... 1 where a scale reaches so many errors, with those of oracle and constant."""
    columns: Columns = {"alpha": [], "merci": [], "oracle": [], "constant": []}
    a = [abs(e) for e in errors(y, mu)]
    for i in range(50, 101):
        try:
            value = merci(y, mu, s, alpha=i / 100)
        except UndefinedScoreError:
            continue
        found = (i / 100, value, mean(a), order_statistic(a, i / 100))
        for column, number in zip(columns.values(), found, strict=True):
            column.append(number)
    if not columns["alpha"]:
        raise UndefinedScoreError("no scale reaches half of the errors")
    return columns
