"""A network that predicts mean and standard deviation, trained in the two steps of Levi et al. (2019, section 4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from uq_tracking.demo.network import Architecture, Array, Network, Schedule

FloatArray = npt.NDArray[np.float64]

SMALLEST_VARIANCE = 1e-6


class MedianNetwork(Network):
    """A network fitted to the absolute error."""

    def _pull(self, outputs: Array, y: Array) -> Array:
        slopes: Array = np.sign(outputs - y)
        return slopes


class MeanAndStd:
    """First the mean is trained on the absolute error; then, with all else frozen, the log variance.

    The second step fits one linear output on the last hidden layer to the Gaussian log score. That is a convex
    problem, so it is solved rather than descended.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers; with the output layer the paper's network has four layers.
    rng : numpy.random.Generator
    """

    def __init__(self, rng: np.random.Generator, hidden: tuple[int, ...] = (32, 32, 32)) -> None:
        self.network = MedianNetwork(1, Architecture(hidden), rng)
        self.head = np.zeros(hidden[-1] + 1)

    def fit_mean(self, x: FloatArray, y: FloatArray, schedule: Schedule) -> MeanAndStd:
        """Fit to inputs and targets, both (n,)."""
        self.network.fit(_features(x), y.astype(np.float32), schedule)
        return self

    def fit_std(self, x: FloatArray, y: FloatArray) -> MeanAndStd:
        """Fit the branch of the standard deviation."""
        features = self._branch(x)
        squares = (y - self.mean(x)) ** 2

        def loss(head: FloatArray) -> tuple[float, FloatArray]:
            """Mean Gaussian log score up to a constant, and its gradient."""
            log_variance = np.clip(features @ head, -30, 30)
            share = squares * np.exp(-log_variance)
            gradient = features.T @ (1 - share) / (2 * len(x))
            return float(np.mean(log_variance + share) / 2), gradient

        start = np.zeros(features.shape[1])
        start[-1] = np.log(squares.mean() + SMALLEST_VARIANCE)
        self.head = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x
        return self

    def mean(self, x: FloatArray) -> FloatArray:
        """Predicted means (n,)."""
        return self.network.predict(_features(x)).astype(np.float64)

    def std(self, x: FloatArray) -> FloatArray:
        """Predicted standard deviations (n,)."""
        return np.asarray(np.exp(self._branch(x) @ self.head / 2))

    def _branch(self, x: FloatArray) -> FloatArray:
        hidden = self.network.hidden(_features(x)).astype(np.float64)
        return np.column_stack([hidden, np.ones(len(x))])


def _features(x: FloatArray) -> Array:
    return x.astype(np.float32)[:, None]
