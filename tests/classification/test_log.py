"""From arrays to a logged run and back."""

import os

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import InputError, SettingsError, TrackingWarning
from uq_tracking.runs.read import logged_run, logged_runs
from uq_tracking.statistics.statistics import Statistics

from .made import pixels, samples, softmax

PNG = b"\x89PNG"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def only_run(uri="dir:runs", **options):
    (run,) = logged_runs(uri, **options)
    return run


def test_pixels_to_a_folder_and_back(folder):
    labels, probs = pixels()
    labels = labels.astype(np.uint8)
    labels[:, :3] = 255
    report = uq.log(
        labels,
        probs=np.moveaxis(probs, -1, 1).astype(np.float32),
        class_axis=1,
        ignore_label=255,
        classes=["road", "car", "sky", "tree"],
        images=np.zeros((*labels.shape, 3), np.uint8),
        calibration=(labels, np.moveaxis(probs, -1, 1)),
        run="dir:runs",
        method="ensemble",
        split="test",
        maps=2,
        strict=True,
    )
    run = only_run(split="test")
    assert run.method == "ensemble"
    stored = run.stored.scalars
    assert stored["uq/test/ece"] == report.scores["ece"]
    assert stored["uq_recalibration/test/temperature"] == pytest.approx(2, abs=0.3)
    assert stored["uq_recalibrated/test/nll"] < stored["uq/test/nll"]
    assert {
        "uq/test/report.json",
        "uq/test/statistics.npz",
        "uq/test/predictions.npz",
        "uq/test/recalibration.json",
        "uq_test_reliability.png",
        "uq_test_sparsification.png",
        "uq_test_risk_coverage.png",
        "uq_test_recalibration.png",
    } <= set(run.files)
    assert sum("uq_map" in name for name in run.files) == 2
    assert not any("calibration.png" in name and "re" not in name for name in run.files)
    for name in run.files:
        if name.endswith(".png"):
            assert run.fetch(name, folder / "fetched").read_bytes()[:4] == PNG
    assert isinstance(run.statistics(), Statistics)
    assert run.scored() == report
    data = run.predictions()
    again = uq.evaluate(data)
    assert again.scores == report.scores
    assert data.form.values.dtype == np.float32


def test_without_a_run_it_goes_to_a_folder_of_its_own(folder, caplog):
    labels, z = samples(200)
    report = uq.log(labels, probs=z, logits=True, figures=False)
    assert "no tracker has an active run: logging to" in caplog.text
    assert only_run("dir:uq_runs").report() == report


def test_a_step_logs_scores_only(folder):
    labels, z = samples(200)
    report = uq.log(labels, probs=softmax(z), run="dir:runs", step=3)
    run = only_run()
    assert run.stored.scalars["uq/ece"] == report.scores["ece"]
    assert not any(name.endswith((".png", ".npz", "report.json")) for name in run.files)


def test_predictions_are_kept_as_asked(folder):
    labels, z = samples(200)
    uq.log(labels, probs=softmax(z), run="dir:runs", predictions=False, figures=False)
    assert "uq/predictions.npz" not in only_run().files


@pytest.mark.slow
def test_an_accumulator_and_a_report_are_logged_by_either_verb(folder):
    labels, z = samples(500)
    acc = uq.Accumulator()
    acc.update(labels, probs=softmax(z))
    for number, log in enumerate((lambda: uq.log(acc, run="dir:a"), lambda: uq.log(acc, run="dir:b"))):
        report = log()
        run = only_run(f"dir:{'ab'[number]}")
        assert run.scored() == report
        assert "uq_reliability.png" in run.files
    uq.log(uq.evaluate(labels, probs=softmax(z)), run="dir:c")
    assert "uq_sparsification.png" in only_run("dir:c").files
    with pytest.raises(SettingsError, match="already has its settings"):
        uq.log(acc, ignore_label=3, run="dir:a")


def test_arrays_that_cannot_be_scored_raise_before_anything_is_written(folder):
    with pytest.raises(InputError, match="pass logits=True"):
        uq.log([0, 1], probs=[[2.0, 3.0], [1.0, 4.0]], run="dir:runs")
    with pytest.raises(SettingsError, match="needs predictions of shape"):
        uq.log([0, 1], probs=[0.25, 0.75], run="dir:runs", maps=1)
    with pytest.raises(SettingsError, match="alpha= is an option of a forecast of numbers"):
        uq.log([0, 1], probs=[0.25, 0.75], run="dir:runs", alpha=0.9)
    assert not list((folder / "runs").rglob("report.json"))


@pytest.mark.slow
@pytest.mark.pictures
def test_the_warning_stands_at_the_callers_line(folder, monkeypatch):
    def broken(*given):
        raise RuntimeError("no ink")

    monkeypatch.setattr("uq_tracking.figures.calibration.class_reliability", broken)
    with pytest.warns(
        TrackingWarning, match="uq_reliability.png could not be made: RuntimeError: no ink"
    ) as caught:
        uq.log([0, 1], probs=[0.25, 0.75], run="dir:runs")
    assert caught[0].filename == __file__
    assert "uq_risk_coverage.png" in logged_run(f"dir:runs/{os.listdir('runs')[0]}").files


def test_runs_are_pooled_and_rescored(folder):
    labels, z = samples(900)
    for part in (slice(0, 400), slice(400, None)):
        uq.log(labels[part], probs=softmax(z[part]), run="dir:runs", method="m", figures=False)
    parts = [run.statistics() for run in logged_runs("dir:runs")]
    from uq_tracking.evaluation.scoring import score

    pooled = score(parts[0] + parts[1])
    whole = uq.evaluate(labels, probs=softmax(z))
    for key, value in whole.scores.items():
        np.testing.assert_allclose(pooled.scores[key], value, rtol=1e-11, err_msg=key)
