r"""Tests of whether standardized errors differ between parts of the samples, and along an order of them.

A score :math:`\phi` of each sample (:math:`|z|` for scale, :math:`z` for bias) is compared with its mean m over all
samples, so that only *relative* errors are tested and the test of the overall scale keeps its meaning:

* parts: :math:`d_b = \log(m_b / m)` for scale, :math:`m_b - m` for bias;
* trend: the slope of :math:`\phi` on the standardized mid-rank of a covariate, for scale divided by m.

Each estimate is a sum of contributions :math:`u_i` of samples, or of groups, over which contributions are added.
Independent samples: the larger p of Student's t, with the freedom that the kurtosis of the contributions allows
(Satterthwaite), and of its transform by Hall (1992); parts also take the variance and skewness of *all* samples into
account (Pearson III), without which parts of 20 to 50 skewed samples reject too often. Groups: Student's t with the
freedom that their number, the kurtosis and their leverage on that very test allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from scipy import special

from uq_tracking.inference.limits import p_of_gamma
from uq_tracking.statistics.orders import FloatArray, IntArray

TINY = 1e-300
AT_ONCE = 1 << 20
"""Cells, groups by parts, held at a time."""


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

    def limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return limits that each hold at this level."""
        reach = special.stdtrit(np.maximum(self.freedom, 1.0), (1 + level) / 2) * self.error
        return self.estimate - reach, self.estimate + reach


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
        mass = np.ones(len(values)) if weight is None else weight[place]
        of_value = mass if len(first) == len(values) else np.add.reduceat(mass, first)
        middle = (np.cumsum(of_value) - of_value / 2) / of_value.sum()
        cut = np.unique(np.searchsorted(middle, np.arange(parts) / parts))
        starts = first[cut[cut < len(first)]]
        size = np.diff(np.append(first, len(values)))
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
    total, mean = _total(score, weight), _mean(score, weight)
    if ratio and mean <= 0:
        return _nothing(parts)
    if ratio:
        score, mean = score / mean, 1.0
    of_part = sizes if weight is None else np.add.reduceat(weight, starts)
    centred = score - mean
    excess = np.add.reduceat(centred if weight is None else centred * weight, starts) / of_part
    mean_of_part = mean + excess
    unit = mean_of_part if ratio else np.ones(parts)
    own, common = 1 / (of_part * unit), 1 / total
    estimate = np.log(mean_of_part) if ratio else excess
    if group is not None:
        mass = np.ones(len(score)) if weight is None else weight
        of_group = common * np.bincount(group, centred * mass)[:, None]
        ends, step, made = np.append(starts, len(score)), max(1, AT_ONCE // len(of_group)), []
        for first in range(0, parts, step):
            some, samples = slice(first, first + step), slice(ends[first], ends[min(first + step, parts)])
            width = len(own[some])
            place = group[samples] * width + np.repeat(np.arange(width), sizes[some].astype(np.int64))
            held, moved = (
                np.bincount(place, column[samples], len(of_group) * width).reshape(-1, width)
                for column in (mass, centred * mass)
            )
            u = own[some] * (moved - excess[some] * held) - of_group
            most = (held > 0).sum(axis=0) - 1.0
            made.append(_of_groups(estimate[some], u, held / of_part[some], most))
        columns = ([getattr(each, name) for each in made] for name in ("estimate", "error", "freedom", "p"))
        return Contrasts(*map(np.concatenate, columns))
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
    total, mean = _total(score, weight), _mean(score, weight)
    if ratio and mean <= 0:
        return _nothing(1)
    if ratio:
        score, mean = score / mean, 1.0
    c = rank - _mean(rank, weight)
    c /= np.sqrt(_mean(np.square(c), weight))
    slope = _mean(c * score, weight)
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


def _nothing(parts: int) -> Contrasts:
    """Return contrasts of scores that are all 0."""
    return Contrasts(np.zeros(parts), np.full(parts, np.inf), np.zeros(parts), np.ones(parts))


def _of_groups(estimate: FloatArray, u: FloatArray, leverage: FloatArray, most: FloatArray) -> Contrasts:
    groups = len(u)
    square, fourth = np.square(u).sum(axis=0), np.square(np.square(u)).sum(axis=0)
    share = np.square(leverage / np.maximum(leverage.max(axis=0), TINY))
    of_sizes = share.sum(axis=0) ** 2 / np.maximum(np.square(share).sum(axis=0), TINY) - 1
    freedom = np.minimum(np.minimum(_freedom(groups, square, fourth), most), of_sizes)
    error = np.sqrt(square * groups / (groups - 1))
    p = _p_of_t(estimate / np.maximum(error, TINY), np.zeros(len(estimate)), freedom)
    return Contrasts(estimate, error, freedom, p)


def _freedom(n: int, square: FloatArray, fourth: FloatArray) -> FloatArray:
    """Return Satterthwaite's degrees of freedom of a sum of squared contributions."""
    kurtosis = n * fourth / np.maximum(square, TINY) ** 2
    if n > 3:
        kurtosis = 3 + (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (kurtosis - 3) + 6)
    return np.asarray(np.minimum(n - 1.0, 2 * n / np.maximum(kurtosis - 1, 1e-9)))


def _p_of_t(t: FloatArray, skew: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return the larger p of t and of its transform by Hall; 1 where there is no freedom."""
    at = np.maximum(freedom, 1.0)
    transformed = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6
    p = np.maximum(*(2 * special.stdtr(at, -np.abs(each)) for each in (t, transformed)))
    return np.asarray(np.where((freedom >= 1) & np.isfinite(p), p, 1.0))


def _total(score: FloatArray, weight: FloatArray | None) -> float:
    return float(len(score) if weight is None else weight.sum())


def _mean(values: FloatArray, weight: FloatArray | None) -> float:
    return float(values.mean() if weight is None else weight @ values / weight.sum())


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
