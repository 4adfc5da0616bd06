"""Places where runs lie: every tracker, each with an empty store."""

from __future__ import annotations

import uuid

import pytest

from tests.runs.places import Place
from tests.wandb_server.fixtures import wandb_home, wandb_offline, wandb_online

__all__ = ["wandb_home", "wandb_offline", "wandb_online"]

TRACKERS = ("dir", "mlflow-sqlite", "mlflow-http", "wandb-offline", "wandb-online")


@pytest.fixture(params=TRACKERS)
def place(request):
    """An empty store on every tracker in turn."""
    return request.getfixturevalue(request.param.replace("-", "_") + "_place")


def use_tracking_uri(monkeypatch, uri):
    """The environment decides, here and in child processes, whatever an earlier test told MLflow."""
    monkeypatch.setattr("mlflow.tracking._tracking_service.utils._tracking_uri", None)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)


@pytest.fixture
def dir_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Place(f"dir:{tmp_path}/runs")


@pytest.fixture
def mlflow_sqlite_place(sqlite_uri, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use_tracking_uri(monkeypatch, sqlite_uri)
    return Place(f"mlflow:test {uuid.uuid4().hex}")


@pytest.fixture
def mlflow_http_place(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use_tracking_uri(monkeypatch, server[0])
    return Place(f"mlflow:test {uuid.uuid4().hex}")


@pytest.fixture
def wandb_offline_place(wandb_offline):
    wandb_offline.mkdir(exist_ok=True)
    return Place(f"wandb-offline:{wandb_offline}")


@pytest.fixture
def wandb_online_place(wandb_online):
    return Place("wandb:tester/p")
