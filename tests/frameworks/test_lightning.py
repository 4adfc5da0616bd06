"""The callback in real trainers of both Lightning packages, with the loggers that people use."""

from __future__ import annotations

import csv
import json
import math
import pickle
import re
import subprocess
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import InputTypeError, InvalidValueError, SettingsError, TrackingWarning
from uq_tracking.frameworks.lightning import UncertaintyCallback
from uq_tracking.tracking.resolve import open_store

from .tiny import loader, tiny_model

with warnings.catch_warnings():  # the packages' own imports warn
    warnings.simplefilter("ignore")
    import lightning.pytorch
    import mlflow
    import mlflow.store.tracking.sqlalchemy_store
    import pytorch_lightning
    from lightning.pytorch.callbacks import EarlyStopping
    from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, TensorBoardLogger, WandbLogger

pytestmark = [
    pytest.mark.filterwarnings(rf"ignore:::{package}(\.|$)")
    for package in ("lightning", "pytorch_lightning", "lightning_fabric", "torch")
]
VAL = loader(40, seed=1)


@contextmanager
def tracking_warning(match):
    """Like ``pytest.warns``, which would make errors of what Lightning and torch warn of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    found = [str(item.message) for item in caught if item.category is TrackingWarning]
    assert len(found) == 1, found
    assert re.search(match, found[0]), found


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def trainer(*callbacks, package=lightning.pytorch, **options):
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    options = {
        "max_epochs": 2,
        "accelerator": "cpu",
        "logger": False,
        "log_every_n_steps": 1,
        **quiet,
    } | options
    return package.Trainer(callbacks=list(callbacks), **options)


def report_of(model, data=VAL):
    x, y = data.dataset.tensors
    with torch.no_grad():
        mean, std = model(x)
    return uq.evaluate(y, mean, std)


def rows_of(logger):
    with Path(logger.log_dir, "metrics.csv").open() as file:
        return [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def mlflow_uri(tmp_path_factory):
    uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"
    mlflow.MlflowClient(uri).search_experiments()
    return uri


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
    assert [line["step"] for line in lines if "uq/val/nll" in line.get("scalars", {})] == [0, 1, None]
    assert (folder / "uq/val/report.json").is_file()


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


def test_lightning_can_watch_the_scores(tmp_path):
    stopping = EarlyStopping("uq/val/nll", patience=0, min_delta=100.0)
    made = trainer(UncertaintyCallback(run=tmp_path / "run", figures=False), stopping, max_epochs=9)
    made.fit(tiny_model(lightning.pytorch), loader(), VAL)
    assert made.current_epoch == 2  # the second epoch was no better by 100
    assert made.callback_metrics["uq/val/nll"] == pytest.approx(stopping.best_score.item(), abs=100)


def test_an_undefined_score_is_nan_for_lightning(tmp_path):
    def constant(outputs, stage, batch_idx):
        return outputs | {"std": torch.ones_like(outputs["std"])}

    made = trainer(UncertaintyCallback(run=tmp_path / "run", figures=False))
    made.validate(tiny_model(lightning.pytorch, constant), VAL)
    assert math.isnan(made.callback_metrics["uq_ranking/val/spearman"])
    assert made.callback_metrics["uq/val/rmse"] > 0


def test_the_step_can_be_the_optimizer_step(tmp_path):
    callback = UncertaintyCallback(run=tmp_path / "run", figures=False, step="global_step")
    trainer(callback).fit(tiny_model(lightning.pytorch), loader(), VAL)
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "uq/val/nll" in line.get("scalars", {})] == [3, 6, None]


def test_data_loaders_are_scored_one_by_one(tmp_path):
    run = tmp_path / "run"
    loaders = [VAL, loader(24, seed=2)]
    trainer(UncertaintyCallback(run=run, figures=False)).test(tiny_model(lightning.pytorch), loaders)
    counts = [json.loads((run / f"uq/test_{k}/report.json").read_text())["counts"]["n"] for k in (0, 1)]
    assert counts == [40, 24]


def test_a_stage_can_be_left_out(tmp_path):
    run = tmp_path / "run"
    callback = UncertaintyCallback(splits={"test": "holdout"}, run=run, figures=False)
    made, model = trainer(callback), tiny_model(lightning.pytorch)
    made.fit(model, loader(), VAL)
    assert not run.exists()
    made.test(model, VAL, verbose=False)
    assert [path.name for path in (run / "uq").iterdir()] == ["holdout"]


def test_interrupted_training_keeps_the_last_epoch(tmp_path):
    class Interrupt(lightning.pytorch.Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            if trainer.current_epoch == 1:
                raise RuntimeError("out of memory")

    callback = UncertaintyCallback(run=tmp_path / "run", figures=False)
    with pytest.raises(RuntimeError, match="out of memory"):
        trainer(callback, Interrupt()).fit(tiny_model(lightning.pytorch), loader(), VAL)
    assert (tmp_path / "run/uq/val/report.json").is_file()


READ = {
    "tuple": lambda outputs, batch: (batch[1], *outputs),
    "dict": lambda outputs, batch: {"y_true": batch[1], "y_pred": outputs[0], "y_std": outputs[1]},
    "predictions": lambda outputs, batch: uq.Predictions(batch[1], *outputs),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_a_function_reads_what_the_step_returned(read, tmp_path):
    model = tiny_model(lightning.pytorch, lambda outputs, *_: (outputs["mean"], outputs["std"]))
    callback = UncertaintyCallback(read=read, run=tmp_path / "run", figures=False, statistics="exact")
    trainer(callback).test(model, VAL)
    report = uq.Report.from_json(tmp_path / "run/uq/test/report.json")
    assert_allclose(report.scores["nll"], report_of(model).scores["nll"], rtol=1e-6)


def test_a_mask_leaves_samples_out(tmp_path):
    def read(outputs, batch):
        named = {"y_true": outputs["target"], "y_pred": outputs["mean"], "y_std": outputs["std"]}
        return named | {"mask": outputs["target"] > 0}

    trainer(UncertaintyCallback(read=read, run=tmp_path / "run", figures=False)).test(
        tiny_model(lightning.pytorch), VAL
    )
    counts = json.loads((tmp_path / "run/uq/test/report.json").read_text())["counts"]
    assert counts["n_masked"] == int((VAL.dataset.tensors[1] > 0).sum())


def test_entries_can_have_other_names(tmp_path):
    model = tiny_model(
        lightning.pytorch, lambda o, *_: {"y": o["target"], "mu": o["mean"], "sigma": o["std"]}
    )
    callback = UncertaintyCallback(keys=("y", "mu", "sigma"), run=tmp_path / "run", figures=False)
    trainer(callback).test(model, VAL)
    assert (tmp_path / "run/uq/test/report.json").is_file()


def test_batches_of_pictures_are_drawn(tmp_path):
    def pictures(outputs, stage, batch_idx):
        return {name: value.mean() + 0.1 * torch.rand(2, 16, 20) for name, value in outputs.items()}

    trainer(UncertaintyCallback(run=tmp_path / "run", figures=False, maps=3)).test(
        tiny_model(lightning.pytorch, pictures), VAL
    )
    assert sorted(path.name for path in (tmp_path / "run").glob("uq_map_*")) == [
        f"uq_map_test_{number}.png" for number in range(3)
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda *_: None,
            "validation_step returned NoneType, which lacks 'target', 'mean', 'std'",
        ),
        (lambda o, *_: o["mean"], "validation_step returned Tensor"),
        (lambda o, *_: {"loss": o["mean"]}, r"returned a dict of \['loss'\].*; return a dict with them"),
    ],
)
def test_a_step_that_returns_something_else_is_noticed_before_training(change, message):
    model = tiny_model(lightning.pytorch, change)
    made = trainer(UncertaintyCallback())
    with pytest.raises(InputTypeError, match=message):
        made.fit(model, loader(), VAL)
    assert made.global_step == 0


def test_a_function_that_reads_something_else_is_named():
    with pytest.raises(InputTypeError, match="read returned int; return"):
        trainer(UncertaintyCallback(read=lambda *_: 3)).fit(tiny_model(lightning.pytorch), loader(), VAL)


def spoiled(outputs, stage, batch_idx):
    if batch_idx == 1 and stage != "sanity_check":
        outputs["std"] = -outputs["std"]
    return outputs


@pytest.mark.parametrize("on_device", [None, True], ids=["on the host", "on the device"])
def test_bad_values_cost_the_epoch_a_warning_and_never_the_training(tmp_path, on_device):
    made = trainer(UncertaintyCallback(run=tmp_path / "run", on_device=on_device), max_epochs=1)
    with tracking_warning(r"epoch 0 of val is not logged: 16 of 40 samples .* on_invalid='drop'"):
        made.fit(tiny_model(lightning.pytorch, spoiled), loader(), VAL)
    assert made.global_step == 3
    assert math.isnan(made.callback_metrics["uq/val/nll"])
    assert not (tmp_path / "run").exists()


def test_bad_values_can_be_dropped_or_raised(tmp_path):
    model = tiny_model(lightning.pytorch, spoiled)
    trainer(UncertaintyCallback(on_invalid="drop", run=tmp_path / "run", figures=False)).test(model, VAL)
    counts = json.loads((tmp_path / "run/uq/test/report.json").read_text())["counts"]
    assert (counts["n"], counts["n_invalid"]) == (24, 16)
    with pytest.raises(InvalidValueError, match="16 of 40 samples"):
        trainer(UncertaintyCallback(on_invalid="raise")).test(model, VAL)


def test_tensors_counted_on_the_device_give_the_same_scores(tmp_path):
    model = tiny_model(lightning.pytorch)
    trainer(UncertaintyCallback(run=tmp_path / "run", figures=False, on_device=True)).test(model, VAL)
    report = uq.Report.from_json(tmp_path / "run/uq/test/report.json")
    assert_allclose(report.scores["nll"], report_of(model).scores["nll"], rtol=1e-4)


def test_an_epoch_without_truth_is_a_warning(tmp_path):
    model = tiny_model(lightning.pytorch, lambda o, *_: o | {"target": o["target"] * math.nan})
    with tracking_warning("epoch 0 of test is not logged: no sample was counted in 3 batches"):
        trainer(UncertaintyCallback(run=tmp_path / "run")).test(model, VAL)


class BrokenLogger(Logger):
    name, version = "broken", 0

    def log_hyperparams(self, *_, **__): ...

    def log_metrics(self, metrics, step=None):
        if "uq/val/nll" in metrics:
            raise OSError("disk full")


def test_a_logger_that_fails_costs_a_warning(tmp_path):
    made = trainer(UncertaintyCallback(figures=False), logger=BrokenLogger(), max_epochs=1)
    with tracking_warning("BrokenLogger did not take the scores. OSError: disk full"):
        made.fit(tiny_model(lightning.pytorch), loader(), VAL)
    assert list(tmp_path.glob("uq_runs/*/uq/val/report.json"))  # a logger without a folder: where log goes
    with pytest.raises(OSError, match="disk full"):
        trainer(UncertaintyCallback(strict=True), logger=BrokenLogger()).fit(
            tiny_model(lightning.pytorch), loader(), VAL
        )


def test_a_tracker_that_fails_costs_a_warning(mlflow_uri, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    logger = MLFlowLogger("fails", tracking_uri=mlflow_uri, artifact_location=str(tmp_path / "artifacts"))
    monkeypatch.setattr(mlflow.MlflowClient, "log_artifact", fail)
    made = trainer(UncertaintyCallback(figures=False), max_epochs=1, logger=logger)
    with tracking_warning("did not take uq/val/report.json .*disk full.* Everything is kept in"):
        made.fit(tiny_model(lightning.pytorch), loader(), VAL)
    assert made.global_step == 3
    assert len(list(tmp_path.glob("uq_runs/spool/*.zip"))) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": "mean"}, "keys is 'mean'; name 3 entries"),
        ({"splits": {"fit": "val"}}, "its keys are the stages 'validate' and 'test'"),
        ({"splits": {"test": "a/b"}}, "split is 'a/b'"),
        ({"step": "batch"}, "step is 'batch'; choose 'epoch' or 'global_step'"),
        ({"on_invalid": "ignore"}, "on_invalid is 'ignore'"),
        ({"alpha": 2}, "alpha is 2"),
        ({"metrics": ["nlll"]}, "nlll"),
    ],
)
def test_options_are_checked_when_the_callback_is_made(options, message):
    with pytest.raises(SettingsError, match=message):
        UncertaintyCallback(**options)


def test_a_callback_of_ones_own_can_be_derived_and_pickled():
    again = pickle.loads(pickle.dumps(UncertaintyCallback(keys=("a", "b", "c"), alpha=0.8)))
    assert isinstance(again, UncertaintyCallback)
    assert isinstance(again, lightning.pytorch.Callback)
    assert isinstance(again, pytorch_lightning.Callback)
    assert again.keys == ("a", "b", "c")
    assert again.options["alpha"] == 0.8
    assert again.state_key == "UncertaintyCallback"


def test_the_module_loads_no_framework():
    code = (
        "import sys, uq_tracking.frameworks.lightning, uq_tracking.frameworks.sklearn;"
        "print([n for n in ('torch', 'lightning', 'pytorch_lightning', 'sklearn', 'matplotlib') if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


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
