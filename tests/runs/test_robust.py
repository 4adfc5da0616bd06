"""Runs with damaged, oversized, pickled or foreign files are reported, and keep what they have."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import uq_tracking as uq
from tests.runs.places import predictions
from uq_tracking.errors import BackendError, TrackerUnreachableError
from uq_tracking.tracking.folder import FolderStore


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def pickled(path):
    path.write_bytes(pickle.dumps({"target": [1.0]}))


def pickled_inside(path):
    with path.open("wb") as file:
        np.savez(file, kind=np.array([{"a": 1}], dtype=object))


def empty(path):
    path.write_bytes(b"")


def foreign(path):
    if path.suffix == ".json":
        path.write_text(json.dumps({"loss": 0.1}))
    else:
        with path.open("wb") as file:
            np.savez(file, weights=np.zeros(3))


def nonsense_json(path):
    path.write_text('{"schema": 1, "task": ')


def unpacks_to_too_much(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("std.npy", bytes(80_000_000))


def newer(path):
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))


DAMAGES = [
    ("uq/report.json", truncated, "is not JSON"),
    ("uq/report.json", nonsense_json, "is not JSON"),
    ("uq/report.json", empty, "is not JSON"),
    ("uq/report.json", foreign, "states no version"),
    ("uq/report.json", newer, "upgrade uq-tracking"),
    ("uq/report.json", pickled, "is not JSON"),
    ("uq/statistics.npz", truncated, "cannot be read as an npz"),
    ("uq/statistics.npz", pickled, "cannot be read as an npz"),
    ("uq/statistics.npz", pickled_inside, "cannot be read as an npz"),
    ("uq/statistics.npz", empty, "cannot be read as an npz"),
    ("uq/statistics.npz", foreign, "these arrays are not statistics"),
    ("uq/statistics.npz", unpacks_to_too_much, "would unpack to 80,000,000"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "damage", "match"), DAMAGES)
def test_a_damaged_run_is_reported_and_the_others_are_rescored(dir_place, name, damage, match):
    for method in ("a", "broken", "c"):
        dir_place.log(predictions(), method=method, predictions=False)
    broken = dir_place.runs()[1]
    folder = Path(broken.stored.uri.removeprefix("dir:"))
    damage(folder / name)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    summary = uq.rescore(dir_place.uri, alpha=0.9)
    assert [outcome.status for outcome in summary.outcomes] == ["done", "failed", "done"]
    assert match in summary.failed[0].reason
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_predictions_that_are_damaged_fail_only_what_needs_them(dir_place):
    dir_place.log(predictions())
    folder = Path(dir_place.run().stored.uri.removeprefix("dir:"))
    truncated(folder / "uq/predictions.npz")
    (outcome,) = uq.rescore(dir_place.uri, std_floor=0.5).failed
    assert "uq/predictions.npz of run m" in outcome.reason
    assert len(uq.rescore(dir_place.uri, alpha=0.9).done) == 1


def test_predictions_of_another_log_are_not_taken_for_the_reports(dir_place):
    dir_place.log(predictions())
    uq.log(predictions(seed=1), run=dir_place.run().stored.uri, predictions=False, figures=False, strict=True)
    (outcome,) = uq.rescore(dir_place.uri, std_floor=0.5).failed
    assert "is not what report.json was made from" in outcome.reason


@pytest.mark.slow
def test_statistics_of_another_log_are_not_taken_for_the_reports(dir_place):
    for n in (300, 200):
        dir_place.log(predictions(n), method=f"n{n}", predictions=False)
    one, other = (Path(run.stored.uri.removeprefix("dir:")) for run in dir_place.runs())
    (one / "uq/statistics.npz").write_bytes((other / "uq/statistics.npz").read_bytes())
    (outcome,) = uq.rescore(dir_place.uri).failed
    assert "the statistics are of other predictions" in outcome.reason


def test_runs_that_hold_nothing_of_ours_are_skipped_with_the_reason(dir_place, tmp_path):
    dir_place.log(predictions())
    FolderStore(tmp_path / "runs").create("stranger").log_scalars({"loss": 1.0})
    (outcome,) = uq.rescore(dir_place.uri).skipped
    assert (outcome.name, "log its own files to it with uq.log" in outcome.reason) == ("stranger", True)


def test_what_needs_predictions_fails_without_them(dir_place):
    dir_place.log(predictions(), predictions=False)
    (outcome,) = uq.rescore(dir_place.uri, std_floor=0.5).failed
    assert outcome.reason == "a std floor can only be applied to predictions, and the run stores none"


def test_a_run_that_refuses_to_be_written_is_reported_and_not_marked(dir_place, monkeypatch):
    dir_place.log(predictions())

    def refuse(self, run_id):
        raise BackendError("the disk is full at https://me:secret@host/path")

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "reopen", refuse)
        (outcome,) = uq.rescore(dir_place.uri, alpha=0.9).failed
    assert "the disk is full" in outcome.reason
    assert "secret" not in outcome.reason
    assert dir_place.run().report().settings["alpha"] == 0.95
    assert len(uq.rescore(dir_place.uri, alpha=0.9).done) == 1


@pytest.mark.slow
def test_a_tracker_that_is_gone_is_asked_once(dir_place, monkeypatch):
    for _ in range(3):
        dir_place.log(predictions())
    asked = []

    def gone(self, run_id):
        asked.append(run_id)
        raise TrackerUnreachableError("nobody answers")

    monkeypatch.setattr(FolderStore, "reopen", gone)
    summary = uq.rescore(dir_place.uri, alpha=0.9)
    assert len(asked) == 1
    assert [outcome.reason[:9] for outcome in summary.failed[1:]] == ["not tried", "not tried"]
