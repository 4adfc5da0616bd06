"""Energy-based regression: a network's output f(x, y) as an unnormalised log density of y given x."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from uq_tracking.inputs.predictions import Predictions
from uq_tracking.reproduction.bundle import Bundle, as_tensor

FloatArray = npt.NDArray[np.float64]
SPREAD = 3.0
"""Targets are scaled to [-3, 3] for the network, which finds sharp ridges sooner so."""

Advance = Callable[[], None]


@dataclass(frozen=True)
class Effort:
    """Training: minibatches of ``batch`` samples, and ``points`` places along y that the normaliser is summed over."""

    epochs: int
    batch: int = 128
    points: int = 64
    rate: float = 1e-3


class Energy:
    """The density ``exp f(x, y) / Z(x)`` of y in [low, high], Xiong et al. 2024, eq. 13.

    Parameters
    ----------
    low, high : float
        Where targets may lie.
    hidden : tuple of int
        Hidden layers.
    seed : int
    """

    def __init__(self, low: float, high: float, hidden: tuple[int, ...], seed: int) -> None:
        self.low, self.high = low, high
        self.network = Bundle(1, 2, hidden, 1, seed=seed)

    def fit(self, x: FloatArray, y: FloatArray, effort: Effort, after_epoch: Advance = lambda: None) -> Energy:
        """Maximise the likelihood (eq. 14); log Z is summed over evenly spaced places shifted at random."""
        inputs, targets = as_tensor(x)[:, None], as_tensor(y)
        adam = torch.optim.Adam(self.network.parameters, lr=effort.rate)
        steps = effort.epochs * (len(x) // effort.batch)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
        cell = (self.high - self.low) / effort.points
        for _ in range(effort.epochs):
            for part, truth in self.network.minibatches(inputs, targets, effort.batch):
                shift = torch.rand((effort.batch, 1), generator=self.network.random)
                places = self.low + cell * (torch.arange(effort.points) + shift)
                both = torch.cat([places, truth[0][:, None]], dim=1)
                f = self._energies(part[0], both)
                loss = (torch.logsumexp(f[:, :-1], dim=1) - f[:, -1]).mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
                falling.step()
            after_epoch()
        return self

    def _energies(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """f at places (n, points) of samples with inputs (n, 1)."""
        scaled = (places - self.low) / (self.high - self.low) * 2 * SPREAD - SPREAD
        pairs = torch.stack([x.expand(places.shape), scaled], dim=-1).reshape(-1, 2)
        return self.network(pairs)[0, :, 0].reshape(places.shape)

    def log_density(self, x: FloatArray, places: FloatArray, at_once: int = 256) -> FloatArray:
        """Log density (n, points) at evenly spaced places (points,) from end to end, normalised by the trapezoid."""
        blocks = []
        for start in range(0, len(x), at_once):
            part = as_tensor(x[start : start + at_once])[:, None]
            with torch.no_grad():
                f = self._energies(part, as_tensor(places).expand(len(part), -1)).numpy().astype(np.float64)
            top = f.max(axis=1, keepdims=True)
            total = np.trapezoid(np.exp(f - top), places, axis=1)[:, None]
            blocks.append(f - top - np.log(total))
        return np.concatenate(blocks)

    def predict(self, x: FloatArray, y: FloatArray, points: int = 1024) -> Predictions:
        """The density as predictions for targets y: the mode predicts, the standard deviation is the uncertainty."""
        places = np.linspace(self.low, self.high, points)
        return from_grid(y, places, self.log_density(x, places))


def from_grid(y: FloatArray, places: FloatArray, log_density: FloatArray, *, at: str = "mode") -> Predictions:
    """Predictions from log densities (n, points) at evenly spaced places (points,).

    Parameters
    ----------
    y : array (n,)
        Truth.
    places, log_density : arrays (points,) and (n, points)
    at : {"mode", "mean"}
        What predicts: the most probable place, as in Xiong et al., or the mean.
    """
    density = np.exp(log_density)
    step = places[1] - places[0]
    cells = 0.5 * (density[:, 1:] + density[:, :-1]) * step
    below = np.concatenate([np.zeros((len(y), 1)), np.cumsum(cells, axis=1)], axis=1)
    mean = np.trapezoid(density * places, places, axis=1)
    variance = np.trapezoid(density * (places - mean[:, None]) ** 2, places, axis=1)
    place = np.clip((y - places[0]) / step, 0, len(places) - 1)
    left = np.minimum(place.astype(np.intp), len(places) - 2)
    rows, share = np.arange(len(y)), place - left
    # The distribution function between two places, of a density that is linear there.
    rise = density[rows, left] * share + 0.5 * (density[rows, left + 1] - density[rows, left]) * share**2
    pit = (below[rows, left] + rise * step) / below[:, -1]
    log_at = log_density[rows, left] * (1 - share) + log_density[rows, left + 1] * share
    mode = places[log_density.argmax(axis=1)]
    point = mode if at == "mode" else mean
    return Predictions.from_density(
        y, pit=np.clip(pit, 0, 1), log_density=log_at, y_pred=point, y_std=np.sqrt(variance)
    )
