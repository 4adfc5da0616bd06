"""The curves of every regression report: pure functions of the statistics.

They appear in the order in which comparisons show them: the most informative first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import special

from uq_tracking.curves.curve import FloatArray
from uq_tracking.curves.spec import Columns, curve, percent, row_number
from uq_tracking.families import family_of
from uq_tracking.metrics.gaps import (
    COVERAGE,
    ERROR,
    QUANTILE,
    coverage_at,
    equal_count_bins,
    quantile_shares,
)
from uq_tracking.metrics.isotonic import isotonic_variance
from uq_tracking.metrics.joint import require_distances
from uq_tracking.metrics.ranking import merci_at, n_merci_at, order_of, sparsification
from uq_tracking.metrics.registry import Undefined
from uq_tracking.metrics.scoring import LEVELS, require_variance
from uq_tracking.settings import Settings
from uq_tracking.statistics.covariance import distance_shares
from uq_tracking.statistics.distribution import expected_below, is_distribution
from uq_tracking.statistics.regression import joint_within
from uq_tracking.statistics.statistics import Statistics

PIT_BINS = 20
ALPHAS = np.arange(50, 101) / 100
HISTOGRAM_CELLS = 128
"""Maximum number of cells along the longer axis of the error-against-std histogram."""

REMOVED = "Fraction of most uncertain samples removed"
NOMINAL = "Nominal coverage of the central interval"


@curve(
    "sparsification_error_rmse",
    x="fraction",
    y="error",
    x_label=REMOVED,
    y_label="Sparsification error (RMSE)",
    title="Sparsification error, RMSE",
    score="ause_rmse",
    steps=percent("fraction"),
    reference=(0.0,),
    header={"ause_rmse": "AUSE"},
)
def sparsification_error_rmse(statistics: Statistics, settings: Settings) -> Columns:
    """How far the RMSE of the least uncertain samples lies above the oracle's."""
    numbers = sparsification(statistics, "sq_error")
    return {"fraction": numbers.fraction, "error": numbers.model - numbers.oracle}


@curve(
    "sparsification_rmse",
    x="fraction",
    y="model",
    x_label=REMOVED,
    y_label="RMSE of the rest / RMSE of all",
    title="Sparsification, RMSE",
    score="ause_rmse",
    steps=percent("fraction"),
    ceiling=np.inf,
    header={"ause_rmse": "AUSE", "aurg_rmse": "AURG"},
    draw="uq_tracking.figures.ranking.sparsification",
    figure="sparsification",
)
def sparsification_rmse(statistics: Statistics, settings: Settings) -> Columns:
    """RMSE of the remaining samples, for the uncertainty, the oracle and a random order."""
    return _remaining(statistics, "sq_error")


def _remaining(statistics: Statistics, payload: str) -> Columns:
    numbers = sparsification(statistics, payload)
    return {
        "fraction": numbers.fraction,
        "model": numbers.model,
        "oracle": numbers.oracle,
        "random": np.ones_like(numbers.fraction),
    }


@curve(
    "calibration",
    x="expected",
    y="observed",
    x_label="Predicted quantile level",
    y_label="Observed share at or below",
    title="Calibration",
    score="calibration_error",
    steps=percent("expected"),
    reference="diagonal",
    ceiling=1.0,
    recalibrated=True,
    settings=("family",),
    header={"coverage_95": "95 % intervals cover", "miscalibration_area": "miscalibration area"},
    draw="uq_tracking.figures.calibration.calibration",
    figure="calibration",
    gap=QUANTILE,
)
def calibration(statistics: Statistics, settings: Settings) -> Columns:
    """Share of the targets below each predicted quantile, with the band for independent samples."""
    observed = quantile_shares(statistics, settings, LEVELS)
    low, high = wilson_band(observed, statistics.n_effective)
    return {"expected": LEVELS, "observed": observed, "low": low, "high": high}


