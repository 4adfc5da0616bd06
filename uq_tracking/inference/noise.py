"""Noise floors: what a perfectly calibrated forecast scores merely because data are finite.

A score that is 0 at perfect calibration and never below is above 0 in every finite sample. Its floor is its
distribution when the truth is drawn from the forecasts themselves, with these standard deviations or confidences,
this number of samples, and these groups (Broecker 2012; Vaicenavicius et al. 2019; Widmann et al. 2019):

* **Independent samples.** Shares at levels are those of uniform variables (a Brownian bridge; drawn exactly for small
  N, Kolmogorov's law for ``pit_ks``). Mean squared errors of bins are gamma variables with the fourth moment of the
  family, or, for forecasts of other forms, of the errors; samples with equal standard deviations that fall into
  several bins share one. Bins of a classification are binomial. Weighted samples count as their effective number.
* **Groups.** Samples from one image resemble each other, so all that is known about the spread is what the groups
  show: the gaps follow a multivariate t with the groups' jackknife covariance and as many degrees of freedom as their
  sizes allow, G - 1 for equal ones. With fewer than twenty groups that covariance is poorly known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.inference import read
from uq_tracking.inference.few_errors import too_few_errors
from uq_tracking.inference.gaps import GRIDS, SCORES, GapScore, Kind
from uq_tracking.metrics.calibration import equal_count_bins
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.distribution import is_distribution
from uq_tracking.statistics.layout import Rows
from uq_tracking.statistics.orders import FloatArray, IntArray, Order
from uq_tracking.statistics.weights import equal_edges

DRAWS = 2000
"""Number of simulated scores of a calibrated forecast; it gives the share beyond a 5 % point to half a per cent."""
DRAWS_OF_GROUPS = 1000
"""The same, if groups are resampled."""
FULL_BIN = 50
"""With this many samples, groups show how a bin's gap of confidence and accuracy varies."""
FEWEST_GROUPS = 8
"""With fewer groups, nothing is said about their spread."""
TRUSTED_GROUPS = 20
"""From this number of groups on, p-values match simulations; below, they are a rough guide."""
SMALL = 300
"""Up to this many samples, shares at levels are drawn exactly."""
RANKS = 64
"""Number of positions in a bin at which its standard deviations are looked up."""
ORDERED_DIGITS = 9
"""Digits of contributions, relative to the largest, by which groups are ordered before drawing."""
KURTOSIS = {"gaussian": 3.0, "laplace": 6.0, "uniform": 1.8, "logistic": 4.2}
"""Fourth moments of the standardized families."""
LEAST_KURTOSIS = 1 + 1e-9
"""Kurtosis that is assumed at least; errors of equal size have 1, and squares that do not vary."""
SEED = 20120
"""Seed of the draws: the same report has the same floor wherever it is made."""


@dataclass(frozen=True)
class NoiseFloor:
    """What a calibrated forecast would score on the same amount of data.

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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def noise_floors(
    statistics: Any, task: str, settings: Settings, scores: Mapping[str, float]
) -> dict[str, NoiseFloor]:
    """The floor of every score that has one, by key; scores without enough groups or bins have none."""
    groups = read.group_count(statistics)
    chosen = {key: score for key, score in SCORES.get(task, {}).items() if key in scores}
    if not chosen or (groups is not None and groups < FEWEST_GROUPS):
        return {}
    if groups is not None and task == "classification" and too_few_errors(statistics.groups):
        return {}
    make = _independent if groups is None else _grouped
    note = "" if groups is None or groups >= TRUSTED_GROUPS else f"p from {groups} groups is a rough guide"
    floors: dict[str, NoiseFloor] = {}
    drawn: dict[Kind, Drawn | Uniform] = {}
    for key, score in chosen.items():
        try:
            if score.kind not in drawn:
                if score.kind == "variance":
                    require_stated_std(statistics)
                drawn[score.kind] = make(statistics, score.kind, settings)
            floors[key] = drawn[score.kind].floor(key, score, scores[key], note)
        except Undefined:
            continue
    return floors


@dataclass(frozen=True)
class Drawn:
    """Simulated gaps of a calibrated forecast, shape (draws, bins or levels), and the bins' weights."""

    gaps: FloatArray
    weights: FloatArray

    def floor(self, key: str, score: GapScore, observed: float, note: str) -> NoiseFloor:
        """Mean, 95 % point and p-value of a score."""
        return floor_of(np.sort(score.score(self.gaps, self.weights)), observed, note)


