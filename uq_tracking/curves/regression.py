"""The curves of every regression report: pure functions of the statistics.

They appear in the order in which comparisons show them: the most informative first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import special

from uq_tracking import plugins
from uq_tracking.curves.spec import Columns, Curve, FloatArray, curve, percent, row_number
from uq_tracking.families import family_of, shaped
from uq_tracking.metrics import gaps
from uq_tracking.metrics.isotonic import isotonic_variance
from uq_tracking.metrics.other_forms import Undetermined, require_distances
from uq_tracking.metrics.proper_scores import LEVELS, require_variance, share_within
from uq_tracking.metrics.ranking import merci, n_merci, order_of, sparsification
from uq_tracking.metrics.registry import Undefined, compute
from uq_tracking.settings import Settings
from uq_tracking.statistics.regression import (
    distance_shares,
    expected_below,
    is_distribution,
    joint_counts,
    plain,
)
from uq_tracking.statistics.statistics import Statistics, scaled

PIT_BINS = 20
ALPHAS = np.arange(50, 101) / 100
HISTOGRAM_CELLS = 128
"""Maximum number of cells along the longer axis of the error-against-std histogram."""

FACTORS: FloatArray = 10.0 ** (np.arange(-20, 21) / 20)
SWEPT_EXACTLY = 5000
SWEEP_BITS = 8
"""Mantissa bits of the sketch on which larger exact sets are swept; scores keep five digits or more, or three for
densities of the uniform distribution, which jump."""

REMOVED = "Fraction of most uncertain samples removed"


of_removal = partial(curve, x="fraction", x_label=REMOVED, steps=percent("fraction"))
"""Declares a curve over the share of the samples removed."""


@of_removal(
    y="error",
    y_label="Sparsification error (RMSE)",
    title="Sparsification error, RMSE",
    score="ause_rmse",
    reference=(0.0,),
    header={"ause_rmse": "AUSE"},
)
def sparsification_error_rmse(statistics: Statistics, settings: Settings) -> Columns:
    """Distance of the RMSE of the least uncertain samples from the oracle's."""
    return sparsification(statistics, "sq_error").gap()


@of_removal(
    y="model",
    y_label="RMSE of the rest / RMSE of all",
    title="Sparsification, RMSE",
    score="ause_rmse",
    ceiling=np.inf,
    header={"ause_rmse": "AUSE", "aurg_rmse": "AURG"},
    draw="uq_tracking.figures.ranking.sparsification",
    figure="sparsification",
)
def sparsification_rmse(statistics: Statistics, settings: Settings) -> Columns:
    """RMSE of the remaining samples, for the uncertainty, the oracle and a random order."""
    return sparsification(statistics, "sq_error").of_rest()


@curve(
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
    gap=gaps.QUANTILE,
)
def calibration(statistics: Statistics, settings: Settings) -> Columns:
    """Share of the targets below each predicted quantile, with the band for independent samples."""
    observed = gaps.quantile_shares(statistics, settings, LEVELS)
    return {"expected": LEVELS, **_with_wilson(observed, statistics)}


def _with_wilson(share: FloatArray, statistics: Statistics) -> dict[str, FloatArray]:
    """Columns of an observed share and of its 95 % interval for independent samples (Wilson 1927)."""
    n, z = statistics.n_effective, 1.959963984540054
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return {"observed": share, "low": np.maximum(centre - half, 0), "high": np.minimum(centre + half, 1)}


of_intervals = partial(
    curve,
    x="nominal",
    x_label="Nominal coverage of the central interval",
    score="auce",
    steps=percent("nominal"),
    settings=("family",),
    gap=gaps.COVERAGE,
)
"""Declares a curve over the levels of central intervals."""


@of_intervals(
    y="error",
    y_label="Observed - nominal",
    title="Coverage error",
    reference=(0.0,),
    header={"auce": "AUCE"},
)
def coverage_error(statistics: Statistics, settings: Settings) -> Columns:
    """Coverage of the central intervals minus the promised one."""
    return {"nominal": LEVELS, "error": gaps.COVERAGE.observed(statistics, settings)[0]}


of_std = partial(curve, score="ence", steps=row_number, reference="diagonal", units=("target", "target"))
"""Declares a curve of observed against stated standard deviations."""


@of_std(
    x="rmv",
    y="rmse",
    x_label="Predicted: root mean variance of the bin",
    y_label="Observed: RMSE of the bin",
    title="Reliability",
    ceiling=np.inf,
    recalibrated=True,
    settings=("n_bins",),
    header={"ence": "ENCE"},
    draw="uq_tracking.figures.calibration.reliability",
    figure="reliability",
    gap=gaps.ERROR,
)
def reliability(statistics: Statistics, settings: Settings) -> Columns:
    """RMSE against the stated standard deviation, in equal-count bins."""
    require_variance(statistics, settings)
    bins = gaps.equal_count_bins(statistics, settings.n_bins)
    return {
        "rmv": np.sqrt(bins.mean_variance),
        "rmse": np.sqrt(bins.mean_squared_error),
        "count": bins.count,
        "std_low": bins.std_low,
        "std_high": bins.std_high,
    }


