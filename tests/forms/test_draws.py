"""Draws against scoringrules, properscoring, numpy and simulation."""

from __future__ import annotations

import numpy as np
import properscoring
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from uq_tracking.inputs.forms.draws import draw_columns, draw_quantiles, score_draws
from uq_tracking.inputs.forms.form import EVERY_LEVEL


def made(n=40, members=12, seed=0):
    rng = np.random.default_rng(seed)
    centre = 5 * rng.normal(size=n)
    return centre + rng.normal(size=n), centre + rng.normal(size=(members, n))


@pytest.mark.parametrize("members", [2, 3, 20, 130])
def test_both_estimators_of_the_crps_are_those_of_the_peers(members):
    y, draws = made(members=members)
    found = draw_columns(y, draws)
    assert_allclose(found["crps"], scoringrules.crps_ensemble(y, draws.T, estimator="fair"), atol=1e-12)
    assert_allclose(
        found["crps_ensemble"], scoringrules.crps_ensemble(y, draws.T, estimator="nrg"), atol=1e-12
    )
    assert_allclose(found["crps_ensemble"], properscoring.crps_ensemble(y, draws.T), atol=1e-12)


def test_mean_and_variance_of_a_further_draw():
    y, draws = made()
    found = draw_columns(y, draws)
    assert_allclose(found["mean"], draws.mean(axis=0), rtol=1e-12)
    assert_allclose(found["std"] ** 2, (1 + 1 / 12) * draws.var(axis=0, ddof=1), rtol=1e-12)


@pytest.mark.parametrize("members", [39, 99, 200, 257])
def test_quantiles_are_type_six(members):
    y, draws = made(members=members)
    levels = EVERY_LEVEL[(members + 1) * EVERY_LEVEL >= 1 - 1e-9]
    levels = levels[(members + 1) * levels <= members + 1e-9]
    found = draw_quantiles(np.sort(draws.T, axis=1), np.full(40, float(members)), levels)
    assert_allclose(found.T, np.quantile(draws, levels, axis=0, method="weibull"), rtol=1e-9, atol=1e-9)
    columns = draw_columns(y, draws)
    edges = np.quantile(draws, [0.025, 0.975], axis=0, method="weibull")
    assert_allclose(columns["interval_width_95"], edges[1] - edges[0], rtol=1e-9)
    assert ("pinball" in columns) is (members >= 99)
    assert ("interval_score" in columns) is (members >= 199)
    if members >= 199:
        p = np.arange(1, 100)[:, None] / 100
        gap = y - np.quantile(draws, p[:, 0], axis=0, method="weibull")
        assert_allclose(columns["pinball"], np.maximum(p * gap, (p - 1) * gap).mean(axis=0), rtol=1e-9)
        low, high = (
            np.quantile(draws, (1 + side * p[:, 0]) / 2, axis=0, method="weibull") for side in (-1, 1)
        )
        score = high - low + 2 / (1 - p) * (np.maximum(low - y, 0) + np.maximum(y - high, 0))
        assert_allclose(columns["interval_score"], score.mean(axis=0), rtol=1e-9)


def test_the_pit_is_spread_over_ranks_and_ties():
    found = draw_columns(np.array([2.0, 0.0, 9.0]), np.array([[1.0], [2.0], [2.0], [3.0]]) * np.ones(3))
    assert_allclose(found["pit_low"], [1 / 5, 0, 4 / 5])
    assert_allclose(found["pit_high"], [4 / 5, 1 / 5, 1])


def test_ragged_draws_are_those_that_are_there():
    y, draws = made(n=60, members=140)
    rng = np.random.default_rng(1)
    ragged = draws.copy()
    for k in range(60):
        ragged[rng.permutation(140)[: rng.integers(0, 139)], k] = np.nan
    found = draw_columns(y, ragged)
    for k in range(60):
        kept = ragged[np.isfinite(ragged[:, k]), k]
        alone = draw_columns(y[k : k + 1], kept[:, None])
        assert found["size"][k] == len(kept)
        for name in ("mean", "std", "pit_low", "pit_high", "crps", "crps_ensemble", "interval_width_95"):
            expected = alone[name][0] if name in alone else np.nan
            assert_allclose(found[name][k], expected, rtol=1e-12, atol=1e-12, err_msg=name)


