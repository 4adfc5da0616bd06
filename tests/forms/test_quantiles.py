"""Quantiles and intervals against scoringrules, scikit-learn, literal formulas and simulation."""

from __future__ import annotations

import numpy as np
import pytest
import scoringrules
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import mean_pinball_loss

import uq_tracking as uq
from uq_tracking.errors import SettingsError
from uq_tracking.inputs.forms.distribution import score_distribution
from uq_tracking.inputs.forms.quantiles import quantile_columns, score_quantiles

LAWS = {
    "normal": stats.norm(2, 3),
    "gamma": stats.gamma(2),
    "t": stats.t(3),
    "lognormal": stats.lognorm(0.8),
}
GRIDS = {
    3: np.array([0.1, 0.5, 0.9]),
    7: np.array([0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975]),
    19: np.arange(1, 20) / 20,
    99: np.arange(1, 100) / 100,
}


def forecasts(law, levels, n, seed=0):
    y = LAWS[law].rvs(n, random_state=np.random.default_rng(seed))
    return y, np.repeat(LAWS[law].ppf(levels)[:, None], n, axis=1)


@pytest.mark.parametrize("size", GRIDS)
def test_pinball_and_weighted_interval_score_are_those_of_the_peers(size):
    levels = GRIDS[size]
    y, q = forecasts("gamma", levels, 50)
    found = quantile_columns(y, q, levels)
    expected = np.mean([mean_pinball_loss(y, row, alpha=p) for p, row in zip(levels, q, strict=True)])
    assert_allclose(found["pinball"].mean(), expected, rtol=1e-12)
    half = len(levels) // 2
    alpha = 2 * levels[:half]
    low, high = q[:half], q[:half:-1]
    intervals = high - low + 2 / alpha[:, None] * (np.maximum(low - y, 0) + np.maximum(y - high, 0))
    bracher = (0.5 * np.abs(y - q[half]) + np.sum(alpha[:, None] / 2 * intervals, axis=0)) / (half + 0.5)
    assert_allclose(found["wis"], bracher, rtol=1e-10)
    theirs = scoringrules.interval_score(y, low[0], high[0], alpha[0])
    assert_allclose(intervals[0], theirs, rtol=1e-12)
    assert_allclose(found["wis"], 2 * found["pinball"], rtol=1e-12)


@pytest.mark.slow
def test_the_approximate_crps_grows_towards_the_crps():
    """The CRPS of Gamma(2) at itself is 3/4; few levels leave out the more, as the specification's .878 ... .995."""
    seven = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
    for grid, share in ((GRIDS[3], 0.878), (seven, 0.966), (GRIDS[19], 0.9955), (GRIDS[99], 0.9998)):
        y, q = forecasts("gamma", grid, 50_000)
        found = quantile_columns(y, q, grid)["crps"]
        exact = score_distribution(y, stats.gamma(2))[0]["crps"]
        assert_allclose(found.mean() / exact.mean(), share, atol=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", GRIDS)
def test_true_quantiles_are_calibrated(law, size):
    n, levels = 40_000, GRIDS[size]
    y, q = forecasts(law, levels, n)
    found = quantile_columns(y, q, levels)
    low, high = found["pit_low"], found["pit_high"]
    for p in levels:  # four standard errors
        share = np.mean(np.clip((p - low) / (high - low), 0, 1))
        assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / n)
    for name, level in (("inside_50", 0.5), ("inside_90", 0.9), ("inside_95", 0.95)):
        both = all(np.any(np.isclose(levels, (1 + side * level) / 2)) for side in (-1, 1))
        assert (name in found) is both
        if both:
            assert abs(found[name].mean() - level) < 4 * np.sqrt(level * (1 - level) / n)


def test_the_pit_at_ties_spans_the_levels_around():
    levels = np.array([0.25, 0.5, 0.75])
    found = quantile_columns(
        np.array([1.0, 0.5, -1.0, 3.0]), np.array([[0.0], [1.0], [1.0]]) * np.ones(4), levels
    )
    assert_array_equal(found["pit_low"], [0.25, 0.25, 0.0, 0.75])
    assert_array_equal(found["pit_high"], [1.0, 0.5, 0.25, 1.0])


def test_crossings_are_sorted_and_counted():
    levels = np.array([0.1, 0.5, 0.9])
    y, q = forecasts("normal", levels, 20)
    crossed = q.copy()
    crossed[[0, 2], 3] = crossed[[2, 0], 3]
    one, other = score_quantiles(y, q, levels), score_quantiles(y, crossed, levels)
    assert not one["crossed"].any()
    assert_array_equal(np.flatnonzero(other["crossed"]), [3])
    for name, column in one.items():
        if name != "crossed":
            assert_array_equal(column, other[name])


def test_mean_and_std_of_normal_quantiles_are_those_of_the_normal():
    levels = np.array([0.05, 0.3, 0.6, 0.9])
    _, q = forecasts("normal", levels, 5)
    found = score_quantiles(np.zeros(5), q, levels)
    assert_allclose(found["mean"], 2, rtol=1e-12)
    assert_allclose(found["std"], 3, rtol=1e-12)
    own = score_quantiles(np.zeros(5), q, levels, np.full(5, 7.0))
    assert_array_equal(own["mean"], np.full(5, 7.0))


def test_an_interval_is_two_quantiles():
    y = np.array([0.0, 1.0, 2.5])
    low, high = np.array([-1.0, 1.0, 0.0]), np.array([1.0, 3.0, 2.0])
    found = score_quantiles(y, np.stack([low, high]), np.array([0.1, 0.9]))
    assert uq.Predictions.from_interval(y, low, high, 0.8).form.name == "interval"
    assert_array_equal(found["inside_widest"], [1, 1, 0])
    assert_allclose(found["width_widest"], [2, 2, 2])
    assert_allclose(found["mean"], (low + high) / 2)
    assert_allclose(found["std"], 2 / (2 * stats.norm.ppf(0.9)))
    assert "wis" not in found


def test_what_cannot_be_told_is_refused():
    with pytest.raises(SettingsError, match="two or more levels"):
        score_quantiles(np.zeros(2), np.zeros((1, 2)), np.array([0.5]))
    with pytest.raises(
        SettingsError, match=r"levels from 0\.9 to 0\.95 do not enclose the median; pass y_pred"
    ):
        score_quantiles(np.zeros(2), np.zeros((2, 2)), np.array([0.9, 0.95]))
    with pytest.raises(SettingsError, match="levels is None; pass shares, such as"):
        uq.Predictions.from_quantiles(np.zeros(5), np.zeros((5, 3)))
