r"""Limits and tests of estimates, and when data are enough for them.

Estimates are judged by the contributions of independent units (samples or groups).
The contributions :math:`u_i` are jackknife influences: they sum to zero, and :math:`\sum u_i^2` is
close to the variance.
Two corrections make the limits hold for skewed or heavy-tailed contributions:

* the cubic transformation of Hall (1992, Journal of the Royal Statistical Society B 54, 221), which removes the
  effect of skewness on the studentised estimate while keeping it monotone; limited where it runs away;
* Student's t with the degrees of freedom by which the spread of the contributions determines their variance
  (Satterthwaite): :math:`2 n / (k - 1)` for kurtosis k, at most n - 1, and at most what the sizes of the units allow:
  :math:`(\sum m^2)^2 / \sum m^4 - 1` for units of m samples, whose contributions spread like m. If one unit carries
  everything, that is about two.

Skewness and kurtosis are the estimators that are unbiased for normal contributions (Joanes and Gill 1998).

Data are **enough** if there are enough groups, errors of a classification, and moments of the errors. Squares of
errors may have so heavy a tail that their mean is dominated by errors so rare that most samples lack them, and no
interval holds. Hill's (1975) estimate from the largest share f of the standardized errors is

.. math:: \hat\alpha^{-1} = \frac1k \sum_{i \le k} \log \frac{|z|_{(n+1-i)}}{|z|_{(n-k)}}, \quad k = f n.

A t distribution with four degrees of freedom, whose squares are the first to have no variance, gives 3.5 for
f = .04; a normal one 6.5, five degrees of freedom 4.1, three 2.7.

**Contrasts** say whether standardized errors differ between parts of the samples, and along an order of them. A score
:math:`\phi` of each sample (:math:`|z|` for scale, :math:`z` for bias) is compared with its mean m over all samples,
so that only *relative* errors are tested and the test of the overall scale keeps its meaning:

* parts: :math:`d_b = \log(m_b / m)` for scale, :math:`m_b - m` for bias;
* trend: the slope of :math:`\phi` on the standardized mid-rank of a covariate, for scale divided by m.

Each estimate is a sum of contributions :math:`u_i` of samples, or of groups, over which contributions are added.
Independent samples: the larger p of Student's t, with the freedom that the kurtosis of the contributions allows
(Satterthwaite), and of its transform by Hall (1992); parts also take the variance and skewness of *all* samples into
account (Pearson III), without which parts of 20 to 50 skewed samples reject too often. Groups: Student's t with the
freedom that their number, the kurtosis and their leverage on that very test allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from scipy import special

from uq_tracking.inputs.forms import form_of
from uq_tracking.inputs.labels import SERIES
from uq_tracking.metrics.groups import ZERO_GAP, OfGroups, size_freedom, sums_of
from uq_tracking.statistics.groups import GroupTables
from uq_tracking.statistics.orders import FloatArray, IntArray, Order
from uq_tracking.statistics.weights import whole

Range = tuple[float, float]

DOMINATED = 0.45
"""Above this skewness over sqrt(n), a few units carry most of the spread; about 0.2 is usual."""
SETS = 20
"""Maximum number of sets of groups to leave out in turn."""
MOST_SKEWED = 0.7
"""Limit of ``-a x`` in Hall's transform: upper limits of 16 to 200 squares of normal or t5 errors miss about as often
as without it, and are up to ten times lower (of 30 normal ones at 99.5 %, 3.4 and not 24 times the mean)."""
SYMMETRIC = 1e-4
"""Below this skewness of a mean, its law is taken for this skewed."""
LARGEST_LOG = 600.0
"""Limits on the log beyond this are 0, or infinite, in float64."""
SMALLEST = 3
"""Up to this many units, skewness and kurtosis have no unbiased estimate."""


@dataclass(frozen=True)
class Influence:
    """Power sums of the contributions of independent units to an estimate.

    Attributes
    ----------
    units : float
        Number of units, or the effective number if they have weights.
    square, cube, fourth : float
        Sums of the powers of the contributions.
    most_freedom : float
        Degrees of freedom that the unit sizes allow.
    """

    units: float
    square: float
    cube: float
    fourth: float
    most_freedom: float = math.inf

    @classmethod
    def of(
        cls, contributions: FloatArray, counts: FloatArray | None = None, most_freedom: float = math.inf
    ) -> Influence:
        """Power sums of contributions, each shared by ``counts`` units; their mean is subtracted."""
        units = float(len(contributions) if counts is None else counts.sum())
        total = contributions.sum() if counts is None else np.dot(counts, contributions)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            u = contributions - total / max(units, 1.0)
            square = u * u
            weighted = square if counts is None else counts * square
            square, cube, fourth = weighted.sum(), np.dot(weighted, u), np.dot(weighted, square)
        return cls(whole(units), float(square), float(cube), float(fourth), most_freedom)

    @classmethod
    def left_out(cls, estimates: FloatArray, most_freedom: float = math.inf) -> Influence:
        """Contributions of units from the leave-one-out estimates (the jackknife)."""
        units = len(estimates)
        return cls.of(-(estimates - estimates.mean()) * (units - 1) / units, None, most_freedom)

    @classmethod
    def of_ratio(cls, above: FloatArray, below: FloatArray, most_freedom: float = math.inf) -> Influence:
        """Contributions of units to the ratio of two sums over them (the jackknife)."""
        left = (above.sum() - above) / np.maximum(below.sum() - below, ZERO_GAP)
        return cls.left_out(left, most_freedom)

    def log_limits(self, mean: float, level: float) -> Range:
        """Limits of a positive mean on the log scale, where a mean of few squares is less skewed, taken back."""
        low, high = (end / mean for end in self.limits(0.0, level))
        return mean * math.exp(max(low, -LARGEST_LOG)), mean * math.exp(min(high, LARGEST_LOG))

    @property
    def standard_error(self) -> float:
        """Jackknife standard error; NaN for a single unit."""
        return math.sqrt(self.square * self.units / (self.units - 1)) if self.units > 1 else math.nan

    @property
    def dominance(self) -> float:
        """Skewness of the contributions over the root of their number: 1 if a single unit carries everything."""
        return abs(self.cube) / self.square / math.sqrt(self.square) if self.square else 0.0

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the standard error."""
        if not self.square or not math.isfinite(self.fourth):
            return float(self.units - 1)
        return max(1.0, min(self.most_freedom, float(_freedom(self.units, self.square, self.fourth))))

    def _skewness(self) -> float:
        """Skewness of the contributions, without bias, over the root of their number."""
        n = self.units
        unbiased = math.sqrt(n * (n - 1)) / (n - 2) if n > SMALLEST else 1.0
        return math.copysign(unbiased * self.dominance, self.cube)

    def tested(self, estimate: float) -> tuple[float, float]:
        """Return an estimate over its error, and the p-value: the level at which its cautious limits reach 0."""
        t = estimate / self.standard_error
        return t, float(_p_of_t(np.asarray(t), np.asarray(self._skewness()), np.asarray(self.freedom)))

    def limits(self, estimate: float, level: float, *, cautious: bool = False) -> Range:
        """Confidence limits of the estimate; NaN for fewer than two units.

        ``cautious`` limits also contain the uncorrected ones, as a test should: the skewness of few units is itself
        an estimate, and with symmetric contributions, tests at 5 % rejected 5.5 %.

        >>> round(Influence.of(np.asarray([-1.0, 1.0, -1.0, 1.0]) / 4).limits(0.0, 0.95)[1], 4)
        1.8374
        """
        if self.units < 2:
            return math.nan, math.nan
        q = float(special.stdtrit(self.freedom, (1 + level) / 2))
        skew = self._skewness()
        low, high = _untransformed(q, skew), _untransformed(-q, skew)
        if cautious:
            low, high = max(low, q), min(high, -q)
        return estimate - self.standard_error * low, estimate - self.standard_error * high


