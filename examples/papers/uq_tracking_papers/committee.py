"""Many small networks trained at once, each on its own few samples, as the toys with repeats need.

One hidden layer of ReLU units and a linear output, as in MeRCI (2018, section 6.1). One network of 100 units on 20
samples is too little work for a numpy call; hundreds of them at a time are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Training:
    """How networks are trained: full batches with Adam at a constant rate, on standardized targets."""

    epochs: int = 600
    rate: float = 0.01
    hidden: int = 100
    dropout: float = 0.2


class Committee:
    """Networks with one input, trained side by side.

    Parameters
    ----------
    size : int
        Number of networks.
    training : Training
    rng : numpy.random.Generator
        Source of initial weights and dropout masks.
    """

    def __init__(self, size: int, training: Training, rng: np.random.Generator) -> None:
        self.training, self.rng = training, rng
        hidden = training.hidden
        self.parameters: list[Array] = [
            rng.standard_normal((size, hidden), np.float32) * np.float32(np.sqrt(2)),
            rng.uniform(-1, 1, (size, hidden)).astype(np.float32),
            rng.standard_normal((size, hidden), np.float32) * np.float32(np.sqrt(1 / hidden)),
            np.zeros((size, 1), np.float32),
        ]
        self.centre = self.scale = np.zeros((size, 1), np.float32)

    def fit(self, x: Array, y: Array, after_epoch: Callable[[int], None] | None = None) -> Committee:
        """Fit each network to its row of inputs ``x`` and targets ``y``, both (size, n)."""
        self.centre, self.scale = y.mean(1, keepdims=True), y.std(1, keepdims=True)
        targets = (y - self.centre) / self.scale
        first = [np.zeros_like(array) for array in self.parameters]
        second = [np.zeros_like(array) for array in self.parameters]
        for epoch in range(1, self.training.epochs + 1):
            self._step(self._gradients(x, targets), first, second, epoch)
            if after_epoch is not None:
                after_epoch(epoch)
        return self

    def predict(self, x: Array) -> Array:
        """Outputs (size, n) at inputs (n,), without dropout."""
        return self.centre + self.scale * self._output(self._hidden(x[None]))

    def sample(self, x: Array, passes: int) -> Array:
        """Outputs (passes, size, n) at inputs (n,) with dropout active."""
        hidden = self._hidden(x[None])
        draws = [self._output(hidden * self._mask()) for _ in range(passes)]
        return self.centre + self.scale * np.stack(draws)

    def _hidden(self, x: Array) -> Array:
        weights, bias = self.parameters[:2]
        sums: Array = x[:, :, None] * weights[:, None] + bias[:, None]
        np.maximum(sums, 0, out=sums)
        return sums

    def _output(self, hidden: Array) -> Array:
        weights, bias = self.parameters[2:]
        outputs: Array = (hidden @ weights[:, :, None])[:, :, 0] + bias
        return outputs

    def _mask(self, samples: int = 1) -> Array:
        """1/(1 - dropout) for units that stay, 0 for the others; (size, samples, hidden)."""
        size, hidden = self.parameters[0].shape
        kept = self.rng.random((size, samples, hidden), np.float32) >= self.training.dropout
        mask: Array = kept.astype(np.float32) / np.float32(1 - self.training.dropout)
        return mask

    def _gradients(self, x: Array, y: Array) -> list[Array]:
        """Gradient of half the mean squared error of each network, with dropout active."""
        hidden = self._hidden(x)
        active = (hidden > 0) * self._mask(x.shape[1])
        hidden = hidden * active
        residual = (self._output(hidden) - y) / np.float32(x.shape[1])
        back = residual[:, :, None] * self.parameters[2][:, None] * active
        return [
            (x[:, None] @ back)[:, 0],
            back.sum(1),
            (residual[:, None] @ hidden)[:, 0],
            residual.sum(1, keepdims=True),
        ]

    def _step(self, gradients: list[Array], first: list[Array], second: list[Array], step: int) -> None:
        """One update of Adam (Kingma and Ba 2015, algorithm 1), in place."""
        bias1, bias2 = 1 - 0.9**step, 1 - 0.999**step
        for parameter, gradient, m, v in zip(self.parameters, gradients, first, second, strict=True):
            m += np.float32(0.1) * (gradient - m)
            v += np.float32(0.001) * (gradient * gradient - v)
            rate = np.float32(self.training.rate / bias1)
            parameter -= rate * m / (np.sqrt(v / np.float32(bias2)) + np.float32(1e-8))
