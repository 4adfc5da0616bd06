"""Conformal intervals: their guarantee by simulation, and the order statistic they are made of."""

import math
from fractions import Fraction

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import RecalibrationError, SettingsError, TrackingWarning
from uq_tracking.recalibration import Conformal, Recalibration


def sample(rng, n):
    """Skewed, heavy-tailed errors, far from what the std says."""
    mean, std = rng.normal(size=n), rng.gamma(3.0, size=n)
    return mean + std * (rng.standard_t(2.5, n) + 0.5), mean, std


@pytest.mark.parametrize(("n", "level"), [(19, 0.9), (100, 0.9), (100, 0.5), (999, 0.95)])
def test_the_radius_is_the_order_statistic(n, level):
    truth, mean, std = sample(np.random.default_rng(0), n)
    rule = uq.recalibrate((truth, mean, std), "conformal")
    residuals = np.sort(np.abs(truth - mean) / std)
    assert rule.radius(level) == pytest.approx(residuals[math.ceil(round((n + 1) * level, 9)) - 1], rel=1e-12)


@pytest.mark.parametrize("n", [1001, 1002, 1300, 1500, 2000, 20_000, 100_000])
def test_large_sets_keep_the_order_statistics_of_usual_levels(n):
    errors = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))  # the residual of rank r is r
    rule = uq.recalibrate((errors, np.zeros(n), np.ones(n)), "conformal")
    for thousandth in (1, 100, 500, 683, 900, 950, 975, 980, 990, 995, 999):
        assert rule.radius(thousandth / 1000) == math.ceil(Fraction(thousandth, 1000) * (n + 1)), thousandth


@pytest.mark.slow
def test_coverage_of_new_targets_is_what_is_stated():
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(300):
        rule = uq.recalibrate(sample(rng, 60), "conformal")
        truth, mean, std = sample(rng, 200)
        low, high = rule.interval(mean, std, 0.9)
        inside.append(np.mean((low <= truth) & (truth <= high)))
    expected = math.ceil(61 * 0.9) / 61
    assert np.mean(inside) == pytest.approx(expected, abs=4 * np.std(inside) / np.sqrt(300))


def test_large_sets_keep_the_guarantee():
    truth, mean, std = sample(np.random.default_rng(2), 30_000)
    rule = uq.recalibrate((truth, mean, std), "conformal")
    assert len(rule.radii) < 1500
    residuals = np.sort(np.abs(truth - mean) / std)
    for level in (0.5, 0.9, 0.99, 0.9999):
        assert rule.radius(level) >= residuals[math.ceil(30_001 * level) - 1] * (1 - 1e-12)
        assert rule.radius(level) <= residuals[min(math.ceil(30_001 * level) + 40, 29_999)]


def test_levels_beyond_the_set_are_infinite_and_said_so():
    rule = uq.recalibrate(sample(np.random.default_rng(3), 15), "conformal")
    assert rule.widest_level == 15 / 16
    with pytest.warns(TrackingWarning, match="up to level 0.9375; those at 0.99 are infinite"):
        low, high = rule.interval([0.0], [1.0], 0.99)
    assert (low[0], high[0]) == (-math.inf, math.inf)
    with pytest.raises(SettingsError, match="between 0 and 1"):
        rule.radius(1.0)


def test_saved_and_applied_like_the_others(tmp_path):
    truth, mean, std = sample(np.random.default_rng(4), 400)
    rule = uq.recalibrate((truth, mean, std), "conformal")
    assert Recalibration.from_json(rule.to_json()) == rule
    new_mean, new_std = rule.apply(mean, std)
    np.testing.assert_allclose(new_mean, mean)
    low, high = (rule.quantile(mean, std, q) for q in (0.05, 0.95))
    np.testing.assert_allclose(high - mean, mean - low, rtol=1e-9)
    exact = rule.interval(mean, std, 0.9)
    np.testing.assert_allclose(high, exact[1], rtol=0.05)
    draws = rule.shape.quantile((np.arange(100_000) + 0.5) / 100_000)
    assert np.sqrt(np.mean(draws**2)) == pytest.approx(1, rel=1e-3)
    assert new_std[0] / std[0] > 0


def test_scores_after_it_cover():
    rng = np.random.default_rng(5)
    report = uq.evaluate(*sample(rng, 4000), calibration=sample(rng, 4000), recalibration="conformal")
    after = report.recalibration["methods"]["conformal"]["scores"]
    assert after["coverage_95"] == pytest.approx(0.95, abs=0.015)
    assert report.scores["coverage_95"] < 0.9
    assert after["spearman"] == report.scores["spearman"]


def test_refusals():
    with pytest.raises(RecalibrationError, match="at least 9 samples"):
        uq.recalibrate(sample(np.random.default_rng(6), 8), "conformal")
    with pytest.raises(RecalibrationError, match="every error is 0"):
        uq.recalibrate((np.ones(20), np.ones(20), np.ones(20)), "conformal")
    with pytest.raises(RecalibrationError, match="two columns"):
        Conformal(
            ranks=(2, 3),
            radii=(1.0, 2.0),
            fitted_on=uq.recalibrate(sample(np.random.default_rng(7), 20), "conformal").fitted_on,
        )