def test_a_single_draw_has_no_std():
    found = score_draws(np.array([0.0]), np.array([[1.0], [np.nan]]))
    assert np.isnan(found["std"][0])


def test_blocks_change_nothing(monkeypatch):
    y, draws = made(n=300, members=45)
    whole = score_draws(y.reshape(20, 15), draws.reshape(45, 20, 15))
    monkeypatch.setattr("uq_tracking.inputs.forms.form.BLOCK", 128)
    parts = score_draws(y.reshape(20, 15), draws.reshape(45, 20, 15))
    for name, column in whole.items():
        assert column.shape == (20, 15)
        assert_array_equal(column, parts[name])


def share_inside(low, high, level):
    """Expected share of spread PIT values inside the central interval, written out."""
    a, b = (1 - level) / 2, (1 + level) / 2
    inside = np.clip(np.minimum(high, b) - np.maximum(low, a), 0, None)
    return float(np.mean(inside / (high - low)))


@pytest.mark.slow
@pytest.mark.parametrize("members", [2, 5, 20, 200])
@pytest.mark.parametrize("law", ["normal", "gamma", "cauchy", "poisson", "two modes"])
def test_perfect_draws_are_calibrated_whatever_their_number_and_law(members, law):
    n, rng = 40_000 if members < 200 else 10_000, np.random.default_rng(members)
    draw = {
        "normal": rng.standard_normal,
        "gamma": lambda size: rng.gamma(2, size=size),
        "cauchy": rng.standard_cauchy,
        "poisson": lambda size: rng.poisson(2.5, size=size).astype(float),
        "two modes": lambda size: rng.normal(size=size) * 0.2 + rng.choice([-1, 1], size=size),
    }[law]
    found = draw_columns(draw((n,)), draw((members, n)))
    for level in (0.5, 0.9, 0.95):
        # spreading can only make the spread of the share smaller than that of independent hits
        tolerance = 4 * np.sqrt(level * (1 - level) / n)
        assert abs(share_inside(found["pit_low"], found["pit_high"], level) - level) < tolerance
    assert_allclose(np.mean((found["pit_low"] + found["pit_high"]) / 2), 0.5, atol=4 * 0.29 / np.sqrt(n))


@pytest.mark.slow
def test_the_ratio_of_sums_is_one_for_perfect_draws():
    rng, n = np.random.default_rng(0), 200_000
    for members in (2, 5, 20):
        found = draw_columns(rng.normal(size=n), rng.normal(size=(members, n)))
        error = rng.normal(size=n) - found["mean"]
        assert_allclose(np.sqrt(np.sum(error**2) / np.sum(found["std"] ** 2)), 1, atol=0.01)


values = st.integers(-6, 6).map(float)


@pytest.mark.slow
@given(
    st.lists(st.tuples(values, st.lists(values, min_size=4, max_size=4)), min_size=1, max_size=8),
    st.randoms(),
)
@settings(max_examples=60)
def test_order_shift_and_scale(samples, random):
    y = np.array([target for target, _ in samples])
    draws = np.array([row for _, row in samples]).T
    found = draw_columns(y, draws)
    order = list(range(4))
    random.shuffle(order)
    other = draw_columns(4 * y + 3, 4 * draws[order] + 3)
    for name in ("pit_low", "pit_high", "size"):
        assert_array_equal(found[name], other[name])
    for name in ("std", "crps", "crps_ensemble"):
        assert_allclose(other[name], 4 * found[name], atol=1e-12)
    assert np.all(found["pit_low"] < found["pit_high"])
    assert np.all((found["pit_low"] >= 0) & (found["pit_high"] <= 1))
