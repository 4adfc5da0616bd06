import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import mlflow
import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

import uq_tracking as uq
from uq_tracking.demo.methods import METHODS
from uq_tracking.demo.run import ALPHA, EXPERIMENT, run_demo
from uq_tracking.demo.terrain import load_terrain
from uq_tracking.errors import BackendError, SettingsError
from uq_tracking.evaluation.scoring import score
from uq_tracking.formatting import COLORS
from uq_tracking.settings import Settings
from uq_tracking.tracking.backend import BackendStatus
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.resolve import open_store

from .cached import fast_estimate, fast_terrain

TWO = ("multi-epochs", "gaussian-process")
EXAMPLE = Path(__file__).parents[2] / "examples" / "gallery" / "terrain.py"


def demo(folder, **options):
    """Run the fast demo; return the reports and what it printed."""
    console = Console(width=100)
    with console.capture() as capture:
        reports = run_demo(folder, fast=True, console=console, **options)
    return reports, capture.get()


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The whole fast demo in MLflow's default store, with all that reached the terminal."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, *demo(folder)


@pytest.fixture(scope="module")
def in_folders(tmp_path_factory):
    """Two methods in folders, with all that reached the terminal."""
    folder = tmp_path_factory.mktemp("folders")
    return folder, *demo(folder, backend="dir", methods=TWO)


@pytest.fixture
def runs(logged):
    client = mlflow.MlflowClient(f"sqlite:///{logged[0] / 'mlflow.db'}")
    (experiment,) = (item for item in client.search_experiments() if item.name == EXPERIMENT)
    return client, client.search_runs([experiment.experiment_id], order_by=["attributes.start_time"])


def artifacts(client, run, folder=None):
    return {item.path for item in client.list_artifacts(run.info.run_id, folder)}


@pytest.mark.slow
def test_every_method_is_one_finished_run(runs):
    _, found = runs
    assert [run.info.run_name for run in found] == list(METHODS)
    assert [run.data.tags["uq.method"] for run in found] == list(METHODS)
    assert {run.info.status for run in found} == {"FINISHED"}


@pytest.mark.slow
def test_runs_show_the_headline_and_hold_every_score_that_is_defined(runs, logged):
    client, _ = runs
    _, reports, _ = logged
    for run in runs[1]:
        report = reports[run.info.run_name]
        shown = {key: value for key, value in run.data.metrics.items() if key.startswith("uq")}
        assert {key for key in shown if not key.startswith("uq_curve/")} == logged_scores(report).keys()
        metrics = uq.Report.from_json(
            Path(client.download_artifacts(run.info.run_id, "uq/report.json"))
        ).scores
        assert metrics.keys() == report.scores.keys()
        assert len(metrics) > 40
        again = score(report.statistics, Settings(alpha=ALPHA)).scores
        assert again["merci"] != report.scores["merci"]
        of_alpha = {key: again[key] for key in ("trimmed_mae", "merci", "n_merci")}
        wanted = {**report.scores, **of_alpha}
        assert_allclose([metrics[key] for key in wanted], list(wanted.values()), rtol=1e-12)
        assert run.data.tags["uq.rescored"]


def test_runs_hold_curves_figures_a_map_and_files(runs):
    client, found = runs
    for run in found:
        assert sum(key.startswith("uq_curve/") for key in run.data.metrics) >= 5
        assert {"uq_map_0.png", "uq_reliability.png", "uq_sparsification.png"} <= artifacts(client, run)
        files = {"uq/report.json", "uq/statistics.npz", "uq/predictions.npz"}
        assert files <= artifacts(client, run, "uq")


def test_measured_cells_are_left_out_of_the_score(logged):
    terrain = load_terrain(fast=True)
    for report in logged[1].values():
        assert report.counts["n"] == (~terrain.measured).sum()
        assert report.counts["n_missing"] == terrain.measured.sum()
        assert report.settings["unit"] == "m"


def test_every_method_has_a_color_of_its_own(runs):
    colors = [run.data.tags["mlflow.runColor"] for run in runs[1]]
    assert set(colors) <= set(COLORS)
    assert len(set(colors)) == len(METHODS)


def test_output_is_what_a_person_wants_to_read(logged):
    folder, _, text = logged
    for name in METHODS:
        assert re.search(rf"^{name} .*s to predict.*RMSE \d+\.\d m$", text, re.MULTILINE)
    assert "n_merci" in text
    assert (
        max(len(line) for line in text.partition("7 methods")[2].partition("All scores")[0].splitlines())
        <= 100
    )
    for noise in ("INFO", "WARNING", "alembic", "Traceback"):
        assert noise not in text
    assert f"sqlite:///{folder / 'mlflow.db'}" in text


def test_a_page_compares_all_methods(logged):
    folder, _, text = logged
    page = folder / "uq_comparison.html"
    assert page.resolve().as_uri() in text
    content = page.read_text(encoding="utf-8")
    assert all(f">{name}</span>" in content for name in METHODS)
    assert content.count("data:image/png;base64,") == 1 + 3 * len(METHODS)


def test_the_command_can_be_typed_and_the_link_names_the_experiment(logged, runs):
    text = logged[2]
    command, link = (line.strip() for line in text.splitlines()[-2:])
    program, *arguments = shlex.split(command)
    assert shutil.which(program)
    assert arguments[:2] == ["ui", "--backend-store-uri"]
    port = arguments[arguments.index("--port") + 1]
    assert link.startswith(f"http://127.0.0.1:{port}/#/experiments/{runs[1][0].info.experiment_id}/runs?")


