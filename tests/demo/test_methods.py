import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import spearmanr

from uq_tracking.demo.methods import FAST, METHODS, choose, predict
from uq_tracking.errors import SettingsError

from .cached import fast_estimate, fast_terrain

RANKS_ERRORS = ("multi-inits", "bagging", "multi-networks", "learned-error", "gaussian-process")
"""Methods whose uncertainty is larger where the error is, on this terrain; dropout's and the epochs' is hardly."""


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


@pytest.fixture
def terrain():
    return fast_terrain()


@pytest.fixture
def estimate(method):
    return fast_estimate(method)


def errors(terrain, estimate):
    return (estimate.mean - terrain.elevation)[~terrain.measured]


def stds(terrain, estimate):
    return estimate.std[~terrain.measured]


def rmse(error):
    return np.sqrt(np.mean(error**2))


def coverage(terrain, name):
    estimate = fast_estimate(name)
    return np.mean(np.abs(errors(terrain, estimate)) <= 1.96 * stds(terrain, estimate))


@pytest.mark.slow
def test_maps_of_finite_heights_and_positive_stds(terrain, estimate):
    for values in (estimate.mean, estimate.std):
        assert values.shape == terrain.shape
        assert values.dtype == np.float64
        assert np.isfinite(values).all()
    assert (estimate.std > 0).all()


@pytest.mark.slow
def test_far_better_than_the_mean_of_the_measurements(terrain, estimate):
    constant = rmse(terrain.heights.mean() - terrain.elevation[~terrain.measured])
    assert rmse(errors(terrain, estimate)) < 0.25 * constant


@pytest.mark.slow
def test_same_seed_same_numbers(method, terrain):
    again = predict(method, terrain, effort=FAST)
    assert_array_equal(again.mean, fast_estimate(method).mean)
    assert_array_equal(again.std, fast_estimate(method).std)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if name != "gaussian-process"])
def test_other_seed_other_networks(name, terrain):
    assert (predict(name, terrain, effort=FAST, seed=1).mean != fast_estimate(name).mean).any()


@pytest.mark.parametrize("name", RANKS_ERRORS)
def test_uncertainty_is_larger_where_the_error_is(name, terrain):
    estimate = fast_estimate(name)
    correlation = spearmanr(np.abs(errors(terrain, estimate)), stds(terrain, estimate)).statistic
    assert correlation > 0.25


def test_averaging_networks_beats_the_snapshots_of_one(terrain):
    ensemble, snapshots = (
        rmse(errors(terrain, fast_estimate(name))) for name in ("multi-inits", "multi-epochs")
    )
    assert ensemble < snapshots


def test_snapshots_are_the_most_overconfident_and_the_two_probabilistic_methods_are_calibrated(terrain):
    covered = {name: coverage(terrain, name) for name in METHODS}
    assert min(covered, key=covered.get) == "multi-epochs"
    for name in ("learned-error", "gaussian-process"):
        assert 0.9 < covered[name] < 0.98


def test_methods_are_chosen_by_name_in_the_order_of_the_catalogue():
    assert list(choose(None)) == list(METHODS)
    assert list(choose(["bagging", "multi-inits"])) == ["multi-inits", "bagging"]


def test_unknown_method_is_refused_with_those_there_are():
    with pytest.raises(
        SettingsError, match=r"no method is called boosting; choose from multi-inits, bagging"
    ):
        choose(["bagging", "boosting"])
