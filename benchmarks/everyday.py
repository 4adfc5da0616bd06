"""The calls that people wait for every day, beside the tracker's own cost of the same, in one process.

    python benchmarks/everyday.py

MLflow on sqlite. Each pair is measured in turn, so that both see the same machine; medians.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from jobs import data, in_process
from rescore import baseline, fill, rescore

import uq_tracking as uq

SIDE = 1000
"""Pixels on a side of the map; its square is the number of samples."""
RUNS = 100
"""Logged runs that are rescored and compared."""


def seconds(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median seconds of ours, and its median ratio to theirs in the same round; the first round does not count."""
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds + 1)][1:]
    return statistics.median(one for one, _ in pairs), statistics.median(one / other for one, other in pairs)


@contextmanager
def store() -> Iterator[None]:
    """A new MLflow store on sqlite, in a folder of its own."""
    import mlflow

    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        try:
            yield
        finally:
            mlflow.set_tracking_uri(None)
            os.chdir(before)


def small_suite() -> float:
    """Milliseconds of the whole suite on 1000 samples, without curves, as ``step=`` needs it."""
    y, mean, std = data(1000)
    uq.evaluate(y, mean, std)
    return statistics.median(seconds(lambda: uq.evaluate(y, mean, std)) for _ in range(50)) * 1e3


def step(samples: int = 10**4) -> tuple[float, float]:
    """``uq.log(step=)`` beside one batch of as many numbers."""
    import mlflow
    from mlflow.entities import Metric

    y, mean, std = data(samples)
    at = iter(range(10**6))
    with store(), mlflow.start_run() as ours, mlflow.start_run(nested=True) as theirs:
        client = mlflow.MlflowClient()
        uq.log(y, mean, std, run=ours, step=next(at))
        names = list(client.get_run(ours.info.run_id).data.metrics)

        def batch() -> None:
            moment, place = int(time.time() * 1000), next(at)
            points = [Metric(name, 0.5, moment, place) for name in names]
            client.log_batch(theirs.info.run_id, metrics=points)

        return ratio(lambda: uq.log(y, mean, std, run=ours, step=next(at)), batch, 30)


def whole_log() -> tuple[float, float]:
    """``uq.log`` of a map of 10^6 pixels with every figure, in argsorts of as many float32."""
    import mlflow

    y, mean, std = (array.reshape(SIDE, SIDE) for array in data(SIDE**2))
    flat = std.ravel()
    with store():

        def ours() -> None:
            with mlflow.start_run():
                uq.log(y, mean, std, method="m")

        return ratio(ours, lambda: np.argsort(flat), 5)


def rescored() -> tuple[float, float]:
    """Rescoring beside what the tracker takes to find, read and write the same runs."""
    with store():
        for name in ("theirs", "ours"):
            fill(name, RUNS, 1000)
        alphas = iter((0.9, 0.8, 0.85, 0.7))
        return ratio(lambda: rescore("ours", next(alphas), 1), lambda: baseline("theirs"), 3)


def compared() -> tuple[float, float]:
    """Comparison beside one search and the download of each run's report."""
    import mlflow

    def theirs() -> None:
        client = mlflow.MlflowClient()
        experiment = client.get_experiment_by_name("ours").experiment_id
        for run in client.search_runs([experiment], max_results=50_000):
            with tempfile.TemporaryDirectory() as folder:
                client.download_artifacts(run.info.run_id, "uq/report.json", folder)

    with store():
        fill("ours", RUNS, 1000)
        return ratio(lambda: uq.compare("mlflow:ours"), theirs, 3)


WHOLE = "`uq.log` with a map of 10^6 pixels and all figures"
ROWS: tuple[tuple[str, str, Callable[[], tuple[float, float]], str, float | None], ...] = (
    ("step", "`uq.log(step=)`, 10^4 samples", step, "the tracker's own batch", 1.3),
    ("step_10", "`uq.log(step=)`, 10 samples", partial(step, 10), "the tracker's own batch", None),
    ("log", WHOLE, whole_log, "`numpy.argsort` of 10^6 float32", 12),
    ("rescore", f"`uq.rescore`, {RUNS} runs", rescored, "the tracker's own calls", 1.2),
    ("compare", f"`uq.compare`, {RUNS} runs", compared, "the tracker's own calls", 1.2),
)


REST = """A goal is what the call may cost at most. Beyond the tracker's batch, a `step=` call checks, sorts and
scores the samples, and hands the batch to a thread that keeps the deadline; the call with 10 samples
shows what is left when there is next to nothing to score. Of the time for a map, most goes into figures
and files ([parts](#what-one-uqlog-costs))."""


def measure() -> dict[str, dict[str, float]]:
    """Seconds and ratio of every call."""
    found = {"suite_1000": {"seconds": small_suite() / 1e3}}
    for key, label, work, _, _ in ROWS:
        took, times = work()
        found[key] = {"seconds": took, "ratio": times}
        print(f"{label:60} {took:8.4f} s {times:8.2f} x", flush=True)
    plain = statistics.median(in_process("np_argsort_plain", SIDE**2)["seconds"] for _ in range(5))
    found["log_plain"] = {**found["log"], "ratio": found["log"]["seconds"] / plain}
    return found


def everyday_page(found: dict[str, dict[str, float]]) -> str:
    """The section of docs/benchmarks.md."""
    small = found["suite_1000"]["seconds"]
    lines = [
        "## Everyday calls\n",
        "MLflow on sqlite. Each call and its reference run in turn, in one process.\n",
        "| call | seconds | ratio | reference | goal |\n|---|---|---|---|---|",
        f"| `uq.evaluate`, 1000 samples | {small:.4f} | | | {_goal(0.0025, small)} |",
    ]
    plain = ("log_plain", WHOLE, whole_log, "the same, without SIMD", 12)
    missed = []
    for key, label, _, of, goal in (*ROWS[:3], plain, *ROWS[3:]):
        took, times = found[key]["seconds"], found[key]["ratio"]
        lines.append(f"| {label} | {took:.3g} | {times:.2f} | {of} | {_goal(goal, times)} |")
        if goal is not None and times > goal:
            missed.append(f"{label}, takes {times:.2g} times {of}, not {goal:g}")
    lines.append(f"\n**Goals missed:** {'; '.join(missed)}.\n" if missed else "\nAll goals are reached.\n")
    lines.append(REST)
    return "\n".join(lines) + "\n"


def _goal(goal: float | None, found: float) -> str:
    return "" if goal is None else f"{goal:g}: {'reached' if found <= goal else '**missed**'}"


if __name__ == "__main__":
    print(everyday_page(measure()))
