"""Runs on a server: what is stored, and how a run is read and extended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import wandb

from tests.plugins.wandb.helpers import expected_losses, losses, train
from tests.wandb_server import WandbServer
from uq_tracking.curves import Curve
from uq_tracking.errors import BackendError, RunNotFoundError
from uq_tracking.testing import sample_figure
from uq_tracking.tracking.backend import Run, RunStore
from uq_tracking_wandb.backend import WandbBackend
from uq_tracking_wandb.run import WandbRun

pytestmark = pytest.mark.slow


@pytest.fixture
def store(wandb_online: WandbServer, backend: WandbBackend) -> RunStore:
    return backend.store("tester/p")[0]


def put(run: Run, folder: Path, **contents: str) -> None:
    """Log files ``uq/<name>`` in one batch."""
    with run.batch():
        for name, text in contents.items():
            (folder / name).write_text(text)
            run.log_file(folder / name, f"uq/{name}")


def get(store: RunStore, run_id: str, folder: Path) -> dict[str, str]:
    """The run's stored files of ``uq/``."""
    names = [name for name in store.files(run_id) if name.startswith("uq/")]
    return {name: store.fetch(run_id, name, folder / "fetched").read_text() for name in names}


def versions(server: WandbServer, run_id: str) -> list[int | None]:
    return [version.version for version in server.state.versions("tester", "p", f"uq-{run_id}")]


def test_everything_is_stored_under_the_names_of_all_trackers(
    store: RunStore, wandb_online: WandbServer, curve: Curve, sparsification: Curve, tmp_path: Path
) -> None:
    with wandb.init(project="p", name="my run") as sdk_run:
        train(sdk_run, range(3))
        run = WandbRun(sdk_run)
        with run.batch():
            run.log_scalars({"uq/nll": 1 / 3})
            run.log_curve("uq_curve/calibration", curve)
            run.log_curve("uq_curve/test/sparsification_rmse", sparsification)
            run.log_figure("uq_calibration", sample_figure())
            run.log_map("uq_map/case 1", sample_figure())
            run.set_tags({"uq.method": "m"})
        put(run, tmp_path, report="1", statistics="2")
        assert run.show() == f"{wandb_online.url}/tester/p/runs/{sdk_run.id}"
    assert store.files(sdk_run.id) == [
        "uq/report",
        "uq/statistics",
        "uq_calibration.png",
        "uq_curve/calibration.table.json",
        "uq_curve/test/sparsification_rmse.table.json",
        "uq_map/case 1.png",
    ]
    stored = next(store.runs())
    assert (stored.uri, stored.name, stored.status) == (f"wandb:tester/p/{sdk_run.id}", "my run", "finished")
    assert (stored.scalars["uq/nll"], stored.tags["uq.method"]) == (1 / 3, "m")
    table = json.loads(store.fetch(sdk_run.id, "uq_curve/calibration.table.json", tmp_path).read_text())
    assert table["data"] == [[x, y] for x, y in zip(*curve.columns.values(), strict=True)]
    panels = json.loads(wandb_online.run("p", sdk_run.id).config)["_wandb"]["value"]["visualize"]
    assert panels["uq_curve/calibration"]["panel_config"]["panelDefId"] == "wandb/line/v0"


def test_a_batch_is_one_version_and_the_same_again_is_none(
    store: RunStore, wandb_online: WandbServer, tmp_path: Path
) -> None:
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        put(run, tmp_path, a="1", b="2", c="3")
        put(run, tmp_path, a="1", b="2", c="3")
    assert versions(wandb_online, sdk_run.id) == [0]
    reopened = store.reopen(sdk_run.id)
    put(reopened, tmp_path, a="1", b="2", c="3")
    reopened.close()
    assert versions(wandb_online, sdk_run.id) == [0]


def test_a_later_file_keeps_the_others(store: RunStore, wandb_online: WandbServer, tmp_path: Path) -> None:
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        put(run, tmp_path, a="1", b="2")
        put(run, tmp_path, b="two")
        put(run, tmp_path, c="3")
    assert get(store, sdk_run.id, tmp_path) == {"uq/a": "1", "uq/b": "two", "uq/c": "3"}
    assert versions(wandb_online, sdk_run.id) == [0, 1, 2]


