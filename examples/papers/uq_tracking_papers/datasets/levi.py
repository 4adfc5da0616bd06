"""The synthetic problems of Levi et al. (2019)."""

from __future__ import annotations

import numpy as np
from scipy import stats

from uq_tracking.inputs.predictions import Predictions
from uq_tracking_papers.datasets.sample import Sample, Seed


def heteroscedastic(n: int = 50_000, seed: Seed = 0) -> Sample:
    """Draw x uniform in [0.1, 1] and y from N(x, x^2): mean and standard deviation are both x.

    Parameters
    ----------
    n : int
        Number of samples; the paper has 50 000.
    seed : int or Generator

    Returns
    -------
    Sample

    References
    ----------
    .. [1] Levi et al., 2019, section 4.1.

    Examples
    --------
    >>> sample = heteroscedastic(100)
    >>> bool(sample.x.min() >= 0.1)
    True
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.1, 1.0, n)
    y = rng.normal(x, x)
    return Sample(x, y, Predictions(y, x, x))


def random_std(n: int, seed: Seed = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Draw standard deviations from U[1, 10]: an uninformative uncertainty (Levi et al. 2019, section 4.1).

    >>> bool(1 <= random_std(10).min())
    True
    """
    return np.random.default_rng(seed).uniform(1.0, 10.0, n)


def cauchy(n: int, seed: Seed = 0) -> tuple[Sample, Predictions]:
    """Draw y from N(0, 1), and predictions that are calibrated by Levi's eq. 2 yet carry no information about y.

    Each prediction is Cauchy(0, abs(z)) with z from N(0, 1), independent of y. Since y/z is Cauchy(0, 1), the
    probability of y below the p-quantile of its prediction is exactly p.

    Parameters
    ----------
    n : int
        Number of samples.
    seed : int or Generator

    Returns
    -------
    sample : Sample
        With the scales abs(z) as ``x`` and N(0, 1) as truth.
    predictions : Predictions
        The Cauchy distributions, which have a median and a scale but neither mean nor variance.

    References
    ----------
    .. [1] Levi et al., 2019, eq. 4.

    Examples
    --------
    >>> sample, predictions = cauchy(2000)
    >>> import uq_tracking as uq
    >>> uq.evaluate(predictions, metrics=["calibration_error"]).scores["calibration_error"] < 1e-3
    True
    """
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n)
    scale = np.abs(rng.standard_normal(n))
    truth = Predictions(y, np.zeros(n), np.ones(n))
    return Sample(scale, y, truth), Predictions.from_distribution(y, stats.cauchy(0, scale))
