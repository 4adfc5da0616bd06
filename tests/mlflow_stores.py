"""One sqlite store and one real MLflow server for the whole session, whichever tests ask for them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import warnings

import pytest
import requests


@pytest.fixture(scope="session")
def mlflow_imported():
    """MLflow's own imports warn of what its dependencies deprecate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow.store.tracking.sqlalchemy_store  # noqa: F401  (here, where its warnings are caught)


@pytest.fixture(scope="session")
def sqlite_uri(mlflow_imported, tmp_path_factory):
    import mlflow

    folder = tmp_path_factory.mktemp("mlflow_sqlite")
    uri = f"sqlite:///{folder}/mlflow.db"
    before = os.getcwd()
    os.chdir(folder)  # MLflow keeps the artifacts of a sqlite store in the folder where it was first opened
    try:
        mlflow.MlflowClient(uri).search_experiments()
    finally:
        os.chdir(before)
    return uri


@pytest.fixture(scope="session")
def server(mlflow_imported, tmp_path_factory):
    """The address of a real server, and its database."""
    folder = tmp_path_factory.mktemp("mlflow_server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    database = folder / "mlflow.db"
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
