"""Comparing forty methods with groups, and finding one method among a thousand runs, in seconds of CPU.

python benchmarks/compare.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import uq_tracking as uq
from uq_tracking.runs.read import logged_runs

METHODS, SAMPLES, GROUPS, RUNS = 40, 20_000, 50, 1000


def fill(path: Path, runs: int, methods: int, samples: int, groups: int | None) -> None:
    """Log runs in turns of the methods on one test set."""
    rng = np.random.default_rng(0)
    spread, truth = rng.uniform(0.2, 2, samples), rng.normal(10, 3, samples)
    labels = None if groups is None else np.arange(samples) * groups // samples
    for k in range(runs):
        mean = truth + spread * rng.normal(size=samples)
        std = spread * (1 + 0.02 * (k % methods))
        name = f"method {k % methods:02}"
        uq.log(truth, mean, std, groups=labels, method=name, run=f"dir:{path}", figures=False, maps=False)


def cpu(what: str, function: Callable[[], object]) -> None:
    start = time.process_time()
    function()
    print(f"{what}: {time.process_time() - start:.2f} s of CPU")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder) / "few", Path(folder) / "many"
        fill(few, METHODS, METHODS, SAMPLES, GROUPS)
        address = f"dir:{few}"
        comparison = uq.compare(address, baseline="method 00")  # imports
        cpu(
            f"{METHODS} methods of {SAMPLES:,} samples in {GROUPS} groups compared",
            lambda: uq.compare(address, baseline="method 00"),
        )
        cpu("their page", comparison.to_html)
        print(f"size of the page: {len(comparison.to_html().encode()) / 1e6:.1f} MB")
        fill(many, RUNS, METHODS, 200, None)
        cpu(f"{RUNS} runs listed", lambda: list(logged_runs(f"dir:{many}")))
        cpu(
            f"one method of {RUNS} runs compared",
            lambda: uq.compare(f"dir:{many}", where="uq.method=method 07"),
        )
        cpu(f"{RUNS} runs compared", lambda: uq.compare(f"dir:{many}"))


if __name__ == "__main__":
    main()
