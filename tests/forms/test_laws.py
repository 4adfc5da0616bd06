"""Laws of every form: its unit, its weights, and calibration where the truth follows the forecast."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

import uq_tracking as uq
from uq_tracking import plugins

from .made import FORMS, make

CONTINUOUS = [form for form in FORMS if form not in ("counts", "tied draws")]
POWERS = {"target": 1, "target^2": 2, "1/target": -1, "1/sqrt(target)": -0.5, "": 0}


@pytest.mark.slow
@pytest.mark.parametrize("form", CONTINUOUS)
@given(times=st.sampled_from([0.001, 0.3, 2.0, 1e4]))
@settings(max_examples=4)
def test_scores_are_in_the_unit_of_the_target(form, times):
    one, other = uq.evaluate(make(form, 200)).scores, uq.evaluate(make(form, 200, times=times)).scores
    metrics = plugins.metrics("regression")
    assert one.keys() == other.keys()
    for key, value in one.items():
        unit = metrics[key].unit
        expected = value + math.log(times) if unit == "nats" else value * times ** POWERS[unit]
        assert_allclose(other[key], expected, rtol=1e-6, atol=1e-9, err_msg=key)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@given(st.integers(0, 10_000))
@settings(max_examples=5)
def test_a_weight_is_the_sample_so_many_times(form, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, 80)
    data = make(form, 80)
    weighted = make(form, 80, weights=counts)
    whole = uq.evaluate(weighted, statistics="sketch").scores
    repeated = uq.Accumulator()
    for times in (1, 2, 3):
        for _ in range(times):
            if np.any(counts == times):
                repeated.update(data.part(counts == times))
    found = repeated.compute().scores
    for key in whole.keys() & found.keys() - {
        "cv",
        "medae",
    }:  # those have N - 1, and two samples in the middle
        assert_allclose(found[key], whole[key], rtol=1e-6, atol=1e-6, err_msg=key)


N = 4000
SCALE = np.random.default_rng(0).gamma(4, 0.25, N)


def drawn(law, rng, size=()):
    """Draws of a law whose scale differs from sample to sample, shape (*size, N)."""
    shape = (*size, N)
    z = {
        "normal": lambda: rng.normal(size=shape),
        "gamma": lambda: rng.gamma(2, size=shape),
        "t3": lambda: rng.standard_t(3, shape),
        "mixture": lambda: rng.choice([-1.0, 1.0], shape) + 0.25 * rng.normal(size=shape),
    }
    return SCALE * z[law]()


def quantiles(law, levels):
    """Of the same laws, shape (levels, N)."""
    if law == "mixture":
        grid = np.linspace(-3, 3, 200_001)
        z = np.interp(
            levels, 0.5 * (stats.norm.cdf((grid + 1) / 0.25) + stats.norm.cdf((grid - 1) / 0.25)), grid
        )
    else:
        z = {"normal": stats.norm(), "gamma": stats.gamma(2), "t3": stats.t(3)}[law].ppf(levels)
    return np.asarray(z)[:, None] * SCALE


def assert_calibrated(report):
    """Coverage and PIT within the error of N samples."""
    for percent in (50, 90, 95):
        share, error = percent / 100, math.sqrt(percent / 100 * (1 - percent / 100) / N)
        if f"coverage_{percent}" in report.scores:
            assert abs(report.scores[f"coverage_{percent}"] - share) < 4 * error
    assert report.scores["pit_ks"] < 1.95 / math.sqrt(N)


@pytest.mark.parametrize("law", ["normal", "gamma", "t3", "mixture"])
@pytest.mark.parametrize("members", [2, 5, 20, 200])
def test_perfect_draws(law, members):
    rng = np.random.default_rng(members)
    report = uq.evaluate(uq.Predictions.from_samples(drawn(law, rng), drawn(law, rng, (members,))))
    assert {"coverage_50", "coverage_90", "coverage_95"} <= report.scores.keys()
    assert_calibrated(report)


@pytest.mark.parametrize("law", ["normal", "gamma", "t3", "mixture"])
@pytest.mark.parametrize("count", [3, 9, 19, 99])
def test_perfect_quantiles(law, count):
    levels = np.arange(1, count + 1) / (count + 1)
    data = uq.Predictions.from_quantiles(
        drawn(law, np.random.default_rng(count)), quantiles(law, levels), levels, axis=0
    )
    report = uq.evaluate(data)
    assert_calibrated(report)
    level = levels[-1] - levels[0]
    assert abs(report.scores["interval_coverage"] - level) < 4 * math.sqrt(level * (1 - level) / N)
    if count == 99:
        assert {"coverage_50", "coverage_90"} <= report.scores.keys()
