r"""Whether one forecast of a series beats another: the test of Diebold and Mariano, for dependent errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.errors import ShapeError
from uq_tracking.metrics.registry import Undefined


@dataclass(frozen=True)
class DieboldMariano:
    """The mean difference of two losses along a series.

    Attributes
    ----------
    difference : float
        Mean of the first losses less that of the second; below 0 the first is better.
    interval : (float, float)
        Its confidence interval.
    statistic : float
        Student's t.
    p : float
        Two-sided.
    lags : int
        Autocovariances in the variance.
    effect : float
        The difference over the standard deviation of the differences.
    """

    difference: float
    interval: tuple[float, float]
    statistic: float
    p: float
    lags: int
    effect: float


def diebold_mariano(
    one: npt.ArrayLike,
    other: npt.ArrayLike,
    *,
    horizon: int = 1,
    lags: int | None = None,
    level: float = 0.95,
) -> DieboldMariano:
    r"""Test whether two forecasts of the same series have the same expected loss.

    For differences :math:`d_t` with autocovariances :math:`\gamma_k` the variance of their mean is

    .. math:: \frac1n \Bigl[\gamma_0 + 2 \sum_{k \le L} \bigl(1 - \tfrac{k}{L + 1}\bigr) \gamma_k\Bigr]

    with Bartlett's weights (Newey and West 1987), which keep it positive. The statistic is multiplied by the
    correction of Harvey, Leybourne and Newbold (1997) for forecasts h steps ahead,
    :math:`\sqrt{(n + 1 - 2h + h (h - 1) / n) / n}`, and compared with Student's t on n - 1 degrees of freedom.

    Parameters
    ----------
    one, other : arrays of one shape (n,)
        Losses in the order of time, such as the CRPS or the squared error of each sample.
    horizon : int
        Steps between a forecast and its target; errors of h steps ahead overlap for h - 1 steps.
    lags : int, optional
        Autocovariances L; by default the larger of h - 1 and :math:`\lceil 1.3 \sqrt n \rceil` (Lazarus, Lewis, Stock
        and Watson 2018), which holds its level where losses are persistent.
    level : float
        Of the interval.

    Raises
    ------
    ShapeError
        The losses are not two series of equal length.
    Undefined
        There are fewer than eight, or the differences do not vary.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = diebold_mariano(rng.normal(size=400) ** 2, 1.2 * rng.normal(size=400) ** 2)
    >>> found.lags, found.p < 0.2
    (26, True)
    """
    first, second = (np.asarray(part, dtype=np.float64) for part in (one, other))
    if first.ndim != 1 or first.shape != second.shape:
        raise ShapeError(
            f"losses have shapes {first.shape} and {second.shape}; pass two series of one length"
        )
    n = len(first)
    if n < 8:
        raise Undefined(f"{n} losses are too few for a test; it takes 8")
    gap = first - second
    used = min(max(horizon - 1, math.ceil(1.3 * math.sqrt(n))) if lags is None else lags, n - 1)
    moved = gap - gap.mean()
    variance = float(moved @ moved) / n
    spread = variance
    for k in range(1, used + 1):
        spread += 2 * (1 - k / (used + 1)) * float(moved[k:] @ moved[:-k]) / n
    if spread <= 0:
        raise Undefined("the two losses differ by a constant")
    correction = math.sqrt((n + 1 - 2 * horizon + horizon * (horizon - 1) / n) / n)
    error = math.sqrt(spread / n) / correction
    mean = float(gap.mean())
    statistic = mean / error
    p = 2 * float(special.stdtr(n - 1, -abs(statistic)))
    reach = float(special.stdtrit(n - 1, (1 + level) / 2)) * error
    return DieboldMariano(mean, (mean - reach, mean + reach), statistic, p, used, mean / math.sqrt(variance))
