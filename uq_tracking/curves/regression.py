"""The curves of every regression report: pure functions of the statistics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from uq_tracking.curves.curve import Curve, FloatArray, finite
from uq_tracking.families import family_of
from uq_tracking.metrics.calibration import coverage_at, equal_count_bins, quantile_shares
from uq_tracking.metrics.ranking import FRACTIONS, n_merci_at, sparsification
from uq_tracking.metrics.registry import Undefined
from uq_tracking.metrics.scoring import LEVELS, require_variance
from uq_tracking.settings import Settings
from uq_tracking.statistics.regression import RegressionStatistics

PIT_BINS = 20
ALPHAS = np.arange(50, 101) / 100
HISTOGRAM_CELLS = 128
"""Cells of the error-against-std histogram along its longer axis, at most."""


def _percent(values: FloatArray) -> npt.NDArray[np.int64]:
    return np.rint(100 * values).astype(np.int64)


def _sparsification(statistics: RegressionStatistics, payload: str, error: str) -> list[Curve]:
    numbers = sparsification(statistics, payload)
    label, steps = "Fraction of most uncertain samples removed", _percent(FRACTIONS)
    name, key = error.lower(), f"ause_{error.lower()}"
    ones = np.ones_like(numbers.fraction)
    return [
        Curve(
            f"sparsification_{name}",
            {"fraction": numbers.fraction, "model": numbers.model, "oracle": numbers.oracle, "random": ones},
            "fraction",
            "model",
            label,
            f"{error} of the rest / {error} of all",
            "Sparsification",
            key,
            steps,
        ),
        Curve(
            f"sparsification_error_{name}",
            {"fraction": numbers.fraction, "error": numbers.model - numbers.oracle},
            "fraction",
            "error",
            label,
            f"Sparsification error ({error})",
            "Sparsification error",
            key,
            steps,
        ),
    ]


def wilson_band(share: FloatArray, n: int, z: float = 1.959963984540054) -> tuple[FloatArray, FloatArray]:
    """Wilson's 95 % interval of a share observed in n independent samples (Wilson 1927)."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.maximum(centre - half, 0), np.minimum(centre + half, 1)


def _calibration(statistics: RegressionStatistics, settings: Settings) -> list[Curve]:
    observed = quantile_shares(statistics, settings, LEVELS)
    low, high = wilson_band(observed, statistics.n)
    columns = {"expected": LEVELS, "observed": observed, "low": low, "high": high}
    labels = ("Predicted quantile level", "Observed share at or below")
    steps = _percent(LEVELS)
    return [
        Curve(
            "calibration", columns, "expected", "observed", *labels, "Calibration", "calibration_error", steps
        )
    ]


def _coverage(statistics: RegressionStatistics, settings: Settings) -> list[Curve]:
    observed = coverage_at(statistics, settings, LEVELS)
    low, high = wilson_band(observed, statistics.n)
    columns = {"nominal": LEVELS, "observed": observed, "low": low, "high": high}
    x, steps = "Nominal coverage of the central interval", _percent(LEVELS)
    gap = {"nominal": LEVELS, "error": observed - LEVELS}
    return [
        Curve("coverage", columns, "nominal", "observed", x, "Observed coverage", "Coverage", "auce", steps),
        Curve(
            "coverage_error",
            gap,
            "nominal",
            "error",
            x,
            "Observed - nominal",
            "Coverage error",
            "auce",
            steps,
        ),
    ]


def _reliability(statistics: RegressionStatistics, settings: Settings) -> list[Curve]:
    require_variance(settings)
    bins = equal_count_bins(statistics, settings.n_bins)
    columns = {
        "rmv": np.sqrt(bins.mean_variance),
        "rmse": np.sqrt(bins.mean_squared_error),
        "count": bins.count,
        "std_low": bins.std_low,
        "std_high": bins.std_high,
    }
    steps = np.arange(len(bins.count))
    labels = ("Predicted: root mean variance of the bin", "Observed: RMSE of the bin")
    return [Curve("reliability", columns, "rmv", "rmse", *labels, "Reliability", "ence", steps)]


def _pit_histogram(statistics: RegressionStatistics, settings: Settings) -> list[Curve]:
    edges = np.linspace(0, 1, PIT_BINS + 1)
    quantiles = family_of(settings).quantile(edges[1:-1])
    inner = statistics.by_z.position(quantiles, side="left") / statistics.n  # bins closed below, as numpy's
    share = np.diff(np.concatenate([[0.0], inner, [1.0]]))
    columns = {
        "center": (edges[1:] + edges[:-1]) / 2,
        "density": share * PIT_BINS,
        "count": share * statistics.n,
    }
    labels = ("Probability integral transform F(y)", "Density")
    return [
        Curve("pit_histogram", columns, "center", "density", *labels, "PIT", "pit_ks", np.arange(PIT_BINS))
    ]


def _n_merci_by_alpha(statistics: RegressionStatistics, settings: Settings) -> list[Curve]:
    values = []
    for alpha in ALPHAS.tolist():
        try:
            values.append((alpha, n_merci_at(statistics, alpha)))
        except Undefined:
            continue  # left out of the curve; the score at the chosen alpha says why
    if not values:
        raise Undefined("n_merci is undefined at every alpha")
    alpha_column, score = np.asarray(values).T
    columns = {"alpha": alpha_column, "n_merci": score}
    labels = ("Share of errors covered, alpha", "n-MeRCI (0 oracle, 1 constant)")
    steps = _percent(alpha_column)
    return [Curve("n_merci_by_alpha", columns, "alpha", "n_merci", *labels, "n-MeRCI", "n_merci", steps)]


def _error_vs_std(statistics: RegressionStatistics, settings: Settings) -> list[Curve]:
    cells = statistics.joint_within(HISTOGRAM_CELLS)
    names = ("std_low", "std_high", "error_low", "error_high")
    columns = dict(zip(names, cells.edges(), strict=True))
    columns["count"] = cells.count.astype(float)
    labels = ("Predicted standard deviation", "Absolute error")
    return [
        Curve("error_vs_std", columns, "std_low", "count", *labels, "Error against uncertainty", "spearman")
    ]


BUILDERS: dict[str, Callable[[RegressionStatistics, Settings], list[Curve]]] = {
    "sparsification_rmse": lambda statistics, settings: _sparsification(statistics, "sq_error", "RMSE"),
    "sparsification_mae": lambda statistics, settings: _sparsification(statistics, "abs_error", "MAE"),
    "calibration": _calibration,
    "coverage": _coverage,
    "reliability": _reliability,
    "pit_histogram": _pit_histogram,
    "n_merci_by_alpha": _n_merci_by_alpha,
    "error_vs_std": _error_vs_std,
}


def regression_curves(statistics: RegressionStatistics, settings: Settings) -> dict[str, Curve]:
    """Every curve of the statistics that is defined, by name."""
    made: dict[str, Curve] = {}
    for build in BUILDERS.values():
        try:
            made.update({curve.name: finite(curve) for curve in build(statistics, settings)})
        except Undefined:
            continue  # the score that summarises the curve is undefined too and carries the reason
    return {name: curve for name, curve in made.items() if len(curve.columns[curve.x])}
