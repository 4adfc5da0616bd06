"""Many small networks of the same shape, trained side by side as one batched computation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

FloatArray = npt.NDArray[np.float64]

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps outputs (K, n, outputs) and targets (K, n) to the mean loss of each network, (K,)."""

Watch = Callable[[range], Iterable[int]]
"""Passes epochs through, and shows their progress."""


class Bundle:
    """K multilayer perceptrons with ReLU units.

    Parameters
    ----------
    count : int
        Number of networks, K.
    inputs : int
    hidden : sequence of int
        Units of the hidden layers.
    outputs : int
    seed : int
        Determines weights, the order of minibatches and dropout.
    dropout : float
        Share of the units that dropout switches off.
    dropped : tuple of int
        Hidden layers, counting from 0, that are followed by dropout.
    apart : bool
        Whether each output has its own hidden layers.
    """

    def __init__(
        self,
        count: int,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        *,
        seed: int,
        dropout: float = 0.0,
        dropped: tuple[int, ...] = (),
        apart: bool = False,
    ) -> None:
        self.count, self.outputs = count, outputs
        self.dropout, self.dropped = dropout, dropped
        self.heads = outputs if apart else 1
        self.random = torch.Generator().manual_seed(seed)
        sizes = [inputs, *hidden, outputs // self.heads]
        self.layers = [
            (self._uniform(rows, rows, columns), self._uniform(rows, 1, columns))
            for rows, columns in pairwise(sizes)
        ]

    def _uniform(self, fan_in: int, *shape: int) -> Tensor:
        """Uniform within 1/sqrt(inputs of the layer), as torch initializes linear layers."""
        drawn = torch.rand((self.count * self.heads, *shape), generator=self.random)
        scaled: Tensor = (2 * drawn - 1) / fan_in**0.5
        return scaled.requires_grad_()

    @property
    def parameters(self) -> list[Tensor]:
        """Weights and biases of all layers."""
        return [tensor for layer in self.layers for tensor in layer]

    def __call__(self, x: Tensor, *, drop: bool = False) -> Tensor:
        """Outputs (K, n, outputs) for inputs (n, inputs) common to all or (K, n, inputs) of each."""
        wide = x.expand(self.count, *x.shape[-2:])
        hidden = wide.repeat_interleave(self.heads, dim=0) if self.heads > 1 else wide
        for number, (weights, bias) in enumerate(self.layers[:-1]):
            hidden = torch.relu(torch.baddbmm(bias, hidden, weights))
            if drop and number in self.dropped:
                kept = torch.rand(hidden.shape, generator=self.random) >= self.dropout
                hidden = hidden * kept / (1 - self.dropout)
        weights, bias = self.layers[-1]
        out = torch.baddbmm(bias, hidden, weights)
        if self.heads == 1:
            return out
        return out.reshape(self.count, self.heads, *out.shape[1:]).transpose(1, 2).flatten(2)

    def predict(self, x: FloatArray, *, drop: bool = False, at_once: int = 8192) -> npt.NDArray[np.float32]:
        """Outputs (K, n, outputs) for inputs (n, inputs), block by block."""
        with torch.no_grad():
            blocks = [
                self(as_tensor(x[start : start + at_once]), drop=drop).numpy()
                for start in range(0, len(x), at_once)
            ]
        return np.concatenate(blocks, axis=1)

    def minibatches(self, x: Tensor, y: Tensor, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """One pass through the data: inputs (K, batch, inputs) and targets (K, batch), shuffled for each network.

        Samples left over after the last whole minibatch wait for the next pass.
        """
        order = torch.rand((self.count, len(x)), generator=self.random).argsort(dim=1)
        for start in range(0, len(x) - batch + 1, batch):
            rows = order[:, start : start + batch]
            yield x[rows], y[rows]


@dataclass(frozen=True)
class Training:
    """How long and how fast networks are trained with Adam."""

    epochs: int
    batch: int = 32
    rate: float = 1e-3
    decay: float = 0.0
    """Factor on the sum of squared parameters added to the mean loss."""


def as_tensor(values: npt.ArrayLike) -> Tensor:
    """A float32 tensor, or an int64 one for whole numbers."""
    array = np.asarray(values)
    return torch.as_tensor(array.astype(np.int64 if array.dtype.kind in "iu" else np.float32))


def fit(
    bundle: Bundle,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    loss: Loss,
    training: Training,
    watch: Watch = iter,
) -> Bundle:
    """Train every network of a bundle with Adam (Kingma and Ba 2015), each on its own minibatches.

    Parameters
    ----------
    bundle : Bundle
    x, y : arrays (n, inputs) and (n,)
    loss : callable
    training : Training
    watch : callable
        Shows the progress of the epochs.
    """
    inputs, targets = as_tensor(x), as_tensor(y)
    adam = torch.optim.Adam(bundle.parameters, lr=training.rate)
    for _ in watch(range(training.epochs)):
        for part, truth in bundle.minibatches(inputs, targets, training.batch):
            # The networks share nothing, so the gradient of the sum gives each network's own.
            total = loss(bundle(part, drop=True), truth).sum()
            if training.decay:
                total = total + training.decay * sum(p.square().sum() for p in bundle.parameters)
            adam.zero_grad()
            torch.autograd.backward(total)
            adam.step()
    return bundle


def gaussian_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Negative log-likelihood of outputs (mean, log variance), without its constant."""
    mean, log_variance = outputs[..., 0], outputs[..., 1].clamp(-20, 20)
    return 0.5 * (log_variance + (y - mean).square() * torch.exp(-log_variance)).mean(dim=-1)


def class_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of the softmax of the outputs."""
    logs = torch.log_softmax(outputs, dim=-1)
    return -logs.gather(-1, labels[..., None])[..., 0].mean(dim=-1)


def moments(outputs: npt.NDArray[np.float32], highest: float = 20) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations from outputs (..., 2) of mean and log variance, capped at ``highest``."""
    wide = outputs.astype(np.float64)
    return wide[..., 0], np.exp(0.5 * np.clip(wide[..., 1], -20, highest))


def probabilities(outputs: npt.NDArray[np.float32]) -> FloatArray:
    """Softmax of outputs (..., classes)."""
    wide = outputs.astype(np.float64)
    shifted = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))
