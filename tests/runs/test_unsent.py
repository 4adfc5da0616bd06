"""Kept calls are sent into the run they were meant for, once, in order, by one process at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from contextlib import suppress

import pytest
from typer.testing import CliRunner

import uq_tracking as uq
from uq_tracking.cli import app
from uq_tracking.errors import BackendError, TrackingWarning
from uq_tracking.runs.sync import drop_entry
from uq_tracking.tracking.folder import FolderRun, FolderStore
from uq_tracking.tracking.spool import entries

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]


def log(run, step=None, shift=0.0):
    data = [value + shift for value in TRUTH]
    return uq.log(data, MEAN, STD, run=run, method="m", step=step, figures=False, maps=False)


def content(store, run_id):
    (run,) = [run for run in store.runs() if run.run_id == run_id]
    files = {name: (store.path / run_id / name).read_bytes() for name in store.files(run_id)}
    return store.series(run), run.tags, {n: c for n, c in files.items() if not n.endswith(".npz")}


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job whose run was out of reach from step 2 on: what is kept, and how an undisturbed run looks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uq_tracking.tracking.health.Health._start", lambda self: None)  # as if it had ended
    stores = {name: FolderStore(tmp_path / name) for name in ("calm", "sick")}
    runs = {name: store.create(name) for name, store in stores.items()}
    for name, run in runs.items():
        for step in range(5):
            if name == "sick" and step == 2:
                monkeypatch.setattr(FolderRun, "_check_exists", _refuse)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TrackingWarning)
                log(run, step, shift=step / 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrackingWarning)
            log(run)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return stores, runs


def _refuse(self):
    raise OSError("the file system is gone")


def test_the_run_becomes_what_it_would_have_been(job, tmp_path):
    stores, runs = job
    assert len(list(entries())) == 4
    summary = uq.sync()
    assert [outcome.status for outcome in summary.outcomes] == ["done"] * 4, summary
    assert list(entries()) == []
    found = {name: content(stores[name], run.path.name) for name, run in runs.items()}
    assert found["sick"] == found["calm"]
    assert uq.sync().outcomes == []


def test_a_dry_run_sends_nothing_and_keep_keeps(job, tmp_path):
    before = list(entries())
    assert "would be sent" in uq.sync(dry_run=True).outcomes[0].reason
    assert list(entries()) == before
    uq.sync(keep=True)
    assert len(list((tmp_path / "uq_runs" / "spool" / "sent").iterdir())) == 4


def test_a_run_that_is_gone_gets_one_substitute_that_names_it(job, tmp_path):
    stores, runs = job
    shutil.rmtree(runs["sick"].path)
    uq.sync()
    (substitute,) = stores["sick"].runs()
    assert substitute.tags["uq.origin"] == runs["sick"].uri
    assert {step for step, _ in stores["sick"].series(substitute)} == {2, 3, 4, None}


@pytest.mark.parametrize("is_damaged", [True, False])
def test_an_entry_that_cannot_be_sent_is_named_and_stops_no_other(is_damaged, job, monkeypatch):
    first, *_ = entries()
    write = FolderRun.log_scalars

    def fails(run, scalars, *, step=None):
        if step == 2:
            raise RuntimeError("500: internal error")
        write(run, scalars, step=step)

    if is_damaged:
        first.write_bytes(b"PK")
    else:
        monkeypatch.setattr(FolderRun, "log_scalars", fails)
    summary = uq.sync()
    assert [outcome.status for outcome in summary.outcomes] == ["failed"] + ["done"] * 3
    assert first.name in str(summary)
    assert list(entries()) == [first]


def test_an_entry_that_can_never_be_sent_is_given_up(job, tmp_path):
    first, *rest = entries()
    first.write_bytes(b"PK")
    told = uq.sync().failed[0].reason
    assert told.endswith(f"; to give it up: uq-tracking sync --drop {first}")
    command = [*told.rpartition("uq-tracking ")[2].split()]
    done = CliRunner().invoke(app, command, env={"COLUMNS": "400"})
    assert (done.exit_code, done.stdout) == (0, f"dropped {first}\n")
    assert list(entries()) == []
    assert not rest[0].exists()
    again = CliRunner().invoke(app, ["sync", "--drop", first.name], env={"COLUMNS": "400"})
    assert again.exit_code == 1
    assert f"{first.name} is not a kept call; there are none" in again.output


def test_only_kept_calls_are_dropped(job, tmp_path):
    own = tmp_path / "spool" / "thesis.zip"
    own.parent.mkdir()
    own.write_text("mine")
    with pytest.raises(BackendError, match="is not a kept call; choose from 0"):
        drop_entry(str(own))
    first, *rest = entries()
    elsewhere = (tmp_path / "elsewhere" / "spool").joinpath(first.name)
    elsewhere.parent.mkdir(parents=True)
    first.replace(elsewhere)
    assert drop_entry(str(elsewhere)) == elsewhere
    assert drop_entry(rest[0].name) == rest[0]
    assert own.exists()
    assert list(entries()) == rest[1:]


def test_a_tracker_that_does_not_work_costs_no_entry(job, monkeypatch):
    monkeypatch.setattr(FolderRun, "_check_exists", _refuse)
    first, *_ = entries()
    told = uq.sync().failed[0].reason
    assert told.endswith(f"the file system is gone; it stays in {first}")
    assert first.exists()


@pytest.mark.slow
def test_two_processes_at_once_send_everything_once(job, tmp_path):
    stores, runs = job
    shutil.rmtree(runs["sick"].path)
    code = "import uq_tracking as uq; s = uq.sync(); assert not s.failed, s; print(len(s.done))"
    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    sent = [int(process.communicate(timeout=120)[0]) for process in both]
    assert sum(sent) == 4
    assert len(list(stores["sick"].runs())) == 1


def test_a_killed_sync_goes_on_where_it_stopped(job, monkeypatch):
    stores, runs = job
    taken = []

    def stop(path, *, keep):
        taken.append(path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("uq_tracking.runs.sync._put_away", stop)
        with suppress(KeyboardInterrupt):
            uq.sync()
    assert taken
    uq.sync()
    assert content(stores["sick"], runs["sick"].path.name) == content(stores["calm"], runs["calm"].path.name)


@pytest.mark.slow
def test_the_command_tells_what_was_sent(job):
    code = "from uq_tracking.cli import app; app()"
    found = subprocess.run([sys.executable, "-c", code, "sync"], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    assert "4 done, 0 skipped, 0 failed" in found.stdout


@pytest.mark.slow
def test_a_run_that_is_deleted_on_the_server_gets_a_substitute(sqlite_uri, tmp_path, monkeypatch):
    """MLflow still shows such a run, though it takes nothing; the calls name it by its id alone."""
    import mlflow

    monkeypatch.chdir(tmp_path)
    client = mlflow.MlflowClient(sqlite_uri)
    monkeypatch.setattr("mlflow.tracking._tracking_service.utils._tracking_uri", None)  # another test's
    monkeypatch.setenv("MLFLOW_TRACKING_URI", sqlite_uri)
    experiment = client.create_experiment("deleted")
    run_id = client.create_run(experiment).info.run_id
    log(run_id, 0)
    client.delete_run(run_id)
    with pytest.warns(TrackingWarning, match="makes it a new run"):
        log(run_id, 1)
    log(run_id, 2)
    summary = uq.sync()
    assert [outcome.status for outcome in summary.outcomes] == ["done"] * 2, summary
    (substitute,) = client.search_runs([experiment])
    assert substitute.data.tags["uq.origin"] == f"mlflow:{run_id}"
    assert list(entries()) == []
