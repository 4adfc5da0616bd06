"""A call that the user interrupts is kept whole before the interruption goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager

import pytest

import uq_tracking as uq
from uq_tracking.drawings import FigureSpec
from uq_tracking.tracking.folder import FolderRun, FolderStore
from uq_tracking.tracking.names import scalar_name
from uq_tracking.tracking.places import scratch_folder
from uq_tracking.tracking.spool import entries

pytestmark = pytest.mark.faults

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]


class EpochTooLongError(Exception):
    """What a user's alarm raises."""


@pytest.fixture
def hung(tmp_path, monkeypatch):
    """A run that does not answer until ``go`` is set, and what tells that it is asked."""
    monkeypatch.chdir(tmp_path)
    asked, go, write = threading.Event(), threading.Event(), FolderRun.log_scalars

    def wait(self, *arguments, **options):
        asked.set()
        go.wait(20)
        return write(self, *arguments, **options)

    run = FolderStore(tmp_path / "runs").create("job")
    monkeypatch.setattr(FolderRun, "log_scalars", wait)
    yield run, asked, go
    go.set()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, TimeoutError, EpochTooLongError])
def test_what_a_signal_handler_raises_passes_and_the_call_is_kept(hung, kind, monkeypatch):
    run, asked, go = hung
    monkeypatch.setattr("uq_tracking.tracking.health.Health._start", lambda self: None)

    def handler(number, frame):
        raise kind("stop")

    def interrupt():
        asked.wait(20)
        time.sleep(0.1)  # until the main thread waits, for a signal before that ends no waiting
        signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(kind, match="stop"):
                uq.log(TRUTH, MEAN, STD, run=run.uri, figures=False)
    finally:
        thread.join()
        signal.signal(signal.SIGALRM, before)
    assert len(list(entries())) == 1
    go.set()
    assert [outcome.status for outcome in uq.sync().outcomes] == ["done"]
    (stored,) = FolderStore(run.path.parent).runs()
    assert stored.scalars[scalar_name("crps")] == uq.evaluate(TRUTH, MEAN, STD).scores["crps"]
    assert "uq/report.json" in FolderStore(run.path.parent).files(run.path.name)


def test_an_interruption_when_everything_is_written_keeps_the_call(tmp_path, monkeypatch):
    """Such as while its temporary folder is removed: what was sent is not known then, so all of it is kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uq_tracking.tracking.health.Health._start", lambda self: None)
    run, removed = FolderStore(tmp_path / "runs").create("job"), []

    @contextmanager
    def interrupted():
        with scratch_folder() as folder:
            yield folder
        removed.append(folder)
        if len(removed) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("uq_tracking.tracking.publish.scratch_folder", interrupted)
    with pytest.raises(KeyboardInterrupt):
        uq.log(TRUTH, MEAN, STD, run=run, figures=False)
    assert len(list(entries())) == 1


@pytest.mark.pictures
def test_an_interruption_while_its_run_is_being_made_makes_no_second_one(tmp_path, monkeypatch):
    create, draw, drawn = FolderStore.create, FigureSpec.draw, []

    def interrupted(*given, **more):
        drawn.append(1)
        if len(drawn) == 1:
            raise KeyboardInterrupt
        return draw(*given, **more)

    monkeypatch.setattr(
        FolderStore, "create", lambda *given, **more: time.sleep(0.3) or create(*given, **more)
    )
    monkeypatch.setattr(FigureSpec, "draw", interrupted)
    with pytest.raises(KeyboardInterrupt):
        uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}")
    uq.sync()
    (stored,) = FolderStore(tmp_path).runs()
    assert "uq/report.json" in FolderStore(tmp_path).files(stored.run_id)


WAITING = """
import os, pathlib, signal, threading, warnings
import uq_tracking as uq
from uq_tracking.tracking.folder import FolderRun, FolderStore

signal.signal(signal.SIGINT, signal.default_int_handler)
warnings.simplefilter("ignore")
run = FolderStore(pathlib.Path.cwd()).create("job")

asked = []

def fails(*_, **__):
    asked.append(1)
    if len(asked) > 1:
        threading.Event().wait(60)
    raise ConnectionError("down")

FolderRun.log_scalars = fails
uq.log([1.0, 2.0, 4.0], [1.5, 2.0, 3.0], [1.0, 0.5, 1.0], run=run, step=0, deadline=60)
timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
timer.daemon = True
timer.start()
"""


def test_an_interruption_at_exit_ends_the_waiting_and_says_what_is_left(tmp_path):
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", WAITING], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert time.monotonic() - start < 40
    assert "has not taken 1 call, kept in" in done.stderr
    assert "Traceback" not in done.stderr
