"""A tracker that fails is given up soon, and what was lost is told."""

from __future__ import annotations

import json
import threading

import pytest

import uq_tracking as uq
from uq_tracking.drawings import FigureSpec
from uq_tracking.errors import BackendError, RunNotFoundError, TrackerUnreachableError, redact
from uq_tracking.tracking.backend import BackendStatus
from uq_tracking.tracking.deadline import Budget
from uq_tracking.tracking.folder import FolderBackend, FolderRun, FolderStore
from uq_tracking.tracking.health import Health, is_sick
from uq_tracking.tracking.resolve import Target
from uq_tracking.tracking.writer import RunWriter, Safety


@pytest.fixture
def writer(tmp_path):
    run = FolderStore(tmp_path).create("a")
    return RunWriter(Target("dir", "dir:a", lambda: run))


def write(writer, name, action):
    writer.begin([(name, action)])
    writer.settle()


def fine(run):
    run.set_tags({"a": "b"})


def failing(error):
    def action(run):
        raise error

    return action


def test_one_failure_stops_nothing(writer):
    for name, action in (
        ("a", fine),
        ("b", failing(OSError("full"))),
        ("c", fine),
        ("d", failing(OSError("again"))),
    ):
        write(writer, name, action)
    assert (writer.lost, writer.arrived) == (["b", "d"], 2)
    assert (
        writer.problem() == "dir (dir:a) did not take b and 1 other item; the rest was logged. OSError: full"
    )


def test_two_failures_in_a_row_are_enough(writer):
    asked = []
    for name in "abcd":
        write(writer, name, lambda run: asked.append(1) or failing(OSError("full"))(run))
    assert len(asked) == 2
    assert writer.lost == ["a", "b", "c", "d"]


@pytest.mark.parametrize("error", [TrackerUnreachableError("gone"), RunNotFoundError("gone")])
def test_a_dead_tracker_is_asked_once(writer, error):
    asked = []
    for name in "ab":
        write(writer, name, lambda run: asked.append(1) or failing(error)(run))
    assert len(asked) == 1


def test_a_run_that_cannot_be_opened_is_tried_once():
    opened = []
    writer = RunWriter(Target("x", "x:y", lambda: opened.append(1) or failing(OSError("no"))(None)))
    write(writer, "a", fine)
    writer.begin([("b", fine), ("c", fine)])
    writer.close()
    assert len(opened) == 1
    assert writer.problem() == "x (x:y) did not take a and 2 other items. OSError: no"


def test_a_tracker_that_is_not_installed_is_the_reason(monkeypatch):
    hint = BackendStatus("dir", usable=False, hint="pip install it")
    monkeypatch.setattr(FolderBackend, "status", lambda self: hint)
    target = Target("dir", "dir:y", lambda: failing(OSError("no"))(None), place="http://127.0.0.1:9")
    writer = RunWriter(target, Safety(Budget(5), Health("dir", target.place, 5)))
    write(writer, "a", fine)
    assert isinstance(writer.error, BackendError)
    assert str(writer.error) == "dir is not installed; pip install it"


def test_failing_to_close_is_told(tmp_path, monkeypatch):
    run = FolderStore(tmp_path).create("a")
    monkeypatch.setattr(FolderRun, "close", failing(OSError("stuck")))
    writer = RunWriter(Target("dir", "dir:a", lambda: run))
    write(writer, "a", fine)
    writer.close()
    assert (
        writer.problem() == "dir (dir:a) did not take the end of the run; the rest was logged. OSError: stuck"
    )


def test_nothing_to_say_when_all_is_well(writer):
    write(writer, "a", fine)
    writer.close()
    assert writer.problem() is None


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("postgresql://u:p@db/x failed", "postgresql://***@db/x failed"),
        ("url 'https://token@host'", "url 'https://***@host'"),
        ("https://h/?api_key=abc&x=1", "https://h/?api_key=***&x=1"),
        ("https://host/a@b stays", "https://host/a@b stays"),
    ],
)
def test_redaction(text, safe):
    assert redact(text) == safe


def test_what_is_begun_is_written_beside_the_caller(writer):
    writer.safety = Safety(Budget(30), Health("dir", writer.target.place, 30))
    told, waited = threading.Event(), []
    writer.begin([("a", lambda run: waited.append(told.wait(20)))])
    told.set()
    writer.settle()
    assert (waited, writer.arrived, writer.lost) == ([True], 1, [])


def test_what_is_begun_and_never_answered_is_lost_when_it_is_waited_for(writer):
    writer.safety = Safety(Budget(0.2), Health("dir", writer.target.place, 0.2))
    end = threading.Event()
    writer.begin([("a", lambda run: end.wait(20))])
    assert writer.lost == []
    writer.begin([("b", fine)])
    end.set()
    assert (writer.arrived, writer.lost) == (0, ["a", "b"])
    assert isinstance(writer.error, TrackerUnreachableError)


@pytest.mark.slow
@pytest.mark.pictures
def test_figures_are_drawn_while_scores_are_written(tmp_path, monkeypatch):
    drawn, waited = threading.Event(), []
    draw, write = FigureSpec.draw, FolderRun.log_scalars
    monkeypatch.setattr(FigureSpec, "draw", lambda *given, **more: drawn.set() or draw(*given, **more))
    monkeypatch.setattr(
        FolderRun,
        "log_scalars",
        lambda *given, **more: waited.append(drawn.wait(20)) or write(*given, **more),
    )
    uq.log([1.0, 2.0, 3.0], [1.1, 2.2, 2.7], [0.1, 0.2, 0.3], run=f"dir:{tmp_path}", deadline=60)
    assert waited[0]


def test_a_value_that_a_client_cannot_send_is_no_outage():
    assert not is_sick(ValueError("out of range"))
    assert is_sick(json.JSONDecodeError("no JSON", "<html>", 0))
    assert is_sick(ConnectionResetError())
