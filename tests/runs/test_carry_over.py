"""Nothing is overwritten with less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import uq_tracking as uq
from tests.runs.places import arrays, predictions
from uq_tracking.runs.score import carried_over, same_curve


def ensemble(n=200, members=6):
    rng = np.random.default_rng(0)
    target = rng.normal(size=n)
    return uq.Predictions.from_samples(target, target + rng.normal(size=(members, n)))


@pytest.mark.parametrize("predictions", [True, False])
def test_scores_of_draws_are_computed_again_from_the_statistics(dir_place, predictions):
    logged = dir_place.log(ensemble(), metrics=["rmse", "crps", "crps_ensemble"], predictions=predictions)
    (outcome,) = uq.rescore(dir_place.uri, alpha=0.9).done
    assert outcome.source == "exact statistics"
    report = dir_place.run().report()
    for key in ("crps", "crps_ensemble"):
        assert report.scores[key] == pytest.approx(logged.scores[key], rel=1e-12)


def test_scores_that_need_more_than_statistics_are_kept_and_marked(dir_place):
    target, mean, std = arrays(200)
    data = uq.Predictions(target, mean, std)
    metrics = ["rmse", "kl_to_reference"]
    logged = dir_place.log(data, metrics=metrics, reference=(mean, 2 * std), predictions=False)
    (outcome,) = uq.rescore(dir_place.uri, alpha=0.9).done
    assert "of them unchanged" in outcome.reason
    report = dir_place.run().report()
    assert report.scores["kl_to_reference"] == logged.scores["kl_to_reference"]
    assert report.provenance["kept"]["kl_to_reference"]["alpha"] == 0.95


@pytest.mark.slow
def test_exact_scores_and_curves_survive_one_rescoring_after_another(dir_place):
    """So many samples are stored as a sketch, which knows them less well."""
    logged = dir_place.log(uq.Predictions(*arrays(60_000)), predictions=False)
    for alpha in (0.9, 0.85, 0.8):
        uq.rescore(dir_place.uri, alpha=alpha)
        report = dir_place.run().report()
        changed = {key for key, value in logged.scores.items() if report.scores[key] != value}
        assert changed == {"trimmed_mae", "merci", "n_merci"}
        assert same_curve(report.curves["reliability"], logged.curves["reliability"])


def test_what_is_kept_names_the_settings_that_it_is_of(dir_place):
    target, mean, std = arrays(200)
    data = uq.Predictions(target, mean, std)
    dir_place.log(data, metrics=["rmse", "kl_to_reference"], reference=(mean, 2 * std), predictions=False)
    for change in ({"alpha": 0.9}, {"n_bins": 20}, {"family": "laplace"}):
        uq.rescore(dir_place.uri, **change)
        settings = dir_place.run().report().provenance["kept"]["kl_to_reference"]
        assert {"alpha": 0.95, "n_bins": 10, "family": "gaussian"}.items() <= settings.items()


def test_a_metric_that_fails_keeps_its_value():
    new = uq.evaluate(predictions())
    old = replace(new, scores={**new.scores, "of_a_plugin": 3.0})
    failed = replace(
        new, undefined={"of_a_plugin": "metric 'of_a_plugin' of somewhere failed: ValueError: no"}
    )
    report = carried_over(failed, old, None)
    assert report.scores["of_a_plugin"] == 3.0
    assert list(report.provenance["kept"]) == ["of_a_plugin"]


def test_a_metric_that_is_no_longer_installed_keeps_its_value():
    new = uq.evaluate(predictions())
    old = replace(new, scores={**new.scores, "of_a_plugin": 3.0}, undefined={**new.undefined, "other": "why"})
    report = carried_over(new, old, None)
    assert report.scores["of_a_plugin"] == 3.0
    assert report.undefined["other"] == "why"
    assert list(report.provenance["kept"]) == ["of_a_plugin"]


def test_a_definition_that_was_corrected_replaces_the_old_value():
    new = uq.evaluate(predictions())
    old = replace(new, scores={**new.scores, "nll": 99.0})
    assert carried_over(new, old, None).scores == new.scores
    gone = replace(new, scores={k: v for k, v in new.scores.items() if k != "nll"}, undefined={"nll": "why"})
    assert "nll" not in carried_over(gone, new, None).scores


@pytest.mark.slow
def test_intervals_of_scores_that_a_setting_changes_are_made_again(dir_place):
    groups = np.repeat(np.arange(30), 10)
    data = uq.Predictions(*arrays(300), groups=groups)
    logged = dir_place.log(data, predictions=False)
    assert logged.intervals
    uq.rescore(dir_place.uri, alpha=0.8)
    report = dir_place.run().report()
    wanted = uq.evaluate(data, alpha=0.8)
    assert report.intervals.keys() == wanted.intervals.keys()
    for key, (low, high) in wanted.intervals.items():
        if key in (
            "trimmed_mae",
            "merci",
            "n_merci",
        ):  # from the groups' statistics, which are stored more coarsely
            assert report.intervals[key] == pytest.approx((low, high), abs=0.02 * (high - low))
            assert report.intervals[key] != logged.intervals[key]
        else:
            assert report.intervals[key] == logged.intervals[key]
    assert report.provenance["intervals"] == wanted.provenance["intervals"]


def test_intervals_without_the_statistics_of_groups_are_kept_where_they_still_hold():
    old = uq.evaluate(predictions())
    old = replace(old, intervals={"nll": (0.6, 0.7), "merci": (0.8, 0.9)})
    new = uq.evaluate(predictions(), alpha=0.8)
    report = carried_over(new, old, uq.evaluate(predictions()))
    assert report.intervals == {"nll": (0.6, 0.7)}


@pytest.mark.slow
def test_recalibrations_that_cannot_be_made_again_say_of_which_settings_they_are(dir_place):
    dir_place.log(predictions(), calibration=True, predictions=False)
    uq.rescore(dir_place.uri, alpha=0.9)
    entry = dir_place.run().report().recalibration["methods"]["std_scaling"]
    assert entry["settings"]["alpha"] == 0.95
    assert dir_place.run().stored.scalars["uq_recalibrated/nll"] == entry["scores"]["nll"]


def test_extra_curves_and_verdicts_are_kept(dir_place):
    logged = dir_place.log(predictions(), curves="scale_sweep", predictions=False)
    extra = logged.curves.keys() - uq.evaluate(predictions()).curves.keys()
    assert extra
    uq.rescore(dir_place.uri, alpha=0.9)
    report = dir_place.run().report()
    assert extra <= report.curves.keys()
    assert report.verdicts == logged.verdicts
    assert {f"curve {name}" for name in extra} <= report.provenance["kept"].keys()


class TestClassifications:
    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        probs = rng.dirichlet([1, 1, 1], size=400)
        return np.array([rng.choice(3, p=p) for p in probs]), probs

    def test_are_rescored_from_statistics(self, dir_place, data):
        quiet = {"figures": False, "maps": False, "strict": True}
        labels, probs = data
        logged = uq.log(labels, probs=probs, run=dir_place.uri, method="m", classes=["a", "b", "c"], **quiet)
        (outcome,) = uq.rescore(dir_place.uri, n_bins=5).done
        assert outcome.source == "exact statistics"
        wanted = uq.evaluate(labels, probs=probs, n_bins=5, classes=["a", "b", "c"])
        report = dir_place.run().scored()
        assert report.scores == pytest.approx(wanted.scores, rel=1e-12)
        assert report.settings == wanted.settings
        assert report.scores["ece"] != logged.scores["ece"]

    def test_are_recalibrated_from_predictions(self, dir_place, data):
        quiet = {"figures": False, "maps": False, "strict": True}
        labels, probs = data
        uq.log(labels, probs=probs, run=dir_place.uri, method="m", **quiet)
        from uq_tracking.recalibration import recalibrate

        fitted = recalibrate((labels[::2], probs[::2]), "temperature")
        summary = uq.rescore(dir_place.uri, calibration=fitted)
        assert len(summary.done) == 1, str(summary)
        wanted = uq.evaluate(labels, probs=probs, calibration=fitted)
        found = dir_place.run().report().recalibration["methods"]["temperature"]
        assert found["scores"] == pytest.approx(
            wanted.recalibration["methods"]["temperature"]["scores"], rel=1e-12
        )
