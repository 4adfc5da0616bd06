"""The metric and the curve as a user sees them: installed next to uq-tracking."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.comparison import compare


def scored(seed=0, n=500, **options):
    error = np.random.default_rng(seed).normal(size=n)
    return uq.evaluate(error, np.zeros(n), np.full(n, 0.5), **options)


def test_it_stands_among_the_metrics_of_its_family_and_is_computed_by_default():
    keys = list(plugins.metrics())
    assert plugins.metrics()["tail_ratio"].function.__module__ == "uq_tracking_example_metric"
    assert keys.index("z_std") < keys.index("tail_ratio") < keys.index("ause_rmse")
    report = scored(n=4000, groups=np.repeat(np.arange(20), 200))
    low, high = report.intervals["tail_ratio"]
    assert low <= report.scores["tail_ratio"] <= high


def test_a_gap_gives_a_metric_its_score_floor_and_interval():
    error = np.random.default_rng(1).normal(size=2000)
    report = uq.evaluate(
        error,
        np.zeros(2000),
        np.ones(2000),
        groups=np.repeat(np.arange(20), 100),
        metrics="tail_coverage_error",
    )
    levels = np.arange(90, 100) / 100
    inside = np.abs(error)[:, None] <= stats.norm.ppf((1 + levels) / 2)
    score = report.scores["tail_coverage_error"]
    assert_allclose(score, np.abs(inside.mean(axis=0) - levels).mean(), rtol=1e-12)
    floor, (low, high) = report.noise["tail_coverage_error"], report.intervals["tail_coverage_error"]
    assert 0 < floor.mean < floor.high < 0.05
    assert floor.p > 0.05
    assert low == 0
    assert high > score
    narrow = uq.evaluate(error, np.zeros(2000), np.full(2000, 0.7), metrics="tail_coverage_error")
    assert narrow.noise["tail_coverage_error"].p < 0.001


def test_the_curve_holds_order_statistics_over_quantiles_and_ends_in_the_score():
    error = np.random.default_rng(1).normal(size=1000)
    report = uq.evaluate(error, np.zeros(1000), np.full(1000, 0.5))
    columns, levels = report.curves["tails"].columns, np.arange(50, 100) / 100
    expected = np.sort(np.abs(error / 0.5))[np.arange(500, 1000, 10) - 1]
    assert_allclose(columns["observed"], expected, rtol=1e-12)
    assert_allclose(columns["claimed"], stats.norm.ppf((1 + levels) / 2), rtol=1e-12)
    assert_allclose(report.scores["tail_ratio"], expected[-1] / stats.norm.ppf(0.995), rtol=1e-12)


def test_groups_give_the_curve_a_band_and_a_recalibration_a_second_one():
    report = scored(groups=np.repeat(np.arange(10), 50), calibration=True)
    columns = report.curves["tails"].columns
    assert np.all(columns["low"] <= columns["observed"])
    assert np.all(columns["high"] >= columns["observed"])
    after = report.curves["tails_recalibrated"].columns["observed"]
    assert_allclose(after, columns["observed"] / 2, rtol=0.1)


@pytest.mark.parametrize(("n", "std", "reason"), [(99, 1.0, "it needs 100"), (200, 0.0, "set std_floor")])
def test_it_is_undefined_with_a_reason(n, std, reason):
    error = np.random.default_rng(2).normal(size=n)
    report = uq.evaluate(error, np.zeros(n), np.full(n, std))
    assert reason in report.undefined["tail_ratio"]
    assert "tails" not in report.curves


def test_curve_and_figure_are_logged_under_a_name_that_says_the_distribution(tmp_path):
    error = np.random.default_rng(3).normal(size=200)
    uq.log(error, np.zeros(200), np.ones(200), family="laplace", run=tmp_path / "run")
    assert (tmp_path / "run" / "uq_tails.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (tmp_path / "run").rglob("tails*")] == ["tails.laplace.csv"]


def test_comparisons_lay_runs_over_each_other_on_the_diagonal():
    comparison = compare({"a": scored(0), "b": scored(1)})
    overlay = comparison.curves["tails"]
    assert overlay.diagonal
    assert [line.label for line in overlay.lines] == ["a", "b"]
