"""The demo itself: predict the terrain with every method, log each as a run, compare them.

Runs are opened the way that the users of each tracker do.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import uq_tracking as uq
from uq_tracking.demo.methods import FAST, Effort, choose, predict
from uq_tracking.demo.terrain import Terrain, load_terrain
from uq_tracking.errors import BackendError, SettingsError
from uq_tracking.report import Report
from uq_tracking.tracking.deadline import PATIENCE
from uq_tracking.tracking.names import PAGE_FILE
from uq_tracking.tracking.resolve import find_backend

SHOWN = ("n_merci", "ause_rmse", "crps", "nll", "coverage_95", "rmse")
"""Scores to print: these fit in 80 columns; the page has all."""

ALPHA = 0.9
"""Level of MeRCI used when the runs are rescored at the end."""


def run_demo(
    output: Path,
    backend: str = "mlflow",
    methods: Sequence[str] | None = None,
    seed: int = 0,
    fast: bool = False,
    console: Console | None = None,
) -> dict[str, Report]:
    """Complete real terrain with several uncertainty methods, log each as one run, and compare them.

    Parameters
    ----------
    output : Path
        Folder for the tracker's files, created if missing.
    backend : {"mlflow", "wandb", "dir"}
        Where the runs go: ``mlflow.db``, offline runs in ``wandb``, or folders in ``uq_runs``.
    methods : sequence of str, optional
        Names in `uq_tracking.demo.methods.METHODS`; all of them by default.
    seed : int
        Random seed: the same seed gives the same numbers.
    fast : bool
        A small crop and little training: seconds instead of a minute.
    console : rich.console.Console, optional
        Where to print; standard output by default.

    Returns
    -------
    dict of str to Report
        Each method's report, in the order of the runs, as first logged: with MeRCI at 0.95.

    Raises
    ------
    SettingsError
        The demo has no such method or backend.
    BackendError
        The tracker or scikit-learn is not installed, or the tracker failed.
    """
    chosen = choose(methods)
    tracker = tracker_named(backend, output)
    output.mkdir(parents=True, exist_ok=True)
    console = console or Console(emoji=False)
    terrain = load_terrain(seed, fast=fast)
    rows, columns = terrain.shape
    say(
        console,
        f"Terrain completion: {rows} x {columns} cells around Jacksboro, Tennessee. {len(terrain.heights):,} cells "
        "are measured; each method predicts the heights of the others and how far off it may be.",
    )
    effort = FAST if fast else Effort()
    with tracker.session():
        reports = {name: run_method(name, terrain, effort, seed, tracker, console) for name in chosen}
        start = time.perf_counter()
        summary = uq.rescore(tracker.address, alpha=ALPHA)
        summary.raise_failures()
        took = time.perf_counter() - start
        say(
            console,
            f"\n{len(summary.done)} runs rescored with alpha {ALPHA} from what they store, in {took:.1f} s\n",
        )
        comparison = uq.compare(tracker.address)
        page = output / PAGE_FILE
        comparison.to_html(page)
        console.print(comparison.to_rich(SHOWN))
        say(
            console,
            f"\nAll scores, curves and maps side by side, to open in a browser: {page.resolve().as_uri()}\n",
        )
        say(console, "\n  ".join(["To look at the runs:", *tracker.how_to_look()]))
    return reports


def run_method(
    name: str, terrain: Terrain, effort: Effort, seed: int, tracker: Directory, console: Console
) -> Report:
    """Predict with one method inside a run, and log the prediction in one line."""
    start = time.perf_counter()
    columns = TextColumn("{task.description:18}"), BarColumn(), TimeElapsedColumn()
    with tracker.run(name) as run:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(name, total=1.0)
            estimate = predict(
                name,
                terrain,
                effort=effort,
                seed=seed,
                advance=lambda share: bar.update(task, completed=share),
            )
        predicted = time.perf_counter()
        report: Report = uq.log(
            terrain.target,
            estimate.mean,
            estimate.std,
            run=run,
            method=name,
            unit="m",
            strict=True,  # a person is waiting, and wants to see failures
            deadline=PATIENCE,
        )
    logged = time.perf_counter()
    times = f"{predicted - start:5.1f} s to predict, {logged - predicted:4.1f} s to log"
    say(console, f"{name:18}{times}   RMSE {report.scores['rmse']:.1f} m")
    return report


def say(console: Console, text: str) -> None:
    """Print a line verbatim: no markup, no colored numbers, and no wrapping of text to be copied."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


EXPERIMENT = "uq-demo-terrain"
INSTALL = 'pip install "uq-tracking[demo]"'
PORT = 5000


