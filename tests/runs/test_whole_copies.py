"""A copy shows what the run itself would show on that tracker, and there is one copy of each run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import mlflow
import pytest

import uq_tracking as uq
from tests.runs.places import Place, predictions
from uq_tracking.runs.sync import SOURCE_TAG
from uq_tracking.testing import sample_predictions
from uq_tracking.tracking.folder import FolderStore
from uq_tracking.tracking.resolve import open_store

pytestmark = pytest.mark.faults


def entities(place):
    """Runs of an MLflow place by method, as MLflow's own client reads them, and the experiment."""
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name(place.uri.partition(":")[2])
    runs = client.search_runs([experiment.experiment_id])
    return {run.data.tags["uq.method"]: run for run in runs}, experiment


def shown(run):
    """What MLflow's page of a run shows besides scores and files; addresses of pictures name the run."""
    note = run.data.tags["mlflow.note.content"].replace(run.info.run_id, "RUN")
    data = [(item.dataset.name, item.dataset.digest) for item in run.inputs.dataset_inputs]
    return {"description": note, "data set": data, "color": run.data.tags["mlflow.runColor"]}


@pytest.fixture
def copied(tmp_path, mlflow_sqlite_place):
    """Two runs logged to MLflow directly, and the same ones logged to a folder and copied."""
    direct = mlflow_sqlite_place
    copies, folder = Place(f"{direct.uri} copied"), Place(f"dir:{tmp_path}/waiting")
    for place in (direct, folder):
        for seed, method in enumerate(("one", "two")):
            data = sample_predictions() if seed else predictions(seed=seed)
            uq.log(data, run=place.uri, method=method, split="test" if seed else None, strict=True)
    uq.sync(folder.uri, copies.uri)
    return entities(direct), entities(copies)


def test_a_copy_in_mlflow_shows_what_the_run_itself_shows(copied):
    (direct, experiment), (copies, of_copies) = copied
    assert direct.keys() == copies.keys() == {"one", "two"}
    for method, run in direct.items():
        for what, value in shown(run).items():
            assert shown(copies[method])[what] == value != [], what
        assert copies[method].data.metrics == run.data.metrics
    views = [
        {name: value for name, value in each.tags.items() if "View" in name}
        for each in (experiment, of_copies)
    ]
    assert views[0] == views[1] != {}


def test_the_verdict_and_tables_reach_wandb(tmp_path, wandb_offline_place):
    uq.log(sample_predictions(), run=f"dir:{tmp_path}/waiting", method="m", strict=True)
    uq.sync(f"dir:{tmp_path}/waiting", wandb_offline_place.uri)
    (path,) = Path(wandb_offline_place.uri.partition(":")[2]).glob("**/run-*.wandb")
    from uq_tracking_wandb.fragment import read_fragment

    found = read_fragment(path)
    assert found.options["notes"].startswith("uq_tracking: ")
    assert any(key.startswith("uq_worst/") for key in found.summary)


def test_what_a_tracker_keeps_no_journal_of_is_made_again(tmp_path, mlflow_sqlite_place, dir_place):
    uq.log(sample_predictions(), run=mlflow_sqlite_place.uri, method="m", split="test", strict=True)
    uq.log(sample_predictions(), run=f"dir:{tmp_path}/direct", method="m", split="test", strict=True)
    uq.sync(mlflow_sqlite_place.uri, dir_place.uri)
    lines = {}
    for uri in (f"dir:{tmp_path}/direct", dir_place.uri):
        store, _ = open_store(uri)
        (run,) = store.runs()
        lines[uri] = {json.dumps(line) for line in store.lines(run.run_id) if line["kind"] != "table"}
    direct, again = lines.values()
    assert direct <= again


def test_a_journal_survives_a_copy_between_folders(tmp_path):
    uq.log(sample_predictions(), run=f"dir:{tmp_path}/a", method="m", strict=True)
    uq.sync(f"dir:{tmp_path}/a", f"dir:{tmp_path}/b")
    stores = [FolderStore(tmp_path / name) for name in "ab"]
    lines = [[store.lines(run.run_id) for run in store.runs()] for store in stores]
    (first,), (second,) = lines
    assert {"curve", "figure", "map", "table", "file", "description", "dataset", "view"} == {
        line["kind"] for line in first
    }
    assert sorted(map(json.dumps, first)) == sorted(map(json.dumps, second))


COPIER = """
import os, pathlib, sys, time, warnings
warnings.simplefilter("ignore")
import mlflow, uq_tracking as uq

waiting, ready, *places = sys.argv[1:]
other = os.fork()  # of two that share their imports
me, it = (1, 2) if other else (2, 1)
for number, place in enumerate(places):
    pathlib.Path(f"{ready}{number}-{me}").touch()
    while not pathlib.Path(f"{ready}{number}-{it}").exists():
        time.sleep(0.001)
    assert not uq.sync(waiting, place).failed
if other:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
"""


@pytest.mark.parametrize("kind", ["dir", "mlflow"])
def test_two_processes_that_copy_at_once_make_one_copy_of_each_run(tmp_path, request, kind):
    place = request.getfixturevalue("dir_place" if kind == "dir" else "mlflow_sqlite_place")
    places = [Place(f"{place.uri}-{attempt}") for attempt in range(3)]
    for number in range(4):
        run = FolderStore(tmp_path / "waiting").create(f"run {number}")
        uq.log(predictions(60, seed=number), run=run, figures=False, predictions=False, strict=True)
    uris = [each.uri for each in places]
    command = [sys.executable, "-c", COPIER, f"dir:{tmp_path}/waiting", str(tmp_path / "ready"), *uris]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for each in places:
        copies = each.runs()
        assert len(copies) == 4
        assert len({run.stored.tags[SOURCE_TAG] for run in copies}) == 4


def test_copies_made_twice_by_two_machines_are_named(tmp_path, dir_place, monkeypatch):
    run = FolderStore(tmp_path / "waiting").create("a")
    uq.log(predictions(60), run=run, figures=False, strict=True)
    uq.sync(f"dir:{tmp_path}/waiting", dir_place.uri)
    with monkeypatch.context() as patch:  # as the other machine saw it when it began
        patch.setattr("uq_tracking.runs.sync._held", lambda store: [])
        uq.sync(f"dir:{tmp_path}/waiting", dir_place.uri)
    first, second = dir_place.runs()
    (outcome,) = uq.sync(f"dir:{tmp_path}/waiting", dir_place.uri).skipped
    assert f"{first.stored.uri} is already a copy" in outcome.reason
    assert f"{second.stored.uri} is another copy: delete it" in outcome.reason
