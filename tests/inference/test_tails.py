"""Heavy tails: Hill's estimate literally, and what is refused because of them."""

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.inference.limits import TAIL_SHARE, tail_index


def hill(z):
    largest = np.sort(np.abs(z))[::-1]
    k = round(TAIL_SHARE * len(z))
    return 1 / np.mean(np.log(largest[:k] / largest[k]))


@pytest.mark.parametrize("method", ["exact", "sketch"])
def test_the_index_is_hills(method):
    z = np.random.default_rng(0).standard_t(3, 5000)
    statistics = uq.evaluate(z, np.zeros(5000), np.ones(5000), statistics=method, metrics=["rmse"]).statistics
    index, size = tail_index(statistics.orders["z"])
    assert index == pytest.approx(hill(z), rel=0.01)
    assert size == TAIL_SHARE * 5000


def test_tails_that_are_known():
    rng = np.random.default_rng(1)
    found = {}
    for name, z in (("normal", rng.normal(size=40_000)), ("t4", rng.standard_t(4, 40_000))):
        report = uq.evaluate(z, np.zeros(len(z)), np.ones(len(z)), metrics=["rmse"])
        found[name] = tail_index(report.statistics.orders["z"])[0]
    assert found["normal"] == pytest.approx(6.5, abs=0.4)
    assert found["t4"] == pytest.approx(3.5, abs=0.25)


def test_few_samples_and_equal_errors_show_no_tail():
    few = uq.evaluate(np.arange(100.0), np.zeros(100), np.ones(100), metrics=["rmse"])
    equal = uq.evaluate(np.ones(5000), np.zeros(5000), np.ones(5000), metrics=["rmse"])
    assert tail_index(few.statistics.orders["z"])[0] == np.inf
    assert tail_index(equal.statistics.orders["z"])[0] == np.inf


def test_means_of_squares_have_no_interval_and_others_do():
    rng = np.random.default_rng(2)
    truth, groups = rng.standard_t(2.5, 3000), np.repeat(np.arange(30), 100)
    report = uq.evaluate(truth, np.zeros(3000), np.ones(3000), groups=groups)
    reasons = report.provenance["intervals"]["undefined"]
    for key in ("rmse", "z_std", "nll"):
        assert key not in report.intervals
        assert "heavy tails" in reasons[key]
    assert {"mae", "crps", "coverage_95", "nll_laplace"} <= report.intervals.keys()
    assert "heavy tails" in " ".join(report.verdict.caveats)
    assert report.verdict.calibration != "underconfident"
