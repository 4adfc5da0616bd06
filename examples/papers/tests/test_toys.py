"""The toys are what the papers say, and the true distributions are those that the targets come from."""

import numpy as np
import pytest
from scipy import stats

import uq_tracking as uq
from uq_tracking.errors import SettingsError
from uq_tracking_papers import datasets

SETS = {
    "cubic": lambda seed: datasets.cubic(4000, seed),
    "wide cubic": lambda seed: datasets.cubic(4000, seed, half_width=6.0),
    "cubic without outliers": lambda seed: datasets.cubic_with_outliers(4000, seed, outliers=0),
    "heteroscedastic": lambda seed: datasets.linear_noise(4000, seed),
    "cauchy": lambda seed: datasets.cauchy(4000, seed)[0],
}


@pytest.mark.parametrize("draw", SETS.values(), ids=SETS)
def test_targets_come_from_the_true_distribution(draw):
    sample = draw(0)
    u = stats.norm.cdf(sample.y, sample.truth.mean, sample.truth.std)
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    np.testing.assert_array_equal(draw(0).y, sample.y)
    assert not np.array_equal(draw(1).y, sample.y)


def test_outliers_are_too_high_and_three_of_twenty():
    sample = datasets.cubic_with_outliers(20, 4)
    inside = (sample.x >= -2.3) & (sample.x <= -1.3)
    assert inside.sum() == 3
    off = (sample.y - sample.x**3) / 3
    assert off[inside].min() > 15
    assert np.abs(off[~inside]).max() < 5
    assert np.abs(sample.x).max() <= 4


def test_impossible_outliers():
    with pytest.raises(SettingsError, match=r"outliers is 21 of 20 samples; choose 0 \.\.\. 20"):
        datasets.cubic_with_outliers(20, outliers=21)


def test_the_cauchy_predictions_are_calibrated_and_know_nothing():
    sample, predictions = datasets.cauchy(20_000, 0)
    scores = uq.evaluate(predictions, metrics=["calibration_error", "spearman"]).scores
    assert scores["calibration_error"] < 1e-4
    assert abs(scores["spearman"]) < 4 / np.sqrt(20_000)
    assert stats.kstest(sample.y / sample.x, stats.cauchy.cdf).pvalue > 1e-3


def test_random_standard_deviations_lie_between_one_and_ten():
    std = datasets.random_std(1000, 0)
    assert stats.kstest(std, stats.uniform(1, 9).cdf).pvalue > 1e-3
