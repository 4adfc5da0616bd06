"""Paired differences: groups left out together for all methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scoringrules
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.inference.intervals import leave_out
from uq_tracking.inference.limits import Influence
from uq_tracking.metrics.registry import find
from uq_tracking.settings import Settings

GROUPS, SIZE = 12, 30
KEYS = ["rmse", "crps", "spearman", "coverage_90"]


def data(seed=0):
    """Images of very different difficulty, which all methods share."""
    rng = np.random.default_rng(seed)
    hard = np.repeat(rng.uniform(0.2, 4, GROUPS), SIZE)
    truth = rng.normal(size=GROUPS * SIZE)
    return truth, hard * rng.normal(size=GROUPS * SIZE), hard, np.repeat(np.arange(GROUPS), SIZE)


def evaluated(factor, seed=1, scale=1.0, groups=True):
    truth, error, hard, images = data()
    mean = truth + factor * error + 0.02 * np.random.default_rng(seed).normal(size=len(truth))
    options = {"groups": images} if groups else {}
    return uq.evaluate(truth, mean, scale * hard, metrics=KEYS, **options)


@pytest.fixture(scope="module")
def made():
    return {"one": evaluated(1.0), "worse": evaluated(1.1, seed=2), "alike": evaluated(1.0, seed=3)}


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_leave_out_the_same_groups_for_both(made, level):
    found, settings = uq.compare(made, baseline="one", level=level), Settings()
    left = [leave_out(made[name].statistics.groups, settings, find(KEYS)) for name in ("worse", "one")]
    for metric in find(KEYS):
        mine, theirs = (
            np.asarray([metric.loss(score) for score in part.estimates(metric.key, exact)])
            for part, exact in zip(
                left, (made[name].scores[metric.key] for name in ("worse", "one")), strict=True
            )
        )
        difference, sign = found.difference("worse", metric.key), -1 if metric.direction == "higher" else 1
        ends = Influence.left_out(mine - theirs, left[0].freedom).limits(
            sign * difference.value, level, cautious=True
        )
        assert difference.how == "paired groups"
        assert_allclose(difference.interval, sorted(sign * end for end in ends), rtol=1e-9, atol=1e-12)


def test_effects_are_cohens_d_of_pairs_and_relative_changes(made):
    """Of equal groups and a mean over samples: the mean difference over the standard deviation of the groups'."""
    found = uq.compare(made, baseline="one")
    truth, error, hard, _ = data()
    scores = {}
    for name, factor, seed in (("one", 1.0, 1), ("worse", 1.1, 2)):
        shift = factor * error + 0.02 * np.random.default_rng(seed).normal(size=len(truth))
        scores[name] = scoringrules.crps_normal(truth, truth + shift, hard).reshape(GROUPS, SIZE).mean(axis=1)
    pairs = scores["worse"] - scores["one"]
    crps = found.difference("worse", "crps")
    assert_allclose(crps.effect, pairs.mean() / pairs.std(ddof=1), rtol=2e-3)  # groups are coarse
    assert_allclose(crps.relative, pairs.mean() / scores["one"].mean(), rtol=1e-9)
    assert found.difference("worse", "spearman").relative is None
    assert found.difference("worse", "spearman").effect < 0
    assert f"{crps.value:+.4f} (+10 %, d {crps.effect:.2g})" in str(found)


def test_pairing_tells_apart_what_single_intervals_cannot(made):
    found = uq.compare(made, baseline="one")
    low, high = made["one"].intervals["rmse"]
    assert low < made["worse"].scores["rmse"] < high
    assert found.difference("worse", "rmse").verdict == "worse"
    assert found.difference("alike", "rmse").verdict == "indistinguishable"
    assert "worse" not in found.tied_with_best["rmse"]


def test_logged_runs_are_paired_too(made, store):
    """The groups' tables are stored in single precision."""
    for name, report in made.items():
        uq.log(report, run=f"dir:{store.path}", method=name, figures=False)
    found = uq.compare(f"dir:{store.path}", baseline="one")
    direct = uq.compare(made, baseline="one")
    for difference in direct.differences:
        again = found.difference(difference.method, difference.metric)
        assert again.how == "paired groups"
        assert_allclose(again.interval, difference.interval, rtol=1e-3, atol=1e-6)


