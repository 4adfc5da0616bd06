"""The callback in real trainers of both Lightning packages, with the loggers that people use."""

from __future__ import annotations

import csv
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import TrackingWarning
from uq_tracking.frameworks.lightning import UncertaintyCallback
from uq_tracking.frameworks.training import GivenRuns
from uq_tracking.tracking.folder import FolderStore
from uq_tracking.tracking.resolve import open_store

from .tiny import loader, tiny_model
from .trainers import QUIET, VAL, report_of, rows_of, trainer

with warnings.catch_warnings():  # the packages' own imports warn
    warnings.simplefilter("ignore")
    import lightning.pytorch
    import mlflow
    import mlflow.store.tracking.sqlalchemy_store
    import pytorch_lightning
    from lightning.pytorch.loggers import CSVLogger, MLFlowLogger, TensorBoardLogger, WandbLogger

pytestmark = [*QUIET, pytest.mark.usefixtures("in_own_folder"), pytest.mark.slow]


@pytest.mark.slow
def test_mlflow_gets_a_point_per_epoch_and_everything_at_the_end(mlflow_uri, tmp_path):
    logger = MLFlowLogger("fit", tracking_uri=mlflow_uri, artifact_location=str(tmp_path))
    model = tiny_model(lightning.pytorch)
    callback = UncertaintyCallback(method="mean-variance", unit="m", statistics="exact", tags={"seed": 1})
    trainer(callback, logger=logger).fit(model, loader(), VAL)
    client = mlflow.MlflowClient(mlflow_uri)
    run = client.get_run(logger.run_id)
    points = client.get_metric_history(logger.run_id, "uq/val/nll")
    assert [point.step for point in points] == [0, 1]
    assert points[0].value != points[1].value
    assert_allclose(run.data.metrics["uq/val/nll"], report_of(model).scores["nll"], rtol=1e-6)
    assert run.data.tags["uq.method"] == "mean-variance"
    assert run.data.tags["seed"] == "1"
    assert run.info.status == "FINISHED"
    assert "uq_curve/val/calibration" in run.data.metrics
    files = [item.path for item in client.list_artifacts(logger.run_id)]
    assert "uq_val_calibration.png" in files
    assert not list(tmp_path.glob("uq_runs"))


@pytest.mark.parametrize("package", [lightning.pytorch, pytorch_lightning], ids=lambda p: p.__name__)
def test_any_other_logger_gets_the_scores_and_its_folder_the_report(package, tmp_path):
    logger = package.loggers.CSVLogger(tmp_path)
    model = tiny_model(package)
    trainer(UncertaintyCallback(statistics="exact", figures=False), package=package, logger=logger).fit(
        model, loader(), VAL
    )
    rows = [row for row in rows_of(logger) if "uq/val/nll" in row]
    assert [row["step"] for row in rows] == [0, 1]
    expected = report_of(model).scores
    assert_allclose(rows[-1]["uq/val/nll"], expected["nll"], rtol=1e-6)
    report = uq.Report.from_json(Path(logger.log_dir, "uq/uq/val/report.json"))
    assert_allclose([report.scores[key] for key in expected], list(expected.values()), rtol=1e-4)
    assert report.counts["n"] == 40


def test_a_single_callback_need_not_be_in_a_list():
    for package in (lightning.pytorch, pytorch_lightning):
        made = package.Trainer(callbacks=UncertaintyCallback(), logger=False, accelerator="cpu")
        assert any(isinstance(callback, UncertaintyCallback) for callback in made.callbacks)


def test_testing_logs_everything_at_once(mlflow_uri, tmp_path):
    logger = MLFlowLogger("test", tracking_uri=mlflow_uri, artifact_location=str(tmp_path))
    model = tiny_model(lightning.pytorch)
    trainer(UncertaintyCallback(statistics="exact", figures=False), logger=logger).test(model, VAL)
    client = mlflow.MlflowClient(mlflow_uri)
    metrics = client.get_run(logger.run_id).data.metrics
    assert_allclose(metrics["uq/test/crps"], report_of(model).scores["crps"], rtol=1e-6)
    assert "uq/val/crps" not in metrics
    assert [item.path for item in client.list_artifacts(logger.run_id, "uq/test")] == [
        "uq/test/report.json",
        "uq/test/statistics.npz",
    ]


