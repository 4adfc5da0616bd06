"""Every test has an experiment of its own, in the session's sqlite store or on its server."""

from __future__ import annotations

import uuid
import warnings

import pytest

with warnings.catch_warnings():  # MLflow's own imports warn of what its dependencies deprecate
    warnings.simplefilter("ignore")
    import mlflow
    import mlflow.store.tracking.sqlalchemy_store


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
