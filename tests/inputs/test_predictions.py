"""What `Predictions` hands on: flat arrays, labels, blocks, digests, copies with another std."""

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
import xxhash
from numpy.testing import assert_array_equal

import uq_tracking as uq
from uq_tracking.errors import AlignmentError, InputTypeError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.inputs import Predictions

NAN = float("nan")


def _images(dtype=np.float32):
    rng = np.random.default_rng(0)
    target = rng.normal(size=(3, 2, 4)).astype(dtype)
    return target, target + dtype(1), rng.uniform(0.5, 2, target.shape).astype(dtype)


def test_shape_and_dtype_are_kept():
    target, mean, std = _images()
    data = Predictions(target, mean.astype(np.float64), std)
    assert data.shape == data.truth.shape == data.mean.shape == data.std.shape == (3, 2, 4)
    assert (data.truth.dtype, data.mean.dtype, data.std.dtype) == (np.float32, np.float64, np.float32)


def test_flat_is_a_view_when_everything_counts():
    target, mean, std = _images()
    for flat, array in zip(Predictions(target, mean, std).flat(), (target, mean, std), strict=True):
        assert flat.shape == (24,)
        assert np.shares_memory(flat, array)


def test_flat_holds_the_samples_that_count_in_row_order():
    target, mean, std = _images()
    mask = target > 0
    data = Predictions(target, mean, std, mask=mask)
    for flat, array in zip(data.flat(), (target, mean, std), strict=True):
        assert_array_equal(flat, array[~mask])


def test_select_takes_any_array_of_that_shape():
    data = Predictions([[1, NAN], [3, 4]], np.ones((2, 2)), np.ones((2, 2)))
    assert_array_equal(data.select(np.array([["a", "b"], ["c", "d"]])), ["a", "c", "d"])
    with pytest.raises(ShapeError, match=r"the array has shape \(4,\), but the predictions have \(2, 2\)"):
        data.select(np.zeros(4))


def test_repr_is_short_and_names_what_is_left_out():
    assert repr(Predictions([1, NAN], [1, 1], [0, 1])) == (
        "Predictions(mean_std, n=1, shape=(2,), n_missing=1, n_zero_std=1)"
    )


def test_it_is_frozen():
    data = Predictions([1.0], [1.0], [1.0])
    with pytest.raises(dataclasses.FrozenInstanceError, match="std"):
        data.std = np.array([2.0])


def test_it_survives_pickle_and_copy():
    data = Predictions([1, NAN, 3], [1, 2, 3], [1, 1, 0], groups=["a", "b", "b"], unit="m")
    for again in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
        assert again.digest() == data.digest()
        assert again.counts == data.counts
        assert_array_equal(again.flat_labels("groups"), ["a", "b"])


# --- labels -------------------------------------------------------------------------------------------------


def test_one_label_per_image():
    data = Predictions(*_images(), groups=["b", "a", "b"])
    assert_array_equal(data.flat_labels("groups"), np.repeat(["b", "a", "b"], 8))
    distinct, codes = data.label_codes("groups")
    assert_array_equal(distinct, ["a", "b"])
    assert codes.shape == data.shape
    assert_array_equal(data.select(codes), np.repeat([1, 0, 1], 8))
    assert codes.dtype == np.int64


