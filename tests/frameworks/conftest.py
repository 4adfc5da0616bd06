from __future__ import annotations

import warnings

import pytest

from tests.wandb_server.fixtures import wandb_home, wandb_offline

__all__ = ["wandb_home", "wandb_offline"]


@pytest.fixture
def in_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def mlflow_uri(tmp_path_factory):
    with warnings.catch_warnings():  # the package's own imports warn
        warnings.simplefilter("ignore")
        import mlflow
        import mlflow.store.tracking.sqlalchemy_store

    uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"
    mlflow.MlflowClient(uri).search_experiments()
    return uri
