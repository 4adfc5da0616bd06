"""A Gaussian process: scikit-learn fits its kernel, and each cell is predicted from the nearest measurements.

Conditioning only on the nearest measurements (Datta et al. 2016; in geostatistics, kriging with a moving
neighbourhood) replaces one system of 7000 equations with many of 16. More distant measurements are screened by nearer
ones and change little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from uq_tracking.demo.methods.base import Advance, Effort, Estimate, Map
from uq_tracking.demo.terrain import Heights, Positions, Terrain

FITTED_TO = 800
"""Number of measurements to which the kernel is fitted; the cost grows with its cube."""

NEIGHBOURS = 16
CELLS_AT_ONCE = 4096
ROUNDING = 1 / 12
"""Variance, in square metres, of rounding to whole metres: the noise of the measurements."""


@dataclass(frozen=True)
class Matern:
    """Covariance of heights by distance, Matern with smoothness 3/2: ``std`` in metres, ``length`` in cells."""

    std: float
    length: float

    def __call__(self, distance: Map) -> Map:
        """Covariance in square metres; the shape of ``distance``."""
        scaled = np.sqrt(3) * distance / self.length
        return np.asarray(self.std**2 * (1 + scaled) * np.exp(-scaled))


def gaussian_process(terrain: Terrain, effort: Effort, seed: int, advance: Advance) -> Estimate:
    """A stationary Gaussian process: its uncertainty depends on the distance to measurements, not on the relief."""
    level = terrain.heights.mean()
    kernel = fit_kernel(terrain.positions, terrain.heights - level, centre=np.array(terrain.shape) / 2)
    tree = cKDTree(terrain.positions)
    blocks = np.array_split(terrain.cells, -(-len(terrain.cells) // CELLS_AT_ONCE))
    means, stds = [], []
    for done, block in enumerate(blocks, start=1):
        distances, nearest = tree.query(block, NEIGHBOURS)
        near, heights = terrain.positions[nearest], terrain.heights[nearest] - level
        mean, std = condition(kernel, near, heights, distances)
        means.append(level + mean)
        stds.append(std)
        advance(done / len(blocks))
    return Estimate(np.concatenate(means).reshape(terrain.shape), np.concatenate(stds).reshape(terrain.shape))


def fit_kernel(positions: Positions, heights: Heights, centre: Positions) -> Matern:
    """Maximise the marginal likelihood of the measurements around ``centre``, heights about zero.

    A patch, not a random draw from everywhere: thinned out, measurements would not show how rough the terrain is over
    the distances to be bridged.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    patch = np.argsort(np.linalg.norm(positions - centre, axis=1), kind="stable")[:FITTED_TO]
    variance = float(heights.var())
    start = kernels.ConstantKernel(variance, (variance / 100, variance * 100)) * kernels.Matern(
        20.0, (1.0, 1000.0), nu=1.5
    )
    fitted = GaussianProcessRegressor(start, alpha=ROUNDING).fit(positions[patch], heights[patch]).kernel_
    return Matern(float(np.sqrt(fitted.k1.constant_value)), float(fitted.k2.length_scale))


def condition(kernel: Matern, near: Positions, heights: Heights, distances: Map) -> tuple[Heights, Heights]:
    """Mean and standard deviation (n,) of n cells, each given its k nearest measurements.

    Parameters
    ----------
    kernel : Matern
        Covariance of a process with mean zero.
    near : float64 array (n, k, 2)
        Positions of the measurements.
    heights : float64 array (n, k)
        Their heights.
    distances : float64 array (n, k)
        Distances from each cell to its measurements.
    """
    between = np.linalg.norm(near[:, :, None] - near[:, None], axis=-1)
    covariance = kernel(between) + ROUNDING * np.eye(near.shape[1])
    to_cell = kernel(distances)
    weights = np.linalg.solve(covariance, to_cell[..., None])[..., 0]
    variance = kernel.std**2 - (weights * to_cell).sum(1) + ROUNDING
    return (weights * heights).sum(1), np.sqrt(variance)