@of_std(
    x="predicted",
    y="observed",
    x_label="Predicted standard deviation",
    y_label="Observed: isotonic RMSE",
    title="Reliability without bins",
    default=False,
    gap="isotonic",
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


of_alpha = partial(curve, x="alpha", x_label="Share of errors covered, alpha", steps=percent("alpha"))
"""Declares a curve over the share of the errors that MeRCI covers."""


@of_alpha(
    y="n_merci",
    y_label="n-MeRCI (0 oracle, 1 constant)",
    title="n-MeRCI",
    score="n_merci",
    reference=(0.0, 1.0),
    limits=practical_limits,
    header={"n_merci": "n-MeRCI"},
    draw="uq_tracking.figures.ranking.n_merci_by_alpha",
)
def n_merci_by_alpha(
    statistics: Statistics, settings: Settings, alphas: FloatArray | Sequence[float] = ALPHAS
) -> Columns:
    """n-MeRCI at each share of the errors to cover, where it is defined."""
    kept, values = _where_defined(n_merci, statistics, settings, alphas)
    return {"alpha": kept, "n_merci": values}


@of_alpha(
    y="merci",
    y_label="MeRCI",
    title="MeRCI",
    score="merci",
    default=False,
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
    kept, values = _where_defined(merci, statistics, settings, alphas)
    errors = statistics.orders["abs_error"]
    constant = errors.value([order_of(alpha, statistics.n) for alpha in kept.tolist()])
    oracle = np.full(len(kept), errors.sum("abs_error") / statistics.n)
    return {"alpha": kept, "merci": values, "oracle": oracle, "constant": np.asarray(constant, dtype=float)}


def _where_defined(
    score: Callable[[Statistics, Settings], float],
    statistics: Statistics,
    settings: Settings,
    alphas: FloatArray | Sequence[float],
) -> tuple[FloatArray, FloatArray]:
    """The shares at which a score has a value, and its values; the score at the chosen alpha explains gaps."""
    found = []
    for alpha in np.asarray(alphas, dtype=float).tolist():
        try:
            found.append((alpha, score(statistics, replace(settings, alpha=alpha))))
        except Undefined as reason:
            last = reason
    if not found:
        raise Undefined(f"undefined at every alpha: {last}")
    kept, values = np.asarray(found).T
    return kept, values


@of_intervals(
    y="observed",
    y_label="Observed coverage",
    title="Coverage",
    reference="diagonal",
    ceiling=1.0,
    header={"coverage_95": "95 % intervals cover", "auce": "AUCE"},
    draw="uq_tracking.figures.calibration.coverage",
)
def coverage(statistics: Statistics, settings: Settings) -> Columns:
    """Share of the targets inside each central interval, with the band for independent samples."""
    return {"nominal": LEVELS, **_with_wilson(gaps.coverage_at(statistics, settings, LEVELS), statistics)}


@curve(
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


@of_removal(
    y="error",
    y_label="Sparsification error (MAE)",
    title="Sparsification error, MAE",
    score="ause_mae",
    reference=(0.0,),
    header={"ause_mae": "AUSE"},
)
def sparsification_error_mae(statistics: Statistics, settings: Settings) -> Columns:
    """Distance of the MAE of the least uncertain samples from the oracle's."""
    return sparsification(statistics, "abs_error").gap()


@of_removal(
    y="model",
    y_label="MAE of the rest / MAE of all",
    title="Sparsification, MAE",
    score="ause_mae",
    header={"ause_mae": "AUSE"},
    draw="uq_tracking.figures.ranking.sparsification",
)
def sparsification_mae(statistics: Statistics, settings: Settings) -> Columns:
    """MAE of the remaining samples, for the uncertainty, the oracle and a random order."""
    return sparsification(statistics, "abs_error").of_rest()


@curve(
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
    cells = joint_counts(statistics).fitting(HISTOGRAM_CELLS)
    columns = dict(zip(("std_low", "std_high", "error_low", "error_high"), cells.edges(), strict=True))
    return {**columns, "count": cells.count.astype(float)}


@curve(
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


def scale_sweep(statistics: Statistics, settings: Settings) -> Curve:
    """Each proper score, coverage and MeRCI with all standard deviations multiplied by 10^-1 ... 10^1.

    The gap between a score at factor 1 and at its best factor is what plain rescaling would gain; the rest depends on
    the means and the ranking. ``coverage_95`` only rises with the factor; ``merci`` does not change.

    Returns
    -------
    Curve
        Columns ``factor`` and one per score, ``coverage_95`` and ``merci`` if they are defined.

    Raises
    ------
    Undefined
        No proper score is defined, e.g. because a standard deviation is 0.

    References
    ----------
    .. [1] MeRCI, 2018, fig. 2.
    """
    of_form = is_distribution(statistics)
    if of_form:  # its PIT and scores after stretching are unknown: only priors are left
        settings = shaped(settings, Undetermined("the stretched distribution is not known"))
    statistics = plain(statistics)
    is_large = statistics.kind == "exact" and statistics.counts["n"] > SWEPT_EXACTLY
    base = statistics.sketched(SWEEP_BITS) if is_large else statistics
    metrics = [metric for metric in plugins.metrics().values() if metric.swept]
    with np.errstate(all="ignore"):
        rows = [compute(scaled(base, factor), settings, metrics)[0] for factor in FACTORS.tolist()]
    kept = [m.key for m in metrics if all(m.key in row for row in rows)]
    if not kept:
        raise Undefined("no proper score is defined at every scale")
    columns = {"factor": FACTORS, **{key: np.asarray([row[key] for row in rows]) for key in kept}}
    if not of_form:
        columns["coverage_95"] = share_within(statistics, family_of(settings).central(0.95) * FACTORS)
    with suppress(Undefined):  # a common factor on all uncertainties is rescaled away
        columns["merci"] = np.full(len(FACTORS), merci(statistics, settings))
    main = "crps" if "crps" in kept else kept[0]
    texts = ("Factor on every std", "Score", "Scores against scale")
    return Curve("scale_sweep", columns, "factor", main, *texts, main, np.arange(len(FACTORS)))


def best_factor(curve: Curve, key: str) -> float:
    """The factor of the sweep at which a score is best."""
    losses = [plugins.metrics()[key].loss(value) for value in curve.columns[key].tolist()]
    return float(curve.columns["factor"][int(np.argmin(losses))])
