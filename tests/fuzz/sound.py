"""A sound file of every kind that is read, and its reader."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import uq_tracking as uq
from uq_tracking.comparison import Comparison
from uq_tracking.files.reading import read_predictions
from uq_tracking.recalibration.files import read_recalibrations
from uq_tracking.report import Report
from uq_tracking.statistics.store import read_statistics, write_statistics
from uq_tracking.tracking.spool import Origin, keep, read_entry
from uq_tracking_wandb.fragment import read_fragment

Read = Callable[[Path], Any]
TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]
LABELS, PROBABILITIES = [0, 1, 1, 0], [0.2, 0.9, 0.4, 0.3]

NAMES = (
    "report.json", "report.npz", "statistics.npz", "sketch.npz", "classes-statistics.npz", "predictions.npz",
    "classes.npz", "stream.npz", "classes-stream.npz", "recalibration.json", "comparison.json", "entry.zip",
    "run-x.wandb", "table.csv", "table.json", "table.npz", "table.npy", "table.parquet",
)  # fmt: skip
"""What `sound_files` makes."""
ARCHIVES = tuple(name for name in NAMES if name.endswith(".npz") and not name.startswith(("report", "table")))


def sound_files(folder: Path) -> Iterator[tuple[str, bytes, Read]]:
    """Name, content and reader of a file of every kind; the folder must be the working directory."""
    for name, read in _made(folder):
        yield name, (folder / name).read_bytes(), read


def _made(folder: Path) -> Iterator[tuple[str, Read]]:
    report = uq.evaluate(TRUTH, MEAN, STD, calibration=True)
    report.to_json(folder / "report.json")
    yield "report.json", Report.from_json
    report.to_npz(folder / "report.npz")
    yield "report.npz", Report.from_npz
    write_statistics(folder / "statistics.npz", report.statistics, data="0" * 16)
    yield "statistics.npz", read_statistics
    sketch = uq.evaluate(TRUTH, MEAN, STD, statistics="sketch").statistics
    write_statistics(folder / "sketch.npz", sketch, data="0" * 16)
    yield "sketch.npz", read_statistics
    classes = uq.evaluate(LABELS, probs=PROBABILITIES)
    write_statistics(folder / "classes-statistics.npz", classes.statistics)
    yield "classes-statistics.npz", read_statistics
    uq.Predictions(TRUTH, MEAN, STD, groups=[0, 0, 1, 1]).save(folder / "predictions.npz")
    yield "predictions.npz", uq.Predictions.load
    uq.Predictions.from_probs(LABELS, PROBABILITIES).save(folder / "classes.npz")
    yield "classes.npz", uq.Predictions.load
    stream = uq.Accumulator()
    stream.update(TRUTH, MEAN, STD)
    stream.save(folder / "stream.npz")
    yield "stream.npz", uq.Accumulator.load
    classified = uq.Accumulator()
    classified.update(LABELS, probs=PROBABILITIES)
    classified.save(folder / "classes-stream.npz")
    yield "classes-stream.npz", uq.Accumulator.load
    (folder / "recalibration.json").write_text(json.dumps(report.recalibration))
    yield "recalibration.json", read_recalibrations
    _comparison().to_json(folder / "comparison.json")
    yield "comparison.json", Comparison.from_json
    _entry(folder).rename(folder / "entry.zip")
    yield "entry.zip", read_whole_entry
    _wandb_file(folder / "run-x.wandb")
    yield "run-x.wandb", read_fragment
    for suffix in ("csv", "json", "npz", "npy", "parquet"):
        _table(folder / f"table.{suffix}")
        yield f"table.{suffix}", partial(read_predictions, columns=None)


def _comparison() -> Comparison:
    """A comparison of reports with one curve each, for many of them are read."""
    reports = {"a": uq.evaluate(TRUTH, MEAN, STD), "b": uq.evaluate(TRUTH, STD, STD)}
    for name, report in reports.items():
        curves = {"coverage_error": report.curves["coverage_error"]}
        reports[name] = replace(report, curves=curves)
    return uq.compare(reports)


def _entry(folder: Path) -> Path:
    content = folder / "content"
    content.write_bytes(b"content")
    writes = [
        ("a", lambda run: run.log_scalars({"a": 1.0}, step=1)),
        ("b", lambda run: run.log_file(content, "b")),
        ("c", lambda run: run.set_tags({"c": "d"})),
    ]
    return keep(Origin("dir", "", "dir:x"), [writes])


def read_whole_entry(path: Path) -> list[bytes]:
    """Everything that an entry of the spool holds."""
    entry = read_entry(path)
    return [entry.member(name) for name in entry.members]


def _table(path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"target": TRUTH, "mean": MEAN, "std": STD})
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".json":
        frame.to_json(path, orient="split")
    elif path.suffix == ".npz":
        np.savez(path, **{name: frame[name].to_numpy() for name in frame})
    elif path.suffix == ".npy":
        np.save(path, frame.to_numpy())
    else:
        frame.to_parquet(path)


def _wandb_file(path: Path) -> None:
    """A run file as wandb's core frames it: chunks of a log with checksums, each a protobuf record."""
    import struct
    import zlib

    from wandb.proto import wandb_internal_pb2 as protocol

    records = [protocol.Record() for _ in range(4)]
    records[0].run.run_id, records[0].run.project = "x", "p"
    for record, kind in ((records[1].config, "uq"), (records[2].summary, "uq/nll")):
        item = record.update.add()
        item.key, item.value_json = kind, '{"a": 1}' if kind == "uq" else "1.5"
    item = records[3].history.item.add()
    item.key, item.value_json = "uq/nll", "1.5"
    buffer = io.BytesIO()
    buffer.write(struct.pack("<4sHB", b":W&B", 0xBEE1, 0))
    for record in records:
        data = record.SerializeToString()
        buffer.write(struct.pack("<IHB", zlib.crc32(data, zlib.crc32(b"\x01")), len(data), 1) + data)
    path.write_bytes(buffer.getvalue())
