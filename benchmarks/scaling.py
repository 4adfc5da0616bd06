"""Counting on one core and on several: threads over arrays in memory, and processes that each stream a share.

    python benchmarks/scaling.py

Every process makes its samples, block by block, as a data loader would, counts them in an `Accumulator` of its own,
and the accumulators are merged at the end; the time is that from the common start to the merged one, without making
the samples.
"""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from multiprocessing import get_context
from typing import Any

from jobs import data

import uq_tracking as uq
from uq_tracking.statistics.collecting import build_statistics
from uq_tracking.statistics.regression import REGRESSION

SAMPLES = 2 * 10**7
BLOCK = 1 << 20
RUNS = 3


def share(samples: int) -> tuple[float, Any]:
    """Seconds of counting a share, and what was counted."""
    y, mean, std = data(BLOCK)
    accumulator, seconds = uq.Accumulator(), 0.0
    for done in range(0, samples, BLOCK):
        part = slice(0, min(BLOCK, samples - done))
        start = time.perf_counter()
        accumulator.update(y[part], mean[part], std[part])
        seconds += time.perf_counter() - start
    return seconds, accumulator


def merged(one: Any, other: Any) -> Any:
    one.merge(other)
    return one


def processes(workers: int) -> float:
    """Seconds until ``workers`` processes have counted all samples and their counts are one."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(share, [1000] * workers))  # imports are not what is measured
        found = list(pool.map(share, [SAMPLES // workers] * workers))
    start = time.perf_counter()
    reduce(merged, (accumulator for _, accumulator in found))
    return max(seconds for seconds, _ in found) + time.perf_counter() - start


def threads(workers: int) -> float:
    """Seconds in which ``workers`` threads, on as many cores, count arrays in memory."""
    predictions = uq.Predictions(*data(SAMPLES))
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:workers])
    try:
        start = time.perf_counter()
        build_statistics(REGRESSION, predictions, "sketch")
        return time.perf_counter() - start
    finally:
        os.sched_setaffinity(0, cores)


def scaling_page() -> str:
    """The section of docs/benchmarks.md."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    counts = [n for n in (1, 2, 4, 8, 16) if n <= cores]
    lines = [
        "## Scaling over workers\n",
        f"{SAMPLES:,} samples, on {cores} cores: nanoseconds per sample until the sketch of all samples is "
        "complete, and the speedup over one worker.\n",
        "| workers | processes, one Accumulator each, merged | threads, arrays in memory |\n|---|---|---|",
    ]
    first: dict[str, float] = {}
    for count in counts:
        cells = []
        for name, way in (("processes", processes), ("threads", threads)):
            seconds = statistics.median(way(count) for _ in range(RUNS))
            first.setdefault(name, seconds)
            cells.append(f"{seconds / SAMPLES * 1e9:.0f} ns, {first[name] / seconds:.2f} x")
        lines.append(f"| {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(scaling_page())