def wilson_band(share: FloatArray, n: float, z: float = 1.959963984540054) -> tuple[FloatArray, FloatArray]:
    """Wilson's 95 % interval of a share observed in n independent samples (Wilson 1927)."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.maximum(centre - half, 0), np.minimum(centre + half, 1)


@curve(
    "coverage_error",
    x="nominal",
    y="error",
    x_label=NOMINAL,
    y_label="Observed - nominal",
    title="Coverage error",
    score="auce",
    steps=percent("nominal"),
    reference=(0.0,),
    settings=("family",),
    gap=COVERAGE,
    header={"auce": "AUCE"},
)
def coverage_error(statistics: Statistics, settings: Settings) -> Columns:
    """How much more the central intervals cover than they promise."""
    return {"nominal": LEVELS, "error": coverage_at(statistics, settings, LEVELS) - LEVELS}


@curve(
    "reliability",
    x="rmv",
    y="rmse",
    x_label="Predicted: root mean variance of the bin",
    y_label="Observed: RMSE of the bin",
    title="Reliability",
    score="ence",
    steps=row_number,
    reference="diagonal",
    ceiling=np.inf,
    recalibrated=True,
    settings=("n_bins",),
    units=("target", "target"),
    header={"ence": "ENCE"},
    draw="uq_tracking.figures.calibration.reliability",
    figure="reliability",
    gap=ERROR,
)
def reliability(statistics: Statistics, settings: Settings) -> Columns:
    """RMSE against the stated standard deviation, in equal-count bins."""
    require_variance(statistics, settings)
    bins = equal_count_bins(statistics, settings.n_bins)
    return {
        "rmv": np.sqrt(bins.mean_variance),
        "rmse": np.sqrt(bins.mean_squared_error),
        "count": bins.count,
        "std_low": bins.std_low,
        "std_high": bins.std_high,
    }


@curve(
    "reliability_isotonic",
    x="predicted",
    y="observed",
    x_label="Predicted standard deviation",
    y_label="Observed: isotonic RMSE",
    title="Reliability without bins",
    score="ence",
    default=False,
    steps=row_number,
    reference="diagonal",
    gap="isotonic",
    units=("target", "target"),
    header={"ence": "ENCE"},
    draw="uq_tracking.figures.calibration.reliability_isotonic",
)
def reliability_isotonic(statistics: Statistics, settings: Settings) -> Columns:
    """RMSE as the increasing step function of the standard deviation that best fits the errors (CORP)."""
    require_variance(statistics, settings)
    predicted, observed = isotonic_variance(statistics).corners()
    return {"predicted": np.sqrt(predicted), "observed": np.sqrt(observed)}


def practical_limits(alpha: FloatArray, n_merci: FloatArray) -> tuple[float, float]:
    """Vertical limits for the shares used in practice; n-MeRCI has a pole where the percentile meets the MAE."""
    seen = n_merci[alpha >= 0.9] if np.any(alpha >= 0.9) else n_merci
    return min(-0.1, 1.1 * float(seen.min())), max(1.6, 1.1 * float(seen.max()))


@curve(
    "n_merci_by_alpha",
    x="alpha",
    y="n_merci",
    x_label="Share of errors covered, alpha",
    y_label="n-MeRCI (0 oracle, 1 constant)",
    title="n-MeRCI",
    score="n_merci",
    steps=percent("alpha"),
    reference=(0.0, 1.0),
    limits=practical_limits,
    header={"n_merci": "n-MeRCI"},
    draw="uq_tracking.figures.ranking.n_merci_by_alpha",
)
def n_merci_by_alpha(
    statistics: Statistics, settings: Settings, alphas: FloatArray | Sequence[float] = ALPHAS
) -> Columns:
    """n-MeRCI at each share of the errors to cover, where it is defined."""
    kept, values = _where_defined(n_merci_at, statistics, alphas)
    return {"alpha": kept, "n_merci": values}


@curve(
    "merci_by_alpha",
    x="alpha",
    y="merci",
    x_label="Share of errors covered, alpha",
    y_label="MeRCI",
    title="MeRCI",
    score="merci",
    default=False,
    steps=percent("alpha"),
    units=("", "target"),
    header={"merci": "MeRCI"},
    draw="uq_tracking.figures.ranking.merci_by_alpha",
)
def merci_by_alpha(
    statistics: Statistics, settings: Settings, alphas: FloatArray | Sequence[float] = ALPHAS
) -> Columns:
    """MeRCI at each share of the errors to cover, between its bounds for the oracle and for a constant.

    Parameters
    ----------
    statistics : Statistics
        Such as ``report.statistics``.
    settings : Settings
    alphas : sequence of float in (0, 1]
        The grid; by default .50, .51 ... 1.

    Returns
    -------
    dict of arrays
        ``alpha``, ``merci``, ``oracle`` (the mean absolute error) and ``constant`` (the percentile of the errors), in
        the target's unit.

    Raises
    ------
    Undefined
        At none of the shares does any scale cover that many errors.

    References
    ----------
    .. [1] MeRCI, 2018, fig. 3.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> from uq_tracking.settings import Settings
    >>> report = uq.evaluate([1.5, 3.0, 2.0], [1.0, 2.0, 3.0], [0.5, 1.0, 0.5])
    >>> merci_by_alpha(report.statistics, Settings(), [0.6, 1.0])["merci"].round(3).tolist()
    [0.667, 1.333]
    """
    kept, values = _where_defined(merci_at, statistics, alphas)
    errors = statistics.orders["abs_error"]
    constant = errors.value([order_of(alpha, statistics.n) for alpha in kept.tolist()])
    oracle = np.full(len(kept), errors.sum("abs_error") / statistics.n)
    return {"alpha": kept, "merci": values, "oracle": oracle, "constant": np.asarray(constant, dtype=float)}


def _where_defined(
    score: Callable[[Statistics, float], float],
    statistics: Statistics,
    alphas: FloatArray | Sequence[float],
) -> tuple[FloatArray, FloatArray]:
    """The shares at which a score has a value, and its values; the score at the chosen alpha explains gaps."""
    found = []
    for alpha in np.asarray(alphas, dtype=float).tolist():
        try:
            found.append((alpha, score(statistics, alpha)))
        except Undefined as reason:
            last = reason
    if not found:
        raise Undefined(f"undefined at every alpha: {last}")
    kept, values = np.asarray(found).T
    return kept, values


@curve(
    "coverage",
    x="nominal",
    y="observed",
    x_label=NOMINAL,
    y_label="Observed coverage",
    title="Coverage",
    score="auce",
    steps=percent("nominal"),
    reference="diagonal",
    ceiling=1.0,
    settings=("family",),
    header={"coverage_95": "95 % intervals cover", "auce": "AUCE"},
    draw="uq_tracking.figures.calibration.coverage",
    gap=COVERAGE,
)
def coverage(statistics: Statistics, settings: Settings) -> Columns:
    """Share of the targets inside each central interval, with the band for independent samples."""
    observed = coverage_at(statistics, settings, LEVELS)
    low, high = wilson_band(observed, statistics.n_effective)
    return {"nominal": LEVELS, "observed": observed, "low": low, "high": high}


@curve(
    "pit_histogram",
    x="center",
    y="density",
    x_label="Probability integral transform F(y)",
    y_label="Density",
    title="PIT histogram",
    score="pit_ks",
    steps=row_number,
    reference=(1.0,),
    settings=("family",),
    gap="pit",
    header={"coverage_95": "95 % intervals cover", "pit_ks": "KS distance"},
    draw="uq_tracking.figures.calibration.pit_histogram",
)
def pit_histogram(statistics: Statistics, settings: Settings) -> Columns:
    """Histogram of F(y) in twenty cells, closed below, as numpy's."""
    edges = np.linspace(0, 1, PIT_BINS + 1)
    if is_distribution(statistics):
        inner = expected_below(statistics, edges[1:-1], closed=False) / statistics.n
    else:
        quantiles = family_of(settings).quantile(edges[1:-1])
        inner = statistics.orders["z"].position(quantiles, side="left") / statistics.n
    share = np.diff(np.concatenate([[0.0], inner, [1.0]]))
    return {
        "center": (edges[1:] + edges[:-1]) / 2,
        "density": share * PIT_BINS,
        "count": share * statistics.n,
    }


