"""What a job has set for itself, or can no longer do, hurts neither it nor what it logs."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import uq_tracking as uq
from tests.tracking.helpers import FolderTracker, plugin
from uq_tracking.drawings import FigureSpec
from uq_tracking.errors import TrackerUnreachableError, TrackingWarning, log_once
from uq_tracking.tracking import spool
from uq_tracking.tracking.deadline import check_listens
from uq_tracking.tracking.folder import FolderRun, FolderStore
from uq_tracking.tracking.health import Health, forget_health
from uq_tracking.tracking.names import scalar_name
from uq_tracking.tracking.overview import hint
from uq_tracking.tracking.spool import Origin, entries, keep
from uq_tracking.typed import cached_property

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]
CRPS = scalar_name("crps")


def crps(offset=0.0):
    return uq.evaluate(np.add(TRUTH, offset), MEAN, STD).scores["crps"]


def series(path):
    store = FolderStore(Path(path).parent)
    (run,) = (run for run in store.runs() if run.run_id == Path(path).name)
    return {step: value for (step, name), value in store.series(run).items() if name == CRPS}


def exits(*arguments, **options):
    sys.exit(3)


def test_runs_at_paths_whose_disk_is_away_get_their_own_calls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Health, "_start", lambda self: None)
    disk, paths = tmp_path / "disk", [tmp_path / "disk" / name for name in "ab"]
    disk.mkdir()

    def both(step):
        for number, path in enumerate(paths):
            uq.log(np.add(TRUTH, number + step), MEAN, STD, run=path, step=step)

    both(0)
    disk.rename(tmp_path / "away")
    disk.write_text("in the way")
    with pytest.warns(TrackingWarning, match="Everything is kept"):
        both(1)
    disk.unlink()
    (tmp_path / "away").rename(disk)
    assert [outcome.status for outcome in uq.sync().outcomes] == ["done", "done"]
    for number, path in enumerate(paths):
        assert series(path) == {step: crps(number + step) for step in (0, 1)}


def test_sync_goes_on_with_the_run_that_a_job_began_in_the_background(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    queued, begun, write = [], [], FolderRun.log_scalars
    monkeypatch.setattr(Health, "wait_with", lambda self, waiting, **options: queued.append(waiting))
    (tmp_path / "runs").write_text("in the way")
    with pytest.warns(TrackingWarning, match="Everything is kept"):
        uq.log(TRUTH, MEAN, STD, run="dir:runs", method="m", figures=False)
    (tmp_path / "runs").unlink()

    def killed(self, *arguments, **options):
        begun.append(self.uri)
        raise SystemExit("the job ends here")

    monkeypatch.setattr(FolderRun, "log_scalars", killed)
    with pytest.raises(SystemExit):
        queued[0].send("dir", str(tmp_path / "runs"))
    monkeypatch.setattr(FolderRun, "log_scalars", write)
    assert [outcome.status for outcome in uq.sync().outcomes] == ["done"]
    (run,) = FolderStore(tmp_path / "runs").runs()
    assert begun == [run.uri]
    assert run.scalars[CRPS] == crps()


@pytest.mark.pictures
def test_a_tracker_or_a_figure_that_exits_does_not_end_the_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Health, "_start", lambda self: None)
    with monkeypatch.context() as patch:
        patch.setattr(FolderRun, "log_scalars", exits)
        with pytest.warns(TrackingWarning, match="asked the job to exit"):
            uq.log(TRUTH, MEAN, STD, run=tmp_path / "a", step=1)
    assert len(list(entries())) == 1
    figure = FigureSpec("exits", exits)
    with (
        plugin("exits", uq_figures=[figure]),
        pytest.warns(TrackingWarning, match="uq_exits.png could not be made"),
    ):
        uq.log(TRUTH, MEAN, STD, run=tmp_path / "b")
    assert series(tmp_path / "b") == {None: crps()}
    tracker = FolderTracker("exits", error=SystemExit(3))
    with (
        plugin("exits", uq_backends=[tracker]),
        pytest.warns(TrackingWarning, match="cannot determine the active run: 3"),
    ):
        uq.log(TRUTH, MEAN, STD, to="exits", step=1)


def test_a_job_that_can_start_no_more_threads_keeps_the_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refused(self):
        raise RuntimeError("can't start new thread")

    labels, probs = np.arange(40_000) % 2, np.linspace(0.1, 0.9, 40_000)
    wanted = uq.evaluate(labels, probs=probs).scores
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.warns(TrackingWarning, match="no thread can be started"):
            report = uq.log(labels, probs=probs, run=tmp_path / "a", figures=False)
    assert report.scores == wanted
    assert [outcome.status for outcome in uq.sync().outcomes] == ["done"]
    (run,) = FolderStore(tmp_path).runs()
    assert wanted["nll"] in run.scalars.values()


@pytest.mark.parametrize("std", [1.0, 1e-300])
def test_errors_that_a_job_makes_of_numpys_warnings_are_its_own(tmp_path, std):
    labels, probs = np.arange(400) % 3, np.random.default_rng(0).dirichlet([0.01] * 3, 400)
    accumulator = uq.Accumulator()
    with np.errstate(all="raise"):
        assert uq.log(labels, probs=probs, run=f"dir:{tmp_path}").scores["brier"] > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            accumulator.update(TRUTH, MEAN, [*STD[:3], std])
        assert np.geterr()["under"] == "raise"
    assert accumulator.compute().scores["mae"] > 0


def test_a_clock_before_1980_loses_no_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    early = time.localtime(1000.0)
    monkeypatch.setattr(time, "localtime", lambda seconds=None: early)
    keep(Origin("dir", "", f"dir:{tmp_path}/run"), [[("scores", lambda run: run.log_scalars({"a": 1.0}))]])
    assert len(list(entries())) == 1


def test_a_signal_handler_may_log_while_a_call_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    origin, group = (
        Origin("dir", "", f"dir:{tmp_path}/run"),
        [[("tags", lambda run: run.set_tags({"a": "b"}))]],
    )
    keep(origin, group)
    number_of, handled = spool.number_of, []

    def interrupted(path):
        if not handled:
            handled.append(path)
            keep(origin, group)
        return number_of(path)

    monkeypatch.setattr(spool, "number_of", interrupted)
    thread = threading.Thread(target=keep, args=(origin, group), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert len(list(entries())) == 3


AT_EXIT = """
import atexit, random, sys
import numpy as np
import uq_tracking as uq

