"""The literal curves against numpy and scipy, and against the scores that summarise them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from . import curves, datasets, regression

NAMES = ["calibrated", "overconfident", "integers", "few_std", "continuous_137"]


@pytest.mark.parametrize("share", [0, 1, 17, 40, 49, 50])
def test_wilson_band(share):
    peer = stats.binomtest(share, 50).proportion_ci(confidence_level=0.95, method="wilson")
    assert_allclose(curves.wilson(share / 50, 50), peer, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_pit_histogram(name):
    d = datasets.REGRESSION[name]()
    u = stats.norm.cdf((d.y - d.mu) / d.s)
    counts, edges = np.histogram(u, bins=20, range=(0, 1))
    curve = curves.pit_histogram(d.y, d.mu, d.s)
    assert_allclose(curve["count"], counts, rtol=0, atol=0)
    assert_allclose(curve["density"], np.histogram(u, bins=20, range=(0, 1), density=True)[0], rtol=1e-12)
    assert_allclose(curve["center"], (edges[1:] + edges[:-1]) / 2, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_curves_and_the_scores_that_summarise_them(name):
    d = datasets.REGRESSION[name]()
    arguments = d.y, d.mu, d.s
    score = {key: f(*arguments) for key, f in regression.LITERAL.items() if key != "nll_uniform"}
    calibration = curves.calibration(*arguments)
    gap = np.subtract(calibration["observed"], calibration["expected"])
    assert_allclose(np.mean(gap**2), score["calibration_error"], rtol=1e-12)
    coverage = curves.coverage(*arguments)
    gap = np.subtract(coverage["observed"], coverage["nominal"])
    assert_allclose(np.trapezoid(np.abs(gap), coverage["nominal"]), score["auce"], rtol=1e-11)
    bins = curves.reliability(*arguments)
    assert_allclose(np.mean(np.abs(1 - np.divide(bins["rmse"], bins["rmv"]))), score["ence"], rtol=1e-11)
    assert sum(bins["count"]) == len(d.y)
    assert np.all(np.diff(bins["std_low"]) >= 0)
    error = curves.error_of(curves.sparsification_rmse(*arguments))
    assert_allclose(np.trapezoid(error["error"], error["fraction"]), score["ause_rmse"], rtol=1e-11)
    by_alpha = curves.n_merci_by_alpha(*arguments)
    assert_allclose(by_alpha["n_merci"][by_alpha["alpha"].index(0.95)], score["n_merci"], rtol=0)


def test_sparsification_of_the_mae_at_every_percent_is_close_to_its_exact_sum():
    """The 100-point curve of the MAE, integrated to 1, against the sum over every count of kept samples."""
    d = datasets.REGRESSION["calibrated"]()
    error = curves.error_of(curves.sparsification_mae(d.y, d.mu, d.s))
    area = np.trapezoid([*error["error"], 0.0], dx=0.01)
    assert_allclose(area, regression.ause_mae(d.y, d.mu, d.s), atol=0.01)
