"""The axis of members, draws, levels and classes follows from the shapes; where two readings fit, an error asks."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import uq_tracking as uq
from uq_tracking.errors import ShapeError

RNG = np.random.default_rng(0)
Y = RNG.normal(size=(4, 6))
LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]
MEMBERS = np.sort(RNG.normal(size=(5, 4, 6)), axis=0)
MAKE = {
    "from_samples": uq.Predictions.from_samples,
    "from_ensemble": uq.Predictions.from_ensemble,
    "from_quantiles": lambda y, q, **options: uq.Predictions.from_quantiles(y, q, LEVELS, **options),
}


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_axis_follows_from_the_shapes(make, axis):
    found = make(Y, np.moveaxis(MEMBERS, 0, axis))
    assert_array_equal(found.mean, make(Y, MEMBERS, axis=0).mean)


def test_a_square_input_is_ambiguous(make):
    y, square = RNG.normal(size=5), np.sort(RNG.normal(size=(5, 5)), axis=1)
    with pytest.raises(ShapeError, match=r"more than one axis may hold the \w+; say which: axis=0 or axis=1"):
        make(y, square)
    assert_array_equal(make(y, square, axis=1).mean, make(y, square.T, axis=0).mean)


def test_a_list_of_arrays_has_them_first(make):
    y, square = RNG.normal(size=5), np.sort(RNG.normal(size=(5, 5)), axis=0)
    assert_array_equal(make(y, list(square)).mean, make(y, square, axis=0).mean)


def test_names_of_dimensions_decide(make):
    y = xr.DataArray(RNG.normal(size=5), dims=["time"])
    square = xr.DataArray(np.sort(RNG.normal(size=(5, 5)), axis=0), dims=["member", "time"])
    assert_array_equal(make(y, square).mean, make(y, square, axis=0).mean)
    assert_array_equal(make(y, square.T).mean, make(y, square, axis=0).mean)


def test_lazy_arrays_follow_the_same_rule():
    import dask.array as da

    y, members = da.from_array(Y), da.from_array(np.moveaxis(MEMBERS, 0, 1))
    found = uq.evaluate(uq.Predictions.from_samples(y, members), statistics="exact")
    assert found.scores == pytest.approx(uq.evaluate(uq.Predictions.from_samples(Y, MEMBERS)).scores)
    with pytest.raises(ShapeError, match="axis=0 or axis=1"):
        uq.Predictions.from_samples(da.zeros(5), da.zeros((5, 5)))


class TestClasses:
    labels = RNG.integers(0, 3, (7, 4, 6))
    probs = RNG.dirichlet(np.ones(3), (7, 4, 6))

    @pytest.mark.parametrize("axis", [1, 2, 3])
    def test_the_axis_follows_from_the_shapes(self, axis):
        found = uq.evaluate(self.labels, probs=np.moveaxis(self.probs, -1, axis))
        assert found.scores == uq.evaluate(self.labels, probs=self.probs).scores

    def test_of_two_readings_the_one_that_sums_to_one(self):
        labels, probs = RNG.integers(0, 6, 6), RNG.dirichlet(np.ones(6), 6)
        assert uq.evaluate(labels, probs=probs) == uq.evaluate(labels, probs=probs.T)

    def test_square_logits_are_ambiguous(self):
        labels, logits = RNG.integers(0, 6, 6), RNG.normal(size=(6, 6))
        with pytest.raises(ShapeError, match=r"axis 0 or 1 may hold the classes; say which: class_axis=-1"):
            uq.evaluate(labels, probs=logits, logits=True)
        assert uq.evaluate(labels, probs=logits, logits=True, class_axis=-1).scores

    def test_members_of_a_binary_classifier_are_not_taken_for_classes(self):
        labels, members = RNG.integers(0, 2, 20), RNG.uniform(size=(5, 20))
        with pytest.raises(ShapeError, match="members_axis=0 if it holds the members of a binary classifier"):
            uq.evaluate(labels, probs=members)
        assert uq.evaluate(labels, probs=members, members_axis=0).settings["n_members"] == 5

    def test_a_later_batch_may_be_as_long_as_there_are_classes(self):
        labels, logits = RNG.integers(0, 3, 23), RNG.normal(size=(23, 3))
        acc = uq.Accumulator(logits=True, statistics="exact")
        for start in range(0, 23, 10):
            acc.update(labels[start : start + 10], probs=logits[start : start + 10])
        whole = uq.evaluate(labels, probs=logits, logits=True)
        assert acc.compute().scores == pytest.approx(whole.scores)
