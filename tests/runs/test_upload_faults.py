"""W&B online uploads in the background: what fails there leaves no tag that says it arrived."""

from __future__ import annotations

import json
import math

import pytest

import uq_tracking as uq
from tests.runs.places import predictions
from uq_tracking.tracking.content import logged_scores, scores_digest
from uq_tracking.tracking.names import RESCORED_TAG, SCORES_TAG

pytestmark = pytest.mark.faults

ASKED = {"alpha": 0.8, "n_bins": 7}


def shows(run, report) -> bool:
    """Whether the run's scalars are those of the report."""
    return all(
        math.isclose(run.stored.scalars[name], value, rel_tol=1e-12)
        for name, value in logged_scores(report).items()
    )


def rescored_with_fault(place, server, operation, status=403):
    """Rescore while the server refuses an operation; the reason of the failure."""
    refused = []

    def fault(request):
        if request.operation.startswith(operation):
            refused.append(request.operation)
            return status
        return None

    server.fault = fault
    summary = uq.rescore(place.uri, **ASKED)
    server.fault = None
    assert refused
    (outcome,) = summary.failed
    return outcome.reason


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("PUT /storage/artifact", "was not uploaded"),
        ("mutation CommitArtifact", "was not uploaded"),
    ],
)
def test_without_its_report_a_run_keeps_what_it_has(wandb_online_place, wandb_online, operation, reason):
    place, data = wandb_online_place, predictions(n=100)
    before = place.log(data)
    tags = dict(place.run().stored.tags)

    assert reason in rescored_with_fault(place, wandb_online, operation)
    run = place.run()
    assert run.stored.tags == tags
    assert RESCORED_TAG not in tags
    assert run.scored().scores == before.scores
    assert shows(run, before)
    assert run.stored.status == "finished"

    assert len(uq.rescore(place.uri, **ASKED).done) == 1
    assert_rescored(place, data)


def test_scores_that_the_server_did_not_take_are_noticed(wandb_online_place, wandb_online, monkeypatch):
    monkeypatch.setattr("uq_tracking_wandb.run.SHOWN_SECONDS", 0.5)
    place, data = wandb_online_place, predictions(n=100)
    before = place.log(data)
    reason = rescored_with_fault(place, wandb_online, "file stream")
    assert "does not show the scores" in reason
    assert RESCORED_TAG not in place.run().stored.tags
    assert shows(place.run(), before)
    assert len(uq.rescore(place.uri, **ASKED).done) == 1
    assert_rescored(place, data)


def test_a_seal_that_is_refused_is_set_by_the_next_call(wandb_online_place, wandb_online):
    place, data = wandb_online_place, predictions(n=100)
    place.log(data)

    def fault(request):
        return 403 if "rescored" in json.dumps(request.body) else None

    wandb_online.fault = fault
    (outcome,) = uq.rescore(place.uri, **ASKED).failed
    wandb_online.fault = None
    assert "the end of the run" in outcome.reason
    assert RESCORED_TAG not in place.run().stored.tags
    assert len(uq.rescore(place.uri, **ASKED).done) == 1
    assert_rescored(place, data)


def test_a_copy_is_sealed_last_too(wandb_online_place, wandb_online, tmp_path):
    uq.log(predictions(n=100), run=f"dir:{tmp_path}/waiting", figures=False)

    def fault(request):
        return 403 if request.operation.startswith("PUT /storage/artifact") else None

    wandb_online.fault = fault
    assert len(uq.sync(f"dir:{tmp_path}/waiting", wandb_online_place.uri).failed) == 1
    wandb_online.fault = None
    assert "uq.synced.content" not in wandb_online_place.run().stored.tags
    assert len(uq.sync(f"dir:{tmp_path}/waiting", wandb_online_place.uri).done) == 1
    assert len(uq.sync(f"dir:{tmp_path}/waiting", wandb_online_place.uri).skipped) == 1
    assert len(wandb_online_place.runs()) == 1


def assert_rescored(place, data):
    run, wanted = place.run(), uq.evaluate(data, **ASKED)
    assert run.scored().settings == wanted.settings
    assert shows(run, wanted)
    assert run.stored.tags[SCORES_TAG] == scores_digest(run.scored())
    assert run.stored.tags[RESCORED_TAG].endswith(run.stored.tags[SCORES_TAG])
    assert len(uq.rescore(place.uri, **ASKED).skipped) == 1
