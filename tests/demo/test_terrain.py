import numpy as np
import pytest
from numpy.testing import assert_array_equal

from uq_tracking.demo.terrain import load_elevation, load_terrain


@pytest.fixture(scope="module")
def whole():
    return load_terrain(seed=3)


def test_elevation_is_the_one_that_ships_with_matplotlib():
    elevation = load_elevation()
    assert elevation.shape == (344, 403)
    assert elevation.dtype == np.float64
    assert (elevation.min(), elevation.max()) == (236, 1076)


def test_five_percent_of_the_cells_are_measured(whole):
    assert whole.measured.sum() == round(0.05 * whole.measured.size)
    assert len(whole.heights) == len(whole.positions) == whole.measured.sum()


def test_measured_cells_are_no_ground_truth_and_all_others_are(whole):
    assert np.isnan(whole.target[whole.measured]).all()
    assert_array_equal(whole.target[~whole.measured], whole.elevation[~whole.measured])


def test_heights_belong_to_their_positions(whole):
    rows, columns = whole.positions.astype(int).T
    assert_array_equal(whole.elevation[rows, columns], whole.heights)


def test_cells_run_row_by_row(whole):
    rows, columns = whole.cells.astype(int).T
    assert_array_equal(whole.elevation[rows, columns].reshape(whole.shape), whole.elevation)


def test_the_seed_decides_what_is_measured(whole):
    assert_array_equal(load_terrain(seed=3).measured, whole.measured)
    assert (load_terrain(seed=4).measured != whole.measured).any()


def test_fast_is_a_small_crop_of_the_same_terrain(whole):
    crop = load_terrain(seed=3, fast=True)
    assert crop.shape == (80, 96)
    assert_array_equal(crop.elevation, whole.elevation[120:200, 150:246])
