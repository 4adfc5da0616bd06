"""Every run's standard deviations against one run's means."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from tests.rescoring.places import arrays
from uq_tracking.errors import BackendError
from uq_tracking.tracking.content import logged_scores


@pytest.fixture
def three(dir_place):
    """Runs a, b and c on the same targets; the uri of a."""
    target, mean, std = arrays()
    rng = np.random.default_rng(9)
    for method in "abc":
        dir_place.log((uq.Predictions(target, mean, std)), method=method)
        mean, std = mean + 0.1 * rng.normal(size=mean.shape), rng.permutation(std)
    return dir_place.runs()[0].stored.uri


def test_scores_stand_under_a_prefix_of_their_own(dir_place, three):
    before = [run.report() for run in dir_place.runs()]
    common = dir_place.runs()[0].predictions()
    summary = uq.rescore(dir_place.uri, prediction_from=three, alpha=0.9)
    assert len(summary.done) == 3, str(summary)
    for run, old in zip(dir_place.runs(), before, strict=True):
        own = run.predictions()
        wanted = uq.evaluate(common.target, common.mean, own.std, alpha=0.9)
        assert logged_scores(wanted, "common").items() <= run.stored.scalars.items()
        assert run.report() == old
        assert run.stored.scalars["uq/nll"] == old.scores["nll"]
    assert len({run.stored.scalars["uq/common/rmse"] for run in dir_place.runs()}) == 1
    assert len(uq.rescore(dir_place.uri, prediction_from=three, alpha=0.9).skipped) == 3
    assert len(uq.rescore(dir_place.uri, prediction_from=dir_place.runs()[1].stored.uri, alpha=0.9).done) == 3
    assert [report.settings["alpha"] for report in (run.report() for run in dir_place.runs("common"))] == [
        0.9
    ] * 3


def test_a_split_keeps_its_name(dir_place):
    target, mean, std = arrays()
    dir_place.log(uq.Predictions(target, mean, std), split="test")
    uri = dir_place.run().stored.uri
    assert len(uq.rescore(uri, prediction_from=uri, split="test").done) == 1
    assert dir_place.run("test-common").report().scores == dir_place.run("test").report().scores


@pytest.mark.parametrize("change", ["values", "order", "choice"])
def test_other_targets_are_refused(dir_place, three, change):
    target, mean, std = arrays()
    if change == "values":
        target[0] += 1
    elif change == "order":
        target, mean, std = target[::-1], mean[::-1], std[::-1]
    else:
        target[0] = np.nan
    dir_place.log(uq.Predictions(target, mean, std), method="other")
    summary = uq.rescore(dir_place.uri, prediction_from=three)
    assert [outcome.name for outcome in summary.failed] == ["other"]
    assert "its targets differ from those of a" in summary.failed[0].reason
    assert not any(name.startswith("uq/common/") for name in dir_place.runs()[3].stored.scalars)


def test_another_shape_of_the_same_samples_will_do(dir_place, three):
    target, mean, std = (column.reshape(20, 15) for column in arrays())
    dir_place.log(uq.Predictions(target, mean, std), method="pictures")
    assert len(uq.rescore(dir_place.uri, prediction_from=three).done) == 4


def test_runs_without_predictions_are_skipped(dir_place, three):
    dir_place.log(uq.Predictions(*arrays()), method="lean", predictions=False)
    summary = uq.rescore(dir_place.uri, prediction_from=three)
    assert [(outcome.name, outcome.status) for outcome in summary.skipped] == [("lean", "skipped")]
    with pytest.raises(BackendError, match="stores no predictions"):
        uq.rescore(dir_place.uri, prediction_from=dir_place.runs()[3].stored.uri)
