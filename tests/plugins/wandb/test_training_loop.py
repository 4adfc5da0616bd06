"""The rows of a training loop survive, and so do ours, online and offline."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wandb

from tests.plugins.wandb.helpers import expected_losses, fragment_of, losses, train
from tests.wandb_server import WandbServer
from uq_tracking.curves import Curve
from uq_tracking.testing import sample_figure
from uq_tracking_wandb.run import WandbRun

Rows = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(params=["online", "offline"])
def rows(request: pytest.FixtureRequest) -> Rows:
    """Reads the history of a finished run of project ``p``."""
    if request.param == "online":
        server: WandbServer = request.getfixturevalue("wandb_online")
        return lambda run_id: server.run("p", run_id).rows()
    folder: Path = request.getfixturevalue("wandb_offline")
    return lambda run_id: fragment_of(folder, run_id).history


def everything(run: WandbRun, curve: Curve, folder: Path, value: float, step: int | None = None) -> None:
    (folder / "report.json").write_text(str(value))
    with run.batch():
        run.log_scalars({"uq/nll": value}, step=step)
        run.log_curve("uq_curve/calibration", curve)
        run.log_figure("uq_calibration", sample_figure())
        run.log_file(folder / "report.json", "uq/report.json")
        run.set_tags({"uq.method": "m"})


@pytest.mark.slow
def test_explicit_steps_before_and_after_our_call(rows: Rows, curve: Curve, tmp_path: Path) -> None:
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        train(sdk_run, range(5))
        everything(run, curve, tmp_path, 1.0)
        sdk_run.log({"accuracy": 0.5}, step=4)  # the same step again: its row must still be open
        train(sdk_run, range(5, 8))
        everything(run, curve, tmp_path, 2.0)
        train(sdk_run, [20])
    found = rows(sdk_run.id)
    assert losses(found) == expected_losses([*range(8), 20])
    assert [row["_step"] for row in found if row.get("accuracy") == 0.5] == [4]
    assert [row["uq/nll"] for row in found if "uq/nll" in row] == [1.0, 2.0]


@pytest.mark.slow
def test_a_loop_without_steps_keeps_its_count_of_rows(rows: Rows, curve: Curve, tmp_path: Path) -> None:
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        for number in range(4):
            sdk_run.log({"loss": float(number)})
            everything(run, curve, tmp_path, float(number), step=number)
    found = rows(sdk_run.id)
    assert [row["loss"] for row in found if "loss" in row] == [0.0, 1.0, 2.0, 3.0]
    assert [(row["uq/step"], row["uq/nll"]) for row in found if "uq/nll" in row] == [
        (number, float(number)) for number in range(4)
    ]


@pytest.mark.slow
def test_the_call_alone_logs_every_step(rows: Rows) -> None:
    """Nothing else closes the rows here."""
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        for step in (0, 1, 5):
            run.log_scalars({"uq/nll": float(step)}, step=step)
            run.log_scalars({"uq/test/nll": float(step)}, step=step)
    found = [(row["uq/step"], row["uq/nll"], row["uq/test/nll"]) for row in rows(sdk_run.id)]
    assert found == [(0, 0.0, 0.0), (1, 1.0, 1.0), (5, 5.0, 5.0)]


@pytest.mark.slow
def test_the_final_call_stays_at_the_last_step(rows: Rows) -> None:
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        run.log_scalars({"uq/nll": 2.0}, step=3)
        run.log_scalars({"uq/mae": 1.0})
    assert [(row["uq/step"], row["uq/nll"], row["uq/mae"]) for row in rows(sdk_run.id)] == [(3, 2.0, 1.0)]


def test_scores_are_in_the_summary_before_the_loop_goes_on(wandb_online: WandbServer) -> None:
    with wandb.init(project="p") as sdk_run:
        WandbRun(sdk_run).log_scalars({"uq/nll": 2.0})
        stored = wandb_online.run("p", sdk_run.id)
        end = time.monotonic() + 20
        while "uq/nll" not in stored.summary:
            assert time.monotonic() < end, "the summary has not been sent"
            time.sleep(0.05)
        assert stored.summary["uq/nll"] == 2.0


@pytest.mark.slow
@pytest.mark.parametrize("final", [False, True], ids=["every step", "once"])
def test_a_summary_that_the_user_has_defined_is_left_to_wandb(wandb_online: WandbServer, final: bool) -> None:
    values = [2.0] if final else [3.0, 1.0, 2.0]
    with wandb.init(project="p") as sdk_run:
        sdk_run.define_metric("uq/crps", summary="min")
        sdk_run.define_metric("uq/nll", summary="none")
        sdk_run.define_metric("uq/ence", summary="first,max")
        for step, value in enumerate(values):
            train(sdk_run, [step])
            scores = dict.fromkeys(("uq/crps", "uq/nll", "uq/ence", "uq/mae"), value)
            WandbRun(sdk_run).log_scalars(scores, step=None if final else step)
            assert sdk_run.summary["uq/mae"] == value
            assert 0 not in sdk_run.summary.get("uq/crps", {}).values()
    stored = wandb_online.run("p", sdk_run.id)
    ours = {key: value for key, value in stored.summary.items() if key.startswith("uq/") and key != "uq/step"}
    assert ours == {
        "uq/crps": {"min": min(values)},
        "uq/ence": {"first": values[0], "max": max(values)},
        "uq/mae": 2.0,
    }
    assert [row["uq/nll"] for row in stored.rows() if "uq/nll" in row] == values


@pytest.mark.slow
def test_a_dead_server_does_not_hold_up_scalars(wandb_online: WandbServer) -> None:
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        train(sdk_run, [0])
        wandb_online.fault = lambda request: 503
        start = time.monotonic()
        for step in range(1, 50):
            train(sdk_run, [step])
            run.log_scalars({"uq/nll": float(step)}, step=step)
        seconds = time.monotonic() - start
        wandb_online.fault = None
    assert seconds < 2.0
    found = wandb_online.run("p", sdk_run.id).rows()
    assert losses(found) == expected_losses(range(50))
    assert [row["uq/nll"] for row in found if "uq/nll" in row] == [float(step) for step in range(1, 50)]
