r"""Whether one forecast of a series beats another: the test of Diebold and Mariano, for dependent errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.fft import dct

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import check_level

TERMS_RATE = 0.2
"""Number of cosines as a fraction of ``n^(2/3)``: half the number that is optimal at autocorrelations of .7, so that
the level also holds at .8."""
FEWEST_TERMS = 4
FEWEST_LOSSES = 8


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
    slow = dct(gap - mean, norm="ortho")[1 : used + 1]
    error = math.sqrt(float(np.square(slow).mean()) / n)
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
