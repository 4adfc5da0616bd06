"""What is said to remove an error: only what removes it on other samples, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import uq_tracking as uq
from tests.scenarios.test_scenarios import SCENARIOS
from uq_tracking.inference.doctor import find_cure
from uq_tracking.settings import Settings


def samples(seed, n=2000):
    rng = np.random.default_rng(seed)
    std, mean = np.exp(0.6 * rng.normal(size=n)), 2 * rng.normal(size=n)
    return std, mean, std * rng.normal(size=n)


def too_small(seed):
    std, mean, error = samples(seed)
    return mean + error, mean, std / 1.5


def too_varied(seed):
    std, mean, error = samples(seed)
    return mean + error, mean, std**1.6


@pytest.mark.slow
@pytest.mark.parametrize(("make", "method"), [(too_small, "std_scaling"), (too_varied, "std_isotonic")])
def test_what_removes_an_error_removes_it_on_fresh_samples(make, method):
    found = [uq.evaluate(*make(seed)) for seed in range(6)]
    cures = [report.verdict.cure for report in found]
    assert set(cures) <= {method, None}
    assert cures.count(method) >= 4
    for seed, report in enumerate(found):
        if report.verdict.cure:
            target, mean, std = make(100 + seed)
            mean, std = uq.recalibrate(report, method).apply(mean, std)
            after = uq.evaluate(target, mean, std)
            assert after.scores["ence"] < 0.4 * report.scores["ence"]
            assert f"Recalibrate with {method} (" in report.verdict.text
            if "some miscalibration is left" in report.verdict.text:
                assert "on average (" in report.verdict.text  # a slight bias, which no recalibration mends
            else:
                assert "after which no miscalibration is found." in report.verdict.text


@pytest.mark.slow
def test_probabilities_of_zero_cost_no_cure():
    rng = np.random.default_rng(31)
    logits = 1.5 * rng.normal(size=(3000, 10))
    labels, probs = (
        (logits + rng.gumbel(size=logits.shape)).argmax(axis=1),
        special.softmax(logits / 0.6, axis=1),
    )
    probs[np.arange(200), (labels[:200] + 1) % 10] = 0
    report = uq.evaluate(labels, probs=probs / probs.sum(axis=1, keepdims=True))
    assert report.verdict.cure == "temperature"
    assert uq.recalibrate(report, "temperature").temperature == pytest.approx(1 / 0.6, rel=0.05)


def test_strata_that_are_recalibrated_apart_are_calibrated():
    for name, method in (("one_site_too_small", "std_scaling"), ("event_at_one_site", "logistic")):
        arrays, options = SCENARIOS[name].make(np.random.default_rng(30))
        verdict = uq.evaluate(*arrays, **options).verdict
        assert f"recalibrate each stratum separately with {method}." in verdict.text
        (truth, *forecast), by = arrays, options["by"]
        probs = options.get("probs")
        for label in np.unique(by):
            first, second = (np.flatnonzero(by == label)[half::2] for half in (0, 1))
            if probs is None:
                fitted = uq.recalibrate((truth[first], *(each[first] for each in forecast)), method)
                for column, values in zip(
                    forecast, fitted.apply(*(each[second] for each in forecast)), strict=True
                ):
                    column[second] = values
            else:
                fitted = uq.recalibrate((truth[first], probs[first]), method)
                probs[second] = fitted.apply(probs[second])
        held = np.concatenate([np.flatnonzero(by == label)[1::2] for label in np.unique(by)])
        own = {} if probs is None else {"probs": probs[held]}
        after = uq.evaluate(truth[held], *(each[held] for each in forecast), **own, by=by[held]).verdict
        assert after.calibration in ("consistent with calibrated", "calibrated")


@pytest.mark.slow
def test_what_halves_an_error_is_named_with_what_is_left():
    said = []
    for seed in range(8):
        std, mean, error = samples(seed, 1000)
        said.append(uq.evaluate(mean + error, mean, std**1.6).verdict.text)
    assert all(
        "Recalibrate with std_isotonic (a factor for each size of std): on held-out halves," in text
        for text in said
    )
    assert any("though some miscalibration is left" in text for text in said)


def test_none_is_named_where_the_mean_is_wrong():
    std, mean, error = samples(0)
    for wrong in (2 * mean + error, mean + error + 0.5 * std):
        report = uq.evaluate(wrong, mean, std / 1.5)
        assert report.verdict.grade == "off"
        assert report.verdict.cure is None


def test_none_is_named_where_nothing_is_wrong_or_samples_are_gone():
    std, mean, error = samples(1)
    assert uq.evaluate(mean + error, mean, std).verdict.cure is None
    stream = uq.Accumulator()
    stream.update(*too_small(2))
    assert stream.compute().verdict.calibration == "overconfident"
    assert stream.compute().verdict.cure is None


def test_standard_deviations_that_sort_errors_backwards_have_no_single_factor():
    std, mean, error = samples(3)
    rows = {"target": mean + error, "mean": mean, "std": np.mean(std**2) / std}
    found = find_cure(rows, None, Settings())
    assert found.method is None or (found.method, found.after < found.before) == ("std_isotonic", True)


def test_where_none_helps_that_is_said():
    std, mean, error = samples(0, 5000)
    wrong = np.where(mean > 0, 1.6, 1 / 1.6)  # by the prediction, which none of them knows
    verdict = uq.evaluate(mean + error * wrong, mean, std).verdict
    assert verdict.cure is None
    assert "fixes it on held-out halves. Instead, fit std_scaling to each fifth of the pred" in verdict.text
    assert "orrect the predictions" not in verdict.text


def test_predictions_come_before_standard_deviations():
    std, mean, error = samples(0)
    verdict = uq.evaluate(mean + error + 0.5 * std, mean, std / 1.5).verdict
    assert verdict.cure is None
    assert "First correct the predictions" in verdict.text


def test_groups_are_fitted_and_judged_apart():
    rng = np.random.default_rng(4)
    shared = rng.normal(size=40) * 0.3
    group = np.repeat(np.arange(40), 50)
    std, mean, error = samples(4)
    wrong = {"target": mean + error + std * shared[group], "mean": mean, "std": std / 2}
    found = find_cure(wrong, group, Settings())
    assert found is not None
    assert found.method == "std_scaling"
    assert found.after < 0.3 * found.before


def odds_doubled(rng, n):
    logit = 2 * rng.normal(size=n)
    return rng.random(n) < special.expit(logit + np.log(2)), special.expit(logit)


def corner_too_sure(rng, n):
    p = special.expit(2 * rng.normal(size=n))
    return rng.random(n) < np.where(p > 0.9, 4.5 - 4 * p, p), p


def drawn(rng, n, factor=1.0, shift=0.0):
    logits = 1.5 * rng.normal(size=(n, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return labels, special.softmax(factor * logits + shift * np.eye(4)[2], axis=1)


def too_extreme(rng, n):
    return drawn(rng, n, 1.5)


def class_too_sure(rng, n):
    return drawn(rng, n, shift=1.0)


CLASSES = {
    "logistic": (odds_doubled, "ece"),
    "isotonic": (corner_too_sure, "ece"),
    "temperature": (too_extreme, "ece"),
    "bias_temperature": (class_too_sure, "worst_class_gap"),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", CLASSES)
def test_what_removes_an_error_of_probabilities_removes_it_on_fresh_samples(method):
    make, score = CLASSES[method]
    rng = np.random.default_rng(5)
    labels, probs = make(rng, 3000)
    report = uq.evaluate(labels.astype(int), probs=probs)
    assert report.verdict.cure == method
    assert f"Recalibrate with {method} (" in report.verdict.text
    assert "after which no miscalibration is found." in report.verdict.text
    assert "less than 0.001" not in report.verdict.text  # the error that a fit to half of the samples leaves
    fitted = uq.recalibrate(uq.Predictions.from_probs(labels.astype(int), probs), method)
    labels, probs = make(rng, 3000)
    before = uq.evaluate(labels.astype(int), probs=probs).scores[score]
    after = fitted.apply(probs)
    assert uq.evaluate(labels.astype(int), probs=after).scores[score] < 0.5 * before


def test_none_is_named_for_probabilities_that_no_recalibration_mends():
    rng = np.random.default_rng(6)
    labels, probs = drawn(rng, 3000)
    for given in (probs, probs[:, ::-1], rng.permutation(probs)):  # right, in another order, unrelated
        assert uq.evaluate(labels, probs=given).verdict.cure is None
    certain = (np.arange(1000) % 2 == 0).astype(float)
    excluded = uq.evaluate((np.arange(1000) < 10).astype(int), probs=np.where(certain > 0, 0.02, 0.0))
    assert "the model states 0 for 5 samples" in excluded.verdict.text
    assert excluded.verdict.cure is None


@pytest.mark.slow
def test_most_of_an_error_is_no_more_than_that():
    rng = np.random.default_rng(7)
    labels, probs = drawn(rng, 10_000)
    smoothed = 0.8 * probs + 0.05
    text = uq.evaluate(labels, probs=smoothed).verdict.text
    assert "the calibration error ECE falls from 0.07" in text
    assert "though some miscalibration is left" in text


def test_a_cure_tells_the_log_loss_where_the_calibration_error_hardly_falls():
    (labels,), options = SCENARIOS["five_classes_with_unknown_objects"].make(np.random.default_rng(0))
    text = uq.evaluate(labels, **options).verdict.text
    assert "the negative log likelihood falls from 1." in text
    assert "ECE" not in text
