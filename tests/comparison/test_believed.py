"""What a comparison must not say: differences that samples, seeds or folds only seem to show."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq


def evaluated(truth, given, scores=("crps", "nll")):
    if "y_pred" in given:
        given = {"y_std": np.ones(len(truth)), **given}
    return uq.evaluate(truth, **given, metrics=["brier", "nll"] if "probs" in given else list(scores))


def seeds(rng, truth, mean, runs, between=0.4):
    """Reports of runs whose predictions are off by as much as chance has it."""
    means = (mean + between * rng.normal() + 0.2 * rng.normal(size=len(truth)) for _ in range(runs))
    return [evaluated(truth, {"y_pred": each}) for each in means]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 1), (2, 2), (3, 1)])
def test_few_seeds_that_differ_tell_little(sizes):
    rng, better = np.random.default_rng(2), 0
    for _ in range(100):
        mean, noise = rng.normal(size=(2, 400))
        truth = mean + noise
        made = {name: seeds(rng, truth, mean, runs) for name, runs in zip("AB", sizes, strict=True)}
        said = uq.compare(made, maps=False).answer
        better += "is better" in said[0]
        assert "is better" in said[0] or said[1].endswith("3 of each show more.")
    assert better <= 11


def folds(rng, size, splits):
    """Equal methods on random splits of the same 300 rows."""
    mean = rng.normal(0, 3, 300)
    truth, made = mean + rng.normal(size=300), {}
    rows = [rng.permutation(300)[:size] for _ in range(splits)]
    for name in "AB":
        own = mean + 0.5 * rng.normal(size=300)
        made[name] = [evaluated(truth[at], {"y_pred": own[at]}) for at in rows]
    return made


@pytest.mark.parametrize(("size", "splits"), [(60, 20), (225, 6)])
def test_test_sets_that_overlap_are_not_taken_for_different_ones(size, splits):
    found = uq.compare(folds(np.random.default_rng(3), size, splits), baseline="A", maps=False)
    assert found.difference("B", "crps").verdict == "unknown"
    assert found.answer[0].startswith("No differences: equal lowest and highest targets show")
