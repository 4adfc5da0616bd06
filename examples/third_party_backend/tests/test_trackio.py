"""Log to trackio as a user does: active runs, addresses, comparison, rescoring."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import uq_tracking as uq
from uq_tracking.errors import BackendError, RunNotFoundError
from uq_tracking.testing import sample_figure, sample_predictions
from uq_tracking_trackio import uq_backends


@pytest.fixture
def storage() -> Any:
    from trackio.sqlite_storage import SQLiteStorage

    return SQLiteStorage


@pytest.fixture
def live(project: str, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """An open trackio run."""
    import trackio

    run = trackio.init(project, name="first", config={"lr": 0.1}, auto_log_cpu=False, auto_log_gpu=False)
    yield run
    if trackio.context_vars.current_run.get() is run:
        trackio.finish()


def stored(project: str) -> list[Any]:
    return list(uq_backends()[0].store(project)[0].runs())


def test_the_active_run_is_found_and_the_training_loop_keeps_its_rows(
    live: Any, project: str, storage: Any
) -> None:
    for number in range(3):
        live.log({"loss": 1 / (number + 1)})
    report = uq.log(sample_predictions(), to="trackio", method="ensemble", strict=True)
    for step in (3, 4, 10):
        live.log({"loss": 1 / (step + 1)}, step=step)
    live.finish()
    rows = storage.get_logs(project, run_id=live.id)
    losses = [(row["step"], row["loss"]) for row in rows if "loss" in row]
    assert losses == [(step, 1 / (step + 1)) for step in (0, 1, 2, 3, 4, 10)]
    (run,) = stored(project)
    assert (run.name, run.tags["uq.method"]) == ("first", "ensemble")
    assert run.scalars["uq/nll"] == report.scores["nll"]
    assert storage.get_run_config(project, run_id=live.id)["lr"] == 0.1


def test_tags_set_before_the_first_row_survive_it(live: Any, project: str, storage: Any) -> None:
    run = uq_backends()[0].adopt(live)
    run.set_tags({"uq.method": "early"})
    assert storage.get_run_config(project, run_id=live.id)["lr"] == 0.1
    live.log({"loss": 1.0})
    live.finish()
    assert stored(project)[0].tags["uq.method"] == "early"


def test_tags_set_while_the_first_row_is_under_way_survive_it(live: Any, project: str) -> None:
    live.log({"loss": 1.0})
    start = time.monotonic()
    uq_backends()[0].adopt(live).set_tags({"uq.method": "at once"})
    assert time.monotonic() - start < 5
    live.finish()
    assert stored(project)[0].tags["uq.method"] == "at once"


def test_runs_are_compared_rescored_and_copied(project: str, tmp_path: Path) -> None:
    predictions = sample_predictions()
    wide = uq.Predictions(predictions.truth, predictions.mean, 2 * predictions.std, unit="m")
    uq.log(predictions, run=f"trackio:{project}", method="one", figures=False, strict=True)
    uq.log(wide, run=f"trackio:{project}", method="two", strict=True)
    table = str(uq.compare(f"trackio:{project}"))
    assert "one" in table
    assert "two" in table

    summary = uq.rescore(f"trackio:{project}", alpha=0.8)
    assert [outcome.status for outcome in summary.outcomes] == ["done", "done"]
    again = uq.rescore(f"trackio:{project}", alpha=0.8)
    assert [outcome.status for outcome in again.outcomes] == ["skipped", "skipped"]
    assert [run.tags["uq.method"] for run in stored(project)] == ["one", "two"]

    uq.sync(f"trackio:{project}", f"dir:{tmp_path}/copy")
    assert len(list(Path(tmp_path, "copy").glob("*/uq/report.json"))) == 2


def test_a_run_is_addressed_by_its_id_or_its_name(project: str) -> None:
    backend = uq_backends()[0]
    store, none = backend.store(project)
    assert none is None
    first, second = (store.create("same name").uri.rpartition("/")[2] for _ in range(2))
    assert backend.store(f"{project}/{first}")[1] == first
    assert backend.store(f"{project}/same name")[1] == second
    with pytest.raises(RunNotFoundError, match="has no run 'typo'"):
        store.reopen("typo")


def test_a_stored_run_of_trackios_api_is_adopted(project: str) -> None:
    import trackio

    uq.log(sample_predictions(), run=f"trackio:{project}", figures=False, strict=True)
    (run,) = trackio.Api().runs(project)
    uq.log(sample_predictions(seed=1), run=run, split="test", figures=False, strict=True)
    assert {"uq/nll", "uq/test/nll"} <= stored(project)[0].scalars.keys()


def test_a_figure_is_shown_once_and_replaced_in_place(project: str, storage: Any) -> None:
    import trackio

    store, _ = uq_backends()[0].store(project)
    run = store.create("a")
    for shade in (0.2, 0.2, 0.8):
        run.log_map("uq_map/0", sample_figure(shade))
    run_id = run.uri.rpartition("/")[2]
    images = [row["uq_map/0"] for row in storage.get_logs(project, run_id=run_id) if "uq_map/0" in row]
    assert [image["_type"] for image in images] == ["trackio.image"]
    shown = Path(trackio.utils.MEDIA_DIR, images[0]["file_path"])
    assert shown.read_bytes() == store.fetch(run_id, "uq_map_0.png", shown.parent / "fetched").read_bytes()


def test_what_trackio_sends_elsewhere_is_refused(live: Any) -> None:
    live.url = "somebody/space"
    with pytest.raises(BackendError, match="only local runs"):
        uq_backends()[0].adopt(live)


def test_what_trackio_cannot_do_is_refused(project: str) -> None:
    backend = uq_backends()[0]
    store, _ = backend.store(project)
    with pytest.raises(BackendError, match="trackio has no filters"):
        store.runs("loss < 1")
    with pytest.raises(RunNotFoundError, match="has no runs in project"):
        store.runs()
    with pytest.raises(BackendError, match="does not name a project"):
        backend.store("")
    assert backend.adopt("a run id") is None


def test_importing_the_plugin_imports_no_trackio() -> None:
    code = "import sys, uq_tracking_trackio as plugin; b = plugin.uq_backends()[0]"
    code += "; b.status(); b.active_run(); b.adopt(object()); print('trackio' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
