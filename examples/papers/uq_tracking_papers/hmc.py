"""Hamiltonian Monte Carlo over the weights of a small network: numpyro's NUTS, several chains, R-hat of outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from numpyro.diagnostics import split_gelman_rubin
from numpyro.infer import MCMC, NUTS

FloatArray = npt.NDArray[np.float64]

STEPS, RATE = 4000, 0.01
"""Steps and rate of Adam, which moves every chain from a random start to a posterior mode before sampling."""


@dataclass(frozen=True)
class Chains:
    """Chains, iterations of each, and the depth of NUTS' trees: up to ``2^depth - 1`` steps per iteration."""

    count: int = 4
    warmup: int = 300
    samples: int = 300
    depth: int = 9


@dataclass(frozen=True)
class Shape:
    """Layers of a network; ``heads`` networks side by side give that many groups of outputs."""

    sizes: tuple[int, ...]
    heads: int = 1

    @property
    def weights(self) -> int:
        """Number of weights and biases."""
        return self.heads * sum((rows + 1) * columns for rows, columns in pairwise(self.sizes))

    def __call__(self, theta: jax.Array, x: jax.Array) -> jax.Array:
        """Outputs (n, heads * outputs) of the network with parameters theta (weights,)."""
        found, place = [], 0
        for _ in range(self.heads):
            hidden = x
            for layer, (rows, columns) in enumerate(pairwise(self.sizes)):
                if layer:
                    hidden = jax.nn.relu(hidden)
                end = place + rows * columns
                matrix = theta[place:end].reshape(rows, columns)
                hidden = hidden @ matrix + theta[end : end + columns]
                place = end + columns
            found.append(hidden)
        return jnp.concatenate(found, axis=1)


def gaussian_energy(outputs: jax.Array, y: jax.Array) -> jax.Array:
    """Negative log-likelihood of outputs (n, 2), mean and log variance, without its constant."""
    mean, log_variance = outputs[:, 0], outputs[:, 1]
    return 0.5 * jnp.sum(log_variance + (y - mean) ** 2 * jnp.exp(-log_variance))


def class_energy(outputs: jax.Array, labels: jax.Array) -> jax.Array:
    """Negative log-likelihood of the softmax of outputs (n, classes)."""
    logs = jax.nn.log_softmax(outputs)
    return -jnp.take_along_axis(logs, labels[:, None], axis=1).sum()


def sampled_outputs(
    shape: Shape,
    energy: Callable[[jax.Array, jax.Array], jax.Array],
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    at: npt.ArrayLike,
    chains: Chains,
    seed: int,
) -> npt.NDArray[np.float32]:
    """Outputs of networks drawn from the posterior under the prior N(0, I).

    Parameters
    ----------
    shape : Shape
    energy : callable
        Maps outputs and targets to the negative log-likelihood.
    x, y : arrays (n, inputs) and (n,)
    at : array (m, inputs)
        Where the networks are evaluated.
    chains : Chains
    seed : int

    Returns
    -------
    array (chains, samples, m, outputs)
    """
    inputs = jnp.asarray(np.asarray(x, dtype=np.float32))
    values = np.asarray(y)
    targets = jnp.asarray(values if values.dtype.kind in "iu" else values.astype(np.float32))

    def potential(theta: jax.Array) -> jax.Array:
        return energy(shape(theta, inputs), targets) + 0.5 * jnp.sum(theta**2)

    first, second = jax.random.split(jax.random.PRNGKey(seed))
    start = 0.5 * jax.random.normal(first, (chains.count, shape.weights))
    start = jax.jit(jax.vmap(lambda theta: _descend(potential, theta)))(start)
    kernel = NUTS(potential_fn=potential, max_tree_depth=chains.depth)
    options: dict[str, Any] = {"chain_method": "vectorized" if chains.count > 1 else "sequential"}
    sampler = MCMC(
        kernel,
        num_warmup=chains.warmup,
        num_samples=chains.samples,
        num_chains=chains.count,
        progress_bar=False,
        **options,
    )
    sampler.run(second, init_params=start if chains.count > 1 else start[0])
    theta = sampler.get_samples(group_by_chain=True)
    where = jnp.asarray(np.asarray(at, dtype=np.float32))
    evaluate = jax.jit(jax.vmap(lambda one: shape(one, where)))
    return np.stack([np.asarray(evaluate(chain)) for chain in theta])


def _descend(potential: Callable[[jax.Array], jax.Array], theta: jax.Array) -> jax.Array:
    """Minimize a potential with Adam at a decaying rate."""
    gradient = jax.grad(potential)

    def step(state: Any, number: jax.Array) -> Any:
        theta, first, second = state
        slope = gradient(theta)
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        rate = RATE * 0.5 * (1 + jnp.cos(jnp.pi * number / STEPS))
        mean, square = first / (1 - 0.9 ** (number + 1)), second / (1 - 0.999 ** (number + 1))
        return (theta - rate * mean / (jnp.sqrt(square) + 1e-8), first, second), None

    zeros = jnp.zeros_like(theta)
    (theta, _, _), _ = jax.lax.scan(step, (theta, zeros, zeros), jnp.arange(STEPS))
    return jnp.asarray(theta)


def r_hat(outputs: npt.NDArray[np.float32]) -> FloatArray:
    """Split R-hat (m, outputs) of each output over chains (chains, samples, m, outputs), by numpyro."""
    return np.asarray(split_gelman_rubin(outputs.astype(np.float64)), dtype=np.float64)
