"""Bands around the diagonal: where a calibrated forecast's points lie merely because data are finite.

Pointwise, at 95 %, from the statistics alone: for independent samples by the laws behind the noise floors (binomial
shares, gamma mean squares), for groups by their own covariance (Broecker and Smith 2007). Points of isotonic fits
have no law in closed form; their bands come from fits to simulated outcomes (Dimitriadis, Gneiting and Jordan 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from uq_tracking.curves import Curve
from uq_tracking.curves.spec import spec_of
from uq_tracking.inference import read
from uq_tracking.inference.few_errors import too_few_errors
from uq_tracking.inference.gaps import Kind
from uq_tracking.inference.noise import (
    FEWEST_GROUPS,
    SEED,
    group_moves,
    held_by_bins,
    is_thin,
    kurtosis,
    left_out_moves,
    multivariate_t,
    require_stated_std,
    variance_cells,
)
from uq_tracking.metrics.calibration import equal_count_bins
from uq_tracking.metrics.isotonic import rising_fit
from uq_tracking.metrics.registry import Undefined
from uq_tracking.metrics.scoring import LEVELS
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import FloatArray, IntArray

LEVEL = 0.95
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
LOW, HIGH = "chance_low", "chance_high"
"""Columns of the band."""
DRAWS = 200
"""Number of simulated isotonic fits."""
CELLS = 300
"""Maximum number of equal-count cells in which outcomes for isotonic fits are simulated."""
BINS = 30
"""Maximum number of bins of cells whose means are drawn with the groups' covariance."""
TIE = 1e-9
"""Forecasts within this relative difference count as equal."""
PER_CELL = 3
"""Minimum number of samples per cell."""


def with_chance(
    curves: Mapping[str, Curve], statistics: Any, task: str, settings: Settings
) -> dict[str, Curve]:
    """Add ``chance_low`` and ``chance_high`` to the curves that are declared with ``gaps``.

    Parameters
    ----------
    curves : mapping of Curve
    statistics : statistics of the task
        Including the groups', if any; fewer than eight groups, or too few errors, say nothing, and no band is made.
    task : str
    settings : Settings
    """
    groups = read.group_count(statistics)
    few = groups is not None and task == "classification" and too_few_errors(statistics.groups)
    if few or (groups is not None and groups < FEWEST_GROUPS):
        return {name: _without(curve) for name, curve in curves.items()}
    made = dict(curves)
    for name, curve in curves.items():
        spec = spec_of(name, task)
        if spec is None or spec.gaps is None:
            continue
        try:
            with np.errstate(all="ignore"):
                ends = _ends(spec.gaps, curve, statistics, task, settings)
        except Undefined:
            continue
        if ends[0].shape == curve.columns[curve.x].shape and np.isfinite(ends).all():
            made[name] = replace(curve, columns={**curve.columns, LOW: ends[0], HIGH: ends[1]})
    return made


def _without(curve: Curve) -> Curve:
    columns = {name: column for name, column in curve.columns.items() if name not in (LOW, HIGH)}
    return replace(curve, columns=columns)