def _untransformed(x: float, skew: float) -> float:
    """Inverse of Hall's ``g(t) = t + a t^2 / 3 + a^2 t^3 / 27 + a / 6``, with a limited where it runs away."""
    if abs(skew) < 1e-8:
        return x
    if skew * x < -MOST_SKEWED:
        skew = -MOST_SKEWED / x
    return 3 / skew * (float(np.cbrt(1 + skew * (x - skew / 6))) - 1)


def poisson_limits(events: float, level: float) -> Range:
    """Exact limits of the mean of a Poisson number (Garwood 1936), which need not be a whole one.

    >>> [round(end, 3) for end in poisson_limits(0, 0.95)]
    [0.0, 3.689]
    """
    tail = (1 - level) / 2
    low = float(special.gammaincinv(events, tail)) if events else 0.0
    return low, float(special.gammaincinv(events + 1, 1 - tail))


def share_limits(inside: float, total: float, level: float) -> Range:
    """Exact limits of a share (Clopper and Pearson 1934); counts need not be whole numbers.

    >>> [round(end, 4) for end in share_limits(100, 100, 0.95)]
    [0.9638, 1.0]
    """
    tail = (1 - level) / 2
    low = float(special.betaincinv(inside, total - inside + 1, tail)) if inside > 0 else 0.0
    high = float(special.betaincinv(inside + 1, total - inside, 1 - tail)) if inside < total else 1.0
    return low, high


