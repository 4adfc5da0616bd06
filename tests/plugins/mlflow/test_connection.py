"""Errors of MLflow say what they mean; links and stored texts hold no credentials."""

from __future__ import annotations

import os
import socket
import sys
import time
from importlib import metadata

import mlflow
import pytest
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, RESOURCE_DOES_NOT_EXIST

from tests.runs.conftest import use_tracking_uri
from uq_tracking.errors import BackendError, RunNotFoundError, TrackerUnreachableError
from uq_tracking.tracking.resolve import address_target
from uq_tracking_mlflow.backend import MLflowBackend
from uq_tracking_mlflow.connection import (
    VARIABLE,
    Connection,
    base_address,
    no_progress_bar,
    place_of,
    view_command,
)
from uq_tracking_mlflow.run import MLflowRun


def test_a_dead_server_is_told_within_a_second():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        uri = f"http://me:sec/r@t@127.0.0.1:{closed.getsockname()[1]}"
        start = time.monotonic()
        run = MLflowRun("0" * 32, mlflow.MlflowClient(uri.replace("sec/r@t", "secret")))
        with pytest.raises(
            TrackerUnreachableError, match=r"http://\*\*\*@127.*MLFLOW_TRACKING_URI"
        ) as caught:
            run.log_scalars({"uq/x": 1.0})
    assert time.monotonic() - start < 5
    assert "secret" not in str(caught.value)
    assert "secret" not in run.place


@pytest.mark.slow
def test_errors_of_the_call_pass_through(sqlite_uri):
    with pytest.raises(ZeroDivisionError):
        Connection(mlflow.MlflowClient(sqlite_uri)).call("dividing", lambda: 1 / 0)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (mlflow.MlflowException("(sqlite3.OperationalError) database is locked"), TrackerUnreachableError),
        (ConnectionResetError("reset"), TrackerUnreachableError),
        (mlflow.MlflowException("no such run", error_code=RESOURCE_DOES_NOT_EXIST), RunNotFoundError),
        (mlflow.MlflowException("name too long", error_code=INVALID_PARAMETER_VALUE), BackendError),
        (OSError("413 Client Error: Request Entity Too Large for url: http://x/artifacts"), BackendError),
        (mlflow.MlflowException("API request failed with error code 413 != 200."), BackendError),
    ],
)
def test_errors_have_the_class_that_says_what_they_mean(sqlite_uri, error, kind):
    def call():
        raise error

    with pytest.raises(kind, match="logging: ") as caught:
        Connection(mlflow.MlflowClient(sqlite_uri)).call("logging", call)
    assert type(caught.value) is kind


def test_the_place_is_the_tracking_uri(sqlite_uri):
    assert place_of(mlflow.MlflowClient(sqlite_uri)) == sqlite_uri


def test_the_place_is_known_before_mlflow_is_imported(monkeypatch):
    """Else the first call of a job would wait for one tracker, and the second for another."""
    monkeypatch.delitem(sys.modules, "mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:5000")
    assert MLflowRun("0" * 32).place == "http://***@127.0.0.1:5000"


def test_links_hold_no_credentials():
    assert base_address("https://u:p@host:1/team/") == "https://host:1/team"
    assert view_command("postgresql://u:p@h/db", "7").startswith(
        "MLFLOW_TRACKING_URI='postgresql://***@h/db'"
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
    installed = {"mlflow-skinny": "2.9.1"}

    def version(name):
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "version", version)
    assert not backend.status().usable
    assert backend.status().hint.startswith("mlflow 2.9.1 is too old")
    installed.clear()
    assert not backend.status().usable
    assert backend.status().hint.startswith("pip install 'uq-tracking")


def test_without_mlflow_an_address_tells_how_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(BackendError, match=r"pip install 'uq-tracking\[mlflow\]'"):
        MLflowBackend().store("x")


@pytest.mark.parametrize("kind", ["sqlite:///", "sqlite+pysqlite:///", "file:", "./"])
def test_the_place_of_a_relative_database_is_the_folder_in_which_it_was_first_used(
    tmp_path, monkeypatch, kind
):
    uri, elsewhere = f"{kind}{tmp_path.name}.db", tmp_path / "outputs"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mlflow, "get_tracking_uri", lambda: uri)
    first = MLflowBackend().place("")
    monkeypatch.chdir(elsewhere)  # as Hydra does
    assert MLflowBackend().place("") == first == f"{kind.removeprefix('./')}{tmp_path / tmp_path.name}.db"
    assert not list(tmp_path.rglob("*.db"))


def test_while_another_thread_imports_mlflow_the_environment_says_where_it_is(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", type(sys)("mlflow"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracker.invalid")
    assert place_of(None) == "http://tracker.invalid"


@pytest.mark.parametrize("run", ["mlflow:depth", "0" * 32])
def test_a_kept_call_does_not_go_to_the_server_that_the_job_falls_back_to(tmp_path, monkeypatch, run):
    monkeypatch.setattr(mlflow, "get_tracking_uri", lambda: "http://tracker.invalid")
    target = address_target(run, "depth")
    monkeypatch.setattr(mlflow, "get_tracking_uri", lambda: f"sqlite:///{tmp_path}/own.db")
    with pytest.raises(
        BackendError, match=r"belongs to http://tracker.invalid, but mlflow is set to sqlite:"
    ):
        target.open()
    assert not list(tmp_path.iterdir())


def test_a_run_whose_creation_was_not_answered_is_found_again(sqlite_uri, monkeypatch):
    use_tracking_uri(monkeypatch, sqlite_uri)
    target = address_target("mlflow:lost answers", "depth")
    create = mlflow.MlflowClient.create_run

    def lost(*arguments, **options):
        create(*arguments, **options)
        raise ConnectionResetError("reset")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "create_run", lost)
        with pytest.raises(TrackerUnreachableError):
            target.open()
    run = target.open()
    client = mlflow.MlflowClient(sqlite_uri)
    found = client.search_runs([client.get_experiment_by_name("lost answers").experiment_id])
    assert [each.info.run_id for each in found] == [run.run_id]
