"""What the Lightning callback reads of each step, and when it counts."""

from __future__ import annotations

import json
import math
import warnings

import pytest
import torch
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import InputTypeError
from uq_tracking.frameworks.lightning import UncertaintyCallback

from .tiny import loader, tiny_model
from .trainers import QUIET, VAL, report_of, trainer

with warnings.catch_warnings():  # the packages' own imports warn
    warnings.simplefilter("ignore")
    import lightning.pytorch
    from lightning.pytorch.callbacks import EarlyStopping
    from lightning.pytorch.utilities import CombinedLoader

pytestmark = [*QUIET, pytest.mark.usefixtures("in_own_folder"), pytest.mark.slow]


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
    assert [line["step"] for line in lines if "uq/val/nll" in line.get("values", {})] == [3, 6, None]


def test_data_loaders_are_scored_one_by_one(tmp_path):
    run = tmp_path / "run"
    loaders = [VAL, loader(24, seed=2)]
    trainer(UncertaintyCallback(run=run, figures=False)).test(tiny_model(lightning.pytorch), loaders)
    counts = [json.loads((run / f"uq/test_{k}/report.json").read_text())["counts"]["n"] for k in (0, 1)]
    assert counts == [40, 24]


@pytest.mark.parametrize("mode", ["max_size", "min_size"])
def test_data_loaders_that_are_read_together_are_one_split(tmp_path, mode):
    class Together(type(tiny_model(lightning.pytorch))):
        def validation_step(self, batch, batch_idx):
            return super().validation_step(batch["a"], batch_idx)

    made = trainer(UncertaintyCallback(run=tmp_path / "run", figures=False), max_epochs=1)
    made.fit(Together(), loader(), CombinedLoader({"a": VAL, "b": VAL}, mode))
    assert [path.name for path in (tmp_path / "run/uq").iterdir()] == ["val"]
    assert "uq/val/nll" in made.callback_metrics


def test_a_stage_can_be_left_out(tmp_path):
    run = tmp_path / "run"
    callback = UncertaintyCallback(splits={"test": "holdout"}, run=run, figures=False)
    made, model = trainer(callback), tiny_model(lightning.pytorch)
    made.fit(model, loader(), VAL)
    assert not run.exists()
    made.test(model, VAL, verbose=False)
    assert [path.name for path in (run / "uq").iterdir()] == ["holdout"]


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
    with pytest.raises(InputTypeError, match="what read returned is of type int; it must be"):
        trainer(UncertaintyCallback(read=lambda *_: 3)).fit(tiny_model(lightning.pytorch), loader(), VAL)


def test_a_dict_of_other_names_is_named():
    read = {"target": lambda o, _: o, "y_pred": lambda o, _: {"y_pred": o["mean"]}}
    for name, function in read.items():
        with pytest.raises(
            InputTypeError, match=rf"dict of \[.*'{name}'.*Accumulator.update: y_true, y_pred"
        ):
            trainer(UncertaintyCallback(read=function)).fit(tiny_model(lightning.pytorch), loader(), VAL)


def test_tensors_counted_on_the_device_give_the_same_scores(tmp_path):
    model = tiny_model(lightning.pytorch)
    trainer(UncertaintyCallback(run=tmp_path / "run", figures=False, on_device=True)).test(model, VAL)
    report = uq.Report.from_json(tmp_path / "run/uq/test/report.json")
    assert_allclose(report.scores["nll"], report_of(model).scores["nll"], rtol=1e-4)
