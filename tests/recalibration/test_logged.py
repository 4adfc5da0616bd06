from __future__ import annotations

import json

import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import RecalibrationError, RunNotFoundError, SettingsError
from uq_tracking.runs import run_recalibration
from uq_tracking.tracking.resolve import open_store

from .samples import overconfident

Y, MU, S = overconfident(1500)
FIT = overconfident(1500, seed=1)


def logged(folder, **options):
    report = uq.log(Y, MU, S, run=f"dir:{folder}", strict=True, **options)
    store, _ = open_store(f"dir:{folder}")
    return report, store, list(store.runs())[-1]


def test_a_run_holds_parameters_scores_and_figure(tmp_path):
    report, store, run = logged(
        tmp_path, calibration=FIT, recalibration=["std_scaling", "cdf_isotonic"], scores="all"
    )
    entries = report.recalibration["methods"]
    assert run.scalars["uq_recalibration/std_scale"] == entries["std_scaling"]["scalars"]["std_scale"]
    assert run.scalars["uq_recalibration/cdf_scale"] == entries["cdf_isotonic"]["scalars"]["cdf_scale"]
    for key, value in entries["std_scaling"]["scores"].items():
        assert run.scalars[f"uq_recalibrated/{key}"] == value
    for key, value in entries["cdf_isotonic"]["scores"].items():
        assert run.scalars[f"uq_recalibrated/cdf_isotonic/{key}"] == value
    files = store.files(run.run_id)
    assert {"uq/recalibration.json", "uq_recalibration.png"} <= set(files)
    stored = json.loads(store.fetch(run.run_id, "uq/recalibration.json", tmp_path / "out").read_text())
    assert stored == report.recalibration


def test_a_split_is_in_every_name(tmp_path):
    _, store, run = logged(tmp_path, calibration=FIT, split="test", figures=False)
    assert {"uq_recalibration/test/std_scale", "uq_recalibrated/test/nll"} <= set(run.scalars)
    assert "uq/test/recalibration.json" in store.files(run.run_id)


def test_a_point_of_a_series_has_the_scalars_only(tmp_path):
    _, store, run = logged(tmp_path, calibration=FIT, step=3)
    assert {"uq_recalibration/std_scale", "uq_recalibrated/nll"} <= set(run.scalars)
    assert not store.files(run.run_id)


def test_the_recalibration_of_a_run_comes_back_or_is_fitted_to_its_statistics(tmp_path):
    report, _, _ = logged(tmp_path, calibration=FIT, figures=False)
    uri = f"dir:{tmp_path}"
    assert run_recalibration(uri) == uq.recalibrate(FIT)
    assert run_recalibration(uri, "std_scaling") == uq.recalibrate(FIT)
    for method in ("cdf_isotonic", "std_isotonic", "std_binning"):
        assert run_recalibration(uri, method) == uq.recalibrate(report, method)
    assert_allclose(
        run_recalibration(uri, family="laplace").factor, uq.recalibrate(report, family="laplace").factor
    )


def test_a_run_without_recalibration_is_scaled(tmp_path):
    report, _, _ = logged(tmp_path, figures=False, split="val")
    assert run_recalibration(f"dir:{tmp_path}", split="val") == uq.recalibrate(report, split="val")
    assert run_recalibration(f"dir:{tmp_path}") == uq.recalibrate(report, split="val")
    with pytest.raises(RecalibrationError, match="stores no statistics of split 'test' to fit to; name the"):
        run_recalibration(f"dir:{tmp_path}", split="test")
    with pytest.raises(SettingsError, match="has no option color"):
        run_recalibration(f"dir:{tmp_path}", split="val", color="red")
    logged(tmp_path, figures=False, split="val")
    with pytest.raises(RunNotFoundError, match="names 2 runs; add the id of one"):
        run_recalibration(f"dir:{tmp_path}", split="val")


def test_a_report_is_scored_already(tmp_path):
    report = uq.evaluate(Y, MU, S)
    with pytest.raises(SettingsError, match="pass calibration to evaluate instead"):
        uq.log(report, run=f"dir:{tmp_path}", calibration=FIT)