def test_validating_alone_logs_everything_at_once(tmp_path):
    model = tiny_model(lightning.pytorch)
    trainer(UncertaintyCallback(run=tmp_path / "run", figures=False)).validate(model, VAL)
    assert (tmp_path / "run/uq/val/report.json").is_file()


def test_tensorboard_gets_the_scores_and_its_folder_the_report(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logger = TensorBoardLogger(tmp_path)
    trainer(UncertaintyCallback(figures=False), logger=logger).fit(
        tiny_model(lightning.pytorch), loader(), VAL
    )
    events = EventAccumulator(logger.log_dir)
    events.Reload()
    assert sorted({event.step for event in events.Scalars("uq/val/nll")}) == [0, 1]
    assert list(Path(logger.log_dir).rglob("uq/val/report.json"))


@pytest.mark.slow
@pytest.mark.usefixtures("wandb_offline")
def test_wandb_gets_a_point_per_epoch_and_everything_at_the_end(tmp_path):
    logger = WandbLogger(save_dir=tmp_path, project="p", offline=True)
    model = tiny_model(lightning.pytorch)
    trainer(UncertaintyCallback(method="m", figures=False), logger=logger).fit(model, loader(), VAL)
    logger.experiment.finish()
    store, _ = open_store(f"wandb-offline:{tmp_path / 'wandb'}")
    (run,) = store.runs()
    assert_allclose(run.scalars["uq/val/rmse"], report_of(model).scores["rmse"], rtol=1e-5)
    assert run.tags["uq.method"] == "m"
    assert "uq/val/report.json" in store.files(run.run_id)


def test_several_loggers_all_get_it(mlflow_uri, tmp_path):
    known = MLFlowLogger("both", tracking_uri=mlflow_uri, artifact_location=str(tmp_path / "artifacts"))
    other = CSVLogger(tmp_path)
    trainer(UncertaintyCallback(figures=False), logger=[known, other]).fit(
        tiny_model(lightning.pytorch), loader(), VAL
    )
    metrics = mlflow.MlflowClient(mlflow_uri).get_run(known.run_id).data.metrics
    assert rows_of(other)[-1]["uq/val/nll"] == pytest.approx(metrics["uq/val/nll"], rel=1e-12)


def test_without_a_logger_it_goes_where_log_goes(tmp_path):
    trainer(UncertaintyCallback(figures=False)).fit(tiny_model(lightning.pytorch), loader(), VAL)
    (folder,) = tmp_path.glob("uq_runs/*")
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "uq/val/nll" in line.get("values", {})] == [0, 1, None]
    assert (folder / "uq/val/report.json").is_file()


def test_an_address_makes_one_run_per_fit_which_later_tests_join(tmp_path):
    callback = UncertaintyCallback(run=f"dir:{tmp_path / 'runs'}", method="m", figures=False)
    made, model = trainer(callback), tiny_model(lightning.pytorch)
    made.fit(model, loader(), VAL)
    made.test(model, VAL, verbose=False)
    store, _ = open_store(f"dir:{tmp_path / 'runs'}")
    (run,) = store.runs()
    assert run.tags["uq.method"] == "m"
    assert {"uq/val/report.json", "uq/test/report.json"} <= set(store.files(run.run_id))
    lines = [
        json.loads(line) for line in (tmp_path / "runs" / run.run_id / "log.jsonl").read_text().splitlines()
    ]
    assert [line["step"] for line in lines if "uq/val/nll" in line.get("values", {})] == [0, 1, None]
    trainer(callback, max_epochs=1).fit(tiny_model(lightning.pytorch), loader(), VAL)
    assert len(list(store.runs())) == 2


def test_a_call_that_a_tracker_takes_late_joins_the_run_made_meanwhile(tmp_path):
    (late,) = (runs := GivenRuns([f"dir:{tmp_path}"], "m", {})).opened_once()
    (early,) = runs.opened_once()
    assert early.open().run.uri == late.open().run.uri == runs.opened_once()[0]


