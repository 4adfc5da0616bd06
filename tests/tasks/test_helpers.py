"""Helpers of other libraries, and files, serve classification as they serve regression."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from typer.testing import CliRunner

import uq_tracking as uq
from uq_tracking.cli import app
from uq_tracking.errors import InvalidValueError, SettingsError
from uq_tracking.files import read_predictions
from uq_tracking.frameworks.lightning import UncertaintyCallback
from uq_tracking.frameworks.sklearn import evaluate_estimator, log_estimator
from uq_tracking.runs.read import logged_runs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
NAMES = np.array(["ash", "elm", "oak"])
Y = NAMES[(X[:, 0] + RNG.normal(size=600) > 0).astype(int) + (X[:, 1] > 0.5)]


def fitted():
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:300], Y[:300])


def test_a_classifier_is_scored_by_its_probabilities(tmp_path):
    model = fitted()
    report = evaluate_estimator(model, X[300:], Y[300:])
    labels = np.searchsorted(NAMES, Y[300:])
    expected = uq.evaluate(labels, probs=model.predict_proba(X[300:]), classes=list(NAMES))
    assert report == expected
    log_estimator(model, X[300:], Y[300:], run=f"dir:{tmp_path}", figures=False)
    (run,) = logged_runs(f"dir:{tmp_path}")
    assert run.method == "LogisticRegression"
    with pytest.raises(InvalidValueError, match="1 values that are not among the classes"):
        evaluate_estimator(model, X[:1], ["fir"])


def test_a_classifier_that_cannot_be_scored_is_refused():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        evaluate_estimator(LogisticRegression(), X, Y)
    with pytest.raises(
        SettingsError, match="SVC predicts no probabilities; wrap it in CalibratedClassifierCV"
    ):
        evaluate_estimator(SVC().fit(X[:50], Y[:50]), X, Y)
    both = np.stack([Y == "ash", Y == "elm"], axis=1)
    for model in (RandomForestClassifier(2), OneVsRestClassifier(LogisticRegression())):
        with pytest.raises(SettingsError, match="Classifier predicts several labels per sample"):
            evaluate_estimator(model.fit(X[:50], both[:50]), X, both)


@pytest.mark.slow
def test_a_file_of_probabilities_is_read_and_logged(tmp_path):
    labels, probs = np.searchsorted(NAMES, Y[300:]), fitted().predict_proba(X[300:])
    np.savez(tmp_path / "classes.npz", labels=labels, probs=probs)
    table = "labels,p_ash,p_elm,p_oak\n" + "\n".join(
        ",".join(map(repr, [int(y), *map(float, row)])) for y, row in zip(labels, probs, strict=True)
    )
    (tmp_path / "classes.csv").write_text(table)
    expected = uq.evaluate(labels, probs=probs)
    for name, columns in (("classes.npz", []), ("classes.csv", ["--columns", "labels=labels,probs=p_*"])):
        runs = tmp_path / f"runs-{name}"
        result = CliRunner().invoke(
            app, ["log", str(tmp_path / name), "--to", f"dir:{runs}", "--no-figures", *columns]
        )
        assert result.exit_code == 0, result.output
        (run,) = logged_runs(f"dir:{runs}")
        for key, value in expected.scores.items():
            assert_allclose(run.report().scores[key], value, rtol=1e-12, err_msg=key)
    saved = uq.Predictions.from_probs(labels, probs).save(tmp_path / "saved.npz")
    assert uq.evaluate(read_predictions(saved)) == expected
    with pytest.raises(SettingsError, match="no column looks like labels"):
        read_predictions(_without_labels(tmp_path, probs))


def _without_labels(folder, probs):
    np.savez(folder / "bare.npz", probs=probs)
    return folder / "bare.npz"


def test_the_callback_counts_classes():
    labels, probs = np.searchsorted(NAMES, Y[300:]), fitted().predict_proba(X[300:])
    callback = UncertaintyCallback(task="classification", ignore_label=255)
    trainer = SimpleNamespace(testing=True, num_test_batches=[3])
    callback.on_test_epoch_start(trainer, None)
    for start in range(0, 300, 100):
        part = slice(start, start + 100)
        outputs = {"labels": labels[part], "probs": probs[part]}
        callback.on_test_batch_end(trainer, None, outputs, None, start // 100)
    (counted,) = callback._counting
    assert_allclose(
        counted.compute().scores["brier"],
        uq.evaluate(labels, probs=probs).scores["brier"],
        rtol=1e-12,
    )
    with pytest.raises(SettingsError, match="name 2 entries"):
        UncertaintyCallback(task="classification", keys=("target", "mean", "std"))
