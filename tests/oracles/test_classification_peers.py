"""The literal classification scores against independent libraries, wherever the conventions agree."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from torchmetrics.functional import classification as tm

from . import datasets
from .classification import LITERAL, confidences, equal_width, hits, sparsification_brier
from .literal import UndefinedScoreError, mean

CONTINUOUS = ["calibrated", "overconfident", "binary"]
ALL = [*CONTINUOUS, "dyadic", "absent_classes", "hot", "small_7"]


def literal(key, data):
    return LITERAL[key](data.labels.tolist(), data.probs.tolist())


def tensors(data):
    return torch.from_numpy(data.probs), torch.from_numpy(data.labels)


@pytest.mark.parametrize("name", ALL)
def test_accuracy_entropy_and_brier(name):
    d = datasets.CLASSIFICATION[name]()
    assert_allclose(literal("accuracy", d), sk.accuracy_score(d.labels, d.probs.argmax(axis=1)), rtol=1e-14)
    one_hot = np.eye(d.probs.shape[1])[d.labels]
    assert_allclose(literal("brier", d), np.mean(np.sum((d.probs - one_hot) ** 2, axis=1)), rtol=1e-12)
    logs = np.log(d.probs, where=d.probs > 0, out=np.zeros_like(d.probs))
    assert_allclose(literal("entropy_mean", d), -np.mean(np.sum(d.probs * logs, axis=1)), rtol=1e-12, atol=0)


def test_binary_brier_is_twice_the_one_sided_score():
    d = datasets.CLASSIFICATION["binary"]()
    assert_allclose(literal("brier", d), 2 * sk.brier_score_loss(d.labels, d.probs[:, 1]), rtol=1e-12)


@pytest.mark.parametrize("name", [*CONTINUOUS, "absent_classes"])
def test_log_loss(name):
    d = datasets.CLASSIFICATION[name]()
    classes = np.arange(d.probs.shape[1])
    assert_allclose(literal("nll", d), sk.log_loss(d.labels, d.probs, labels=classes), rtol=1e-10)


def test_log_loss_of_an_impossible_class_is_undefined():
    with pytest.raises(UndefinedScoreError, match="infinite"):
        literal("nll", datasets.dyadic())


@pytest.mark.parametrize("name", [*CONTINUOUS, "absent_classes"])
@pytest.mark.parametrize(("key", "norm"), [("ece", "l1"), ("mce", "max")])
def test_calibration_errors_of_equal_width_bins(key, norm, name):
    d = datasets.CLASSIFICATION[name]()
    probs, labels = tensors(d)
    if d.probs.shape[1] == 2:
        peer = tm.binary_calibration_error(probs[:, 1].contiguous(), labels, n_bins=10, norm=norm)
    else:
        peer = tm.multiclass_calibration_error(
            probs, labels, num_classes=d.probs.shape[1], n_bins=10, norm=norm
        )
    assert_allclose(literal(key, d), peer.item(), rtol=1e-6)  # the peer bins in float32


@pytest.mark.parametrize("name", ["calibrated", "overconfident", "absent_classes"])
def test_calibration_error_of_each_class_against_the_rest(name):
    d = datasets.CLASSIFICATION[name]()
    probs, labels = tensors(d)
    peers = [
        tm.binary_calibration_error(
            probs[:, c].contiguous(), (labels == c).int(), n_bins=10, norm="l1"
        ).item()
        for c in range(d.probs.shape[1])
    ]
    assert_allclose(literal("cwece", d), np.mean(peers), rtol=1e-6)
    gaps = d.probs.mean(axis=0) - np.bincount(d.labels, minlength=d.probs.shape[1]) / len(d.labels)
    assert_allclose(literal("worst_class_gap", d), np.abs(gaps).max(), rtol=1e-9)


def test_calibration_error_of_the_top_label_of_two_classes():
    d = datasets.CLASSIFICATION["binary"]()
    peer = tm.multiclass_calibration_error(*tensors(d), num_classes=2, n_bins=10, norm="l1")
    assert_allclose(literal("ece_top", d), peer.item(), rtol=1e-6)


def test_calibration_curves_of_the_event():
    """Bins are scikit-learn's, apart from samples exactly at their edges."""
    d = datasets.CLASSIFICATION["binary"]()
    p = d.probs[:, 1]
    observed, stated = calibration_curve(d.labels, p, n_bins=10, strategy="uniform")
    rows = equal_width(p.tolist(), d.labels.astype(float).tolist(), 10)
    assert_allclose([row[1] for row in rows], observed, rtol=1e-12)
    assert_allclose([row[2] for row in rows], stated, rtol=1e-12)
    observed, stated = calibration_curve(d.labels, p, n_bins=10, strategy="quantile")
    assert_allclose(literal("ace", d), np.mean(np.abs(observed - stated)), atol=1e-3)