@dataclass(frozen=True)
class Estimated:
    """An estimate with its limits, and how much a few units dominate it (see `Influence`)."""

    value: float
    low: float
    high: float
    dominance: float = 0.0


def set_weights(groups: int) -> FloatArray:
    """Weight of every group when each set, random but always the same, is left out, shape (sets, groups)."""
    sets = min(groups, SETS)
    made = np.ones((sets, groups))
    made[np.arange(groups) % sets, np.random.default_rng(groups).permutation(groups)] = 0.0
    return made


def p_of_gamma(t: FloatArray, skew: FloatArray) -> FloatArray:
    """Return the larger p of a normal and of a gamma law of this skewness (Pearson III)."""
    skew = np.where(np.abs(skew) < SYMMETRIC, SYMMETRIC, skew)
    shape = 4 / skew**2
    at = np.maximum(shape + np.sign(skew) * t * np.sqrt(shape), 0)
    tail = np.where(np.sign(skew) * t > 0, special.gammaincc(shape, at), special.gammainc(shape, at))
    p = 2 * np.maximum(special.ndtr(-np.abs(t)), tail)
    return np.asarray(np.where(np.isfinite(p), p, 1.0))


FEWEST_GROUPS = 8
"""With fewer groups, their spread is too poorly known for an interval."""
FEWEST_ERRORS = 20
"""Misclassified samples below which groups do not show their spread: without any, they show none at all."""
FEWEST_CARRYING = 5
"""As many groups with equally many errors as the groups must be worth."""
TAIL_SHARE = 0.04
"""Share of the samples that count as the tail."""
FEWEST_IN_TAIL = 16
"""Minimum number of samples in a tail to show how heavy it is."""
PLACES = 400
"""Maximum number of positions looked up in the tail."""
HEAVY = 3.5
"""Below this tail index, squares are assumed to have no variance."""


def too_few(tables: GroupTables, what: str = "an interval") -> str | None:
    """Say why so few groups tell nothing about their spread, or None."""
    if len(tables) >= FEWEST_GROUPS:
        return None
    label = tables.labels[0]
    if len(tables) == 1 and str(label).startswith(SERIES):
        return f"{label} is too few for {what}; pass a longer one"
    named = f" ({label})" if isinstance(label, str) else ""
    counted = f"1 group{named} is" if len(tables) == 1 else f"{len(tables)} groups are"
    return f"{counted} too few for {what}, which needs {FEWEST_GROUPS}"


def too_few_errors(groups: GroupTables) -> str | None:
    """Say why the groups of a classification do not show how its scores vary, or None.

    Of a model that is hardly ever right, the samples that it classifies right are what is rare.
    """
    if "one_minus_confidence" not in groups.orders:
        return None
    order = groups.orders["one_minus_confidence"]
    samples = float(np.sum(groups.sums["n"]) / np.sum(groups.sizes_by_weight))
    count, right = (samples * sums_of(order, name) for name in ("count", "correct"))
    for held, what in ((count - right, "misclassified"), (right, "classified right")):
        if reason := too_few_of(float(held.sum()), what):
            return reason
        worth = size_freedom(held) + 1
        if worth < FEWEST_CARRYING:
            return (
                f"too few errors (the samples that are {what} lie in groups worth {worth:.1f} equal ones; "
                f"at least {FEWEST_CARRYING} are needed)"
            )
    return None


def too_few_of(samples: float, what: str = "misclassified") -> str | None:
    """Say why so few samples are too few, or None."""
    found = round(samples)
    if found >= FEWEST_ERRORS:
        return None
    counted = "1 sample is" if found == 1 else f"{found} samples are"
    return f"too few errors ({counted} {what}; at least {FEWEST_ERRORS} are needed)"


