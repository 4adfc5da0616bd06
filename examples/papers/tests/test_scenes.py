"""What networks see of a scene, against a loop; the motorcycle from a made-up pair of pictures."""

import sys
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose

from uq_tracking_papers.scenes import NEIGHBORS, motorcycle, terrain, views


def test_the_motorcycles_depth_follows_from_its_disparity(monkeypatch):
    disparity = np.array([[10.0, 60.0, np.inf], [20.0, 30.0, 40.0]])
    pictures = np.full((2, 3, 3), 255, np.uint8)
    module = types.ModuleType("skimage.data")
    module.stereo_motorcycle = lambda: (pictures, pictures, disparity)
    monkeypatch.setitem(sys.modules, "skimage", types.ModuleType("skimage"))
    monkeypatch.setitem(sys.modules, "skimage.data", module)
    scene = motorcycle(1)
    assert scene.target[0, :2] == pytest.approx([994.978 * 0.193001 / 41.086, 994.978 * 0.193001 / 91.086])
    assert scene.known.tolist() == [[True, True, False], [True, True, True]]
    assert scene.image.max() == 1


def test_a_share_of_the_known_pixels_is_measured():
    scene = terrain(5)
    measured = scene.measured(np.random.default_rng(0), 0.1)
    assert measured.sum() == round(0.1 * scene.known.sum())


def test_a_pixel_never_sees_its_own_measurement():
    scene = terrain(5)
    measured = scene.measured(np.random.default_rng(0))
    seen = views(scene, measured, measured)
    places, depths = np.argwhere(measured).astype(float), scene.target[measured]
    for number in (0, 7, 100):
        distance = np.sqrt(np.sum((places - places[number]) ** 2, axis=1))
        nearest = np.argsort(distance, kind="stable")[1 : NEIGHBORS + 1]
        weights = 1 / np.sort(distance)[1 : NEIGHBORS + 1] ** 2
        base = np.sum(weights * depths[nearest]) / weights.sum()
        assert seen.base[number] == pytest.approx(
            base, rel=0.05
        )  # ties of distance may choose another neighbor
        assert seen.base[number] != depths[number]
    assert np.isfinite(seen.x).all()
    assert_allclose(np.exp(seen.x[:, -1]).min(), np.sqrt(np.min(nearest_distances(places))), rtol=1e-9)


def nearest_distances(places):
    """Squared distance of each place to the nearest other one."""
    squares = ((places[:, None] - places[None]) ** 2).sum(-1)
    np.fill_diagonal(squares, np.inf)
    return squares.min(axis=1)
