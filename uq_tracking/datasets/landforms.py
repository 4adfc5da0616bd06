"""Land forms of real terrain, to be told from a few measured heights: a small task of segmentation and regression.

The labels are valley, slope and ridge of the elevation model around Jacksboro, Tennessee, that ships with
matplotlib: each cell's height against the mean height around it. What models see are heights interpolated from the
measured cells.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from uq_tracking.demo.terrain import Heights, Terrain

NAMES = ("valley", "slope", "ridge")
IGNORED = 255
"""Label of the cells at the border, whose surroundings are not known."""
WINDOW = 25
"""Cells on a side of the surroundings that a cell is compared with."""
STEPS = (-9, -3, 0, 3, 9)


def labels(elevation: Heights) -> npt.NDArray[np.uint8]:
    """Valley, slope or ridge, by the height of a cell above the mean of its surroundings; (rows, columns)."""
    from scipy.ndimage import uniform_filter

    above = elevation - uniform_filter(elevation, WINDOW)
    found = np.digitize(above, np.quantile(above, [0.35, 0.7])).astype(np.uint8)
    margin = WINDOW // 2
    inner = np.zeros(found.shape, bool)
    inner[margin:-margin, margin:-margin] = True
    return np.where(inner, found, np.uint8(IGNORED))


def interpolated(terrain: Terrain) -> Heights:
    """Heights of all cells from the measured ones, linearly; their mean outside the outermost."""
    from scipy.interpolate import griddata

    grid = tuple(np.indices(terrain.shape))
    heights = griddata(terrain.positions, terrain.heights, grid, method="linear")
    return np.asarray(np.nan_to_num(heights, nan=float(terrain.heights.mean())))


def features(heights: Heights, measured: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """What models see of each cell, (rows, columns, 26).

    Interpolated heights around it, and how far the next measurement is.
    """
    from scipy.ndimage import distance_transform_edt, gaussian_filter

    around = [np.roll(heights, (i, j), (0, 1)) - heights for i in STEPS for j in STEPS if (i, j) != (0, 0)]
    wide = heights - gaussian_filter(heights, 8)
    return np.stack([*around, wide, distance_transform_edt(~measured)], axis=-1) / 50.0
