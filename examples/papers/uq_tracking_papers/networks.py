"""Small networks in torch, many of one shape trained side by side, and what is fitted with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
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

    def part(self, chosen: slice = slice(None)) -> Bundle:
        """A copy of some of the networks, which later training does not change; its dropout draws go on from here."""
        kept = slice(*(None if end is None else end * self.heads for end in (chosen.start, chosen.stop)))
        found = copy(self)
        found.layers = [
            (weights.detach()[kept].clone().requires_grad_(), bias.detach()[kept].clone().requires_grad_())
            for weights, bias in self.layers
        ]
        found.count = len(found.layers[0][0]) // self.heads
        return found

    @property
    def parameters(self) -> list[Tensor]:
        """Weights and biases of all layers."""
        return [tensor for layer in self.layers for tensor in layer]

    def __call__(self, x: Tensor, *, drop: bool = False) -> Tensor:
        """Outputs (K, n, outputs) for inputs (G, n, inputs): each G-th of the networks has inputs of its own."""
        hidden = self.hidden(x, drop=drop)
        weights, bias = self.layers[-1]
        out = torch.baddbmm(bias, hidden, weights)
        if self.heads == 1:
            return out
        return out.reshape(self.count, self.heads, *out.shape[1:]).transpose(1, 2).flatten(2)

    def hidden(self, x: Tensor, *, drop: bool = False) -> Tensor:
        """Activations (K * heads, n, units) of the last hidden layer."""
        own = self.count * self.heads // len(x)
        hidden = x.repeat_interleave(own, dim=0) if own > 1 else x
        for number, (weights, bias) in enumerate(self.layers[:-1]):
            hidden = torch.relu(torch.baddbmm(bias, hidden, weights))
            if drop and number in self.dropped:
                kept = torch.rand(hidden.shape, generator=self.random) >= self.dropout
                hidden = hidden * kept / (1 - self.dropout)
        return hidden

    def predict(
        self, x: npt.ArrayLike, *, drop: bool = False, at_once: int = 200_000
    ) -> npt.NDArray[np.float32]:
        """Outputs (K, n, outputs) for inputs (n, inputs) or (G, n, inputs), in blocks of so many outputs."""
        inputs = grouped(as_tensor(x), 3)
        rows = max(1, at_once // (self.count * self.heads))
        with torch.no_grad():
            blocks = [self(part, drop=drop).numpy() for part in torch.split(inputs, rows, dim=1)]
        return np.concatenate(blocks, axis=1)

    def minibatches(
        self, x: Tensor, y: Tensor, batch: int, drawn: Tensor | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """One pass through the data: inputs (K, batch, inputs) and targets (K, batch), shuffled for each network.

        Samples left over after the last whole minibatch wait for the next pass. ``drawn`` (K, n) are the samples that
        each network sees, of (G, n, inputs) inputs and (G, n) targets.
        """
        groups, n = y.shape
        group = torch.arange(self.count)[:, None] // (self.count // groups)
        order = torch.rand((self.count, n), generator=self.random).argsort(dim=1)
        if drawn is not None:
            order = drawn.gather(1, order)
        for start in range(0, n - batch + 1, batch):
            rows = order[:, start : start + batch]
            yield x[group, rows], y[group, rows]


@dataclass(frozen=True)
class Training:
    """Length and rate of a training with Adam."""

    epochs: int
    batch: int = 32
    rate: float = 1e-3
    decay: float = 0.0
    """Factor on the sum of squared parameters added to the mean loss."""
    falling: bool = False
    """Whether the rate falls to 0 along a cosine."""


def grouped(values: Tensor, dimensions: int) -> Tensor:
    """Values with a first axis for the groups of networks that share data."""
    return values if values.ndim == dimensions else values[None]


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
    *,
    drawn: npt.ArrayLike | None = None,
    after_epoch: Callable[[int], None] | None = None,
    outputs: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Bundle:
    """Train every network of a bundle with Adam (Kingma and Ba 2015), each on its own minibatches.

    Parameters
    ----------
    bundle : Bundle
    x, y : arrays (n, inputs) and (n,), or (G, n, inputs) and (G, n)
        With G data sets, each G-th of the networks learns from one.
    loss : callable
    training : Training
    watch : callable
        Shows the progress of the epochs.
    drawn : int array (K, n), optional
        Samples that each network sees.
    after_epoch : callable, optional
        Called with the number of epochs done.
    outputs : callable, optional
        Outputs for inputs and targets of a minibatch, if they are not the bundle's own.
    """
    inputs, targets = grouped(as_tensor(x), 3), grouped(as_tensor(y), 2)
    chosen = None if drawn is None else as_tensor(drawn)
    adam = torch.optim.Adam(bundle.parameters, lr=training.rate)
    steps = training.epochs * (targets.shape[1] // training.batch)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps) if training.falling else None
    for epoch in watch(range(1, training.epochs + 1)):
        for part, truth in bundle.minibatches(inputs, targets, training.batch, chosen):
            # The networks share nothing, so the gradient of the sum gives each network's own.
            found = bundle(part, drop=True) if outputs is None else outputs(part, truth)
            total = loss(found, truth).sum()
            if training.decay:
                total = total + training.decay * sum(p.square().sum() for p in bundle.parameters)
            adam.zero_grad()
            torch.autograd.backward(total)
            adam.step()
            if falling is not None:
                falling.step()
        if after_epoch is not None:
            after_epoch(epoch)
    return bundle


def squared_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Half the mean squared error of the first output."""
    return 0.5 * (y - outputs[..., 0]).square().mean(dim=-1)


