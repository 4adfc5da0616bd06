"""Files of predictions read back equal, hold no pickles, and damage is noticed."""

import json
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from uq_tracking.errors import FileFormatError
from uq_tracking.inputs import Predictions

NAN = float("nan")
ARRAYS = ("truth", "mean", "std", "valid", "groups", "by", "aleatoric", "epistemic", "samples", "member_std")


def _assert_equal(one, other):
    for name in ARRAYS:
        mine, theirs = (getattr(each, name, getattr(each.form, name, None)) for each in (one, other))
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            assert mine.dtype == theirs.dtype, name
            assert_array_equal(mine, theirs)
    assert (one.counts, one.form.std_floor, one.unit) == (other.counts, other.form.std_floor, other.unit)


def _rich(dtype=np.float32):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(3, 4)).astype(dtype)
    truth[0, 0] = NAN
    members = rng.normal(size=(5, 3, 4)).astype(dtype)
    return Predictions.from_ensemble(
        truth,
        members,
        members**2,
        groups=["a", "b", "ü"],
        by=np.arange(12).reshape(3, 4),
        std_floor=0.1,
        unit="°C",
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_reads_back_equal(tmp_path, dtype):
    data = _rich(dtype)
    assert data.save(tmp_path / "predictions.npz") == tmp_path / "predictions.npz"
    again = Predictions.load(tmp_path / "predictions.npz")
    _assert_equal(again, data)
    assert again.digest() == data.digest()
    assert not again.truth.flags.writeable


def test_plain_predictions_with_dropped_samples(tmp_path):
    data = Predictions(
        [1, NAN, 3, 4], [1, 2, NAN, 4], [1, 1, 1, 0], mask=[True, False, False, False], on_invalid="drop"
    )
    data.save(str(tmp_path / "p.npz"))
    _assert_equal(Predictions.load(str(tmp_path / "p.npz")), data)


def test_views_in_any_layout(tmp_path):
    base = np.arange(24.0).reshape(4, 6) + 1
    data = Predictions(base.T, base.T, np.asfortranarray(base.T))
    _assert_equal(Predictions.load(data.save(tmp_path / "p.npz")), data)


def test_name_is_taken_as_it_is_and_replaced_whole(tmp_path):
    path = tmp_path / "predictions"
    path.write_text("old")
    Predictions([1.0], [1.0], [1.0]).save(path)
    assert Predictions.load(path).n == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["predictions"]


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = Predictions([1.0], [1.0], [1.0]).save(tmp_path / "p.npz")

    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="No space left"):
        Predictions([2.0, 3.0], [1.0, 1.0], [1.0, 1.0]).save(path)
    assert Predictions.load(path).n == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.npz"]


def test_same_data_same_bytes(tmp_path):
    first = _rich().save(tmp_path / "1.npz").read_bytes()
    assert first == _rich().save(tmp_path / "2.npz").read_bytes()


def test_the_file_is_plain_numpy(tmp_path):
    _rich().save(tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz", allow_pickle=False) as archive:
        assert set(archive.files) == {"about", "target", *ARRAYS} - {"truth"}
        assert json.loads(str(archive["about"]))["format"] == "uq_tracking.predictions"


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        Predictions.load(tmp_path / "none.npz")


def _resave(path, **changes):
    with np.load(path) as archive:
        arrays = {**{name: archive[name] for name in archive.files}, **changes}
    with path.open("wb") as file:
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"about": None}, r"not written by Predictions\.save \(KeyError.*\); read other files with"),
        ({"std": None}, r"no std"),
        ({"about": np.array("{")}, r"not written by Predictions\.save \(JSONDecodeError"),
        ({"about": np.array("[]")}, r"not written by Predictions\.save \(KeyError"),
        (
            {"about": np.array('{"format": "other", "version": 1}')},
            r"holds 'other', not 'uq_tracking\.predictions'",
        ),
        (
            {"about": np.array('{"format": "uq_tracking.predictions", "version": 2}')},
            r"format version 2, .* upgrade",
        ),
        (
            {"about": np.array('{"format": "uq_tracking.predictions", "version": 1}')},
            r"holds None, a form that no installed package brings",
        ),
        ({"std": np.ones(2)}, r"is damaged: shapes differ"),
        ({"std": np.ones(3, int)}, r"must be float32 or float64"),
        ({"std": -np.ones(3)}, r"values and counts disagree"),
        ({"target": np.full(3, NAN)}, r"values and counts disagree"),
        ({"valid": np.ones(3)}, r"valid must be bool"),
        ({"valid": np.array([True, False, False])}, r"values and counts disagree"),
        ({"mean": np.array([1, "a", None], object)}, r"cannot be read as an npz file of plain arrays"),
    ],
)
def test_files_that_do_not_fit_together(tmp_path, changes, message):
    path = Predictions([1, 2, 3], [1, 2, 3], [1.0, 1, 1]).save(tmp_path / "p.npz")
    _resave(path, **changes)
    with pytest.raises(FileFormatError, match=message):
        Predictions.load(path)


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 broken"])
def test_foreign_bytes(tmp_path, content):
    path = tmp_path / "p.npz"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"p\.npz cannot be read as an npz file"):
        Predictions.load(path)


def test_pickles_are_never_opened(tmp_path):
    path = tmp_path / "p.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("target.npy", b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(FileFormatError, match=r"cannot be read as an npz file of plain arrays"):
        Predictions.load(path)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damage_is_noticed_or_harmless(tmp_path, data):
    good = _rich()
    path = good.save(tmp_path / "p.npz")
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        again = Predictions.load(path)
    except FileFormatError:
        return
    assert again.digest() == good.digest()
