"""The papers' toy data sets, each with the distribution from which its targets are drawn.

Functions take the number of samples and a seed, and return a `Sample` whose ``truth`` can be scored:
``uq.evaluate(sample.truth)`` gives the scores of the best possible model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from uq_tracking.errors import SettingsError
from uq_tracking.inputs import Predictions

Seed = int | np.random.Generator
"""A seed, or a generator to draw from."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Samples of a toy data set.

    Attributes
    ----------
    x : float64 array (n,) or (n, features)
    y : array (n,)
        Targets, or integer labels.
    truth : Predictions
        The distribution from which each target was drawn, as the predictions of a model that knows it.
    """

    x: npt.NDArray[np.float64]
    y: npt.NDArray[Any]
    truth: Predictions


FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Conditional:
    """A regression problem: ``y`` given ``x`` follows an equally weighted mixture of K normal distributions.

    Calling it draws a `Sample`.

    Attributes
    ----------
    name : str
    domain : (float, float)
        Inputs are uniform between these.
    training : tuple of (float, float)
        Training inputs are uniform over these intervals; inputs between them are not seen in training.
    centres : callable
        Maps inputs (n,) to the means of the components, (K, n).
    noise : callable
        Maps inputs (n,) to the standard deviation of every component, (n,).

    Examples
    --------
    >>> means, stds = multimodal.components(multimodal(5).x)
    >>> means.shape, stds.shape
    ((2, 5), (2, 5))
    """

    name: str
    domain: tuple[float, float]
    training: tuple[tuple[float, float], ...]
    centres: Callable[[FloatArray], FloatArray]
    noise: Callable[[FloatArray], FloatArray]

    def __call__(
        self, n: int, seed: Seed = 0, *, training: bool = False, quantile_scores: bool | None = None
    ) -> Sample:
        """Draw independent samples.

        Parameters
        ----------
        n : int
            Number of samples.
        seed : int or Generator
        training : bool
            Whether to restrict inputs to those seen in training.
        quantile_scores : bool, optional
            As for ``Predictions.from_ensemble``: a mixture's quantiles take most of the time.
        """
        rng = np.random.default_rng(seed)
        x = _uniform(self.training if training else (self.domain,), n, rng)
        return self.at(x, rng, quantile_scores=quantile_scores)

    def at(self, x: FloatArray, seed: Seed = 0, *, quantile_scores: bool | None = None) -> Sample:
        """Draw one target for each input (n,)."""
        rng = np.random.default_rng(seed)
        means, stds = self.components(x)
        chosen = rng.integers(len(means), size=len(x)), np.arange(len(x))
        y = means[chosen] + stds[chosen] * rng.standard_normal(len(x))
        if len(means) == 1:
            return Sample(x, y, Predictions(y, means[0], stds[0]))
        truth = Predictions.from_ensemble(y, means, stds, combine="mixture", quantile_scores=quantile_scores)
        return Sample(x, y, truth)

    def components(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of the components of the true distribution, (K, n) each."""
        means = self.centres(x)
        return means, np.broadcast_to(self.noise(x), means.shape)


def _uniform(intervals: tuple[tuple[float, float], ...], n: int, rng: np.random.Generator) -> FloatArray:
    """Uniform draws from a union of intervals."""
    low, high = np.asarray(intervals, dtype=float).T
    ends = np.cumsum(high - low)
    place = rng.uniform(0, ends[-1], n)
    which = np.searchsorted(ends, place, side="right")
    return np.asarray(high[which] - (ends[which] - place))


NOISE_STD = 3.0
RANGE = (-4.0, 4.0)
"""Range of the training inputs."""
OUTLIERS = (-2.3, -1.3)
BIAS = 60.0
"""Added to the training targets of outliers; the papers say "a high bias" without a number."""


