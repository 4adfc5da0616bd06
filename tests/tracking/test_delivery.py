"""A tracker that fails is given up soon, and what was lost is told."""

from __future__ import annotations

import pytest

from uq_tracking.errors import RunNotFoundError, TrackerUnreachableError
from uq_tracking.tracking.delivery import Delivery, redact
from uq_tracking.tracking.directory import DirectoryStore
from uq_tracking.tracking.resolve import Opened, Target


@pytest.fixture
def delivery(tmp_path):
    run = DirectoryStore(tmp_path).create("a")
    return Delivery(Target("dir", "dir:a", lambda: Opened(run)))


def fine(run):
    run.set_tags({"a": "b"})


def failing(error):
    def action(run):
        raise error

    return action


def test_one_failure_stops_nothing(delivery):
    for name, action in (
        ("a", fine),
        ("b", failing(OSError("full"))),
        ("c", fine),
        ("d", failing(OSError("again"))),
    ):
        delivery.write(name, action)
    assert (delivery.lost, delivery.arrived) == (["b", "d"], 2)
    assert delivery.problem() == "dir (dir:a) did not take b and 1 more; the rest was logged. OSError: full"


def test_two_failures_in_a_row_are_enough(delivery):
    asked = []
    for name in "abcd":
        delivery.write(name, lambda run: asked.append(1) or failing(OSError("full"))(run))
    assert len(asked) == 2
    assert delivery.lost == ["a", "b", "c", "d"]


@pytest.mark.parametrize("error", [TrackerUnreachableError("gone"), RunNotFoundError("gone")])
def test_a_dead_tracker_is_asked_once(delivery, error):
    asked = []
    for name in "ab":
        delivery.write(name, lambda run: asked.append(1) or failing(error)(run))
    assert len(asked) == 1


def test_a_run_that_cannot_be_opened_is_tried_once():
    opened = []
    delivery = Delivery(Target("x", "x:y", lambda: opened.append(1) or failing(OSError("no"))(None)))
    delivery.write("a", fine)
    delivery.write_together([("b", fine), ("c", fine)])
    delivery.close()
    assert len(opened) == 1
    assert delivery.problem() == "x (x:y) did not take a and 2 more. OSError: no"


def test_failing_to_close_is_told(tmp_path):
    run = DirectoryStore(tmp_path).create("a")
    delivery = Delivery(Target("dir", "dir:a", lambda: Opened(run, lambda: failing(OSError("stuck"))(run))))
    delivery.write("a", fine)
    delivery.close()
    assert (
        delivery.problem()
        == "dir (dir:a) did not take the end of the run; the rest was logged. OSError: stuck"
    )


def test_nothing_to_say_when_all_is_well(delivery):
    delivery.write("a", fine)
    delivery.close()
    assert delivery.problem() is None


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
