"""Scores with every std multiplied by a number, against evaluating the multiplied stds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from tests.small_statistics import exact_statistics, sketch_statistics
from uq_tracking.curves.regression import FACTORS, best_factor, scale_sweep
from uq_tracking.errors import SettingsError
from uq_tracking.metrics.registry import Undefined, compute, select
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import scaled

SETTINGS = Settings()


def data(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.gamma(3, 0.5, n)
    return mean + 1.5 * std * rng.normal(size=n), mean, std


@pytest.mark.parametrize("factor", [0.1, 0.7, 1.0, 3.3])
def test_scaled_statistics_are_those_of_scaled_stds(factor):
    y, mean, std = data()
    expected = compute(exact_statistics(y, mean, factor * std), SETTINGS, select("regression"))
    exact = compute(scaled(exact_statistics(y, mean, std), factor), SETTINGS, select("regression"))
    sketch = compute(scaled(sketch_statistics(y, mean, std), factor), SETTINGS, select("regression"))
    assert exact[0].keys() == sketch[0].keys() == expected[0].keys()
    for key, value in expected[0].items():
        assert_allclose(exact[0][key], value, rtol=1e-9, atol=1e-12, err_msg=key)
        assert_allclose(sketch[0][key], value, rtol=3e-3, atol=1e-3, err_msg=key)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("inf"), float("nan")])
def test_a_factor_that_is_none_is_refused(factor):
    with pytest.raises(SettingsError, match="pass a finite number above 0"):
        scaled(exact_statistics(*data(20)), factor)


@pytest.mark.parametrize(("n", "tolerance"), [(3000, 1e-9), (30_000, 2e-5)])
def test_the_curve_holds_the_scores_at_every_factor(n, tolerance):
    y, mean, std = data(n)
    curve = scale_sweep(exact_statistics(y, mean, std), SETTINGS)
    assert "nll_uniform" not in curve.columns  # infinite at small scales
    for place in (0, 13, 20, 40):
        scores = uq.evaluate(y, mean, FACTORS[place] * std).scores
        for key in curve.columns.keys() - {"factor"}:
            wide = 100 if key.endswith("_uniform") and n > 3000 else 1  # a density that jumps within a bucket
            assert_allclose(
                curve.columns[key][place],
                scores[key],
                rtol=wide * tolerance,
                atol=wide * tolerance / 2,
                err_msg=key,
            )


def test_the_gaussian_log_score_is_best_at_the_closed_form_scale():
    y, mean, std = data(3000)
    curve = scale_sweep(exact_statistics(y, mean, std), SETTINGS)
    closed = np.sqrt(np.mean(((y - mean) / std) ** 2))
    assert abs(np.log10(best_factor(curve, "nll") / closed)) <= 0.025 + 1e-12  # half a step
    assert 1 < best_factor(curve, "quadratic_score") < 2.2


def test_coverage_only_rises_and_merci_stays():
    """MeRCI fig. 2; that both are what evaluating multiplied stds gives is tested above."""
    curve = scale_sweep(exact_statistics(*data(3000)), SETTINGS).columns
    assert np.all(np.diff(curve["coverage_95"]) >= 0)
    assert curve["coverage_95"][0] < 0.2 < 0.99 < curve["coverage_95"][-1]
    assert np.ptp(curve["merci"]) == 0


def test_a_constant_uncertainty_changes_only_by_its_scale():
    """MeRCI fig. 2: every score of a constant sigma depends on sigma alone."""
    y = np.random.default_rng(0).normal(size=2000)
    one, ten = (scale_sweep(exact_statistics(y, 0 * y, np.full(2000, s)), SETTINGS) for s in (0.5, 5.0))
    assert_allclose(one.columns["crps"][20:], ten.columns["crps"][:21], rtol=1e-9)


def test_it_is_made_when_asked_for_and_undefined_beside_a_zero_std():
    y, mean, std = data(200)
    assert "scale_sweep" not in uq.evaluate(y, mean, std).curves
    report = uq.evaluate(y, mean, std, curves="scale_sweep")
    assert report.curves["scale_sweep"].main == "crps"
    assert report.verdicts["scale_sweep"].startswith(
        "nll is best with every standard deviation multiplied by 1."
    )
    std[0] = 0
    kept = uq.evaluate(y, mean, std, curves="scale_sweep").curves["scale_sweep"]
    assert "nll" not in kept.columns
    assert "crps" in kept.columns


def test_without_a_score_it_is_undefined(monkeypatch):
    statistics = exact_statistics(*data(20))
    monkeypatch.setattr("uq_tracking.plugins.metrics", dict)
    with pytest.raises(Undefined, match="no proper score"):
        scale_sweep(statistics, SETTINGS)


def test_what_is_swept():
    statistics = exact_statistics(*data(20))
    of_gaussian, of_laplace = (
        scale_sweep(statistics, settings).columns for settings in (SETTINGS, Settings(family="laplace"))
    )
    assert len(of_gaussian) == 16  # the factor, 13 proper scores, coverage and merci; nll_uniform is infinite
    assert set(of_laplace) - set(of_gaussian) == {
        f"{key}_gaussian" for key in ("nll", "crps", "quadratic_score", "spherical_score")
    }
