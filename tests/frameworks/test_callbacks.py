"""The callbacks of Hugging Face and Keras: what is logged when, and what bad predictions cost."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
import torch

import uq_tracking as uq
from uq_tracking.errors import EmptyInputError, SettingsError, TrackingWarning
from uq_tracking.frameworks import huggingface, keras
from uq_tracking.tracking.resolve import open_store

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]

X = np.random.default_rng(0).normal(size=(120, 3)).astype(np.float32)
Y = X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=120).astype(np.float32)


class Network(torch.nn.Linear):
    """Mean and std of a linear model; the std of the first sample can be spoiled."""

    spoiled = False

    def forward(self, x, labels=None):
        mean, log_std = super().forward(x).unbind(-1)
        std = log_std.exp()
        loss = torch.nn.functional.gaussian_nll_loss(mean, labels, std**2)
        return loss, mean, torch.full_like(std, -1.0) if self.spoiled else std


def hf_trainer(judge, folder, **options):
    from datasets import Dataset
    from transformers import Trainer, TrainingArguments

    torch.manual_seed(0)
    options = {"eval_strategy": "epoch", "num_train_epochs": 2, "save_strategy": "no", **options}
    arguments = TrainingArguments(str(folder / "out"), disable_tqdm=True, use_cpu=True, **options)
    data = Dataset.from_dict({"x": X, "labels": Y})
    sets = {"train_dataset": data, "eval_dataset": data}
    metrics = judge.compute_metrics
    return Trainer(Network(3, 2), arguments, **sets, compute_metrics=metrics, callbacks=[judge])


def lines_of(run):
    (stored,) = open_store(f"dir:{run.parent}")[0].runs()
    series = open_store(f"dir:{run.parent}")[0].series(stored)
    return stored, {step: value for (step, name), value in series.items() if name == "uq/val/crps"}


@pytest.mark.parametrize("batchwise", [False, True])
def test_hugging_face_logs_evaluations_at_steps_and_everything_at_the_end(tmp_path, batchwise):
    judge = huggingface.UncertaintyCallback(run=tmp_path / "runs/one", method="net", figures=False)
    trainer = hf_trainer(judge, tmp_path, batch_eval_metrics=batchwise)
    trainer.train()
    stored, series = lines_of(tmp_path / "runs/one")
    assert [step for step in series if step is not None] == [15, 30]
    output = trainer.predict(trainer.eval_dataset)
    wanted = uq.evaluate(Y, *output.predictions, statistics="sketch").scores
    assert series[30] == pytest.approx(wanted["crps"], rel=1e-6)
    assert output.metrics["test_crps"] == pytest.approx(wanted["crps"], rel=1e-6)
    assert stored.tags["uq.method"] == "net"
    assert (tmp_path / "runs/one/uq/val/report.json").is_file()
    assert (tmp_path / "runs/one/uq/test/report.json").is_file()


def test_hugging_face_chooses_the_best_model_by_a_score(tmp_path):
    judge = huggingface.UncertaintyCallback(run=tmp_path / "runs/one", figures=False)
    best = {"save_strategy": "epoch", "load_best_model_at_end": True, "metric_for_best_model": "crps"}
    trainer = hf_trainer(judge, tmp_path, greater_is_better=False, **best)
    trainer.train()
    scores = [line["eval_crps"] for line in trainer.state.log_history if "eval_crps" in line]
    assert trainer.state.best_metric == min(scores)


def test_bad_predictions_cost_hugging_face_a_warning_or_the_training(tmp_path):
    judge = huggingface.UncertaintyCallback(run=tmp_path / "runs/one", figures=False)
    trainer = hf_trainer(judge, tmp_path, num_train_epochs=1)
    trainer.model.spoiled = True
    with pytest.warns(
        TrackingWarning, match=r"an evaluation is not logged: .* y_std has 120 negative values"
    ):
        trainer.train()
    judge = huggingface.UncertaintyCallback(run=tmp_path / "runs/one", on_invalid="raise")
    trainer = hf_trainer(judge, tmp_path, num_train_epochs=1)
    trainer.model.spoiled = True
    with pytest.raises(EmptyInputError, match="y_std has 120 negative values"):
        trainer.train()
    assert not (tmp_path / "runs").exists()


def test_a_forgotten_compute_metrics_is_named(tmp_path):
    judge = huggingface.UncertaintyCallback(run=tmp_path / "runs/one")
    trainer = hf_trainer(judge, tmp_path, num_train_epochs=1)
    trainer.compute_metrics = None
    with pytest.warns(TrackingWarning, match="nothing was counted; pass Trainer"):
        trainer.train()


@pytest.mark.parametrize(
    "make", [huggingface.UncertaintyCallback, lambda **o: keras.UncertaintyCallback((X, Y), **o)]
)
def test_options_are_checked_when_a_callback_is_made(make):
    os.environ["KERAS_BACKEND"] = "torch"
    with pytest.raises(SettingsError, match="no option unitt; did you mean unit"):
        make(unitt="m")
    with pytest.raises(SettingsError, match="on_invalid is 'ignore'"):
        make(on_invalid="ignore")
    again = pickle.loads(pickle.dumps(make(alpha=0.8)))
    assert again.options["alpha"] == 0.8


@pytest.mark.parametrize("kind", ["arrays", "batches"])
def test_keras_logs_epochs_and_everything_at_the_end_and_stops_by_a_score(tmp_path, kind):
    os.environ["KERAS_BACKEND"] = "torch"
    import keras as framework

    framework.utils.set_random_seed(0)
    inputs = framework.Input((3,))
    mean = framework.layers.Dense(1)(inputs)
    std = framework.layers.Dense(1, activation="softplus")(inputs)
    model = framework.Model(inputs, framework.layers.Concatenate()([mean, std]))
    model.compile("adam", loss=lambda y, out: framework.ops.mean((y[:, 0] - out[:, 0]) ** 2))
    data = (X, Y) if kind == "arrays" else [(X[:50], Y[:50]), (X[50:], Y[50:])]
    judge = keras.UncertaintyCallback(data, run=tmp_path / "runs/one", figures=False)
    stop = framework.callbacks.EarlyStopping("uq/val/coverage_95", mode="max", patience=0, baseline=2.0)
    history = model.fit(X, Y[:, None], epochs=3, verbose=0, callbacks=[judge, stop]).history
    _, series = lines_of(tmp_path / "runs/one")
    epochs = len(history["uq/val/crps"])
    assert epochs < 3  # no coverage reaches 2
    wanted = uq.evaluate(Y, *model.predict(X, verbose=0).T, statistics="sketch").scores
    assert history["uq/val/crps"][-1] == pytest.approx(wanted["crps"], rel=1e-6)
    assert series[epochs - 1] == pytest.approx(wanted["crps"], rel=1e-6)
    assert (tmp_path / "runs/one/uq/val/report.json").is_file()
