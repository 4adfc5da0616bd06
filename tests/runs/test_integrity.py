"""Good scores are never replaced by those of other predictions."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import BackendError, FileFormatError
from uq_tracking.report import Report
from uq_tracking.runs import RescoreOptions
from uq_tracking.statistics.store import read_statistics
from uq_tracking.tracking.folder import FolderStore


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two runs of equally many samples."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        std = rng.uniform(0.5, 2.0, 500)
        truth = rng.normal(size=500)
        uq.log(truth, truth + std * rng.normal(size=500), std, run=f"dir:{tmp_path}/runs", method=name,
               figures=False, maps=False)  # fmt: skip
    store = FolderStore(tmp_path / "runs")
    return [store.path / run.run_id for run in store.runs()]


def changed(path, **columns):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, change in columns.items():
        arrays[name] = change(arrays[name])
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


def rescored(folder):
    before = Report.from_json(folder / "uq" / "report.json")
    (outcome,) = uq.rescore(f"dir:{folder}", alpha=0.9, options=RescoreOptions(figures=False)).outcomes
    return outcome, before, Report.from_json(folder / "uq" / "report.json")


def test_statistics_of_another_run_are_refused_by_name(runs):
    shutil.copy(runs[1] / "uq" / "statistics.npz", runs[0] / "uq" / "statistics.npz")
    (runs[0] / "uq" / "predictions.npz").unlink()
    outcome, before, after = rescored(runs[0])
    assert outcome.status == "failed"
    assert "statistics are of other predictions" in outcome.reason
    assert after == before


def test_predictions_serve_where_the_statistics_are_of_another_run(runs):
    shutil.copy(runs[1] / "uq" / "statistics.npz", runs[0] / "uq" / "statistics.npz")
    outcome, before, after = rescored(runs[0])
    assert (outcome.status, outcome.source) == ("done", "predictions")
    assert after.scores["rmse"] == pytest.approx(before.scores["rmse"], rel=1e-12)


@pytest.mark.parametrize("value", [np.nan, -1.0])
def test_columns_that_were_changed_are_refused(runs, value):
    path = runs[0] / "uq" / "statistics.npz"
    with np.load(path) as archive:
        names = [name for name in archive.files if archive[name].dtype.kind == "f" and archive[name].size > 3]
    changed(path, **{name: lambda column: np.full_like(column, value) for name in names[:1]})
    (runs[0] / "uq" / "predictions.npz").unlink()
    outcome, before, after = rescored(runs[0])
    assert outcome.status == "failed"
    assert "changed after they were written" in outcome.reason
    assert after == before


def test_comparing_names_the_run_whose_files_do_not_belong_together(runs):
    shutil.copy(runs[1] / "uq" / "statistics.npz", runs[0] / "uq" / "statistics.npz")
    with pytest.raises(BackendError, match="other predictions"):
        uq.pool(f"dir:{runs[0].parent}")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_report_takes_finite_numbers_only(runs, text):
    path = runs[0] / "uq" / "report.json"
    report = Report.from_json(path)
    broken = path.read_text().replace(repr(report.scores["rmse"]), text)
    with pytest.raises(FileFormatError):
        Report.from_json(broken)


def test_deep_json_is_refused():
    with pytest.raises(FileFormatError):
        Report.from_json('{"a":' + "[" * 100_000)


@pytest.mark.slow
def test_a_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "statistics.npz"
    np.savez_compressed(path, zeros=np.zeros(2**25))
    with pytest.raises(FileFormatError, match="would unpack to"):
        read_statistics(path)
