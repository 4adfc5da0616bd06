"""The cubic with biased outliers of MeRCI (2018, section 6.1) and n-MeRCI (2019, section V-A)."""

from __future__ import annotations

import numpy as np

from uq_tracking.errors import SettingsError
from uq_tracking.inputs.predictions import Predictions
from uq_tracking_papers.datasets.sample import Sample, Seed

NOISE_STD = 3.0
RANGE = (-4.0, 4.0)
"""Range of the training inputs."""
TEST_RANGE = (-6.0, 6.0)
"""Wider than the training range, as in Hernandez-Lobato and Adams (2015), the papers' source of the cubic; the papers
do not state the range of their own test set."""
OUTLIERS = (-2.3, -1.3)
BIAS = 60.0
"""Added to the training targets of outliers; the papers say "a high bias" without a number."""


def cubic(n: int, seed: Seed = 0, *, low: float = TEST_RANGE[0], high: float = TEST_RANGE[1]) -> Sample:
    """Draw y = x^3 + N(0, 3^2) with x uniform in [low, high], without outliers: the test data.

    Parameters
    ----------
    n : int
        Number of samples.
    seed : int or Generator
    low, high : float
        Range of x.

    Returns
    -------
    Sample

    Examples
    --------
    >>> sample = cubic(1000)
    >>> sample.x.shape, bool(abs(sample.truth.mean - sample.x**3).max() < 1e-12)
    ((1000,), True)
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(low, high, n)
    y = x**3 + rng.normal(0, NOISE_STD, n)
    return Sample(x, y, Predictions(y, x**3, np.full(n, NOISE_STD)))


def cubic_with_outliers(
    n: int = 20, seed: Seed = 0, *, bias: float = BIAS, outliers: int | None = 3
) -> Sample:
    """Draw the training data: x uniform in [-4, 4], with targets in [-2.3, -1.3] too high by the bias.

    The truth is the distribution of the clean targets, so outliers lie far outside it.

    Parameters
    ----------
    n : int
        Number of samples; the papers have 20.
    seed : int or Generator
    bias : float
        Offset added to the outliers.
    outliers : int, optional
        Number of outliers; 3, as in the papers' set; None leaves it to chance.

    Returns
    -------
    Sample

    Raises
    ------
    SettingsError
        There cannot be that many outliers.

    References
    ----------
    .. [1] MeRCI, 2018, section 6.1.

    Examples
    --------
    >>> sample = cubic_with_outliers()
    >>> inside = (sample.x >= -2.3) & (sample.x <= -1.3)
    >>> int(inside.sum()), bool((sample.y - sample.x**3)[inside].min() > 40)
    (3, True)
    """
    if outliers is not None and not 0 <= outliers <= n:
        raise SettingsError(f"outliers is {outliers} of {n} samples; choose 0 ... {n}, or None")
    rng = np.random.default_rng(seed)
    width = OUTLIERS[1] - OUTLIERS[0]
    if outliers is None:
        outliers = int(rng.binomial(n, width / (RANGE[1] - RANGE[0])))
    among = rng.uniform(*OUTLIERS, outliers)
    rest = rng.uniform(RANGE[0], RANGE[1] - width, n - outliers)
    rest[rest > OUTLIERS[0]] += width  # skips the range of the outliers
    x = rng.permutation(np.concatenate([among, rest]))
    biased = bias * ((x >= OUTLIERS[0]) & (x <= OUTLIERS[1]))
    y = x**3 + rng.normal(0, NOISE_STD, n) + biased
    return Sample(x, y, Predictions(y, x**3, np.full(n, NOISE_STD)))