rng = np.random.default_rng(0)
mean, std = rng.normal(size=(2, 40_000))
arrays = mean + rng.normal(size=40_000), mean, np.abs(std) + 1
random.seed(0)
before = random.getstate()
uq.log(*arrays, run=f"dir:{sys.argv[1]}/now", method="m")
assert random.getstate() == before, "a seeded training differs"
atexit.register(lambda: uq.log(*arrays, run=f"dir:{sys.argv[1]}/last", method="m"))


class Model:
    def __del__(self):
        uq.log(*arrays, run=f"dir:{sys.argv[1]}/deleted", step=1)


model = Model()
"""


def test_what_is_logged_while_python_exits_neither_hangs_nor_is_lost(tmp_path):
    job = [sys.executable, "-c", AT_EXIT, str(tmp_path)]
    ended = subprocess.run(job, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    now, last = (next(iter(FolderStore(tmp_path / name).runs())) for name in ("now", "last"))
    assert last.scalars == now.scalars
    assert FolderStore(tmp_path / "last").files(last.run_id) == FolderStore(tmp_path / "now").files(
        now.run_id
    )


@pytest.mark.parametrize("wrong", ["ten", "-1"])
def test_a_wrong_deadline_of_the_environment_is_logged_and_not_raised(tmp_path, monkeypatch, caplog, wrong):
    log_once.cache_clear()
    monkeypatch.setenv("UQ_TRACKING_DEADLINE", wrong)
    report = uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}", step=0)
    assert report.scores["crps"] == crps()
    assert f"UQ_TRACKING_DEADLINE is {wrong!r}; pass how many seconds" in caplog.text
    assert "waiting at most 10 s" in caplog.text


def test_a_path_whose_disk_is_away_from_the_first_call_on_is_still_one_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Health, "_start", lambda self: None)
    disk, path = tmp_path / "disk", tmp_path / "disk" / "mc-dropout"
    disk.write_text("in the way")
    with pytest.warns(TrackingWarning, match="Everything is kept"):
        uq.log(TRUTH, MEAN, STD, run=path, step=0)
    disk.unlink()
    assert len(uq.sync().done) == 1
    forget_health()
    uq.log(TRUTH, MEAN, STD, run=path, step=1)
    assert [each.name for each in disk.iterdir()] == ["mc-dropout"]
    assert series(path) == {0: crps(), 1: crps()}


class Cut(io.StringIO):
    def isatty(self):
        return True

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize(
    "stream", [None, io.TextIOWrapper(io.BytesIO()), Cut()], ids=["none", "closed", "cut"]
)
def test_a_stderr_that_is_gone_ends_no_job(tmp_path, monkeypatch, stream):
    if stream is not None:
        stream.close()
    monkeypatch.setenv("UQ_TRACKING_HINT", "1")
    monkeypatch.setattr(sys, "stderr", stream)
    hint(uq.evaluate(TRUTH, MEAN, STD), ["http://here"])


def test_a_child_forked_while_a_thread_scores_can_score():
    class Slow:
        def __init__(self, wait):
            self.wait = wait

        @cached_property
        def value(self):
            return self.wait()

    started, held = threading.Event(), threading.Event()
    slow = threading.Thread(target=lambda: Slow(lambda: started.set() or held.wait(10)).value)
    slow.start()
    started.wait(10)
    quick = threading.Thread(target=lambda: Slow(held.set).value)
    quick.start()  # as a child would, for which nobody ever lets go of a lock
    quick.join(5)
    assert held.is_set()
    slow.join(10)


def test_a_proxy_for_all_schemes_reaches_what_this_machine_cannot(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    check_listens("http://tracker.invalid:5000")
    monkeypatch.delenv("ALL_PROXY")
    with pytest.raises(TrackerUnreachableError):
        check_listens("http://tracker.invalid:5000")
