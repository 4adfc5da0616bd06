"""Many pixels of many classes, and a thousand classes, beside torchmetrics: CPU time and memory of one process each.

    python benchmarks/classes.py JOB SAMPLES CLASSES

streams blocks that are made beforehand, so that only the counting is timed, in one thread on one core, and prints the
CPU seconds with the report (or the result), the memory beyond that of the blocks, and the expected calibration error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from stream import memory, peak

BLOCK_NUMBERS = 1 << 21
BLOCKS = 8
"""Blocks that differ; a stream repeats them."""
SIZES = {(10**6, 20): True, (10**7, 20): True, (10**8, 20): False, (10**6, 1000): False}
"""Pixels and classes, and whether they are measured without --full."""
JOBS = {
    "ours": "uq_tracking, everything, `Accumulator()`",
    "ece": 'the same error alone, `Accumulator(metrics=["ece"])`',
    "top": "torchmetrics, `MulticlassCalibrationError`",
    "each": "torchmetrics, `BinaryCalibrationError` of each class",
}
LARGEST = {"each": 10**6}
"""Samples beyond which a job does not fit into memory."""


def blocks(classes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Labels drawn from the probabilities, float32."""
    made = []
    for seed in range(BLOCKS):
        rng = np.random.default_rng(seed)
        logits = 2 * rng.standard_normal((BLOCK_NUMBERS // classes, classes), dtype=np.float32)
        probs = np.exp(logits - logits.max(axis=1, keepdims=True))
        probs /= probs.sum(axis=1, keepdims=True)
        labels = (probs.cumsum(axis=1) > rng.random((len(probs), 1)) * 0.999999).argmax(axis=1)
        made.append((labels, probs))
    return made


def ours(classes: int, **options: Any) -> tuple[Callable[[Any, Any], None], Callable[[], float]]:
    """Everything a report holds."""
    import uq_tracking as uq

    stream = uq.Accumulator(**options)
    return lambda labels, probs: stream.update(labels, probs=probs), lambda: stream.compute().scores["ece"]


def ece(classes: int) -> tuple[Callable[[Any, Any], None], Callable[[], float]]:
    """What torchmetrics computes, and nothing else."""
    return ours(classes, metrics=["ece"])


def top(classes: int) -> tuple[Callable[[Any, Any], None], Callable[[], float]]:
    """The calibration error of the top label alone."""
    import torch
    from torchmetrics.classification import MulticlassCalibrationError

    torch.set_num_threads(1)
    error = MulticlassCalibrationError(classes, n_bins=10, validate_args=False)
    return (
        lambda labels, probs: error.update(torch.from_numpy(probs), torch.from_numpy(labels)),
        lambda: float(error.compute()),
    )


def each(classes: int) -> tuple[Callable[[Any, Any], None], Callable[[], float]]:
    """The calibration error of each class against the rest."""
    import torch
    from torchmetrics.classification import BinaryCalibrationError

    torch.set_num_threads(1)
    errors = [BinaryCalibrationError(n_bins=10, validate_args=False) for _ in range(classes)]

    def update(labels: Any, probs: Any) -> None:
        for place, error in enumerate(errors):
            error.update(torch.from_numpy(probs[:, place].copy()), torch.from_numpy(labels == place))

    return update, lambda: float(np.mean([float(error.compute()) for error in errors]))


def run(job: str, samples: int, classes: int) -> dict[str, float]:
    """Measure in this process."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    made = blocks(classes)
    update, compute = globals()[job](classes)
    update(*made[0])
    compute()
    update, compute = globals()[job](classes)
    before, done, k, start = memory(), 0, 0, time.process_time()
    while done < samples:
        labels, probs = made[k % BLOCKS]
        size = min(len(labels), samples - done)
        update(labels[:size], probs[:size])
        done, k = done + size, k + 1
    found = compute()
    return {
        "seconds": time.process_time() - start,
        "extra_mb": max(peak() - before, 0) / 2**20,
        "value": found,
    }


def measured(job: str, samples: int, classes: int) -> dict[str, float]:
    """The same in a fresh process."""
    command = [sys.executable, __file__, job, str(samples), str(classes)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    return dict(json.loads(found.stdout.splitlines()[-1]))


def classes_page(*, full: bool) -> str:
    """A section of docs/benchmarks.md."""
    lines = [
        "## Classes\n",
        "Probabilities in float32, streamed in blocks of 2^21 numbers: CPU seconds of one core with the result, the "
        "ratio to torchmetrics' error of the top label in the same run, and memory beyond that of the blocks. "
        "torchmetrics keeps every confidence until the end; a report of everything holds all scores, the table of "
        "classes and the verdict.\n",
        "| samples x classes | " + " | ".join(JOBS.values()) + " |",
        "|---|" + "---|" * len(JOBS),
    ]
    for (samples, classes), is_short in SIZES.items():
        if full or is_short:
            jobs = [job for job in JOBS if samples <= LARGEST.get(job, samples)]
            found = {job: measured(job, samples, classes) for job in jobs}
            cells = ["-" if job not in found else _cell(found[job], found["top"]) for job in JOBS]
            size = f"10^{len(str(samples)) - 1} x {classes}"
            lines.append(f"| {size} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(found: dict[str, float], peer: dict[str, float]) -> str:
    """Seconds, their ratio to the peer's, and memory."""
    ratio = found["seconds"] / peer["seconds"]
    return f"{found['seconds']:.3g} s ({ratio:.2g}x), {found['extra_mb']:.0f} MB"


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(float(sys.argv[2])), int(sys.argv[3]))))