@pytest.mark.slow
def test_a_run_that_its_user_resumes_keeps_its_files(store: RunStore, tmp_path: Path) -> None:
    with wandb.init(project="p") as sdk_run:
        put(WandbRun(sdk_run), tmp_path, a="1", b="2")
    with wandb.init(project="p", id=sdk_run.id, resume="must") as resumed:
        put(WandbRun(resumed), tmp_path, b="two")
    assert get(store, sdk_run.id, tmp_path) == {"uq/a": "1", "uq/b": "two"}


@pytest.mark.slow
def test_reopening_keeps_all_there_was(store: RunStore, wandb_online: WandbServer, tmp_path: Path) -> None:
    with wandb.init(project="p", name="n", config={"lr": 0.1}, group="g", tags=["t"]) as sdk_run:
        train(sdk_run, range(3))
        WandbRun(sdk_run).log_scalars({"uq/nll": 1.0})
        put(WandbRun(sdk_run), tmp_path, a="1")
    reopened = store.reopen(sdk_run.id)
    assert wandb.run is None
    with reopened.batch():
        reopened.log_scalars({"uq/new": 2.0})
        reopened.set_tags({"uq.rescored": "now"})
    put(reopened, tmp_path, report="2")
    reopened.close()
    stored = wandb_online.run("p", sdk_run.id)
    assert losses(stored.rows()) == expected_losses(range(3))
    assert [row["_step"] for row in stored.rows()] == [0, 1, 2, 3]
    assert (stored.state, stored.display_name) == ("finished", "n")
    assert (stored.details["groupName"], stored.details["tags"]) == ("g", ["t"])
    assert (stored.config_value("lr"), stored.config_value("uq.rescored")) == (0.1, "now")
    assert (stored.summary["loss"], stored.summary["uq/nll"], stored.summary["uq/new"]) == (1 / 3, 1.0, 2.0)
    assert get(store, sdk_run.id, tmp_path) == {"uq/a": "1", "uq/report": "2"}


@pytest.mark.slow
def test_a_final_call_replaces_the_last_step_unless_it_arrives_after_the_end(
    store: RunStore, wandb_online: WandbServer
) -> None:
    shown = []
    for late in (False, True):
        with wandb.init(project="p") as sdk_run:
            run = WandbRun(sdk_run)
            run.log_scalars({"uq/nll": 2.0}, step=3)
            if not late:
                run.log_scalars({"uq/nll": 1.0})
        if late:
            reopened = store.reopen(sdk_run.id)
            reopened.log_scalars({"uq/nll": 1.0})
            reopened.close()
        stored = wandb_online.run("p", sdk_run.id)
        assert stored.summary["uq/nll"] == 1.0
        shown.append([(row["uq/step"], row["uq/nll"]) for row in stored.rows()])
    assert shown == [[(3, 1.0)], [(3, 2.0), (3, 1.0)]]


def test_a_seal_is_set_once_the_run_is_closed_and_changes_nothing_else(
    store: RunStore, wandb_online: WandbServer
) -> None:
    config = {"lr": 0.1, "uq": {"method": "m"}}
    with wandb.init(
        project="p", name="n", config=config, group="g", job_type="j", notes="text", tags=["t"]
    ) as sdk_run:
        train(sdk_run, range(3))
    reopened = store.reopen(sdk_run.id)
    reopened.log_scalars({"uq/nll": 1.0})
    reopened.set_tags({"uq.schema": "1"})
    reopened.seal({"uq.rescored": "now"})
    stored = wandb_online.run("p", sdk_run.id)
    assert stored.config_value("uq.rescored") is None
    reopened.close()
    assert stored.config_value("uq") == {"method": "m", "schema": "1", "rescored": "now"}
    assert stored.config_value("lr") == 0.1
    assert stored.config_value("_wandb")
    assert (stored.summary["loss"], stored.summary["uq/nll"]) == (1 / 3, 1.0)
    assert (stored.state, stored.display_name) == ("finished", "n")
    details = {key: stored.details[key] for key in ("groupName", "jobType", "notes", "tags")}
    assert details == {"groupName": "g", "jobType": "j", "notes": "text", "tags": ["t"]}
    reopened.close()  # nothing is left to seal


