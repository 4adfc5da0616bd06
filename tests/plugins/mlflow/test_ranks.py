"""Processes of a distributed job, and which of their runs is their own."""

from __future__ import annotations

import mlflow
import pytest

import uq_tracking as uq
from uq_tracking_mlflow.backend import MLflowBackend

DATA = ([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3])


@pytest.fixture(autouse=True)
def _second_of_two(monkeypatch, tmp_path):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def client(in_experiment):
    return mlflow.MlflowClient()


def test_a_run_per_rank_gets_what_its_rank_logs(client, tmp_path):
    with mlflow.start_run() as run:
        report = uq.log(*DATA, figures=False, strict=True)
    assert client.get_run(run.info.run_id).data.metrics["uq/rmse"] == report.scores["rmse"]
    assert not (tmp_path / "uq_runs").exists()


def test_without_a_run_nothing_is_its_own(client):
    assert MLflowBackend().own_run() is None


def test_the_run_of_the_environment_is_rank_zeros(client, monkeypatch, experiment, tmp_path):
    run_id = client.create_run(experiment).info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", run_id)
    uq.log(*DATA, figures=False, strict=True)
    assert not client.get_run(run_id).data.metrics
    uq.log(*DATA, run=run_id, figures=False, strict=True)
    assert "uq/rmse" in client.get_run(run_id).data.metrics
    assert not (tmp_path / "uq_runs").exists()
