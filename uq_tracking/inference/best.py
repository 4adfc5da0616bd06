"""Which of several methods are indistinguishable from the best, considering all pairs jointly.

The studentised difference of every pair is compared with the 95 % point of the largest of all in resamples of the
groups, with the standard errors of each resample. So if methods are equal, all are tied with the best in 95 % of
cases, however many there are. Testing each pair separately would call one of seven equal methods worse in half of the
cases.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.orders import FloatArray

RESAMPLES = 2000


def tied_with_best(
    losses: FloatArray, without: FloatArray, level: float = 0.95, seed: int = 0
) -> npt.NDArray[np.bool_]:
    """Whether each method is indistinguishable from the best.

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
    sets = len(moving)
    weights = _resamples(sets, seed)
    mean = weights @ moving / sets
    spread = np.maximum(weights @ np.square(moving) / sets - mean**2, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = np.nan_to_num(np.abs(mean) / np.sqrt(spread / (sets - 1)), posinf=0.0).max(axis=1)
    return float(np.quantile(largest, level))


@lru_cache(maxsize=8)
def _resamples(sets: int, seed: int) -> FloatArray:
    """How many times each set counts in every resample, the same for all metrics."""
    drawn = np.random.default_rng(seed).multinomial(sets, np.full(sets, 1 / sets), RESAMPLES)
    weights = drawn.astype(np.float64)
    weights.setflags(write=False)
    return weights
