"""One-dimensional regression problems whose true conditional distribution is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs.predictions import Predictions
from uq_tracking_papers.datasets.sample import Sample, Seed

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
    >>> from uq_tracking_papers.datasets import xiong
    >>> means, stds = xiong.multimodal.components(xiong.multimodal(5).x)
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