def test_one_label_per_sample_follows_the_samples_that_count():
    target, mean, std = _images()
    target[0, 0, 0] = NAN
    strata = np.arange(24).reshape(target.shape) // 5
    data = Predictions(target, mean, std, by=strata)
    assert_array_equal(data.flat_labels("by"), strata.ravel()[1:])
    assert_array_equal(data.select(data.label_codes("by")[1]), strata.ravel()[1:])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["x", "y"], ["x", "y"]),
        ([b"x", b"y"], ["x", "y"]),
        ([1, 2], [1, 2]),
        (np.array([1, 2], object), [1, 2]),
        (np.array(["x", "yy"], object), ["x", "yy"]),
        ([True, False], [True, False]),
        ([0.5, 1.5], [0.5, 1.5]),
        (np.array([0.5, 2], np.longdouble), [0.5, 2.0]),
        (["é".encode(), b"y"], ["é", "y"]),
        (torch.tensor([1, 2]), [1, 2]),
        (pd.Series(["x", "y"]), ["x", "y"]),
        (pd.Series(["x", "y"]).astype("category"), ["x", "y"]),
        (pd.Series(["x", "y"], dtype="string"), ["x", "y"]),
        (np.array(["2020-01-01", "2020-01-02"], "M8[D]"), np.array(["2020-01-01", "2020-01-02"], "M8[D]")),
    ],
    ids=str,
)
def test_labels_of_every_kind(labels, expected):
    data = Predictions([1.0, 2.0], [1.0, 2.0], [1.0, 1.0], groups=labels)
    assert data.groups.dtype.kind in "biufUM"
    assert_array_equal(data.flat_labels("groups"), expected)


@pytest.mark.parametrize("labels", [["x", None], [1, "x", None], pd.Series(["x", None])], ids=str)
def test_mixed_or_missing_labels_are_refused(labels):
    n = len(labels)
    with pytest.raises(InputTypeError, match=r"groups holds labels .* neither all text nor all numbers"):
        Predictions(np.ones(n), np.ones(n), np.ones(n), groups=labels)


@pytest.mark.parametrize("wrap", [list, pd.Series, pl.Series])
def test_a_long_text_is_no_label(wrap):
    """An array of texts gives each as much room as the longest takes."""
    with pytest.raises(InputTypeError, match=r"by has a label of 1,001 characters; pass names of at most"):
        Predictions(*np.ones((3, 4)), by=wrap(["a", "b" * 1001, "a", "b"]))


def test_labels_that_nothing_stored_can_hold_are_refused():
    ones = np.ones((3, 2))
    with pytest.raises(InvalidValueError, match="groups has 1 value that 64-bit floating point cannot hold"):
        Predictions(*ones, groups=np.longdouble(1) + np.array([0, 1e-18], np.longdouble))
    with pytest.raises(InputTypeError, match="by holds bytes that are no text in UTF-8"):
        Predictions(*ones, by=[b"a", b"\xff"])


@pytest.mark.slow
def test_many_sets_of_labels():
    """Of which more combinations are possible than 64 bits can count."""
    sets = {f"set {number}": np.arange(200) % 100 for number in range(12)}
    report = uq.evaluate(*np.ones((3, 200)), by=sets)
    assert len(report.parts) == 1200
    assert {part.counts["n"] for part in report.parts.values()} == {2}


def test_a_label_may_hold_the_mark_between_sets():
    report = uq.evaluate(*np.ones((3, 4)), by=["a", "a\x1fb", "a", "c"])
    assert {name: part.counts["n"] for name, part in report.parts.items()} == {"a": 2, "a\x1fb": 1, "c": 1}


def test_label_of_left_out_sample_may_be_nan():
    assert Predictions([1, NAN], [1, 1], [1, 1], by=[1.0, NAN]).n == 1
    with pytest.raises(InputTypeError, match=r"by has no label for 1 sample \(first at index \(1,\)\)"):
        Predictions([1, 2], [1, 1], [1, 1], by=[1.0, NAN])


def test_no_date_is_no_label():
    with pytest.raises(InputTypeError, match="groups has no label for 1 sample "):
        Predictions([1, 2], [1, 1], [1, 1], groups=np.array(["2020-01-01", "NaT"], "M8[D]"))


def test_label_of_a_wholly_masked_image_may_be_nan():
    target, mean, std = _images()
    target[1] = NAN
    assert Predictions(target, mean, std, by=[0.0, NAN, 1.0]).n == 16


def test_labels_of_another_shape_are_refused():
    with pytest.raises(
        ShapeError, match=r"groups has shape \(2,\); pass one label per sample \(3, 2, 4\), or .*\(3,\)"
    ):
        Predictions(*_images(), groups=[1, 2])


def test_masked_labels_are_refused():
    with pytest.raises(InputTypeError, match="groups is a masked array"):
        Predictions([1, 2], [1, 2], [1, 1], groups=np.ma.MaskedArray([1, 2], [True, False]))


