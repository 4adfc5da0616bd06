"""What holds for every test: examples in docstrings run in a folder of their own, and a missing browser is told.

A browser and an MLflow server are started once for all tests that ask for them. What a test has left to threads
is given up when it ends.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import pytest
from _pytest.doctest import DoctestModule
from matplotlib.figure import Figure

from tests.browser import MISSING, browser, is_skipped_for_it
from tests.mlflow_stores import empty_database, mlflow_imported, own_sqlite_uri, server, sqlite_uri
from uq_tracking.drawings import pictured
from uq_tracking.tracking import publish
from uq_tracking.tracking.deadline import THREADS
from uq_tracking.tracking.health import forget_health
from uq_tracking.tracking.journal import Write

__all__ = ["browser", "empty_database", "mlflow_imported", "own_sqlite_uri", "server", "sqlite_uri"]

DRAWN = publish._drawn
LONGEST = 30.0
"""Seconds that a call may take to end that a test has left behind."""
STATE = TemporaryDirectory(prefix="uq_tracking_tests_")
"""The user's state directory of what comes before the tests' own: fixtures that several tests share."""
COUNT = count()
"""Numbers of the tests that ask for no folder."""


def pytest_configure() -> None:
    """Let texts be as wide as they are by default, and kept calls be of the tests, not of whoever starts them.

    Calls without a deadline of their own wait until even a store that is made beside other tests answers: a busy
    machine is no failing tracker, nor a failing law.
    """
    slow = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=slow)
    hypothesis.settings.load_profile("patient")
    os.environ.pop("COLUMNS", None)
    os.environ["XDG_STATE_HOME"] = STATE.name
    os.environ["UQ_TRACKING_DEADLINE"] = "60"
    os.environ["DO_NOT_TRACK"] = "true"  # MLflow's telemetry changes the environment while others read it


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage neither while tests are collected nor, later, among them: a quarter of all collecting."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


@pytest.hookimpl(trylast=True)  # of the tests that are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the share that ``SHARE`` asks for: "2/5" is every fifth file from the second.

    Simulations and pages are shared out one by one: a file holds most of them. Other tests of a file share what is
    costly to make.
    """
    if "SHARE" not in os.environ:
        return
    number, shares = map(int, os.environ["SHARE"].split("/"))
    alone = {"simulation", "documents"}
    parts = {
        item: item.nodeid if any(mark.name in alone for mark in item.iter_markers()) else str(item.path)
        for item in items
    }
    names = sorted(set(parts.values()))
    kept = set(names[(number - 1) % max(len(names), 1) :: shares])  # of fewer files than shares, one each
    config.hook.pytest_deselected(items=[item for item in items if parts[item] not in kept])
    items[:] = [item for item in items if parts[item] in kept]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Iterator[None]:
    """Look for examples in docstrings where there are some, outside the tests alone: a quarter of all collecting."""
    found = yield
    outside = "tests" not in file_path.relative_to(parent.config.rootpath).parts
    return [
        collector
        for collector in found
        if not isinstance(collector, DoctestModule)
        or (outside and ">>>" in file_path.read_text(encoding="utf-8"))
    ]


@pytest.fixture(autouse=True)
def _work_elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that no folder takes beside the test are kept in its own, not in the user's; examples run in one.

    A folder is made only for a test that asks for one: most are done before it would be.
    """
    is_example = isinstance(request.node, pytest.DoctestItem)
    if is_example or "tmp_path" in request.fixturenames:
        state = request.getfixturevalue("tmp_path") / "state"
    else:
        state = Path(STATE.name, str(next(COUNT)))
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    if is_example:
        monkeypatch.chdir(state.parent)


@pytest.fixture(autouse=True)
def _no_run_of_another_test_is_followed() -> None:
    """Forget the MLflow run that ended last, which calls without an active run go on with."""
    fluent = sys.modules.get("mlflow.tracking.fluent")
    if fluent is not None:
        fluent._last_active_run_id.set(None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Log plain figures in place of drawn ones, which take most of a call, where a test is of something else."""
    publish._drawn = _plain if item.get_closest_marker("pictures") is None else DRAWN


def _plain(method: str, name: str, _: Callable[[], Figure]) -> Write:
    """Log an empty figure, small and of the name's own size, under the name of a drawn one."""
    figure = pictured(Figure((0.2 + 0.01 * len(name), 0.2), dpi=50))
    return lambda run: getattr(run, method)(name, figure)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """No thread that waits for a test's trackers prints or writes into another test."""
    forget_health()
    yield
    for thread in threading.enumerate():
        if thread.name.startswith(THREADS):
            thread.join(LONGEST)
            assert not thread.is_alive(), f"{thread.name} still runs {LONGEST} s after the test"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """End with one loud line where pages were not tested, in place of a line for every test."""
    skipped = terminalreporter.stats.get("skipped", [])
    untested = [report for report in skipped if is_skipped_for_it(report)]
    terminalreporter.stats["skipped"] = [report for report in skipped if report not in untested]
    yield
    terminalreporter.stats["skipped"] = skipped
    if untested:
        line = f"{len(untested)} TESTS OF PAGES DID NOT RUN: {MISSING}"
        terminalreporter.write_line(line, red=True, bold=True)
