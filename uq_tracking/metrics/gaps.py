"""Calibration scores as a gap and a reduction: what is observed minus what is stated, and how that becomes a number.

A gap knows its value for all samples and without each group, how it varies for a calibrated forecast, and the band in
which the points of a calibrated forecast lie. So a metric declared with ``gap=`` and ``reduction=`` has a score, a
noise floor and an interval, and a curve declared with ``gap=`` a band, without further code.

How gaps vary under calibration: with independent samples, shares at levels are those of uniform variables (a Brownian
bridge; drawn exactly for small N), mean squared errors of bins are gamma variables with the fourth moment of the
family, or, for forecasts of other forms, of the errors; samples with equal standard deviations that fall into several
bins share one. Bins of a classification are binomial. Weighted samples count as their effective number. With groups,
gaps follow a multivariate t with the groups' jackknife covariance.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.families import family_of
from uq_tracking.inputs.forms import form_of
from uq_tracking.metrics import groups
from uq_tracking.metrics.events import event_order, events_of_groups, square_of, two_classes, weighted_cells
from uq_tracking.metrics.proper_scores import LEVELS, require_variance, share_within
from uq_tracking.metrics.registry import Undefined, intermediate, require_squares
from uq_tracking.settings import Settings
from uq_tracking.statistics.classification import BY_WEIGHT, MOST_BINNED, ON_EDGE, ClassSums
from uq_tracking.statistics.layout import Rows
from uq_tracking.statistics.orders import FloatArray, IntArray, Order
from uq_tracking.statistics.regression import expected_below, is_distribution
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import equal_edges
from uq_tracking.typed import override

PROPORTIONS = np.linspace(0, 1, 100)
"""Grid of ``mace``, ``rmsce`` and ``miscalibration_area``, both ends included."""
DRAWS = 2000
"""Number of simulated scores of a calibrated forecast; it gives the share beyond a 5 % point to half a per cent."""
DRAWS_OF_GROUPS = 1000
"""The same, if groups are resampled."""
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
FULL_BIN, FULL_GROUPS = 50, 8
"""With this many samples, and groups, in a bin, groups show how its gap of confidence and accuracy varies."""
SEED = 20120
"""Seed of the draws: the same report has the same floor wherever it is made."""
TAILS = (0.025, 0.975)
"""Ends of the pointwise bands."""

Ends: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Reduction:
    """Reduction of gaps to a score.

    Parameters
    ----------
    norm : {"absolute", "square", "root", "largest", "supremum"}
        Mean of absolute gaps, of squared gaps, the root of the latter, or the largest gap; ``supremum`` if the
        metric's own function finds the largest one between levels too, which follows Kolmogorov's law.
    over : {"equal", "samples", "area", "polygon"}
        What the mean is over: bins or levels alike, bins by their share of the samples, levels by the trapezoidal
        rule, or the polygon through the gaps, split exactly where it crosses zero.
    side : {-1, 0, 1}
        Which gaps count: negative ones, all, or positive ones.

    Examples
    --------
    >>> gaps = np.array([-0.1, 0.3])
    >>> float(Reduction("square")(gaps)), float(Reduction("largest", side=-1)(gaps))
    (0.05, 0.1)
    """

    norm: Literal["absolute", "square", "root", "largest", "supremum"]
    over: Literal["equal", "samples", "area", "polygon"] = "equal"
    side: Literal[-1, 0, 1] = 0

    def __call__(
        self, gaps: FloatArray, shares: FloatArray | None = None, levels: FloatArray | None = None
    ) -> FloatArray:
        """Reduce gaps of shape (..., bins or levels), so that thousands of simulated ones cost one call."""
        if self.over == "polygon" and levels is not None:
            one, other = np.abs(gaps[..., :-1]), np.abs(gaps[..., 1:])
            crossing, total = gaps[..., :-1] * gaps[..., 1:] < 0, one + other
            height = np.where(crossing, (one**2 + other**2) / np.where(total > 0, 2 * total, 1), total / 2)
            return np.asarray(height @ np.diff(levels))
        counted = self.counted(gaps)
        if self.is_largest:
            return np.asarray(np.abs(counted).max(axis=-1))
        terms = np.abs(counted) if self.norm == "absolute" else np.square(counted)
        if self.over == "area":
            mean = np.trapezoid(terms, levels, axis=-1)
        else:
            mean = terms @ shares if self.over == "samples" else terms.mean(axis=-1)
        return np.asarray(np.sqrt(mean) if self.norm == "root" else mean)

    @property
    def is_largest(self) -> bool:
        """Return whether it is a largest gap rather than a mean."""
        return self.norm in ("largest", "supremum")

    @property
    def degree(self) -> int:
        """Degree of homogeneity: the power with which a common factor on all gaps enters the score."""
        return 2 if self.norm == "square" else 1

    def counted(self, gaps: FloatArray) -> FloatArray:
        """Gaps that count, with 0 for the others."""
        return gaps if self.side == 0 else np.asarray(self.side * np.maximum(self.side * gaps, 0))

    def weights(self, shares: FloatArray, levels: FloatArray | None, size: int) -> FloatArray:
        """Weight of each gap in the mean."""
        if self.over == "samples":
            return shares
        if levels is None or self.over == "equal":
            return np.full(size, 1 / size)
        steps = np.diff(levels)
        return np.asarray((np.concatenate([[0.0], steps]) + np.concatenate([steps, [0.0]])) / 2)


Law: TypeAlias = Callable[[Reduction], FloatArray]
"""Simulated scores of a calibrated forecast, ascending."""


class Gap(ABC):
    """Observed minus stated values, at every level or in every bin.

    Subclass it for another kind of gap; for other levels, `LevelGap` suffices. ``statistics`` are those of a task;
    where groups are concerned, they may be those of groups alone.
    """

    levels: FloatArray | None = None
    """Levels of the gaps; None for bins."""

    @abstractmethod
    def observed(self, statistics: Statistics, settings: Settings) -> Ends:
        """Gaps, and the bins' shares of the samples (empty for levels)."""

    @abstractmethod
    def law(self, statistics: Statistics, settings: Settings) -> Law:
        """Law of the gaps of a calibrated forecast with independent samples."""

    @abstractmethod
    def without_groups(self, statistics: Any, settings: Settings) -> Ends:
        """Gaps without each group, shape (groups, bins or levels), and the bins' shares of the samples."""

    @abstractmethod
    def band(self, x: FloatArray, statistics: Statistics, settings: Settings) -> Ends:
        """Ends of the values that a calibrated forecast shows by chance where it states ``x``."""

    def law_of_groups(self, statistics: Statistics, settings: Settings) -> Law:
        """Law of the gaps of a calibrated forecast with these groups."""
        left, shares = self.without_groups(statistics, settings)
        return self.drawn(groups_noise(left, statistics), shares)

    def drawn(self, gaps: FloatArray, shares: FloatArray) -> Law:
        """Law from simulated gaps, shape (draws, bins or levels)."""
        return lambda reduction: np.sort(reduction(gaps, shares, self.levels))

    def why_no_law(self, statistics: Statistics) -> str:
        """Say why calibrated forecasts of this form have other gaps than the law says, "" if they do not."""
        return ""

    def why_no_largest(self, statistics: Any, settings: Settings) -> str:
        """Say why too few samples leave open which gap is the largest, "" if they do not."""
        return ""

    def score(self, statistics: Statistics, settings: Settings, reduction: Reduction) -> float:
        """The gaps' reduction."""
        gaps, shares = self.observed(statistics, settings)
        return float(reduction(gaps, shares, self.levels))