@dataclass(frozen=True)
class Uniform:
    """The law of the shares of ``n`` independent uniform variables at levels, computed once for all reports."""

    n: int

    def floor(self, key: str, score: GapScore, observed: float, note: str) -> NoiseFloor:
        """Mean, 95 % point and p-value of a score."""
        if key == "pit_ks":
            return kolmogorov_floor(self.n, observed, note)
        if self.n <= SMALL:
            return floor_of(_scores_of_uniforms(self.n, score), observed, note)
        return floor_of(_scores_of_bridge(score) * self.n ** (-score.degree / 2), observed, note)


def floor_of(drawn: FloatArray, observed: float, note: str = "") -> NoiseFloor:
    """The floor of a score from its simulated values, ascending; the observed value counts among them."""
    if not math.isfinite(drawn[-1]):
        raise Undefined("simulated scores overflow 64-bit numbers")
    beyond = len(drawn) - int(np.searchsorted(drawn, observed * (1 - 1e-12)))
    high = float(drawn[math.ceil(0.95 * len(drawn)) - 1])
    return NoiseFloor(float(drawn.mean()), high, (1 + beyond) / (1 + len(drawn)), note)


def kolmogorov_floor(n: int, observed: float, note: str = "") -> NoiseFloor:
    """The floor of ``pit_ks``, by Stephens' (1970) form of Kolmogorov's law for finite samples."""
    root = math.sqrt(n)
    stretch = root + 0.12 + 0.11 / root
    mean = math.sqrt(math.pi / 2) * math.log(2)
    return NoiseFloor(
        mean / stretch,
        float(special.kolmogi(0.05)) / stretch,
        float(special.kolmogorov(stretch * observed)),
        note,
    )


def _independent(statistics: Any, kind: Kind, settings: Settings) -> Drawn | Uniform:
    n, share = read.effective(statistics)
    if kind in GRIDS:
        return Uniform(round(n))
    rng = np.random.default_rng(SEED)
    if kind == "variance":
        cells = variance_cells(statistics, settings)
        drawn = rng.standard_gamma(cells.freedom / 2, (DRAWS, len(cells.freedom))) * 2 / cells.freedom
        return Drawn(drawn @ cells.shares.T - 1, cells.weights)
    bins = read.confidence_bins(statistics, settings.n_bins, equal=kind == "confidence_equal")
    count = np.rint(bins.count * share).astype(np.int64)
    hit = rng.binomial(count, np.clip(bins.confidence, 0, 1), (DRAWS, len(count)))
    return Drawn(hit / np.maximum(count, 1) - np.where(count > 0, bins.confidence, 0), count / n)


@lru_cache(maxsize=32)
def _scores_of_bridge(score: GapScore) -> FloatArray:
    return np.sort(score.score(bridge(score.kind), np.empty(0)))


@lru_cache(maxsize=32)
def _scores_of_uniforms(n: int, score: GapScore) -> FloatArray:
    return np.sort(score.score(uniform_gaps(n, score.kind), np.empty(0)))


def bridge(kind: Kind) -> FloatArray:
    """Brownian bridges at the levels of a kind of gap, shape (draws, levels)."""
    levels = GRIDS[kind]
    steps = np.diff(np.concatenate([[0.0], levels, [1.0]]))
    walk = np.cumsum(np.random.default_rng(SEED).normal(size=(DRAWS, len(steps))) * np.sqrt(steps), axis=1)
    return np.asarray(walk[:, :-1] - walk[:, -1:] * levels)


