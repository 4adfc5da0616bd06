"""Curves against numpy and scipy: the literal ones, those that no literal function writes out, and their scores."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import uq_tracking as uq

from . import curves, datasets
from .literal import LITERAL
from .regression import ranking

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


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_curves_and_the_scores_that_summarize_them(name):
    d = datasets.REGRESSION[name]()
    arguments = d.y, d.mu, d.s
    score = {key: f(*arguments) for key, f in LITERAL.items() if key != "nll_uniform"}
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
    assert_allclose(area, ranking.ause_mae(d.y, d.mu, d.s), atol=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_cells_of_error_against_std_hold_the_samples_inside_them(name):
    d = datasets.REGRESSION[name]()
    error = np.abs(np.subtract(d.y, d.mu))
    columns = uq.evaluate(d.y, d.mu, d.s).curves["error_vs_std"].columns
    cells = zip(*(columns[key] for key in ("std_low", "std_high", "error_low", "error_high")), strict=True)
    inside = [np.sum(within(d.s, a, b) & within(error, c, e)) for a, b, c, e in cells]
    assert_allclose(columns["count"], inside, rtol=0, atol=0)
    assert columns["count"].sum() == len(error)


def within(values, low, high):
    """Whether values lie in a cell, which holds its lower edge; zeros have a cell without width."""
    return (values == low) | (values >= low) & (values < high)


@pytest.mark.parametrize("name", NAMES)
def test_isotonic_reliability_is_the_largest_of_the_smallest_means(name):
    d = datasets.REGRESSION[name]()
    columns = (
        uq.evaluate(d.y, d.mu, d.s, curves="reliability_isotonic").curves["reliability_isotonic"].columns
    )
    std, group = np.unique(d.s, return_inverse=True)
    squares = np.append(0, np.cumsum(np.bincount(group, np.square(np.subtract(d.y, d.mu)))))
    count = np.append(0, np.cumsum(np.bincount(group)))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.subtract.outer(squares, squares) / np.subtract.outer(
            count, count
        )  # of groups from column to row
    fit = [means[i + 1 :, : i + 1].min(axis=0).max() for i in range(len(std))]
    places = [np.abs(std - predicted).argmin() for predicted in columns["predicted"]]
    assert_allclose(columns["predicted"], std[places], rtol=1e-12)
    assert_allclose(columns["observed"], np.sqrt(fit)[places], rtol=1e-9)
    assert_allclose(np.unique(columns["observed"]), np.unique(np.sqrt(fit)), rtol=1e-9)
