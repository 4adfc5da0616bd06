"""Folders as runs: what is on the disk, damage, and several processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from uq_tracking.errors import BackendError, RunNotFoundError, TrackingWarning
from uq_tracking.testing import sample_curve
from uq_tracking.tracking.folder import FolderBackend, FolderStore


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "runs")


def test_a_store_that_does_not_exist_yet_is_empty(store):
    assert list(store.runs()) == []
    assert not store.path.exists()


def test_a_run_is_readable_by_eye(store):
    run = store.create("mc dropout", {"seed": "3"})
    run.log_scalars({"uq/nll": 0.5}, step=2)
    run.set_tags({"uq.method": "mc"})
    run.log_curve("uq_curve/sample", sample_curve((0.0, 1.0)))
    head = json.loads((run.path / "run.json").read_text())
    lines = [json.loads(line) for line in (run.path / "log.jsonl").read_text().splitlines()]
    assert (head["name"], head["tags"], head["status"]) == ("mc dropout", {"seed": "3"}, "finished")
    assert [{k: v for k, v in line.items() if k not in ("time", "about")} for line in lines] == [
        {"kind": "scalars", "step": 2, "values": {"uq/nll": 0.5}},
        {"kind": "tags", "values": {"uq.method": "mc"}},
        {"kind": "curve", "name": "uq_curve/sample", "file": "uq_curve/sample.csv"},
    ]
    assert (run.path / "uq_curve/sample.csv").read_text() == "expected,observed\n0.0,0.0\n1.0,1.0\n"
    assert run.path.name.split("-", 2)[2].startswith("mc-dropout-")


def test_a_line_cut_by_a_killed_writer_costs_only_that_line(store):
    run = store.create("a")
    run.log_scalars({"uq/a": 1.0})
    with (run.path / "log.jsonl").open("a") as file:
        file.write('{"time": "2026", "kind": "scalars", "values": {"uq/b"')
    run.log_scalars({"uq/c": 3.0})
    with pytest.warns(TrackingWarning, match="line 2 is damaged") as told:
        (stored,) = store.runs()
    assert told[0].filename == __file__
    assert stored.scalars == {"uq/a": 1.0, "uq/c": 3.0}


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("run.json", "text"),
        *((name, damage) for name in ("run.json", "log.jsonl") for damage in ("pipe", "device", "holes")),
        ("log.jsonl", "folder"),
    ],
)
def test_a_damaged_run_hides_no_other(store, name, damage):
    """Nor do files without an end: a pipe, a device, or a terabyte that takes no space."""
    store.create("good")
    bad = store.create("bad").path / name
    if name == "run.json":
        bad.unlink()
    if damage == "text":
        bad.write_text("{\n")
    elif damage == "folder":
        bad.mkdir()
    elif damage == "holes":
        with bad.open("wb") as file:
            file.truncate(2**40)
    elif damage == "device":
        bad.symlink_to("/dev/zero")
    else:
        os.mkfifo(bad)
    with pytest.warns(TrackingWarning, match=rf"run skipped: .*{name}") as told:
        assert [run.name for run in store.runs()] == ["good"]
    assert told[0].filename == __file__


def test_folders_of_others_are_not_runs(store):
    store.create("mine")
    (store.path / "other").mkdir()
    assert [run.name for run in store.runs()] == ["mine"]


def test_an_unfinished_copy_is_not_listed(store, tmp_path):
    run = store.create("a")
    (run.path / ".report.json.123.part").write_text("half")
    assert store.files(run.path.name) == []


def test_the_backends_own_files_cannot_be_replaced(store, tmp_path):
    run = store.create("a")
    (tmp_path / "x").write_text("x")
    with pytest.raises(BackendError, match=r"'run\.json' is reserved for the backend"):
        run.log_file(tmp_path / "x", "run.json")


def test_a_missing_source_leaves_the_old_file(store, tmp_path):
    run = store.create("a")
    (tmp_path / "x").write_text("old")
    run.log_file(tmp_path / "x", "uq/x")
    with pytest.raises(FileNotFoundError):
        run.log_file(tmp_path / "gone", "uq/x")
    assert (run.path / "uq/x").read_text() == "old"
    assert store.files(run.path.name) == ["uq/x"]


def test_a_deleted_run_is_not_made_again(store, tmp_path):
    run = store.create("a")
    (run.path / "run.json").unlink()
    (tmp_path / "x").write_text("x")
    for write in (
        lambda: run.log_scalars({"uq/a": 1.0}),
        lambda: run.set_tags({"a": "b"}),
        lambda: run.log_file(tmp_path / "x", "x"),
        lambda: run.log_curve("uq_curve/sample", sample_curve()),
    ):
        with pytest.raises(RunNotFoundError, match="was it moved or deleted"):
            write()
    assert list(run.path.iterdir()) == []


def test_a_filter_that_cannot_be_read_is_refused(store):
    with pytest.raises(BackendError, match="write tag=value"):
        list(store.runs("uq.method"))


def test_addresses(tmp_path):
    backend = FolderBackend()
    run = FolderStore(tmp_path / "runs").create("a")
    store, run_id = backend.store(str(tmp_path / "runs"))
    assert (store.path, run_id) == (tmp_path / "runs", None)
    store, run_id = backend.store(str(run.path))
    assert (store.path, run_id) == (tmp_path / "runs", run.path.name)
    assert backend.adopt("a text") is None
    assert backend.adopt(run.path).path == run.path
    assert backend.active_run() is None
    assert backend.status().usable


@pytest.mark.slow
def test_processes_writing_at_once_lose_no_line(store):
    run = store.create("a")
    code = (
        "import sys\nfrom pathlib import Path\nfrom uq_tracking.tracking.folder import FolderRun\n"
        "run = FolderRun(Path(sys.argv[1]))\n"
        "for step in range(60):\n"
        "    run.log_scalars({f'uq/{sys.argv[2]}/{k}': float(step) for k in range(40)}, step=step)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(run.path), name]) for name in "ab"]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    text = (run.path / "log.jsonl").read_text()
    lines = [
        json.loads(line) for line in text.splitlines() if line
    ]  # an empty one separates lines from torn ones
    for name in "ab":
        steps = [line["step"] for line in lines if f"uq/{name}/39" in line["values"]]
        assert steps == list(range(60))