def uniform_gaps(n: int, kind: Kind) -> FloatArray:
    """Share of ``n`` uniform variables up to each level, minus the level, shape (draws, levels)."""
    levels = GRIDS[kind]
    cell = np.searchsorted(levels, np.random.default_rng(SEED).random((DRAWS // 2, n)))
    cell += (len(levels) + 1) * np.arange(len(cell))[:, None]
    count = np.bincount(cell.ravel(), minlength=len(cell) * (len(levels) + 1))
    return np.asarray(np.cumsum(count.reshape(len(cell), -1)[:, :-1], axis=1) / n - levels)


@dataclass(frozen=True)
class Cells:
    """Mean squared errors of bins, composed of independent cells: a bin's own samples, and ties across its edges.

    Attributes
    ----------
    freedom : array, shape (cells,)
        Degrees of freedom of each cell's mean squared error.
    shares : array, shape (bins, cells)
        Share of each bin's variance that lies in each cell.
    weights : array, shape (bins,)
        Weights of the bins in UCE.
    """

    freedom: FloatArray
    shares: FloatArray
    weights: FloatArray

    def of_bins(self) -> FloatArray:
        """Degrees of freedom of each bin's mean squared error."""
        return np.asarray(1 / (np.square(self.shares) @ (1 / self.freedom)))


def variance_cells(statistics: Any, settings: Settings) -> Cells:
    """Degrees of freedom of the mean squared errors of a calibrated forecast.

    ``(sum w s^2)^2 / sum w^2 s^4`` for Gaussian errors, without weights from the standard deviations at 64 ranks of
    each cell; other kurtoses multiply the variance of e^2 by (kurtosis - 1) / 2. For a sketch, weights are assumed
    unrelated to the standard deviations.
    """
    bins, order = equal_count_bins(statistics, settings.n_bins), statistics.orders["std"]
    if np.any(bins.mean_variance <= 0):
        raise Undefined("a bin's standard deviations are all 0")
    edges = equal_edges(statistics.n, len(bins.count)).astype(np.float64)
    ends = _without_cut_ties(order, edges)
    count = np.diff(ends)
    known = read.weighted_rows(statistics)
    if known is None:
        places = (np.arange(RANKS) + 0.5) / RANKS * count[:, None]
        std = order.value((ends[:-1, None] + np.ceil(places)).ravel()).reshape(-1, RANKS)
        square = np.square(std / std.max(axis=1, keepdims=True))
        spread = np.square(square).mean(axis=1) / np.square(square.mean(axis=1))
        units = count * read.effective(statistics)[1] / spread
    else:
        units = np.square(order.between("std2", ends)) / _sums_of_squares(*known, ends)
    overlap = np.minimum(edges[1:, None], ends[1:]) - np.maximum(edges[:-1, None], ends[:-1])
    variance = np.maximum(overlap, 0) * (order.between("std2", ends) / count)
    return Cells(
        units * 2 / (kurtosis(statistics, settings) - 1),
        variance / variance.sum(axis=1, keepdims=True),
        bins.count * bins.mean_variance / statistics.n,
    )


def _without_cut_ties(order: Order, edges: FloatArray) -> FloatArray:
    """The edges, with each edge inside a tie replaced by the ends of the tie."""
    inner = edges[1:-1]
    value = order.value(inner)
    low, high = order.position(value, "left"), order.position(value)
    cut = high > inner * (1 + 1e-9)
    return np.unique(np.concatenate([edges[[0, -1]], inner[~cut], low[cut], high[cut]]))


def _sums_of_squares(rows: Rows, weight: FloatArray, edges: FloatArray) -> FloatArray:
    """Sum of ``(w s^2)^2`` of each bin; a sample that straddles an edge counts in proportion."""
    std = rows["std"].astype(np.float64)
    order = np.lexsort((weight, std))  # independent of the order of the samples
    ends = np.concatenate([[0.0], np.cumsum(weight[order])])
    squares = np.concatenate([[0.0], np.cumsum(np.square(weight * np.square(std))[order])])
    return np.asarray(np.diff(np.interp(edges, ends, squares)))


NO_STD = {
    "draws": "the std of draws is an estimate",
    "quantiles": "the std of quantiles is an approximation",
    "interval": "the std of an interval is an approximation",
}
"""Forms whose std is not the forecast's, so that even calibrated forecasts have other mean squared errors in bins."""


def require_stated_std(statistics: Any) -> None:
    """Raise Undefined if the std is an estimate, which does not tell how large squared errors should be."""
    reason = NO_STD.get(statistics.facts.get("distribution") or "")
    if reason:
        raise Undefined(reason)


def kurtosis(statistics: Any, settings: Settings) -> float:
    """Fourth moment of standardized errors over their squared second moment, for a calibrated forecast.

    The family's, if it is known and describes how means of a few hundred squares vary. Student's does not (with five
    degrees of freedom it makes the floor of 1000 samples a fifth too high), and mixtures, distribution objects and
    densities do not state theirs; for these it is estimated from the errors.
    """
    family, other = read.family(settings), is_distribution(statistics)
    if not other and family.name in KURTOSIS:
        return KURTOSIS[family.name]
    dof = getattr(family, "dof", None)
    if not other and dof is None:
        u = (np.arange(4096) + 0.5) / 4096
        return float(np.mean(np.power(family.quantile(u), 4)))
    if dof is not None and dof <= 4:
        raise Undefined("squared errors of this family have no variance, so there is no floor")
    z = statistics.moments["z"]
    size = math.sqrt(z.variance() + z.mean * z.mean)
    if not 0 < size < math.inf:
        raise Undefined("standardized errors are all 0, or not finite")
    fourth = read.power_sums(statistics, "z", lambda z: np.power(z / size, 4)[None])[0] / statistics.n
    return max(float(fourth), LEAST_KURTOSIS)


def _grouped(statistics: Any, kind: Kind, settings: Settings) -> Drawn:
    moves, weights = group_moves(statistics, kind, settings)
    noise = multivariate_t(left_out_moves(moves), read.group_freedom(statistics))
    if kind == "variance":  # moves of log(MSE / MV), which do not depend on how large the ratio is
        return Drawn(np.expm1(noise), weights)
    return Drawn(noise, weights)


def left_out_moves(without: FloatArray) -> FloatArray:
    """Contributions of groups from the gaps without each: their outer products sum to the covariance."""
    groups = len(without)
    return np.asarray((without.mean(axis=0) - without) * math.sqrt((groups - 1) / groups))


def multivariate_t(contributions: FloatArray, freedom: float) -> FloatArray:
    """Draws with the covariance of the contributions' outer products, heavy-tailed because that is an estimate.

    ``freedom`` is what the group sizes allow, at most their number minus one. The draws depend neither on the order
    of the groups nor on rounding.
    """
    size = max(float(np.abs(contributions).max(initial=0.0)), read.ZERO_GAP)
    order = np.lexsort(np.round(contributions / size, ORDERED_DIGITS).T)
    return np.asarray(_t_weights(len(contributions), freedom) @ contributions[order])


@lru_cache(maxsize=8)
def _t_weights(groups: int, freedom: float) -> FloatArray:
    """Weights of groups in every draw: normal, over the root of a chi-square divided by its degrees of freedom."""
    rng = np.random.default_rng(SEED)
    made = rng.normal(size=(DRAWS_OF_GROUPS, groups))
    known = max(1.0, min(groups - 1.0, freedom))
    made *= np.sqrt(known / rng.chisquare(known, (DRAWS_OF_GROUPS, 1)))
    made.setflags(write=False)
    return np.asarray(made)


def group_moves(statistics: Any, kind: Kind, settings: Settings) -> tuple[FloatArray, FloatArray]:
    """The gaps without each group, shape (groups, bins or levels), and the bins' weights.

    Bins of variances hold the log of mean squared error over mean variance.
    """
    if kind in GRIDS:
        counted = read.below_quantiles if kind == "quantiles" else read.covered
        inside = counted(statistics, read.family(settings), GRIDS[kind])
        return shares_without(inside, statistics) - GRIDS[kind], np.empty(0)
    if kind == "variance":
        if np.sum(statistics.groups.sums["n"]) < settings.n_bins:
            raise Undefined("too few samples for the bins")
        _, variance, square = read.variance_sums(statistics, settings.n_bins)
        return _log_ratio_without(square, variance), variance.sum(axis=0) / read.group_total(statistics)
    count, confidence, correct = read.confidence_sums(
        statistics, settings.n_bins, equal=kind == "confidence_equal"
    )
    gap = without(correct - confidence) / np.maximum(without(count), 1e-300)
    total = count.sum(axis=0)
    return np.where(total > 0, gap, 0.0), total / read.group_total(statistics)


def held_by_bins(statistics: Any, n_bins: int) -> tuple[FloatArray, IntArray]:
    """Samples in each bin of ECE, and groups with any there."""
    count, tables = read.confidence_sums(statistics, n_bins, equal=False)[0], statistics.groups
    samples = count.sum(axis=0) * (np.sum(tables.sums["n"]) / read.group_total(statistics))
    return samples, (count > 0.5 * tables.unit).sum(axis=0)


def is_thin(samples: FloatArray, groups: IntArray) -> npt.NDArray[np.bool_]:
    """Which bins hold too little to show how their gap varies between groups."""
    return np.asarray((samples < FULL_BIN) | (groups < FEWEST_GROUPS))


def shares_without(counts: FloatArray, statistics: Any) -> FloatArray:
    """Shares of the samples of all groups except each one."""
    return np.asarray(without(counts) / without(read.group_sizes(statistics))[:, None])


def without(sums: FloatArray) -> FloatArray:
    """Sum over all groups except each one."""
    return np.asarray(sums.sum(axis=0) - sums)


def _log_ratio_without(square: FloatArray, variance: FloatArray) -> FloatArray:
    left, stated = without(square), without(variance)
    if np.any(left <= 0) or np.any(stated <= 0):
        raise Undefined("only one group of a bin has errors, or standard deviations, above 0")
    return np.asarray(np.log(left / stated))
