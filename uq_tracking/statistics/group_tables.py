"""Statistics of many groups (images, scenes, blocks) side by side, so that resampling them is one matrix product.

A resample draws groups with replacement: each group counts so many times. Its statistics are the groups' tables,
weighted with these numbers and added up; no sample is looked at again.
"""

from __future__ import annotations

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
from uq_tracking.statistics.pools import (
    MOST_GROUPS,
    Arrays,
    Label,
    Pools,
    digest_of,
    label_order,
    read_table,
    table_arrays,
)
from uq_tracking.statistics.resampled import (
    RankCorrelation,
    edges_of,
    resampled_groups,
    weighted_moments,
)
from uq_tracking.statistics.sketch import coarse_keys

ORDERS = ("std", "abs_error", "z")
VARIABLES = ("target", "std", "error", "z")


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupTables(Pools):
    """Coarse statistics of the groups of a regression.

    Attributes
    ----------
    orders : dict of Table
        By std, absolute error and z: counts and payload sums.
    joint : Table
        Coarse joint counts of std and absolute error.
    moments : array, shape (4, 4, groups)
        Mean, sum of squared deviations, least and greatest value of target, std, error and z.
    count, zero, log_std : arrays, shape (groups,)
        Samples, those of std 0, and the sum of log std.
    joint_bits : int
        Mantissa bits of the joint cells.
    labels, bits, members, n_groups
        As for ``Pools``.
    """

    joint: Table
    moments: FloatArray
    count: IntArray
    zero: IntArray
    log_std: FloatArray
    joint_bits: int

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
            labels=tuple(labels),
            orders=orders,
            joint=joint,
            moments=np.moveaxis(np.asarray(rows, dtype=float), 0, -1),
            count=np.asarray([s.n for s in sketches], dtype=np.int64),
            zero=np.asarray([s.counts["n_zero_std"] for s in sketches], dtype=np.int64),
            log_std=np.asarray([s.log_std for s in sketches]),
            bits=int(sketches[0].bits),
            joint_bits=joints[0].bits,
            members=digest_of(labels),
            n_groups=len(labels),
        )
        return made.pooled_to(most)

    def resampled(self, weights: FloatArray, like: Any) -> Iterator[Any]:  # noqa: D102
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

    def pooled(self, pool: IntArray) -> GroupTables:  # noqa: D102
        size = int(pool.max()) + 1

        def added(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            made = np.zeros(size, dtype=values.dtype)
            np.add.at(made, pool, values)
            return made

        return replace(
            self,
            labels=tuple(range(size)),
            orders={name: table.moved(pool) for name, table in self.orders.items()},
            joint=self.joint.moved(pool),
            moments=np.stack([_pooled_moments(rows, self.count, pool, size) for rows in self.moments]),
            count=added(self.count),
            zero=added(self.zero),
            log_std=added(self.log_std),
        )

    def coarsened(self, bits: int) -> GroupTables:  # noqa: D102
        drop = min(self.bits - bits, self.joint_bits - 1)
        orders = {
            name: table.rebucketed(coarse_keys(table.bucket, self.bits, bits))
            for name, table in self.orders.items()
        }
        return replace(
            self,
            orders=orders,
            joint=self.joint.rebucketed(_coarse_cells(self.joint.bucket, drop)),
            bits=bits,
            joint_bits=self.joint_bits - drop,
        )

    def above(self, other: GroupTables) -> GroupTables:  # noqa: D102
        starts = (0, len(self))
        return replace(
            self,
            labels=(*self.labels, *other.labels),
            orders={name: Table.joined((self.orders[name], other.orders[name]), starts) for name in ORDERS},
            joint=Table.joined((self.joint, other.joint), starts),
            moments=np.concatenate([self.moments, other.moments], axis=2),
            count=np.concatenate([self.count, other.count]),
            zero=np.concatenate([self.zero, other.zero]),
            log_std=np.concatenate([self.log_std, other.log_std]),
        )

    def nbytes(self) -> int:  # noqa: D102
        tables = [*self.orders.values(), self.joint]
        return self.moments.nbytes + sum(table.nbytes() for table in tables) + 24 * len(self)

    def to_arrays(self) -> Arrays:  # noqa: D102
        return {
            "labels": np.asarray(json.dumps(self.labels)),
            "members": np.asarray(self.members),
            "sizes": np.asarray([self.n_groups, self.bits, self.joint_bits], dtype=np.int64),
            "moments": self.moments,
            "count": self.count,
            "zero": self.zero,
            "log_std": self.log_std,
            **table_arrays({**self.orders, "joint": self.joint}),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> GroupTables:
        """Inverse of ``to_arrays``; KeyError or ValueError for anything else."""
        n_groups, bits, joint_bits = (int(value) for value in arrays["sizes"])
        labels = tuple(json.loads(str(arrays["labels"])))
        names = {name: ("count", *PAYLOADS[name]) for name in ORDERS} | {"joint": ("count",)}
        tables = {name: read_table(arrays, name, payloads, len(labels)) for name, payloads in names.items()}
        joint = tables.pop("joint")
        columns = [np.asarray(arrays[name]) for name in ("count", "zero", "log_std")]
        if any(len(column) != len(labels) for column in columns):
            raise ValueError("columns of the groups differ in length")
        return cls(
            labels=labels,
            orders=tables,
            joint=joint,
            moments=np.asarray(arrays["moments"], dtype=float).reshape(len(VARIABLES), 4, len(labels)),
            count=columns[0],
            zero=columns[1],
            log_std=columns[2],
            bits=bits,
            joint_bits=joint_bits,
            members=str(arrays["members"]),
            n_groups=n_groups,
        )


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
