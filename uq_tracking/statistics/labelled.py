"""Small sketches of many labelled parts of the samples (images, scenes, strata), made together.

A part's sketch is coarse and keeps only the buckets in use: tens of kilobytes, whatever the part's size.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.exact import PAYLOADS
from uq_tracking.statistics.grouped import FloatArray, Grouped, IntArray
from uq_tracking.statistics.joint import Joint, dense
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.regression import (
    BUILD_BLOCK,
    COUNTS,
    ORDERS,
    VARIABLES,
    RegressionStatistics,
    payload_columns,
)
from uq_tracking.statistics.sketch import bucket_edges, coarse_bucket

Label: TypeAlias = str | int | float | bool

GROUP_BITS, GROUP_JOINT_BITS = 5, 3
"""Mantissa bits of the sketch of a group (an image, say), of which there may be thousands."""

STRATUM_BITS, STRATUM_JOINT_BITS = 8, 4
"""Mantissa bits of the sketch of a stratum, of which there are few."""


class LabelledSketches:
    """A sketch per label; adding samples of a known label merges them into its sketch."""

    def __init__(self, bits: int = GROUP_BITS, joint_bits: int = GROUP_JOINT_BITS) -> None:
        self.bits, self.joint_bits = bits, joint_bits
        self.statistics: dict[Label, RegressionStatistics] = {}

    def add(
        self,
        labels: npt.NDArray[Any],
        codes: IntArray,
        target: npt.NDArray[Any],
        mean: npt.NDArray[Any],
        std: npt.NDArray[Any],
    ) -> None:
        """Count samples.

        Parameters
        ----------
        labels : array, shape (L,)
            Distinct labels.
        codes : int array, shape (N,)
            Position of each sample's label among them.
        target, mean, std : arrays, shape (N,)
            Validated samples.
        """
        names = plain_labels(labels)
        order = None if np.all(codes[1:] >= codes[:-1]) else np.argsort(codes, kind="stable")
        for start in range(0, len(codes), BUILD_BLOCK):
            part: Any = slice(start, start + BUILD_BLOCK)
            part = part if order is None else order[part]
            rows = (codes[part], target[part], mean[part], std[part])
            for code, sketch in _sketch_block(*rows, self.bits, self.joint_bits):
                self._merge(names[code], sketch)

    def merge(self, other: LabelledSketches) -> None:
        """Add the samples of another set of sketches."""
        for label, sketch in other.statistics.items():
            self._merge(label, sketch)

    def _merge(self, label: Label, sketch: RegressionStatistics) -> None:
        known = self.statistics.get(label)
        self.statistics[label] = sketch if known is None else known + sketch

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Plain arrays, columns of all sketches joined end to end."""
        kept = list(self.statistics.values())
        arrays: dict[str, npt.NDArray[Any]] = {"labels": np.asarray(json.dumps(list(self.statistics)))}
        arrays["counts"] = np.asarray([[s.counts[name] for name in COUNTS] for s in kept], dtype=np.int64)
        arrays["log_std"] = np.asarray([s.log_std for s in kept])
        arrays["moments"] = np.asarray(
            [[[m.mean, m.m2, m.low, m.high] for m in (s.moments[name] for name in VARIABLES)] for s in kept]
        )
        for name in ("joint", *ORDERS):
            tables = [_columns(sketch, name) for sketch in kept]
            arrays[f"{name}/size"] = np.asarray([len(table["key"]) for table in tables], dtype=np.int64)
            for column in tables[0] if tables else ():
                arrays[f"{name}/{column}"] = np.concatenate([table[column] for table in tables])
        return arrays

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what ``to_arrays`` gave."""
        labels = json.loads(str(arrays["labels"]))
        cuts = {name: np.concatenate([[0], np.cumsum(arrays[f"{name}/size"])]) for name in ("joint", *ORDERS)}
        for i, label in enumerate(labels):
            parts = {name: slice(int(cut[i]), int(cut[i + 1])) for name, cut in cuts.items()}
            self.statistics[label] = self._unpacked(arrays, i, parts)

    def _unpacked(
        self, arrays: Mapping[str, npt.NDArray[Any]], i: int, parts: Mapping[str, slice]
    ) -> RegressionStatistics:
        counts = dict(zip(COUNTS, (int(c) for c in arrays["counts"][i]), strict=True))
        rows = zip(VARIABLES, arrays["moments"][i].tolist(), strict=True)
        moments = {name: Moments(counts["n"], *row) for name, row in rows}
        groups = {
            name: Grouped(
                name,
                arrays[f"{name}/key"][parts[name]],
                arrays[f"{name}/width"][parts[name]],
                arrays[f"{name}/count"][parts[name]],
                {payload: arrays[f"{name}/{payload}"][parts[name]] for payload in PAYLOADS[name]},
            )
            for name in ORDERS
        }
        joint = Joint(
            arrays["joint/key"][parts["joint"]], arrays["joint/count"][parts["joint"]], self.joint_bits
        )
        return _statistics(groups, joint, moments, counts, float(arrays["log_std"][i]), self.bits)


def plain_labels(labels: npt.NDArray[Any]) -> list[Label]:
    """Labels as Python's own text and numbers; dates as ISO text."""
    if labels.dtype.kind in "mM":
        labels = labels.astype(str)
    plain: list[Label] = labels.tolist()
    return plain


