"""The demo itself: predict the terrain with every method, log each as a run, compare them."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

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
    check_installed(backend)
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
    with TRACKERS[backend](output) as (address, how_to_look):
        reports = {name: run_method(name, terrain, effort, seed, address, console) for name in chosen}
        start = time.perf_counter()
        summary = uq.rescore(address, alpha=ALPHA)
        summary.raise_failures()
        took = time.perf_counter() - start
        say(
            console,
            f"\n{len(summary.done)} runs rescored with alpha {ALPHA} from what they store, in {took:.1f} s\n",
        )
        comparison = uq.compare(address)
        page = output / PAGE_FILE
        comparison.to_html(page)
        console.print(comparison.to_rich(SHOWN))
        say(
            console,
            f"\nAll scores, curves and maps side by side, to open in a browser: {page.resolve().as_uri()}\n",
        )
        say(console, "\n  ".join(["To look at the runs:", *how_to_look]))
    return reports


def run_method(
    name: str, terrain: Terrain, effort: Effort, seed: int, address: str, console: Console
) -> Report:
    """Predict with one method, and log the prediction as a run in one line."""
    start = time.perf_counter()
    with console.status(name):
        estimate = predict(name, terrain, effort=effort, seed=seed)
    predicted = time.perf_counter()
    report: Report = uq.log(
        terrain.target,
        estimate.mean,
        estimate.std,
        run=address,
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

Session = AbstractContextManager[tuple[str, list[str]]]
"""An open tracker: the address of its runs, and lines that say how to look at them."""


@contextmanager
def folders(output: Path) -> Iterator[tuple[str, list[str]]]:
    """Log to plain folders in ``uq_runs``."""
    yield f"dir:{output / 'uq_runs'}", [f"ls {shlex.quote(str(output / 'uq_runs'))}"]


@contextmanager
def mlflow_store(output: Path) -> Iterator[tuple[str, list[str]]]:
    """Log to the sqlite store ``mlflow.db``, with the artifacts in ``mlruns`` beside it.

    A tracking URI that was set is used again at the end; the steps of creating the store are kept quiet.
    """
    mlflow: Any = import_module("mlflow")
    uri = f"sqlite:///{(output / 'mlflow.db').resolve()}"
    before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
    loggers = [logging.getLogger(name) for name in ("mlflow", "alembic")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.WARNING)
        mlflow.set_tracking_uri(uri)
        if mlflow.get_experiment_by_name(EXPERIMENT) is None:
            artifacts = (output / "mlruns").resolve().as_uri()
            mlflow.create_experiment(EXPERIMENT, artifact_location=artifacts)
        number = mlflow.get_experiment_by_name(EXPERIMENT).experiment_id
        view = "workflowType=machine_learning&viewStateShareKey=uq-overview&compareRunsMode=CHART"
        yield (
            f"mlflow:{EXPERIMENT}",
            [
                f"{_program('mlflow')} ui --backend-store-uri {shlex.quote(uri)} --port {PORT}",
                f"http://127.0.0.1:{PORT}/#/experiments/{number}/runs?{view}",
            ],
        )
    finally:
        mlflow.set_tracking_uri(before)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def offline_wandb(output: Path) -> Iterator[tuple[str, list[str]]]:
    """Log offline runs of W&B below ``wandb``; no account is needed.

    The artifacts are beside the runs: W&B stages them below its data folder, unless the user names one.
    """
    folder = output / "wandb"
    own = "WANDB_DATA_DIR" not in os.environ
    os.environ.setdefault("WANDB_DATA_DIR", str(folder.resolve()))
    try:
        look = f"{_program('wandb')} sync {shlex.quote(str(folder))}/offline-run-*"
        yield f"wandb-offline:{output}", [look]
    finally:
        if own:
            del os.environ["WANDB_DATA_DIR"]


TRACKERS: Mapping[str, Callable[[Path], Session]] = {
    "mlflow": mlflow_store,
    "wandb": offline_wandb,
    "dir": folders,
}


def check_installed(tracker: str) -> None:
    """Refuse an unknown tracker; check that it and scikit-learn, which fits the Gaussian process, are installed."""
    if tracker not in TRACKERS:
        raise SettingsError(f"the demo cannot log to {tracker!r}; choose from {', '.join(TRACKERS)}")
    try:
        import_module("sklearn")
    except ImportError as error:
        raise BackendError(f"the demo's models need scikit-learn; install it: {INSTALL}") from error
    status = find_backend(tracker).status()
    if not status.usable:
        cure = INSTALL if tracker == "mlflow" else status.hint
        raise BackendError(f"the demo logs to {tracker}, which is missing or too old; install it: {cure}")


def _program(name: str) -> str:
    """Return what to type for a program in this environment: its name if the shell finds it, else its path."""
    own, found = Path(sys.executable).with_name(name), shutil.which(name)
    if not own.exists() or (found is not None and own.samefile(found)):
        return name
    return shlex.quote(str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own))
