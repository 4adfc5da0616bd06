"""Noise floors and bands: what a perfectly calibrated forecast shows merely because data are finite.

A score that is 0 at perfect calibration and never below is above 0 in every finite sample. Its floor is its
distribution when the truth is drawn from the forecasts themselves, with these standard deviations or confidences,
this number of samples, and these groups (Broecker 2012; Vaicenavicius et al. 2019; Widmann et al. 2019);
`metrics.gaps` says how gaps vary then. With fewer than twenty groups their covariance is poorly known.

Bands around curves say where the truth lies, and where a calibrated forecast's points lie by chance. The first come
from the points of a curve without each set of groups. The second are pointwise, at 95 %, from the statistics alone
(Broecker and Smith 2007): they belong to the gap behind a curve (`metrics.gaps`). Points of isotonic fits have no law
in closed form; their bands come from fits to simulated outcomes (Dimitriadis, Gneiting and Jordan 2021).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special
from scipy.ndimage import median_filter

from uq_tracking import plugins
from uq_tracking.curves import Curve, CurveSpec
from uq_tracking.curves.spec import spec_of
from uq_tracking.inference.limits import FEWEST_GROUPS, Influence, set_weights, too_few_errors
from uq_tracking.metrics import groups
from uq_tracking.metrics.gaps import (
    EQUAL_COUNT_CONFIDENCE,
    ERROR,
    QUANTILE,
    SEED,
    TAILS,
    Gap,
    Law,
    binomial_share,
    confidence_bins,
    equal_count_bins,
    groups_noise,
    groups_reach,
    kurtosis,
    log_ratios_without,
)
from uq_tracking.metrics.isotonic import rising_fit
from uq_tracking.metrics.proper_scores import LEVELS
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.groups import GroupTables
from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.statistics import resampled

TRUSTED_GROUPS = 20
"""From this number of groups on, p-values match simulations; below, they are a rough guide."""


@dataclass(frozen=True)
class NoiseFloor:
    """Scores of a calibrated forecast on the same amount of data.

    Attributes
    ----------
    mean : float
        Its mean score.
    high : float
        The score that it exceeds in 5 % of cases.
    p : float
        Share of calibrated forecasts that score at least as high as observed.
    note : str
        What limits confidence in these numbers; empty if nothing does.
    """

    mean: float
    high: float
    p: float
    note: str = ""


def noise_floors(
    statistics: Any, task: str, settings: Settings, scores: Mapping[str, float]
) -> dict[str, NoiseFloor]:
    """Compute the floor of every score that has one, by key; scores without enough groups or bins have none."""
    n_groups = groups.count(statistics)
    if n_groups is not None and (n_groups < FEWEST_GROUPS or too_few_errors(statistics.groups)):
        return {}
    note = (
        "" if n_groups is None or n_groups >= TRUSTED_GROUPS else f"p from {n_groups} groups is a rough guide"
    )
    floors: dict[str, NoiseFloor] = {}
    laws: dict[Gap, Law] = {}
    for key, metric in plugins.metrics(task).items():
        gap, reduction = metric.gap, metric.reduction
        if key not in scores or gap is None or reduction is None:
            continue
        if reduction.norm == "supremum" and n_groups is None:
            floors[key] = kolmogorov_floor(round(statistics.n_effective), scores[key])
            continue
        if gap.why_no_law(statistics):
            continue
        try:
            if gap not in laws:
                law = gap.law if n_groups is None else gap.law_of_groups
                laws[gap] = law(statistics, settings)
            floors[key] = floor_of(laws[gap](reduction), scores[key], note)
        except Undefined:
            continue
    return floors


def floor_of(drawn: FloatArray, observed: float, note: str = "") -> NoiseFloor:
    """The floor of a score from its simulated values, ascending; the observed value counts among them."""
    if not math.isfinite(drawn[-1]):
        raise Undefined("simulated scores overflow 64-bit numbers")
    beyond = len(drawn) - int(np.searchsorted(drawn, observed * (1 - 1e-12)))
    high = float(drawn[math.ceil(0.95 * len(drawn)) - 1])
    return NoiseFloor(float(drawn.mean()), high, (1 + beyond) / (1 + len(drawn)), note)


def kolmogorov_stretch(n: int) -> float:
    """Return what a gap of n samples is multiplied by to have Kolmogorov's law."""
    return math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)