@curve(
    "sparsification_error_mae",
    x="fraction",
    y="error",
    x_label=REMOVED,
    y_label="Sparsification error (MAE)",
    title="Sparsification error, MAE",
    score="ause_mae",
    steps=percent("fraction"),
    reference=(0.0,),
    header={"ause_mae": "AUSE"},
)
def sparsification_error_mae(statistics: Statistics, settings: Settings) -> Columns:
    """How far the MAE of the least uncertain samples lies above the oracle's."""
    numbers = sparsification(statistics, "abs_error")
    return {"fraction": numbers.fraction, "error": numbers.model - numbers.oracle}


@curve(
    "sparsification_mae",
    x="fraction",
    y="model",
    x_label=REMOVED,
    y_label="MAE of the rest / MAE of all",
    title="Sparsification, MAE",
    score="ause_mae",
    steps=percent("fraction"),
    header={"ause_mae": "AUSE"},
    draw="uq_tracking.figures.ranking.sparsification",
)
def sparsification_mae(statistics: Statistics, settings: Settings) -> Columns:
    """MAE of the remaining samples, for the uncertainty, the oracle and a random order."""
    return _remaining(statistics, "abs_error")


@curve(
    "error_vs_std",
    x="std_low",
    y="count",
    x_label="Predicted standard deviation",
    y_label="Absolute error",
    title="Error against uncertainty",
    score="spearman",
    overlaid=False,
    units=("target", "target"),
    header={"spearman": "Spearman"},
    draw="uq_tracking.figures.ranking.error_vs_std",
    figure="error_vs_std",
)
def error_vs_std(statistics: Statistics, settings: Settings) -> Columns:
    """Number of samples in each cell of std and absolute error; not a function of one variable."""
    cells = joint_within(statistics, HISTOGRAM_CELLS)
    columns = dict(zip(("std_low", "std_high", "error_low", "error_high"), cells.edges(), strict=True))
    return {**columns, "count": cells.count.astype(float)}


@curve(
    "joint_coverage",
    x="nominal",
    y="observed",
    x_label="Probability of the ellipsoid",
    y_label="Share of the vectors inside",
    title="Coverage of ellipsoids",
    score="joint_ks",
    steps=percent("nominal"),
    reference="diagonal",
    header={"joint_ks": "KS distance"},
    draw="uq_tracking.figures.calibration.joint_coverage",
)
def joint_coverage(statistics: Statistics, settings: Settings) -> Columns:
    """Share of the vectors inside the ellipsoid of each probability: calibration of the Mahalanobis distance."""
    require_distances(statistics)
    return {"nominal": LEVELS, "observed": distance_shares(statistics, special.ndtri(LEVELS))}
