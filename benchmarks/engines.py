"""Score a table of many rows in one process, in two, in dask and in Spark: time and memory a row, and equal scores.

    python benchmarks/engines.py 1e8

Writes parquet files of 2^20 rows (target, mean, std, group) to a folder, and removes them. Every engine runs in a
process of its own, with two workers; memory is the most that it and its children hold, in all. Prints the table of
docs/evidence.md, and stops if an engine counted other samples.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import uq_tracking as uq

BLOCK = 1 << 20
COLUMNS = {"y_true": "y", "y_pred": "mu", "y_std": "sigma", "groups": "scene"}
NAMES = {
    "one": "one process",
    "two": "two processes (`concurrent.futures`)",
    "dask": "dask, two processes",
    "spark": "Spark, `local[2]`",
}


def write(folder: Path, rows: int) -> None:
    """Write the table, in two processes; groups are 64 scenes."""
    sizes = [min(BLOCK, rows - start) for start in range(0, rows, BLOCK)]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(write_one, [folder] * len(sizes), range(len(sizes)), sizes))


def write_one(folder: Path, number: int, size: int) -> None:
    """Write one file of the table."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(number)
    std = rng.standard_gamma(2, size) + 0.01
    mean = rng.standard_normal(size)
    columns = {
        "y": mean + std * rng.standard_normal(size),
        "mu": mean,
        "sigma": std,
        "scene": rng.integers(0, 64, size),
    }
    parquet.write_table(pa.table(columns), folder / f"{number:05}.parquet", compression="none")


def count(files: list[Path]) -> uq.Accumulator:
    """Count files one after another."""
    from pyarrow import parquet

    acc = uq.Accumulator()
    for file in files:
        acc.update(uq.Predictions.from_frame(parquet.read_table(file), **COLUMNS))
    return acc


def score(engine: str, folder: Path) -> uq.Report:
    """Score the table in an engine."""
    files = sorted(folder.glob("*.parquet"))
    if engine == "one":
        return uq.evaluate(count(files))
    if engine == "two":
        with ProcessPoolExecutor(2) as pool:
            return uq.evaluate(pool.map(count, [files[::2], files[1::2]]))
    table: Any
    if engine == "dask":
        import dask
        import dask.dataframe as dd

        with dask.config.set(scheduler="processes", num_workers=2):
            table = dd.read_parquet(folder)
            return uq.evaluate(uq.Predictions.from_frame(table, **COLUMNS))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    table = session.read.parquet(str(folder))
    return uq.evaluate(uq.Predictions.from_frame(table, **COLUMNS))


def held(process: psutil.Process) -> int:
    """Bytes that a process and its children hold; shared pages count once a process."""
    total = 0
    for each in [process, *process.children(recursive=True)]:
        try:
            total += each.memory_info().rss
        except psutil.Error:  # it has ended
            continue
    return total


def run(engine: str, folder: Path) -> None:
    """Score in this process, and print what it took and found."""
    most, done = [held(psutil.Process())], threading.Event()
    before = most[0]

    def watch() -> None:
        while not done.wait(0.2):
            most[0] = max(most[0], held(psutil.Process()))

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.perf_counter()
    report = score(engine, folder)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    found = {"seconds": seconds, "bytes": most[0] - before, "n": report.counts["n"]}
    print(json.dumps({**found, "digest": report.provenance["digest"], "scores": dict(report.scores)}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=float, nargs="?", default=1e7)
    parser.add_argument("--engines", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--run", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options.run[0], Path(options.run[1]))
        return
    rows, first = int(options.rows), {}
    print("| | seconds | ns a row | beside one process | MB | bytes a row | largest difference of a score |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), rows)
        for engine in options.engines:
            command = [sys.executable, __file__, "--run", engine, name]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found = json.loads(output.splitlines()[-1])
            first = first or found
            assert (found["n"], found["digest"]) == (rows, first["digest"]), "other samples"
            far = max(abs(found["scores"][key] - value) for key, value in first["scores"].items())
            seconds, memory = found["seconds"], found["bytes"]
            print(
                f"| {NAMES[engine]} | {seconds:.0f} | {seconds / rows * 1e9:.0f} | {seconds / first['seconds']:.1f} "
                f"| {memory / 1e6:.0f} | {memory / rows:.1f} | {far:.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