def absolute_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Mean absolute error of the first output."""
    return (y - outputs[..., 0]).abs().mean(dim=-1)


def positive_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Half the mean squared error of the softplus of the first output."""
    return 0.5 * (y - torch.nn.functional.softplus(outputs[..., 0])).square().mean(dim=-1)


def gaussian_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Negative log-likelihood of outputs (mean, log variance), without its constant."""
    mean, log_variance = outputs[..., 0], outputs[..., 1].clamp(-20, 20)
    return 0.5 * (log_variance + (y - mean).square() * torch.exp(-log_variance)).mean(dim=-1)


def class_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of the softmax of the outputs."""
    logs = torch.log_softmax(outputs, dim=-1)
    return -logs.gather(-1, labels[..., None])[..., 0].mean(dim=-1)


def energy_loss(energies: Tensor, _: Tensor) -> Tensor:
    """Negative log-likelihood of the last of the energies (K, n, points + 1), the others giving log Z."""
    return (torch.logsumexp(energies[..., :-1], dim=-1) - energies[..., -1]).mean(dim=-1)


def moments(outputs: npt.NDArray[np.float32], highest: float = 20) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations from outputs (..., 2) of mean and log variance, capped at ``highest``."""
    wide = outputs.astype(np.float64)
    return wide[..., 0], np.exp(0.5 * np.clip(wide[..., 1], -20, highest))


def probabilities(outputs: npt.NDArray[np.float32]) -> FloatArray:
    """Softmax of outputs (..., classes)."""
    wide = outputs.astype(np.float64)
    shifted = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class Sampling:
    """A chain: ``samples`` snapshots, ``every`` passes through the data apart.

    ``rate`` falls to 0 as ``(1 - t/T)^0.9``, and ``friction`` is one minus the momentum: with 1 this is SGLD (Welling
    and Teh 2011), below it SGHMC (Chen et al. 2014).
    """

    samples: int
    every: int
    rate: float
    friction: float = 1.0
    batch: int = 32


def sample(
    bundle: Bundle,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    loss: Loss,
    sampling: Sampling,
    snapshot: Callable[[], None],
    watch: Watch = iter,
) -> None:
    """Run one chain per network of the bundle, from its current state, on the posterior under the prior N(0, I).

    The energy is that of all data divided by their number, whose gradient a minibatch's mean loss estimates: the
    noise of a step has variance ``2 friction rate / n``.

    Parameters
    ----------
    bundle : Bundle
    x, y : arrays (n, inputs) and (n,)
    loss : callable
        Negative log-likelihood.
    sampling : Sampling
    snapshot : callable
        Called when a sample is due; the bundle's parameters are then those of the sample.
    watch : callable
        Shows how far the epochs are.
    """
    inputs, targets = grouped(as_tensor(x), 3), grouped(as_tensor(y), 2)
    n, parameters = targets.shape[1], bundle.parameters
    momenta = [torch.zeros_like(parameter) for parameter in parameters]
    epochs = sampling.samples * sampling.every
    steps = epochs * (n // sampling.batch)
    done = 0
    for epoch in watch(range(1, epochs + 1)):
        for part, truth in bundle.minibatches(inputs, targets, sampling.batch):
            rate = sampling.rate * (1 - done / steps) ** 0.9
            gradients = torch.autograd.grad(loss(bundle(part), truth).sum(), parameters)
            spread = (2 * sampling.friction * rate / n) ** 0.5
            with torch.no_grad():
                for parameter, momentum, gradient in zip(parameters, momenta, gradients, strict=True):
                    noise = torch.randn(parameter.shape, generator=bundle.random)
                    momentum.mul_(1 - sampling.friction).add_(gradient + parameter / n, alpha=-rate)
                    momentum.add_(noise, alpha=spread)
                    parameter.add_(momentum)
            done += 1
        if epoch % sampling.every == 0:
            snapshot()


SPREAD = 3.0
"""Targets are scaled to [-3, 3] for the network, which then finds sharp ridges sooner."""


class Energy:
    """K densities ``exp f(x, y) / Z(x)`` of y in [low, high], Xiong et al. 2024, eq. 13, each of its own data.

    Parameters
    ----------
    low, high : float
        Range of possible targets.
    hidden : tuple of int
        Hidden layers.
    seed : int
    count : int
        Number of networks, K.
    """

    def __init__(self, low: float, high: float, hidden: tuple[int, ...], seed: int, count: int = 1) -> None:
        self.low, self.high = low, high
        self.network = Bundle(count, 2, hidden, 1, seed=seed)

    def fit(
        self, x: FloatArray, y: FloatArray, training: Training, points: int = 64, watch: Watch = iter
    ) -> Energy:
        """Maximize the likelihood (eq. 14) of x and y (K, n); log Z is a sum over so many shifted even positions."""
        cell = (self.high - self.low) / points

        def energies(part: Tensor, truth: Tensor) -> Tensor:
            """Return those at the positions, and last that at the truth."""
            shift = torch.rand((*truth.shape, 1), generator=self.network.random)
            places = self.low + cell * (torch.arange(points) + shift)
            return self._energies(part, torch.cat([places, truth[..., None]], dim=-1))

        fit(
            self.network,
            x[..., None],
            y,
            energy_loss,
            replace(training, falling=True),
            watch,
            outputs=energies,
        )
        return self

    def _energies(self, x: Tensor, places: Tensor) -> Tensor:
        """The values f at positions (K, n, points) for samples with inputs (K, n, 1)."""
        scaled = (places - self.low) / (self.high - self.low) * 2 * SPREAD - SPREAD
        pairs = torch.stack([x.expand(places.shape), scaled], dim=-1)
        return self.network(pairs.flatten(1, 2))[..., 0].reshape(places.shape)

    def log_density(self, x: FloatArray, places: FloatArray, at_once: int = 256) -> FloatArray:
        """Log density (K, n, points) at evenly spaced positions (points,), normalized by the trapezoid rule."""
        inputs = grouped(as_tensor(x), 2)[..., None].expand(self.network.count, -1, 1)
        blocks = []
        for part in torch.split(inputs, at_once, dim=1):
            with torch.no_grad():
                shape = (*part.shape[:2], len(places))
                f = self._energies(part, as_tensor(places).expand(shape)).numpy().astype(np.float64)
            top = f.max(axis=-1, keepdims=True)
            total = np.trapezoid(np.exp(f - top), places, axis=-1)[..., None]
            blocks.append(f - top - np.log(total))
        return np.concatenate(blocks, axis=1).astype(np.float64)

    def summary(self, x: FloatArray, y: FloatArray, points: int = 512) -> list[dict[str, FloatArray]]:
        """For each network, arguments of `Predictions.from_density` for x and y (K, n), as `on_grid` returns them."""
        places = np.linspace(self.low, self.high, points)
        densities = self.log_density(x, places)
        truths = np.broadcast_to(y, densities.shape[:2])
        return [on_grid(truth, places, density) for truth, density in zip(truths, densities, strict=True)]


def on_grid(y: FloatArray, places: FloatArray, log_density: FloatArray) -> dict[str, FloatArray]:
    """Arguments of `Predictions.from_density`, from log densities at evenly spaced positions.

    Parameters
    ----------
    y : array (n,)
        Truth.
    places, log_density : arrays (points,) and (n, points)

    Returns
    -------
    dict of arrays (n,)
        ``pit``, the distribution function at the truth, for a density that is linear between positions;
        ``log_density`` at the truth; ``mode``, the most probable position; ``mean`` and ``std``.
    """
    density: FloatArray = np.exp(log_density)
    step = places[1] - places[0]
    cells = 0.5 * (density[:, 1:] + density[:, :-1]) * step
    below = np.concatenate([np.zeros((len(y), 1)), np.cumsum(cells, axis=1)], axis=1)
    mean = np.asarray(np.trapezoid(density * places, places, axis=1))
    variance = np.trapezoid(density * (places - mean[:, None]) ** 2, places, axis=1)
    place = np.clip((y - places[0]) / step, 0, len(places) - 1)
    left = np.minimum(place.astype(np.intp), len(places) - 2)
    rows, share = np.arange(len(y)), place - left
    rise = density[rows, left] * share + 0.5 * (density[rows, left + 1] - density[rows, left]) * share**2
    return {
        "pit": np.clip((below[rows, left] + rise * step) / below[:, -1], 0, 1),
        "log_density": log_density[rows, left] * (1 - share) + log_density[rows, left + 1] * share,
        "mode": places[log_density.argmax(axis=1)],
        "mean": mean,
        "std": np.sqrt(variance),
    }
