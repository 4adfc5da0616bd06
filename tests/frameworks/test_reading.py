"""What callbacks make of a model's outputs and labels, and what they say before training; no framework is needed."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import InputTypeError, InvalidValueError, SettingsError, ShapeError, TrackingWarning
from uq_tracking.frameworks import huggingface, keras
from uq_tracking.frameworks.training import TrainingCallback

RNG = np.random.default_rng(0)
N = 120
LABELS = RNG.integers(0, 3, N)
LOGITS = RNG.normal(size=(N, 3)) + 2 * np.eye(3)[LABELS]
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
PAIR = np.stack([PROBS[:, 0], 1 - PROBS[:, 0]], axis=1)
MEAN, STD = RNG.normal(size=N), RNG.uniform(0.5, 1, N)
TRUTH = MEAN + STD * RNG.normal(size=N)
BOTH_ROADS = r"task='classification' for class probabilities, logits=True for logits, .*mean.* std"


class Judge(TrainingCallback):
    @staticmethod
    def framework_bases():
        return (object,)


class KerasJudge(Judge, keras.UncertaintyCallback):
    pass


class HuggingFaceJudge(Judge, huggingface.UncertaintyCallback):
    pass


def scores_of(judge, outputs, labels):
    arguments = judge._read_outputs(outputs, labels)
    counted = judge._empty()
    counted.update(**arguments)
    return dict(counted.compute().scores)


@pytest.mark.parametrize(
    ("outputs", "labels", "options", "wanted"),
    [
        (PROBS, LABELS, {}, {"probs": PROBS}),
        (PROBS, LABELS[:, None], {}, {"probs": PROBS}),
        (PROBS[:3], LABELS[:3], {}, {"probs": PROBS[:3]}),
        (LOGITS, LABELS, {"logits": True}, {"probs": LOGITS, "logits": True}),
        (LOGITS[:3], LABELS[:3], {"logits": True}, {"probs": LOGITS[:3], "logits": True, "class_axis": -1}),
        (PAIR, (LABELS > 0), {}, {"probs": PAIR}),
        (LOGITS[:, :2], LABELS % 2, {"logits": True}, {"probs": LOGITS[:, :2], "logits": True}),
        (PAIR, LABELS % 2, {"classes": ["low", "high"]}, {"probs": PAIR}),
        (PROBS[:, :1], LABELS % 2, {}, {"probs": PROBS[:, 0]}),
        (PROBS[:, :1], LABELS[:, None] % 2.0, {}, {"probs": PROBS[:, 0]}),
        (PROBS[:, 0], LABELS > 0, {}, {"probs": PROBS[:, 0]}),
    ],
)
def test_class_probabilities_are_recognized(outputs, labels, options, wanted):
    labels_of_samples = labels.reshape(len(labels)).astype(int)
    expected = uq.evaluate(labels_of_samples, **wanted, statistics="sketch").scores
    assert scores_of(Judge(**options), outputs, labels) == pytest.approx(dict(expected), nan_ok=True)


@pytest.mark.parametrize(
    ("outputs", "truth"),
    [
        (np.stack([MEAN, STD], axis=-1), TRUTH),
        (np.stack([MEAN, STD], axis=-1), TRUTH[:, None]),
        ([MEAN[:, None], STD[:, None]], TRUTH),
        ([MEAN[:, None], STD], TRUTH[:, None]),
        ([MEAN[:, None], STD[:, None]], TRUTH[:, None]),
    ],
)
def test_a_column_is_as_good_as_an_axis_less(outputs, truth):
    expected = uq.evaluate(TRUTH, MEAN, STD, statistics="sketch").scores
    assert scores_of(Judge(), outputs, truth) == pytest.approx(dict(expected), nan_ok=True)


def test_whole_numbers_with_a_mean_and_a_std_are_counts_if_an_option_says_so():
    counts = np.round(5 * np.abs(TRUTH)).astype(int)
    outputs = np.stack([5 * np.abs(MEAN), STD], axis=-1)
    wanted = uq.evaluate(counts, outputs[:, 0], STD, statistics="sketch").scores["crps"]
    for options in ({"task": "regression"}, {"unit": "bikes"}):
        assert scores_of(Judge(**options), outputs, counts)["crps"] == wanted
    assert scores_of(Judge(), (outputs[:, 0], STD), counts)["crps"] == wanted
    with pytest.raises(
        SettingsError, match=f"two columns for labels that are whole numbers; pass {BOTH_ROADS}"
    ):
        scores_of(Judge(), outputs, counts)


@pytest.mark.parametrize("outputs", [PROBS[:, :1], PROBS[:, 0], {"mean": MEAN}, PROBS])
def test_what_is_neither_names_both_roads(outputs):
    with pytest.raises(InputTypeError, match=BOTH_ROADS):
        scores_of(Judge(), LOGITS[:, :1], LABELS % 2)
    with pytest.raises(
        InputTypeError, match=f"not a mean and a std as two outputs or columns; pass {BOTH_ROADS}"
    ):
        scores_of(Judge(), outputs, TRUTH)


def test_options_of_another_task_and_a_read_of_one_argument_are_refused_when_the_callback_is_made():
    with pytest.raises(
        SettingsError, match="task is 'regression', but classes cannot be used with a forecast of"
    ):
        Judge(task="regression", classes=["a", "b"])
    with pytest.raises(
        SettingsError, match="read cannot be called with two arguments, the outputs and the labels"
    ):
        Judge(read=lambda evaluated: evaluated.predictions)
    assert Judge(read=max).task is None  # a compiled function does not tell its arguments
    judge = Judge(classes=["a", "b"], read=lambda outputs, labels: (labels, *outputs))
    with pytest.raises(SettingsError, match=r"^classes cannot be used with a forecast of numbers; omit it$"):
        scores_of(judge, (MEAN, STD), TRUTH)


def keras_judge(outputs, labels, **options):
    judge = KerasJudge((np.zeros((N, 3)), labels), **options)
    predicted = []
    judge.model = SimpleNamespace(
        predict=lambda inputs, verbose: predicted.append(len(inputs)) or outputs[: len(inputs)]
    )
    return judge, predicted


BEFORE = "no prediction of val could be scored in the sanity check: "


@pytest.mark.parametrize(
    ("outputs", "labels", "error", "told"),
    [
        (LOGITS, LABELS, InvalidValueError, f"{BEFORE}.*logits=True"),
        (LOGITS[:, :2], LABELS % 2, SettingsError, BOTH_ROADS),
        (MEAN, TRUTH, InputTypeError, BOTH_ROADS),
        (np.stack([MEAN, STD], axis=-1), np.stack([TRUTH, TRUTH], axis=-1), ShapeError, "shapes differ"),
        (np.stack([MEAN, -STD], axis=-1), TRUTH, InvalidValueError, f"{BEFORE}if std is a log variance, let"),
    ],
)
def test_keras_reads_a_few_predictions_before_training(outputs, labels, error, told, in_own_folder):
    judge, predicted = keras_judge(outputs, labels)
    with pytest.raises(error, match=told):
        judge.on_train_begin()
    assert predicted == [8]


def test_keras_counts_inputs_and_labels_when_the_callback_is_made():
    with pytest.raises(ShapeError, match="the inputs have 120 samples, the labels 100"):
        KerasJudge((np.zeros((120, 3)), TRUTH[:100]))


def test_what_stays_unscorable_warns_once_with_its_cure_first(in_own_folder):
    log_variances = np.where(np.arange(N) < 8, STD, np.log(STD))
    judge, _ = keras_judge(np.stack([MEAN, log_variances], axis=-1), TRUTH)
    judge.on_train_begin()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for epoch in range(3):
            judge.on_epoch_end(epoch, {})
    (told,) = [str(warning.message) for warning in found]
    cure = "if std is a log variance, let read= return Predictions.from_log_variance(truth, mean, log_variance); "
    assert told.startswith(f"epoch 0 of val is not logged: {cure}112 of 120 samples are bad")
    read = lambda out, truth: uq.Predictions.from_log_variance(truth, out[:, 0], out[:, 1])  # noqa: E731
    judge, _ = keras_judge(
        np.stack([MEAN, 2 * np.log(STD)], axis=-1), TRUTH, read=read, run="dir:runs", figures=False
    )
    judge.on_train_begin()
    logs = {}
    judge.on_epoch_end(0, logs)
    assert logs["uq/val/crps"] == pytest.approx(
        uq.evaluate(TRUTH, MEAN, STD, statistics="sketch").scores["crps"]
    )


def test_a_training_of_hugging_face_without_evaluation_warns_once():
    state = SimpleNamespace(is_world_process_zero=True)
    with pytest.warns(TrackingWarning, match="training evaluated nothing, so nothing is logged yet"):
        HuggingFaceJudge().on_train_end(SimpleNamespace(eval_strategy="no"), state, None)


def test_a_classifier_of_transformers_returns_logits():
    heads = type(
        "Head", (), {"__module__": "transformers.models.bert", "config": SimpleNamespace(num_labels=2)}
    )
    head = type("BertForTokenClassification", (heads,), {"__module__": "transformers.models.bert"})()
    judge = HuggingFaceJudge(classes=["neg", "pos"])
    judge.on_prediction_step(None, SimpleNamespace(global_step=1), None, model=head)
    expected = uq.evaluate(LABELS % 2, probs=LOGITS[:, :2], logits=True, statistics="sketch").scores
    assert scores_of(judge, LOGITS[:, :2], LABELS % 2) == pytest.approx(dict(expected), nan_ok=True)
    other = HuggingFaceJudge()
    head.config = SimpleNamespace(num_labels=2, problem_type="regression")
    other.on_prediction_step(None, SimpleNamespace(global_step=1), None, model=head)
    with pytest.raises(SettingsError, match=BOTH_ROADS):
        scores_of(other, LOGITS[:, :2], LABELS % 2)


def test_an_evaluation_before_training_stops_what_cannot_be_scored():
    judge = HuggingFaceJudge()
    judge._is_training = True
    evaluated = SimpleNamespace(predictions=(MEAN, -STD), label_ids=TRUTH)
    judge.on_prediction_step(None, SimpleNamespace(global_step=0), None)
    with pytest.raises(
        InvalidValueError, match="no prediction of an evaluation could be scored in the sanity check"
    ):
        judge.compute_metrics(evaluated)
    judge = HuggingFaceJudge()
    judge._is_training = True
    judge.on_prediction_step(None, SimpleNamespace(global_step=1), None)
    with pytest.warns(TrackingWarning, match="an evaluation is not logged"):
        assert judge.compute_metrics(evaluated) == {}
