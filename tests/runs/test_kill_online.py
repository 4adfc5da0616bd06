"""A rescoring of online W&B runs that is killed at chosen moments, and started again."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import suppress

import pytest

import uq_tracking as uq
from tests.runs.killed import Rescorings
from tests.runs.places import predictions
from tests.wandb_server.fixtures import child_processes
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.names import RESCORED_TAG

pytestmark = pytest.mark.faults

RUNS = 2
MOMENTS = {
    "the report is on its way": lambda request: request.operation.startswith("PUT /storage/artifact"),
    "scores are sent": lambda request: request.operation == "file stream" and request.body.get("complete"),
    "only the tag is missing": lambda request: "rescored" in json.dumps(request.body),
}


def rescore_and_die(rescorings, server, is_moment):
    """Start a rescoring, and kill it with its wandb-core when the server gets such a request."""
    reached = threading.Event()

    def fault(request):
        if reached.is_set() or is_moment(request):
            reached.set()
            return 503  # nothing arrives any more
        return None

    server.fault = fault
    process = rescorings.start()
    assert reached.wait(60), rescorings.file.read_text()
    kill(rescorings, process)
    server.fault = None


def kill(rescorings, process):
    cores = child_processes("wandb-core", process)
    rescorings.kill(process)
    for core in cores:
        with suppress(ProcessLookupError):
            os.kill(core, signal.SIGKILL)


def mark_dead_runs(server):
    """Do what W&B does some minutes after a run's last sign of life; until then such a run is not reopened."""
    for run in server.state.runs.values():
        if run.state == "running":
            run.state = "crashed"


def test_every_online_run_ends_with_one_set_of_scores(wandb_online_place, wandb_online, tmp_path):
    place, wanted = wandb_online_place, {}
    for seed in range(RUNS):
        data = predictions(n=100, seed=seed)
        place.log(data, method=f"m{seed}")
        wanted[f"m{seed}"] = uq.evaluate(data, alpha=0.8, n_bins=7)

    with Rescorings(place.uri, tmp_path, "wandb") as rescorings:
        for moment, is_moment in MOMENTS.items():
            rescore_and_die(rescorings, wandb_online, is_moment)
            mark_dead_runs(wandb_online)
            for run in place.runs():
                assert run.scored().settings["alpha"] in (0.8, 0.95), moment
                assert RESCORED_TAG not in run.stored.tags, moment

        process = rescorings.start()
        while "done" not in rescorings.told("outcome"):
            rescorings.wait_for("outcome", len(rescorings.told("outcome")) + 1)
        kill(rescorings, process)
    mark_dead_runs(wandb_online)
    assert len([run for run in place.runs() if RESCORED_TAG in run.stored.tags]) == 1

    summary = uq.rescore(place.uri, alpha=0.8, n_bins=7)
    assert (len(summary.done), len(summary.skipped)) == (RUNS - 1, 1), str(summary)
    for run in place.runs():
        report = wanted[run.method]
        scalars = {name: value for name, value in run.stored.scalars.items() if name.startswith("uq/")}
        del scalars["uq/step"]
        assert scalars == pytest.approx(logged_scores(report), rel=1e-12)
        assert run.scored().scores == pytest.approx(report.scores, rel=1e-12)
        assert run.files.count("uq/report.json") == 1
        assert "uq_curve/reliability-bins7.table.json" in run.files
    assert len(uq.rescore(place.uri, alpha=0.8, n_bins=7).skipped) == RUNS