def tail_index(z: Order) -> tuple[float, int]:
    """Hill's estimate for absolute values, and from how many; infinite of too few, or if they have no width.

    Parameters
    ----------
    z : Order
        The order by standardized error.
    """
    n = z.total
    size = round(TAIL_SHARE * n)
    if size < FEWEST_IN_TAIL:
        return math.inf, FEWEST_IN_TAIL
    ranks = n - size + (np.arange(min(size, PLACES)) + 0.5) * (size / min(size, PLACES)) + 0.5
    start, values = z.absolute_value([n - size])[0], z.absolute_value(ranks)
    if not (start > 0 and np.isfinite(values).all()):
        return math.inf, size
    with np.errstate(over="ignore"):
        spread = float(np.log(values / start).mean())
    return 1 / spread if spread > 0 else math.inf, size


def heavy_tails(statistics: Any, *, cautious: bool = False) -> bool:
    """Return whether the squares of standardized errors have so heavy a tail that their mean has no known variance.

    ``cautious`` asks whether that cannot be excluded: the index minus its standard error. ``statistics`` may be those
    of groups alone. Draws are not judged: few of them make a noisy std, and so a heavy-tailed z.
    """
    of = statistics if statistics.groups is None else OfGroups(statistics.groups)
    if form_of(of.facts).noisy_std or "z" not in of.orders:
        return False
    index, size = tail_index(of.orders["z"])
    return index * (1 - cautious / math.sqrt(size)) < HEAVY


TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Differences of parts from the whole, or one slope, with their tests; arrays of shape (parts,).

    Attributes
    ----------
    estimate, error : array
        Log ratio (scale) or difference (bias), and its standard error.
    freedom : array
        Degrees of freedom of the error; below 1, nothing can be said of the part, and p is 1.
    p : array
        p-value of each, not adjusted for their number.
    """

    estimate: FloatArray
    error: FloatArray
    freedom: FloatArray
    p: FloatArray

    @classmethod
    def joined(cls, some: Sequence[Contrasts]) -> Contrasts:
        """Return the tests of some parts, and those of others after them."""
        return cls(*map(np.concatenate, zip(*(vars(each).values() for each in some), strict=True)))

    def limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return limits that each hold at this level."""
        reach = special.stdtrit(np.maximum(self.freedom, 1.0), (1 + level) / 2) * self.error
        return self.estimate - reach, self.estimate + reach

    def together(self, size: IntArray, known: Any, *, recentred: bool = False) -> Together | None:
        """Test whether parts differ at all, by the sum of squares of their normal deviates; None of two.

        ``recentred`` compares some parts with their own mean, rather than with that of all.

        Parameters
        ----------
        size : array of int, shape (parts,)
            Number of samples in each part; parts are independent of each other.
        known : bool array, shape (parts,)
            Parts to look at.
        """
        place = np.flatnonzero(known)
        if len(place) < 3:
            return None
        mass, square = size[place], np.square(self.error[place])
        deviate = special.ndtri(np.maximum(self.p[place], TINY) / 2)
        found, sum_of_squares = self.estimate[place], np.square(deviate) @ (1 - mass / size.sum())
        if recentred:
            found = found - np.average(found, weights=1 / square)
            tails = special.stdtr(self.freedom[place], -np.abs(found) / self.error[place])
            sum_of_squares = np.square(special.ndtri(np.maximum(tails, TINY))).sum()
        p = float(special.chdtrc(len(place) - 1, sum_of_squares))
        excess = float(np.average(np.square(found) - square, weights=mass))
        order = place[np.argsort(self.estimate[place])]
        noise = float(np.average(square * mass, weights=mass))
        return Together(
            p, math.sqrt(max(excess, 0.0)), noise / max(excess, TINY), (int(order[0]), int(order[-1]))
        )


