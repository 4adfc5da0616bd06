"""Offline runs: read from their folders, extended by a fragment, and synced to a server whole."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import wandb

from tests.plugins.wandb.helpers import expected_losses, fragment_of, losses, train
from tests.plugins.wandb.writer import framed, write_run
from tests.wandb_server import WandbServer
from uq_tracking.curves import Curve
from uq_tracking.errors import BackendError
from uq_tracking.testing import sample_figure
from uq_tracking_wandb.offline import OfflineStore
from uq_tracking_wandb.run import WandbRun


def logged_run(folder: Path, curve: Curve, tmp_path: Path) -> str:
    """The id of a finished run with everything in it."""
    (tmp_path / "report.json").write_text("first")
    (tmp_path / "statistics.npz").write_text("statistics")
    with wandb.init(project="p", name="n", config={"lr": 0.1}) as sdk_run:
        train(sdk_run, range(3))
        run = WandbRun(sdk_run)
        with run.batch():
            run.log_scalars({"uq/nll": 1.0}, step=3)
            run.log_curve("uq_curve/calibration", curve)
            run.log_figure("uq_calibration", sample_figure())
            run.log_file(tmp_path / "report.json", "uq/report.json")
            run.log_file(tmp_path / "statistics.npz", "uq/statistics.npz")
            run.set_tags({"uq.method": "m"})
    fragment_of(folder, sdk_run.id)
    return sdk_run.id


def rescore(store: OfflineStore, run_id: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("second")
    run = store.reopen(run_id)
    with run.batch():
        run.log_scalars({"uq/new": 2.0})
        run.log_file(tmp_path / "report.json", "uq/report.json")
        run.set_tags({"uq.rescored": "now"})
    run.close()


FILES = ["uq/report.json", "uq/statistics.npz", "uq_calibration.png", "uq_curve/calibration.table.json"]


@pytest.mark.slow
def test_a_run_reads_back(wandb_offline: Path, curve: Curve, tmp_path: Path) -> None:
    run_id = logged_run(wandb_offline, curve, tmp_path)
    store = OfflineStore(wandb_offline)
    stored = next(store.runs())
    assert (stored.run_id, stored.name, stored.status) == (run_id, "n", "finished")
    assert stored.uri == f"wandb-offline:{wandb_offline}/{run_id}"
    assert stored.tags == {"uq.method": "m"}
    assert stored.scalars == {"loss": 1 / 3, "uq/nll": 1.0, "uq/step": 3.0}
    assert store.files(run_id) == FILES
    assert store.fetch(run_id, "uq/statistics.npz", tmp_path / "fetched").read_text() == "statistics"
    assert store.show() == f"wandb sync {wandb_offline}/offline-run-*"


@pytest.mark.slow
@pytest.mark.parametrize("place", ["wandb folder", "above it", "run folder"])
def test_the_directory_may_be_given_in_three_ways(
    wandb_offline: Path, curve: Curve, tmp_path: Path, place: str
) -> None:
    run_id = logged_run(wandb_offline, curve, tmp_path)
    run_folder = next(wandb_offline.glob("offline-run-*"))
    folder = {"wandb folder": wandb_offline, "above it": wandb_offline.parent, "run folder": run_folder}[
        place
    ]
    store = OfflineStore(folder)
    assert [run.run_id for run in store.runs()] == [run_id]
    rescore(store, run_id, tmp_path)
    assert next(store.runs()).scalars["uq/new"] == 2.0


@pytest.mark.slow
def test_a_reopened_run_reads_as_one(wandb_offline: Path, curve: Curve, tmp_path: Path) -> None:
    run_id = logged_run(wandb_offline, curve, tmp_path)
    before = next(wandb_offline.glob("offline-run-*/*.wandb")).read_bytes()
    store = OfflineStore(wandb_offline)
    rescore(store, run_id, tmp_path)
    assert [run.run_id for run in store.runs()] == [run_id]
    stored = next(store.runs())
    assert stored.tags == {"uq.method": "m", "uq.rescored": "now"}
    assert stored.scalars == {"loss": 1 / 3, "uq/nll": 1.0, "uq/new": 2.0, "uq/step": 3.0}
    assert store.files(run_id) == FILES
    assert store.fetch(run_id, "uq/report.json", tmp_path / "fetched").read_text() == "second"
    assert store.fetch(run_id, "uq/statistics.npz", tmp_path / "fetched").read_text() == "statistics"
    assert before in [path.read_bytes() for path in wandb_offline.glob("offline-run-*/*.wandb")]


@pytest.mark.slow
def test_synced_fragments_are_the_whole_run(
    wandb_online: WandbServer, curve: Curve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.environ["WANDB_DIR"]) / "wandb"
    monkeypatch.setenv("WANDB_MODE", "offline")
    run_id = logged_run(folder, curve, tmp_path)
    rescore(OfflineStore(folder), run_id, tmp_path)
    monkeypatch.setenv("WANDB_MODE", "online")
    fragments = sorted(map(str, folder.glob("offline-run-*")))
    assert len(fragments) == 2
    subprocess.run(
        [sys.executable, "-m", "wandb", "sync", *fragments], check=True, timeout=120, capture_output=True
    )
    run = wandb_online.run("p", run_id)
    assert losses(run.rows()) == expected_losses(range(3))
    assert [row["_step"] for row in run.rows()] == [0, 1, 2, 3]
    assert (run.summary["loss"], run.summary["uq/nll"], run.summary["uq/new"]) == (1 / 3, 1.0, 2.0)
    assert (run.display_name, run.config_value("lr"), run.config_value("uq")) == (
        "n",
        0.1,
        {"method": "m", "rescored": "now"},
    )
    latest = wandb_online.state.versions("tester", "p", f"uq-{run_id}")[-1]
    texts = {name: wandb_online.state.blobs[key].decode() for name, key in latest.files.items()}
    assert texts == {"uq/report.json": "second", "uq/statistics.npz": "statistics"}


@pytest.mark.slow
def test_staged_files_that_are_gone_are_named(wandb_offline: Path, curve: Curve, tmp_path: Path) -> None:
    run_id = logged_run(wandb_offline, curve, tmp_path)
    store = OfflineStore(wandb_offline)
    for path in Path(os.environ["WANDB_DATA_DIR"]).rglob("artifacts/staging/*"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match=r"uq/statistics\.npz was kept at .*staging.*which is gone"):
        store.fetch(run_id, "uq/statistics.npz", tmp_path)
    run = store.reopen(run_id)
    (tmp_path / "new.json").write_text("new")
    with pytest.raises(BackendError, match=r"must keep uq/\w+\.\w+, but its staged copy .* is gone"):
        run.log_file(tmp_path / "new.json", "uq/new.json")
    run.close()


def test_a_running_run_is_listed_but_not_reopened(
    wandb_offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uq_tracking_wandb.offline.EXIT_SECONDS", 0.1)
    store = OfflineStore(wandb_offline)
    with wandb.init(project="p", settings=wandb.Settings(x_transaction_log_flush_interval=0.05)) as sdk_run:
        sdk_run.log({"loss": 1.0})
        while not [run.status for run in store.runs()]:
            pass
        assert [run.status for run in store.runs()] == ["running"]
        with pytest.raises(BackendError, match=r"has no exit record.*wandb sync"):
            store.reopen(sdk_run.id)


@pytest.mark.slow
def test_a_failed_run_stays_failed(wandb_offline: Path) -> None:
    sdk_run = wandb.init(project="p")
    sdk_run.finish(exit_code=1)
    fragment_of(wandb_offline, sdk_run.id)
    store = OfflineStore(wandb_offline)
    run = store.reopen(sdk_run.id)
    run.log_scalars({"uq/nll": 1.0})
    run.close()
    assert [stored.status for stored in store.runs()] == ["failed"]


@pytest.mark.slow
def test_the_same_batch_again_is_no_new_version(wandb_offline: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        for _ in range(3):
            run.log_file(tmp_path / "file", "uq/file")
    found = fragment_of(wandb_offline, sdk_run.id)
    assert [artifact.name for artifact in found.artifacts] == [f"uq-{sdk_run.id}"]


@pytest.mark.slow
def test_a_later_batch_keeps_the_other_files(wandb_offline: Path, tmp_path: Path) -> None:
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        for name in "ab":
            (tmp_path / name).write_text(name)
            run.log_file(tmp_path / name, f"uq/{name}")
    found = fragment_of(wandb_offline, sdk_run.id)
    assert [sorted(artifact.files) for artifact in found.artifacts] == [["uq/a"], ["uq/a", "uq/b"]]


@pytest.mark.parametrize("content", [b"no such file", framed([b"\xff" * 20])])
def test_a_damaged_file_hides_no_other_run(wandb_offline: Path, content: bytes) -> None:
    write_run(wandb_offline, "good", "good", 1_700_000_000)
    path = write_run(wandb_offline, "bad", "bad", 1_700_000_001)
    (path if path.is_file() else next(path.rglob("*.wandb"))).write_bytes(content)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names = [run.name for run in OfflineStore(wandb_offline).runs()]
    assert names == ["good"]
    assert "run skipped" in str(caught[0].message)


def test_filters_are_refused(wandb_offline: Path) -> None:
    with pytest.raises(BackendError, match="offline runs cannot be filtered"):
        list(OfflineStore(wandb_offline).runs("{}"))


@pytest.mark.slow
def test_a_run_that_is_asked_for_is_created_in_any_mode(
    wandb_offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    store = OfflineStore(wandb_offline)
    store.create("n").close()
    assert [run.name for run in store.runs()] == ["n"]
