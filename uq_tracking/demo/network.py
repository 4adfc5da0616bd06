"""A small multilayer perceptron in numpy, with the two things scikit-learn's lacks: dropout and snapshots.

One network serves every method of the demo that needs one, so the methods differ only in where their uncertainty
comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from uq_tracking.demo.terrain import Heights, Positions

Array = npt.NDArray[np.float32]
Layers = list[tuple[Array, Array]]
"""Weights (inputs, outputs) and biases (outputs,) from the first layer to the last."""

LENGTH_SCALE = 20.0
"""Distance, in cells, over which the phase of a typical wave advances by one radian."""
WAVES = 128
"""Number of random plane waves."""
CELLS_AT_ONCE = 8192
"""Cells predicted at a time, so that their features stay in cache."""


@dataclass(frozen=True)
class Architecture:
    """Units of the hidden layers, and the share of them that dropout switches off in each pass."""

    hidden: tuple[int, ...] = (64, 64)
    dropout: float = 0.0


@dataclass(frozen=True)
class Schedule:
    """Length and rate of a training; the learning rate falls to zero along half a cosine."""

    epochs: int = 60
    batch: int = 256
    rate: float = 8e-3

    def rates(self, steps: int) -> npt.NDArray[np.float64]:
        """Learning rate of each of ``steps`` steps."""
        return self.rate * 0.5 * (1 + np.cos(np.pi * np.arange(steps) / steps))


class Network:
    """ReLU layers and one linear output, fitted with Adam to squared error, unless `_pull` is overridden.

    ``rng`` makes the initial weights (normal with variance 2/inputs: He et al. 2015, eq. 10), the order of the
    minibatches and the dropout masks while training.
    """

    def __init__(self, inputs: int, architecture: Architecture, rng: np.random.Generator) -> None:
        self.dropout, self.rng = architecture.dropout, rng
        self.layers: Layers = []
        for rows, columns in pairwise([inputs, *architecture.hidden, 1]):
            weights = rng.standard_normal((rows, columns), np.float32) * np.float32(np.sqrt(2 / rows))
            self.layers.append((weights, np.zeros(columns, np.float32)))

    def fit(
        self, x: Array, y: Array, schedule: Schedule, after_epoch: Callable[[int], None] | None = None
    ) -> Network:
        """Fit to features ``x`` (n, inputs) and standardized targets ``y`` (n,).

        ``after_epoch`` is called with 1, 2, ... after each pass through the data.
        """
        adam = Adam(self.layers)
        batches = -(-len(y) // schedule.batch)
        rates = schedule.rates(schedule.epochs * batches).reshape(schedule.epochs, batches)
        for epoch, epoch_rates in enumerate(rates, start=1):
            parts = np.array_split(self.rng.permutation(len(y)), batches)
            for rows, rate in zip(parts, epoch_rates, strict=True):
                adam.step(self._gradients(x[rows], y[rows]), rate)
            if after_epoch is not None:
                after_epoch(epoch)
        return self

    def predict(self, x: Array) -> Array:
        """Outputs (n,) for features (n, inputs), without dropout."""
        return self._output(self.hidden(x))

    def hidden(self, x: Array) -> Array:
        """Activations (n, units) of the last hidden layer for features (n, inputs), without dropout."""
        for weights, bias in self.layers[:-1]:
            x = np.maximum(x @ weights + bias, 0)
        return x

    def sample(self, x: Array, passes: int, rng: np.random.Generator) -> Array:
        """Outputs (passes, n) with dropout active: Monte Carlo dropout (Gal and Ghahramani 2016)."""
        (weights, bias), *rest = self.layers[:-1]
        first = np.maximum(x @ weights + bias, 0)  # the same in every pass
        outputs = np.empty((passes, len(x)), np.float32)
        for row in outputs:
            hidden = first * self._mask(first.shape, rng)
            for weights, bias in rest:
                hidden = np.maximum(hidden @ weights + bias, 0)
                hidden *= self._mask(hidden.shape, rng)
            row[:] = self._output(hidden)
        return outputs

    def _output(self, hidden: Array) -> Array:
        weights, bias = self.layers[-1]
        return (hidden @ weights + bias)[:, 0]

    def _mask(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """1/(1 - dropout) for units that stay and 0 for the others, so the expected activation is unchanged."""
        kept = rng.random(shape, np.float32) >= self.dropout
        return kept.astype(np.float32) / np.float32(1 - self.dropout)

    def _pull(self, outputs: Array, y: Array) -> Array:
        """Derivative of each sample's loss, half the squared error, with respect to its output."""
        return outputs - y

    def _gradients(self, x: Array, y: Array) -> Layers:
        """Gradient of the mean loss with respect to every weight and bias, with dropout active."""
        inputs: list[Array] = [x]
        slopes: list[Array] = []
        for weights, bias in self.layers[:-1]:
            sums = inputs[-1] @ weights + bias
            slope = (sums > 0).astype(np.float32)
            if self.dropout > 0:
                slope *= self._mask(slope.shape, self.rng)
            slopes.append(slope)
            inputs.append(sums * slope)
        delta: Array = self._pull(self._output(inputs[-1]), y)[:, None] / np.float32(len(y))
        found: Layers = [(inputs[-1].T @ delta, delta.sum(0))]
        for layer, slope in zip(range(len(slopes), 0, -1), reversed(slopes), strict=True):
            delta = (delta @ self.layers[layer][0].T) * slope
            found.append((inputs[layer - 1].T @ delta, delta.sum(0)))
        return found[::-1]


