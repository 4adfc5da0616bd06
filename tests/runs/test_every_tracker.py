"""Rescoring gives on every tracker what the original log gave, from whatever the run stores."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from tests.runs.places import predictions
from uq_tracking.plugins import metrics
from uq_tracking.runs import RescoreOptions


def assert_scores_equal(found, wanted):
    assert found.keys() == wanted.keys()
    np.testing.assert_allclose(
        [found[key] for key in wanted], [wanted[key] for key in wanted], rtol=1e-12, atol=1e-12
    )


def assert_shown(place, report, prefix="uq"):
    """The tracker shows exactly the headline of the report."""
    scalars = place.run().stored.scalars
    headline = {key for key, metric in metrics().items() if metric.headline}
    shown = {
        name.removeprefix(f"{prefix}/"): value
        for name, value in scalars.items()
        if name.startswith(f"{prefix}/")
    }
    shown.pop("step", None)  # the axis of W&B's charts
    assert_scores_equal(shown, {key: report.scores[key] for key in report.scores if key in headline})


@pytest.mark.slow
def test_equal_settings_give_equal_scores(place):
    logged = place.log(predictions(), unit="m", tags={"team": "a"})
    before = place.run().stored
    for options, source in (({}, "exact statistics"), ({"std_floor": 1e-9}, "predictions")):
        summary = uq.rescore(place.uri, options=RescoreOptions(force=True), **options)
        assert [(item.status, item.source) for item in summary.outcomes] == [("done", source)], str(summary)
        run = place.run()
        report = run.scored()
        assert_scores_equal(report.scores, logged.scores)
        assert_shown(place, logged)
        assert report.provenance["rescored"]["from"] == source
        assert report.settings == {**logged.settings, **options}
        assert report.provenance["digest"] == logged.provenance["digest"]
        assert (run.stored.status, run.stored.name) == (before.status, before.name)
        assert run.stored.tags.items() >= {"team": "a", "uq.method": "m"}.items()


@pytest.mark.slow
def test_other_settings_give_the_scores_of_an_evaluation_with_them(place):
    data = predictions()
    place.log(data)
    wanted = uq.evaluate(data, alpha=0.8, n_bins=5, family="laplace")
    summary = uq.rescore(place.uri, alpha=0.8, n_bins=5, family="laplace")
    assert [item.source for item in summary.done] == ["exact statistics"], str(summary)
    report = place.run().scored()
    assert_scores_equal(report.scores, wanted.scores)
    assert_shown(place, wanted)
    assert report.settings == wanted.settings
    again = uq.rescore(place.uri, alpha=0.8, n_bins=5, family="laplace")
    assert [item.status for item in again.outcomes] == ["skipped"]


@pytest.mark.slow
def test_a_sketch_gives_scores_within_its_bounds_and_keeps_exact_ones(place):
    data = predictions(n=60_000)
    logged = place.log(data, predictions=False)
    wanted = uq.evaluate(data, alpha=0.8)
    summary = uq.rescore(place.uri, alpha=0.8)
    assert [item.source for item in summary.done] == ["sketch"], str(summary)
    report = place.run().scored()
    assert report.provenance["statistics"] == "sketch"
    changed = [key for key in wanted.scores if wanted.scores[key] != logged.scores[key]]
    assert set(changed) == {"trimmed_mae", "merci", "n_merci"}
    for key in wanted.scores:
        exact = 1e-3 if key in changed else 1e-12
        assert report.scores[key] == pytest.approx(wanted.scores[key], rel=exact, abs=1e-12), key
    assert set(report.provenance["exact"]) & wanted.scores.keys() == wanted.scores.keys() - set(changed)
