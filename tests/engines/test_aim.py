"""Logging into Aim as a user does, and what Aim itself then shows."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import uq_tracking as uq
from tests.plugins.aim.test_contract import reindex
from uq_tracking.errors import BackendError
from uq_tracking.testing import sample_predictions
from uq_tracking_aim.backend import AimBackend, AimStore

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def live(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    import aim

    run = aim.Run(repo=str(tmp_path), system_tracking_interval=None, capture_terminal_logs=False)
    yield run
    run.close()


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_training_loop_with_a_run(live, tmp_path, is_closed):
    from aim import Repo

    predictions, name = sample_predictions(), live.hash
    run = AimBackend().adopt(live)
    for number in range(3):
        live.track(1 / (number + 1), name="loss", step=number)
        uq.log(predictions, run=run, method="ensemble", step=number, strict=True)
    if is_closed:
        live.close()
    report = uq.log(predictions, run=run, method="ensemble", strict=True)
    store = AimStore(tmp_path)
    (stored,) = store.runs()
    assert (stored.run_id, stored.tags["uq.method"]) == (name, "ensemble")
    assert stored.scalars["uq/nll"] == report.scores["nll"]
    assert "loss" not in stored.scalars
    run.close()
    live.close()
    reindex(tmp_path)
    (stored,) = store.runs()
    assert stored.scalars["loss"] == 1 / 3
    shown = Repo(str(tmp_path)).get_run(name)
    assert shown.get("uq.method") == "ensemble"
    assert {"uq/nll", "uq_curve/calibration", "loss"} <= {metric.name for metric in shown.metrics()}
    names = [each["name"] for each in shown.collect_sequence_info(("images",))["images"]]
    assert "uq_calibration" in names
    table = next(metric for metric in shown.metrics() if metric.name == "uq/nll").dataframe()
    assert table["step"].tolist() == [0, 1, 2]
    assert np.allclose(table["value"], report.scores["nll"], rtol=1e-9)


def test_a_map_is_shown_once(live, monkeypatch):
    tracked = []
    monkeypatch.setattr(live, "track", lambda value, name, step: tracked.append(name))
    AimBackend().adopt(live).log_map("uq_map/0", Figure())
    assert tracked == ["uq_map/0"]


def test_a_run_is_adopted_and_other_things_are_not(live, tmp_path):
    backend = AimBackend()
    assert backend.adopt(live).uri == f"aim:{tmp_path / live.hash}"
    assert backend.adopt(tmp_path) is None
    assert backend.status().usable
    assert backend.store(str(tmp_path))[1] is None
    assert backend.store(f"{tmp_path}/{live.hash}")[1] == live.hash
    with pytest.raises(BackendError, match="is a server"):
        backend.store("aim://host:53800")