def test_misaligned_labels_are_refused():
    with pytest.raises(AlignmentError, match="y_true and groups have different labels"):
        Predictions(pd.Series([1.0, 2.0]), [1, 2], [1, 1], groups=pd.Series(["a", "b"], index=[1, 0]))


def test_asking_for_labels_that_are_not_there():
    with pytest.raises(
        SettingsError, match=r"these predictions have no groups; pass groups= when making them"
    ):
        Predictions([1.0], [1.0], [1.0]).flat_labels("groups")


# --- digests ------------------------------------------------------------------------------------------------


def test_digests_depend_on_values_not_on_their_container():
    target, mean, std = _images()
    digest = Predictions(target, mean, std)
    for again in (
        Predictions(*(array.astype(np.float64) for array in (target, mean, std))),
        Predictions(*(torch.from_numpy(array) for array in (target, mean, std))),
        Predictions(*(array.ravel() for array in (target, mean, std))),
        Predictions(*(np.asfortranarray(array) for array in (target, mean, std))),
        Predictions(*(np.append(array, np.float32(NAN)) for array in (target, mean, std))),
    ):
        assert again.digest() == digest.digest()
        assert again.target_digest() == digest.target_digest()
    assert len(digest.digest()) == 16
    assert int(digest.digest(), 16) != int(digest.target_digest(), 16)


def test_target_digest_ignores_the_predictions_and_digest_does_not():
    target, mean, std = _images()
    one, other = Predictions(target, mean, std), Predictions(target, mean, std * 2)
    assert one.target_digest() == other.target_digest()
    assert one.digest() != other.digest()


def test_digests_see_order_and_choice_of_samples():
    target, mean, std = _images()
    whole = Predictions(target, mean, std)
    swapped = Predictions(target[::-1], mean[::-1], std[::-1])
    fewer = Predictions(target, mean, std, mask=target == target[0, 0, 0])
    assert len({data.target_digest() for data in (whole, swapped, fewer)}) == 3


def test_both_zeros_are_one_number():
    assert Predictions([0.0], [1.0], [1.0]).digest() == Predictions([-0.0], [1.0], [1.0]).digest()


def test_digest_is_fixed_for_good():
    """Stored in runs, so it must not change between versions: XXH3 of the little-endian float64 bytes."""
    data = Predictions(np.float32([1.5]), [2.5], [3.5])
    assert data.digest() == xxhash.xxh3_64(np.array([1.5, 2.5, 3.5], "<f8").tobytes()).hexdigest()
    assert data.target_digest() == "2561a4889ff63458"


# --- replace ------------------------------------------------------------------------------------------------


def test_replace_keeps_truth_choice_labels_and_counts():
    data = Predictions(
        [1, NAN, 3, 4], [1, 2, 3, 4], [1, 1, -1, 0], groups=[1, 1, 2, 2], unit="m", on_invalid="drop"
    )
    new = data.replace(std=data.std * 2 + 1)
    assert_array_equal(new.flat()[2], [3, 1])
    assert new.counts == {"n": 2, "n_missing": 1, "n_masked": 0, "n_invalid": 1, "n_zero_std": 0}
    assert new.target_digest() == data.target_digest()
    assert new.unit == "m"
    assert_array_equal(new.flat_labels("groups"), data.flat_labels("groups"))
    moved = data.replace(mean=data.mean + 1)
    assert moved.counts == data.counts
    assert_array_equal(moved.flat()[1], [2, 5])


def test_replace_applies_the_floor_again():
    data = Predictions([1, 2], [1, 2], [0, 1], std_floor=0.5)
    assert_array_equal(data.replace(std=[0.1, 3]).std, [0.5, 3])
    assert data.replace(mean=[0, 0]).counts["n_zero_std"] == 1
    assert data.replace(std=[0.1, 3]).counts["n_zero_std"] == 0


def test_replace_checks_what_it_is_given():
    with pytest.raises(ShapeError, match="y_std"):
        Predictions([1.0], [1.0], [1.0]).replace(std=[1.0, 2.0])
