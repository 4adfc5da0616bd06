import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import uq_tracking as uq
from uq_tracking.errors import (
    AlignmentError,
    EmptyInputError,
    FileFormatError,
    InputTypeError,
    InvalidValueError,
    SettingsError,
    ShapeError,
)
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.forms.probabilities import places

from .made import pixels, samples, softmax

HALVES = [[0.5, 0.5], [0.25, 0.75]]
MAPS = np.full((2, 3, 5, 6), 1 / 3)


def known(data, place, keep):
    """Labels and probabilities of a piece's samples that count."""
    labels = data.truth[place].reshape(-1)
    return data.form.known((labels if keep is None else labels[keep]).astype(np.int64), place, keep)


def all_rows(data):
    rows = [known(data, place, keep) for place, keep in data.pieces()]
    return np.concatenate([r.labels for r in rows]), np.concatenate([r.probs for r in rows])


def test_samples_come_out_in_c_order_whatever_the_class_axis():
    labels, probs = pixels()
    expected = (labels.reshape(-1), probs.reshape(-1, 4))
    for axis in (-1, 0, 1, 2, 3):
        data = Predictions.from_probs(labels, np.moveaxis(probs, -1, axis), class_axis=axis)
        for found, wanted in zip(all_rows(data), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_pieces_cover_every_sample_once_in_order():
    for shape in [(10,), (3, 4, 5), (1, 1, 100), (7, 1, 3), (2, 60, 2)]:
        count = np.arange(np.prod(shape)).reshape(shape)
        found = np.concatenate([count[place].reshape(-1) for place in places(shape, 8)])
        np.testing.assert_array_equal(found, np.arange(count.size))
        assert max(count[place].size for place in places(shape, 8)) <= 8


def test_input_is_viewed_and_stays_writable():
    labels, probs = pixels()
    data = Predictions.from_probs(labels, probs)
    assert np.shares_memory(data.form.values, probs)
    assert np.shares_memory(data.truth, labels)
    assert probs.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        data.form.values[0] = 0


def test_a_number_per_sample_is_the_probability_of_class_1():
    data = Predictions.from_probs([0, 1, 1], [0.25, 0.5, 1.0])
    np.testing.assert_array_equal(all_rows(data)[1], [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])


def test_logits_become_softmax_and_sigmoid():
    labels, z = samples(50)
    np.testing.assert_allclose(
        all_rows(Predictions.from_probs(labels, z, logits=True))[1], softmax(z), rtol=1e-13
    )
    one = z[:, 0]
    probs = all_rows(Predictions.from_probs(labels % 2, one, logits=True))[1]
    np.testing.assert_allclose(probs[:, 1], 1 / (1 + np.exp(-one)), rtol=1e-13)


def test_a_logit_of_minus_infinity_rules_a_class_out():
    data = Predictions.from_probs([0, 1], [[1.0, -np.inf, 1.0], [0.0, 0.0, -np.inf]], logits=True)
    np.testing.assert_array_equal(all_rows(data)[1], [[0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])


def test_logits_far_apart_keep_a_finite_log_probability():
    (row,) = [
        known(data, p, keep)
        for data in [Predictions.from_probs([1], [[2000.0, 0.0]], logits=True)]
        for p, keep in data.pieces()
    ]
    assert row.probs[0, 1] == 0
    assert row.log_chosen[0] == -2000.0


def test_members_are_averaged_as_probabilities():
    members = [samples(60, seed=k)[1] for k in range(3)]
    labels = samples(60)[0]
    mean = np.mean([softmax(z) for z in members], axis=0)
    for logits, arrays in ((True, members), (False, [softmax(z) for z in members])):
        data = Predictions.from_probs(labels, arrays, logits=logits, members_axis=0)
        assert data.form.n_members == 3
        np.testing.assert_allclose(all_rows(data)[1], mean, rtol=1e-13)
        stacked = Predictions.from_probs(
            labels, np.stack(arrays, axis=2), logits=logits, members_axis=2, class_axis=1
        )
        np.testing.assert_array_equal(all_rows(stacked)[1], all_rows(data)[1])


def test_members_of_a_binary_classifier():
    data = Predictions.from_probs([0, 1], [[0.25, 0.5], [0.75, 1.0]], members_axis=0)
    np.testing.assert_array_equal(all_rows(data)[1][:, 1], [0.5, 0.75])


def test_torch_and_its_small_floats():
    labels, z = samples(64)
    tensor = torch.from_numpy(z).requires_grad_()
    np.testing.assert_array_equal(
        Predictions.from_probs(torch.from_numpy(labels), tensor, logits=True).form.values[0], z
    )
    for kind in (torch.bfloat16, torch.float16):
        probs = torch.softmax(torch.from_numpy(z), dim=1).to(kind)
        assert Predictions.from_probs(labels, probs).form.values.dtype == np.float32


def test_labels_of_any_integer_type_and_bool():
    for kind in (np.uint8, np.int16, np.int64, np.uint64, bool):
        data = Predictions.from_probs(np.array([0, 1], dtype=kind), HALVES)
        np.testing.assert_array_equal(all_rows(data)[0], [0, 1])


def test_what_is_left_out_is_counted_and_never_read():
    labels = np.ma.masked_array([0, 255, 1, 1, 0], [False, False, True, False, False])
    probs = np.array([[1.0, 0.0], [np.nan, 9.0], [7.0, 7.0], [-1.0, 0.0], [0.5, 0.5]])
    data = Predictions.from_probs(labels, probs, ignore_label=255, mask=[False, False, False, True, False])
    assert data.counts == {"n": 2, "n_ignored": 1, "n_masked": 2, "n_invalid": 0}
    np.testing.assert_array_equal(all_rows(data)[1], [[1.0, 0.0], [0.5, 0.5]])


def test_an_ignore_label_outside_the_labels_type():
    assert Predictions.from_probs(np.array([0, 1], np.uint8), HALVES, ignore_label=-1).n == 2


def test_bad_samples_are_dropped_and_counted():
    probs = [[0.5, 0.5], [np.nan, 1.0], [-0.5, 1.5], [0.7, 0.7]]
    data = Predictions.from_probs([0, 0, 0, 0], probs, on_invalid="drop")
    assert data.counts == {"n": 1, "n_ignored": 0, "n_masked": 0, "n_invalid": 3}


def test_one_bad_member_makes_a_sample_bad():
    probs = np.array([HALVES, [[0.5, 0.5], [np.inf, 0.5]]])
    with pytest.raises(
        InvalidValueError, match=r"probs of 1 sample are non-finite \(first at index \(1,\)\)"
    ):
        Predictions.from_probs([0, 1], probs, members_axis=0)


@pytest.mark.parametrize(
    ("kind", "off", "fine"),
    [(np.float64, 1e-4, 1e-6), (np.float32, 1e-3, 3e-5), (np.float16, 0.1, 5e-3)],
)
def test_sums_are_checked_as_the_type_allows(kind, off, fine):
    Predictions.from_probs([0], np.array([[0.5, 0.5 + fine]], dtype=kind))
    with pytest.raises(InvalidValueError, match="do not sum to 1"):
        Predictions.from_probs([0], np.array([[0.5, 0.5 + off]], dtype=kind))


LABELS = np.zeros((2, 5, 6), dtype=int)
LAST = {"logits": True, "class_axis": -1}


@pytest.mark.parametrize(
    ("labels", "probs", "options", "error", "match"),
    [
        ([0, 3], HALVES, {}, InvalidValueError, r"1 value outside 0 ... 1 \(first: 3 at index \(1,\)\)"),
        ([-1, 0], HALVES, {}, InvalidValueError, r"first: -1 at index \(0,\)\); pass ignore_label=-1"),
        ([-1, 1], HALVES, {}, InvalidValueError, r"pass \(labels \+ 1\) // 2 if classes are -1 and 1; pass ign"),
        ([0, 1], [50, 0.5], {}, InvalidValueError, "divide by 100 if these are percentages"),
        ([[0], [1]], [0.5, 0.5], {}, ShapeError, r"drop axis 1 of labels: labels\[..., 0\]$"),
        ([1, 2], HALVES, {}, InvalidValueError, r"first: 2 at index \(1,\)\); subtract 1 if classes start at 1"),
        ([-1, 0], [0.5, 0.5], {}, InvalidValueError, "probability of class 1 of the two classes 0 and 1"),
        ([[1.0, 0.0]], HALVES[:1], {}, InputTypeError, r"for one-hot rows pass labels.argmax\(axis=-1\)"),
        ([0, 1], [[0.5, 0.5], [2.0, 3.0]], {}, InvalidValueError, r"first at index \(1,\): 5\); pass logits=True"),
        ([0, 1], [[0.5, 0.5], [-2.0, 3.0]], {}, InvalidValueError, "are negative.*pass logits=True"),
        ([0, 1], [0.5, 1.5], {}, InvalidValueError, r"exceed 1 \(first at index \(1,\): 1.5\); pass logits=True"),
        ([0, 1], [0.5, np.nan], {}, InvalidValueError, "non-finite.*on_invalid='drop'"),
        ([0, 1], [[1.0, np.nan], [0, 0]], LAST, InvalidValueError, "logits of 1 sample are non-finite"),
        ([0, 1], [[-np.inf] * 2, [0, 0]], LAST, InvalidValueError, "logits of 1 sample are non-finite"),
        ([[1, 0], [0, 1]], HALVES, {}, InvalidValueError, r"look one-hot; pass .*labels.argmax\(axis=-1\)"),
        ([[1, 0], [0, 1]], HALVES, {"logits": True}, InvalidValueError, "look one-hot"),
        ([0.0, 1.0], HALVES, {}, InputTypeError, r"dtype float64, not integers; convert them with .astype\(int\)"),
        (["a", "b"], HALVES, {}, InputTypeError, r"pass classes=, .*numpy.unique\(labels\)"),
        ([0, 1], [["x", "y"], ["z", "w"]], {}, InputTypeError, "probs has dtype"),
        (LABELS, MAPS, {"class_axis": -1}, ShapeError, "if axis 1 holds the classes, pass class_axis=1"),
        (LABELS, np.full((4, 2, 5, 6, 3), 1 / 3), {}, ShapeError, "pass members_axis="),
        (LABELS[..., None], np.full((2, 5, 6, 3), 1 / 3), {}, ShapeError, r"labels\[..., 0\]"),
        ([0, 1], [[1.0], [1.0]], {}, ShapeError, r"single class; for a binary classifier, .*probs\[..., 0\]"),
        ([0, 1], [[0.5, 0.5]], {}, ShapeError, r"labels have shape \(2,\) and probs \(1, 2\)"),
        (0, 0.5, {}, ShapeError, "single number"),
        (LABELS, np.ones((2, 1, 5, 6)), {"class_axis": 1}, ShapeError, r"drop that axis: probs\[:, 0\]"),
        (LABELS[:, None], MAPS, {"class_axis": 1}, ShapeError, r"labels: labels\[:, 0\] and pass class_axis=1"),
        (LABELS, [MAPS] * 4, {"class_axis": 1, "members_axis": 0}, ShapeError, "class_axis=2, which counts the ax"),
        ([0, 1], HALVES, {"class_axis": 2}, ShapeError, "no axis 2 for classes"),
        ([0, 1], [HALVES], {"members_axis": 5}, ShapeError, "no axis 5 for members"),
        ([0, 1], [HALVES], {"members_axis": -1, "class_axis": -1}, SettingsError, "are both axis 2"),
        ([0, 1], HALVES, {"mask": [True]}, ShapeError, "mask"),
        ([0, 1], HALVES, {"mask": [True, True]}, EmptyInputError, "2 masked; mask=True leaves a sample out"),
        ([9, 9], HALVES, {"ignore_label": 9}, EmptyInputError, "none of 2 samples is left: 2 ignored"),
        ([0], [[2.0, 3.0]], {"on_invalid": "drop"}, EmptyInputError, "1 invalid; pass logits=True"),
        ([], [], {}, EmptyInputError, "nothing to score"),
        (np.zeros(0, int), np.zeros((0, 3)), {}, EmptyInputError, "nothing to score"),
        ([0, 1], HALVES, {"on_invalid": "skip"}, SettingsError, "choose 'raise' or 'drop'"),
        ([0, 1], HALVES, {"classes": ["a"]}, SettingsError, "1 names for 2 classes"),
        (["a", "b"], np.array(HALVES), {"classes": ["a"]}, SettingsError, "1 names for 2 classes"),
    ],
)  # fmt: skip
def test_refusals(labels, probs, options, error, match):
    with pytest.raises(error, match=match):
        Predictions.from_probs(labels, probs, **options)


def test_labelled_arrays_must_agree():
    probs = xr.DataArray(np.full((3, 2), 0.5), dims=("time", "class"), coords={"time": [0, 1, 2]})
    labels = xr.DataArray([0, 1, 0], dims=("time",), coords={"time": [0, 1, 2]})
    assert Predictions.from_probs(labels, probs).n == 3
    with pytest.raises(AlignmentError, match="different labels along 'time'"):
        Predictions.from_probs(labels.assign_coords(time=[1, 2, 3]), probs)
    table = pd.DataFrame({"cat": [0.5, 0.1], "dog": [0.5, 0.9]}, index=["x", "y"])
    assert Predictions.from_probs(pd.Series([0, 1], index=["x", "y"]), table).n == 2
    with pytest.raises(AlignmentError, match="different labels along 'index'"):
        Predictions.from_probs(pd.Series([0, 1], index=["y", "x"]), table)


def test_a_file_holds_everything(tmp_path):
    labels, z = samples(40)
    labels[3] = 255
    data = Predictions.from_probs(
        labels.astype(np.uint8),
        np.stack([z, z / 2]).astype(np.float32),
        logits=True,
        members_axis=0,
        ignore_label=255,
        classes=list("abcd"),
    )
    read = Predictions.load(data.save(tmp_path / "p.npz"))
    for name in ("truth", "valid"):
        np.testing.assert_array_equal(getattr(read, name), getattr(data, name))
    np.testing.assert_array_equal(read.form.values, data.form.values)
    assert read.form.values.dtype == np.float32
    assert (read.counts, read.form.ignore_label, read.form.classes) == (data.counts, 255, tuple("abcd"))
    assert (read.form.axes, repr(read), read.digest()) == (data.form.axes, repr(data), data.digest())


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = Predictions.from_probs([0, 1], HALVES).save(tmp_path / "p.npz")
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(tmp_path / "q.npz", **{**arrays, "labels": np.array([0, 7])})
    with pytest.raises(FileFormatError, match="damaged: values and counts disagree"):
        Predictions.load(tmp_path / "q.npz")
    np.savez(tmp_path / "q.npz", **{**arrays, "labels": np.array([0, 1, 1])})
    with pytest.raises(FileFormatError, match=r"damaged: labels of shape \(2,\) must be integers"):
        Predictions.load(tmp_path / "q.npz")
    np.savez(tmp_path / "q.npz", labels=[0])
    with pytest.raises(FileFormatError, match=r"was not written by Predictions\.save"):
        Predictions.load(tmp_path / "q.npz")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FileFormatError, match="cannot be read"):
        Predictions.load(path)


def test_the_digest_tells_data_apart_and_not_types():
    labels, z = samples(300)
    probs = softmax(z).astype(np.float32)
    digest = Predictions.from_probs(labels, probs).digest()
    assert Predictions.from_probs(labels.astype(np.uint8), probs.astype(np.float64)).digest() == digest
    assert Predictions.from_probs(labels.reshape(15, 20), probs.reshape(15, 20, 4)).digest() == digest
    assert Predictions.from_probs(labels[::-1], probs[::-1]).digest() != digest
    assert Predictions.from_probs(labels, probs, ignore_label=0).digest() != digest
    assert Predictions.from_probs(labels, 2 * probs, logits=True).digest() != digest


def test_pixels_near_another_class_are_the_boundary_of_their_own_image():
    labels = np.zeros((2, 9, 9), dtype=np.int64)
    labels[0, :, 6:] = 1
    labels[1, 4, 4] = 255  # has no class, so it borders on nothing
    probs = np.full((2, 9, 9, 3), 1 / 3)
    data = uq.Predictions.from_probs(labels, probs, ignore_label=255, by="boundary")
    expected = np.full((2, 9, 9), "interior")
    expected[0, :, 4:8] = "boundary"
    np.testing.assert_array_equal(data.by, expected)
    report = uq.evaluate(labels, probs=probs, ignore_label=255, by="boundary", groups=False)
    both = Predictions.from_probs(labels, probs, ignore_label=255, by={"place": "boundary", "image": [0, 1]})
    assert len(np.unique(both.by)) == 3
    assert {name: part.counts["n"] for name, part in report.strata.items()} == {
        "boundary": 36,
        "interior": 125,
    }


@pytest.mark.parametrize(
    ("shape", "by", "message"),
    [((4,), "boundary", r"needs maps, shape \(..., height"), ((4, 4), "edge", "no label of each")],
)
def test_other_strata_by_name_are_refused(shape, by, message):
    with pytest.raises(SettingsError, match=message):
        uq.evaluate(np.zeros(shape, dtype=int), probs=np.full((*shape, 3), 1 / 3), by=by)


@pytest.mark.parametrize("shape", [(40,), (3, 8, 9)])
def test_probabilities_are_not_taken_for_logits(shape):
    rng = np.random.default_rng(0)
    probs = softmax(rng.normal(size=(*shape, 4)))
    labels = rng.integers(0, 4, shape)
    with pytest.raises(
        InvalidValueError, match=r"probs are probabilities already: .*; leave out logits=True"
    ):
        Predictions.from_probs(labels, probs, logits=True)
    Predictions.from_probs(labels, np.log(probs), logits=True)
