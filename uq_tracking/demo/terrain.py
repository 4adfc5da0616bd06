"""The demo's task: complete a terrain with 5 % of its cells measured.

The elevations are the digital elevation model around Jacksboro, Tennessee, that ships with matplotlib: 344 x 403
cells of 3 arc seconds, whole metres.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from uq_tracking.typed import cached_property

Heights = npt.NDArray[np.float64]
Positions = npt.NDArray[np.float64]

FILE = "jacksboro_fault_dem.npz"
MEASURED_SHARE = 0.05
FAST_WINDOW = (slice(120, 200), slice(150, 246))
"""A crop with both a ridge and a valley, for a quick look."""


@dataclass(frozen=True, eq=False)
class Terrain:
    """A terrain in metres with some ``measured`` cells, which are all that models may use; arrays (rows, columns)."""

    elevation: Heights
    measured: npt.NDArray[np.bool_]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.elevation.shape
        return rows, columns

    @cached_property
    def cells(self) -> Positions:
        """Row and column of every cell, (rows * columns, 2)."""
        return np.argwhere(np.ones(self.shape, bool)).astype(np.float64)

    @cached_property
    def positions(self) -> Positions:
        """Row and column of every measured cell, (measurements, 2)."""
        return np.argwhere(self.measured).astype(np.float64)

    @cached_property
    def heights(self) -> Heights:
        """Measured heights in metres, in the order of ``positions``."""
        return self.elevation[self.measured]

    @cached_property
    def target(self) -> Heights:
        """The target: the elevation, NaN (no ground truth left to score) at measured cells."""
        return np.where(self.measured, np.nan, self.elevation)


def load_elevation() -> Heights:
    """Elevations in metres, float64 (344, 403), from the file that ships with matplotlib."""
    from matplotlib import get_data_path

    with np.load(Path(get_data_path()) / "sample_data" / FILE) as archive:
        return np.asarray(archive["elevation"], dtype=np.float64)


def load_terrain(seed: int = 0, *, fast: bool = False) -> Terrain:
    """Draw 5 % of all cells at random as measured; ``fast`` uses a crop of 80 x 96 cells."""
    elevation = load_elevation()
    if fast:
        elevation = elevation[FAST_WINDOW]
    measured = np.zeros(elevation.size, bool)
    count = round(MEASURED_SHARE * elevation.size)
    measured[np.random.default_rng(seed).choice(elevation.size, count, replace=False)] = True
    return Terrain(elevation, measured.reshape(elevation.shape))
