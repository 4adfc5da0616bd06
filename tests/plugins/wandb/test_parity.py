"""One call with a run of MLflow and one of W&B open: both hold the same, field by field."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import wandb

import uq_tracking as uq
from tests.plugins.wandb.helpers import fragment_of
from uq_tracking.curves import Curve
from uq_tracking.errors import TrackingWarning
from uq_tracking.testing import sample_predictions
from uq_tracking.tracking.backend import RunStore
from uq_tracking.tracking.resolve import open_store

with warnings.catch_warnings():  # MLflow's own imports warn of what its dependencies deprecate
    warnings.simplefilter("ignore")
    import mlflow
    import mlflow.store.tracking.sqlalchemy_store

Logged = tuple[RunStore, str]


@pytest.fixture
def experiment(own_sqlite_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(own_sqlite_uri)
    yield mlflow.create_experiment("p", artifact_location=str(tmp_path / "artifacts"))
    mlflow.set_tracking_uri(before)


@pytest.fixture
def both(experiment: str, wandb_offline: Path) -> tuple[Logged, Logged, uq.Report]:
    """Store and run id of the MLflow run and of the W&B run, and the report."""
    with mlflow.start_run(experiment_id=experiment) as of_mlflow, wandb.init(project="p") as of_wandb:
        report = uq.log(
            sample_predictions(), method="mc-dropout", calibration=True, scores="all", strict=True
        )
    fragment_of(wandb_offline, of_wandb.id)
    return (
        (open_store("mlflow:p")[0], of_mlflow.info.run_id),
        (open_store(f"wandb-offline:{wandb_offline}")[0], of_wandb.id),
        report,
    )


@pytest.mark.slow
def test_both_runs_hold_the_same(both: tuple[Logged, Logged, uq.Report], tmp_path: Path) -> None:
    (mlflow_store, mlflow_id), (wandb_store, wandb_id), report = both
    (of_mlflow,), (of_wandb,) = mlflow_store.runs(), wandb_store.runs()

    curve_metrics = {key for key in of_mlflow.scalars if key.startswith("uq_curve/")}
    scores = {key: value for key, value in of_mlflow.scalars.items() if key not in curve_metrics}
    assert len(scores) > 80
    assert len(curve_metrics) >= 8
    assert {key: value for key, value in of_wandb.scalars.items() if key != "uq/step"} == scores
    tags = {key: value for key, value in of_mlflow.tags.items() if key.startswith("uq.")}
    assert dict(of_wandb.tags) == tags

    files = {name for name in mlflow_store.files(mlflow_id) if name.startswith("uq/")}
    assert "uq/recalibration.json" in files
    assert {name for name in wandb_store.files(wandb_id) if name.startswith("uq/")} == files
    for name in files:
        ours = wandb_store.fetch(wandb_id, name, tmp_path / "wandb-files")
        assert (
            ours.read_bytes() == mlflow_store.fetch(mlflow_id, name, tmp_path / "mlflow-files").read_bytes()
        )

    images = {name for name in mlflow_store.files(mlflow_id) if name.startswith("uq_") and "/" not in name}
    assert {"uq_calibration.png", "uq_map_0.png"} <= images
    panels = {name for name in wandb_store.files(wandb_id) if name.endswith(".png")}
    assert {name.replace("/", "_") for name in panels} == images

    for key in curve_metrics:
        name = key.removeprefix("uq_curve/")
        table = wandb_store.fetch(wandb_id, f"uq_curve/{name}.table.json", tmp_path / "tables")
        assert _main_values(table, report.curves[name]) == pytest.approx(
            [value for value in report.curves[name].columns[report.curves[name].main] if np.isfinite(value)],
            rel=0,
            abs=0,
        )
    tables = {name for name in wandb_store.files(wandb_id) if name.startswith("uq_curve/")}
    assert tables == {f"uq_curve/{name}.table.json" for name in report.curves}


def _main_values(path: Path, curve: Curve) -> list[float]:
    table = json.loads(path.read_text())
    if table["columns"] == ["x", "y", "series"]:
        return [y for _, y, series in table["data"] if series == curve.main]
    return [row[table["columns"].index(curve.main)] for row in table["data"]]


@pytest.mark.slow
def test_one_that_fails_does_not_stop_the_other(
    experiment: str, wandb_offline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blocker").write_text("a file where wandb wants a folder")
    with mlflow.start_run(experiment_id=experiment) as of_mlflow, wandb.init(project="p"):
        monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "blocker"))
        with pytest.warns(TrackingWarning, match=r"wandb \(wandb-offline:.*did not take"):
            uq.log(sample_predictions(), figures=False, maps=False)
    store, _ = open_store("mlflow:p")
    assert "uq/predictions.npz" in store.files(of_mlflow.info.run_id)


@pytest.mark.slow
def test_one_of_two_can_be_chosen(experiment: str, wandb_offline: Path) -> None:
    with mlflow.start_run(experiment_id=experiment), wandb.init(project="p") as of_wandb:
        uq.log(sample_predictions(), to="wandb", figures=False, maps=False, strict=True)
    assert "uq/nll" in fragment_of(wandb_offline, of_wandb.id).summary
    (of_mlflow,) = open_store("mlflow:p")[0].runs()
    assert not of_mlflow.scalars