@dataclass(frozen=True)
class Together:
    """What parts show together.

    Attributes
    ----------
    p : float
        p-value of all being alike.
    spread : float
        Standard deviation of their true differences.
    enough : float
        Samples with which chance moves a part as much as parts differ.
    ends : tuple of int
        The lowest part and the highest.
    """

    p: float
    spread: float
    enough: float
    ends: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Ordered:
    """Samples in the order of a covariate, cut into parts of equal count.

    Attributes
    ----------
    place : array of int, shape (n,)
        Position of each sample in the input.
    rank : array, shape (n,)
        Mid-ranks in (0, 1) by weight; equal values share theirs.
    starts : array of int, shape (parts,)
        First sample of each part; equal values are in one part, and no part is empty.
    """

    place: IntArray
    rank: FloatArray
    starts: IntArray

    @classmethod
    def by(cls, values: FloatArray, parts: int, weight: FloatArray | None = None) -> Ordered:
        """Sort samples by a covariate."""
        place = np.argsort(values)
        ordered = values[place]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        size = np.diff(np.append(first, len(values)))
        of_value = size if weight is None else np.add.reduceat(weight[place], first)
        middle = (np.cumsum(of_value) - of_value / 2) / of_value.sum()
        cut = np.unique(np.searchsorted(middle, np.arange(parts) / parts))
        starts = first[cut[cut < len(first)]]
        return cls(place, middle if len(first) == len(values) else np.repeat(middle, size), starts)

    @property
    def sizes(self) -> IntArray:
        """Number of samples in each part."""
        return np.diff(np.append(self.starts, len(self.place)))


def contrast_parts(
    score: FloatArray,
    starts: IntArray,
    *,
    ratio: bool,
    weight: FloatArray | None = None,
    group: IntArray | None = None,
) -> Contrasts:
    """Compare the mean score of each part with that of all samples.

    Parameters
    ----------
    score : array, shape (n,)
        |z| or z, part by part.
    starts : array of int, shape (parts,)
        First sample of each part.
    ratio : bool
        Whether to compare by the log of the ratio, as scales are.
    weight : array, shape (n,), optional
    group : array of int, shape (n,), optional
        Number of each sample's group; without it samples are independent.
    """
    parts, sizes = len(starts), np.diff(np.append(starts, len(score))).astype(float)
    total, mean = len(score) if weight is None else weight.sum(), float(np.average(score, weights=weight))
    if ratio:  # where all scores are 0, nothing is known, and every p is 1
        score, mean = score / (mean or math.nan), 1.0
    of_part = sizes if weight is None else np.add.reduceat(weight, starts)
    centred = score - mean
    excess = np.add.reduceat(centred if weight is None else centred * weight, starts) / of_part
    mean_of_part = mean + excess
    unit = mean_of_part if ratio else np.ones(parts)
    own, common = 1 / (of_part * unit), 1 / total
    estimate = np.log(mean_of_part) if ratio else excess
    if group is not None:
        mass = np.ones(len(score)) if weight is None else weight
        within = centred - np.repeat(excess, sizes.astype(np.int64))  # the sizes of parts are given
        of_group = common * np.bincount(group, within * mass)[:, None]
        made, columns = [], np.stack([mass, centred * mass])
        for k, (first, end) in enumerate(zip(starts, [*starts[1:], len(score)], strict=True)):
            place, part = group[first:end], slice(k, k + 1)
            held, moved = (
                np.bincount(place, column, len(of_group))[:, None] for column in columns[:, first:end]
            )
            u = own[part] * (moved - excess[part] * held) - of_group
            most = (held > 0).sum(axis=0) - 1.0
            made.append(_of_groups(estimate[part], u, held / of_part[part], most))
        return Contrasts.joined(made)
    powers = _power_sums(starts, sizes, centred, weight)
    square, cube, fourth = (
        (-common) ** k * (powers[k][k].sum() - powers[k][k])
        + sum(
            comb(k, j) * (own - common) ** j * (-own * excess) ** (k - j) * powers[k][j] for j in range(k + 1)
        )
        for k in (2, 3, 4)
    )
    n = of_part**2 / powers[2][0]
    n_all = total**2 / powers[2][0].sum()
    freedom = np.clip(np.minimum(n - 1, 2 * n / np.maximum(n * fourth / square**2 - 1, 1e-9)), 1.0, None)
    error = np.sqrt(square * n / (n - 1))
    skew = cube / square**1.5 * np.sqrt(n * (n - 1)) / (n - 2)
    p = _p_of_t(estimate / error, skew, freedom)
    variance, third = (powers[1][k].sum() / total for k in (2, 3))
    pooled = np.sqrt(variance * np.maximum(1 / n - np.minimum(1 / n, 1 / n_all), TINY))
    p_pooled = p_of_gamma(estimate / pooled, third / variance**1.5 / np.sqrt(n))
    return Contrasts(estimate, np.maximum(error, pooled), freedom, np.maximum(p, p_pooled))


