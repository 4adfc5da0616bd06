"""A rescoring that is killed at any moment and started again ends with exactly one set of scores in every run."""

from __future__ import annotations

import time

import pytest

import uq_tracking as uq
from tests.runs.killed import Rescorings
from tests.runs.places import predictions
from uq_tracking.tracking.content import logged_scores

pytestmark = pytest.mark.faults

RUNS = 8


def rescore_and_die(rescorings, after, delay):
    """Start a rescoring, and kill it that many seconds after so many runs are done."""
    process = rescorings.start()
    rescorings.wait_for("outcome", after)
    time.sleep(delay)
    rescorings.kill(process)


@pytest.mark.parametrize("tracker", ["dir", "mlflow_sqlite"])
def test_every_run_ends_with_one_set_of_scores(tracker, request, tmp_path):
    place = request.getfixturevalue(f"{tracker}_place")
    wanted = {}
    for seed in range(RUNS):
        data = predictions(n=100, seed=seed)
        place.log(data, method=f"m{seed}")
        wanted[f"m{seed}"] = uq.evaluate(data, alpha=0.8, n_bins=7)

    needed = {"dir": (), "mlflow_sqlite": ("mlflow.store.tracking.sqlalchemy_store",)}[tracker]
    with Rescorings(place.uri, tmp_path, *needed) as rescorings:
        for after, delay in ((2, 0.002), (3, 0.02), (3, 0.04)):
            rescore_and_die(rescorings, after, delay)
            for run in place.runs():  # whatever happened, what is there can be read
                assert run.scored().settings["alpha"] in (0.8, 0.95)
                run.predictions()

    summary = uq.rescore(place.uri, alpha=0.8, n_bins=7)
    assert not summary.failed, str(summary)
    assert len(summary.skipped) >= 3
    for run in place.runs():
        report = wanted[run.method]
        scalars = {name: value for name, value in run.stored.scalars.items() if name.startswith("uq/")}
        assert scalars == pytest.approx(logged_scores(report), rel=1e-12)
        found = run.scored()
        assert found.settings == report.settings
        assert found.scores == pytest.approx(report.scores, rel=1e-12)
        assert run.files.count("uq/report.json") == 1
    assert len(uq.rescore(place.uri, alpha=0.8, n_bins=7).skipped) == RUNS
