"""Scores beyond the ends of their scale."""

import numpy as np

import uq_tracking as uq
from tests.inference.made import forecasts


def with_outliers():
    """Standard deviations that are right for all errors but three per cent, which are large and not known of."""
    rng = np.random.default_rng(0)
    truth = np.exp(0.5 * rng.normal(size=2000)) * rng.normal(size=2000)
    std = np.abs(truth)
    truth[::33] = 30.0
    return truth, np.zeros(2000), std


def test_a_score_better_than_the_oracle_is_marked_and_not_ranked():
    truth, mean, std = with_outliers()
    blind = uq.evaluate(truth, mean, std)
    assert blind.scores["n_merci"] < 0
    assert "below its oracle" in str(blind)
    found = uq.compare({"blind": blind, "constant": uq.evaluate(truth, mean, np.ones(2000))}, maps=False)
    assert found.table["blind"]["n_merci"].rank is None
    assert found.table["constant"]["n_merci"].rank == 1
    assert found.table["blind"]["merci"].rank is None
    assert found.table["blind"]["nll"].rank is not None


def test_no_better_than_a_constant_is_said():
    rng = np.random.default_rng(1)
    report = uq.evaluate(rng.normal(size=500), np.zeros(500), np.exp(rng.normal(size=500)))
    assert report.scores["n_merci"] >= 1
    assert "no better than a constant uncertainty" in str(report)
    truth, mean, std, _ = forecasts(rng, 500)
    assert "constant uncertainty" not in str(uq.evaluate(truth, mean, std)).split("\n", 1)[0]
