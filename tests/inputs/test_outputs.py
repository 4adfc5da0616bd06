"""Several outputs along the last axis."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

from uq_tracking.errors import AlignmentError, EmptyInputError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.inputs.forms.mean_std import MeanStd
from uq_tracking.inputs.predictions import Forecast, outputs_of

NAMES = ["tx", "ty", "tw", "th"]


def split_outputs(y_true, y_pred, y_std, outputs, **options):
    forecast = Forecast(y_true, {"y_pred": y_pred, "y_std": y_std}, MeanStd)
    return {name: data for name, (data, _) in outputs_of(forecast, outputs, options).items()}


def _boxes(n=5):
    rng = np.random.default_rng(0)
    target = rng.normal(size=(n, 4)).astype(np.float32)
    return target, target + 1, rng.uniform(0.5, 2, target.shape).astype(np.float32)


def test_each_output_is_a_view_of_its_column():
    target, mean, std = _boxes()
    split = split_outputs(target, mean, std, NAMES)
    assert list(split) == NAMES
    for k, data in enumerate(split.values()):
        assert data.shape == (5,)
        for array, whole in ((data.truth, target), (data.mean, mean), (data.std, std)):
            assert_array_equal(array, whole[:, k])
            assert np.shares_memory(array, whole)


def test_mask_and_labels_per_sample_or_for_all_outputs():
    target, mean, std = _boxes()
    mask = np.zeros((5, 4), bool)
    mask[0, 1] = True
    labels = np.arange(20).reshape(5, 4)
    split = split_outputs(target, mean, std, NAMES, mask=mask, by=labels, groups=list("abcde"))
    assert [data.n for data in split.values()] == [5, 4, 5, 5]
    assert_array_equal(split["ty"].flat_labels("by"), labels[1:, 1])
    assert_array_equal(split["ty"].flat_labels("groups"), list("bcde"))
    shared = split_outputs(target, mean, std, NAMES, mask=mask[:, 1])
    assert [data.n for data in shared.values()] == [4, 4, 4, 4]


def test_masked_arrays_stay_masked_output_by_output():
    target, mean, std = _boxes()
    masked = np.ma.MaskedArray(target, np.zeros(target.shape, bool))
    masked[2, 3] = np.ma.masked
    assert [data.n for data in split_outputs(masked, mean, std, NAMES).values()] == [5, 5, 5, 4]


def test_missing_truth_is_counted_per_output():
    target, mean, std = _boxes()
    target[:2, 0] = np.nan
    assert split_outputs(target, mean, std, NAMES)["tx"].counts["n_missing"] == 2


def test_errors_name_the_output():
    target, mean, std = _boxes()
    std[3, 2] = -1
    with pytest.raises(
        InvalidValueError, match=r"output 'tw': y_std has 1 negative value \(first at index \(3,\)\)"
    ):
        split_outputs(target, mean, std, NAMES)
    target[:, 1] = np.nan
    with pytest.raises(EmptyInputError, match=r"output 'ty': none of 5 samples is left"):
        split_outputs(target, mean, std, NAMES)


@pytest.mark.parametrize("outputs", ["tx", [], ["a", ""], ["a", 1]])
def test_names_must_be_a_list_of_text(outputs):
    with pytest.raises(SettingsError, match=r"pass a list of names, one per entry of the last axis"):
        split_outputs(*_boxes(), outputs)


@pytest.mark.parametrize("outputs", [["a", "a", "b", "c"], ["a/b", "c", "d", "e"]])
def test_names_must_differ_and_hold_no_slash(outputs):
    with pytest.raises(SettingsError, match="names must be distinct and contain no slash"):
        split_outputs(*_boxes(), outputs)


def test_one_name_per_entry():
    with pytest.raises(ShapeError, match=r"last axis of shape \(5, 4\) has 4 entries for 3 outputs"):
        split_outputs(*_boxes(), NAMES[:3])


def test_single_number_is_refused():
    with pytest.raises(ShapeError, match="y_true is a single number"):
        split_outputs(1.0, 1.0, 1.0, ["a"])


def test_labelled_arrays_must_align_and_pass_their_unit_on():
    target, mean, std = (xr.DataArray(a, dims=("n", "output"), attrs={"units": "px"}) for a in _boxes())
    assert split_outputs(target, mean, std, NAMES)["tx"].unit == "px"
    assert split_outputs(target, mean, std, NAMES, unit="m")["tx"].unit == "m"
    with pytest.raises(AlignmentError, match="axis 0 is 'n' in y_true and 'sample' in y_pred"):
        split_outputs(target, mean.rename(n="sample"), std, NAMES)
