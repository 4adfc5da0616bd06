"""A call on which a tracker fails for ever holds back no other; in an outage, all wait in order."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pytest

import uq_tracking as uq
from uq_tracking.errors import BackendError, TrackingWarning
from uq_tracking.tracking.folder import FolderRun, FolderStore
from uq_tracking.tracking.health import Health, Waiting
from uq_tracking.tracking.places import spool_lock
from uq_tracking.tracking.spool import entries

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]
STEPS = range(3)


def wait_until(holds):
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    assert holds()


@pytest.mark.parametrize("is_outage", [False, True])
def test_a_call_that_is_never_taken_holds_back_no_other(is_outage, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uq_tracking.tracking.health.FIRST_PAUSE", 0.001)
    monkeypatch.setattr("uq_tracking.tracking.health.LONGEST_PAUSE", 0.008)
    monkeypatch.setattr("uq_tracking.tracking.health.MOST_TRIES", 3)
    store = FolderStore(tmp_path / "runs")
    runs = {name: store.create(name) for name in "ab"}
    toxic, taken, write = {("a", 1)}, [], FolderRun.log_scalars
    if is_outage:
        toxic |= {(name, step) for name in runs for step in STEPS if step > 0}

    def fails(run, scalars, *, step=None):
        call = (next(name for name, each in runs.items() if each.path == run.path), step)
        if call in toxic:
            raise RuntimeError("500: internal error")
        taken.append(call)
        write(run, scalars, step=step)

    monkeypatch.setattr(FolderRun, "log_scalars", fails)
    calls = [(name, step) for step in STEPS for name in runs]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TrackingWarning)
        for name, step in calls:
            uq.log(TRUTH, MEAN, [std + step for std in STD], run=runs[name], step=step)
    assert len(told) == 1, [str(each.message) for each in told]
    if is_outage:
        time.sleep(0.05)  # many tries
        assert len(list(entries())) == len(toxic)
        assert not caplog.messages
        toxic.clear()
        wait_until(lambda: not list(entries()))
        assert sorted(taken) == sorted(calls)
        return
    wait_until(lambda: "does not take the call in" in caplog.text and len(list(entries())) == 1)
    (kept,) = entries()
    assert set(taken) == set(calls) - toxic
    assert [message for message in caplog.messages if str(kept) in message] == caplog.messages[-1:]
    toxic.clear()
    assert not uq.sync().failed
    assert sorted(taken) == sorted(calls)
    last, undisturbed = store.runs()
    assert last.scalars == undisturbed.scalars


@pytest.mark.parametrize(
    ("number", "key", "expected"), [(2, "k", True), (1, "k", False), (2, "l", False), (2, "", False)]
)
def test_only_a_later_call_of_the_same_kind_and_run_replaces_one_that_was_refused(number, key, expected):
    """Without a key, a call creates its own run."""
    old, new = (
        Waiting(Path(f"{count:08d}-a.uqspool.zip"), lambda: None, "dir:runs", own)
        for count, own in ((1, key and "k"), (number, key))
    )
    assert new.supersedes(old) == expected


def test_steps_that_are_refused_for_one_reason_are_warned_of_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uq_tracking.tracking.health.Health._start", lambda self: None)
    run = FolderStore(tmp_path / "runs").create("job")

    def refuse_step(*_, step):
        raise BackendError(f"step {step} is refused: quota of 3.5 GB")

    monkeypatch.setattr(FolderRun, "log_scalars", refuse_step)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TrackingWarning)
        for step in range(20):
            uq.log(TRUTH, MEAN, STD, run=run, step=step)
    assert len(told) == 1
    assert len(list(entries())) == 20
    with pytest.raises(BackendError, match="step 21 is refused"):
        uq.log(TRUTH, MEAN, STD, run=run, step=21, strict=True)
    assert len(list(entries())) == 20


def test_a_folder_that_another_process_is_sending_says_nothing_of_the_tracker(tmp_path, monkeypatch):
    monkeypatch.setattr("uq_tracking.tracking.health.LOCK_SECONDS", 0.01)
    with spool_lock(tmp_path, 1):
        assert Waiting(tmp_path / "entry", lambda: None, "dir:runs").send("dir", "runs") == "again"


def test_a_call_waits_for_earlier_ones_of_its_run_until_their_files_are_gone(tmp_path, monkeypatch):
    """A file goes when it has been sent, and the thread that sent it says so a moment later."""
    monkeypatch.setattr(Health, "_start", lambda self: None)
    earlier, health = tmp_path / "entry", Health("dir", "runs", 1.0)
    earlier.touch()
    health.wait_with(Waiting(earlier, lambda: None, "dir:runs"))
    assert health.refusal("dir:runs") == "earlier calls are still being sent"
    assert health.refusal("dir:other") is None
    earlier.unlink()
    assert health.refusal("dir:runs") is None


def test_a_call_that_was_refused_is_replaced_only_by_the_same_scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uq_tracking.tracking.health.Health._start", lambda self: None)  # as if it were busy
    run = FolderStore(tmp_path / "runs").create("a")
    with monkeypatch.context() as patch:
        patch.setattr(FolderRun, "log_scalars", refuse)
        with pytest.warns(TrackingWarning, match="Everything is kept in"):
            uq.log(TRUTH, MEAN, STD, run=run, step=0)
    uq.log([0, 1, 1], probs=[0.2, 0.9, 0.4], run=run, step=0)
    uq.log(TRUTH, MEAN, STD, run=run, step=1)
    assert len(list(entries())) == 1
    uq.log(TRUTH, MEAN, STD, run=run, step=0)
    assert list(entries()) == []


def refuse(*_, **__):
    raise BackendError("not this")
