"""Logging into DVCLive as a user does, and what DVC itself then shows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from matplotlib.figure import Figure

import uq_tracking as uq
from uq_tracking.testing import sample_predictions
from uq_tracking_dvclive.backend import DVCLiveBackend, DVCLiveStore

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A Git repository that DVC tracks, as DVCLive wants it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")
    for command in (
        ["git", "init", "--quiet"],
        [sys.executable, "-m", "dvc", "init", "--quiet"],
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "start"],
    ):
        subprocess.run(command, check=True)
    return tmp_path


def dvc(*arguments):
    command = [sys.executable, "-m", "dvc", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("step", [None, "trained"])
def test_a_training_loop_with_a_live(repository, step):
    from dvclive import Live

    predictions = sample_predictions()
    with Live(save_dvc_exp=False) as live:
        run = DVCLiveBackend().adopt(live)
        for number in range(3 if step else 0):
            live.log_metric("loss", 1 / (number + 1))
            uq.log(predictions, run=run, method="ensemble", step=number, strict=True)
            live.next_step()
        live.log_metric("final", 1.0, plot=False)
        report = uq.log(predictions, run=run, method="ensemble", strict=True)
    (stored,) = DVCLiveStore(repository).runs()
    assert (stored.run_id, stored.tags["uq.method"]) == ("dvclive", "ensemble")
    assert stored.scalars["uq/nll"] == report.scores["nll"]
    assert stored.scalars["final"] == 1.0
    shown = json.loads(dvc("metrics", "show", "--json"))[""]["data"]["dvclive/metrics.json"]["data"]
    assert shown["uq"]["nll"] == report.scores["nll"]
    assert shown["final"] == 1.0
    plots = dvc("plots", "show", "--json")
    assert ("nll.tsv" in plots) == (step is not None)
    assert "uq_calibration.png" in plots
    assert "uq_curve" in plots


def test_a_live_is_adopted_and_other_things_are_not(repository):
    from dvclive import Live

    with Live(save_dvc_exp=False) as live:
        assert DVCLiveBackend().adopt(live).folder == repository / "dvclive"
    assert DVCLiveBackend().adopt(repository) is None
    assert DVCLiveBackend().status().usable


def test_a_map_is_shown_once(repository, monkeypatch):
    from dvclive import Live

    shown = []
    with Live(save_dvc_exp=False) as live:
        monkeypatch.setattr(live, "log_image", lambda name, path: shown.append(name))
        DVCLiveBackend().adopt(live).log_map("uq_map/0", Figure())
    assert shown == ["uq_map_0.png"]
