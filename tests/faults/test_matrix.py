"""The quick part of the fault matrix; ``benchmarks/faults.py`` runs all of it and writes docs/reliability.md."""

from __future__ import annotations

import shutil

import pytest

from tests.faults.matrix import (
    DEADLINE,
    MLflowHttp,
    directory_store,
    killed,
    locked_database,
    new_directory_run,
    run_job,
    sqlite_store,
)

AT_ONCE = 0.5
"""Seconds within which a call is kept on a machine that runs other tests too; docs/reliability.md measures them."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with MLflowHttp(tmp_path_factory.mktemp("faults")) as server:
        store = server.store()
        assert run_job(store, tmp_path_factory.mktemp("calm") / "job").raised == []
        yield server, store


def check(row):
    assert row.raised == []
    assert row.first < DEADLINE + AT_ONCE
    assert row.later < AT_ONCE
    assert len(row.warned) <= 1
    assert row.exit_seconds < DEADLINE + 5
    assert row.failed == []
    assert row.differing == []


def test_a_server_that_answers_503_while_its_health_is_well(server, tmp_path):
    http, store = server
    row = run_job(store, tmp_path / "job", "503", http.mode("503"), http.mode("pass"))
    check(row)
    assert row.kept == 4


def test_a_server_that_is_stopped_until_the_job_has_ended(server, tmp_path):
    http, store = server
    row = run_job(store, tmp_path / "job", "stopped", http.stop, http.go_on, well_from="exit")
    check(row)
    assert row.kept == row.left == 7


def test_storage_that_refuses_while_the_server_answers(server, tmp_path):
    http, store = server
    mode = http.mode("status 503 mlflow-artifacts")
    row = run_job(store, tmp_path / "job", "storage", mode, http.mode("pass"), well_from="exit")
    check(row)
    assert row.kept == row.left == 1


def test_a_locked_database(tmp_path):
    store = sqlite_store(tmp_path / "store")
    assert run_job(store, tmp_path / "calm").raised == []
    lock = locked_database(tmp_path / "store" / "mlflow.db")
    row = run_job(
        store,
        tmp_path / "job",
        "locked",
        lock.__enter__,
        lambda: lock.__exit__(None, None, None),
        well_from="exit",
    )
    check(row)
    assert row.kept == 7


def test_a_folder_that_is_away_for_a_while(tmp_path):
    store = directory_store(tmp_path / "runs")
    store.arguments["run"] = new_directory_run(tmp_path / "runs")
    assert run_job(store, tmp_path / "calm").raised == []
    store.arguments["run"] = new_directory_run(tmp_path / "runs")

    def away():
        shutil.move(tmp_path / "runs", tmp_path / "away")
        (tmp_path / "runs").write_text("a file where the folder was")

    def back():
        (tmp_path / "runs").unlink()
        shutil.move(tmp_path / "away", tmp_path / "runs")

    gone = tmp_path / "gone"
    gone.mkdir()
    row = run_job(
        store,
        tmp_path / "job",
        "away, and the working and the temporary directory too",
        lambda: (away(), gone.rmdir()),
        back,
        well_from="exit",
        cwd=str(gone),
        temporary=tmp_path / "missing",
    )
    check(row)
    assert row.kept == 7


@pytest.mark.parametrize("seconds", [0.4, 0.9])
def test_a_job_that_is_killed_leaves_whole_entries(tmp_path, seconds):
    kept, damaged = killed(tmp_path / "job", seconds)
    assert kept > 0
    assert damaged == 0
