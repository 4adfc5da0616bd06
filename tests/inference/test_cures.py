"""What is said to remove an error of standard deviations: only what removes it on other samples, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.inference.doctor import find_cure
from uq_tracking.settings import Settings


def samples(seed, n=2000):
    rng = np.random.default_rng(seed)
    std, mean = np.exp(0.6 * rng.normal(size=n)), 2 * rng.normal(size=n)
    return std, mean, std * rng.normal(size=n)


def too_small(seed):
    std, mean, error = samples(seed)
    return mean + error, mean, std / 1.5


def too_varied(seed):
    std, mean, error = samples(seed)
    return mean + error, mean, std**2


@pytest.mark.parametrize(("make", "method"), [(too_small, "std_scaling"), (too_varied, "std_isotonic")])
def test_what_removes_an_error_removes_it_on_fresh_samples(make, method):
    found = [uq.evaluate(*make(seed)) for seed in range(6)]
    cures = [report.verdict.cure for report in found]
    assert set(cures) <= {method, None}
    assert cures.count(method) >= 4
    for seed, report in enumerate(found):
        if report.verdict.cure:
            target, mean, std = make(100 + seed)
            mean, std = uq.recalibrate(report, method).apply(mean, std)
            after = uq.evaluate(target, mean, std)
            assert after.scores["ence"] < 0.4 * report.scores["ence"]
            assert f"Recalibration with {method} removes this (ENCE" in report.verdict.text


def test_none_is_named_where_the_mean_is_wrong():
    std, mean, error = samples(0)
    for wrong in (2 * mean + error, mean + error + 0.5 * std):
        report = uq.evaluate(wrong, mean, std / 1.5)
        assert report.verdict.grade == "off"
        assert report.verdict.cure is None


def test_none_is_named_where_nothing_is_wrong_or_samples_are_gone():
    std, mean, error = samples(1)
    assert uq.evaluate(mean + error, mean, std).verdict.cure is None
    stream = uq.Accumulator()
    stream.update(*too_small(2))
    assert stream.compute().verdict.calibration == "overconfident"
    assert stream.compute().verdict.cure is None


def test_standard_deviations_that_sort_errors_backwards_have_no_single_factor():
    std, mean, error = samples(3)
    rows = {"target": mean + error, "mean": mean, "std": np.mean(std**2) / std}
    found = find_cure(rows, None, Settings())
    assert found is None or (found.method, found.after < found.before) == ("std_isotonic", True)


def test_groups_are_fitted_and_judged_apart():
    rng = np.random.default_rng(4)
    shared = rng.normal(size=40) * 0.3
    group = np.repeat(np.arange(40), 50)
    std, mean, error = samples(4)
    wrong = {"target": mean + error + std * shared[group], "mean": mean, "std": std / 2}
    found = find_cure(wrong, group, Settings())
    assert found is not None
    assert found.method == "std_scaling"
    assert found.after < 0.3 * found.before