def _ends(
    kind: str, curve: Curve, statistics: Any, task: str, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    x = curve.columns[curve.x]
    if task == "regression" and kind in ("variance", "isotonic"):
        require_stated_std(statistics)
    if kind == "isotonic":
        return _isotonic(x, statistics, task, settings)
    if kind == "pit":
        return _pit(len(x), statistics, settings)
    gaps: Any = kind
    low, high = (
        _independent(gaps, x, statistics, settings)
        if read.group_count(statistics) is None
        else _grouped(gaps, x, statistics, settings)
    )
    if curve.name.startswith("coverage_error"):
        return low - x, high - x
    return low, high


def _independent(
    kind: Kind, x: FloatArray, statistics: Any, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    if kind == "variance":
        freedom = _of_points(variance_cells(statistics, settings).of_bins(), x)
        low, high = (np.sqrt(special.gammaincinv(freedom / 2, tail) * 2 / freedom) for tail in TAILS)
        return x * low, x * high
    if kind == "confidence":
        bins = read.confidence_bins(statistics, settings.n_bins, equal=False)
        n = bins.count[bins.count > 0] * read.effective(statistics)[1]
    else:
        n = np.full(len(x), float(statistics.n_effective))
    low, high = (_binomial(tail, n, x) for tail in TAILS)
    return low, high


def _of_points(values: FloatArray, x: FloatArray) -> FloatArray:
    """The values of bins; ``Undefined`` if the curve lacks a bin's point because its value overflows."""
    if values.shape != x.shape:
        raise Undefined("the value of a bin overflows")
    return values


def _binomial(tail: float, n: FloatArray, p: FloatArray) -> FloatArray:
    """Quantile of the share of n samples, each of which counts with probability p."""
    return _binomial_of(tail, n.astype(np.float64).tobytes(), p.astype(np.float64).tobytes())


@lru_cache(maxsize=64)
def _binomial_of(tail: float, samples: bytes, probabilities: bytes) -> FloatArray:
    """The same, cached for all runs of equal size: it takes longer than the curves themselves."""
    n, p = np.frombuffer(samples), np.frombuffer(probabilities)
    share = np.clip(p, 1e-12, 1 - 1e-12)
    count = np.ceil(np.nan_to_num(special.bdtrik(tail, n, share)) - 1e-9)
    count = np.where(np.power(1 - share, n) >= tail, 0.0, count)
    return np.asarray(np.clip(count / n, 0.0, 1.0))


def _grouped(kind: Kind, x: FloatArray, statistics: Any, settings: Settings) -> tuple[FloatArray, FloatArray]:
    moves = left_out_moves(group_moves(statistics, kind, settings)[0])
    if kind == "confidence":
        return _grouped_confidence(moves, x, statistics, settings)
    reach = _of_points(_reach(moves, statistics), x)
    if kind == "variance":  # moves of log(MSE / MV)
        return x * np.exp(-reach / 2), x * np.exp(reach / 2)
    return np.clip(x - reach, 0.0, 1.0), np.clip(x + reach, 0.0, 1.0)


def _grouped_confidence(
    moves: FloatArray, x: FloatArray, statistics: Any, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    """Bands of the non-empty bins; in a thin one, each group counts at most as a single sample."""
    there = read.confidence_bins(statistics, settings.n_bins, equal=False).count > 0
    samples, groups = (held[there] for held in held_by_bins(statistics, settings.n_bins))
    reach = _of_points(_reach(moves[:, there], statistics), x)
    low, high = np.clip(x - reach, 0.0, 1.0), np.clip(x + reach, 0.0, 1.0)
    thin, n = is_thin(samples, groups), np.maximum(groups, 1).astype(float)
    low = np.where(thin, np.minimum(low, _binomial(TAILS[0], n, x)), low)
    return low, np.where(thin, np.maximum(high, _binomial(TAILS[1], n, x)), high)


def _reach(moves: FloatArray, statistics: Any) -> FloatArray:
    """Half-width of Student's interval from the moves of the groups."""
    groups = read.group_count(statistics) or 0
    freedom = max(1.0, min(groups - 1.0, read.group_freedom(statistics)))
    return np.asarray(special.stdtrit(freedom, TAILS[1]) * np.sqrt(np.square(moves).sum(axis=0)))


def _pit(cells: int, statistics: Any, settings: Settings) -> tuple[FloatArray, FloatArray]:
    """Densities of the cells of a PIT histogram: shares between quantiles, over their width."""
    if read.group_count(statistics) is None:
        n, share = np.full(cells, float(statistics.n_effective)), np.full(cells, 1 / cells)
        low, high = (cells * _binomial(tail, n, share) for tail in TAILS)
        return low, high
    moves = left_out_moves(group_moves(statistics, "quantiles", settings)[0])
    edges = np.searchsorted(LEVELS, np.arange(1, cells) / cells - 1e-9)
    below = np.pad(moves[:, edges], ((0, 0), (1, 1)))
    reach = _reach(cells * np.diff(below, axis=1), statistics)
    return np.maximum(1 - reach, 0.0), 1 + reach


def _isotonic(x: FloatArray, statistics: Any, task: str, settings: Settings) -> tuple[FloatArray, FloatArray]:
    """Quantiles of isotonic fits to simulated outcomes, looked up at the forecasts of the curve."""
    cells = min(CELLS, int(statistics.n_effective) // PER_CELL)
    if cells < 2:
        raise Undefined("too few samples to simulate an isotonic fit")
    simulate = _errors if task == "regression" else _hits
    count, forecast, outcomes = _tied(*simulate(statistics, settings, cells))
    fits = np.asarray([rising_fit(outcome, count) for outcome in outcomes])
    low, high = np.quantile(fits, TAILS, axis=0)
    if task == "regression":
        forecast, low, high = np.sqrt(forecast), np.sqrt(low), np.sqrt(high)
        return x * np.interp(x, forecast, low / forecast), x * np.interp(x, forecast, high / forecast)
    return np.interp(x, forecast, low), np.interp(x, forecast, high)


def _tied(
    count: FloatArray, forecast: FloatArray, outcomes: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Join cells with equal forecasts, as the fit joins samples with equal forecasts."""
    starts = np.flatnonzero(np.diff(forecast, prepend=-np.inf) > TIE * forecast)
    joined = np.add.reduceat(count, starts)
    return joined, forecast[starts], np.add.reduceat(outcomes * count, starts, axis=1) / joined


def _errors(statistics: Any, settings: Settings, cells: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Samples, mean variance and simulated mean squared errors of equal-count cells by std."""
    found = equal_count_bins(statistics, cells)
    if np.any(found.mean_variance <= 0):
        raise Undefined("a cell's standard deviations are all 0")
    freedom = found.count * read.effective(statistics)[1] * 2 / (kurtosis(statistics, settings) - 1)
    rng = np.random.default_rng(SEED)
    ratio = rng.standard_gamma(freedom / 2, (DRAWS, cells)) * 2 / freedom
    if read.group_count(statistics) is not None:
        place, means = _of_bins(ratio)
        ratio *= (np.exp(_moves(statistics, "variance", settings, means.shape[1])) / means)[:, place]
    return found.count, found.mean_variance, found.mean_variance * ratio


def _hits(statistics: Any, settings: Settings, cells: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Samples, mean confidence and simulated accuracies of equal-count cells by confidence."""
    found = read.confidence_bins(statistics, cells, equal=True)
    order = np.argsort(found.confidence, kind="stable")
    count, confidence = found.count[order], np.clip(found.confidence[order], 0, 1)
    whole = np.maximum(np.rint(count * read.effective(statistics)[1]).astype(np.int64), 1)
    share = np.random.default_rng(SEED).binomial(whole, confidence, (DRAWS, cells)) / whole
    if read.group_count(statistics) is not None:
        place, means = _of_bins(share - confidence)
        moves = _moves(statistics, "confidence_equal", settings, means.shape[1])
        share = np.clip(share + (moves - means)[:, place], 0, 1)
    return count, confidence, share


def _of_bins(drawn: FloatArray) -> tuple[IntArray, FloatArray]:
    """The bin of each cell, and the mean of every draw over the cells of each bin."""
    cells = drawn.shape[1]
    bins = max(2, min(BINS, cells // 2))
    place = np.arange(cells) * bins // cells
    return place, np.add.reduceat(drawn, np.searchsorted(place, np.arange(bins)), axis=1) / np.bincount(place)


def _moves(statistics: Any, kind: Kind, settings: Settings, bins: int) -> FloatArray:
    """Draws of the bins' gaps with the groups' covariance."""
    moves = left_out_moves(group_moves(statistics, kind, replace(settings, n_bins=bins))[0])
    return multivariate_t(moves, read.group_freedom(statistics))[:DRAWS]
