"""Rescoring many MLflow runs on sqlite, beside what the tracker alone takes to find, read and write them.

The baseline is what no rescoring can do without: one search, and for each run the download of its report and of its
statistics and one batch with as many scores and tags. Both are repeated, in turn, on experiments of their own.

    python benchmarks/rescore.py --runs 1000
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import uq_tracking as uq
from uq_tracking.runs import RescoreOptions

ALPHAS = (0.9, 0.8, 0.85)


def fill(name: str, runs: int, samples: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(runs):
        std = rng.uniform(0.1, 1.0, samples)
        target = rng.normal(size=samples)
        mean = target + std * rng.standard_normal(samples)
        uq.log(
            target, mean, std, run=f"mlflow:{name}", method="m", figures=False, predictions=False, strict=True
        )


def baseline(name: str) -> None:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, RunTag

    client = MlflowClient()
    experiment = client.get_experiment_by_name(name).experiment_id
    for run in client.search_runs([experiment], max_results=50_000):
        run_id = run.info.run_id
        with tempfile.TemporaryDirectory() as folder:
            for file in ("uq/report.json", "uq/statistics.npz"):
                Path(client.download_artifacts(run_id, file, folder)).read_bytes()
        now = int(time.time() * 1000)
        scores = {key: value for key, value in run.data.metrics.items() if key.startswith("uq/")}
        metrics = [Metric(key, value + 1e-9, now, 0) for key, value in scores.items()]
        client.log_batch(run_id, metrics=metrics, tags=[RunTag("baseline", str(now))])


def rescore(name: str, alpha: float, workers: int) -> None:
    summary = uq.rescore(f"mlflow:{name}", alpha=alpha, options=RescoreOptions(workers=workers))
    summary.raise_failures()
    assert not summary.skipped, str(summary)


def seconds(action: Callable[[], None]) -> tuple[float, float]:
    """Wall time and processor time."""
    start, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - start, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlflow.db"
        for name in ("theirs", "ours"):
            fill(name, options.runs, options.samples)
        ratios = []
        for alpha in ALPHAS:
            theirs = seconds(lambda: baseline("theirs"))
            ours = seconds(lambda alpha=alpha: rescore("ours", alpha, options.workers))
            ratios.append((ours[0] / theirs[0], ours[1] / theirs[1]))
            print(
                f"{options.runs} runs: tracker alone {theirs[0]:.1f} s ({theirs[1]:.1f} s of processor), "
                f"rescored in {ours[0]:.1f} s ({ours[1]:.1f} s): {ours[0] / theirs[0]:.2f} x, "
                f"processor {ours[1] / theirs[1]:.2f} x",
                flush=True,
            )
        wall, cpu = (statistics.median(column) for column in zip(*ratios, strict=True))
        print(f"median {wall:.2f} x, processor {cpu:.2f} x")


if __name__ == "__main__":
    main()
