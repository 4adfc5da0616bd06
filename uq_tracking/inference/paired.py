"""Comparing methods scored on the same samples: differences by groups, by blocks, and along series."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

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

TERMS_RATE = 0.2
"""Number of cosines as a fraction of ``n^(2/3)``: half the number that is optimal at autocorrelations of .7, so that
the level also holds at .8."""
FEWEST_TERMS = 4
FEWEST_LOSSES = 8


class Paired(NamedTuple):
    """A difference of mean losses on the same samples, its limits for these runs, and its standard error."""

    value: float
    low: float
    high: float
    error: float

    def over_runs(self, variance: float, freedom: float, level: float) -> Range:
        """Limits for other runs of the methods too, whose difference has this variance from run to run.

        Samples and runs vary independently: the squares of what each reaches add (Howe 1974, Journal of the American
        Statistical Association 69, 789), so that few runs keep their few degrees of freedom.
        """
        if not variance:
            return self.low, self.high
        reach = float(special.stdtrit(freedom, (1 + level) / 2)) * math.sqrt(variance)
        return (
            self.value - math.hypot(self.value - self.low, reach),
            self.value + math.hypot(self.high - self.value, reach),
        )


def limits_by_groups(value: float, differences: FloatArray, left: Sequence[LeftOut], level: float) -> Paired:
    """Limits of a difference of losses from the differences without each set of groups."""
    influence = Influence.left_out(differences, min(part.freedom for part in left))
    low, high = influence.limits(value, level, cautious=True)
    return Paired(value, min(low, value), max(high, value), influence.standard_error)


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


FEWEST_SAMPLES, MANY_SAMPLES = 20, 200
"""Samples that a comparison by blocks needs, and from which on it allows for dependence between them."""
TERMS_OF_BLOCKS = 12
"""Cosines over blocks: from 1000 samples on, the level holds for autocorrelations up to .9."""
FEWEST_OF_BLOCKS, SLOWER = 3, 0.99
"""Where the lowest cosines but the first are larger than the next ones at this level, the differences are alike over
longer than those show, as those of few images are: half as many are used, down to three. The first is also that of a
trend, such as samples sorted by their std have, which is no dependence."""
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
    of_means = metric.of_means or partial(operator.mul, score / (means[0] or 1.0))
    known = of_means(*means.tolist())
    for place in np.flatnonzero(np.any(moves, axis=1)).tolist():
        mean = means[place]
        step = STEP * max(abs(mean), float(np.abs(moves[place]).sum()), 1e-300)
        ends = [means + step * sign * (np.arange(len(means)) == place) for sign in (1, -1)]
        high, low = (metric.loss(of_means(*end.tolist())) - metric.loss(known) for end in ends)
        slope = (high - low) / 2 if high * low < 0 else max(high, low, key=abs)  # a target lies at a kink
        total += moves[place] * slope / step
    if abs(known - score) > AGREES * abs(score) + AGREES_ERROR * math.sqrt(float(np.square(total).sum())):
        raise Undefined("it was scored under other settings than its blocks; rescore from predictions")
    return total


def limits_by_blocks(value: float, moves: FloatArray, level: float, n: int, distant: float | None) -> Paired:
    """Limits of a difference of losses of n samples from the difference of the blocks' contributions.

    Where samples far apart are alike, which no slow movement shows, the variance is at least that of so many
    ``distant`` ones, of the size that all movements show.
    """
    terms = min(TERMS_OF_BLOCKS, max(FEWEST_TERMS, len(moves) // 4))
    square = _slow_squares(moves)
    while terms > FEWEST_OF_BLOCKS:
        low, following = square[1:terms], square[terms : 3 * terms]
        if low.mean() <= special.fdtri(len(low), len(following), SLOWER) * following.mean():
            break
        terms = max(terms // 2, FEWEST_OF_BLOCKS)
    variance = float(square[:terms].mean())
    if distant is not None:
        variance = max(variance, float(square.mean()) * n / distant)
        terms = min(terms, max(int(distant) - 1, 1))
    error = math.sqrt(variance)
    reach = float(special.stdtrit(terms, (1 + level) / 2)) * error
    return Paired(value, value - reach, value + reach, error)


def _slow_squares(moves: FloatArray) -> FloatArray:
    """Return what each cosine of consecutive contributions, the slowest first, says their sum's variance is."""
    return np.asarray(len(moves) * np.square(dct(moves, norm="ortho")[1:]))


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
    error = math.sqrt(float(_slow_squares((gap - mean) / n)[:used].mean()))
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
