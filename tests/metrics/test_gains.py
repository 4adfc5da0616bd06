"""Gains over the best constant uncertainty, against direct minimization and the reference by samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats

import uq_tracking as uq
from uq_tracking.families import family_of
from uq_tracking.settings import Settings


def made(n=400, cv=0.5, seed=0, errors=None):
    rng = np.random.default_rng(seed)
    s = np.exp(math.sqrt(math.log1p(cv * cv)) * rng.normal(size=n))
    return s * (rng.normal(size=n) if errors is None else errors(rng, n)), s


def gain(e, s, **options):
    return uq.evaluate(e, np.zeros(len(e)), s, metrics="crps_gain", **options).scores["crps_gain"]


def by_minimization(e, s, weights=None, settings=None):
    """The gain over the constant scale found by minimizing the mean CRPS itself."""
    family = family_of(settings or Settings())

    def score(log_scale):
        c = math.exp(log_scale)
        return np.average(c * family.crps(e / c), weights=weights)

    size = math.log(np.mean(np.abs(e)))
    best = optimize.minimize_scalar(score, bounds=(size - 6, size + 6), options={"xatol": 1e-9}).fun
    return 1 - np.average(s * family.crps(e / s), weights=weights) / best


def interval_reference(low, high, y, alpha):
    """1 - mean interval score / that of the best interval of constant width around the same centers."""

    def score(a, b):
        return np.mean((b - a) + 2 / alpha * (np.maximum(a - y, 0) + np.maximum(y - b, 0)))

    middle = (low + high) / 2
    half = np.sort(np.abs(y - middle))[min(math.ceil((1 - alpha) * len(y)), len(y)) - 1]
    return 1 - score(low, high) / score(middle - half, middle + half)


@pytest.mark.parametrize(
    "errors",
    [
        None,
        lambda rng, n: rng.standard_t(3, n),
        lambda rng, n: 1.5 * rng.normal(size=n),
        lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n)),
    ],
)
def test_the_gain_is_over_the_constant_that_minimizes_the_crps(errors):
    e, s = made(errors=errors)
    assert_allclose(gain(e, s), by_minimization(e, s), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"family": "laplace"},
        {"family": "uniform"},
        {"family": "logistic"},
        {"family": "student_t", "dof": 3.0},
    ],
    ids=lambda options: options["family"],
)
def test_the_constant_has_the_declared_family(options):
    e, s = made(seed=1, errors=lambda rng, n: rng.laplace(size=n))
    expected = by_minimization(e, s, settings=Settings(**options))
    assert_allclose(gain(e, s, **options), expected, rtol=1e-8, atol=1e-12)
    assert gain(e, np.full(len(e), 0.7), **options) <= 0


def test_weights_count_as_repeated_samples():
    e, s = made(n=100, seed=2)
    weights = np.random.default_rng(3).integers(1, 5, 100)
    zeros = np.zeros(100)
    repeated = gain(np.repeat(e, weights), np.repeat(s, weights))
    weighted = uq.evaluate(e, zeros, s, weights=weights.astype(float), metrics="crps_gain").scores[
        "crps_gain"
    ]
    assert_allclose(weighted, repeated, rtol=1e-10)
    assert_allclose(weighted, by_minimization(e, s, weights), rtol=1e-9)


@pytest.mark.parametrize("n", [300, 40_000])
def test_many_samples_and_sketches_agree_with_the_samples(n):
    e, s = made(n, seed=4)
    expected = by_minimization(e, s)
    assert_allclose(gain(e, s), expected, atol=5e-8 if n > 1 << 14 else 1e-12)
    assert_allclose(gain(e, s, statistics="sketch"), expected, atol=1e-7)


@pytest.mark.parametrize(("cv", "expected"), [(0.1, 0.002), (0.25, 0.015), (0.5, 0.053), (1.0, 0.145)])
def test_calibrated_stds_gain_what_their_spread_allows(cv, expected):
    rng = np.random.default_rng(5)
    s = rng.gamma(1 / cv**2, cv**2, 400_000)
    assert_allclose(gain(s * rng.normal(size=len(s)), s), expected, atol=1.5e-3)


def test_the_best_constant_std_gains_nothing_and_others_less():
    e, _ = made(seed=6)
    best = optimize.brentq(lambda c: np.mean(np.exp(-0.5 * (e / c) ** 2)) - math.sqrt(0.5), 0.1, 10)
    assert abs(gain(e, np.full(len(e), best))) < 1e-12
    assert gain(e, np.full(len(e), 1.2 * best)) < -1e-3


def test_without_errors_there_is_no_share():
    report = uq.evaluate(np.ones(20), np.ones(20), np.ones(20))
    assert "all errors are 0" in report.undefined["crps_gain"]
    heavy = uq.evaluate(np.arange(20.0), np.zeros(20), np.ones(20), family="student_t", dof=0.4)
    assert "no finite mean distance" in heavy.undefined["crps_gain"]
    assert not heavy.undefined["crps_gain"].startswith("infinite")


def test_other_forms_are_compared_with_a_constant_gaussian():
    e, s = made(seed=7)
    draws = s * np.random.default_rng(8).normal(size=(20, len(e)))
    found = uq.evaluate(uq.Predictions.from_samples(e, draws)).scores
    plain = e - draws.mean(axis=0)
    constant = (1 - by_minimization(plain, s)) / np.mean(s * family_of(Settings()).crps(plain / s))
    assert_allclose(found["crps_gain"], 1 - found["crps"] * constant, rtol=1e-9)
    given = uq.evaluate(uq.Predictions.from_interval(e, -s, s, 0.68))
    assert "does not determine it" in given.undefined["crps_gain"]


def test_groups_give_it_an_interval():
    rng = np.random.default_rng(9)
    e, s = made(3000, seed=9)
    groups = rng.integers(0, 30, 3000)
    report = uq.evaluate(e, np.zeros(3000), s, groups=groups)
    low, high = report.intervals["crps_gain"]
    assert low < report.scores["crps_gain"] < high
    assert_allclose((low + high) / 2, 0.053, atol=0.015)
    assert 0.01 < high - low < 0.05


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("n", [10, 501])
def test_the_interval_gain_is_that_of_the_reference(n, level):
    e, s = made(n, seed=10)
    half = stats.norm.ppf((1 + level) / 2) * s
    y = e + 3.0
    for statistics in ("exact", "sketch"):
        given = uq.Predictions.from_interval(y, 3 - half, 3 + half, level)
        scores = uq.evaluate(given, statistics=statistics).scores
        expected = interval_reference(3 - half, 3 + half, y, 1 - level)
        assert_allclose(scores["interval_gain"], expected, rtol=1e-9 if statistics == "exact" else 1e-4)
    distance = np.maximum(np.abs(e) - half, 0)
    assert_allclose(scores["winkler_score"], np.mean(2 * half + 2 / (1 - level) * distance), rtol=1e-12)


def test_only_intervals_have_an_interval_gain():
    e, s = made(50, seed=11)
    report = uq.evaluate(e, np.zeros(50), s)
    assert not {"interval_gain", "winkler_score"} & {*report.scores, *report.undefined}
    asked = uq.evaluate(e, np.zeros(50), s, metrics=["interval_gain", "winkler_score"])
    assert all("from_interval" in reason for reason in asked.undefined.values())
    exact = uq.evaluate(uq.Predictions.from_interval(np.ones(20), np.zeros(20), np.full(20, 2.0), 0.9))
    assert "all errors are 0" in exact.undefined["interval_gain"]


def test_quantiles_of_two_intervals_have_both_coverages():
    e, s = made(2000, seed=12)
    levels = [0.1, 0.16, 0.5, 0.84, 0.9]
    q = s * stats.norm.ppf(levels)[:, None]
    scores = uq.evaluate(uq.Predictions.from_quantiles(e, q, levels, axis=0)).scores
    assert_allclose(scores["coverage_68"], np.mean(np.abs(e) <= q[3]))
    assert_allclose(scores["coverage_80"], np.mean(np.abs(e) <= q[4]))
