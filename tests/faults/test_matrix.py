"""The quick core of the fault matrix; ``benchmarks/faults.py`` runs all of it and writes docs/evidence.md."""

from __future__ import annotations

import shutil
import signal

import pytest

from tests.faults.matrix import Fault, killed, moved, run_fault
from tests.faults.stores import MLflowHttp, directory_store

pytestmark = pytest.mark.faults

AT_ONCE = 0.05
"""Seconds for which a step that is kept blocks, less the time in which it had no processor."""
DRAWN = 1.5
"""Seconds for which the final report is scored and packed, on a machine that runs other tests too."""


def check(row, deadline):
    assert row.raised == []
    assert row.slowest < deadline + DRAWN
    assert row.later < AT_ONCE
    assert row.later_work < AT_ONCE
    assert len(row.warned) <= 1
    assert row.exit_seconds < deadline + 5
    assert row.failed == []
    assert row.differing == []


def test_a_server_that_is_stopped_until_an_interrupted_job_has_ended(empty_database, tmp_path):
    """The call that waits is interrupted, the later ones are kept, and `sync` sends all of them."""
    http = MLflowHttp(tmp_path / "server")
    http.server.folder.mkdir(parents=True)
    shutil.copy(empty_database, http.server.folder)
    with http:
        store = http.store()
        store.deadline = 1.5
        fault = Fault("stopped", http.stop, http.go_on, "exit", interruption=signal.SIGINT, syncs=2)
        row = run_fault(store, tmp_path / "row", fault)
    assert len(row.raised) == 1
    assert "KeyboardInterrupt" in row.raised.pop()
    check(row, store.deadline)
    assert row.kept == row.left == 7


def test_a_folder_that_is_away_with_the_working_and_the_temporary_directory(tmp_path):
    (tmp_path / "runs").mkdir()
    store, gone = directory_store(tmp_path / "runs"), tmp_path / "gone"
    gone.mkdir()
    start, end = moved(tmp_path / "runs")
    fault = Fault(
        "away",
        lambda: (start(), gone.rmdir()),
        end,
        "exit",
        {"cwd": str(gone), "workers": ("fork", 4)},
        temporary=tmp_path / "missing",
    )
    row = run_fault(store, tmp_path / "row", fault)
    check(row, store.deadline)
    assert row.kept == 15


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_that_is_killed_leaves_whole_entries(tmp_path, number):
    found = killed(tmp_path / "job", 0.3, number)
    assert found.kept > 0
    assert (found.damaged, found.lost) == (0, 0)
