"""Energy-based regression: a network's output f(x, y) as an unnormalized log density of y given x."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from uq_tracking_papers.bundle import Bundle, Watch, as_tensor

FloatArray = npt.NDArray[np.float64]
SPREAD = 3.0
"""Targets are scaled to [-3, 3] for the network, which then finds sharp ridges sooner."""


@dataclass(frozen=True)
class Effort:
    """Training: minibatches of ``batch`` samples; the normalizer is a sum over ``points`` positions along y."""

    epochs: int
    batch: int = 128
    points: int = 64
    rate: float = 1e-3


class Energy:
    """The density ``exp f(x, y) / Z(x)`` of y in [low, high], Xiong et al. 2024, eq. 13.

    Parameters
    ----------
    low, high : float
        Range of possible targets.
    hidden : tuple of int
        Hidden layers.
    seed : int
    """

    def __init__(self, low: float, high: float, hidden: tuple[int, ...], seed: int) -> None:
        self.low, self.high = low, high
        self.network = Bundle(1, 2, hidden, 1, seed=seed)

    def fit(self, x: FloatArray, y: FloatArray, effort: Effort, watch: Watch = iter) -> Energy:
        """Maximise the likelihood (eq. 14); log Z is summed over evenly spaced positions with a random shift."""
        inputs, targets = as_tensor(x)[:, None], as_tensor(y)
        adam = torch.optim.Adam(self.network.parameters, lr=effort.rate)
        steps = effort.epochs * (len(x) // effort.batch)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
        cell = (self.high - self.low) / effort.points
        for _ in watch(range(effort.epochs)):
            for part, truth in self.network.minibatches(inputs, targets, effort.batch):
                shift = torch.rand((effort.batch, 1), generator=self.network.random)
                places = self.low + cell * (torch.arange(effort.points) + shift)
                both = torch.cat([places, truth[0][:, None]], dim=1)
                f = self._energies(part[0], both)
                loss = (torch.logsumexp(f[:, :-1], dim=1) - f[:, -1]).mean()
                adam.zero_grad()
                torch.autograd.backward(loss)
                adam.step()
                falling.step()
        return self

    def _energies(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """The values f at positions (n, points) for samples with inputs (n, 1)."""
        scaled = (places - self.low) / (self.high - self.low) * 2 * SPREAD - SPREAD
        pairs = torch.stack([x.expand(places.shape), scaled], dim=-1).reshape(-1, 2)
        return self.network(pairs)[0, :, 0].reshape(places.shape)

    def log_density(self, x: FloatArray, places: FloatArray, at_once: int = 256) -> FloatArray:
        """Log density (n, points) at evenly spaced positions (points,), normalized by the trapezoid rule."""
        blocks = []
        for start in range(0, len(x), at_once):
            part = as_tensor(x[start : start + at_once])[:, None]
            with torch.no_grad():
                f = self._energies(part, as_tensor(places).expand(len(part), -1)).numpy().astype(np.float64)
            top = f.max(axis=1, keepdims=True)
            total = np.trapezoid(np.exp(f - top), places, axis=1)[:, None]
            blocks.append(f - top - np.log(total))
        return np.concatenate(blocks).astype(np.float64)

    def summary(self, x: FloatArray, y: FloatArray, points: int = 512) -> dict[str, FloatArray]:
        """What predictions for targets y need from the density, as `on_grid` returns it."""
        places = np.linspace(self.low, self.high, points)
        return on_grid(y, places, self.log_density(x, places))


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
