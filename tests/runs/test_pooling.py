"""Runs pooled into one report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import uq_tracking as uq
from tests.runs.places import arrays, predictions
from uq_tracking.errors import (
    BackendError,
    InputTypeError,
    SettingsError,
    TrackingWarning,
    UQTrackingError,
)


@pytest.mark.slow
def test_folds_score_as_the_whole(dir_place):
    whole = arrays(1000)
    for fold in range(5):
        part = slice(200 * fold, 200 * fold + 200)
        dir_place.log(uq.Predictions(*(column[part] for column in whole)), alpha=0.9)
    pooled = uq.pool(dir_place.uri)
    wanted = uq.evaluate(*whole, alpha=0.9)
    assert pooled.scores == pytest.approx(wanted.scores, rel=1e-12)
    assert pooled.counts == wanted.counts
    assert pooled.settings == wanted.settings
    assert [part["n"] for part in pooled.provenance["pooled"]] == [200] * 5
    logged = uq.log(pooled, run=dir_place.uri, method="pooled", strict=True, figures=False)
    assert logged == pooled.labelled(method="pooled")


def test_reports_and_runs_of_any_number_pool_with_settings_given(dir_place):
    dir_place.log(predictions(seed=0))
    reports = [uq.evaluate(predictions(seed=seed), alpha=0.8) for seed in (1, 2)]
    with pytest.raises(SettingsError, match="different alpha; pass alpha="):
        uq.pool([dir_place.uri, *reports])
    pooled = uq.pool([dir_place.uri, *reports], alpha=0.9, metrics="nll")
    whole = [np.concatenate(column) for column in zip(*(arrays(seed=seed) for seed in range(3)), strict=True)]
    wanted = uq.evaluate(*whole, alpha=0.9)
    assert pooled.scores == pytest.approx({"nll": wanted.scores["nll"]}, rel=1e-12)


def test_the_digest_does_not_depend_on_the_order():
    one, other = (uq.evaluate(predictions(seed=seed)) for seed in (0, 1))
    assert uq.pool([one, other]).provenance["digest"] == uq.pool([other, one]).provenance["digest"]


def grouped(seed, groups=12, **options):
    """A report of groups of five samples, whose labels begin with the seed unless others are given."""
    labels = options.pop("labels", [f"{seed}-{number}" for number in range(groups)])
    return uq.evaluate(predictions(5 * groups, seed, groups=np.repeat(labels, 5)), **options)


@pytest.mark.slow
def test_intervals_are_those_of_the_whole():
    pooled = uq.pool([grouped(seed, level=0.9) for seed in (0, 1)])
    columns = [np.concatenate(pair) for pair in zip(arrays(60, 0), arrays(60, 1), strict=True)]
    labels = [f"{seed}-{number}" for seed in (0, 1) for number in range(12)]
    whole = uq.evaluate(uq.Predictions(*columns, groups=np.repeat(labels, 5)), level=0.9)
    assert whole.intervals
    assert set(pooled.intervals) == set(whole.intervals)
    for key, interval in whole.intervals.items():
        assert pooled.intervals[key] == pytest.approx(interval, rel=1e-9, abs=1e-12)
    assert pooled.provenance["intervals"] == whole.provenance["intervals"]
    assert (pooled.verdict.scale, pooled.verdict.bias) == (whole.verdict.scale, whole.verdict.bias)
    assert any("do not keep samples in their order" in caveat for caveat in pooled.verdict.caveats)
    with pytest.raises(SettingsError, match=r"different levels \(0.9, 0.95\); pass level="):
        uq.pool([grouped(0, level=0.9), grouped(1)])


def coarse(report, pools=20):
    """The report, with its groups pooled as they are where there are too many to store."""
    tables = report.statistics.groups.pooled_to(pools)
    return replace(report, statistics=replace(report.statistics, groups=tables))


@pytest.mark.slow
def test_groups_without_labels_are_those_of_runs_with_the_same_groups_and_of_no_others():
    folds = [coarse(grouped(seed, groups=40)) for seed in (0, 1)]
    with pytest.warns(TrackingWarning, match="too many to be stored with their labels"):
        pooled = uq.pool(folds)
    assert pooled.provenance["intervals"]["groups"] == 80
    assert len(pooled.statistics.groups) == 40
    same = range(40)
    seeds = [coarse(grouped(0, 40, labels=same)), coarse(grouped(1, 40, labels=same), 10)]
    assert uq.pool(seeds).provenance["intervals"]["groups"] == 40
    samples = [uq.evaluate(predictions(40, seed), intervals=True) for seed in (0, 1)]
    assert uq.pool(samples).provenance["intervals"]["groups"] == 80


def test_runs_without_groups_take_the_intervals_away():
    with pytest.warns(
        TrackingWarning, match=r"no intervals, as there are runs scored without groups \(a report\)"
    ):
        assert uq.pool([grouped(0), uq.evaluate(predictions())]).intervals == {}


@pytest.mark.slow
def test_equal_labels_are_one_group_with_a_warning_unless_the_targets_are_the_same():
    numbers = range(12)
    with pytest.warns(TrackingWarning, match=r"share labels of groups \(0, 1, 2 and 9 more\)"):
        pooled = uq.pool([grouped(seed, labels=numbers) for seed in (0, 1)])
    assert pooled.provenance["intervals"]["groups"] == 12
    target, _, std = arrays(60)
    seeds = [
        uq.evaluate(target, target + shift * std, std, groups=np.repeat(numbers, 5)) for shift in (0.5, -1.0)
    ]
    assert uq.pool(seeds).provenance["intervals"]["groups"] == 12


@pytest.mark.slow
def test_predictions_count_once(dir_place):
    dir_place.log(predictions(seed=0))
    assert uq.pool([dir_place.uri, dir_place.uri]).counts["n"] == 300
    with pytest.warns(
        TrackingWarning, match=r"m \(dir:.*\) holds the same predictions as a later report, which"
    ):
        again = uq.pool([dir_place.uri, uq.evaluate(predictions(seed=0), alpha=0.9)])
    assert (again.counts["n"], again.settings["alpha"]) == (300, 0.9)
    dir_place.log(predictions(seed=1))
    dir_place.log(uq.pool(dir_place.uri))
    with pytest.warns(TrackingWarning, match="is a pool of runs that are pooled here, and is left out"):
        assert uq.pool(dir_place.uri).counts["n"] == 600


def test_pools_that_share_a_run_are_told():
    one, two, three = (uq.evaluate(predictions(seed=seed)) for seed in range(3))
    with pytest.warns(TrackingWarning, match="pools that share runs, whose samples count twice"):
        uq.pool([uq.pool([one, two]), uq.pool([two, three])])


@pytest.mark.slow
def test_methods_and_splits_are_pooled_with_a_warning(dir_place):
    dir_place.log(predictions(seed=0), method="a", split="test")
    dir_place.log(predictions(seed=1), method="b", split="test")
    with pytest.warns(TrackingWarning, match="several methods are pooled: 'a', 'b'; choose one with where="):
        uq.pool(dir_place.uri)
    dir_place.log(predictions(seed=2), method="a", split="val")
    with pytest.warns(TrackingWarning, match="several splits or outputs are pooled: 'test', 'val'"):
        uq.pool(dir_place.uri, where="uq.method=a")


@pytest.mark.slow
def test_the_run_of_a_comparison_is_none_of_the_runs(dir_place):
    for seed in (0, 1):
        dir_place.log(predictions(seed=seed))
    uq.compare(dir_place.uri, maps=False).log(dir_place.uri)
    assert uq.pool(dir_place.uri).counts["n"] == 600
    assert len(uq.rescore(dir_place.uri, dry_run=True).outcomes) == 2


def test_classifications_pool(dir_place):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], size=200)
    labels = rng.integers(0, 3, size=200)
    halves = [uq.evaluate(labels[part], probs=probs[part]) for part in (slice(0, 100), slice(100, 200))]
    wanted = uq.evaluate(labels, probs=probs)
    assert uq.pool(halves).scores == pytest.approx(wanted.scores, rel=1e-12)


@pytest.mark.parametrize(
    ("sources", "error", "match"),
    [
        ([], BackendError, "no runs to pool"),
        ([3], InputTypeError, "cannot pool a int"),
        (
            [uq.Report.from_json(uq.evaluate(predictions()).to_json())],
            BackendError,
            "holds no statistics to pool",
        ),
        (
            [uq.evaluate(predictions()), uq.evaluate(predictions(std_floor=0.5))],
            UQTrackingError,
            "std_floor differs",
        ),
        (
            [
                uq.evaluate(predictions()),
                uq.evaluate([0, 1, 1], probs=[[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]]),
            ],
            UQTrackingError,
            "cannot be pooled",
        ),
    ],
)
def test_what_cannot_be_pooled_is_refused(sources, error, match):
    with pytest.raises(error, match=match):
        uq.pool(sources)


def test_a_damaged_run_is_named(dir_place):
    dir_place.log(predictions())
    path = dir_place.run().stored.uri.removeprefix("dir:") + "/uq/statistics.npz"
    with open(path, "r+b") as file:
        file.truncate(50)
    with pytest.raises(BackendError, match=r"m \(dir:.*\) cannot be pooled: .*statistics"):
        uq.pool(dir_place.uri)
