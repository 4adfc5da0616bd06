"""The metric as a user meets it: installed beside uq-tracking."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import uq_tracking as uq
from uq_tracking.metrics.registry import registry


def test_it_is_registered_and_computed_by_default():
    assert registry()["tail_ratio"].function.__module__ == "uq_tracking_example_metric"
    error = np.random.default_rng(0).normal(size=500)
    report = uq.evaluate(error, np.zeros(500), np.ones(500), groups=np.repeat(np.arange(10), 50))
    low, high = report.intervals["tail_ratio"]
    assert low <= report.scores["tail_ratio"] <= high


def test_its_value_is_the_order_statistic_over_the_normal_one():
    error = np.random.default_rng(1).normal(size=1000)
    found = uq.evaluate(error, np.zeros(1000), np.full(1000, 0.5)).scores["tail_ratio"]
    expected = np.sort(np.abs(error / 0.5))[989] / stats.norm.ppf(0.995)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "std", "reason"), [(99, 1.0, "it takes 100"), (200, 0.0, "set std_floor")])
def test_it_is_undefined_with_a_reason(n, std, reason):
    error = np.random.default_rng(2).normal(size=n)
    report = uq.evaluate(error, np.zeros(n), np.full(n, std))
    assert reason in report.undefined["tail_ratio"]
