"""Comparing methods scored on the same samples: differences by groups, the best of several, and series.

The studentised difference of every pair is compared with the 95 % point of the largest of all in resamples of the
groups, with the standard errors of each resample. So if methods are equal, all are tied with the best in 95 % of
cases, however many there are. Testing each pair separately would call one of seven equal methods worse in half of the
cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.fft import dct

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inference.intervals import LeftOut
from uq_tracking.inference.limits import Influence, Range
from uq_tracking.metrics.registry import Metric, Undefined
from uq_tracking.settings import check_level
from uq_tracking.statistics.blocks import Blocks
from uq_tracking.statistics.orders import FloatArray

RESAMPLES = 2000
"""Resamples of the groups behind the best of several."""
IN_CACHE = 16
"""Parts of these that are looked at one after the other."""
TERMS_RATE = 0.2
"""Number of cosines as a fraction of ``n^(2/3)``: half the number that is optimal at autocorrelations of .7, so that
the level also holds at .8."""
FEWEST_TERMS = 4
FEWEST_LOSSES = 8


def paired_limits(
    value: float, differences: FloatArray, left: Sequence[LeftOut], level: float
) -> tuple[Range, float | None]:
    """Interval of a difference of losses and its effect size, from the differences without each set of groups."""
    influence = Influence.left_out(differences, min(part.freedom for part in left))
    low, high = influence.limits(value, level, cautious=True)
    spread = influence.standard_error * math.sqrt(min(part.n_groups for part in left))
    return (min(low, value), max(high, value)), value / spread if spread > 0 else None


def relative_change(metric: Metric, mine: float, theirs: float) -> float | None:
    """The difference of two losses, transformed back to scores, relative to the second.

    None if the second is 0 or the metric has no natural zero: log scores, and scores that may be negative.

    >>> from uq_tracking.metrics.registry import find
    >>> relative_change(*find(["crps"]), 1.5, 1.0), relative_change(*find(["nll"]), 1.5, 1.0)
    (0.5, None)
    """
    if not isinstance(metric.direction, float) and (metric.bounds[0] != 0 or metric.unit == "nats"):
        return None
    sign = -1 if metric.direction == "higher" else 1
    return sign * (mine - theirs) / abs(theirs) if theirs else None


def tied_with_best(
    losses: FloatArray, without: FloatArray, level: float = 0.95, seed: int = 0
) -> npt.NDArray[np.bool_]:
    """Find the methods that are indistinguishable from the best.

    Parameters
    ----------
    losses : array, shape (methods,)
        Lower is better.
    without : array, shape (sets, methods)
        The same without each set of groups; all methods share the sets.
    level : float
    seed : int
        Seed of the resamples.

    Returns
    -------
    bool array, shape (methods,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(20, 3))
    >>> tied_with_best(np.asarray([0.0, 0.1, 9.0]), np.asarray([0.0, 0.1, 9.0]) + 0.05 * noise)
    array([ True,  True, False])
    """
    sets, methods = without.shape
    one, other = np.triu_indices(methods, 1)
    moves = (without.mean(axis=0) - without) * (sets - 1) / sets
    pairs = moves[:, one] - moves[:, other]
    error = np.sqrt(np.square(pairs).sum(axis=0) * sets / (sets - 1))
    critical = critical_value(pairs, level, seed)
    gap = losses[one] - losses[other]
    with np.errstate(divide="ignore", invalid="ignore"):
        studentised = np.where(gap == 0, 0.0, gap / error)
    beaten = np.zeros(methods, dtype=bool)
    beaten[one[studentised > critical]] = True
    beaten[other[studentised < -critical]] = True
    return ~beaten


def critical_value(pairs: FloatArray, level: float, seed: int = 0) -> float:
    """The value that the largest studentised difference of equal methods exceeds in ``1 - level`` of resamples.

    ``pairs`` are the contributions of the sets to every difference, shape (sets, pairs); they sum to zero.
    """
    moving = pairs[:, np.square(pairs).sum(axis=0) > 0]
    if not moving.shape[1]:
        return np.inf
    sets, squares, largest = len(moving), np.square(moving) * len(moving), []
    for weights in np.array_split(_resamples(sets, seed), IN_CACHE):  # for all pairs of forty methods
        square = np.square(weights @ moving)
        spread = weights @ squares
        spread -= square
        with np.errstate(divide="ignore", invalid="ignore"):
            square /= spread
        square[spread <= 0] = 0.0
        largest.append(square.max(axis=1))
    return float(np.quantile(np.sqrt(np.concatenate(largest) * (sets - 1)), level))


@lru_cache(maxsize=8)
def _resamples(sets: int, seed: int) -> FloatArray:
    """Draw how many times each set counts in every resample, the same for all metrics."""
    drawn = np.random.default_rng(seed).multinomial(sets, np.full(sets, 1 / sets), RESAMPLES)
    weights = drawn.astype(np.float64)
    weights.setflags(write=False)
    return weights


FEWEST_SAMPLES, MANY_SAMPLES = 20, 200
"""Samples that a comparison by blocks needs, and from which on it allows for dependence between them."""
TERMS_OF_BLOCKS = 12
"""Cosines over blocks: from 1000 samples on, the level holds for autocorrelations up to .9."""
STEP = 1e-6
"""Relative step of a numerical derivative."""
AGREES, AGREES_ERROR = 1e-3, 1e-2
"""How far the means of blocks may be from a score, relatively and in standard errors."""


def block_moves(metric: Metric, blocks: Blocks, score: float) -> FloatArray:
    """Contribution of every block to the error of a loss, shape (blocks,): they sum to zero.

    Raises
    ------
    Undefined
        The score is no function of the losses in the blocks, or was scored under other settings.
    """
    sums = [blocks.loss(name) for name in metric.means]
    if not sums or any(part is None for part in sums):
        raise Undefined("it is no function of mean losses")
    losses, count = np.asarray(sums, dtype=np.float64), blocks.sums[-1]
    means = losses.sum(axis=1) / count.sum()
    moves = (losses - means[:, None] * count) / count.sum()
    total = np.zeros(len(count))
    for place, mean in enumerate(means):
        step = STEP * max(abs(mean), float(np.abs(moves[place]).sum()), 1e-300)
        ends = [means + step * sign * (np.arange(len(means)) == place) for sign in (1, -1)]
        high, low = (metric.loss(metric.of_means(*end.tolist())) for end in ends)
        total += moves[place] * (high - low) / (2 * step)
    known = metric.of_means(*means.tolist())
    if abs(known - score) > AGREES * abs(score) + AGREES_ERROR * math.sqrt(float(np.square(total).sum())):
        raise Undefined("it was scored under other settings than its blocks; rescore from predictions")
    return total


def limits_by_blocks(value: float, moves: FloatArray, level: float, pairs: int = 1) -> Range:
    """Interval of a difference of losses from the difference of the blocks' contributions, jointly for ``pairs``."""
    terms = min(TERMS_OF_BLOCKS, max(FEWEST_TERMS, len(moves) // 4))
    reach = float(special.stdtrit(terms, 1 - (1 - level) / 2 / pairs)) * _slow_error(moves, terms)
    return value - reach, value + reach


def _slow_error(moves: FloatArray, terms: int) -> float:
    """Return the standard error of a sum of consecutive contributions, from as many of their lowest cosines."""
    slow = dct(moves, norm="ortho")[1 : terms + 1]
    return math.sqrt(len(moves) * float(np.square(slow).mean()))


def tied_by_blocks(losses: FloatArray, moves: FloatArray, level: float = 0.95) -> npt.NDArray[np.bool_]:
    """Find the methods that are indistinguishable from the best, by Dunn's test of all pairs.

    ``moves`` are the contributions of the blocks to every method's loss, shape (blocks, methods).
    """
    one, other = np.triu_indices(len(losses), 1)
    gap = losses[one] - losses[other]
    limits = [
        limits_by_blocks(value, moves[:, i] - moves[:, j], level, len(one))
        for value, i, j in zip(gap.tolist(), one, other, strict=True)
    ]
    beaten = np.zeros(len(losses), dtype=bool)
    for (low, high), i, j in zip(limits, one, other, strict=True):
        beaten[i] |= low > 0
        beaten[j] |= high < 0
    return ~beaten


@dataclass(frozen=True)
class DieboldMariano:
    """The mean difference of two losses along a series.

    Attributes
    ----------
    difference : float
        Mean of the first losses minus that of the second; below 0 the first is better.
    interval : (float, float)
        Its confidence interval.
    statistic : float
        Student's t.
    p : float
        Two-sided p-value.
    terms : int
        Number of cosines in the variance, which is the degrees of freedom of t.
    effect : float
        The difference over the standard deviation of the differences.
    """

    difference: float
    interval: tuple[float, float]
    statistic: float
    p: float
    terms: int
    effect: float


def diebold_mariano(
    one: npt.ArrayLike, other: npt.ArrayLike, *, terms: int | None = None, level: float = 0.95
) -> DieboldMariano:
    r"""Test whether two forecasts of the same series have the same expected loss.

    The variance of the mean of the differences :math:`d_t` is estimated from their slow movements (equal-weighted
    cosines; Lazarus, Lewis, Stock and Watson 2018, Journal of Business and Economic Statistics 36, 541):

    .. math:: \frac{1}{nB} \sum_{j \le B} \Lambda_j^2, \quad
              \Lambda_j = \sqrt{\tfrac2n} \sum_{t=1}^n d_t \cos\frac{\pi j (t - 1/2)}{n}

    The mean over its root is Student's t with B degrees of freedom, whatever the dependence between neighbors
    (including forecasts several steps ahead, whose errors overlap), as long as it does not extend over n / B of them.
    Newey and West's variance with normal or t quantiles rejects too often.

    Parameters
    ----------
    one, other : arrays of one shape (n,)
        Losses in the order of time, such as the CRPS or the squared error of each sample.
    terms : int, optional
        Number of cosines B; by default :math:`n^{2/3} / 5`, at least four.
    level : float
        Confidence level of the interval.

    Raises
    ------
    ShapeError
        The losses are not two series of equal length.
    SettingsError
        ``terms`` is less than 1 or not less than n, or ``level`` is invalid.
    Undefined
        There are fewer than eight losses, or the differences do not vary.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = diebold_mariano(rng.normal(size=400) ** 2, 1.5 * rng.normal(size=400) ** 2)
    >>> found.terms, found.p < 0.05
    (11, True)
    """
    check_level(level)
    gap = _differences(one, other)
    n = len(gap)
    used = max(FEWEST_TERMS, round(TERMS_RATE * n ** (2 / 3))) if terms is None else terms
    if not 1 <= used < n:
        raise SettingsError(f"terms is {used}; pass at least 1, and fewer than the {n} losses")
    mean, spread = float(gap.mean()), float(gap.std())
    error = _slow_error((gap - mean) / n, used)
    if error <= 1e-12 * abs(mean) or spread <= 0:
        raise Undefined("the two losses differ by a constant")
    statistic = mean / error
    reach = float(special.stdtrit(used, (1 + level) / 2)) * error
    p = 2 * float(special.stdtr(used, -abs(statistic)))
    return DieboldMariano(mean, (mean - reach, mean + reach), statistic, p, used, mean / spread)


def _differences(one: npt.ArrayLike, other: npt.ArrayLike) -> npt.NDArray[np.float64]:
    first, second = (np.asarray(part, dtype=np.float64) for part in (one, other))
    if first.ndim != 1 or first.shape != second.shape:
        raise ShapeError(
            f"losses have shapes {first.shape} and {second.shape}; pass two series of equal length"
        )
    if len(first) < FEWEST_LOSSES:
        raise Undefined(f"{len(first)} losses are too few for a test, which needs {FEWEST_LOSSES}")
    return first - second
