"""One sqlite store and one real MLflow server for the whole session, whichever tests ask for them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager

import pytest
import requests


@pytest.fixture(scope="session")
def mlflow_imported():
    """MLflow's own imports warn of what its dependencies deprecate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow.store.tracking.sqlalchemy_store  # noqa: F401  (here, where its warnings are caught)


@pytest.fixture(scope="session")
def empty_database(mlflow_imported, tmp_path_factory):
    """The file of a store without runs, to be copied: MLflow takes a second to make one."""
    import mlflow

    folder = tmp_path_factory.mktemp("mlflow_empty")
    with _inside(folder):
        mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db").search_experiments()
    return folder / "mlflow.db"


@pytest.fixture(scope="session")
def sqlite_uri(empty_database, tmp_path_factory):
    import mlflow

    folder = tmp_path_factory.mktemp("mlflow_sqlite")
    uri = f"sqlite:///{shutil.copy(empty_database, folder)}"
    with _inside(folder):
        mlflow.MlflowClient(uri).search_experiments()
    return uri


@contextmanager
def _inside(folder):
    """Work in this folder: MLflow keeps the artifacts of a sqlite store where it was first opened."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@pytest.fixture
def own_sqlite_uri(empty_database, tmp_path):
    """A store without runs, in the test's own folder."""
    return f"sqlite:///{shutil.copy(empty_database, tmp_path)}"


@pytest.fixture(scope="session")
def server(empty_database, tmp_path_factory):
    """The address of a real server, and its database."""
    folder = tmp_path_factory.mktemp("mlflow_server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    database = shutil.copy(empty_database, folder / "mlflow.db")
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += [
        "--backend-store-uri",
        f"sqlite:///{database}",
        "--artifacts-destination",
        str(folder / "artifacts"),
    ]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--workers", "1"],
            stdout=log,
            stderr=log,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    uri = f"http://127.0.0.1:{port}"
    try:
        _wait_for(uri, process, folder / "log")
        yield uri, database
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


def _wait_for(uri, process, log):
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            if requests.get(f"{uri}/health", timeout=1).ok:
                return
        except requests.RequestException:
            time.sleep(0.2)
    pytest.fail(f"the MLflow server did not start:\n{log.read_text()[-3000:]}")
