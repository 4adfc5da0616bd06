"""``uq.log`` inside W&B runs: everything arrives under the common names, and reads back."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wandb

import uq_tracking as uq
from tests.plugins.wandb.helpers import expected_losses, fragment_of, losses, train
from tests.wandb_server import WandbServer
from tests.wandb_server.fixtures import child_processes
from uq_tracking.errors import TrackingWarning
from uq_tracking.inputs import Predictions
from uq_tracking.runs import RescoreOptions
from uq_tracking.statistics.store import read_statistics
from uq_tracking.testing import sample_predictions
from uq_tracking.tracking.backend import RunStore
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.names import scalar_name
from uq_tracking.tracking.spool import entries, read_entry
from uq_tracking_wandb.backend import WandbBackend
from uq_tracking_wandb.offline import OfflineStore

Opened = tuple[Callable[[str], RunStore], Callable[[str], list[dict[str, Any]]]]


@pytest.fixture(params=["online", "offline"])
def opened(request: pytest.FixtureRequest, backend: WandbBackend) -> Opened:
    """The store of a finished run, and its history."""
    if request.param == "online":
        server: WandbServer = request.getfixturevalue("wandb_online")
        return lambda run_id: backend.store("tester/p")[0], lambda run_id: server.run("p", run_id).rows()
    folder: Path = request.getfixturevalue("wandb_offline")

    def rows(run_id: str) -> list[dict[str, Any]]:
        return fragment_of(folder, run_id).history

    return lambda run_id: backend.store(str(folder), scheme="wandb-offline")[0], rows


@pytest.mark.slow
def test_one_call_logs_everything(opened: Opened, tmp_path: Path) -> None:
    store_of, rows_of = opened
    predictions = sample_predictions()
    with wandb.init(project="p", name="n") as sdk_run:
        train(sdk_run, range(3))
        report = uq.log(predictions, method="mc-dropout", strict=True)
        train(sdk_run, range(3, 5))
    rows = rows_of(sdk_run.id)
    store = store_of(sdk_run.id)
    assert losses(rows) == expected_losses(range(5))
    stored = next(store.runs())
    assert logged_scores(report).items() <= stored.scalars.items()
    assert stored.tags["uq.method"] == "mc-dropout"
    files = set(store.files(sdk_run.id))
    assert {"uq/report.json", "uq/statistics.npz", "uq/predictions.npz"} <= files
    assert {f"uq_curve/{name}.table.json" for name in report.curves} <= files
    assert {"uq_sparsification.png", "uq_calibration.png", "uq_map/0.png", "uq_map/1.png"} <= files

    def fetched(name: str) -> Path:
        return store.fetch(sdk_run.id, name, tmp_path / "fetched")

    assert uq.Report.from_json(fetched("uq/report.json")) == report
    assert read_statistics(fetched("uq/statistics.npz")).counts == report.counts
    np.testing.assert_array_equal(Predictions.load(fetched("uq/predictions.npz")).std, predictions.std)
    table = json.loads(fetched("uq_curve/calibration.table.json").read_text())
    for number, column in enumerate(table["columns"]):
        expected = report.curves["calibration"].columns[column]
        np.testing.assert_allclose([row[number] for row in table["data"]], expected, rtol=0, atol=0)


@pytest.mark.slow
def test_every_epoch_and_a_final_call_per_split(opened: Opened) -> None:
    store_of, rows_of = opened
    predictions = sample_predictions(cases=1, side=8)
    with wandb.init(project="p") as sdk_run:
        for epoch in range(3):
            train(sdk_run, [epoch])
            uq.log(predictions, split="val", step=epoch, strict=True)
        for split in ("val", "test"):
            uq.log(predictions, split=split, figures=False, maps=False, strict=True)
    rows = rows_of(sdk_run.id)
    assert losses(rows) == expected_losses(range(3))
    assert [row["uq/step"] for row in rows if "uq/val/nll" in row] == [0, 1, 2]
    files = store_of(sdk_run.id).files(sdk_run.id)
    assert {f"uq/{split}/report.json" for split in ("val", "test")} <= set(files)


def test_a_disabled_run_gets_nothing_and_no_folder_is_made(
    wandb_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with wandb.init(project="p", mode="disabled"):
        uq.log(sample_predictions(cases=1, side=8), figures=False, maps=False, strict=True)
    assert not (tmp_path / "uq_runs").exists()


@pytest.mark.slow
def test_an_address_makes_a_run_and_a_run_address_extends_it(opened: Opened, wandb_home: Path) -> None:
    store_of, _ = opened
    address = (
        f"wandb-offline:{wandb_home / 'dir'}" if os.environ["WANDB_MODE"] == "offline" else "wandb:tester/p"
    )
    predictions = sample_predictions(cases=1, side=8)
    uq.log(predictions, run=address, method="m", figures=False, maps=False, strict=True)
    store = store_of("")
    created = next(store.runs())
    uq.log(predictions, run=created.uri, split="test", figures=False, maps=False, strict=True)
    (stored,) = store.runs()
    assert stored.run_id == created.run_id
    assert stored.scalars["uq/nll"] == stored.scalars["uq/test/nll"]
    assert stored.tags["uq.method"] == "m"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.slow
def test_runs_are_rescored_and_compared(opened: Opened, wandb_home: Path, workers: int) -> None:
    store_of, _ = opened
    offline = os.environ["WANDB_MODE"] == "offline"
    address = f"wandb-offline:{wandb_home / 'dir'}" if offline else "wandb:tester/p"
    for number, method in enumerate("ab"):
        with wandb.init(project="p", name=method) as sdk_run:
            train(sdk_run, range(3))
            uq.log(sample_predictions(seed=number), method=method, strict=True, figures=False, maps=False)
    ids = [run.run_id for run in store_of("").runs()]
    summary = uq.rescore(address, alpha=0.8, options=RescoreOptions(figures=False, workers=workers))
    assert [outcome.status for outcome in summary.outcomes] == ["done", "done"]
    store = store_of("")
    assert [run.run_id for run in store.runs()] == ids
    for run in store.runs():
        report = uq.Report.from_json(store.fetch(run.run_id, "uq/report.json", wandb_home / run.run_id))
        assert report.settings["alpha"] == 0.8
        assert run.scalars["uq/n_merci"] == report.scores["n_merci"]
        assert "uq.rescored" in run.tags
        assert run.scalars["loss"] == 1 / 3
    assert len(uq.rescore(address, alpha=0.8, options=RescoreOptions(figures=False)).skipped) == 2
    comparison = uq.compare(address, maps=False)
    assert {"a", "b"} == set(comparison.methods)


@pytest.mark.slow
def test_files_are_kept_until_the_server_has_them(
    wandb_online: WandbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The artifact is the one thing that `wandb sync` does not send when a process ends before its uploads."""
    monkeypatch.chdir(tmp_path)
    wandb_online.fault = lambda request: 503 if "/storage" in request.path else None
    with wandb.init(project="p", name="n") as sdk_run:
        report = uq.log(sample_predictions(), method="m", figures=False, maps=False, strict=True)
        (kept,) = entries()
        writes = [line["kind"] for group in read_entry(kept).groups for line in group]
        assert "file" in writes
        assert not {"figure", "map"} & set(writes)
        wandb_online.fault = None
    end = time.monotonic() + 10
    while list(entries()) and time.monotonic() < end:
        time.sleep(0.02)
    assert list(entries()) == []
    assert wandb_online.run("p", sdk_run.id).summary[scalar_name("nll", None)] == report.scores["nll"]