@pytest.mark.slow
def test_a_second_demo_in_the_same_folder_adds_its_runs_and_the_process_is_left_as_it_was(tmp_path):
    for _ in range(2):
        demo(tmp_path, methods=["multi-epochs"])
        assert not mlflow.is_tracking_uri_set()
        assert mlflow.active_run() is None
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name(EXPERIMENT)
    assert len(client.search_runs([experiment.experiment_id])) == 2


@pytest.mark.slow
def test_folders_hold_the_same_numbers_as_mlflow(in_folders, logged):
    folder, reports, text = in_folders
    store, _ = open_store(f"dir:{folder / 'uq_runs'}")
    stored = {run.tags["uq.method"]: run for run in store.runs()}
    assert list(stored) == list(TWO)
    for name in TWO:
        assert reports[name].scores == logged[1][name].scores
        again = score(reports[name].statistics, Settings(alpha=ALPHA)).scores
        assert stored[name].scalars["uq/n_merci"] == pytest.approx(again["n_merci"], rel=1e-12)
    assert str(folder / "uq_runs") in text


@pytest.mark.slow
def test_stored_predictions_are_those_of_the_method(in_folders):
    (path,) = in_folders[0].glob("uq_runs/*multi-epochs*/uq/predictions.npz")
    terrain = load_terrain(fast=True)
    with np.load(path) as stored:
        assert terrain.shape in {array.shape for array in stored.values()}
        assert any(
            np.array_equal(array, terrain.target, equal_nan=True) for array in stored.values() if array.ndim
        )


@pytest.mark.usefixtures("wandb_stopped")
@pytest.mark.slow
def test_wandb_runs_are_offline_and_all_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    reports, text = demo(tmp_path / "out", backend="wandb", methods=TWO)
    store, _ = open_store(f"wandb-offline:{tmp_path / 'out' / 'wandb'}")
    stored = {run.tags["uq.method"]: run for run in store.runs()}
    assert {run.status for run in stored.values()} == {"finished"}
    for name in TWO:
        assert_allclose(stored[name].scalars["uq/nll"], reports[name].scores["nll"], rtol=1e-12)
        assert "uq/predictions.npz" in store.files(stored[name].run_id)
    assert "wandb sync" in text
    assert not list((tmp_path / "home").rglob("*.npz"))
    assert "WANDB_DATA_DIR" not in os.environ


@pytest.mark.slow
def test_same_seed_same_scores_other_seed_other_scores(tmp_path, logged, in_folders):
    first, second = (reports["multi-epochs"].scores for _, reports, _ in (logged, in_folders))
    other = demo(tmp_path, seed=6, backend="dir", methods=["multi-epochs"])[0]["multi-epochs"].scores
    assert first == second
    assert first["rmse"] != other["rmse"]


def test_unknown_backend_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(SettingsError, match="cannot log to 'neptune'; choose from mlflow, wandb, dir"):
        run_demo(tmp_path, backend="neptune")


def test_unknown_method_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(SettingsError, match="no method is called boosting"):
        run_demo(tmp_path / "new", methods=["boosting"])
    assert not (tmp_path / "new").exists()


def test_missing_scikit_learn_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(BackendError, match=r"scikit-learn; install it: pip install \"uq-tracking\[demo\]\""):
        run_demo(tmp_path)


def test_missing_mlflow_says_how_to_install_it(tmp_path, monkeypatch):
    missing = BackendStatus("mlflow", usable=False, hint="pip install 'uq-tracking[mlflow]'")
    monkeypatch.setattr("uq_tracking_mlflow.backend.MLflowBackend.status", lambda self: missing)
    with pytest.raises(BackendError, match=r"mlflow.*install it: pip install \"uq-tracking\[demo\]\""):
        run_demo(tmp_path)


@pytest.mark.slow
def test_example_script_logs_two_runs(own_sqlite_uri, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mlflow.tracking.fluent._active_experiment_id", None)
    monkeypatch.setattr("uq_tracking.demo.terrain.load_terrain", fast_terrain)
    monkeypatch.setattr("uq_tracking.demo.methods.predict", lambda name, terrain: fast_estimate(name))
    # MLflow keeps the connection of a relative address
    code = EXAMPLE.read_text().replace("sqlite:///mlflow.db", own_sqlite_uri)
    try:
        exec(compile(code, str(EXAMPLE), "exec"), {"__name__": "__main__"})
    finally:
        mlflow.set_tracking_uri(None)
        os.environ.pop("MLFLOW_EXPERIMENT_ID", None)  # set_experiment leaves it for child processes
    printed = capsys.readouterr().out
    for name in TWO:
        rmse = np.sqrt(np.nanmean(np.square(fast_estimate(name).mean - fast_terrain().target)))
        assert re.search(rf"^{name}: RMSE {rmse:.1f} m, n-MeRCI \d\.\d\d$", printed, re.MULTILINE)
    client = mlflow.MlflowClient(own_sqlite_uri)
    runs = client.search_runs([client.get_experiment_by_name("terrain").experiment_id])
    assert {run.data.tags["uq.method"] for run in runs} == set(TWO)
