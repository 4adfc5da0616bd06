"""Rules 4 and 5: missing truth is left out and counted, bad predictions are errors that say where."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_array_equal

import uq_tracking as uq
from uq_tracking.errors import EmptyInputError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.forms.form import places
from uq_tracking.inputs.validation import BLOCK

NAN, INF = float("nan"), float("inf")


def _clean(shape=(4,), dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=shape).astype(dtype)
    return target, target + 1, rng.uniform(0.5, 2.0, shape).astype(dtype)


def test_clean_input_is_valid_everywhere():
    data = Predictions(*_clean((2, 3)))
    assert data.valid is None
    assert data.counts == {"n": 6, "n_missing": 0, "n_masked": 0, "n_invalid": 0, "n_zero_std": 0}
    assert data.n == 6


@pytest.mark.parametrize("gap", [NAN, INF, -INF])
def test_non_finite_truth_is_missing(gap):
    target, mean, std = _clean()
    target[1] = gap
    data = Predictions(target, mean, std)
    assert data.counts["n_missing"] == 1
    assert_array_equal(data.valid, [True, False, True, True])


def test_predictions_may_be_bad_where_truth_is_missing_or_masked():
    data = Predictions([1, NAN, 3, 4], [1, NAN, 3, INF], [1, -2, 1, NAN], mask=[False, False, False, True])
    assert data.counts == {"n": 2, "n_missing": 1, "n_masked": 1, "n_invalid": 0, "n_zero_std": 0}


def test_masked_comes_before_missing():
    data = Predictions([NAN, 2.0], [1.0, 2.0], [1.0, 1.0], mask=[True, False])
    assert (data.counts["n_masked"], data.counts["n_missing"]) == (1, 0)


def test_masks_of_masked_arrays_and_mask_add_up():
    target = np.ma.MaskedArray([1.0, 2, 3, 4], [True, False, False, False])
    std = np.ma.MaskedArray([1.0, 1, 1, 1], [False, True, False, False])
    data = Predictions(target, [1, 2, 3, 4], std, mask=np.array([False, False, True, False]))
    assert_array_equal(data.valid, [False, False, False, True])
    assert data.counts["n_masked"] == 3


def test_masked_mask_leaves_out_its_hidden_places():
    mask = np.ma.MaskedArray([False, False, True], [True, False, False])
    assert_array_equal(Predictions([1, 2, 3], [1, 2, 3], [1, 1, 1], mask=mask).valid, [False, True, False])


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            1,
            NAN,
            r"y_pred has 1 non-finite value \(first at index \(1, 0\)\); leave such samples out with mask=",
        ),
        (2, NAN, r"y_std has 1 non-finite value \(first at index \(1, 0\)\)"),
        (2, INF, r"y_std has 1 non-finite value"),
        (2, -INF, r"y_std has 1 non-finite value"),
        (
            2,
            -1.0,
            r"y_std has 1 negative value \(first at index \(1, 0\)\); pass standard deviations, or use "
            r"Predictions\.from_variance / from_log_variance$",
        ),
    ],
)
def test_bad_values_are_named_with_place_and_cure(place, value, message):
    arrays = _clean((2, 3))
    arrays[place][1, 0] = value
    with pytest.raises(InvalidValueError, match=message):
        Predictions(*arrays)


def test_all_defects_are_listed_at_once():
    with pytest.raises(
        InvalidValueError, match=r"y_pred has 1 non-finite.*y_std has 2 negative values .*\(1,\)"
    ):
        Predictions([1, 2, 3], [NAN, 2, 3], [1, -1, -2])


def test_index_of_the_first_bad_value_in_a_later_block():
    target, mean, std = _clean((3, BLOCK))
    std[2, 5] = -1
    std[2, 7] = -1
    with pytest.raises(InvalidValueError, match=r"2 negative values \(first at index \(2, 5\)\)"):
        Predictions(target, mean, std)


def test_index_refers_to_the_users_axes_in_any_memory_layout():
    target, mean, std = (np.asfortranarray(array) for array in _clean((3, 5)))
    std[1, 2] = -1
    with pytest.raises(InvalidValueError, match=r"first at index \(1, 2\)"):
        Predictions(target, mean, std)


def test_drop_leaves_bad_samples_out_and_counts_each_once():
    data = Predictions([1, 2, 3, NAN], [1, NAN, 3, NAN], [1, -1, 0, 1], on_invalid="drop")
    assert data.counts == {"n": 2, "n_missing": 1, "n_masked": 0, "n_invalid": 1, "n_zero_std": 1}
    assert_array_equal(data.valid, [True, False, True, False])


def test_negative_zero_is_a_zero():
    assert Predictions([1.0, 2.0], [1.0, 2.0], [-0.0, 1.0]).counts["n_zero_std"] == 1


def test_zeros_count_only_where_samples_count():
    data = Predictions([1, NAN, 3], [1, 2, 3], [0, 0, 0], mask=[False, False, True])
    assert data.counts["n_zero_std"] == 1


def test_floor_raises_and_is_recorded_after_counting():
    data = Predictions([1, 2, 3], [1, 2, 3], np.float32([0, 0.05, 2]), std_floor=0.1)
    assert_array_equal(data.std, np.float32([0.1, 0.1, 2]))
    assert data.std.dtype == np.float32
    assert (data.counts["n_zero_std"], data.form.std_floor) == (1, 0.1)


def test_floor_below_everything_copies_nothing():
    target, mean, std = _clean()
    assert np.shares_memory(Predictions(target, mean, std, std_floor=1e-9).std, std)


def test_floor_ignores_nan_where_truth_is_missing():
    data = Predictions([NAN, 2], [1, 2], [NAN, 0.01], std_floor=0.1)
    assert_array_equal(data.flat()[2], [0.1])


@pytest.mark.parametrize("floor", [0, -1.0, NAN, INF, "0.1"])
def test_floor_must_be_positive(floor):
    with pytest.raises(SettingsError, match=r"std_floor is .*; pass a positive number"):
        Predictions([1.0], [1.0], [1.0], std_floor=floor)


@pytest.mark.parametrize("floor", [1e-60, 1e60])
def test_floor_must_fit_the_dtype(floor):
    with pytest.raises(SettingsError, match=r"outside the range of float32; pass y_std as float64"):
        Predictions([1.0], [1.0], np.float32([1.0]), std_floor=floor)


def test_unknown_policy_is_refused():
    with pytest.raises(SettingsError, match="on_invalid is 'ignore'; choose 'raise' or 'drop'"):
        Predictions([1.0], [1.0], [1.0], on_invalid="ignore")


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_input_is_an_error(shape):
    empty = np.zeros(shape)
    with pytest.raises(EmptyInputError, match=r"y_true is empty \(shape \("):
        Predictions(empty, empty, empty)


def test_nothing_left_says_why():
    with pytest.raises(
        EmptyInputError,
        match=r"none of 4 samples is left: 2 missing \(non-finite target\), 1 masked, 1 invalid; .*~mask",
    ):
        Predictions(
            [NAN, NAN, 1, 1], [1, 1, 1, NAN], [1] * 4, mask=[False, False, True, False], on_invalid="drop"
        )


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            ((3, 1), (3,), (3,)),
            r"y_true \(3, 1\), y_pred \(3,\), y_std \(3,\); drop the last axis of y_true: y_true\[\.\.\., 0\]",
        ),
        (((3,), (3,), (3, 1)), r"drop the last axis of y_std: y_std\[\.\.\., 0\]"),
        (((3, 1), (3, 1), (3,)), r"of y_true and y_pred: y_true\[\.\.\., 0\], y_pred\[\.\.\., 0\]$"),
        (((3,), (3,), (3, 3)), "looks like a covariance: .*Predictions.from_covariance"),
        (((3,), (3,), ()), r"y_std \(\); repeat the number: numpy\.full_like\(y_true, y_std\)"),
        (((2, 3), (3, 2), (2, 3)), r"y_pred \(3, 2\).*the axes of .* are in another order"),
        (
            ((3,), (4,), (3,)),
            r"shapes differ, and nothing is broadcast: y_true \(3,\), y_pred \(4,\), y_std \(3,\)$",
        ),
        (((1, 3), (3,), (3,)), r"nothing is broadcast"),
        (
            ((3,), (5, 3), (3,)),
            r"; if y_pred holds the members .*pass Predictions.from_ensemble\(y_true, y_pred",
        ),
        (((), (), ()), r"y_true is a single number; pass arrays, for example \[y_true\], also as batches"),
    ],
)
def test_unequal_shapes_name_all_three_and_the_cure(shapes, message):
    with pytest.raises(ShapeError, match=message):
        Predictions(*(np.ones(shape) for shape in shapes))


def test_members_without_std_name_their_constructor():
    with pytest.raises(
        SettingsError, match=r"y_std is missing; if y_pred holds the members .*from_ensemble.*from_q"
    ):
        uq.evaluate(np.linspace(0, 1, 3), np.ones((5, 3)))
    with pytest.raises(
        SettingsError, match=r"y_std is missing; pass y_true, y_pred, y_std, or one Predictions"
    ):
        uq.evaluate(np.linspace(0, 1, 3), np.ones(3))


def test_shares_that_sum_to_one_are_named_as_probabilities_whatever_the_labels_are():
    probs = np.tile([0.5, 0.3, 0.2], (4, 1))
    for labels in (list("abca"), [0.0, 1.0, 2.0, 0.0]):
        with pytest.raises(SettingsError, match="pass those as probs="):
            uq.evaluate(labels, probs)


def test_mask_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"y_true \(2, 3\), mask \(3,\)"):
        Predictions(*_clean((2, 3)), mask=np.zeros(3, bool))


VALUE = st.sampled_from([NAN, INF, -INF, 0.0, -0.0, -1.0, 0.5, 2.0])


@st.composite
def _anything(draw):
    shape = draw(array_shapes(max_dims=3, max_side=4))
    dtypes = st.sampled_from([np.float32, np.float64])
    triple = [draw(arrays(draw(dtypes), shape, elements=VALUE)) for _ in range(3)]
    return *triple, draw(arrays(bool, shape))


@settings(max_examples=300)
@given(_anything(), st.sampled_from(["C", "F"]))
@pytest.mark.slow
def test_rules_hold_for_anything(data, order):
    """Against the rules written as plain loops over samples."""
    target, mean, std, mask = (np.asarray(array, order=order) for array in data)
    expected = {"n": 0, "n_missing": 0, "n_masked": 0, "n_invalid": 0, "n_zero_std": 0}
    rows = []
    for y, mu, s, out in zip(target.ravel(), mean.ravel(), std.ravel(), mask.ravel(), strict=True):
        if out:
            expected["n_masked"] += 1
        elif not np.isfinite(y):
            expected["n_missing"] += 1
        elif not np.isfinite(mu) or not np.isfinite(s) or s < 0:
            expected["n_invalid"] += 1
        else:
            expected["n"] += 1
            expected["n_zero_std"] += s == 0
            rows.append((y, mu, s))
    if not rows:
        with pytest.raises(EmptyInputError, match="samples is left"):
            Predictions(target, mean, std, mask=mask, on_invalid="drop")
        return
    found = Predictions(target, mean, std, mask=mask, on_invalid="drop")
    assert found.counts == expected
    assert_array_equal(np.stack(found.flat(), axis=1), rows)
    if expected["n_invalid"]:
        with pytest.raises(InvalidValueError, match="first at index"):
            Predictions(target, mean, std, mask=mask)
    else:
        assert Predictions(target, mean, std, mask=mask).counts == expected


@pytest.mark.parametrize("size", [1, 7, BLOCK])
def test_pieces_cover_every_layout_in_c_order(size):
    base = np.arange(60.0).reshape(3, 4, 5)
    for view in (base, base.T, base[:, ::-2], np.asfortranarray(base), base[:, :0]):
        found = [view[place].reshape(-1) for place in places(view.shape, size)]
        assert_array_equal(np.concatenate([*found, []]), view.ravel())
        assert all(part.size <= size for part in found)


def test_memory_stays_lean():
    import tracemalloc

    target, mean, std = _clean((2_000_000,), np.float32)
    target[::7] = NAN
    tracemalloc.start()
    data = Predictions(target, mean, std)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.counts["n_missing"] == len(target[::7])
    assert peak < 1.5 * target.size  # bytes: one for the boolean of each sample, and a few blocks