def contrast_trend(
    score: FloatArray,
    rank: FloatArray,
    *,
    ratio: bool,
    weight: FloatArray | None = None,
    group: IntArray | None = None,
) -> Contrasts:
    """Return the slope of a score on mid-ranks, standardized; one entry.

    Parameters are those of `contrast_parts`; ``rank`` holds mid-ranks in (0, 1), equal for equal values.
    """
    total, mean = len(score) if weight is None else weight.sum(), float(np.average(score, weights=weight))
    if ratio:
        score, mean = score / (mean or math.nan), 1.0
    c = rank - np.average(rank, weights=weight)
    c /= np.sqrt(np.average(np.square(c), weights=weight))
    slope = np.average(c * score, weights=weight)
    u = c * (score - mean - slope * c) / total
    leverage = np.abs(c)
    if weight is not None:
        u, leverage = u * weight, leverage * weight
    estimate = np.asarray([slope])
    if group is not None:
        added, held = (np.bincount(group, column)[:, None].astype(float) for column in (u, leverage))
        return _of_groups(estimate, added, held, np.asarray([np.inf]))
    square = np.square(u)
    s2, s3, s4 = (np.asarray([power]) for power in (square.sum(), square @ u, square @ square))
    error, freedom = np.sqrt(s2 * len(u) / (len(u) - 1)), _freedom(len(u), s2, s4)
    p = _p_of_t(estimate / np.maximum(error, TINY), s3 / np.maximum(s2, TINY) ** 1.5, freedom)
    return Contrasts(estimate, error, freedom, p)


def _of_groups(estimate: FloatArray, u: FloatArray, leverage: FloatArray, most: FloatArray) -> Contrasts:
    groups = len(u)
    square, fourth = np.square(u).sum(axis=0), np.square(np.square(u)).sum(axis=0)
    share = np.square(leverage / np.maximum(leverage.max(axis=0), TINY))
    of_sizes = share.sum(axis=0) ** 2 / np.maximum(np.square(share).sum(axis=0), TINY) - 1
    freedom = np.minimum(np.minimum(_freedom(groups, square, fourth), most), of_sizes)
    error = np.sqrt(square * groups / (groups - 1))
    p = _p_of_t(estimate / np.maximum(error, TINY), np.zeros(len(estimate)), freedom)
    return Contrasts(estimate, error, freedom, p)


def _freedom(n: float, square: FloatArray | float, fourth: FloatArray | float) -> FloatArray:
    """Return Satterthwaite's degrees of freedom of a sum of squared contributions."""
    kurtosis = n * fourth / np.maximum(square, TINY) / np.maximum(square, TINY)
    if n > SMALLEST:
        kurtosis = 3 + (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (kurtosis - 3) + 6)
    return np.asarray(np.minimum(n - 1.0, 2 * n / np.maximum(kurtosis - 1, 1e-9)))


def _p_of_t(t: FloatArray, skew: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return the larger p of t and of its transform by Hall; 1 where there is no freedom."""
    at = np.maximum(freedom, 1.0)
    transformed = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6
    p = np.maximum(*(2 * special.stdtr(at, -np.abs(each)) for each in (t, transformed)))
    return np.asarray(np.where((freedom >= 1) & np.isfinite(p), p, 1.0))


def means_of(
    values: FloatArray, place: IntArray, weight: FloatArray | None = None, places: int = 0
) -> FloatArray:
    """Return the mean of the values at each place, by weight; 0 where there are none."""
    held = np.bincount(place, weight, places)
    sums = np.bincount(place, values if weight is None else weight * values, places)
    return np.asarray(sums / np.where(held > 0, held, 1))


def _power_sums(
    starts: IntArray, sizes: FloatArray, centred: FloatArray, weight: FloatArray | None
) -> dict[int, list[FloatArray]]:
    """Return sums over each part of weight^k times score^j, by k and j up to k (up to 3 for k = 1)."""
    square = np.square(centred)
    powers = [centred, square, square * centred, np.square(square)]
    if weight is None:
        sums = [sizes, *(np.add.reduceat(power, starts) for power in powers)]
        return dict.fromkeys((1, 2, 3, 4), sums)
    made = {}
    for k in (1, 2, 3, 4):
        mass = weight**k
        made[k] = [np.add.reduceat(mass, starts)]
        made[k] += [np.add.reduceat(mass * power, starts) for power in powers[: max(k, 3)]]
    return made
