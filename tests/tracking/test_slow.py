"""A healthy tracker that is slow with files: the call returns, the rest goes on behind it, and nothing is doubled."""

from __future__ import annotations

import threading
import time

import pytest

import uq_tracking as uq
from uq_tracking.errors import TrackingWarning
from uq_tracking.tracking.folder import LOG_FILE, FolderRun, FolderStore
from uq_tracking.tracking.spool import entries

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]
DEADLINE = 0.2


def content(run):
    files = {path.relative_to(run.path): path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    lines = files.pop(next(path for path in files if path.name == LOG_FILE)).splitlines()
    del files[next(path for path in files if path.name == "run.json")]
    npz = [path for path in files if path.suffix == ".npz"]  # whose members carry the time
    return {path: b"" if path in npz else data for path, data in files.items()}, len(lines)


def test_an_upload_that_outlasts_the_deadline_ends_in_the_background(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uq_tracking.tracking.health.FIRST_PAUSE", 0.05)
    calm, slow = (FolderStore(tmp_path / name).create("job") for name in ("calm", "slow"))
    go, store = threading.Event(), FolderRun.log_file
    uq.log(TRUTH, MEAN, STD, run=calm, figures=False, strict=True)

    def wait(self, *arguments):
        go.wait(20)
        store(self, *arguments)

    monkeypatch.setattr(FolderRun, "log_file", wait)
    start = time.monotonic()
    with pytest.warns(TrackingWarning, match="not done with its files on this machine within the deadline"):
        uq.log(TRUTH, MEAN, STD, run=slow, figures=False, deadline=DEADLINE)
    assert time.monotonic() - start < DEADLINE + 1.0
    assert len(list(entries())) == 1
    go.set()  # now both the upload that was left behind and that of the kept call go on
    end = time.monotonic() + 20
    while list(entries()) and time.monotonic() < end:
        time.sleep(0.01)
    assert list(entries()) == []
    assert content(slow) == content(calm)
