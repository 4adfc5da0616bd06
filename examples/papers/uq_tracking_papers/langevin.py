"""Stochastic gradient MCMC: samples of a network's weights from noisy steps along the gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy.typing as npt
import torch

from uq_tracking_papers.bundle import Bundle, Loss, Watch, as_tensor


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
    inputs, targets = as_tensor(x), as_tensor(y)
    n, parameters = len(inputs), bundle.parameters
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