def cubic(n: int, seed: Seed = 0, *, half_width: float = 4.0) -> Sample:
    """Draw y = x^3 + N(0, 3^2) without outliers: MeRCI's and n-MeRCI's test data.

    Parameters
    ----------
    n : int
        Number of samples.
    seed : int or Generator
    half_width : float
        x is uniform between minus this and this. The papers do not state it: 4 is the range of their training data, 6
        that of Hernandez-Lobato and Adams (2015), from whom they have the cubic.

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
    x = rng.uniform(-half_width, half_width, n)
    y = x**3 + rng.normal(0, NOISE_STD, n)
    return Sample(x, y, Predictions(y, x**3, np.full(n, NOISE_STD)))


def cubic_with_outliers(n: int = 20, seed: Seed = 0, *, outliers: int = 3) -> Sample:
    """Draw their training data: x uniform in [-4, 4], with targets in [-2.3, -1.3] too high by the bias.

    The truth is the distribution of the clean targets, so outliers lie far outside it.

    Parameters
    ----------
    n : int
        Number of samples; the papers have 20.
    seed : int or Generator
    outliers : int
        Number of outliers; 3, as in the papers' set.

    Returns
    -------
    Sample

    Raises
    ------
    SettingsError
        There cannot be that many outliers.

    References
    ----------
    .. [1] MeRCI, 2018, section 6.1; n-MeRCI, 2019, section V-A.

    Examples
    --------
    >>> sample = cubic_with_outliers()
    >>> inside = (sample.x >= -2.3) & (sample.x <= -1.3)
    >>> int(inside.sum()), bool((sample.y - sample.x**3)[inside].min() > 40)
    (3, True)
    """
    if not 0 <= outliers <= n:
        raise SettingsError(f"outliers is {outliers} of {n} samples; choose 0 ... {n}")
    rng = np.random.default_rng(seed)
    width = OUTLIERS[1] - OUTLIERS[0]
    among = rng.uniform(*OUTLIERS, outliers)
    rest = rng.uniform(RANGE[0], RANGE[1] - width, n - outliers)
    rest[rest > OUTLIERS[0]] += width  # skips the range of the outliers
    x = rng.permutation(np.concatenate([among, rest]))
    biased = BIAS * ((x >= OUTLIERS[0]) & (x <= OUTLIERS[1]))
    y = x**3 + rng.normal(0, NOISE_STD, n) + biased
    return Sample(x, y, Predictions(y, x**3, np.full(n, NOISE_STD)))


def linear_noise(n: int = 50_000, seed: Seed = 0) -> Sample:
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
    >>> sample = linear_noise(100)
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


sine = Conditional(
    "sine",
    (-7, 7),
    ((-3, 3),),
    lambda x: np.asarray(np.sin(x)[None]),
    lambda x: np.asarray(0.15 / (1 + np.exp(-x))),
)
"""Eq. 5: a sine with noise that grows with x. The paper trains on 1000 examples in [-3, 3]; its scripts compare on
[-7, 7]."""


def _cosine(x: FloatArray) -> FloatArray:
    return np.asarray(np.cos(1.5 * np.pi * x)[None])


def _two_waves(x: FloatArray) -> FloatArray:
    wave = np.cos(2 * np.pi * x)
    return 0.5 + np.stack([wave, -wave])


def _fast_cosine(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 + np.cos(4 * np.pi * x)[None])


homoscedastic = Conditional("homoscedastic", (-1, 1), ((-1, 1),), _cosine, lambda x: np.full(len(x), 0.1))
"""Noise of one size."""

heteroscedastic = Conditional(
    "heteroscedastic", (-1, 1), ((-1, 1),), _cosine, lambda x: 0.4 * np.abs(np.cos(1.5 * np.pi * x))
)
"""Noise that depends on the input."""

multimodal = Conditional("multimodal", (0, 1), ((0, 1),), _two_waves, lambda x: np.full(len(x), 0.05))
"""Two branches; each target lies on one of them."""

epistemic = Conditional(
    "epistemic", (0, 1), ((0, 0.35), (0.65, 1)), _fast_cosine, lambda x: np.full(len(x), 0.05)
)
"""A gap in the training inputs."""

DATASETS = {data.name: data for data in (homoscedastic, heteroscedastic, multimodal, epistemic)}
"""All four by name, in the paper's order."""
