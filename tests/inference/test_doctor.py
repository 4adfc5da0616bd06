"""Likely mistakes in the input are recognized, and honest models, however badly calibrated, set off no alarm."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from scipy import special

import uq_tracking as uq
from uq_tracking.inference.doctor import examine


def honest(n, rng):
    """A model whose stated scale is off by up to five either way, with noise and errors of many kinds."""
    base = 10 ** (rng.uniform(-3, 3) if rng.random() > 0.4 else rng.uniform(-1, 0))
    log = rng.uniform(0, 0.8) * rng.normal(size=n)
    std = base * np.exp(rng.uniform(0, 1.5) * log + rng.uniform(0, 0.8) * rng.normal(size=n))
    if rng.random() < 0.25:
        std = np.full(n, base)
    noises = (
        rng.normal(size=n),
        rng.standard_t(3, n) / np.sqrt(3),
        rng.standard_t(5, n) / np.sqrt(5 / 3),
        rng.laplace(size=n) / np.sqrt(2),
        rng.exponential(size=n) - 1,
    )
    error = base * np.exp(log) * noises[rng.integers(5)]
    explained = 0 if rng.random() < 0.1 else rng.uniform(0.2, 0.99)
    mean = base * np.sqrt(explained / (1 - explained)) * rng.normal(size=n) + 3 * base * rng.normal()
    slope = 2 ** rng.uniform(-1, 1) if rng.random() < 0.3 else 1.0
    predicted = mean.mean() + slope * (mean - mean.mean())
    if rng.random() < 0.2:
        predicted = predicted + base * rng.uniform(-0.5, 0.5)
    return mean + error, predicted, std * np.exp(rng.uniform(-np.log(5), np.log(5)))


def alarms(n, sets):
    return Counter(
        one.name for seed in range(sets) for one in examine(*honest(n, np.random.default_rng(seed)))
    )


@pytest.mark.slow
def test_honest_models_set_off_few_alarms():
    assert sum(alarms(300, 300).values()) <= 2


@pytest.mark.simulation
@pytest.mark.parametrize("n", [200, 2000])
def test_honest_models_set_off_an_alarm_in_one_of_two_hundred(n):
    assert sum(alarms(n, 2000).values()) <= 10


def good(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    std, mean = 0.5 * np.exp(0.6 * rng.normal(size=n)), 3 * rng.normal(size=n) + 5
    return mean + std * rng.normal(size=n), mean, std


MISTAKES = {
    "variance": lambda y, mu, s: (y, mu, s**2),
    "unit of std": lambda y, mu, s: (y, mu, s / 100),
    "unit": lambda y, mu, s: (100 * y, mu, s),
    "offset": lambda y, mu, s: (y + 273, mu, s),
    "shuffled": lambda y, mu, s: (np.roll(y, 1), mu, s),
    "standardized": lambda y, mu, s: ((y - y.mean()) / y.std(), mu, s),
    "missing code": lambda y, mu, s: (np.where(np.arange(len(y)) % 20, y, -999), mu, s),
    "corrupt target": lambda y, mu, s: (np.where(np.arange(len(y)) == 3, 1e6, y), mu, s),
    "near-constant std": lambda y, mu, s: (y, mu, np.where(np.arange(len(y)) % 20, 0.5, s)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_recognized(name):
    found = Counter(one.name for seed in range(20) for one in examine(*MISTAKES[name](*good(2000, seed))))
    assert found[name] >= 18, found


def test_rows_in_another_order_are_recognized_where_they_correlate_by_chance():
    found = Counter(
        one.name for seed in range(100) for one in examine(*MISTAKES["shuffled"](*good(200, seed)))
    )
    assert found["shuffled"] >= 90


def test_a_good_model_is_not_suspected():
    assert examine(*good()) == ()


def test_negative_stds_are_taken_for_logs_only_if_they_fit():
    y, mu, s = good()
    y[3] = np.nan
    with pytest.raises(
        uq.errors.InvalidValueError, match=r"if that is what they are, use .*from_log_variance$"
    ):
        uq.evaluate(y, mu, 2 * np.log(s))
    with pytest.raises(
        uq.errors.InvalidValueError, match=r"as a log of the std they fit.*pass np.exp\(y_std\)$"
    ):
        uq.log(y, mu, np.log(s))
    with pytest.raises(uq.errors.InvalidValueError, match=r"from_variance / from_log_variance$"):
        uq.evaluate(y, mu, -s)


def test_a_report_shows_its_suspicions_first_and_survives_json():
    report = uq.evaluate(*MISTAKES["variance"](*good()))
    (one,) = report.suspicions
    assert one.name == "variance"
    assert report.verdict.text.startswith("First check the input: The stds look like variances")
    assert "from_variance" in one.fix
    again = uq.Report.from_json(report.to_json())
    assert again.suspicions == report.suspicions
    assert again.verdict == report.verdict


@pytest.mark.slow
def test_a_spread_of_means_is_recognized_in_a_hundred_samples_and_seldom_in_calibrated_draws():
    found = Counter()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        draws, noise = rng.normal(size=(30, 100)), rng.normal(size=(2, 100))
        for name, error in (("draws", noise[0]), ("means", noise[0] + 2 * noise[1])):
            said = examine(error, draws.mean(0), draws.std(0, ddof=1), spread_of_means=30)
            found[name] += any(each.name == "spread of means" for each in said)
    assert found["means"] >= 198
    assert found["draws"] <= 2


def test_stds_that_were_computed_from_the_errors_are_recognized():
    rng = np.random.default_rng(20)
    y, mean = rng.normal(size=300), np.zeros(300)
    (found,) = uq.evaluate(y, mean, 2 * np.abs(y) + 1e-6).suspicions
    assert found.name == "std from errors"
    assert "0.5 times their std" in found.text
    assert not uq.evaluate(y, mean, np.exp(0.3 * rng.normal(size=300))).suspicions


@pytest.mark.parametrize("relative", [False, True])
def test_exchanged_arguments_are_recognized(relative):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        depth = 10 + rng.gamma(2, 3, 500)
        std = 0.1 * depth if relative else rng.gamma(4, 0.25, 500)
        y = np.abs(depth + std * rng.normal(size=500))
        for arrays in ((y, std, depth), (depth, std, y)):
            (found,) = uq.evaluate(*arrays).suspicions
            assert found.name == "exchanged"
        assert not uq.evaluate(y, depth, std).suspicions
        assert "exchanged" not in {one.name for one in uq.evaluate(np.abs(y - depth), 0 * y, std).suspicions}


def test_classes_that_were_passed_as_a_regression_are_recognized():
    rng = np.random.default_rng(0)
    p = special.expit(2 * rng.normal(size=500))
    happened = (rng.random(500) < p).astype(int)
    for std in (np.sqrt(p * (1 - p)), np.full(500, 0.2)):
        text = uq.evaluate(happened, p, std).verdict.text
        assert text.startswith("First check the input: The truth is 0 or 1")
        assert text.endswith("Score them as classes: uq.log(y_true, probs=y_pred).")
    probs = rng.dirichlet(np.full(5, 0.3), 500)
    labels = (probs.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
    (found,) = uq.evaluate(labels, probs.argmax(axis=1), probs.max(axis=1)).suspicions
    assert found.name == "classes"
    counts = rng.poisson(3.0, 500)
    for mean in (3 + 0.1 * rng.normal(size=500), np.round(counts + rng.normal(size=500))):
        assert not uq.evaluate(counts, mean, np.full(500, 1.7)).suspicions


def test_truth_that_was_filled_with_predictions_is_recognized():
    rng = np.random.default_rng(21)
    mean, std = rng.normal(size=300), np.ones(300)
    y = np.where(np.arange(300) < 30, mean, mean + rng.normal(size=300))
    (found,) = uq.evaluate(y, mean, std).suspicions
    assert (found.name, found.text) == ("filled truth", "10 % of the errors are exactly 0.")
    assert "mask=(y_true == y_pred)" in str(found)
    rain = np.maximum(mean, 0)
    assert not uq.evaluate(np.maximum(mean + 0.1 * rng.normal(size=300), 0), rain, std).suspicions


@pytest.mark.parametrize("value", [-9999, 0.12345678, 3.4028234663852886e38])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_recurring_value_of_the_truth_is_masked_by_what_is_said(value, dtype):
    rng = np.random.default_rng(22)
    mean, there = 3 * rng.normal(size=1000), np.arange(1000) % 20 == 0
    y_true = np.where(there, value, mean + rng.normal(size=1000)).astype(dtype)
    (found,) = uq.evaluate(y_true, mean, np.ones(1000)).suspicions
    assert found.name in ("missing code", "stuck truth")
    mask = re.search(r"mask=(\(.*\))\.", found.fix)
    assert mask is not None
    np.testing.assert_array_equal(eval(mask[1], {"y_true": y_true}), there)


def test_zeros_for_which_standard_deviations_make_room_are_no_placeholders():
    rng = np.random.default_rng(23)
    mean = 4 * rng.normal(size=1000)
    y = np.where(rng.random(1000) < 0.15, 0, mean + 0.5 * rng.normal(size=1000))
    assert not uq.evaluate(y, mean, np.sqrt(0.15 * mean**2 + 0.25)).suspicions
    (found,) = uq.evaluate(y, mean, np.full(1000, 0.5)).suspicions
    assert found.name == "stuck truth"
