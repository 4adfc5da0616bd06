from __future__ import annotations

import shutil

import pytest

from tests.wandb_server.fixtures import wandb_home, wandb_offline

__all__ = ["wandb_home", "wandb_offline"]


@pytest.fixture
def in_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def mlflow_uri(empty_database, tmp_path_factory):
    return f"sqlite:///{shutil.copy(empty_database, tmp_path_factory.mktemp('mlflow'))}"
