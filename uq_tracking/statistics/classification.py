"""Sufficient statistics of a classification: what every score and curve of the suite reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError, IncompatibleStatisticsError
from uq_tracking.statistics.exact import PAYLOADS, SortedRows
from uq_tracking.statistics.grouped import BLOCK, Grouped, Groups, IntArray
from uq_tracking.statistics.parallel import map_threads
from uq_tracking.statistics.sketch import SKETCH_BITS, BucketSums

Kind = Literal["exact", "sketch"]
ORDERS = ("doubt", "entropy", "brier")
COUNTS = ("n", "n_ignored", "n_masked")
COLUMNS = ("doubt", "correct", "entropy", "brier")

STORED_ROWS = 50_000
"""Exact statistics up to this many samples are stored as they are, larger ones as a sketch."""


@dataclass(frozen=True, eq=False)
class ClassificationStatistics:
    """Samples grouped by doubt (1 - top probability), predictive entropy and Brier score.

    Doubt rather than confidence, because a sketch resolves values near zero and confidences crowd near one.

    Attributes
    ----------
    confusion : int array, shape (C, C)
        Samples by true (row) and predicted (column) class.
    log_loss : float
        Sum of ``-log p(label)`` over samples where it is finite.
    n_impossible : int
        Samples whose label got probability 0.
    """

    kind: Kind
    by_doubt: Groups
    by_entropy: Groups
    by_brier: Groups
    confusion: IntArray
    log_loss: float
    n_impossible: int
    counts: Mapping[str, int]
    rows: Mapping[str, npt.NDArray[Any]] | None = None
    """Columns of the samples, unsorted; exact statistics only."""
    bits: int | None = None
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Number of samples that count."""
        return self.counts["n"]

    def sketched(self) -> ClassificationStatistics:
        """The same samples as a sketch."""
        if self.rows is None:
            return self
        groups = _sketch_groups(self.rows)
        return replace(
            self,
            kind="sketch",
            rows=None,
            bits=SKETCH_BITS,
            memo={},
            **{f"by_{k}": g for k, g in groups.items()},
        )

    def stored(self) -> ClassificationStatistics:
        """The form that is kept with a run: a few megabytes at any size."""
        return self.sketched() if self.n > STORED_ROWS else self

    def __add__(self, other: ClassificationStatistics) -> ClassificationStatistics:
        return merge(self, other)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Plain arrays that ``from_arrays`` reads back."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "task": np.asarray("classification"),
            "kind": np.asarray(self.kind),
            "counts": np.asarray([self.counts[name] for name in COUNTS], dtype=np.int64),
            "confusion": self.confusion,
            "log_loss": np.asarray(self.log_loss),
            "n_impossible": np.asarray(self.n_impossible),
        }
        if self.rows is not None:
            return arrays | {f"row/{name}": column for name, column in self.rows.items()}
        arrays["bits"] = np.asarray(self.bits)
        for name in ORDERS:
            groups = getattr(self, f"by_{name}")
            arrays |= {
                f"{name}/key": groups.key,
                f"{name}/width": groups.width,
                f"{name}/count": groups.count,
            }
            arrays |= {f"{name}/sum/{payload}": column for payload, column in groups.sums.items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> ClassificationStatistics:
        """Statistics from the arrays that ``to_arrays`` made; FileFormatError for anything else."""
        try:
            return _from_arrays(arrays)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise FileFormatError(f"these arrays are not classification statistics ({error!r})") from error


@dataclass(frozen=True)
class _Part:
    """What is counted of some samples."""

    columns: dict[str, npt.NDArray[Any]]
    confusion: IntArray
    log_loss: float
    n_impossible: int


def classification_statistics(
    labels: npt.NDArray[Any],
    probs: npt.NDArray[Any],
    *,
    counts: Mapping[str, int] | None = None,
    method: Literal["exact", "sketch"] = "exact",
) -> ClassificationStatistics:
    """Statistics of validated samples.

    Parameters
    ----------
    labels : int array, shape (N,)
        Classes 0 ... C - 1.
    probs : float array, shape (N, C)
        Probabilities.
    counts : dict of int, optional
        What was left out before.
    """
    parts = map_threads(
        lambda start: _count(labels[start : start + BLOCK], probs[start : start + BLOCK]),
        range(0, len(labels), BLOCK),
    )
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in COLUMNS}
    groups = _exact_groups(columns) if method == "exact" else _sketch_groups(columns)
    return ClassificationStatistics(
        kind=method,
        confusion=np.sum([part.confusion for part in parts], axis=0),
        log_loss=math.fsum(part.log_loss for part in parts),
        n_impossible=sum(part.n_impossible for part in parts),
        counts={**dict.fromkeys(COUNTS, 0), "n": len(labels), **(counts or {})},
        rows=columns if method == "exact" else None,
        bits=None if method == "exact" else SKETCH_BITS,
        **{f"by_{name}": group for name, group in groups.items()},
    )


