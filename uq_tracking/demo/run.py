"""The demo itself: predict the terrain with every method, log each as a run, compare them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import uq_tracking as uq
from uq_tracking.demo.methods import FAST, Effort, choose, predict
from uq_tracking.demo.terrain import Terrain, load_terrain
from uq_tracking.demo.trackers import Directory, tracker_named
from uq_tracking.report import Report
from uq_tracking.tracking.names import PAGE_FILE

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
            **tracker.log_options,
        )
    logged = time.perf_counter()
    times = f"{predicted - start:5.1f} s to predict, {logged - predicted:4.1f} s to log"
    say(console, f"{name:18}{times}   RMSE {report.scores['rmse']:.1f} m")
    return report


def say(console: Console, text: str) -> None:
    """Print a line verbatim: no markup, no colored numbers, and no wrapping of text to be copied."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
