"""Many calls into one run: what a call costs at the end, and what is left open. Writes docs/evidence.md.

With arguments, STEPS FULL, it only prints.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import uq_tracking as uq
from benchmarks.pages import replace_part
from tests.faults.job import arrays
from uq_tracking.tracking.folder import FolderStore

HEAD = """
| calls of 400 samples to one folder | calls | CPU time per call, ms | memory, MB | threads | open files |
|---|---|---|---|---|---|
"""


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0


def main(steps: int = 10_000, full: int = 500) -> None:
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        run = FolderStore(Path(folder)).create("soak")
        data = arrays(0)
        lines += timed("step call", steps, lambda n: uq.log(data[0] + n, *data[1:], run=run.uri, step=n))
        lines += timed(
            "full call", full, lambda n: uq.log(data[0] + n, *data[1:], run=run.uri, figures=False)
        )
        print(f"{sum(f.stat().st_size for f in run.path.rglob('*') if f.is_file()) / 2**20:.0f} MB on disk")
    if len(sys.argv) == 1:
        replace_part("evidence.md", "soak", HEAD + "\n".join(lines))


def timed(kind: str, number: int, call: Callable[[int], object]) -> Iterator[str]:
    """A line of the table after a twentieth of the calls, and after all."""
    seconds: list[float] = []
    for n in range(number):
        start = time.thread_time()
        call(n)
        seconds.append(time.thread_time() - start)
        if n + 1 in (max(number // 20, 1), number):
            memory = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
            milliseconds = 1e3 * float(np.median(seconds[-max(number // 20, 1) :]))
            cells = f"{milliseconds:.1f} | {memory:.0f} | {threading.active_count()} | {open_files()}"
            print(line := f"| {kind} | {n + 1} | {cells} |", flush=True)
            yield line


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
