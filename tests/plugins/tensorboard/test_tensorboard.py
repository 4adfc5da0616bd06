"""Logging into TensorBoard as a user does, and what TensorBoard's own server then shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import tensorboardX
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray
from torch.utils.tensorboard import SummaryWriter

import uq_tracking as uq
from uq_tracking.errors import BackendError
from uq_tracking.testing import sample_curve, sample_figure, sample_predictions
from uq_tracking.tracking.folder import FolderStore
from uq_tracking.tracking.resolve import check_usable
from uq_tracking_tensorboard.backend import TensorBoardBackend, TensorBoardStore
from uq_tracking_tensorboard.events import event_files, read_points

WRITERS = [SummaryWriter, tensorboardX.SummaryWriter]


@pytest.fixture
def backend():
    return TensorBoardBackend()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs"


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITERS, ids=["torch", "tensorboardX"])
def test_a_training_loop_with_a_writer(kind, folder):
    predictions = sample_predictions()
    with kind(str(folder / "first")) as writer:
        for step in range(3):
            writer.add_scalar("loss", 1 / (step + 1), step)
            uq.log(predictions, run=writer, method="ensemble", step=step, strict=True)
        report = uq.log(predictions, run=writer, method="ensemble", strict=True)
        writer.add_scalar("loss", 0.25, 3)
    assert len(event_files(folder / "first")) == 1
    points = read_points(folder / "first")
    assert points["loss"] == [(step, np.float32(1 / (step + 1))) for step in range(4)]
    nll = [(step, np.float32(report.scores["nll"])) for step in range(3)]
    assert points["uq/nll"][:3] == nll
    (stored,) = TensorBoardStore(folder).runs()
    assert (stored.name, stored.tags["uq.method"]) == ("first", "ensemble")
    assert stored.scalars["uq/nll"] == report.scores["nll"]
    assert stored.scalars["loss"] == 0.25
    assert not any(name.startswith("uq_curve/") for name in stored.scalars)
    uq.log(predictions, run=f"tensorboard:{folder}/first", method="ensemble", strict=True)
    uq.log(predictions, run=f"tensorboard:{folder}/first", method="ensemble", split="test", strict=True)
    texts = texts_of(folder / "first")
    assert {name.removesuffix("/text_summary"): len(found) for name, found in texts.items()} == {
        "uq/verdict": 1,
        "uq/test/verdict": 1,
    }
    assert all(report.verdict.text[:40] in found[0] for found in texts.values())


def texts_of(folder):
    events = EventAccumulator(str(folder)).Reload()
    names = events.Tags()["tensors"]
    kinds = {name: events.SummaryMetadata(name).plugin_data.plugin_name for name in names}
    assert set(kinds.values()) == {"text"}
    return {
        name: [make_ndarray(event.tensor_proto).item().decode() for event in events.Tensors(name)]
        for name in names
    }


@pytest.mark.slow
def test_runs_are_compared_rescored_and_copied(folder, tmp_path):
    predictions = sample_predictions()
    with SummaryWriter(str(folder / "first")) as writer:
        writer.add_scalar("loss", 0.5, 0)
        uq.log(predictions, run=writer, method="one", step=4, figures=False, strict=True)
        uq.log(predictions, run=writer, method="one", figures=False, strict=True)
    wide = uq.Predictions(predictions.truth, predictions.mean, 2 * predictions.std)
    uq.log(wide, run=f"tensorboard:{folder}", method="two", strict=True)
    assert "one" in str(uq.compare(f"tensorboard:{folder}"))

    summary = uq.rescore(f"tensorboard:{folder}", alpha=0.8)
    assert [outcome.status for outcome in summary.outcomes] == ["done", "done"]
    again = uq.rescore(f"tensorboard:{folder}", alpha=0.8)
    assert [outcome.status for outcome in again.outcomes] == ["skipped", "skipped"]
    rescored = uq.rescore(f"tensorboard:{folder}/first", alpha=0.7)
    assert [outcome.name for outcome in rescored.outcomes] == ["first"]

    uq.sync(f"tensorboard:{folder}", f"dir:{tmp_path}/copy")
    journal = next(Path(tmp_path, "copy").glob("*first*/log.jsonl")).read_text()
    lines = [json.loads(line) for line in journal.splitlines()]
    scalars = {(line["step"], name) for line in lines if line["kind"] == "scalars" for name in line["values"]}
    assert {(4, "uq/nll"), (None, "uq/nll"), (None, "loss")} <= scalars


@pytest.mark.slow
def test_tensorboard_shows_scores_curves_and_images_of_every_run(folder):
    store = TensorBoardStore(folder)
    for name in ("a", "b"):
        run = store.create(name)
        run.log_scalars({"uq/nll": 0.5})
        run.log_curve("uq_curve/sample", sample_curve((0.0, 0.25, 1.0)))
        run.log_figure("uq_calibration", sample_figure())
        run.log_map("uq_map/0", sample_figure())
        run.close()
    with served(folder) as ask:
        for name in ("a", "b"):
            assert set(ask("scalars/tags")[name]) == {"uq/nll", "uq_curve/sample"}
            assert set(ask("images/tags")[name]) == {"uq_calibration", "uq_map/0"}
            points = ask(f"scalars/scalars?run={name}&tag=uq_curve/sample")
            assert [point[1:] for point in points] == [[0, 0.0], [50, 0.25], [100, 1.0]]


@contextmanager
def served(folder):
    """A real TensorBoard; gives a function that asks its plugins."""
    log = folder.parent / "server.log"
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        "0",
    ]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder.parent)

    def ask(path):
        with urllib.request.urlopen(f"{address}data/plugin/{path}", timeout=20) as answer:
            return json.load(answer)

    try:
        deadline = time.monotonic() + 60
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        address = found.group()
        while len(ask("scalars/tags")) < len(list(folder.iterdir())) and time.monotonic() < deadline:
            time.sleep(0.2)
        yield ask
    finally:
        process.terminate()
        process.wait(20)


def test_the_same_again_adds_no_event(folder):
    store = TensorBoardStore(folder)
    run = store.create("a")
    sizes = []
    for _ in range(2):
        run.log_scalars({"uq/nll": 1 / 3}, step=2)
        run.log_scalars({"uq/nll": 1 / 7})
        run.log_curve("uq_curve/sample", sample_curve())
        run.log_figure("uq_calibration", sample_figure())
        sizes.append([path.stat().st_size for path in event_files(run.folder)])
    run.close()
    assert sizes[0] == sizes[1]
    assert read_points(run.folder)["uq/nll"] == [(2, np.float32(1 / 3)), (2, np.float32(1 / 7))]


def test_a_curve_with_other_values_gets_a_name_of_its_own(folder):
    store = TensorBoardStore(folder)
    run = store.create("a")
    for values in ((0.0, 1.0), (0.0, 0.5), (0.0, 0.5)):
        run.log_curve("uq_curve/sample", sample_curve(values))
    run.close()
    points = read_points(run.folder)
    assert points["uq_curve/sample"] == [(0, 0.0), (100, 1.0)]
    assert points["uq_curve/sample-2"] == [(0, 0.0), (100, 0.5)]
    assert "uq_curve/sample-3" not in points


def test_runs_that_others_wrote_are_listed(folder):
    with SummaryWriter(str(folder / "sweep" / "lr=0.1")) as writer:
        writer.add_scalar("old", 1.5, 3)
        writer.add_scalar("new", 2.5, 4, new_style=True)
        writer.add_scalar("double", 1 / 3, 5, new_style=True, double_precision=True)
    store = TensorBoardStore(folder)
    (stored,) = store.runs()
    assert (stored.run_id, stored.name, dict(stored.tags)) == ("sweep/lr=0.1", "sweep/lr=0.1", {})
    assert stored.scalars == {"old": 1.5, "new": 2.5, "double": 1 / 3}
    assert store.files(stored.run_id) == []
    assert store.size(stored.run_id, "uq/report.json") is None
    run = store.reopen(stored.run_id)
    run.log_scalars({"uq/nll": 1.0})
    run.close()
    (stored,) = store.runs()
    assert stored.scalars == {"old": 1.5, "new": 2.5, "double": 1 / 3, "uq/nll": 1.0}


def test_an_address_names_a_run_where_event_files_lie(backend, folder):
    with SummaryWriter(str(folder / "a")) as writer:
        writer.add_scalar("loss", 1.0, 0)
    assert backend.store(str(folder))[1] is None
    store, run_id = backend.store(str(folder / "a"))
    assert (store.path, run_id) == (folder, "a")


def test_runs_of_one_name_get_folders_of_their_own(folder):
    store = TensorBoardStore(folder)
    runs = [store.create("mc dropout") for _ in range(3)]
    for run in runs:
        run.close()
    assert [run.folder.name for run in runs] == ["mc-dropout", "mc-dropout-2", "mc-dropout-3"]


def test_lightnings_logger_is_adopted_on_rank_zero_only(backend, tmp_path, monkeypatch):
    from lightning.pytorch.loggers import TensorBoardLogger
    from lightning.pytorch.utilities import rank_zero_only

    logger = TensorBoardLogger(tmp_path, name="depth", version=3)
    run = backend.adopt(logger)
    assert run.uri == f"tensorboard:{tmp_path}/depth/version_3"
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    with pytest.raises(BackendError, match="log on rank zero"):
        backend.adopt(TensorBoardLogger(tmp_path, name="depth", version=4))
    logger.experiment.close()


def test_what_is_not_tensorboards_is_left_to_others(backend, tmp_path):
    assert backend.adopt("runs/a") is None
    assert backend.adopt(tmp_path) is None
    assert backend.active_run() is None


def test_folders_elsewhere_are_refused(backend):
    class Bucket(SummaryWriter):
        def __init__(self):
            self.log_dir = "gs://bucket/runs"

    for action in (
        lambda: backend.store("s3://bucket/runs"),
        lambda: backend.adopt(Bucket()),
        lambda: uq.log([1.0], [1.5], [0.5], run="tensorboard:gs://bucket/runs", figures=False),
    ):
        with pytest.raises(BackendError, match="not a local folder"):
            action()


def test_filters_are_refused(folder):
    with pytest.raises(BackendError, match="TensorBoard has no filters"):
        list(TensorBoardStore(folder).runs("loss < 1"))


def test_the_hint_says_how_to_install_it(backend, monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert backend.status().hint == "pip install 'uq-tracking[tensorboard]'"
    with pytest.raises(BackendError, match="tensorboard is not installed; pip install"):
        check_usable(backend)


@pytest.mark.slow
def test_importing_the_plugin_imports_no_tensorboard():
    code = "import sys, uq_tracking_tensorboard as plugin; plugin.uq_backends()[0].status()"
    code += "; print('tensorboard' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_a_command_shows_the_runs(folder):
    assert TensorBoardStore(folder).show() == f"tensorboard --logdir {folder}"


@pytest.mark.slow
def test_the_example_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs" / "trackers.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page.partition("## TensorBoard")[2], flags=re.DOTALL)
    exec(compile(example, "trackers.md", "exec"), {})
    assert "mc-dropout" in capsys.readouterr().out
    (stored,) = FolderStore(Path("boards/mc-dropout")).runs()
    assert stored.run_id == "uq"
    assert Path("boards/mc-dropout/uq/uq_curve/calibration.csv").is_file()
