"""Landforms of real terrain, to be recognized from a few measured heights: a small segmentation and regression task.

The labels are valley, slope and ridge of the elevation model around Jacksboro, Tennessee, that ships with matplotlib:
each cell's height relative to the mean height around it. Models see heights interpolated from the measured cells.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from uq_tracking.demo.terrain import Heights, Terrain

NAMES = ("valley", "slope", "ridge")
IGNORED = 255
"""Label of cells at the border, whose surroundings are unknown."""
WINDOW = 25
"""Side length, in cells, of the neighborhood with which a cell is compared."""
STEPS = (-9, -3, 0, 3, 9)


def labels(elevation: Heights) -> npt.NDArray[np.uint8]:
    """Valley, slope or ridge, by a cell's height above the mean of its surroundings; (rows, columns)."""
    from scipy.ndimage import uniform_filter

    above = elevation - uniform_filter(elevation, WINDOW)
    found = np.digitize(above, np.quantile(above, [0.35, 0.7])).astype(np.uint8)
    margin = WINDOW // 2
    inner = np.zeros(found.shape, bool)
    inner[margin:-margin, margin:-margin] = True
    return np.where(inner, found, np.uint8(IGNORED))


def interpolated(terrain: Terrain) -> Heights:
    """Heights of all cells, interpolated linearly from the measured ones; their mean outside the convex hull."""
    from scipy.interpolate import griddata

    grid = tuple(np.indices(terrain.shape))
    heights = griddata(terrain.positions, terrain.heights, grid, method="linear")
    return np.asarray(np.nan_to_num(heights, nan=float(terrain.heights.mean())))


def features(heights: Heights, measured: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Features of each cell, (rows, columns, 26).

    The interpolated heights around it, and the distance to the nearest measurement.
    """
    from scipy.ndimage import distance_transform_edt, gaussian_filter

    around = [np.roll(heights, (i, j), (0, 1)) - heights for i in STEPS for j in STEPS if (i, j) != (0, 0)]
    wide = heights - gaussian_filter(heights, 8)
    return np.stack([*around, wide, distance_transform_edt(~measured)], axis=-1) / 50.0
