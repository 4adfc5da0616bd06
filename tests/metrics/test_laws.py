"""Laws that every registered metric obeys: a metric is tested by being registered."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.small_statistics import exact_statistics, sketch_statistics
from uq_tracking import plugins
from uq_tracking.metrics.registry import compute, every_metric
from uq_tracking.settings import Settings

REGRESSION = [m for m in plugins.metrics("regression").values() if not m.needs and m.when is None]
KEYS = [m.key for m in REGRESSION]
GRID_METRICS = {
    "ause_rmse",
    "aurg_rmse",
    "ause_mae",
    "ence",
    "uce",
    "merci",
    "n_merci",
    "trimmed_mae",
    "medae",
    "pit_ks",
    "cv",
}
"""Defined by places in the order or by N - 1: k-fold repetition changes them within 1/N."""

values = st.integers(-8, 8).map(lambda i: i / 4)
positive = st.integers(1, 12).map(lambda i: i / 4)
rows = st.lists(st.tuples(values, values, positive), min_size=12, max_size=60)


def arrays(samples):
    return tuple(np.asarray(column, dtype=float) for column in zip(*samples, strict=True))


def scores(y, mu, s, make=exact_statistics):
    return compute(make(y, mu, s), Settings(), REGRESSION)


def assert_same(one, other, *, rtol=1e-10, atol=1e-12, skip=()):
    assert one[0].keys() == other[0].keys()
    for key in one[0].keys() - set(skip):
        assert_allclose(one[0][key], other[0][key], rtol=rtol, atol=atol, err_msg=key)


def normal_sample(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.gamma(3, 0.5, n)
    mu = rng.normal(size=n)
    return mu + s * rng.normal(size=n), mu, s


@pytest.mark.slow
@given(rows, st.randoms())
@settings(max_examples=40)
def test_the_order_of_the_samples_changes_nothing(samples, random):
    shuffled = list(samples)
    random.shuffle(shuffled)
    assert_same(scores(*arrays(samples)), scores(*arrays(shuffled)))


@pytest.mark.slow
@given(rows, st.integers(1, 11))
@settings(max_examples=40)
@pytest.mark.parametrize("make", [exact_statistics, sketch_statistics])
def test_parts_merged_equal_the_whole(make, samples, cut):
    y, mu, s = arrays(samples)
    merged = make(y[:cut], mu[:cut], s[:cut]) + make(y[cut:], mu[cut:], s[cut:])
    assert_same(compute(merged, Settings(), REGRESSION), scores(y, mu, s, make), rtol=1e-9)


@pytest.mark.slow
@given(rows, st.integers(2, 4))
@settings(max_examples=25)
def test_repeating_every_sample_changes_no_average(samples, times):
    y, mu, s = arrays(samples)
    once, repeated = scores(y, mu, s), scores(*(np.tile(a, times) for a in (y, mu, s)))
    for key in once[0].keys() - GRID_METRICS:
        assert_allclose(repeated[0][key], once[0][key], rtol=1e-10, atol=1e-12, err_msg=key)


@pytest.mark.parametrize("key", sorted(GRID_METRICS))
def test_repeating_every_sample_changes_places_in_the_order_by_little(key):
    y, mu, s = normal_sample()
    once, repeated = scores(y, mu, s), scores(*(np.repeat(a, 3) for a in (y, mu, s)))
    assert_allclose(repeated[0][key], once[0][key], rtol=0.01, atol=5e-4)


@pytest.mark.slow
@given(rows, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
@settings(max_examples=40)
def test_scaling_everything_scales_by_the_unit(samples, c):
    y, mu, s = arrays(samples)
    plain, scaled = scores(y, mu, s), scores(c * y, c * mu, c * s)
    power = {"target": 1, "1/target": -1, "1/sqrt(target)": -0.5, "target^2": 2, "": 0, "nats": 0}
    for metric in REGRESSION:
        if metric.key not in plain[0]:
            assert metric.key in scaled[1]
            continue
        expected = plain[0][metric.key] * c ** power[metric.unit]
        expected += math.log(c) if metric.unit == "nats" else 0
        tolerance = 1e-12 * c ** power[metric.unit] + (1e-10 if metric.unit == "nats" else 0)
        assert_allclose(scaled[0][metric.key], expected, rtol=1e-9, atol=tolerance, err_msg=metric.key)


@pytest.mark.slow
@given(rows)
@settings(max_examples=40)
def test_the_oracle_is_perfect(samples):
    y, mu, _ = arrays(samples)
    s = np.abs(y - mu)
    found, undefined = scores(y, mu, s)
    for key in ("ause_rmse", "ause_mae", "n_merci"):
        assert key in undefined or abs(found[key]) < 1e-9, key


@pytest.mark.slow
@given(rows, positive)
@settings(max_examples=40)
def test_a_constant_std_is_uninformative(samples, constant):
    y, mu, _ = arrays(samples)
    found, undefined = scores(y, mu, np.full(len(y), constant))
    assert found["cv"] == 0
    assert "spearman" in undefined
    if "n_merci" in found:
        assert_allclose(found["n_merci"], 1, rtol=1e-10)
    if "aurg_rmse" in found:
        assert_allclose(found["aurg_rmse"], 0, atol=1e-10)


@pytest.mark.parametrize(
    "key", ["nll", "crps", "quadratic_score", "spherical_score", "interval_score", "pinball"]
)
@pytest.mark.parametrize(("shift", "factor"), [(0.3, 1.0), (0.0, 0.7), (0.0, 1.4), (-0.2, 1.2)])
def test_proper_scores_are_best_at_the_true_distribution(key, shift, factor):
    y, mu, s = normal_sample(40_000, seed=3)
    true, wrong = scores(y, mu, s)[0][key], scores(y, mu + shift * s, s * factor)[0][key]
    assert plugins.metrics()[key].loss(true) < plugins.metrics()[key].loss(wrong)


DEGRADED = {
    "worse means": lambda y, mu, s, rng: (y, mu + rng.normal(scale=1.5, size=len(y)), s),
    "shuffled std": lambda y, mu, s, rng: (y, mu, rng.permutation(s)),
    "overconfident": lambda y, mu, s, rng: (y, mu, s * 0.4),
    "underconfident": lambda y, mu, s, rng: (y, mu, s * 2.5),
    "biased": lambda y, mu, s, rng: (y, mu + 1.0, s),
}
DEGRADES = {
    "worse means": {"mae", "trimmed_mae", "rmse", "medae", "r2"},
    "biased": {"bias", "z_mean", "pinball"},
    "shuffled std": {
        "ause_rmse",
        "ause_mae",
        "aurg_rmse",
        "merci",
        "n_merci",
        "spearman",
        "ence",
        "uce",
        "pit_ks",
    },
    "overconfident": {
        "auce_over",
        "z_std",
        "crps_uniform",
        "quadratic_score_uniform",
        "spherical_score_uniform",
    },
    "underconfident": {"auce_under"},
}


def degradation_of(key):
    named = [name for name, keys in DEGRADES.items() if key in keys]
    return named[0] if named else "overconfident"


JUDGING = [m for m in REGRESSION if m.direction is not None and m.key != "nll_uniform"]


@pytest.mark.parametrize("metric", JUDGING, ids=lambda m: m.key)
def test_degrading_the_predictions_degrades_the_score(metric):
    y, mu, s = normal_sample(20_000, seed=5)
    worse = DEGRADED[degradation_of(metric.key)](y, mu, s, np.random.default_rng(6))
    assert metric.loss(scores(y, mu, s)[0][metric.key]) < metric.loss(scores(*worse)[0][metric.key])


def test_nll_uniform_degrades_with_a_wider_support():
    y, mu, _ = normal_sample(2000)
    s = np.abs(y - mu)
    assert scores(y, mu, s)[0]["nll_uniform"] < scores(y, mu, 2 * s)[0]["nll_uniform"]


def test_std_scaling_leaves_rankings_unchanged():
    y, mu, s = normal_sample()
    one, other = scores(y, mu, s)[0], scores(y, mu, 3.7 * s)[0]
    for key in ("ause_rmse", "ause_mae", "aurg_rmse", "spearman", "n_merci", "merci", "cv"):
        assert_allclose(other[key], one[key], rtol=1e-9, err_msg=key)


@pytest.mark.parametrize("metric", every_metric(), ids=lambda m: f"{m.task}-{m.key}")
def test_every_metric_says_what_it_is(metric):
    assert ">>>" in (metric.function.__doc__ or ""), "an example belongs into the docstring"
    assert metric.summary
    assert metric.formula
    assert metric.source
    assert metric.direction in ("lower", "higher", None) or isinstance(metric.direction, float)