class Directory:
    """A tracker that the demo can log to, with its files below one folder: plain folders in ``uq_runs``.

    Attributes
    ----------
    address : str
        Where ``uq.rescore`` and ``uq.compare`` find the runs while the session is open.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"dir:{folder / 'uq_runs'}"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Point the tracker to the folder, and restore it at the end."""
        yield

    @contextmanager
    def run(self, name: str) -> Iterator[str | None]:
        """Open a run and finish it; yield ``run`` for ``uq.log``: an address, or None for the active run."""
        yield self.address

    def how_to_look(self) -> list[str]:
        """Lines to print: the command that shows the runs, and the link to open."""
        return [f"ls {shlex.quote(str(self.folder / 'uq_runs'))}"]


class MLflow(Directory):
    """The sqlite store ``mlflow.db`` in the folder, with the artifacts in ``mlruns`` beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.address = f"mlflow:{EXPERIMENT}"
        self.uri = f"sqlite:///{(folder / 'mlflow.db').resolve()}"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Use the store, whatever tracking URI was set, and keep the steps of creating it quiet."""
        mlflow: Any = import_module("mlflow")
        before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
        loggers = [logging.getLogger(name) for name in ("mlflow", "alembic")]
        levels = [logger.level for logger in loggers]
        try:
            for logger in loggers:
                logger.setLevel(logging.WARNING)
            mlflow.set_tracking_uri(self.uri)
            found = mlflow.get_experiment_by_name(EXPERIMENT)
            artifacts = (self.folder / "mlruns").resolve().as_uri()
            self.experiment_id = str(
                mlflow.create_experiment(EXPERIMENT, artifact_location=artifacts)
                if found is None
                else found.experiment_id
            )
            yield
        finally:
            mlflow.set_tracking_uri(before)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)

    @contextmanager
    def run(self, name: str) -> Iterator[None]:
        """Open a run by ``mlflow.start_run``."""
        import mlflow

        with mlflow.start_run(run_name=name, experiment_id=self.experiment_id):
            yield

    def how_to_look(self) -> list[str]:
        """The command that serves the store and the link to the experiment's page."""
        command = f"{_program('mlflow')} ui --backend-store-uri {shlex.quote(self.uri)} --port {PORT}"
        view = "viewStateShareKey=uq-overview&compareRunsMode=CHART"
        page = f"#/experiments/{self.experiment_id}/runs?workflowType=machine_learning&{view}"
        return [command, f"http://127.0.0.1:{PORT}/{page}"]


class Wandb(Directory):
    """Offline runs of W&B below ``wandb`` in the folder; no account is needed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.address = f"wandb-offline:{folder / 'wandb'}"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep the artifacts beside the runs: W&B stages them below its data folder, unless the user names one."""
        own = "WANDB_DATA_DIR" not in os.environ
        os.environ.setdefault("WANDB_DATA_DIR", str((self.folder / "wandb").resolve()))
        try:
            yield
        finally:
            if own:
                del os.environ["WANDB_DATA_DIR"]

    @contextmanager
    def run(self, name: str) -> Iterator[None]:
        """Open a run by ``wandb.init``."""
        import wandb

        settings = wandb.Settings(silent=True, console="off")
        with wandb.init(
            project=EXPERIMENT, name=name, mode="offline", dir=str(self.folder), settings=settings
        ):
            yield

    def how_to_look(self) -> list[str]:
        """The command that uploads the runs to a W&B account."""
        return [f"{_program('wandb')} sync {shlex.quote(str(self.folder / 'wandb'))}/offline-run-*"]


TRACKERS: Mapping[str, type[Directory]] = {"mlflow": MLflow, "wandb": Wandb, "dir": Directory}


def tracker_named(name: str, folder: Path) -> Directory:
    """Return the tracker, once it and scikit-learn, which fits the Gaussian process, are known to be installed."""
    if name not in TRACKERS:
        raise SettingsError(f"the demo cannot log to {name!r}; choose from {', '.join(TRACKERS)}")
    try:
        import_module("sklearn")
    except ImportError as error:
        raise BackendError(f"the demo's models need scikit-learn; install it: {INSTALL}") from error
    status = find_backend(name).status()
    if not status.usable:
        cure = INSTALL if name == "mlflow" else status.hint
        raise BackendError(f"the demo logs to {name}, which is missing or too old; install it: {cure}")
    return TRACKERS[name](folder)


def _program(name: str) -> str:
    """Return what to type for a program in this environment: its name if the shell finds it, else its path."""
    own, found = Path(sys.executable).with_name(name), shutil.which(name)
    if not own.exists() or (found is not None and own.samefile(found)):
        return name
    return shlex.quote(str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own))
