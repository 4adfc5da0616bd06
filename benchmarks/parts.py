"""What one `uq.log` costs, part by part, and what importing the package costs."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

CODE = """
import time, sys
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""


def import_seconds(module: str) -> float:
    """Median of five fresh processes."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", CODE.format(module=module)], capture_output=True, text=True, check=True
        )
        for _ in range(5)
    ]
    return statistics.median(float(run.stdout) for run in runs)


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    """Median of a few calls, after a first one that pays for imports."""
    work()
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def cost_of_log(n: int = 10**6) -> dict[str, float]:
    """Seconds of each part of one call on n samples."""
    import uq_tracking as uq
    from uq_tracking import plugins
    from uq_tracking.evaluation.scoring import score
    from uq_tracking.settings import Settings
    from uq_tracking.statistics.collecting import build_statistics
    from uq_tracking.statistics.regression import REGRESSION

    rng = np.random.default_rng(0)
    std = rng.gamma(3, 1, n).astype(np.float32)
    mean = rng.normal(size=n).astype(np.float32)
    data = uq.Predictions((mean + std * rng.normal(size=n)).astype(np.float32), mean, std)
    statistics_ = build_statistics(REGRESSION, data)
    report = score(statistics_, Settings())

    def draw() -> None:
        for spec in plugins.figures().values():
            if all(curve in report.curves for curve in spec.needs):
                spec.draw(report)

    found = {
        "input checks": seconds(lambda: uq.Predictions(data.truth, data.mean, data.std)),
        "statistics": seconds(lambda: build_statistics(REGRESSION, data)),
        "scores and curves": seconds(lambda: score(build_statistics(REGRESSION, data), Settings())),
        "figures": seconds(draw),
    }
    found["scores and curves"] -= found["statistics"]
    with TemporaryDirectory() as folder:
        whole = seconds(lambda: uq.log(data, run=f"dir:{Path(folder) / 'runs'}", predictions=False), runs=1)
    found["writing to a folder"] = whole - sum(found.values())
    return found


def parts_page() -> str:
    """The section of docs/benchmarks.md."""
    lines = [
        "## What one `uq.log` costs\n",
        "One million samples, exact statistics.\n",
        "| part | seconds |\n|---|---|",
    ]
    lines += [f"| {part} | {value:.2f} |" for part, value in cost_of_log().items()]
    lines += ["\n## Import\n", "| module | seconds |\n|---|---|"]
    lines += [f"| `import {module}` | {import_seconds(module):.3f} |" for module in ("uq_tracking", "numpy")]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(parts_page())
