from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import uq_tracking as uq
from uq_tracking.errors import FileFormatError, RecalibrationError, TrackingWarning
from uq_tracking.recalibration import FittedOn, StdScaling, read_recalibrations, recalibrate_file

from .samples import overconfident

DOUBLE = StdScaling(factor=2.0, fitted_on=FittedOn(n=10, source="exact"))
MEAN, STD = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 1.5])


@pytest.fixture(scope="module")
def shifted():
    y, mu, s = overconfident(bias=1.0)
    return uq.recalibrate((y, mu, s), "cdf_isotonic")


def test_npz_gets_new_arrays_beside_the_old_ones(tmp_path, shifted):
    np.savez(tmp_path / "maps.npz", y_pred=MEAN, y_std=STD.astype(np.float32), name=np.asarray("a"))
    target = recalibrate_file(DOUBLE, tmp_path / "maps.npz")
    assert target == tmp_path / "maps.recalibrated.npz"
    with np.load(target) as arrays:
        assert set(arrays.files) == {"y_pred", "y_std", "name", "y_std_recalibrated"}
        assert_array_equal(arrays["y_std_recalibrated"], 2 * STD.astype(np.float32))
        assert arrays["y_std_recalibrated"].dtype == np.float32
    with np.load(recalibrate_file(shifted, tmp_path / "maps.npz", tmp_path / "other.npz")) as arrays:
        assert_allclose(arrays["y_pred_recalibrated"], shifted.apply(MEAN, STD)[0], rtol=1e-6)


def test_stored_predictions_are_such_a_file(tmp_path):
    data = uq.Predictions(*overconfident(30))
    with np.load(recalibrate_file(DOUBLE, data.save(tmp_path / "predictions.npz"))) as arrays:
        assert_array_equal(arrays["std_recalibrated"], 2 * data.std)


def test_npy_is_the_std_itself(tmp_path):
    np.save(tmp_path / "std.npy", STD.reshape(3, 1))
    assert_array_equal(np.load(recalibrate_file(DOUBLE, tmp_path / "std.npy")), 2 * STD.reshape(3, 1))


def test_csv_keeps_its_other_columns_as_they_are_written(tmp_path, shifted):
    text = 'id,Sigma,mu,note\n007,0.50,1,"a, b"\n008,,2,\n'
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    target = recalibrate_file(DOUBLE, tmp_path / "table.csv", tmp_path / "new.csv")
    assert target.read_text(encoding="utf-8").splitlines() == [
        "id,Sigma,mu,note,Sigma_recalibrated",
        '007,0.50,1,"a, b",1.0',
        "008,,2,,nan",
    ]
    table = pd.read_csv(recalibrate_file(shifted, tmp_path / "table.csv"))
    assert_allclose(table["mu_recalibrated"][0], shifted.apply(1.0, 0.5)[0])


def test_parquet(tmp_path):
    pd.DataFrame({"spread": STD, "id": ["a", "b", "c"]}).to_parquet(tmp_path / "t.parquet")
    table = pd.read_parquet(recalibrate_file(DOUBLE, tmp_path / "t.parquet", std="spread"))
    assert_array_equal(table["spread_recalibrated"], 2 * STD)
    assert list(table["id"]) == ["a", "b", "c"]


def test_refusals(tmp_path, shifted):
    np.savez(tmp_path / "a.npz", s2=STD)
    np.savez(tmp_path / "b.npz", std=STD)
    with pytest.raises(FileFormatError, match=r"holds s2, but no standard deviations \(std, y_std"):
        recalibrate_file(DOUBLE, tmp_path / "a.npz")
    with pytest.raises(
        FileFormatError, match=r"holds s2, but no standard deviations \(spread\); pass the name"
    ):
        recalibrate_file(DOUBLE, tmp_path / "a.npz", std="spread")
    with pytest.raises(FileFormatError, match="holds std, but no means"):
        recalibrate_file(shifted, tmp_path / "b.npz")
    with pytest.raises(RecalibrationError, match="would be overwritten; choose another output"):
        recalibrate_file(DOUBLE, tmp_path / "b.npz", tmp_path / "b.npz")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*c\.npz"):
        recalibrate_file(DOUBLE, tmp_path / "c.npz")
    with pytest.raises(
        FileFormatError, match=r"has an unknown suffix; use one of \.npz, \.npy, \.csv, \.parquet"
    ):
        recalibrate_file(DOUBLE, tmp_path / "c.txt")
    (tmp_path / "ragged.csv").write_text("std,mean\n1\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="rows must be as long as its header"):
        recalibrate_file(DOUBLE, tmp_path / "ragged.csv")
    (tmp_path / "bad.npy").write_bytes(b"no array")
    with pytest.raises(FileFormatError, match=r"bad\.npy cannot be read as an array"):
        recalibrate_file(DOUBLE, tmp_path / "bad.npy")
    temperature = uq.recalibrate(([0, 1, 1], [0.5, 1.0, -0.2]), "temperature", logits=True)
    with pytest.raises(RecalibrationError, match="temperature recalibrates probabilities"):
        recalibrate_file(temperature, tmp_path / "b.npz")


def test_parameters_of_a_logged_file(tmp_path):
    y, mu, s = overconfident(30)
    with pytest.warns(TrackingWarning, match="no scores after std_isotonic"):
        report = uq.evaluate(y, mu, s, calibration=["std_isotonic", "std_scaling"])
    path = tmp_path / "recalibration.json"
    path.write_text(json.dumps(report.recalibration), encoding="utf-8")
    found = read_recalibrations(path)
    assert list(found) == ["std_scaling"]
    assert read_recalibrations(DOUBLE.to_json()) == {"std_scaling": DOUBLE}
    with pytest.raises(FileFormatError, match="not a recalibration"):
        read_recalibrations('{"a": 1}')
