r"""Confidence limits of an estimate from the contributions of independent units (samples or groups).

The contributions :math:`u_i` are jackknife influences: they sum to zero, and :math:`\sum u_i^2` is
close to the variance.
Two corrections make the limits hold for skewed or heavy-tailed contributions:

* the cubic transformation of Hall (1992, Journal of the Royal Statistical Society B 54, 221), which removes the
effect of skewness on the studentised estimate while keeping it monotone;
* Student's t with the degrees of freedom by which the spread of the contributions determines their variance
  (Satterthwaite): :math:`2 n / (k - 1)` for kurtosis k, at most n - 1, and at most what the sizes of the units allow:
  :math:`(\sum m^2)^2 / \sum m^4 - 1` for units of m samples, whose contributions spread like m. If one unit carries
  everything, that is about two.

Skewness and kurtosis are the estimators that are unbiased for normal contributions (Joanes and Gill 1998).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.weights import whole

Range = tuple[float, float]

DOMINATED = 0.45
"""Above this skewness over sqrt(n), a few units carry most of the spread; about 0.2 is usual."""
SETS = 20
"""Maximum number of sets of groups to leave out in turn."""
SYMMETRIC = 1e-4
"""Below this skewness of a mean, its law is taken for this skewed."""
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

    def scaled(self, factor: float) -> Influence:
        """Contributions to a multiple of the estimate."""
        square, cube = self.square * factor * factor, self.cube * factor * factor * factor
        fourth = self.fourth * factor * factor * factor * factor
        return Influence(self.units, square, cube, fourth, self.most_freedom)

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
        n = self.units
        if not self.square:
            return float(n - 1)
        kurtosis = n * self.fourth / self.square / self.square
        if n > SMALLEST:
            kurtosis = 3 + (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (kurtosis - 3) + 6)
        return max(1.0, min(n - 1.0, self.most_freedom, 2 * n / max(kurtosis - 1, 1e-9)))

    def _skewness(self) -> float:
        if not self.square:
            return 0.0
        n = self.units
        unbiased = math.sqrt(n * (n - 1)) / (n - 2) if n > SMALLEST else 1.0
        return float(unbiased * self.cube / self.square / math.sqrt(self.square) * math.sqrt(n))

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
        skew = self._skewness() / math.sqrt(self.units)
        low, high = _untransformed(q, skew), _untransformed(-q, skew)
        if cautious:
            low, high = max(low, q), min(high, -q)
        return estimate - self.standard_error * low, estimate - self.standard_error * high


def _untransformed(x: float, skew: float) -> float:
    """Inverse of Hall's ``g(t) = t + a t^2 / 3 + a^2 t^3 / 27 + a / 6``."""
    if abs(skew) < 1e-8:
        return x
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


def sets_of(groups: int) -> IntArray:
    """The set of each group: random, but always the same."""
    made = np.empty(groups, dtype=np.int64)
    made[np.random.default_rng(groups).permutation(groups)] = np.arange(groups) % min(groups, SETS)
    return made


def set_weights(groups: int) -> FloatArray:
    """Weight of every group when each set is left out, shape (sets, groups)."""
    place = sets_of(groups)
    return np.asarray(place[None, :] != np.arange(place.max() + 1)[:, None], dtype=np.float64)


def p_of_gamma(t: FloatArray, skew: FloatArray) -> FloatArray:
    """Return the larger p of a normal and of a gamma law of this skewness (Pearson III)."""
    skew = np.where(np.abs(skew) < SYMMETRIC, SYMMETRIC, skew)
    shape = 4 / skew**2
    at = np.maximum(shape + np.sign(skew) * t * np.sqrt(shape), 0)
    tail = np.where(np.sign(skew) * t > 0, special.gammaincc(shape, at), special.gammainc(shape, at))
    p = 2 * np.maximum(special.ndtr(-np.abs(t)), tail)
    return np.asarray(np.where(np.isfinite(p), p, 1.0))
