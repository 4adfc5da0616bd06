"""Real scenes in which a network completes a map of which few pixels were measured.

The motorcycle of the Middlebury 2014 stereo benchmark ships with scikit-image: an image, and its true disparity, from
which the depth follows. It stands in for NYU Depth v2 (MeRCI, n-MeRCI) and KITTI (Gustafsson). The terrain around
Jacksboro, Tennessee, ships with matplotlib and has no image.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from uq_tracking.demo.terrain import load_elevation

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

FOCAL, BASELINE, OFFSET = 994.978, 0.193001, 31.086
"""Focal length in pixels, baseline in metres and offset of the disparity in pixels, of scikit-image's pictures."""
SHARE = 0.05
"""Share of the pixels that were measured."""
NEIGHBORS = 8
REACH = 12.0
"""Pixels; scales distances."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A map with its image.

    Attributes
    ----------
    name : str
    unit : str
        Unit of the map.
    target : array (rows, columns)
        The map; NaN where the truth is unknown.
    image : array (rows, columns, channels)
        Between 0 and 1; no channels if there is no image.
    """

    name: str
    unit: str
    target: FloatArray
    image: FloatArray

    @property
    def known(self) -> BoolArray:
        """Where the truth is known, (rows, columns)."""
        return np.isfinite(self.target)

    def measured(self, rng: np.random.Generator, share: float = SHARE) -> BoolArray:
        """Draw this share of the known pixels as measured, (rows, columns)."""
        places = np.flatnonzero(self.known)
        found = np.zeros(self.target.size, bool)
        found[rng.choice(places, round(share * len(places)), replace=False)] = True
        return found.reshape(self.target.shape)


def motorcycle(step: int = 2) -> Scene:
    """Depth in metres of every ``step``-th pixel of every ``step``-th row; NaN where the disparity is infinite."""
    from skimage.data import stereo_motorcycle

    left, _, disparity = stereo_motorcycle()
    depth = FOCAL * BASELINE / (disparity[::step, ::step].astype(np.float64) + OFFSET)
    depth[~np.isfinite(disparity[::step, ::step])] = np.nan
    return Scene("motorcycle", "m", depth, left[::step, ::step].astype(np.float64) / 255)


def terrain(step: int = 2) -> Scene:
    """Heights in metres of every ``step``-th cell of every ``step``-th row."""
    heights = load_elevation()[::step, ::step]
    return Scene("terrain", "m", heights, np.zeros((*heights.shape, 0)))


@dataclass(frozen=True, eq=False)
class Views:
    """What a network sees of pixels: ``x`` (n, features), and the depth ``base`` (n,) that it corrects."""

    x: FloatArray
    base: FloatArray


def views(scene: Scene, measured: BoolArray, at: BoolArray) -> Views:
    """What the measured pixels tell of the pixels ``at`` a mask, in the order of the rows.

    Of each pixel: where its 8 nearest measured pixels lie, how far their depths are from the mean weighted by inverse
    squared distance, and how much their colors differ from the pixel's own. A pixel never sees its own measurement.
    """
    places, known = np.argwhere(at).astype(float), np.argwhere(measured).astype(float)
    distance, nearest = cKDTree(known).query(places, NEIGHBORS + 1)
    itself = distance[:, :1] == 0
    distance = np.where(itself, distance[:, 1:], distance[:, :-1])
    nearest = np.where(itself, nearest[:, 1:], nearest[:, :-1])
    depths, colors = scene.target[measured][nearest], scene.image[measured][nearest]
    weights = 1 / distance**2
    base = (weights * depths).sum(1) / weights.sum(1)
    spread = np.nanstd(scene.target[measured])
    own = scene.image[at]
    apart = (known[nearest] - places[:, None]) / REACH
    columns = [
        apart[..., 0],
        apart[..., 1],
        4 * (depths - base[:, None]) / spread,
        4 * np.abs(colors - own[:, None]).mean(-1) if own.shape[-1] else np.zeros((len(own), 0)),
        2 * own - 1,
        np.log(distance[:, :1]),
    ]
    return Views(np.concatenate(columns, axis=1), base)
