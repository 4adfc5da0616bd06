"""Where standard deviations are wrong: what is found, what is named, and what does no harm."""

from __future__ import annotations

import json

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.inference.places import Places, find_places


def samples(n, seed=0, spread=0.6):
    rng = np.random.default_rng(seed)
    std, mean = np.exp(spread * rng.normal(size=n)), 2 * rng.normal(size=n)
    return std * rng.normal(size=n), std, mean


def found(error, std, mean, **options):
    return {(each.quantity, each.on) for each in find_places(error, std, mean, **options).found()}


def test_calibrated_models_are_rarely_wrong_anywhere():
    assert sum(bool(found(*samples(300, seed))) for seed in range(100)) <= 5


def test_standard_deviations_that_vary_too_much_are_found_with_their_factors():
    error, std, mean = samples(2000)
    places = find_places(error / np.sqrt(std), std, mean)
    (one,) = places.found()
    assert (one.quantity, one.on, one.grade) == ("scale", "std", "off")
    assert one.slope < 0
    smallest, *_, largest = places.parts["std"]
    # fifths of a log-normal std of spread .6: the true factor is the root of the mean of 1 / std in each
    for part, true in ((smallest, 1.55), (largest, 0.67)):
        assert part.factor_low < true < part.factor_high
        assert part.factor == pytest.approx(true, rel=0.1)
    assert smallest.share == pytest.approx(0.2, abs=1e-3)


def test_a_bias_along_the_prediction_is_no_error_of_scale():
    error, std, mean = samples(2000)
    assert found(error + mean, std, mean) == {("bias", "mean")}


def test_both_are_found_where_both_are_wrong():
    error, std, mean = samples(4000)
    assert found(error / np.sqrt(std) + 0.5 * mean, std, mean) == {("bias", "mean"), ("scale", "std")}


def test_limits_hold_for_all_parts_together():
    inside = 0
    for seed in range(60):
        places = find_places(*samples(1000, seed))
        parts = [part for each in places.parts.values() for part in each]
        inside += all(p.factor_low < 1 < p.factor_high and p.bias_low < 0 < p.bias_high for p in parts)
    assert inside >= 55


def test_groups_make_it_less_certain():
    error, std, mean = samples(2000, spread=0.3)
    error = error / std**0.3
    group = np.repeat(np.arange(10), 200)
    alone = find_places(error, std, mean)
    together = find_places(error, std, mean, group=group)
    assert min(each.p for each in together.patterns) > min(each.p for each in alone.patterns)
    assert find_places(error, std, mean, group=np.arange(2000) % 7) == Places()


@pytest.mark.parametrize("kind", ["no error", "equal errors", "one std", "two values", "one outlier", "few"])
def test_degenerate_samples_do_no_harm(kind):
    error, std, mean = samples(30 if kind == "few" else 400)
    if kind == "no error":
        error = np.zeros(400)
    elif kind == "equal errors":
        error = np.where(mean > 0, 1.0, 0.0)
    elif kind == "one std":
        std = np.ones(400)
    elif kind == "two values":
        std, mean = np.where(std > 1, 2.0, 1.0), np.where(mean > 0, 1.0, -1.0)
    elif kind == "one outlier":
        error = np.where(np.arange(400) == 7, 1e150, error)
    report = uq.evaluate(mean + error, mean, std)
    assert json.loads(report.to_json())["verdict"]["text"] == report.verdict.text
    assert uq.Report.from_json(report.to_json()).verdict == report.verdict
