"""One sqlite store and one real MLflow server for the whole session; every test has an experiment of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
import warnings

import pytest
import requests

with warnings.catch_warnings():  # MLflow's own imports warn of what its dependencies deprecate
    warnings.simplefilter("ignore")
    import mlflow
    import mlflow.store.tracking.sqlalchemy_store


@pytest.fixture(scope="session")
def sqlite_uri(tmp_path_factory):
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
def server(tmp_path_factory):
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


@pytest.fixture(params=["sqlite", "http"])
def tracking_uri(request):
    return (
        request.getfixturevalue("sqlite_uri")
        if request.param == "sqlite"
        else request.getfixturevalue("server")[0]
    )


@pytest.fixture
def experiment_name():
    return f"tests/{uuid.uuid4().hex[:12]}"


@pytest.fixture
def in_experiment(tracking_uri, experiment_name, monkeypatch, tmp_path):
    """MLflow is set to an experiment of the test's own, in a folder of its own; gives the experiment's id."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    mlflow.set_tracking_uri(tracking_uri)
    experiment_id = mlflow.MlflowClient().create_experiment(experiment_name)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", experiment_id)
    yield experiment_id
    while mlflow.active_run() is not None:
        mlflow.end_run()
    mlflow.set_tracking_uri(None)


@pytest.fixture
def experiment(in_experiment):
    return in_experiment