def _columns(sketch: RegressionStatistics, name: str) -> dict[str, npt.NDArray[Any]]:
    if name == "joint":
        joint = sketch.joint_counts()
        return {"key": joint.key, "count": joint.count}
    groups = getattr(sketch, f"by_{name}")
    return {"key": groups.key, "width": groups.width, "count": groups.count, **groups.sums}


def _sketch_block(
    codes: IntArray,
    target: npt.NDArray[Any],
    mean: npt.NDArray[Any],
    std: npt.NDArray[Any],
    bits: int,
    joint_bits: int,
) -> Iterator[tuple[int, RegressionStatistics]]:
    """One sketch per code that occurs in the block, whose rows are sorted by code."""
    truth = target.astype(np.float64)
    columns = payload_columns(std.astype(np.float64), truth - mean)
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    part = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(codes))))
    with np.errstate(divide="ignore"):
        log_std = np.add.reduceat(np.log(columns["std"]), starts)
    zero = np.add.reduceat((columns["std"] == 0).astype(np.int64), starts)
    moments = {name: _moments(truth if name == "target" else columns[name], starts) for name in VARIABLES}
    groups = {name: _groups(name, part, len(starts), columns, bits) for name in ORDERS}
    joints = _joints(part, len(starts), columns, joint_bits)
    for i, code in enumerate(codes[starts].tolist()):
        own = {name: found[i] for name, found in moments.items()}
        counts = {**dict.fromkeys(COUNTS, 0), "n": own["std"].count, "n_zero_std": int(zero[i])}
        tables = {name: found[i] for name, found in groups.items()}
        yield code, _statistics(tables, joints[i], own, counts, float(log_std[i]), bits)


def _statistics(
    groups: Mapping[str, Grouped],
    joint: Joint,
    moments: dict[str, Moments],
    counts: dict[str, int],
    log_std: float,
    bits: int,
) -> RegressionStatistics:
    return RegressionStatistics(
        kind="sketch",
        by_std=groups["std"],
        by_abs_error=groups["abs_error"],
        by_z=groups["z"],
        moments=moments,
        counts=counts,
        log_std=log_std,
        rank_correlation=joint.rank_correlation(),
        joint=joint,
        bits=bits,
    )


def _moments(values: FloatArray, starts: IntArray) -> list[Moments]:
    """Moments of consecutive parts of an array."""
    count = np.diff(np.append(starts, len(values)))
    origin = np.where(np.isfinite(values[starts]), values[starts], 0.0)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite z of a zero std
        shifted = values - np.repeat(origin, count)  # a constant gives exactly zero spread
        mean = np.add.reduceat(shifted, starts) / count
        m2 = np.add.reduceat(np.square(shifted - np.repeat(mean, count)), starts)
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    rows = zip(count, origin + mean, m2, low, high, strict=True)
    return [Moments(int(n), *(float(v) for v in row)) for n, *row in rows]


def _groups(
    name: str, part: IntArray, parts: int, columns: Mapping[str, FloatArray], bits: int
) -> list[Grouped]:
    """The buckets of each part, sorted by value."""
    used, index = dense(coarse_bucket(columns[name], bits))
    low, width = bucket_edges(used.astype(np.uint64), bits)
    rank = np.argsort(np.argsort(low, kind="stable"), kind="stable")  # place of a bucket in order of value
    cell, place, count = compact(part * len(used) + rank[index], parts * len(used))
    sums = {
        payload: np.asarray(np.bincount(place, columns[payload], len(cell)), float)
        for payload in PAYLOADS[name]
    }
    bucket = np.argsort(low, kind="stable")[cell % len(used)]
    cuts = np.searchsorted(cell, np.arange(parts + 1) * len(used))
    return [
        Grouped(
            name,
            low[bucket[a:b]],
            width[bucket[a:b]],
            count[a:b].copy(),
            {payload: sums[payload][a:b].copy() for payload in PAYLOADS[name]},
        )
        for a, b in itertools.pairwise(cuts.tolist())
    ]


def _joints(part: IntArray, parts: int, columns: Mapping[str, FloatArray], bits: int) -> list[Joint]:
    std_used, std_index = dense(coarse_bucket(columns["std"], bits))
    error_used, error_index = dense(coarse_bucket(columns["abs_error"], bits))
    size = len(std_used) * len(error_used)
    cell, _, count = compact((part * len(std_used) + std_index) * len(error_used) + error_index, parts * size)
    std, error = std_used[cell % size // len(error_used)], error_used[cell % len(error_used)]
    key = Joint.keys(std, error)
    cuts = np.searchsorted(cell, np.arange(parts + 1) * size).tolist()
    return [Joint(key[a:b].copy(), count[a:b].copy(), bits) for a, b in itertools.pairwise(cuts)]


def compact(cell: IntArray, size: int) -> tuple[IntArray, IntArray, IntArray]:
    """The cells (of 0 ... size - 1) that occur, each row's place among them, and their counts."""
    if size > 8 * len(cell):  # a table that is nearly all zeros
        used, place, count = np.unique(cell, return_inverse=True, return_counts=True)
        return used, place, count.astype(np.int64)
    count = np.bincount(cell, minlength=size)
    used = np.flatnonzero(count)
    index = np.zeros(size, dtype=np.int64)
    index[used] = np.arange(len(used))
    return used, index[cell], count[used].astype(np.int64)