def test_other_groups_cannot_be_paired(made):
    truth, error, hard, images = data()
    other = uq.evaluate(truth, truth + error, hard, metrics=KEYS, groups=images // 1.5)
    found = uq.compare({**made, "other": other}, baseline="one")
    assert found.difference("other", "rmse").how == "from the intervals"
    assert "No paired differences for other: other groups than one." in found.answer


def test_numbers_of_groups_may_be_text(made):
    truth, error, hard, images = data()
    of_text = uq.Accumulator(metrics=KEYS)
    for half in (slice(0, None, 2), slice(1, None, 2)):
        of_text.update(truth[half], truth[half] + error[half], hard[half], groups=images[half].astype(str))
    report = of_text.compute()
    assert report.statistics.groups.labels[1:3] == ("1", "2")
    found = uq.compare({"one": made["one"], "text": report}, baseline="one").difference("text", "rmse")
    assert found.how == "paired groups"


def test_other_data_under_the_same_labels_cannot_be_paired(made):
    truth, error, hard, images = data(seed=5)
    other = uq.evaluate(truth, truth + error, hard, metrics=KEYS, groups=images)
    found = uq.compare({**made, "other": other}, baseline="one")
    assert found.difference("other", "rmse").how == "from the intervals"
    assert found.difference("worse", "rmse").how == "paired groups"


@pytest.mark.parametrize("names", [np.arange(20), np.arange(20, 40)])
def test_a_score_on_an_easier_test_set_is_no_better_method(names):
    """Calibrated forecasts of different events, those of the second method easier."""
    rng, made = np.random.default_rng(0), {}
    for name, spread, own in (("one", 1.0, np.arange(20)), ("other", 2.2, names)):
        stated = 1 / (1 + np.exp(-spread * rng.normal(size=600)))
        labels = (rng.uniform(size=600) < stated).astype(int)
        made[name] = uq.evaluate(labels, probs=stated, groups=np.repeat(own, 30))
    first, second, *_ = uq.compare(made).answer
    assert first.startswith("other scores better on its targets than one on others, by")
    assert second.startswith("Targets or weights differ: use the same for all methods")


def test_a_run_without_groups_has_no_interval(made):
    found = uq.compare({**made, "plain": evaluated(1.2, groups=False)}, baseline="one")
    assert found.difference("plain", "rmse").how == "none"


def test_pairing_needs_the_reports_only(made, store):
    for name, report in made.items():
        uq.log(report, run=f"dir:{store.path}", method=name, figures=False)
    for run in store.runs():
        (store.path / run.run_id / "uq" / "statistics.npz").write_bytes(b"PK")
    found = uq.compare(f"dir:{store.path}", baseline="one")
    assert found.differences == uq.compare(made, baseline="one").differences
    assert found.difference("worse", "rmse").how == "paired groups"


def test_damaged_sums_without_groups_are_named(made):
    values = made["one"].to_dict()
    values["left_out"]["without"]["rmse"] = values["left_out"]["without"]["rmse"][:-1]
    with pytest.raises(uq.errors.FileFormatError, match="scores without sets of groups are damaged"):
        uq.Report.from_dict(values)


def test_many_groups_make_the_same_sets_from_stored_statistics():
    rng = np.random.default_rng(0)
    report = uq.evaluate(
        *rng.normal(size=(2, 4000)), np.ones(4000), groups=np.arange(4000) % 1500, metrics=KEYS
    )
    tables = report.statistics.groups
    stored = tables.pooled_to(375)  # as tables that take much room are stored
    assert (len(stored), len(tables)) == (375, 750)
    one, other = (leave_out(each, Settings(), find(KEYS)) for each in (tables, stored))
    assert one.has_sets_of(other)
    for key in ("rmse", "coverage_90"):
        assert_allclose(one.estimates(key, 1.0), other.estimates(key, 1.0), rtol=1e-9)


def test_a_method_of_several_runs_counts_with_their_mean(made):
    several = [evaluated(1.1, seed=seed) for seed in (2, 6)]
    found = uq.compare({"one": made["one"], "several": several}, baseline="one").difference("several", "rmse")
    assert found.how == "paired groups"
    mean = np.mean([report.scores["rmse"] for report in several]) - made["one"].scores["rmse"]
    assert_allclose(found.value, mean, rtol=1e-12)
    assert found.interval[0] < mean < found.interval[1]


@pytest.mark.slow
def test_runs_are_paired_and_their_spread_counts(made):
    several = {
        name: [evaluated(factor, seed=seed) for seed in seeds]
        for name, factor, seeds in (("a", 1.0, (3, 4)), ("b", 1.1, (5, 6)))
    }
    found = uq.compare(several, baseline="a").difference("b", "rmse")
    assert (found.how, found.verdict) == ("paired groups", "worse")
    single = uq.compare({name: runs[0] for name, runs in several.items()}, baseline="a")
    one = single.difference("b", "rmse")
    far = {**several, "b": [several["b"][0], evaluated(2.0, seed=9)]}
    wide = uq.compare(far, baseline="a").difference("b", "rmse")
    assert (wide.how, wide.verdict) == ("paired groups", "indistinguishable")
    assert np.ptp(wide.interval) > 10 * np.ptp(found.interval) > np.ptp(one.interval)


def test_copies_of_a_run_are_no_second_run(made):
    found = uq.compare({"a": [made["one"], made["one"]], "b": [made["worse"]]}, baseline="a")
    assert len(found.runs) == 2
    assert "same predictions" in found.skipped[0].reason
    same = uq.compare({"a": made["one"], "b": made["one"]}, baseline="a").difference("b", "rmse")
    assert same.value == 0
    assert same.verdict == "indistinguishable"


@pytest.mark.slow
def test_of_equal_methods_all_are_tied_with_the_best(made):
    """Seven methods that differ by chance alone, in one of thirty metrics and data sets."""
    rng, flagged = np.random.default_rng(8), 0
    for _ in range(12):
        hard = np.repeat(rng.uniform(0.2, 4, GROUPS), SIZE)
        images = np.repeat(np.arange(GROUPS), SIZE)
        error = hard * rng.normal(size=(7, GROUPS * SIZE))
        runs = {
            f"m{i}": uq.evaluate(own, np.zeros(len(own)), hard, metrics=["crps", "rmse"], groups=images)
            for i, own in enumerate(error)
        }
        runs = {
            name: replace(run, provenance={**run.provenance, "targets": {"mean": 0.0}})
            for name, run in runs.items()
        }
        found = uq.compare(runs, maps=False)
        assert {item.how for item in found.ties} == {"paired groups"}
        flagged += len(found.tied_with_best["crps"]) < 7
    assert flagged <= 3


def test_intervals_stand_in_the_table(made):
    found = uq.compare(made)
    assert found.table["one"]["rmse"].interval == made["one"].intervals["rmse"]
    bare = uq.compare({"one": replace(made["one"], left_out=None), "worse": made["worse"]}, baseline="one")
    assert bare.difference("worse", "rmse").how == "from the intervals"


def classified(wrong, groups=20, size=50):
    """A classifier of samples of class 0 that takes these for class 1, with different doubts."""
    doubt = np.random.default_rng(3).uniform(0.001, 0.02, groups * size)
    second = doubt.copy()
    second[wrong] = 1 - doubt[wrong]
    images = np.repeat(np.arange(groups), size)
    labels = np.zeros(groups * size, dtype=int)
    return uq.evaluate(labels, probs=np.stack([1 - second, second], axis=1), groups=images)


@pytest.mark.slow
def test_groups_with_too_few_errors_show_no_differences():
    few = {"one": classified(np.arange(0, 1000, 250)), "other": classified(np.arange(5, 1000, 200))}
    many = {"one": classified(np.arange(0, 1000, 9)), "other": classified(np.arange(5, 1000, 7))}
    hidden, shown = (uq.compare(reports, baseline="one") for reports in (few, many))
    assert hidden.difference("other", "nll").how == "none"
    assert "nll" not in hidden.tied_with_best
    assert shown.difference("other", "nll").how == "paired groups"
