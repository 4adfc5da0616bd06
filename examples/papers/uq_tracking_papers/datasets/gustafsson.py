"""The two toy problems of Gustafsson et al. (2020), sections 2 and 4.1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uq_tracking.inputs import Predictions
from uq_tracking_papers.datasets.conditional import Conditional, FloatArray
from uq_tracking_papers.datasets.sample import Sample, Seed

sine = Conditional(
    "sine",
    (-7, 7),
    ((-3, 3),),
    lambda x: np.asarray(np.sin(x)[None]),
    lambda x: np.asarray(0.15 / (1 + np.exp(-x))),
)
"""Eq. 5: a sine with noise that grows with x. The paper trains on 1000 examples in [-3, 3]; its scripts compare on
[-7, 7]."""


@dataclass(frozen=True)
class TwoClasses:
    """Points of the plane in two classes, with training points in the right half of the centre; calling it draws.

    The paper shows its true classes only as a picture (fig. 3a). Here the classes meet along ``x2 = 1.5 sin x1``, and
    class 1 has the probability ``1 / (1 + exp(-steepness (x2 - 1.5 sin x1)))``.

    Attributes
    ----------
    half : float
        Training points lie in [0, half] x [-half, half].
    shown : float
        Predictions are compared over [-shown, shown] x [-shown, shown].
    steepness : float
        Steepness of the transition from one class to the other, per unit of x2.

    Examples
    --------
    >>> sample = two_classes(10)
    >>> sample.x.shape, int(sample.y.sum())
    ((20, 2), 10)
    """

    half: float = 3.0
    shown: float = 6.0
    steepness: float = 4.0

    def __call__(self, per_class: int = 520, seed: Seed = 0) -> Sample:
        """Draw this many training points per class, in random order; the paper has 520 per class."""
        rng = np.random.default_rng(seed)
        points, labels = np.empty((0, 2)), np.empty(0, np.int64)
        while min(np.sum(labels == 0), np.sum(labels == 1)) < per_class:
            more = rng.uniform([0, -self.half], [self.half, self.half], (4 * per_class, 2))
            drawn = (rng.random(len(more)) < self.probability(more)).astype(np.int64)
            points, labels = np.concatenate([points, more]), np.concatenate([labels, drawn])
        kept = rng.permutation(
            np.concatenate([np.flatnonzero(labels == label)[:per_class] for label in (0, 1)])
        )
        return self._sample(points[kept], labels[kept])

    def at(self, points: FloatArray, seed: Seed = 0) -> Sample:
        """Draw the class of each point (n, 2)."""
        drawn = np.random.default_rng(seed).random(len(points)) < self.probability(points)
        return self._sample(points, drawn.astype(np.int64))

    def probability(self, points: FloatArray) -> FloatArray:
        """True probability of class 1, (n,), at points (n, 2)."""
        above = points[:, 1] - 1.5 * np.sin(points[:, 0])
        return np.asarray(1 / (1 + np.exp(-self.steepness * above)))

    def grid(self, side: int = 60) -> FloatArray:
        """Points (side * side, 2) over the square shown, row by row of equal x2."""
        axis = np.linspace(-self.shown, self.shown, side)
        return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    def _sample(self, points: FloatArray, labels: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Sample:
        one = self.probability(points)
        return Sample(points, labels, Predictions.from_probs(labels, np.stack([1 - one, one], axis=-1)))


two_classes = TwoClasses()
"""Training points as in the paper, with our own class boundary."""
