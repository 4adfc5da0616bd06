"""Statistics of many groups (images, scenes, blocks) side by side, so that resampling them is one matrix product.

A resample draws groups with replacement: each group counts so many times. Its statistics are the groups' tables,
weighted with these numbers and added up; no sample is looked at again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.cells import Table, weighted_sums
from uq_tracking.statistics.exact import PAYLOADS
from uq_tracking.statistics.grouped import FloatArray, Grouped, IntArray
from uq_tracking.statistics.joint import Joint
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.resampled import (
    RankCorrelation,
    edges_of,
    resampled_groups,
    weighted_moments,
)
from uq_tracking.statistics.sketch import coarse_keys

Label = str | int | float | bool
Arrays = dict[str, npt.NDArray[Any]]

ORDERS = ("std", "abs_error", "z")
VARIABLES = ("target", "std", "error", "z")
MOST_GROUPS = 1000
"""More groups than this are pooled at random into so many, of nearly equal numbers of groups."""
STORED_BYTES = 8 * 2**20
"""Size that tables are brought under before they are stored, uncompressed."""
ENOUGH_GROUPS = 400
"""More groups than this are pooled before their buckets are made wider: the spread is known to 5 % from 200."""
COARSEST = 3


@dataclass(frozen=True, eq=False)
class GroupTables:
    """Coarse statistics of groups, in tables.

    Attributes
    ----------
    labels : tuple
        Label of each group, in an order that depends on the labels alone; numbers where groups are pooled.
    orders : dict of Table
        By std, absolute error and z: counts and payload sums.
    joint : Table
        Coarse joint counts of std and absolute error.
    moments : array, shape (4, 4, groups)
        Mean, sum of squared deviations, least and greatest value of target, std, error and z.
    count, zero, log_std : arrays, shape (groups,)
        Samples, those of std 0, and the sum of log std.
    bits, joint_bits : int
        Mantissa bits of the buckets and of the joint cells.
    members : str
        Digest of the groups' labels, which tells whether two tables hold the same groups.
    n_groups : int
        Number of groups before pooling.
    """

    labels: tuple[Label, ...]
    orders: Mapping[str, Table]
    joint: Table
    moments: FloatArray
    count: IntArray
    zero: IntArray
    log_std: FloatArray
    bits: int
    joint_bits: int
    members: str
    n_groups: int

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, groups: Mapping[Label, Any], most: int = MOST_GROUPS) -> GroupTables:
        """Tables of sketches by label, all of the same bits; see ``LabelledSketches``."""
        labels = sorted((label for label in groups if groups[label].n), key=label_order)
        sketches = [groups[label] for label in labels]
        if not sketches:
            raise ValueError("no group holds a sample")
        orders = {name: _table([getattr(s, f"by_{name}") for s in sketches]) for name in ORDERS}
        joints = [s.joint_counts() for s in sketches]
        row = np.repeat(np.arange(len(joints)), [len(joint.key) for joint in joints])
        key = np.concatenate([joint.key for joint in joints])
        joint = Table.of(row, key, {"count": np.concatenate([joint.count for joint in joints])})
        rows = [[(m.mean, m.m2, m.low, m.high) for m in (s.moments[v] for v in VARIABLES)] for s in sketches]
        made = cls(
            tuple(labels),
            orders,
            joint,
            np.moveaxis(np.asarray(rows, dtype=float), 0, -1),
            np.asarray([s.n for s in sketches], dtype=np.int64),
            np.asarray([s.counts["n_zero_std"] for s in sketches], dtype=np.int64),
            np.asarray([s.log_std for s in sketches]),
            int(sketches[0].bits),
            joints[0].bits,
            digest_of(labels),
            len(labels),
        )
        return made.pooled_to(most)

    def resampled(self, weights: FloatArray, like: Any) -> Iterator[Any]:
        """Statistics of every resample.

        Parameters
        ----------
        weights : float array, shape (resamples, groups)
            How many times each group counts.
        like : RegressionStatistics
            Where the resamples take what does not depend on the samples from.
        """
        orders = {name: table.weighted(weights) for name, table in self.orders.items()}
        edges = {name: edges_of(table.bucket, self.bits) for name, table in self.orders.items()}
        joint = self.joint.weighted(weights)["count"]
        ranks = RankCorrelation(self.joint.bucket)
        count, zero = weights @ self.count, weights @ self.zero
        log_std = weighted_sums(weights, self.log_std[:, None])[:, 0]
        moments = [weighted_moments(weights, self.count, rows) for rows in self.moments]
        for i in range(len(weights)):
            cells = np.flatnonzero(joint[i])
            own = dict(zip(VARIABLES, (rows[i] for rows in moments), strict=True))
            yield replace(
                like,
                kind="sketch",
                by_std=resampled_groups("std", edges["std"], orders["std"], i),
                by_abs_error=resampled_groups("abs_error", edges["abs_error"], orders["abs_error"], i),
                by_z=resampled_groups("z", edges["z"], orders["z"], i),
                moments=own,
                counts={**dict.fromkeys(like.counts, 0), "n": int(count[i]), "n_zero_std": int(zero[i])},
                log_std=float(log_std[i]),
                rank_correlation=ranks(joint[i]),
                joint=Joint(self.joint.bucket[cells], joint[i][cells].astype(np.int64), self.joint_bits),
                bits=self.bits,
                groups=None,
                memo={},
            )

    def pooled(self, pool: IntArray) -> GroupTables:
        """Groups added up: ``pool`` holds the new place of each, 0 ... P - 1, all of them in use."""
        size = int(pool.max()) + 1

        def added(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            made = np.zeros(size, dtype=values.dtype)
            np.add.at(made, pool, values)
            return made

        return GroupTables(
            tuple(range(size)),
            {name: Table.of(pool[t.row], t.bucket[t.column], t.sums) for name, t in self.orders.items()},
            Table.of(pool[self.joint.row], self.joint.bucket[self.joint.column], self.joint.sums),
            np.stack([_pooled_moments(rows, self.count, pool, size) for rows in self.moments]),
            added(self.count),
            added(self.zero),
            added(self.log_std),
            self.bits,
            self.joint_bits,
            self.members,
            self.n_groups,
        )

    def pooled_to(self, size: int) -> GroupTables:
        """The groups in at most ``size`` pools: halved until they are, so that equal groups pool alike."""
        return self if len(self) <= size else self.pooled(pool_chain(len(self), size))

    def merge(self, other: GroupTables) -> GroupTables | None:
        """Groups of both; None where one holds pooled groups, which no longer tell their labels."""
        if any(len(tables) != tables.n_groups for tables in (self, other)):
            return None
        bits = min(self.bits, other.bits)
        parts = [tables.coarsened(bits) for tables in (self, other)]
        labels = sorted({*self.labels, *other.labels}, key=label_order)
        place = {(type(label), label): i for i, label in enumerate(labels)}
        pool = np.asarray([place[type(label), label] for part in parts for label in part.labels])
        made = replace(
            _joined(parts).pooled(pool), labels=tuple(labels), members=digest_of(labels), n_groups=len(labels)
        )
        return made.pooled_to(MOST_GROUPS)

    def coarsened(self, bits: int) -> GroupTables:
        """The same groups in wider buckets."""
        drop = min(self.bits - bits, self.joint_bits - 1)
        joint = _coarse_cells(self.joint.bucket, drop)[self.joint.column]
        orders = {
            name: Table.of(t.row, coarse_keys(t.bucket, self.bits, bits)[t.column], t.sums)
            for name, t in self.orders.items()
        }
        return replace(
            self,
            orders=orders,
            joint=Table.of(self.joint.row, joint, self.joint.sums),
            bits=bits,
            joint_bits=self.joint_bits - drop,
        )

    def nbytes(self) -> int:
        """Bytes of all numbers."""
        tables = [*self.orders.values(), self.joint]
        return self.moments.nbytes + sum(table.nbytes() for table in tables) + 24 * len(self)

    def stored(self, limit: int = STORED_BYTES) -> GroupTables:
        """The form that takes at most ``limit`` bytes: fewer, pooled groups, then wider buckets."""
        made = self
        while made.nbytes() > 2 * limit and len(made) > ENOUGH_GROUPS:  # stored as 32-bit numbers
            made = made.pooled_to((len(made) + 1) // 2)
        while made.nbytes() > 2 * limit and made.bits > COARSEST:
            made = made.coarsened(made.bits - 1)
        while made.nbytes() > 2 * limit and len(made) > 2:
            made = made.pooled_to((len(made) + 1) // 2)
        return made

    def to_arrays(self) -> Arrays:
        """Plain arrays that ``from_arrays`` reads; sums in 32 bits where these hold them."""
        arrays: Arrays = {
            "labels": np.asarray(json.dumps(self.labels)),
            "members": np.asarray(self.members),
            "sizes": np.asarray([self.n_groups, self.bits, self.joint_bits], dtype=np.int64),
            "moments": self.moments,
            "count": self.count,
            "zero": self.zero,
            "log_std": self.log_std,
        }
        for name, table in {**self.orders, "joint": self.joint}.items():
            arrays |= {f"{name}/bucket": table.bucket, f"{name}/row": table.row.astype(np.int32)}
            arrays[f"{name}/column"] = table.column.astype(np.int32)
            arrays |= {f"{name}/sum/{key}": _lean(values) for key, values in table.sums.items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> GroupTables:
        """Inverse of ``to_arrays``; KeyError or ValueError for anything else."""
        n_groups, bits, joint_bits = (int(value) for value in arrays["sizes"])
        labels = tuple(json.loads(str(arrays["labels"])))
        names = {name: ("count", *PAYLOADS[name]) for name in ORDERS} | {"joint": ("count",)}
        tables = {name: _read_table(arrays, name, payloads, len(labels)) for name, payloads in names.items()}
        joint = tables.pop("joint")
        columns = [np.asarray(arrays[name]) for name in ("count", "zero", "log_std")]
        if any(len(column) != len(labels) for column in columns):
            raise ValueError("columns of the groups differ in length")
        return cls(
            labels,
            tables,
            joint,
            np.asarray(arrays["moments"], dtype=float).reshape(len(VARIABLES), 4, len(labels)),
            columns[0],
            columns[1],
            columns[2],
            bits,
            joint_bits,
            str(arrays["members"]),
            n_groups,
        )


def _joined(parts: Sequence[GroupTables]) -> GroupTables:
    """Tables below each other; labels may repeat."""
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).tolist()

    def join(tables: Sequence[Table]) -> Table:
        row = np.concatenate([t.row + start for t, start in zip(tables, starts, strict=False)])
        bucket = np.concatenate([t.bucket[t.column] for t in tables])
        sums = {name: np.concatenate([t.sums[name] for t in tables]) for name in tables[0].sums}
        return Table.of(row, bucket, sums)

    first = parts[0]
    return replace(
        first,
        labels=tuple(label for part in parts for label in part.labels),
        orders={name: join([part.orders[name] for part in parts]) for name in ORDERS},
        joint=join([part.joint for part in parts]),
        moments=np.concatenate([part.moments for part in parts], axis=2),
        count=np.concatenate([part.count for part in parts]),
        zero=np.concatenate([part.zero for part in parts]),
        log_std=np.concatenate([part.log_std for part in parts]),
    )


def pool_chain(groups: int, size: int) -> IntArray:
    """Which pool each group falls into when they are halved until there are at most ``size``.

    Halved and not cut to size, so that equal groups share pools whichever size they were brought to before.
    """
    pool = np.arange(groups)
    while groups > size:
        order = np.random.default_rng(groups).permutation(groups)
        groups = (groups + 1) // 2
        half = np.empty(len(order), dtype=np.int64)
        half[order] = np.arange(len(order)) % groups
        pool = half[pool]
    return pool


def digest_of(labels: Sequence[Label]) -> str:
    """Sixteen hexadecimal digits of labels."""
    return hashlib.sha256(json.dumps(list(labels)).encode()).hexdigest()[:16]


def label_order(label: Label) -> tuple[str, Any]:
    """Sort key of labels, which may be of several types."""
    return type(label).__name__, label


def _table(parts: Sequence[Grouped]) -> Table:
    row = np.repeat(np.arange(len(parts)), [len(part.key) for part in parts])
    sums: dict[str, npt.NDArray[Any]] = {"count": np.concatenate([part.count for part in parts])}
    sums |= {name: np.concatenate([part.sums[name] for part in parts]) for name in parts[0].sums}
    return Table.of(row, np.concatenate([part.key for part in parts]), sums)


def _coarse_cells(key: IntArray, drop: int) -> IntArray:
    std, error = (key >> 32) >> drop, (key & ((1 << 32) - 1)) >> drop
    return Joint.keys(std, error)


def _pooled_moments(rows: FloatArray, count: IntArray, pool: IntArray, size: int) -> FloatArray:
    made = [Moments()] * size
    for place, n, row in zip(pool.tolist(), count.tolist(), rows.T.tolist(), strict=True):
        made[place] = made[place].merge(Moments(n, *row))
    return np.asarray([(m.mean, m.m2, m.low, m.high) for m in made]).T


def _lean(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind in "iu":
        return values.astype(np.int32) if values.max(initial=0) < 2**31 else values
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    lossless = np.array_equal(np.isfinite(small), np.isfinite(values)) and not np.any(
        (small == 0) & (values != 0)
    )
    return small if lossless else values


def _read_table(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, payloads: Sequence[str], rows: int
) -> Table:
    bucket, row, column = (np.asarray(arrays[f"{name}/{part}"]) for part in ("bucket", "row", "column"))
    sums = {payload: np.asarray(arrays[f"{name}/sum/{payload}"]) for payload in payloads}
    if len({len(row), len(column), *(len(values) for values in sums.values())}) != 1:
        raise ValueError(f"columns of {name} differ in length")
    if len(row) and (row.min() < 0 or row.max() >= rows or column.min() < 0 or column.max() >= len(bucket)):
        raise ValueError(f"cells of {name} lie outside its table")
    wide = {
        payload: values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
        for payload, values in sums.items()
    }
    return Table(bucket, row.astype(np.int64), column.astype(np.int64), wide)