@pytest.mark.parametrize("is_up_before_the_end", [False, True])
def test_a_tracker_that_is_down_has_one_run_per_fit_after_sync(is_up_before_the_end, tmp_path, monkeypatch):
    monkeypatch.setattr("uq_tracking.tracking.health.Health._start", lambda self: None)  # only `sync` sends
    store, runs = FolderStore(tmp_path / "runs"), GivenRuns([f"dir:{tmp_path / 'runs'}"], "m", {})
    report = uq.evaluate([1.0, 2.0, 3.0], [1.1, 2.2, 2.7], [0.1, 0.2, 0.3])

    def down(*_):
        raise ConnectionError("down")

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", TrackingWarning)
        patch.setattr(FolderStore, "create", down)
        for _ in range(2):
            runs.forget()
            for step in (0, 1, None):
                uq.log(report, run=runs.opened_once(), step=step, figures=False)
    if is_up_before_the_end:
        runs.opened_once()[0].open()
    assert len(uq.sync().done) == 6
    assert [{step for step, _ in store.series(run)} for run in store.runs()] == [{0, 1, None}] * 2


def test_a_trial_of_one_batch_logs_nothing(tmp_path):
    trainer(UncertaintyCallback(), fast_dev_run=True).fit(tiny_model(lightning.pytorch), loader(), VAL)
    assert list(tmp_path.glob("uq_runs/*")) == []


def test_the_sanity_check_is_not_counted(tmp_path):
    run = tmp_path / "run"
    options = {"max_epochs": 1, "num_sanity_val_steps": 2}
    trainer(UncertaintyCallback(run=run, figures=False), **options).fit(
        tiny_model(lightning.pytorch), loader(), VAL
    )
    assert json.loads((run / "uq/val/report.json").read_text())["counts"]["n"] == 40


def test_a_callback_of_ones_own_can_be_derived_and_pickled():
    again = pickle.loads(pickle.dumps(UncertaintyCallback(keys=("a", "b", "c"), alpha=0.8)))
    assert isinstance(again, UncertaintyCallback)
    assert isinstance(again, lightning.pytorch.Callback)
    assert isinstance(again, pytorch_lightning.Callback)
    assert again.keys == ("a", "b", "c")
    assert again.options["alpha"] == 0.8
    assert again.state_key == "UncertaintyCallback"


@pytest.mark.slow
def test_the_module_loads_no_framework():
    code = (
        "import sys, uq_tracking.frameworks.lightning, uq_tracking.frameworks.sklearn;"
        "print([n for n in ('torch', 'lightning', 'pytorch_lightning', 'sklearn', 'matplotlib') if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.faults
def test_two_processes_log_their_union_once(tmp_path):
    """Both see the same scores, of all samples; NaN in one of them costs the epoch in both, and hangs neither."""
    script = Path(__file__).with_name("two_processes.py")
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, script, tmp_path], stdout=out, stderr=out, check=True, timeout=240)
    seen = {(epoch, rank): tmp_path / f"epoch{epoch}_rank{rank}" for epoch in range(3) for rank in range(2)}
    metrics = {key: json.loads(path.with_suffix(".json").read_text()) for key, path in seen.items()}
    model = tiny_model(lightning.pytorch)
    model.load_state_dict(torch.load(seen[1, 0].with_suffix(".pt"), weights_only=True))
    expected = report_of(model).scores
    for rank in range(2):
        assert_allclose(metrics[1, rank]["uq/val/nll"], expected["nll"], rtol=1e-5)
        assert_allclose(metrics[1, rank]["uq/val/ause_rmse"], expected["ause_rmse"], rtol=1e-4)
        assert np.isnan(metrics[2, rank]["uq/val/nll"])
    (csv_file,) = tmp_path.rglob("metrics.csv")
    with csv_file.open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["0", "1"]
    (report,) = tmp_path.rglob("report.json")
    assert json.loads(report.read_text())["counts"]["n"] == 40
    assert (tmp_path / "out").read_text().count("epoch 2 of val is not logged: 20 of 40 samples") == 1
