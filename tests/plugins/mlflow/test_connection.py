"""Servers that are dead, hung, or die during a call are given up soon; slow ones are waited for."""

from __future__ import annotations

import http.server
import os
import socket
import threading
import time
from contextlib import contextmanager

import mlflow
import pytest

from uq_tracking.errors import BackendError, TrackerUnreachableError
from uq_tracking_mlflow import connection as connection_module
from uq_tracking_mlflow.backend import MLflowBackend
from uq_tracking_mlflow.connection import Connection, probe
from uq_tracking_mlflow.links import base_address, experiment_link, run_link
from uq_tracking_mlflow.quiet import VARIABLE, no_progress_bar
from uq_tracking_mlflow.run import MLflowRun


@contextmanager
def answering(status):
    """A server that answers every request with a status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def hung():
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def nobody():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{closed.getsockname()[1]}"


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(connection_module, "READ_TIMEOUT", 0.5)
    monkeypatch.setattr(connection_module, "LOOK_AFTER", 0.2)


@pytest.mark.parametrize("status", [200, 302, 401, 403, 404, 500])
def test_a_server_that_answers_anything_is_there(status):
    with answering(status) as (uri, _):
        assert probe(uri) is None


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_gateway_without_a_server_behind_it_is_down(status):
    with answering(status) as (uri, _):
        assert probe(uri) == f"HTTP {status}"


def test_a_hung_server_is_down():
    with hung() as uri:
        assert probe(uri) == "ReadTimeout"


def test_a_dead_server_is_told_within_a_second():
    with nobody() as uri:
        start = time.monotonic()
        run = MLflowRun("0" * 32, mlflow.MlflowClient(uri.replace("http://", "http://me:secret@")))
        with pytest.raises(
            TrackerUnreachableError, match=r"http://\*\*\*@127.*MLFLOW_TRACKING_URI"
        ) as caught:
            run.log_scalars({"uq/x": 1.0})
        assert time.monotonic() - start < 5
        assert "secret" not in str(caught.value)


def test_a_server_that_dies_during_a_call_ends_it():
    released = threading.Event()
    with answering(200) as (uri, server):

        def call():
            server.shutdown()
            server.server_close()
            released.wait(30)

        start = time.monotonic()
        with pytest.raises(TrackerUnreachableError, match="does not answer"):
            Connection(mlflow.MlflowClient(uri)).call("waiting", call)
        assert time.monotonic() - start < 10
        released.set()


def test_a_slow_call_is_waited_for_while_the_server_lives():
    with answering(200) as (uri, _):
        assert Connection(mlflow.MlflowClient(uri)).call("waiting", lambda: time.sleep(1) or "done") == "done"


def test_errors_of_the_call_pass_through():
    with answering(200) as (uri, _), pytest.raises(ZeroDivisionError):
        Connection(mlflow.MlflowClient(uri)).call("dividing", lambda: 1 / 0)


def test_an_answer_is_remembered_for_a_second(monkeypatch):
    asked = []
    monkeypatch.setattr(connection_module, "probe", lambda uri: asked.append(uri))
    connection = Connection(mlflow.MlflowClient("http://127.0.0.1:1"))
    for _ in range(3):
        connection.call("x", lambda: None)
    assert len(asked) == 1


def test_a_locked_database_counts_as_unreachable(sqlite_uri):
    def call():
        raise mlflow.MlflowException("(sqlite3.OperationalError) database is locked")

    with pytest.raises(TrackerUnreachableError, match=r"logging: .*database is locked"):
        Connection(mlflow.MlflowClient(sqlite_uri)).call("logging", call)


def test_links_hold_no_credentials():
    assert base_address("https://u:p@host:1/team/") == "https://host:1/team"
    assert (
        run_link("http://u:p@h", "7", "r") == "http://h/#/experiments/7/runs/r?workflowType=machine_learning"
    )
    assert (
        experiment_link("postgresql://u:p@h/db", "7") == "mlflow ui --backend-store-uri postgresql://***@h/db"
    )


@pytest.mark.parametrize("before", [None, "true"])
def test_the_progress_bar_is_off_only_during_our_downloads(monkeypatch, before):
    monkeypatch.delenv(VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(VARIABLE, before)
    with no_progress_bar():
        with no_progress_bar():
            assert os.environ[VARIABLE] == "false"
        assert os.environ[VARIABLE] == "false"
    assert os.environ.get(VARIABLE) == before


def test_the_status_tells_the_version_or_how_to_install(monkeypatch):
    backend = MLflowBackend()
    assert (backend.status().usable, backend.status().version) == (True, mlflow.__version__)
    for version, hint in ((None, "pip install 'uq-tracking"), ("2.9.1", "mlflow 2.9.1 is too old")):
        monkeypatch.setattr("uq_tracking_mlflow.backend.installed", lambda version=version: version)
        assert not backend.status().usable
        assert backend.status().hint.startswith(hint)


def test_without_mlflow_an_address_tells_how_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(BackendError, match=r"pip install 'uq-tracking\[mlflow\]'"):
        MLflowBackend().store("x")
