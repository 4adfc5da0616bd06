"""What goes wrong costs a warning, never the training."""

from __future__ import annotations

import json
import math
import warnings

import pytest
import torch

from uq_tracking.errors import InvalidValueError, SettingsError, UnknownBackendError
from uq_tracking.frameworks.lightning import UncertaintyCallback

from .tiny import loader, tiny_model
from .trainers import QUIET, VAL, tracking_warning, trainer

with warnings.catch_warnings():  # the packages' own imports warn
    warnings.simplefilter("ignore")
    import lightning.pytorch
    import mlflow
    import mlflow.store.tracking.sqlalchemy_store
    from lightning.pytorch.loggers import Logger, MLFlowLogger

pytestmark = [*QUIET, pytest.mark.usefixtures("in_own_folder")]


@pytest.mark.slow
def test_interrupted_training_keeps_the_last_epoch(tmp_path):
    class Interrupt(lightning.pytorch.Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            if trainer.current_epoch == 1:
                raise RuntimeError("out of memory")

    callback = UncertaintyCallback(run=tmp_path / "run", figures=False)
    with pytest.raises(RuntimeError, match="out of memory"):
        trainer(callback, Interrupt()).fit(tiny_model(lightning.pytorch), loader(), VAL)
    assert (tmp_path / "run/uq/val/report.json").is_file()


def spoiled(outputs, stage, batch_idx):
    if batch_idx == 1 and stage != "sanity_check":
        outputs["std"] = -outputs["std"]
    return outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("on_device", "first"),
    [
        (None, r"in batch 1, y_std has 16 negative values \(first at index \(0,\)\)"),
        (True, r"16 negative values in y_std \(first in batch 1, on cpu\)"),
    ],
    ids=["on the host", "on the device"],
)
def test_bad_values_cost_the_epoch_a_warning_and_never_the_training(tmp_path, on_device, first):
    made = trainer(UncertaintyCallback(run=tmp_path / "run", on_device=on_device), max_epochs=1)
    with tracking_warning(
        f"epoch 0 of val is not logged: .*16 of 40 samples .* on_invalid='drop' .*First: {first}"
    ):
        made.fit(tiny_model(lightning.pytorch, spoiled), loader(), VAL)
    assert made.global_step == 3
    assert math.isnan(made.callback_metrics["uq/val/nll"])
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_bad_values_can_be_dropped_or_raised(tmp_path):
    model = tiny_model(lightning.pytorch, spoiled)
    trainer(UncertaintyCallback(on_invalid="drop", run=tmp_path / "run", figures=False)).test(model, VAL)
    counts = json.loads((tmp_path / "run/uq/test/report.json").read_text())["counts"]
    assert (counts["n"], counts["n_invalid"]) == (24, 16)
    with pytest.raises(InvalidValueError, match="16 of 40 samples"):
        trainer(UncertaintyCallback(on_invalid="raise")).test(model, VAL)


def test_an_epoch_without_truth_is_a_warning(tmp_path):
    model = tiny_model(lightning.pytorch, lambda o, *_: o | {"target": o["target"] * math.nan})
    with tracking_warning("epoch 0 of test is not logged: no samples were counted in 3 batches"):
        trainer(UncertaintyCallback(run=tmp_path / "run")).test(model, VAL)


def logits(outputs, *_):
    return {
        "labels": outputs["mean"] > 0,
        "probs": torch.stack([outputs["mean"], -2 * outputs["mean"]], dim=-1),
    }


def test_logits_that_are_not_announced_stop_the_training_before_it_begins(tmp_path):
    told = "in batch 0, probs of 16 samples are negative .*; pass logits=True if these are logits"
    made = trainer(UncertaintyCallback(task="classification", run=tmp_path / "run"), max_epochs=1)
    with pytest.raises(InvalidValueError, match=f"no prediction of val could be scored .*: {told}"):
        made.fit(tiny_model(lightning.pytorch, logits), loader(), VAL)
    assert made.global_step == 0
    with tracking_warning(f"epoch 0 of val is not logged: no samples were counted in 3 batches: .*; {told}"):
        made.validate(tiny_model(lightning.pytorch, logits), VAL)


class BrokenLogger(Logger):
    name, version = "broken", 0

    def log_hyperparams(self, *_, **__): ...

    def log_metrics(self, metrics, step=None):
        if "uq/val/nll" in metrics:
            raise OSError("disk full")


@pytest.mark.slow
def test_a_logger_that_fails_costs_a_warning(tmp_path):
    made = trainer(UncertaintyCallback(figures=False), logger=BrokenLogger(), max_epochs=1)
    with tracking_warning("BrokenLogger did not take the scores. OSError: disk full"):
        made.fit(tiny_model(lightning.pytorch), loader(), VAL)
    assert list(tmp_path.glob("uq_runs/*/uq/val/report.json"))  # a logger without a folder: where log goes
    with pytest.raises(OSError, match="disk full"):
        trainer(UncertaintyCallback(strict=True), logger=BrokenLogger()).fit(
            tiny_model(lightning.pytorch), loader(), VAL
        )


@pytest.mark.slow
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
        ({"keys": 5}, "keys is 5; name 3 entries"),
        ({"task": [1]}, r"task is \[1\]; choose 'regression'"),
        ({"splits": {"fit": "val"}}, "pass the name of each stage's split"),
        ({"splits": "val"}, "splits is 'val'; pass the name of each stage's split"),
        ({"splits": {"test": None}}, "splits has no name for 'test'"),
        ({"splits": {"validate": "a", "test": "a"}}, "name the stages differently"),
        ({"splits": {"test": "a/b"}}, "split is 'a/b'"),
        ({"step": "batch"}, "step is 'batch'; choose 'epoch' or 'global_step'"),
        ({"on_invalid": "ignore"}, "on_invalid is 'ignore'"),
        ({"alpha": 2}, "alpha is 2"),
        ({"metrics": ["nlll"]}, "nlll"),
        ({"unitt": "m"}, "UncertaintyCallback has no option unitt; did you mean unit"),
        ({"read": 3}, "read is 3; pass a function"),
        ({"scores": "some"}, "scores is 'some'; choose 'headline' or 'all'"),
        ({"method": 4}, "method is 4"),
        ({"tags": ["a"]}, "tags is a list"),
        ({"figures": "yes"}, "figures is 'yes'"),
        ({"strict": "x"}, "strict is 'x'; pass True or False"),
        ({"run": 5}, "run=5 is not a run of"),
        ({"run": [None]}, "run=None is not a run of"),
        ({"run": ["dir:x", "dir: "]}, "run='dir: ' names no place"),
        ({"run": "mlfow:x"}, "no installed backend is called 'mlfow'"),
    ],
)
def test_options_are_checked_when_the_callback_is_made(options, message):
    with pytest.raises((SettingsError, UnknownBackendError), match=message):
        UncertaintyCallback(**options)


def test_the_id_of_a_run_is_looked_up_before_training():
    made = trainer(UncertaintyCallback(run="no-such-run"))
    with pytest.raises(SettingsError, match="run='no-such-run' is not a run of"):
        made.fit(tiny_model(lightning.pytorch), loader(), VAL)
    assert made.global_step == 0
