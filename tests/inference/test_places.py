"""Where standard deviations are wrong: what is found, what is named, and what does no harm."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.inference.places import Errors, Places, find_places, find_strata


def samples(n, seed=0, spread=0.6):
    rng = np.random.default_rng(seed)
    std, mean = np.exp(spread * rng.normal(size=n)), 2 * rng.normal(size=n)
    return std * rng.normal(size=n), std, mean


def found(error, std, mean, **options):
    return {(each.quantity, each.on) for each in find_places(Errors(error, std, mean, **options)).found()}


@pytest.mark.slow
def test_calibrated_models_are_rarely_wrong_anywhere():
    assert sum(bool(found(*samples(300, seed))) for seed in range(100)) <= 5


def test_standard_deviations_that_vary_too_much_are_found_with_their_factors():
    error, std, mean = samples(2000)
    places = find_places(Errors(error / np.sqrt(std), std, mean))
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


@pytest.mark.slow
def test_limits_hold_for_all_parts_together():
    inside = 0
    for seed in range(60):
        places = find_places(Errors(*samples(1000, seed)))
        parts = [part for each in places.parts.values() for part in each]
        inside += all(p.factor_low < 1 < p.factor_high and p.bias_low < 0 < p.bias_high for p in parts)
    assert inside >= 55


def test_groups_make_it_less_certain():
    error, std, mean = samples(2000, spread=0.3)
    error = error / std**0.3
    group = np.repeat(np.arange(10), 200)
    alone = find_places(Errors(error, std, mean))
    together = find_places(Errors(error, std, mean, group=group))
    assert min(each.p for each in together.patterns) > min(each.p for each in alone.patterns)
    assert find_places(Errors(error, std, mean, group=np.arange(2000) % 7)) == Places()


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


def labels(n, seed, count):
    return np.random.default_rng([seed, 1]).integers(0, count, n)


def claimed(error, std, label, **options):
    names = [str(k) for k in range(label.max() + 1)]
    return [
        k for each in find_strata(Errors(error, std, **options), label, names).patterns for k in each.named
    ]


@pytest.mark.slow
def test_labels_of_calibrated_models_rarely_differ():
    assert sum(bool(claimed(*samples(1000, seed)[:2], labels(1000, seed, 12))) for seed in range(100)) <= 4


def test_only_the_label_that_is_wrong_is_named():
    found = []
    for seed in range(40):
        (error, std, _), label = samples(6000, seed), labels(6000, seed, 12)
        found.append(claimed(np.where(label == 4, 1.8, 1) * error, std, label))
    assert found.count([4]) >= 38


def test_labels_of_which_none_stands_out_are_found_together_unless_they_share_groups():
    (error, std, _), label = samples(2000), np.arange(2000) % 50
    error, names = np.where(label < 25, 1.25, 0.8) * error, [str(k) for k in range(50)]
    (found,) = [each for each in find_strata(Errors(error, std), label, names).patterns if each.spread]
    assert (found.quantity, found.grade) == ("scale", "off")
    assert found.spread == pytest.approx(math.log(1.25), rel=0.3)
    of_one = math.pi / 2 - 1  # squared coefficient of variation of |z|
    assert found.enough == pytest.approx(of_one / found.spread**2, rel=0.3)
    low, high = found.named
    assert low >= 25 > high
    crossed = find_strata(Errors(error, std, group=np.arange(2000) // 50), label, names)
    assert not any(each.spread for each in crossed.patterns)


def test_a_label_of_few_samples_or_few_groups_says_nothing():
    error, std, _ = samples(400)
    label = (np.arange(400) >= 385).astype(int)
    few = find_strata(Errors(np.where(label == 1, 9, 1) * error, std), label, ["many", "few"])
    assert few.strata[1].word == "too few"
    assert few.patterns == ()
    label, group = np.arange(400) // 100, np.arange(400) // 50
    assert claimed(np.where(label == 1, 3, 1) * error, std, label, group=group) == []
    assert find_strata(Errors(error, std, group=group // 2), label, list("abcd")) == Places()


@pytest.mark.slow
def test_the_table_of_labels_is_printed_and_survives_json():
    (error, std, mean), label = samples(2000), labels(2000, 0, 3)
    report = uq.evaluate(
        mean + np.where(label == 2, 2, 1) * error, mean, std, by=np.array(list("abc"))[label]
    )
    table = str(report).partition("\nstratum")[2]
    assert table.splitlines()[2].split()[0] == "c"
    assert "x overconfident" in table
    assert "x overconfident" in report._repr_html_()
    assert uq.Report.from_json(report.to_json()).verdict == report.verdict