def _count(labels: npt.NDArray[Any], probs: npt.NDArray[Any]) -> _Part:
    n_classes = probs.shape[1]
    p = probs.astype(np.float64)
    predicted = p.argmax(axis=1)
    rows = np.arange(len(labels))
    chosen = p[rows, labels]
    confusion = np.bincount(labels.astype(np.int64) * n_classes + predicted, minlength=n_classes**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(p)
    squares = np.einsum("ij,ij->i", p, p)
    columns: dict[str, npt.NDArray[Any]] = {
        "doubt": 1 - p[rows, predicted],
        "correct": predicted == labels,
        "entropy": np.maximum(-np.einsum("ij,ij->i", p, np.where(p > 0, logs, 0.0)), 0.0),
        "brier": np.maximum(squares - 2 * chosen + 1, 0.0),
    }
    possible = chosen > 0
    loss = -float(logs[rows, labels][possible].sum())
    return _Part(
        columns, confusion.reshape(n_classes, n_classes).astype(np.int64), loss, int((~possible).sum())
    )


def _exact_groups(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    payload = {"doubt": ("correct",), "entropy": ("brier",), "brier": ()}

    def group(by: str) -> Groups:
        order = np.argsort(columns[by], kind="stable")
        return SortedRows(by, {name: columns[name][order] for name in (by, *payload[by])})

    return dict(zip(ORDERS, map_threads(group, ORDERS), strict=True))


def _sketch_groups(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    def group(by: str) -> Groups:
        sums = BucketSums(by, PAYLOADS[by], SKETCH_BITS)
        for start in range(0, len(columns[by]), 4 * BLOCK):
            part = {
                name: column[start : start + 4 * BLOCK].astype(np.float64) for name, column in columns.items()
            }
            part["doubt2"] = np.square(part["doubt"])
            sums.add(part[by], part)
        return sums.grouped()

    return dict(zip(ORDERS, map_threads(group, ORDERS), strict=True))


def merge(one: ClassificationStatistics, other: ClassificationStatistics) -> ClassificationStatistics:
    """Statistics of both sets of samples; IncompatibleStatisticsError names what differs."""
    if one.confusion.shape != other.confusion.shape:
        raise IncompatibleStatisticsError(
            f"the number of classes differs ({len(one.confusion)} and {len(other.confusion)})"
        )
    totals: dict[str, Any] = {
        "confusion": one.confusion + other.confusion,
        "log_loss": one.log_loss + other.log_loss,
        "n_impossible": one.n_impossible + other.n_impossible,
        "counts": {name: one.counts[name] + other.counts[name] for name in COUNTS},
        "memo": {},
    }
    if one.rows is not None and other.rows is not None:
        columns = {name: np.concatenate([one.rows[name], other.rows[name]]) for name in COLUMNS}
        return replace(
            one, rows=columns, **totals, **{f"by_{k}": g for k, g in _exact_groups(columns).items()}
        )
    mine, theirs = one.sketched(), other.sketched()
    merged = {
        f"by_{name}": getattr(mine, f"by_{name}").merge(getattr(theirs, f"by_{name}")) for name in ORDERS
    }
    return replace(mine, **totals, **merged)


def _from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> ClassificationStatistics:
    exact = str(arrays["kind"]) == "exact"
    rows = {name: arrays[f"row/{name}"] for name in COLUMNS} if exact else None
    groups = (
        _exact_groups(rows) if rows is not None else {name: _read_groups(name, arrays) for name in ORDERS}
    )
    return ClassificationStatistics(
        kind="exact" if exact else "sketch",
        confusion=arrays["confusion"],
        log_loss=float(arrays["log_loss"]),
        n_impossible=int(arrays["n_impossible"]),
        counts=dict(zip(COUNTS, (int(c) for c in arrays["counts"]), strict=True)),
        rows=rows,
        bits=None if exact else int(arrays["bits"]),
        **{f"by_{name}": group for name, group in groups.items()},
    )


def _read_groups(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Grouped:
    sums = {payload: arrays[f"{name}/sum/{payload}"] for payload in PAYLOADS[name]}
    return Grouped(name, arrays[f"{name}/key"], arrays[f"{name}/width"], arrays[f"{name}/count"], sums)
