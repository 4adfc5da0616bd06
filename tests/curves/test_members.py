"""Metrics against the number of members, against evaluating subsets by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import SettingsError, UnknownMetricError
from uq_tracking.evaluation.parts import member_counts, subsets_of
from uq_tracking.inputs import Predictions


def ensemble(members=6, n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return y, y + 0.5 * rng.normal(size=n) + 0.4 * rng.normal(size=(members, n)), np.full((members, n), 0.5)


def test_all_subsets_are_scored_where_there_are_few():
    y, draws, noise = ensemble(4)
    report = uq.evaluate(
        Predictions.from_ensemble(y, draws, noise), curves="by_members", curve_metrics=["nll", "rmse"]
    )
    curve = report.curves["by_members_nll"].columns
    assert_allclose(curve["members"], [1, 2, 4], rtol=0)
    assert_allclose(curve["subsets"], [4, 6, 1], rtol=0)
    pairs = [
        uq.evaluate(Predictions.from_ensemble(y, draws[list(pair)], noise[list(pair)])).scores["nll"]
        for pair in itertools.combinations(range(4), 2)
    ]
    assert_allclose(curve["mean"][1], np.mean(pairs), rtol=1e-12)
    assert_allclose(curve["spread"][1], np.std(pairs), rtol=1e-9)
    assert_allclose([curve["subset_low"][1], curve["subset_high"][1]], [min(pairs), max(pairs)], rtol=1e-12)
    assert_allclose(curve["mean"][-1], report.scores["nll"], rtol=1e-12)


def test_the_error_of_the_mean_falls_as_members_join():
    """Members with independent errors: MSE = .25 + .16 / M."""
    y, draws, _ = ensemble(16, 20_000)
    report = uq.evaluate(Predictions.from_ensemble(y, draws), curves="by_members", curve_metrics=["rmse"])
    curve = report.curves["by_members_rmse"].columns
    assert_allclose(curve["members"], [2, 4, 8, 16], rtol=0)
    assert_allclose(curve["mean"] ** 2, 0.25 + 0.16 / curve["members"], rtol=0.03)


def test_missing_targets_and_the_seed():
    y, draws, _ = ensemble(12)
    y[:50] = np.nan
    options = {"curves": "by_members", "curve_metrics": "crps"}
    one, same, other = (
        uq.evaluate(Predictions.from_ensemble(y, draws), seed=seed, **options)
        .curves["by_members_crps"]
        .columns["mean"]
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_subsets_differ_and_are_bounded():
    rng = np.random.default_rng(0)
    chosen = [tuple(subset) for subset in subsets_of(20, 10, 10, rng)]
    assert len(set(chosen)) == 10
    assert all(len(set(subset)) == 10 for subset in chosen)
    assert list(subsets_of(3, 3, 10, rng)) == [[0, 1, 2]]
    assert member_counts(6, 1) == [1, 2, 4, 6]
    assert member_counts(2, 2) == [2]


def test_without_members_it_is_refused():
    with pytest.raises(SettingsError, match="from_ensemble"):
        uq.evaluate([0.0, 1.0], [0.0, 1.0], [1.0, 1.0], curves="by_members")
    with pytest.raises(SettingsError, match="a regression has no curve called members"):
        uq.evaluate([0.0], [0.0], [1.0], curves=["members"])
    with pytest.raises(UnknownMetricError, match="nope"):
        uq.evaluate([0.0], [0.0], [1.0], curve_metrics=["nope"])


def test_members_are_compared_with_a_reference():
    """The divergence of every subset, as scored one by one."""
    y, means, noise = ensemble(4)
    reference = (means.mean(axis=0), np.full(len(y), 0.6))
    report = uq.evaluate(
        Predictions.from_ensemble(y, means, noise),
        reference=reference,
        curves="by_members",
        curve_metrics=["rmse"],
    )
    curve = report.curves["by_members_kl_to_reference"].columns
    single = [
        uq.evaluate(Predictions.from_ensemble(y, means[[k]], noise[[k]]), reference=reference).scores
        for k in range(4)
    ]
    assert_allclose(curve["mean"][0], np.mean([s["kl_to_reference"] for s in single]), rtol=1e-12)
    assert_allclose(curve["mean"][-1], report.scores["kl_to_reference"], rtol=1e-12)


def test_members_of_classes_are_compared_with_a_reference():
    rng = np.random.default_rng(0)
    one = rng.uniform(0.1, 0.9, (4, 200))
    probs = np.stack([1 - one, one], axis=-1)
    labels, reference = rng.integers(2, size=200), probs.mean(axis=0)
    report = uq.evaluate(
        labels, probs=probs, members_axis=0, reference=reference, curves="by_members", curve_metrics=["nll"]
    )
    curve = report.curves["by_members_kl_to_reference"].columns
    singly = (probs * np.log(probs / reference)).sum(axis=-1).mean(axis=-1)
    assert_allclose(curve["mean"][0], singly.mean(), rtol=1e-9)
    assert_allclose(curve["mean"][-1], 0, atol=1e-12)