def kolmogorov_floor(n: int, observed: float) -> NoiseFloor:
    """The floor of ``pit_ks``, by Stephens' (1970) form of Kolmogorov's law for finite samples."""
    stretch = kolmogorov_stretch(n)
    mean, high = math.sqrt(math.pi / 2) * math.log(2), float(special.kolmogi(0.05))
    return NoiseFloor(mean / stretch, high / stretch, float(special.kolmogorov(stretch * observed)))


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


def banded(
    curves: dict[str, Curve], tables: GroupTables, settings: Settings, level: float = 0.95
) -> dict[str, Curve]:
    """Add ``low`` and ``high`` of pointwise intervals to the curves that are declared with a ceiling.

    Samples from one image are not independent, so a band over images replaces the band for independent samples that
    calibration and coverage otherwise have. With fewer than eight groups nothing changes.
    """
    specs = plugins.curves(tables.layout.task)
    wanted = [
        name for name in curves if name in specs and specs[name].ceiling is not None and not specs[name].needs
    ]
    if len(tables) < FEWEST_GROUPS or not wanted:
        return curves
    points: dict[str, list[FloatArray]] = {name: [] for name in wanted}
    with np.errstate(all="ignore"):
        for one in resampled(tables, set_weights(len(tables))):
            for name in wanted:
                with suppress(Undefined):  # a curve without points says nothing about their spread
                    points[name].append(specs[name].function(one, settings)[specs[name].y])
    freedom = groups.freedom(groups.OfGroups(tables))
    made = {
        name: _with_band(curves[name], points[name], level, specs[name].ceiling, freedom) for name in wanted
    }
    return {**curves, **made}


