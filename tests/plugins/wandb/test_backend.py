"""Which run is written to, and what each state of a run does."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import wandb
from lightning.pytorch.loggers import WandbLogger

from tests.plugins.wandb.helpers import expected_losses, fragment_of, losses, train
from uq_tracking import plugins
from uq_tracking.curves import Curve
from uq_tracking.errors import BackendError
from uq_tracking.testing import sample_figure
from uq_tracking.tracking.resolve import targets_of
from uq_tracking_wandb.backend import WandbBackend
from uq_tracking_wandb.names import parse_offline, parse_online
from uq_tracking_wandb.offline import OfflineStore
from uq_tracking_wandb.online import OnlineStore
from uq_tracking_wandb.run import DisabledRun, WandbRun


def test_it_is_found_by_its_entry_point() -> None:
    backend = plugins.backends()["wandb"]
    assert backend.schemes == ("wandb-offline",)
    assert (backend.status().usable, backend.status().version) == (True, wandb.__version__)


@pytest.mark.slow
def test_finding_it_does_not_import_wandb() -> None:
    code = (
        "import sys; from uq_tracking import plugins; backend = plugins.backends()['wandb'];"
        "backend.status(); assert backend.active_run() is None; assert backend.adopt('some id') is None;"
        "assert 'wandb' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(("version", "hint"), [(None, "pip install 'uq-tracking"), ("0.18.7", "too old")])
def test_status_gives_the_cure(
    backend: WandbBackend, monkeypatch: pytest.MonkeyPatch, version: str | None, hint: str
) -> None:
    def installed(name: str) -> str:
        if version is None:
            raise __import__("importlib").metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr("importlib.metadata.version", installed)
    status = backend.status()
    assert not status.usable
    assert hint in str(status.hint)


def test_without_a_run_nothing_is_active_and_none_is_started(
    backend: WandbBackend, wandb_offline: Path
) -> None:
    assert backend.active_run() is None
    assert backend.adopt("some-run-id") is None
    assert backend.adopt(object()) is None
    assert wandb.run is None
    assert not wandb_offline.exists()


@pytest.mark.slow
def test_the_active_run_is_found_and_stays_one_adapter(backend: WandbBackend, wandb_offline: Path) -> None:
    with wandb.init(project="p") as sdk_run:
        run = backend.active_run()
        assert isinstance(run, WandbRun)
        assert run.uri == f"wandb-offline:{wandb_offline}/{sdk_run.id}"
        assert backend.adopt(sdk_run) is run
        assert backend.adopt(sdk_run.id) is run
        assert run.show() is None
    assert backend.active_run() is None


@pytest.mark.slow
def test_a_run_beside_the_active_one_is_adopted(backend: WandbBackend, wandb_offline: Path) -> None:
    with wandb.init(project="p"), wandb.init(project="p", reinit="create_new") as second:
        run = backend.adopt(second)
        assert run is not None
        assert run.uri.endswith(second.id)


def test_a_disabled_run_logs_nothing(
    backend: WandbBackend, wandb_home: Path, curve: Curve, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    with wandb.init(project="p", mode="disabled"):
        run = backend.active_run()
        assert isinstance(run, DisabledRun)
        with run.batch():
            run.log_scalars({"uq/nll": 1.0})
            run.log_curve("uq_curve/x", curve)
            run.log_figure("uq_x", sample_figure())
            run.log_map("uq_map/x", sample_figure())
            run.log_file(tmp_path / "file", "uq/file")
            run.set_tags({"uq.method": "m"})
    assert not list(wandb_home.rglob("*.wandb"))


@pytest.mark.slow
def test_a_finished_run_says_what_to_do(backend: WandbBackend, wandb_offline: Path) -> None:
    with wandb.init(project="p") as sdk_run:
        run = backend.adopt(sdk_run)
        assert run is not None
    with pytest.raises(BackendError, match=rf"{sdk_run.id} is finished; .* pass run='wandb-offline:"):
        backend.adopt(sdk_run)
    (target,) = targets_of(sdk_run, None, name="x")
    assert target.label == run.uri  # where `sync` sends what was kept
    with pytest.raises(BackendError, match=r"log before run\.finish"):
        run.log_scalars({"uq/nll": 1.0})


def _log_in_worker(run: WandbRun, folder: Path) -> None:
    with run.batch():
        run.log_scalars({"uq/worker": 1.0})
        run.log_figure("uq_worker", sample_figure())
        run.log_file(folder / "file", "uq/file")
        run.set_tags({"uq.method": "m"})


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.slow
def test_a_forked_worker_logs_into_the_run(
    backend: WandbBackend, request: pytest.FixtureRequest, tmp_path: Path, mode: str
) -> None:
    home = request.getfixturevalue(f"wandb_{mode}")
    (tmp_path / "file").write_text("x")
    with wandb.init(project="p") as sdk_run:
        train(sdk_run, [0])
        run = backend.active_run()
        worker = multiprocessing.get_context("fork").Process(target=_log_in_worker, args=(run, tmp_path))
        worker.start()
        worker.join(30)
        assert worker.exitcode == 0
        train(sdk_run, [1])
    if mode == "online":
        rows = home.run("p", sdk_run.id).rows()
        store, _ = backend.store("tester/p")
    else:
        rows = fragment_of(home, sdk_run.id).history
        store, _ = backend.store(str(home), scheme="wandb-offline")
    assert losses(rows) == expected_losses([0, 1])
    assert store.files(sdk_run.id) == ["uq/file", "uq_worker.png"]
    stored = next(store.runs())
    assert (stored.scalars["uq/worker"], stored.tags["uq.method"]) == (1.0, "m")


@pytest.mark.slow
def test_threads_take_turns(backend: WandbBackend, wandb_offline: Path, tmp_path: Path) -> None:
    def write(number: int) -> None:
        path = tmp_path / f"{number}.txt"
        path.write_text(str(number))
        with run.batch():
            run.log_scalars({f"uq/{number}": float(number)}, step=1)
            run.log_file(path, f"uq/{number}.txt")

    with wandb.init(project="p") as sdk_run:
        run = backend.adopt(sdk_run)
        assert run is not None
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(8)))
    found = fragment_of(wandb_offline, sdk_run.id)
    assert {found.summary[f"uq/{number}"] for number in range(8)} == set(range(8))
    versions = [artifact.files for artifact in found.artifacts if artifact.type == "uq"]
    assert sorted(versions[-1]) == [f"uq/{number}.txt" for number in range(8)]


@pytest.mark.slow
def test_a_lightning_logger_is_adopted(backend: WandbBackend, wandb_offline: Path, tmp_path: Path) -> None:
    logger = WandbLogger(project="p", save_dir=str(tmp_path), offline=True)
    with pytest.raises(BackendError, match=r"no open run here.*rank zero"):
        backend.adopt(logger)
    sdk_run = logger.experiment
    run = backend.adopt(logger)
    assert isinstance(run, WandbRun)
    logger.log_metrics({"loss": 1.0}, step=0)
    run.log_scalars({"uq/nll": 2.0})
    logger.log_metrics({"loss": 0.5}, step=1)
    sdk_run.finish()
    found = fragment_of(tmp_path / "wandb", sdk_run.id)
    assert [row["loss"] for row in found.history if "loss" in row] == [1.0, 0.5]
    assert (found.summary["uq/nll"], found.axes["uq/nll"]) == (2.0, "uq/step")


@pytest.mark.slow
def test_a_config_entry_of_the_users_is_not_overwritten(backend: WandbBackend, wandb_offline: Path) -> None:
    with wandb.init(project="p", config={"uq": True}) as sdk_run:
        run = backend.adopt(sdk_run)
        assert run is not None
        with pytest.raises(BackendError, match=r"run\.config\['uq'\] is True.*rename"):
            run.set_tags({"uq.method": "m"})
        assert sdk_run.config["uq"] is True


@pytest.mark.parametrize(
    ("address", "path", "run_id"),
    [
        ("p", "p", None),
        ("team/p", "team/p", None),
        ("team/p/abc", "team/p", "abc"),
        ("team/p/", "team/p", None),
    ],
)
def test_online_addresses(backend: WandbBackend, address: str, path: str, run_id: str | None) -> None:
    assert (parse_online(address).path, parse_online(address).run_id) == (path, run_id)
    store, found = backend.store(address)
    assert isinstance(store, OnlineStore)
    assert found == run_id


@pytest.mark.parametrize("address", ["", "/", "a//b", "a/b/c/d"])
def test_other_addresses_are_refused(backend: WandbBackend, address: str) -> None:
    with pytest.raises(BackendError, match="write wandb:ENTITY/PROJECT"):
        backend.store(address)


def test_offline_addresses(backend: WandbBackend, tmp_path: Path) -> None:
    (tmp_path / "wandb").mkdir()
    assert parse_offline(str(tmp_path / "wandb")) == (tmp_path / "wandb", None)
    assert parse_offline(str(tmp_path / "wandb" / "abc")) == (tmp_path / "wandb", "abc")
    store, run_id = backend.store(f"{tmp_path}/wandb/abc", scheme="wandb-offline")
    assert isinstance(store, OfflineStore)
    assert run_id == "abc"
    with pytest.raises(BackendError, match="no such folder"):
        backend.store(f"{tmp_path}/none/abc", scheme="wandb-offline")