def coverage_at(statistics: Statistics, settings: Settings, levels: FloatArray) -> FloatArray:
    """Share of the samples inside the central interval of each level, ends included."""
    if is_distribution(statistics):
        upper = expected_below(statistics, (1 + levels) / 2)
        return (upper - expected_below(statistics, (1 - levels) / 2, closed=False)) / statistics.n
    return share_within(statistics, family_of(settings).central(levels))


def quantile_shares(statistics: Statistics, settings: Settings, levels: FloatArray) -> FloatArray:
    """Share of the samples with ``F(y) <= p`` for each level p."""
    if is_distribution(statistics):
        return expected_below(statistics, levels) / statistics.n
    below = statistics.orders["z"].position(family_of(settings).quantile(levels))
    return np.minimum(below / statistics.n, 1.0)


@dataclass(frozen=True, eq=False)
class LevelGap(Gap):
    """Share of the targets inside central intervals, or below quantiles, minus the level.

    Parameters
    ----------
    levels : array
        Ascending levels between 0 and 1.
    central : bool
        Whether of central intervals; otherwise of quantiles.
    """

    levels: FloatArray
    central: bool = True

    @override
    def observed(self, statistics: Statistics, settings: Settings) -> Ends:
        return _level_gaps(statistics, self, settings), np.empty(0)

    @override
    def law(self, statistics: Statistics, settings: Settings) -> Law:
        n = round(statistics.n_effective)
        if n <= SMALL:
            return lambda reduction: _scores_of_uniforms(n, self, reduction)
        return lambda reduction: _scores_of_bridges(self, reduction) * n ** (-reduction.degree / 2)

    @override
    def without_groups(self, statistics: Any, settings: Settings) -> Ends:
        counted = groups.covered if self.central else groups.below_quantiles
        left = groups.without(counted(statistics, family_of(settings), self.levels))
        return left / groups.without(groups.sizes(statistics))[:, None] - self.levels, np.empty(0)

    @override
    def band(self, x: FloatArray, statistics: Statistics, settings: Settings) -> Ends:
        if groups.count(statistics) is None:
            n = np.full(len(x), float(statistics.n_effective))
            low, high = (binomial_share(tail, n, x) for tail in TAILS)
            return low, high
        reach = groups_reach(self.without_groups(statistics, settings)[0], statistics, x)
        return np.clip(x - reach, 0.0, 1.0), np.clip(x + reach, 0.0, 1.0)