class Adam:
    """Adam (Kingma and Ba 2015, algorithm 1); updates ``layers`` in place."""

    def __init__(self, layers: Layers) -> None:
        self.parameters = [array for layer in layers for array in layer]
        self.first = [np.zeros_like(array) for array in self.parameters]
        self.second = [np.zeros_like(array) for array in self.parameters]
        self.steps = 0

    def step(self, gradients: Layers, rate: float) -> None:
        """Update the layers once against ``gradients`` with learning rate ``rate``."""
        self.steps += 1
        bias1, bias2 = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        flat = [array for layer in gradients for array in layer]
        for parameter, gradient, first, second in zip(
            self.parameters, flat, self.first, self.second, strict=True
        ):
            first += (1 - 0.9) * (gradient - first)
            second += (1 - 0.999) * (gradient * gradient - second)
            parameter -= float(rate) / bias1 * first / (np.sqrt(second / bias2) + 1e-8)


class HeightModel:
    """Heights in metres from positions in cells: sines and cosines of random plane waves, then the network.

    From raw positions the network would only learn smooth hills. The waves are those of Rahimi and Recht (2007), with
    the spectrum of a Matern-3/2 kernel: frequencies follow a bivariate t-distribution with three degrees of freedom.
    """

    def __init__(self, architecture: Architecture, seed: int) -> None:
        rng = np.random.default_rng(seed)
        normal = rng.standard_normal((2, WAVES))
        spread = np.sqrt(rng.chisquare(3, WAVES) / 3)
        self.frequencies = (normal / spread / LENGTH_SCALE).astype(np.float32)
        self.network = Network(2 * WAVES, architecture, rng)
        self.mean, self.scale = 0.0, 1.0

    def fit(
        self,
        positions: Positions,
        heights: Heights,
        schedule: Schedule,
        after_epoch: Callable[[int], None] | None = None,
    ) -> HeightModel:
        """Fit to measurements; ``after_epoch`` is called with the number of epochs done."""
        self.mean, self.scale = float(heights.mean()), float(heights.std())
        standardized = ((heights - self.mean) / self.scale).astype(np.float32)
        self.network.fit(self._features(positions), standardized, schedule, after_epoch)
        return self

    def predict(self, positions: Positions) -> Heights:
        """Heights (n,)."""
        return self._heights(positions, self.network.predict)

    def sample(self, positions: Positions, passes: int, seed: int) -> Heights:
        """Heights (passes, n) from passes with dropout active."""
        rng = np.random.default_rng(seed)
        return self._heights(positions, lambda x: self.network.sample(x, passes, rng))

    def _features(self, positions: Positions) -> Array:
        phase = positions.astype(np.float32) @ self.frequencies
        return np.concatenate([np.sin(phase), np.cos(phase)], axis=1)

    def _heights(self, positions: Positions, outputs: Callable[[Array], Array]) -> Heights:
        starts = range(0, len(positions), CELLS_AT_ONCE)
        blocks = [outputs(self._features(positions[start : start + CELLS_AT_ONCE])) for start in starts]
        standardized: Heights = np.concatenate(blocks, axis=-1).astype(np.float64)
        return self.mean + self.scale * standardized
