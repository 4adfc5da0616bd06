"""Statistics of the groups (images, scenes, blocks) of a classification, and how samples are counted into them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.cells import Table
from uq_tracking.statistics.class_orders import ORDERS, Orders
from uq_tracking.statistics.exact import PAYLOADS
from uq_tracking.statistics.grouped import FloatArray, IntArray
from uq_tracking.statistics.joint import dense
from uq_tracking.statistics.labelled import GROUP_BITS, compact
from uq_tracking.statistics.pools import (
    Arrays,
    Label,
    Pools,
    digest_of,
    label_order,
    read_table,
    table_arrays,
)
from uq_tracking.statistics.resampled import edges_of, resampled_groups
from uq_tracking.statistics.sketch import bucket_edges, coarse_bucket, coarse_keys

PARTS: dict[str, tuple[str, ...]] = {
    **{name: ("count", *PAYLOADS[name]) for name in ORDERS},
    "confusion": ("count",),
    "loss": ("count", "log_loss", "impossible"),
}
"""The tables, and what each of their cells holds."""

WAITING = 1 << 18
"""Cells that may wait before they are added up, at the least."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassGroupTables(Pools):
    """Coarse statistics of the groups of a classification.

    Attributes
    ----------
    orders : dict of Table
        By doubt, predictive entropy and Brier score: counts and payload sums.
    confusion : Table
        Counts, with a column for each pair of a true and a predicted class: ``true * n_classes + predicted``.
    loss : Table
        The sums behind the log score, in a single column: ``log_loss`` where it is finite, and ``impossible`` labels.
    n_classes : int
    labels, bits, members, n_groups
        As for ``Pools``.
    """

    confusion: Table
    loss: Table
    n_classes: int

    @classmethod
    def of(
        cls, tables: Mapping[str, Table], labels: Sequence[Label], bits: int, n_classes: int
    ) -> ClassGroupTables:
        """The tables named in ``PARTS``, of groups that are not pooled."""
        return cls(
            labels=tuple(labels),
            orders={name: tables[name] for name in ORDERS},
            confusion=tables["confusion"],
            loss=tables["loss"],
            bits=bits,
            n_classes=n_classes,
            members=digest_of(labels),
            n_groups=len(labels),
        )

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name."""
        return {**self.orders, "confusion": self.confusion, "loss": self.loss}

    def _with(self, tables: Mapping[str, Table], **changes: Any) -> ClassGroupTables:
        orders = {name: tables[name] for name in ORDERS}
        return replace(self, orders=orders, confusion=tables["confusion"], loss=tables["loss"], **changes)

    def resampled(self, weights: FloatArray, like: Any) -> Iterator[Any]:  # noqa: D102
        orders = {name: table.weighted(weights) for name, table in self.orders.items()}
        edges = {name: edges_of(table.bucket, self.bits) for name, table in self.orders.items()}
        pairs = self.confusion.weighted(weights)["count"]
        loss = self.loss.weighted(weights)
        for i in range(len(weights)):
            count = np.rint(pairs[i]).astype(np.int64)
            confusion = np.zeros(self.n_classes**2, dtype=np.int64)
            confusion[self.confusion.bucket] = count
            by = Orders(*(resampled_groups(name, edges[name], orders[name], i) for name in ORDERS))
            yield replace(
                like,
                kind="sketch",
                **by._asdict(),
                confusion=confusion.reshape(self.n_classes, self.n_classes),
                log_loss=float(loss["log_loss"][i, 0]),
                n_impossible=round(float(loss["impossible"][i, 0])),
                counts={**dict.fromkeys(like.counts, 0), "n": int(count.sum())},
                bits=self.bits,
                groups=None,
                memo={},
            )

    def pooled(self, pool: IntArray) -> ClassGroupTables:  # noqa: D102
        tables = {name: table.moved(pool) for name, table in self.tables.items()}
        return self._with(tables, labels=tuple(range(int(pool.max()) + 1)))

    def coarsened(self, bits: int) -> ClassGroupTables:  # noqa: D102
        orders = {
            name: table.rebucketed(coarse_keys(table.bucket, self.bits, bits))
            for name, table in self.orders.items()
        }
        return replace(self, orders=orders, bits=bits)

    def above(self, other: ClassGroupTables) -> ClassGroupTables:  # noqa: D102
        starts, theirs = (0, len(self)), other.tables
        tables = {name: Table.joined((mine, theirs[name]), starts) for name, mine in self.tables.items()}
        return self._with(tables, labels=(*self.labels, *other.labels))

    def in_order(self) -> ClassGroupTables:
        """The same groups in the order of their labels."""
        labels = sorted(self.labels, key=label_order)
        place = {(type(label), label): i for i, label in enumerate(labels)}
        moved = self.pooled(np.asarray([place[type(label), label] for label in self.labels]))
        return replace(moved, labels=tuple(labels), members=digest_of(labels))

    def width(self) -> int:  # noqa: D102
        return super().width() + len(self.confusion.bucket)

    def nbytes(self) -> int:  # noqa: D102
        return sum(table.nbytes() for table in self.tables.values())

    def to_arrays(self, *, full: bool = False) -> Arrays:
        """Plain arrays to store; sums in 32 bits where these hold them, unless ``full``."""
        return {
            "labels": np.asarray(json.dumps(self.labels)),
            "members": np.asarray(self.members),
            "sizes": np.asarray([self.n_groups, self.bits, self.n_classes], dtype=np.int64),
            **table_arrays(self.tables, full=full),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> ClassGroupTables:
        """Inverse of ``to_arrays``; KeyError or ValueError for anything else."""
        n_groups, bits, n_classes = (int(value) for value in arrays["sizes"])
        labels = tuple(json.loads(str(arrays["labels"])))
        tables = {name: read_table(arrays, name, sums, len(labels)) for name, sums in PARTS.items()}
        pairs = tables["confusion"].bucket
        if len(pairs) and not 0 <= pairs.min() <= pairs.max() < n_classes**2:
            raise ValueError("pairs of classes lie outside the confusion matrix")
        if len(tables["loss"].bucket) != 1:
            raise ValueError("the sums of the log score have several columns")
        made = cls.of(tables, labels, bits, n_classes)
        return replace(made, members=str(arrays["members"]), n_groups=n_groups)


class ClassGroupTally:
    """Counts samples into the tables of their groups, numbered from 0."""

    def __init__(self, n_classes: int, bits: int = GROUP_BITS) -> None:
        self.n_classes, self.bits = n_classes, bits
        self._parts: dict[str, list[Table]] = {name: [] for name in PARTS}
        self._waiting = self._held = 0

    def add(
        self,
        codes: IntArray,
        columns: Mapping[str, npt.NDArray[Any]],
        pair: IntArray,
        log_chosen: FloatArray,
    ) -> None:
        """Count samples.

        Parameters
        ----------
        codes : int array, shape (n,)
            Number of each sample's group.
        columns : dict of array, shape (n,)
            Doubt, correctness, entropy and Brier score.
        pair : int array, shape (n,)
            True class times the number of classes, plus predicted class.
        log_chosen : array, shape (n,)
            Logarithm of the true class's probability.
        """
        values = {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}
        values["doubt2"] = np.square(values["doubt"])
        possible = np.isfinite(log_chosen)
        values["log_loss"] = np.where(possible, -log_chosen, 0.0)
        values["impossible"] = (~possible).astype(np.float64)
        rows, row = np.unique(codes, return_inverse=True)
        for name in ORDERS:
            used, index = dense(coarse_bucket(values[name], self.bits))
            key = bucket_edges(used.astype(np.uint64), self.bits)[0]
            self._put(name, _cells(rows, row, key, index, values, PARTS[name]))
        used, index = np.unique(pair, return_inverse=True)
        self._put("confusion", _cells(rows, row, used, index, values, PARTS["confusion"]))
        self._put("loss", _cells(rows, row, np.zeros(1), np.zeros_like(row), values, PARTS["loss"]))

    def absorb(self, tables: ClassGroupTables, places: IntArray) -> None:
        """Add groups counted elsewhere, group i as number ``places[i]``."""
        for name, table in tables.tables.items():
            self._put(name, table.moved(places))

    def together(self, other: ClassGroupTally) -> None:
        """Add what another tally counted of the same groups."""
        for name, parts in other._parts.items():
            for part in parts:
                self._put(name, part)

    def _put(self, name: str, table: Table) -> None:
        self._parts[name].append(table)
        self._waiting += len(table.row)
        if self._waiting > max(WAITING, self._held):  # joined when they have doubled: each cell a few times
            self._join()

    def _join(self) -> None:
        for name, parts in self._parts.items():
            if len(parts) > 1:
                self._parts[name] = [Table.joined(parts)]
        self._held = sum(len(part.row) for parts in self._parts.values() for part in parts)
        self._waiting = 0

    def tables(self, labels: Sequence[Label]) -> ClassGroupTables:
        """Tables of everything counted; ``labels`` are those of the groups' numbers, and every group has samples."""
        self._join()
        joined = {name: parts[0] for name, parts in self._parts.items()}
        return ClassGroupTables.of(joined, labels, self.bits, self.n_classes)


def _cells(
    rows: IntArray,
    row: IntArray,
    key: npt.NDArray[Any],
    index: IntArray,
    values: Mapping[str, FloatArray],
    sums: Sequence[str],
) -> Table:
    """Counts and sums by group and bucket: sample i lies in row ``rows[row[i]]`` and bucket ``key[index[i]]``."""
    cell, place, count = compact(index * len(rows) + row, len(key) * len(rows))
    made = {name: np.bincount(place, values[name], len(cell)) for name in sums if name != "count"}
    return Table(key, rows[cell % len(rows)], cell // len(rows), {"count": count, **made})