@intermediate
def _level_gaps(statistics: Statistics, gap: LevelGap, settings: Settings) -> FloatArray:
    observed = coverage_at if gap.central else quantile_shares
    return observed(statistics, settings, gap.levels) - gap.levels


@lru_cache(maxsize=32)
def _scores_of_bridges(gap: LevelGap, reduction: Reduction) -> FloatArray:
    """Sorted scores of Brownian bridges, for all reports."""
    steps = np.diff(np.concatenate([[0.0], gap.levels, [1.0]]))
    walk = np.cumsum(np.random.default_rng(SEED).normal(size=(DRAWS, len(steps))) * np.sqrt(steps), axis=1)
    return gap.drawn(walk[:, :-1] - walk[:, -1:] * gap.levels, np.empty(0))(reduction)


@lru_cache(maxsize=32)
def _scores_of_uniforms(n: int, gap: LevelGap, reduction: Reduction) -> FloatArray:
    """Sorted scores of ``n`` uniform variables, for all reports of that size."""
    levels = gap.levels
    cell = np.searchsorted(levels, np.random.default_rng(SEED).random((DRAWS // 2, n)))
    cell += (len(levels) + 1) * np.arange(len(cell))[:, None]
    count = np.bincount(cell.ravel(), minlength=len(cell) * (len(levels) + 1))
    shares = np.cumsum(count.reshape(len(cell), -1)[:, :-1], axis=1) / n
    return gap.drawn(shares - levels, np.empty(0))(reduction)


def binomial_share(tail: float, n: FloatArray, p: FloatArray) -> FloatArray:
    """Quantile of the share of n samples, each of which counts with probability p."""
    share = np.clip(p, 1e-12, 1 - 1e-12)
    count = np.ceil(np.nan_to_num(special.bdtrik(tail, n, share)) - 1e-9)
    count = np.where(np.power(1 - share, n) >= tail, 0.0, count)
    return np.asarray(np.clip(count / n, 0.0, 1.0))


@dataclass(frozen=True)
class Bins:
    """Equal-count bins of the samples sorted by std; equal-weight bins if samples have weights."""

    count: FloatArray
    mean_variance: FloatArray
    mean_squared_error: FloatArray
    std_low: FloatArray
    std_high: FloatArray


@intermediate
def equal_count_bins(statistics: Statistics, n_bins: int) -> Bins:
    """Bins with the sizes of ``numpy.array_split``; a tie that straddles an edge is split evenly."""
    if statistics.n < n_bins:
        raise Undefined(f"{statistics.n:g} samples cannot fill {n_bins} bins; lower n_bins")
    std, edges = statistics.moments["std"], equal_edges(statistics.n, n_bins)
    require_squares(std.low, std.high, "standard deviations")
    order, count = statistics.orders["std"], np.diff(edges).astype(float)
    return Bins(
        count,
        order.between("std2", edges) / count,
        order.between("sq_error", edges) / count,
        order.value(edges[:-1] + 1),
        order.value(edges[1:]),
    )


class ErrorGap(Gap):
    """RMSE over root mean variance, minus 1, in equal-count bins by std."""

    @override
    def observed(self, statistics: Statistics, settings: Settings) -> Ends:
        require_variance(statistics, settings)
        bins = equal_count_bins(statistics, settings.n_bins)
        if np.any(bins.mean_variance <= 0):
            raise Undefined(
                "a bin's standard deviations are all 0, so its error cannot be normalized; set std_floor"
            )
        rmv, rmse = np.sqrt(bins.mean_variance), np.sqrt(bins.mean_squared_error)
        return (rmse - rmv) / rmv, bins.count / statistics.n

    @override
    def why_no_law(self, statistics: Statistics) -> str:
        return form_of(statistics.facts).std_caveat

    @override
    def law(self, statistics: Statistics, settings: Settings) -> Law:
        cells, bins = variance_cells(statistics, settings), equal_count_bins(statistics, settings.n_bins)
        drawn = np.random.default_rng(SEED).standard_gamma(cells.freedom / 2, (DRAWS, len(cells.freedom)))
        ratios = drawn * 2 / cells.freedom @ cells.shares.T
        return self._of_ratios(ratios, bins.mean_variance, bins.count / statistics.n)

    @override
    def law_of_groups(self, statistics: Statistics, settings: Settings) -> Law:
        ratios = np.exp(groups_noise(log_ratios_without(statistics, settings), statistics))
        count, variance, _ = (sums.sum(axis=0) for sums in groups.variance_sums(statistics, settings.n_bins))
        return self._of_ratios(ratios, variance / count, count / groups.total(statistics))

    def _of_ratios(self, ratios: FloatArray, variance: FloatArray, shares: FloatArray) -> Law:
        """Law from simulated ratios of mean squared error and mean variance."""
        return self.drawn(np.sqrt(ratios) - 1, shares)

    @override
    def without_groups(self, statistics: Any, settings: Settings) -> Ends:
        return np.expm1(log_ratios_without(statistics, settings) / 2), np.empty(0)

    @override
    def band(self, x: FloatArray, statistics: Statistics, settings: Settings) -> Ends:
        if groups.count(statistics) is None:
            freedom = _of_points(variance_cells(statistics, settings).of_bins(), x)
            low, high = (np.sqrt(special.gammaincinv(freedom / 2, tail) * 2 / freedom) for tail in TAILS)
            return x * low, x * high
        reach = groups_reach(log_ratios_without(statistics, settings), statistics, x)
        return x * np.exp(-reach / 2), x * np.exp(reach / 2)


class VarianceGap(ErrorGap):
    """Mean squared error minus mean variance, in equal-count bins by std: the same in the target's unit."""

    @override
    def observed(self, statistics: Statistics, settings: Settings) -> Ends:
        require_variance(statistics, settings)
        bins = equal_count_bins(statistics, settings.n_bins)
        return bins.mean_squared_error - bins.mean_variance, bins.count / statistics.n

    @override
    def _of_ratios(self, ratios: FloatArray, variance: FloatArray, shares: FloatArray) -> Law:
        return self.drawn((ratios - 1) * variance, shares)

    @override
    def without_groups(self, statistics: Any, settings: Settings) -> Ends:
        count, variance, square = groups.variance_sums(statistics, settings.n_bins)
        gaps = groups.without(square - variance) / groups.without(count)
        return gaps, count.sum(axis=0) / groups.total(statistics)


def log_ratios_without(statistics: Any, settings: Settings) -> FloatArray:
    """Log of mean squared error over mean variance of each bin, without each group; it varies alike at any ratio."""
    if np.sum(statistics.groups.sums["n"]) < settings.n_bins:
        raise Undefined("too few samples for the bins")
    _, variance, square = groups.variance_sums(statistics, settings.n_bins)
    left, stated = groups.without(square), groups.without(variance)
    if np.any(left <= 0) or np.any(stated <= 0):
        raise Undefined("only one group of a bin has errors, or standard deviations, above 0")
    return np.asarray(np.log(left / stated))


@dataclass(frozen=True)
class Cells:
    """Mean squared errors of bins, composed of independent cells: a bin's own samples, and ties across its edges.

    Attributes
    ----------
    freedom : array, shape (cells,)
        Degrees of freedom of each cell's mean squared error.
    shares : array, shape (bins, cells)
        Share of each bin's variance that lies in each cell.
    """

    freedom: FloatArray
    shares: FloatArray

    def of_bins(self) -> FloatArray:
        """Degrees of freedom of each bin's mean squared error."""
        return np.asarray(1 / (np.square(self.shares) @ (1 / self.freedom)))


@intermediate
def variance_cells(statistics: Statistics, settings: Settings) -> Cells:
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
    known = groups.weighted_rows(statistics)
    if known is None:
        places = (np.arange(RANKS) + 0.5) / RANKS * count[:, None]
        std = order.value((ends[:-1, None] + np.ceil(places)).ravel()).reshape(-1, RANKS)
        square = np.square(std / std.max(axis=1, keepdims=True))
        spread = np.square(square).mean(axis=1) / np.square(square.mean(axis=1))
        units = count * groups.effective(statistics)[1] / spread
    else:
        units = np.square(order.between("std2", ends)) / _sums_of_squares(*known, ends)
    overlap = np.minimum(edges[1:, None], ends[1:]) - np.maximum(edges[:-1, None], ends[:-1])
    variance = np.maximum(overlap, 0) * (order.between("std2", ends) / count)
    return Cells(
        units * 2 / (kurtosis(statistics, settings) - 1), variance / variance.sum(axis=1, keepdims=True)
    )


def _without_cut_ties(order: Order, edges: FloatArray) -> FloatArray:
    """Replace each edge inside a tie by the ends of the tie."""
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


def kurtosis(statistics: Statistics, settings: Settings) -> float:
    """Fourth moment of standardized errors over their squared second moment, for a calibrated forecast.

    The family's, if it is known and describes how means of a few hundred squares vary. Student's does not (with five
    degrees of freedom it makes the floor of 1000 samples a fifth too high), and mixtures, distribution objects and
    densities do not state theirs; for these it is estimated from the errors.
    """
    family, other = family_of(settings), is_distribution(statistics)
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
    return max(groups.mean_of_z(statistics, lambda z: np.power(z / size, 4)), LEAST_KURTOSIS)


MOST_DRAWN = 1 << 22
"""Numbers of simulated gaps that are held at a time."""


@dataclass(frozen=True)
class ConfidenceBins:
    """Bins of the samples by stated probability; empty ones hold zeros, not NaN."""

    low: FloatArray
    high: FloatArray
    count: FloatArray
    accuracy: FloatArray
    confidence: FloatArray


@intermediate
def confidence_bins(
    statistics: Statistics, n_bins: int, equal_count: bool = False, top: bool = False
) -> ConfidenceBins:
    """Bins of the stated probability: ``[b/n, (b+1)/n)``, the last one closed, or those of ``numpy.array_split``.

    Of two classes it is that of the event, unless ``top``; of more, that of the top label.
    """
    if equal_count and statistics.n < n_bins:
        raise Undefined(f"{statistics.n:g} samples cannot fill {n_bins} bins; lower n_bins")
    order = event_order(statistics, top=top or not two_classes(statistics))
    if equal_count:
        ends = equal_edges(statistics.n, n_bins).astype(float)
        edges = order.value(np.minimum(ends + 1, statistics.n))
    else:
        edges = np.arange(n_bins + 1) / n_bins  # a probability at an edge belongs to the bin above
        positions = order.position(edges[1:-1] * (1 - ON_EDGE), side="left")
        ends = np.concatenate([[0.0], positions, [order.total]])
    count = np.diff(ends)
    held = np.maximum(count, 1e-300)
    stated, events = (order.between(name, ends) / held for name in ("probability", "event"))
    some = count > 0
    return ConfidenceBins(
        edges[:-1], edges[1:], count, np.where(some, events, 0.0), np.where(some, stated, 0.0)
    )


@dataclass(frozen=True, eq=False)
class ConfidenceGap(Gap):
    """Share that occurs minus the stated probability, in bins of that of equal width, or of equal count.

    Of two classes it is the event's, unless ``top``; else the top label's: accuracy minus confidence.
    """

    equal_count: bool = False
    top: bool = False

    def bins(self, statistics: Any, n_bins: int) -> ConfidenceBins:
        """Return the bins, with what is stated and what occurs."""
        return confidence_bins(statistics, n_bins, self.equal_count, self.top)

    @override
    def observed(self, statistics: Statistics, settings: Settings) -> Ends:
        bins = self.bins(statistics, settings.n_bins)
        return bins.accuracy - bins.confidence, bins.count / statistics.n

    @override
    def law(self, statistics: Statistics, settings: Settings) -> Law:
        bins = self.bins(statistics, settings.n_bins)
        effective = self._effective(bins, statistics)
        count = np.rint(effective).astype(np.int64)
        law = self.drawn(_binomial_gaps(count, bins.confidence, DRAWS), bins.count / statistics.n)
        if statistics.n_effective == statistics.n or np.all(effective[bins.count > 0] >= FULL_BIN):
            return law

        def of_full_bins(reduction: Reduction) -> FloatArray:
            if reduction.is_largest:
                raise Undefined("some bins hold too few samples to know how weights move the largest gap")
            return law(reduction)

        return of_full_bins

    def _effective(self, bins: ConfidenceBins, statistics: Any) -> FloatArray:
        """Number of unweighted samples whose events would vary as those of each bin do."""
        n, share = groups.effective(statistics)
        if n == statistics.n:
            return bins.count * share
        cells, square = weighted_cells(statistics, top=self.top or not two_classes(statistics))
        place = np.searchsorted(bins.low[1:], cells.probability / cells.count * (1 + ON_EDGE), side="right")
        even, uneven = (np.bincount(place, column, len(bins.low)) for column in (cells.variance, square))
        units: FloatArray = np.divide(even, uneven, out=np.full(len(even), share), where=uneven > 0)
        return bins.count * units

    def sums(self, statistics: Any, n_bins: int) -> list[FloatArray]:
        """Samples, sums of stated probability and those that occur of each group in each bin, lowest first."""
        if self.equal_count:
            edges = groups.positions(statistics, lambda total: equal_edges(total, n_bins))
        else:
            ends = np.concatenate([[0.0], np.cumsum(self.bins(statistics, n_bins).count)])
            edges = ends * (groups.total(statistics) / ends[-1])
        top = self.top or not two_classes(statistics)
        table = events_of_groups(statistics.groups, top=top)
        return groups.binned(table, edges, ("count", "probability", "event"))

    @override
    def without_groups(self, statistics: Any, settings: Settings) -> Ends:
        count, confidence, correct = self.sums(statistics, settings.n_bins)
        gap = groups.without(correct - confidence) / np.maximum(groups.without(count), 1e-300)
        total = count.sum(axis=0)
        return np.where(total > 0, gap, 0.0), total / groups.total(statistics)

    @override
    def band(self, x: FloatArray, statistics: Statistics, settings: Settings) -> Ends:
        """Band of the non-empty bins; in a thin one, each group counts at most as a single sample."""
        bins = self.bins(statistics, settings.n_bins)
        there = bins.count > 0
        if groups.count(statistics) is None:
            n = self._effective(bins, statistics)[there]
            low, high = (binomial_share(tail, n, x) for tail in TAILS)
            return low, high
        samples, held = self._held(statistics, settings)
        samples, held = samples[there], held[there]
        left = self.without_groups(statistics, settings)[0]
        reach = groups_reach(left[:, there], statistics, x)
        low, high = np.clip(x - reach, 0.0, 1.0), np.clip(x + reach, 0.0, 1.0)
        thin, n = _is_thin(samples, held), np.maximum(held, 1).astype(float)
        low = np.where(thin, np.minimum(low, binomial_share(TAILS[0], n, x)), low)
        return low, np.where(thin, np.maximum(high, binomial_share(TAILS[1], n, x)), high)

    @override
    def why_no_largest(self, statistics: Any, settings: Settings) -> str:
        samples, held = self._held(statistics, settings)
        thin = samples[(samples > 0) & _is_thin(samples, held)]
        if not len(thin):
            return ""
        return (
            f"{len(thin)} bins hold too few samples (as few as {thin.min():.0f}) but may have the largest gap; "
            "lower n_bins"
        )

    def _held(self, statistics: Any, settings: Settings) -> tuple[FloatArray, IntArray]:
        """Samples in each bin, and groups with any there."""
        count, tables = self.sums(statistics, settings.n_bins)[0], statistics.groups
        samples = count.sum(axis=0) * (np.sum(tables.sums["n"]) / groups.total(statistics))
        return samples, (count > 0.5 * tables.unit).sum(axis=0)


@dataclass(frozen=True, eq=False)
class ClassGap(Gap):
    """Share of each class minus its stated probability, in bins of that of equal width; classes side by side."""

    def bins(self, statistics: Any, settings: Settings) -> FloatArray:
        """Return the sums of `ClassSums.bins` in these bins, one class after the other, shape (6, C n_bins)."""
        found = sums_of_classes(statistics).joined(settings.n_bins)
        if found is None:
            raise Undefined(f"bins of classes are kept for 10, 5 or 2 bins and up to {MOST_BINNED} classes")
        return np.asarray(found.reshape(6, -1))

    @override
    def observed(self, statistics: Statistics, settings: Settings) -> Ends:
        count, stated, _, occurs = self.bins(statistics, settings)[:4]
        return (occurs - stated) / np.maximum(count, 1e-300), count / count.sum()

    @override
    def law(self, statistics: Statistics, settings: Settings) -> Law:
        """Binomial law, more than two classes independent: of the mean, the error by that is 2 %."""
        sums, size = self.bins(statistics, settings), settings.n_bins
        weight, stated = sums[:2]
        p = stated / np.maximum(weight, 1e-300)
        spread = [
            square_of(sums[BY_WEIGHT, place : place + size], p[place : place + size], np.arange(size))
            for place in range(0, len(p), size)
        ]
        count = np.rint(weight / np.maximum(np.concatenate(spread), 1e-300)).astype(np.int64)
        draws = max(min(DRAWS, MOST_DRAWN // len(count)), 1)
        drawn = _binomial_gaps(count, p, draws)
        if len(p) == 2 * size:  # where one class occurs, the other does not
            drawn[:, :size] = -drawn[:, : size - 1 : -1]
        return self.drawn(drawn, weight / weight.sum())

    @override
    def without_groups(self, statistics: Any, settings: Settings) -> Ends:
        raise Undefined("how often classes occur in bins of their probability is not kept by group")

    @override
    def band(self, x: FloatArray, statistics: Statistics, settings: Settings) -> Ends:
        raise Undefined("the curve of each class has a band of its own")


def _binomial_gaps(count: IntArray, p: FloatArray, draws: int) -> FloatArray:
    """Draw the gaps between observed shares and their probabilities; 0 in empty bins."""
    drawn = np.random.default_rng(SEED).binomial(count, np.clip(p, 0, 1), (draws, len(count)))
    return np.asarray(drawn / np.maximum(count, 1) - np.where(count > 0, p, 0))


def sums_of_classes(statistics: Statistics) -> ClassSums:
    """Return the sums by class; Undefined if they were not counted."""
    if statistics.classes is None:
        raise Undefined(
            "these statistics hold no sums of the probability of each class: strata, resamples, steps, older "
            "versions and calls for metrics of the top label alone keep none"
        )
    return statistics.classes


def _is_thin(samples: FloatArray, held: IntArray) -> npt.NDArray[np.bool_]:
    """Find the bins that hold too little to show how their gap varies between groups."""
    return np.asarray((samples < FULL_BIN) | (held < FULL_GROUPS))


def left_out_moves(without: FloatArray) -> FloatArray:
    """Contributions of groups from the gaps without each: their outer products sum to the covariance."""
    count = len(without)
    return np.asarray((without.mean(axis=0) - without) * math.sqrt((count - 1) / count))


def multivariate_t(contributions: FloatArray, freedom: float) -> FloatArray:
    """Draws with the covariance of the contributions' outer products, heavy-tailed because that is an estimate.

    ``freedom`` is what the group sizes allow, at most their number minus one. The draws depend neither on the order
    of the groups nor on rounding.
    """
    size = max(float(np.abs(contributions).max(initial=0.0)), groups.ZERO_GAP)
    order = np.lexsort(np.round(contributions / size, ORDERED_DIGITS).T)
    return np.asarray(_t_weights(len(contributions), freedom) @ contributions[order])


@lru_cache(maxsize=8)
def _t_weights(count: int, freedom: float) -> FloatArray:
    """Weights of groups in every draw: normal, over the root of a chi-square divided by its degrees of freedom."""
    rng = np.random.default_rng(SEED)
    made = rng.normal(size=(DRAWS_OF_GROUPS, count))
    known = max(1.0, min(count - 1.0, freedom))
    made *= np.sqrt(known / rng.chisquare(known, (DRAWS_OF_GROUPS, 1)))
    made.setflags(write=False)
    return np.asarray(made)


def groups_noise(without: FloatArray, statistics: Statistics) -> FloatArray:
    """Draws of gaps as the groups vary, around zero."""
    return multivariate_t(left_out_moves(without), groups.freedom(statistics))


def groups_reach(without: FloatArray, statistics: Statistics, x: FloatArray) -> FloatArray:
    """Half-width of Student's interval of each gap at the points of a curve."""
    known = max(1.0, min(len(without) - 1.0, groups.freedom(statistics)))
    spread = np.sqrt(np.square(left_out_moves(without)).sum(axis=0))
    return _of_points(float(special.stdtrit(known, TAILS[1])) * spread, x)


def _of_points(values: FloatArray, x: FloatArray) -> FloatArray:
    """Return the values of bins; ``Undefined`` if the curve lacks a bin's point because its value overflows."""
    if values.shape != x.shape:
        raise Undefined("the value of a bin overflows")
    return values


COVERAGE = LevelGap(LEVELS)
PROPORTION = LevelGap(PROPORTIONS)
QUANTILE = LevelGap(LEVELS, central=False)
ERROR, VARIANCE = ErrorGap(), VarianceGap()
CONFIDENCE, EQUAL_COUNT_CONFIDENCE = ConfidenceGap(), ConfidenceGap(equal_count=True)
TOP_CONFIDENCE = ConfidenceGap(top=True)
CLASSES = ClassGap()