def _with_band(
    curve: Curve, points: list[FloatArray], level: float, ceiling: float | None, freedom: float
) -> Curve:
    main = curve.columns[curve.main]
    points = [each for each in points if len(each) == len(main)]
    if len(points) < FEWEST_GROUPS:
        return curve
    moves = [Influence.left_out(column, freedom) for column in np.asarray(points).T]
    # The degrees of freedom of a single point are poorly known, those of its neighborhood well; the skewness is
    # known so poorly that correcting for it makes bands wider and jagged without improving coverage.
    known = median_filter([each.freedom for each in moves], len(main) // 10 * 2 + 1, mode="nearest")
    reach = -special.stdtrit(known, (1 - level) / 2) * [each.standard_error for each in moves]
    if not np.isfinite(reach).all():  # squares overflow: nothing is known about any band
        return _without(curve, "low", "high")
    low = np.clip(main - reach, 0, main)
    high = np.clip(main + reach, main, np.maximum(main, np.inf if ceiling is None else ceiling))
    return replace(curve, columns={**curve.columns, "low": low, "high": high})


def with_chance(
    curves: Mapping[str, Curve], statistics: Any, task: str, settings: Settings
) -> dict[str, Curve]:
    """Add ``chance_low`` and ``chance_high`` to the curves that are declared with a gap.

    Parameters
    ----------
    curves : mapping of Curve
    statistics : statistics of the task
        Including the groups', if any; fewer than eight groups, or too few errors, say nothing, and no band is made.
    task : str
    settings : Settings
    """
    n_groups = groups.count(statistics)
    if n_groups is not None and (n_groups < FEWEST_GROUPS or too_few_errors(statistics.groups)):
        return {name: _without(curve, LOW, HIGH) for name, curve in curves.items()}
    made = dict(curves)
    for name, curve in curves.items():
        spec = spec_of(name, task)
        if spec is None or spec.gap is None:
            continue
        try:
            with np.errstate(all="ignore"):
                ends = _ends(spec, curve.columns[curve.x], statistics, settings)
        except Undefined:
            continue
        if ends[0].shape == curve.columns[curve.x].shape and np.isfinite(ends).all():
            made[name] = replace(curve, columns={**curve.columns, LOW: ends[0], HIGH: ends[1]})
    return made


def _without(curve: Curve, *names: str) -> Curve:
    return replace(curve, columns={name: curve.columns[name] for name in curve.columns if name not in names})


def _ends(
    spec: CurveSpec, x: FloatArray, statistics: Any, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    if spec.gap == "isotonic":
        return _isotonic(x, statistics, settings)
    if spec.gap == "pit":
        return _pit(len(x), statistics, settings)
    if spec.gap is None:
        raise Undefined("the curve has no gap")
    if reason := spec.gap.why_no_law(statistics):
        raise Undefined(reason)
    low, high = spec.gap.band(x, statistics, settings)
    return (low, high) if spec.reference == "diagonal" else (low - x, high - x)


def _pit(cells: int, statistics: Any, settings: Settings) -> tuple[FloatArray, FloatArray]:
    """Densities of the cells of a PIT histogram: shares between quantiles, over their width."""
    if groups.count(statistics) is None:
        n, share = np.full(cells, float(statistics.n_effective)), np.full(cells, 1 / cells)
        low, high = (cells * binomial_share(tail, n, share) for tail in TAILS)
        return low, high
    left = QUANTILE.without_groups(statistics, settings)[0]
    edges = np.searchsorted(LEVELS, np.arange(1, cells) / cells - 1e-9)
    below = np.pad(left[:, edges], ((0, 0), (1, 1)))
    reach = groups_reach(cells * np.diff(below, axis=1), statistics, np.empty(cells))
    return np.maximum(1 - reach, 0.0), 1 + reach


def _isotonic(x: FloatArray, statistics: Any, settings: Settings) -> tuple[FloatArray, FloatArray]:
    """Quantiles of isotonic fits to simulated outcomes, looked up at the forecasts of the curve."""
    of_std = "std" in statistics.orders
    if of_std and (reason := ERROR.why_no_law(statistics)):
        raise Undefined(reason)
    cells = min(CELLS, int(statistics.n_effective) // PER_CELL)
    if cells < 2:
        raise Undefined("too few samples to simulate an isotonic fit")
    simulate = _errors if of_std else _hits
    count, forecast, outcomes = _tied(*simulate(statistics, settings, cells))
    fits = np.asarray([rising_fit(outcome, count) for outcome in outcomes])
    low, high = np.quantile(fits, TAILS, axis=0)
    if of_std:
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
    freedom = found.count * groups.effective(statistics)[1] * 2 / (kurtosis(statistics, settings) - 1)
    rng = np.random.default_rng(SEED)
    ratio = rng.standard_gamma(freedom / 2, (DRAWS, cells)) * 2 / freedom
    if groups.count(statistics) is not None:
        place, means = _of_bins(ratio)
        logs = log_ratios_without(statistics, replace(settings, n_bins=means.shape[1]))
        ratio *= (np.exp(groups_noise(logs, statistics)[:DRAWS]) / means)[:, place]
    return found.count, found.mean_variance, found.mean_variance * ratio


def _hits(statistics: Any, settings: Settings, cells: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Samples, mean confidence and simulated accuracies of equal-count cells by confidence."""
    found = confidence_bins(statistics, cells, equal_count=True)
    order = np.argsort(found.confidence, kind="stable")
    count, confidence = found.count[order], np.clip(found.confidence[order], 0, 1)
    whole = np.maximum(np.rint(count * groups.effective(statistics)[1]).astype(np.int64), 1)
    share = np.random.default_rng(SEED).binomial(whole, confidence, (DRAWS, cells)) / whole
    if groups.count(statistics) is not None:
        place, means = _of_bins(share - confidence)
        left, _ = EQUAL_COUNT_CONFIDENCE.without_groups(statistics, replace(settings, n_bins=means.shape[1]))
        share = np.clip(share + (groups_noise(left, statistics)[:DRAWS] - means)[:, place], 0, 1)
    return count, confidence, share


def _of_bins(drawn: FloatArray) -> tuple[IntArray, FloatArray]:
    """The bin of each cell, and the mean of every draw over the cells of each bin."""
    cells = drawn.shape[1]
    bins = max(2, min(BINS, cells // 2))
    place = np.arange(cells) * bins // cells
    return place, np.add.reduceat(drawn, np.searchsorted(place, np.arange(bins)), axis=1) / np.bincount(place)
