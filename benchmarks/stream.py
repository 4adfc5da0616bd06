"""Stream samples, made block by block, through an Accumulator: time a sample, and memory that stays flat.

    python benchmarks/stream.py 1e9

Prints a line per tenth of the stream: samples so far, nanoseconds a sample (of counting alone, and with making
the samples), and the process's memory beyond what it had once numpy was loaded.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import uq_tracking as uq

BLOCK = 1 << 20


def memory() -> int:
    """Bytes this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def peak() -> int:
    """The most it ever had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def make(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A block of samples: stds from a gamma distribution, errors that fit them."""
    std = rng.standard_gamma(2, size, dtype=np.float32) + np.float32(0.01)
    mean = rng.standard_normal(size, dtype=np.float32)
    return mean + std * rng.standard_normal(size, dtype=np.float32), mean, std


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("samples", type=float, nargs="?", default=1e8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    total, rng, before = int(options.samples), np.random.default_rng(options.seed), memory()
    accumulator = uq.Accumulator()
    start, counting, done, shown = time.perf_counter(), 0.0, 0, 0
    print(f"{'samples':>15} {'ns counting':>12} {'ns in all':>12} {'extra MB':>9}")
    while done < total:
        block = make(rng, min(BLOCK, total - done))
        began = time.perf_counter()
        accumulator.update(*block)
        counting += time.perf_counter() - began
        done += len(block[0])
        if done * 10 // total > shown:
            shown = done * 10 // total
            passed = time.perf_counter() - start
            extra = (memory() - before) / 2**20
            print(f"{done:15,} {counting / done * 1e9:12.1f} {passed / done * 1e9:12.1f} {extra:9.1f}")
            sys.stdout.flush()
    began = time.perf_counter()
    report = accumulator.compute()
    print(
        f"compute: {time.perf_counter() - began:.2f} s; peak {(peak() - before) / 2**20:.1f} MB beyond the start"
    )
    print({key: report.scores[key] for key in ("nll", "crps", "ause_rmse", "ence")}, report.counts["n"])


if __name__ == "__main__":
    main()
