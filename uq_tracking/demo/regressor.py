"""From positions to heights: random Fourier features of the position, then the small network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from uq_tracking.demo.network import Architecture, Array, Network, Schedule
from uq_tracking.demo.terrain import Heights, Positions

LENGTH_SCALE = 20.0
"""Distance, in cells, over which the phase of a typical wave advances by one radian."""

CELLS_AT_ONCE = 8192
"""Cells predicted at a time, so that their features stay in cache."""


@dataclass(frozen=True)
class Waves:
    """Sines and cosines of random plane waves; from raw positions the network would only learn smooth hills.

    Rahimi and Recht (2007), with the spectrum of a Matern-3/2 kernel: frequencies follow a bivariate
    t-distribution with three degrees of freedom.
    """

    frequencies: Array

    @classmethod
    def draw(cls, count: int, rng: np.random.Generator) -> Waves:
        """``count`` random waves."""
        normal = rng.standard_normal((2, count))
        return cls((normal / np.sqrt(rng.chisquare(3, count) / 3) / LENGTH_SCALE).astype(np.float32))

    def __call__(self, positions: Positions) -> Array:
        """Features (n, 2 * count) of positions (n, 2)."""
        phase = positions.astype(np.float32) @ self.frequencies
        return np.concatenate([np.sin(phase), np.cos(phase)], axis=1)


class HeightModel:
    """Heights in metres from positions in cells.

    Parameters
    ----------
    architecture : Architecture
        Hidden layers and dropout of the network.
    seed : int
        Determines the waves, the initial weights, the order of the minibatches and the dropout masks.
    waves : int
        Number of random plane waves.
    """

    def __init__(self, architecture: Architecture, seed: int, waves: int = 128) -> None:
        rng = np.random.default_rng(seed)
        self.waves = Waves.draw(waves, rng)
        self.network = Network(2 * waves, architecture, rng)
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
        standardised = ((heights - self.mean) / self.scale).astype(np.float32)
        self.network.fit(self.waves(positions), standardised, schedule, after_epoch)
        return self

    def predict(self, positions: Positions) -> Heights:
        """Heights (n,)."""
        heights: Heights = self._heights(positions, lambda x: self.network.predict(x)[None])[0]
        return heights

    def sample(self, positions: Positions, passes: int, seed: int) -> Heights:
        """Heights (passes, n) from passes with dropout active."""
        rng = np.random.default_rng(seed)
        return self._heights(positions, lambda x: self.network.sample(x, passes, rng))

    def _heights(self, positions: Positions, outputs: Callable[[Array], Array]) -> Heights:
        starts = range(0, len(positions), CELLS_AT_ONCE)
        blocks = [outputs(self.waves(positions[start : start + CELLS_AT_ONCE])) for start in starts]
        standardised: Heights = np.concatenate(blocks, axis=1).astype(np.float64)
        return self.mean + self.scale * standardised
