"""Runs pooled into one report."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from tests.rescoring.places import arrays, predictions
from uq_tracking.errors import BackendError, InputTypeError, SettingsError, UQTrackingError


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


def test_classifications_pool(dir_place):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], size=200)
    labels = rng.integers(0, 3, size=200)
    halves = [
        uq.evaluate_classification(labels[part], probs[part]) for part in (slice(0, 100), slice(100, 200))
    ]
    wanted = uq.evaluate_classification(labels, probs)
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
                uq.evaluate_classification([0, 1, 1], [[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]]),
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
    with pytest.raises(BackendError, match=r"m cannot be pooled: .*statistics"):
        uq.pool(dir_place.uri)
