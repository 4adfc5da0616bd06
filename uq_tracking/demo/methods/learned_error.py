"""Learned error: one network predicts the height, a second one the error of the first.

The second learns from errors at measurements the first has not seen. On its own training data a network's errors are
far too small: learned from those, nominal 95 % intervals contained about a third of the truth here.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from uq_tracking.demo.methods.base import Advance, Effort, Estimate, Map, seeds
from uq_tracking.demo.network import Architecture, Network, Schedule
from uq_tracking.demo.regressor import HeightModel
from uq_tracking.demo.terrain import Heights, Positions, Terrain

FOLDS = 4
NEIGHBOURS = 8
SMALLEST_ERROR = 0.5
"""Metres: the measurements are whole metres, so smaller errors carry no information."""

LOG_STD_OVER_ERROR = 0.5 * (np.euler_gamma + np.log(2))
"""Mean of -log |z| for a standard normal z: converts the mean log error to the log standard deviation."""

ERROR_MODEL = Architecture((16,))
ERROR_EPOCHS = 30


def learned_error(terrain: Terrain, effort: Effort, seed: int, advance: Advance) -> Estimate:
    """A second network predicts |error| from the relief around a cell and its distance to measurements."""
    height_seed, fold_seed, error_seed = seeds(seed, "learned-error", 3)
    errors, clues = held_out_errors(terrain, effort.schedule, fold_seed, lambda share: advance(0.8 * share))
    error_model = ErrorModel(error_seed).fit(clues, errors, effort.schedule.batch)
    model = HeightModel(Architecture(), height_seed)
    model.fit(terrain.positions, terrain.heights, effort.schedule)
    std = error_model.std(surroundings(terrain.cells, terrain.positions, terrain.heights))
    return Estimate(model.predict(terrain.cells).reshape(terrain.shape), std.reshape(terrain.shape))


def held_out_errors(terrain: Terrain, schedule: Schedule, seed: int, advance: Advance) -> tuple[Heights, Map]:
    """Cross-validation: |error| in metres (n,) and clues (n, 3) at measurements held out of training."""
    shuffle_seed, *fold_seeds = seeds(seed, "folds", FOLDS + 1)
    n = len(terrain.heights)
    fold_of = np.random.default_rng(shuffle_seed).permutation(n) % FOLDS
    errors, clues = np.empty(n), np.empty((n, 3))
    for fold, fold_seed in enumerate(fold_seeds):
        held = fold_of == fold
        positions, heights = terrain.positions[~held], terrain.heights[~held]
        model = HeightModel(Architecture(), fold_seed).fit(positions, heights, schedule)
        errors[held] = np.abs(model.predict(terrain.positions[held]) - terrain.heights[held])
        clues[held] = surroundings(terrain.positions[held], positions, heights)
        advance((fold + 1) / FOLDS)
    return errors, clues


def surroundings(at: Positions, positions: Positions, heights: Heights) -> Map:
    """Predictors of a large error: log distances to the nearest measurements, and log relief among them; (n, 3)."""
    distances, nearest = cKDTree(positions).query(at, NEIGHBOURS)
    relief = heights[nearest].std(1)
    return np.asarray(np.log1p(np.column_stack([distances[:, 0], distances.mean(1), relief])))


class ErrorModel:
    """Standard deviations from clues; the log of the error is fitted, so they are positive by construction."""

    def __init__(self, seed: int) -> None:
        self.network = Network(3, ERROR_MODEL, np.random.default_rng(seed))

    def fit(self, clues: Map, errors: Heights, batch: int) -> ErrorModel:
        """Fit to clues (n, 3) and absolute errors (n,) in metres."""
        logs = np.log(np.maximum(errors, SMALLEST_ERROR))
        self.clue_mean, self.clue_scale = clues.mean(0), clues.std(0)
        self.mean, self.scale = logs.mean(), logs.std()
        x, y = (clues - self.clue_mean) / self.clue_scale, (logs - self.mean) / self.scale
        self.network.fit(x.astype(np.float32), y.astype(np.float32), Schedule(ERROR_EPOCHS, batch))
        return self

    def std(self, clues: Map) -> Heights:
        """Standard deviations (n,) in metres."""
        x = ((clues - self.clue_mean) / self.clue_scale).astype(np.float32)
        logs = self.mean + self.scale * self.network.predict(x).astype(np.float64)
        return np.asarray(np.exp(logs + LOG_STD_OVER_ERROR))
