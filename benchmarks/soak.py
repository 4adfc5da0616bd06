"""Many calls into one run: what a call costs at the end, and what is left open. Arguments: STEPS FULL."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import uq_tracking as uq
from tests.faults.job import arrays
from uq_tracking.tracking.directory import DirectoryStore


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0


def main(steps: int = 10_000, full: int = 500) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = DirectoryStore(Path(folder)).create("soak")
        data, seconds = arrays(0), []
        for step in range(steps):
            start = time.perf_counter()
            uq.log(data[0] + step, data[1], data[2], run=run.uri, step=step)
            seconds.append(time.perf_counter() - start)
            if step in (steps // 20, steps - 1):
                report(f"after {step + 1} steps", seconds[-steps // 20 :])
        seconds.clear()
        for number in range(full):
            start = time.perf_counter()
            uq.log(data[0] + number, data[1], data[2], run=run.uri, figures=False)
            seconds.append(time.perf_counter() - start)
            if number in (full // 20, full - 1):
                report(f"after {number + 1} full calls", seconds[-full // 20 :])


def report(what: str, seconds: list[float]) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{what}: {1e3 * float(np.median(seconds)):.1f} ms a call, {memory:.0f} MB at most, "
        f"{threading.active_count()} threads, {open_files()} files open"
    )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
