"""Draws, 10^6 samples of 50: time and memory beside the ensemble CRPS of other libraries.

python benchmarks/draws.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from jobs import peak, start_peak

import uq_tracking as uq

SAMPLES, DRAWS = 10**6, 50


def measure(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds, and megabytes at peak beyond what was there before."""
    before, start = start_peak(), time.perf_counter()
    kept = work()
    seconds, extra = time.perf_counter() - start, (peak() - before) / 1e6
    del kept
    return seconds, extra


def draws_page() -> str:
    """The section of docs/benchmarks.md."""
    import properscoring
    import scoringrules

    rng = np.random.default_rng(0)
    y, draws = rng.normal(size=SAMPLES), rng.normal(size=(DRAWS, SAMPLES))
    last = np.ascontiguousarray(draws.T)  # the layout that the others take
    jobs: dict[str, Callable[[], Any]] = {
        "`Predictions.from_samples`: moments, PIT, two CRPS": lambda: uq.Predictions.from_samples(y, draws),
        "scoringrules `crps_ensemble`, numpy": lambda: scoringrules.crps_ensemble(y, last),
        "properscoring `crps_ensemble`, numpy, 10^4 samples only": (  # it holds every pair of draws
            lambda: properscoring.crps_ensemble(y[:10_000], last[:10_000])
        ),
    }
    scoringrules.crps_ensemble(y[:100], last[:100])  # what a first call costs is not the job's
    yard, _ = measure(lambda: np.sort(last, axis=1))
    lines = [
        "## Draws\n",
        f"10^6 samples of {DRAWS} draws in float64, 400 MB; one process, each job once. The column *sorts* is the "
        "time relative to sorting the draws along their axis.\n",
        "| job | seconds | sorts | extra memory |\n|---|---|---|---|",
    ]
    for label, work in jobs.items():
        seconds, extra = measure(work)
        lines.append(f"| {label} | {seconds:.2g} | {seconds / yard:.1f} | {extra:.0f} MB |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(draws_page())
