"""Growing subsets and the verdict on the size of the test set."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.parts import verdict
from uq_tracking.formatting import format_number


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.gamma(3, 0.5, n)
    return mean + std * rng.normal(size=n), mean, std


def evaluated(n=4096, **options):
    return uq.evaluate(*data(n), curves="stability", **options)


def test_sizes_double_and_end_at_the_whole():
    report = evaluated(1000, curve_metrics=["mae", "ence"])
    curve = report.curves["stability_mae"].columns
    assert_allclose(curve["samples"], [8, 16, 32, 64, 128, 256, 1000], rtol=0)
    assert_allclose(curve["subsets"], [20] * 6 + [1], rtol=0)
    assert curve["mean"][-1] == report.scores["mae"]
    assert report.curves["stability_ence"].columns["samples"][0] == 16  # 8 samples cannot fill 10 bins


def test_a_mean_is_unbiased_and_its_spread_falls_with_the_root():
    report = evaluated(curve_metrics=["mae"])
    curve = report.curves["stability_mae"].columns
    y, mean, _ = data(4096)
    single = np.abs(y - mean).std()
    size = curve["samples"][:-1]
    expected = single / np.sqrt(size) * np.sqrt(1 - size / 4096)
    assert_allclose(curve["spread"][:-1], expected, rtol=0.5)  # 20 repeats know a spread to 16 %
    assert np.all(np.abs(curve["mean"][:-1] - report.scores["mae"]) < 4 * expected / np.sqrt(20))


def test_the_standard_error_is_extrapolated_to_the_whole():
    report = evaluated(curve_metrics=["mae"])
    reach = float(report.verdicts["mae"].partition("±")[2].split()[0])
    y, mean, _ = data(4096)
    assert_allclose(reach / 2, np.abs(y - mean).std() / 64, rtol=0.35)


@pytest.mark.parametrize(("n", "said"), [(64, "too small"), (30_000, "large enough")])
def test_the_verdict_depends_on_the_size(n, said):
    report = evaluated(n, curve_metrics=["rmse", "coverage_95"])
    assert report.verdicts["rmse"].startswith(said)
    assert report.verdicts["coverage_95"].startswith(said)
    assert f"{n:,} samples" in report.verdicts["rmse"]
    assert report.verdicts["rmse"] in str(report)


def test_a_too_small_set_is_told_how_many_would_do():
    report = evaluated(64, curve_metrics=["rmse"])
    sentence = report.verdicts["rmse"]
    wanted = int(sentence.split("about ")[1].split(" would")[0].replace(",", ""))
    assert sentence.endswith(f"±{format_number(0.05 * report.scores['rmse'], 2)}")
    assert (
        300 < wanted < 10_000
    )  # the error of a std of N samples is about 1 / sqrt(2 N): 5 % = 2 errors at 800


def test_whole_groups_are_drawn_where_there_are_groups():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(40), 100)
    hard = np.exp(rng.normal(size=40))[codes]
    y = hard * rng.normal(size=4000)
    options = {"curves": "stability", "curve_metrics": ["rmse"], "metrics": ["rmse"]}
    grouped = uq.evaluate(y, 0 * y, 0 * y + 1, groups=codes, **options)
    plain = uq.evaluate(y, 0 * y, 0 * y + 1, **options)
    assert_allclose(grouped.curves["stability_rmse"].columns["groups"], [2, 4, 8, 16, 40], rtol=0)
    assert grouped.verdicts["rmse"].startswith("too small: 40 groups")
    assert plain.verdicts["rmse"].startswith("large enough")


def test_a_metric_that_is_biased_on_small_sets_bends():
    """Xiong fig. 4 b: ENCE of a calibrated model falls with the number of samples."""
    curve = evaluated(8192, curve_metrics=["ence"]).curves["stability_ence"].columns
    assert np.all(np.diff(curve["mean"][:6]) < 0)


def test_too_few_samples_are_refused():
    with pytest.raises(SettingsError, match="12 samples are too few for stability; it needs 16"):
        evaluated(12)
    with pytest.raises(SettingsError, match="3 groups are too few"):
        uq.evaluate(*data(60), groups=np.arange(60) // 20, curves="stability")


def test_a_curve_of_one_size_says_nothing():
    report = evaluated(16, curve_metrics=["ence"])
    assert "ence" in report.scores
    curve = report.curves["stability_ence"]
    assert verdict(curve, plugins.metrics()["ence"], report.scores, "samples").startswith("unknown")


def test_verdicts_survive_json():
    report = evaluated(64)
    assert uq.Report.from_json(report.to_json()).verdicts == report.verdicts != {}