def test_a_summary_that_a_killed_writer_left_behind_catches_up(
    store: RunStore, wandb_online: WandbServer
) -> None:
    run = store.create("n")
    run.log_scalars({"uq/nll": 1.0})
    run.close()
    stored = wandb_online.run("p", run.uri.rpartition("/")[2])
    stored.summary["uq/nll"] = 0.5
    reopened = store.reopen(stored.name)
    reopened.log_scalars({"uq/nll": 1.0})
    reopened.seal({"uq.rescored": "now"})
    reopened.close()
    assert stored.summary["uq/nll"] == 1.0
    assert stored.config_value("uq.rescored") == "now"


def test_a_run_whose_summary_the_user_has_defined_is_sealed_too(
    store: RunStore, wandb_online: WandbServer
) -> None:
    with wandb.init(project="p") as sdk_run:
        for key, kind in (("uq/nll", "min"), ("uq/mae", "none")):
            sdk_run.define_metric(key, summary=kind)
        WandbRun(sdk_run).log_scalars({"uq/nll": 1.0, "uq/mae": 3.0})
    stored = wandb_online.run("p", sdk_run.id)
    reopened = store.reopen(sdk_run.id)
    reopened.log_scalars({"uq/nll": 1.0, "uq/mae": 3.0})
    reopened.seal({"uq.rescored": "now"})
    reopened.close()
    assert stored.config_value("uq.rescored") == "now"
    assert stored.summary["uq/nll"] == {"min": 1}


def test_reopening_beside_an_active_run_leaves_it_alone(store: RunStore, wandb_online: WandbServer) -> None:
    with wandb.init(project="p") as first:
        pass
    with wandb.init(project="p") as active:
        train(active, [0])
        reopened = store.reopen(first.id)
        reopened.log_scalars({"uq/nll": 1.0})
        reopened.close()
        assert wandb.run is active
        train(active, [1])
    assert losses(wandb_online.run("p", active.id).rows()) == expected_losses([0, 1])
    assert wandb_online.run("p", first.id).summary["uq/nll"] == 1.0


def test_a_failed_run_stays_failed(store: RunStore) -> None:
    sdk_run = wandb.init(project="p")
    sdk_run.finish(exit_code=1)
    reopened = store.reopen(sdk_run.id)
    reopened.log_scalars({"uq/nll": 1.0})
    reopened.close()
    assert [run.status for run in store.runs()] == ["failed"]


def test_a_running_run_is_not_reopened(store: RunStore) -> None:
    with (
        wandb.init(project="p") as sdk_run,
        pytest.raises(BackendError, match=r"is running: two processes cannot.*open run"),
    ):
        store.reopen(sdk_run.id)


def test_a_created_run_has_its_name_and_tags(store: RunStore) -> None:
    run = store.create("my name", {"uq.method": "m", "note": "n"})
    run.log_scalars({"uq/nll": 1.0})
    run.close()
    run.close()
    stored = next(store.runs())
    assert (stored.name, stored.status, stored.scalars["uq/nll"]) == ("my name", "finished", 1.0)
    assert stored.tags == {"uq.method": "m", "note": "n"}


def test_the_users_run_is_never_finished(store: RunStore, wandb_online: WandbServer) -> None:
    with wandb.init(project="p") as sdk_run:
        WandbRun(sdk_run).close()
        train(sdk_run, [0])
    assert losses(wandb_online.run("p", sdk_run.id).rows()) == expected_losses([0])


def test_filters(store: RunStore) -> None:
    for number in range(3):
        run = store.create(f"run {number}", {"uq.method": "ab"[number % 2]})
        run.log_scalars({"uq/nll": float(number)})
        run.close()
    found = store.runs('{"config.uq.method": "a", "summary_metrics.uq/nll": {"$gt": 0.5}}')
    assert [run.name for run in found] == ["run 2"]


@pytest.mark.parametrize("where", ["uq.method = 'a'", '["a"]', "3"])
def test_other_filters_are_refused(store: RunStore, where: str) -> None:
    with pytest.raises(BackendError, match="is not a W&B filter"):
        list(store.runs(where))


def test_a_missing_project_is_named(wandb_online: WandbServer, backend: WandbBackend) -> None:
    with pytest.raises(RunNotFoundError, match="wandb:tester/none"):
        list(backend.store("tester/none")[0].runs())


def test_the_default_entity_is_found(
    store: RunStore, backend: WandbBackend, wandb_online: WandbServer
) -> None:
    run = store.create("n")
    run.close()
    short, _ = backend.store("p")
    assert [stored.name for stored in short.runs()] == ["n"]