@pytest.mark.slow
def test_nothing_is_entrusted_to_an_offline_run_whose_disk_is_nearly_full(
    wandb_offline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = {"method": "m", "figures": False, "maps": False}
    with wandb.init(project="p", name="n"):
        with monkeypatch.context() as patch:
            patch.setattr("uq_tracking_wandb.run.ROOM", 2**80)
            with pytest.warns(TrackingWarning, match="stops recording a run for good"):
                uq.log(sample_predictions(), step=0, **quick)
        uq.log(
            sample_predictions(), step=1, **quick
        )  # there is room again, but who knows what wandb has lost
    assert len(list(entries())) == 2


@pytest.mark.slow
def test_a_core_that_is_stopped_holds_up_one_call(
    wandb_offline: Path, backend: WandbBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that finds it waits for the deadline, later ones are kept, and the run ends with all of them."""
    monkeypatch.chdir(tmp_path)
    quick: dict[str, Any] = {"method": "m", "figures": False, "maps": False, "deadline": 0.3}
    seconds = []
    with wandb.init(project="p", name="n") as sdk_run:
        uq.log(sample_predictions(), step=0, **{**quick, "deadline": 60})
        (core,) = child_processes("wandb-core")
        os.kill(core, signal.SIGSTOP)
        try:
            with pytest.warns(TrackingWarning, match="Everything is kept in"):
                uq.log(sample_predictions(), step=1, **quick)
            for step in (2, 3):
                start = time.monotonic()
                uq.log(sample_predictions(), step=step, **quick)
                seconds.append(time.monotonic() - start)
        finally:
            os.kill(core, signal.SIGCONT)
    assert not uq.sync().failed
    assert list(entries()) == []
    assert max(seconds) < 0.3
    (stored,) = backend.store(str(wandb_offline), scheme="wandb-offline")[0].runs()
    assert stored.run_id == sdk_run.id
    rows = OfflineStore(wandb_offline)._read(sdk_run.id, history=True).history
    assert sorted({row["uq/step"] for row in rows if scalar_name("nll", None) in row}) == [0, 1, 2, 3]
