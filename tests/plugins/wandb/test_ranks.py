"""Processes of a distributed job, and which of their runs is their own."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
import wandb

import uq_tracking as uq
from tests.plugins.wandb.helpers import fragment_of
from tests.wandb_server import WandbServer
from uq_tracking_wandb.backend import WandbBackend

DATA = ([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3])


@pytest.fixture(autouse=True)
def _second_of_two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.chdir(tmp_path)


def _log_as(rank: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANK", str(rank))
        uq.log(*DATA, figures=False, strict=True)


@pytest.mark.slow
def test_a_run_per_rank_gets_what_its_rank_logs(wandb_offline: Path, tmp_path: Path) -> None:
    with wandb.init(project="p", group="g") as sdk_run:
        report = uq.log(*DATA, figures=False, strict=True)
    assert fragment_of(wandb_offline, sdk_run.id).summary["uq/rmse"] == report.scores["rmse"]
    assert not (tmp_path / "uq_runs").exists()


def test_a_disabled_run_stays_empty(wandb_offline: Path, tmp_path: Path) -> None:
    with wandb.init(project="p", mode="disabled"):
        uq.log(*DATA, figures=False, strict=True)
    assert not (tmp_path / "uq_runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_run_that_a_forked_rank_inherited_is_rank_zeros(
    wandb_offline: Path, tmp_path: Path, rank: int
) -> None:
    with wandb.init(project="p") as sdk_run:
        worker = multiprocessing.get_context("fork").Process(target=_log_as, args=(rank,))
        worker.start()
        worker.join(60)
        assert worker.exitcode == 0
    assert ("uq/rmse" in fragment_of(wandb_offline, sdk_run.id).summary) is (rank == 0)
    assert not (tmp_path / "uq_runs").exists()


@pytest.mark.parametrize("primary", [True, False])
def test_a_shared_run_is_the_primary_process_own(
    wandb_online: WandbServer, backend: WandbBackend, primary: bool
) -> None:
    settings = wandb.Settings(mode="shared", x_primary=primary, x_label="rank")
    with wandb.init(project="p", settings=settings):
        assert backend.active_run() is not None
        assert (backend.own_run() is not None) is primary