@pytest.mark.parametrize("name", ["binary"])
@pytest.mark.slow
def test_discrimination_and_odds_of_the_event(name):
    d = datasets.CLASSIFICATION[name]()
    p = d.probs[:, 1]
    assert_allclose(literal("auroc", d), sk.roc_auc_score(d.labels, p), rtol=1e-12)
    assert_allclose(literal("average_precision", d), sk.average_precision_score(d.labels, p), rtol=1e-12)
    x = np.log(p / (1 - p))[:, None]
    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, d.labels)
    assert_allclose(literal("cal_slope", d), fit.coef_[0, 0], rtol=1e-5)
    right = d.probs.argmax(axis=1) == d.labels
    assert_allclose(literal("failure_auroc", d), sk.roc_auc_score(right, d.probs.max(axis=1)), rtol=1e-12)


def test_a_bin_holds_its_left_edge_and_the_last_one_both():
    """A confidence of .5 belongs to [.5, .6), and certainty to the last bin, which is closed."""
    probs = [[0.5, 0.5], [0.5, 0.5], [0.55, 0.45], [1.0, 0.0], [1.0, 0.0]]
    rows = equal_width(confidences(probs), hits([0, 1, 0, 0, 1], probs), 10)
    assert [row[0] for row in rows] == [3, 2]
    assert rows[1][1:] == (0.5, 1.0)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_equal_count_bins_without_ties_are_those_of_array_split(name):
    d = datasets.CLASSIFICATION[name]()
    confidence, right = d.probs.max(axis=1), d.probs.argmax(axis=1) == d.labels
    if d.probs.shape[1] == 2:
        confidence, right = d.probs[:, 1], d.labels
    bins = np.array_split(np.argsort(confidence), 10)
    expected = np.mean([abs(right[b].mean() - confidence[b].mean()) for b in bins])
    assert_allclose(literal("ace", d), expected, rtol=1e-11)


@pytest.mark.parametrize("name", [*CONTINUOUS, "absent_classes", "dyadic"])
def test_intersection_over_union_of_the_classes_that_occur(name):
    d = datasets.CLASSIFICATION[name]()
    predicted = d.probs.argmax(axis=1)
    occurring = np.union1d(d.labels, predicted)
    peer = sk.jaccard_score(d.labels, predicted, labels=occurring, average="macro", zero_division=0)
    assert_allclose(literal("miou", d), peer, rtol=1e-12)
    peer = sk.f1_score(d.labels, predicted, labels=occurring, average="macro", zero_division=0)
    assert_allclose(literal("mdice", d), peer, rtol=1e-12)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_risk_coverage_without_ties_by_cumulative_sums(name):
    d = datasets.CLASSIFICATION[name]()
    wrong = (d.probs.argmax(axis=1) != d.labels)[np.argsort(-d.probs.max(axis=1))]
    risk = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    assert_allclose(literal("aurc", d), risk.mean(), rtol=1e-11)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_sparsification_without_ties_by_cumulative_sums(name):
    d = datasets.CLASSIFICATION[name]()
    n = len(d.labels)
    scores = np.sum((d.probs - np.eye(d.probs.shape[1])[d.labels]) ** 2, axis=1)
    entropies = -np.sum(d.probs * np.log(d.probs), axis=1)
    at = np.array([max(1, n * (100 - i) // 100) - 1 for i in range(100)])
    running = partial(lambda v: (np.cumsum(v) / np.arange(1, n + 1))[at] / v.mean())
    model, oracle = running(scores[np.argsort(entropies)]), running(np.sort(scores))
    curve = sparsification_brier(d.labels.tolist(), d.probs.tolist())
    assert_allclose(curve["model"], model, rtol=1e-10)
    assert_allclose(curve["oracle"], oracle, rtol=1e-10)
    assert_allclose(literal("ause_brier", d), np.trapezoid(model - oracle, dx=0.01), rtol=1e-9)


def test_a_perfect_classifier():
    d = datasets.hot()
    perfect = {"accuracy": 1.0, "nll": 0.0, "brier": 0.0, "ece": 0.0, "mce": 0.0, "ace": 0.0, "miou": 1.0}
    for key, value in {**perfect, "entropy_mean": 0.0, "aurc": 0.0}.items():
        assert literal(key, d) == value
    with pytest.raises(UndefinedScoreError, match="Brier"):
        literal("ause_brier", d)


def test_expected_scores_of_a_calibrated_classifier():
    """Labels drawn from the predicted rows: NLL is the mean entropy, Brier 1 - sum p^2, up to 4 errors."""
    d = datasets.softmax("class_expectation", 4000, 5, 1.0)
    chosen = d.probs[np.arange(4000), d.labels]
    error = np.std(-np.log(chosen)) / math.sqrt(4000)
    assert abs(literal("nll", d) - literal("entropy_mean", d)) < 4 * error
    expected = mean([1 - sum(p * p for p in row) for row in d.probs.tolist()])
    assert abs(literal("brier", d) - expected) < 4 * 0.5 / math.sqrt(4000)
    assert literal("ece", d) < 4 * math.sqrt(10 / 4000)
