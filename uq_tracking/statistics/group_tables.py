"""Coarse statistics of many groups (images, scenes, blocks) side by side, so that resampling is one matrix product.

A resample draws groups with replacement, so each group counts some number of times. Its statistics are the groups'
cells, weighted with these numbers and summed; no sample is revisited.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.npz import Arrays
from uq_tracking.statistics.group_cells import GroupCells, cell_arrays, read_cells, weighted_sums
from uq_tracking.statistics.group_pooling import (
    MOST_GROUPS,
    Label,
    Pooling,
    digest_of,
    label_order,
    pool_chain,
)
from uq_tracking.statistics.layout import Layout, Parts
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.orders import Buckets, FloatArray, IntArray
from uq_tracking.statistics.sketch import bucket_edges, bucket_of, coarse_keys
from uq_tracking.statistics.weights import WEIGHT, whole

STORED_BYTES = 8 * 2**20
"""Tables are reduced below this size, uncompressed, before they are stored."""
ENOUGH_GROUPS = 400
"""More groups than this are pooled before buckets are widened: 200 groups give the spread to within 5 %."""
COARSEST = 3
WORTH_COARSER = 0.9
"""Wider buckets must shrink the tables at least to this fraction."""
EACH_AT_ONCE = 1 << 16
"""Weights, groups by groups, held at a time when every group is examined by itself."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupTables:
    """Coarse statistics of groups, in tables that can be resampled, pooled, merged and coarsened for storage.

    Attributes
    ----------
    layout : Layout
    labels : tuple
        Label of each group, in an order that depends on the labels alone; numbers if groups are pooled.
    orders : dict of GroupCells
        Counts and payload sums by each value the samples are ordered by.
    tables : dict of GroupCells
        Counts by the cells of each table of the layout.
    sizes : dict of int
        ``CellCounts.size`` of each table.
    sums : dict of arrays, shape (groups,)
        ``n``, what the layout counts, and what it sums.
    moments : array, shape (variables, 4, groups)
        Mean, sum of squared deviations, minimum and maximum of each moment variable; if samples have weights, the
        weight is the last one, and all other sums are weighted with the weights as given.
    bits : int
        Mantissa bits of the buckets.
    facts : dict
        As of `Statistics`.
    members : str
        Digest of the groups' labels, which shows whether two tables hold the same groups.
    n_groups : int
        Number of groups before pooling.
    """

    layout: Layout
    labels: tuple[Label, ...]
    orders: Mapping[str, GroupCells]
    tables: Mapping[str, GroupCells]
    sizes: Mapping[str, int]
    sums: Mapping[str, npt.NDArray[Any]]
    moments: FloatArray
    bits: int
    facts: Mapping[str, Any]
    members: str
    n_groups: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def weighted(self) -> bool:
        """Whether the samples have weights."""
        return len(self.moments) > len(self.layout.moments)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the moment variables."""
        return (*self.layout.moments, WEIGHT) if self.weighted else self.layout.moments

    @property
    def sizes_by_weight(self) -> npt.NDArray[Any]:
        """Weight of each group's samples, or their number if they have no weights."""
        n = self.sums["n"]
        return n * self.moments[-1, 0] if self.weighted else n

    @property
    def unit(self) -> float:
        """Weight of the lightest sample; 1 if samples have no weights."""
        return float(self.moments[-1, 2].min()) if self.weighted else 1.0

    @property
    def moment_counts(self) -> list[npt.NDArray[Any]]:
        """The sample count behind the moments of each variable, each of shape (groups,)."""
        own = [self.sizes_by_weight] * len(self.layout.moments)
        return [*own, self.sums["n"]] if self.weighted else own

    def resampled(self, weights: FloatArray) -> Iterator[Parts]:
        """The parts of every resample, as a sketch of ``bits``.

        Parameters
        ----------
        weights : float array, shape (resamples, groups)
            How many times each group counts.
        """
        orders = {name: cells.weighted(weights) for name, cells in self.orders.items()}
        edges = {name: bucket_spans(cells.bucket, self.bits) for name, cells in self.orders.items()}
        tables = {name: cells.weighted(weights)["count"] for name, cells in self.tables.items()}
        sums = {name: weighted_sums(weights, column[:, None])[:, 0] for name, column in self.sums.items()}
        moments = [
            _weighted_moments(weights, count, rows)
            for count, rows in zip(self.moment_counts, self.moments, strict=True)
        ]
        for i in range(len(weights)):
            counts = {name: round(float(sums[name][i])) for name in ("n", *self.layout.counted)}
            made = Parts(
                {
                    name: _grouped(name, edges[name], found, i, weighted=self.weighted)
                    for name, found in orders.items()
                },
                {name: float(sums[name][i]) for name in self.layout.sums},
                dict(zip(self.variables, (rows[i] for rows in moments), strict=True)),
                {
                    name: self.layout.tables[name](
                        *_used(self.tables[name].bucket, found[i], weighted=self.weighted), self.sizes[name]
                    )
                    for name, found in tables.items()
                },
                counts=counts,
            )
            if self.weighted:  # the same unit whichever groups are drawn
                made = replace(
                    made, moments={**made.moments, WEIGHT: replace(made.moments[WEIGHT], low=self.unit)}
                )
            yield made.in_units(self.unit)

    def each(self) -> Iterator[tuple[Label, Parts]]:
        """Label and parts of every group."""
        step = max(1, EACH_AT_ONCE // max(len(self), 1))
        for start in range(0, len(self), step):
            weights = np.eye(len(self))[start : start + step]
            yield from zip(self.labels[start : start + step], self.resampled(weights), strict=True)

    def pooled(self, pool: IntArray) -> GroupTables:
        """Groups summed into pools: ``pool`` holds the pool of each, 0 ... P - 1, all in use."""
        size = int(pool.max()) + 1
        moments = [
            _pooled_moments(rows, count, pool, size)
            for count, rows in zip(self.moment_counts, self.moments, strict=True)
        ]
        return replace(
            self,
            labels=tuple(range(size)),
            orders={name: cells.moved(pool) for name, cells in self.orders.items()},
            tables={name: cells.moved(pool) for name, cells in self.tables.items()},
            sums={name: _added(column, pool, size) for name, column in self.sums.items()},
            moments=np.stack(moments) if moments else np.zeros((0, 4, size)),
        )

    def coarsened(self, bits: int) -> GroupTables:
        """The same groups in wider buckets."""
        orders = {
            name: cells.rebucketed(coarse_keys(cells.bucket, self.bits, bits))
            for name, cells in self.orders.items()
        }
        coarse = {
            name: self.layout.tables[name].coarse_keys(cells.bucket, self.sizes[name], self.bits - bits)
            for name, cells in self.tables.items()
        }
        return replace(
            self,
            orders=orders,
            tables={name: cells.rebucketed(coarse[name][0]) for name, cells in self.tables.items()},
            sizes={name: size for name, (_, size) in coarse.items()},
            bits=bits,
        )

    def above(self, other: GroupTables) -> GroupTables:
        """These groups followed by those of another set with the same bits; labels may repeat."""
        starts = (0, len(self))

        def joined(mine: Mapping[str, GroupCells], theirs: Mapping[str, GroupCells]) -> dict[str, GroupCells]:
            return {name: GroupCells.joined((cells, theirs[name]), starts) for name, cells in mine.items()}

        return replace(
            self,
            labels=(*self.labels, *other.labels),
            orders=joined(self.orders, other.orders),
            tables=joined(self.tables, other.tables),
            sums={name: np.concatenate([column, other.sums[name]]) for name, column in self.sums.items()},
            moments=np.concatenate([self.moments, other.moments], axis=2),
        )

    def in_order(self) -> GroupTables:
        """The same groups in the order of their labels; groups with the same label are summed."""
        labels = sorted(
            {(type(label), label) for label in self.labels}, key=lambda item: label_order(item[1])
        )
        place = {item: i for i, item in enumerate(labels)}
        moved = self.pooled(np.asarray([place[type(label), label] for label in self.labels]))
        names = tuple(label for _, label in labels)
        return replace(moved, labels=names, members=digest_of(names), n_groups=len(names))

    def width(self) -> int:
        """How many numbers a resample's weighted sums take."""
        cells = [*self.orders.values(), *self.tables.values()]
        return sum(len(each.bucket) * len(each.sums) for each in cells)

    def nbytes(self) -> int:
        """Size of all numbers in bytes."""
        cells = [*self.orders.values(), *self.tables.values()]
        return int(
            self.moments.nbytes + sum(each.nbytes() for each in cells) + 8 * len(self.sums) * len(self)
        )

    def pooled_to(self, size: int) -> GroupTables:
        """The groups in at most ``size`` pools, halved repeatedly so that equal groups pool alike."""
        return self if len(self) <= size else self.pooled(pool_chain(len(self), size))

    def named(self, pooling: Pooling) -> GroupTables:
        """The same tables, labelled by the pools of ``pooling``."""
        labels = pooling.labels if len(pooling.labels) == len(self) else self.labels
        return replace(self, labels=labels, members=pooling.members, n_groups=len(pooling.labels))

    def merge(self, *others: GroupTables) -> GroupTables | None:
        """Groups of all; None if one holds pooled groups, whose labels are lost."""
        every = (self, *others)
        if any(len(tables) != tables.n_groups for tables in every):
            return None
        bits = min(tables.bits for tables in every)
        first, *rest = (tables.coarsened(bits) for tables in every)
        return reduce(GroupTables.above, rest, first).in_order().pooled_to(MOST_GROUPS)

    def stored(self, limit: int = STORED_BYTES) -> GroupTables:
        """The form that takes at most ``limit`` bytes: first fewer, pooled groups, then wider buckets."""
        made = self
        while made.nbytes() > 2 * limit and len(made) > ENOUGH_GROUPS:  # stored as 32-bit numbers
            made = made.pooled_to((len(made) + 1) // 2)
        while made.nbytes() > 2 * limit and made.bits > COARSEST:
            finer, made = made, made.coarsened(made.bits - 1)
            if made.nbytes() > WORTH_COARSER * finer.nbytes():
                made = finer  # what takes the room is not buckets but pairs of many classes
                break
        while made.nbytes() > 2 * limit and len(made) > 2:
            made = made.pooled_to((len(made) + 1) // 2)
        return made

    def to_arrays(self, *, full: bool = False) -> Arrays:
        """Plain arrays to store; sums in 32 bits where that is enough, unless ``full``."""
        about = {
            "labels": self.labels,
            "members": self.members,
            "n_groups": self.n_groups,
            "bits": self.bits,
            "sizes": dict(self.sizes),
            "facts": dict(self.facts),
        }
        return {
            "about": np.asarray(json.dumps(about)),
            "moments": self.moments,
            **{f"sum/{name}": column for name, column in self.sums.items()},
            **cell_arrays({f"order/{name}": cells for name, cells in self.orders.items()}, full=full),
            **cell_arrays({f"table/{name}": cells for name, cells in self.tables.items()}, full=full),
        }

    @classmethod
    def from_arrays(cls, layout: Layout, arrays: Mapping[str, npt.NDArray[Any]]) -> GroupTables:
        """Inverse of ``to_arrays``; KeyError, TypeError or ValueError for anything else."""
        about = json.loads(str(arrays["about"]))
        labels = tuple(about["labels"])
        sums = {name: np.asarray(arrays[f"sum/{name}"]) for name in ("n", *layout.counted, *layout.sums)}
        if any(column.shape != (len(labels),) for column in sums.values()):
            raise ValueError("columns of the groups differ in length")
        sizes = {name: int(about["sizes"][name]) for name in layout.tables}
        tables = {
            name: read_cells(arrays, f"table/{name}", ("count",), len(labels)) for name in layout.tables
        }
        for name, kind in layout.tables.items():
            kind.check_keys(tables[name].bucket, sizes[name])
        return cls(
            layout=layout,
            labels=labels,
            orders={
                name: read_cells(arrays, f"order/{name}", ("count", *payloads), len(labels))
                for name, payloads in layout.orders.items()
            },
            tables=tables,
            sizes=sizes,
            sums=sums,
            moments=np.asarray(arrays["moments"], dtype=float).reshape(-1, 4, len(labels)),
            bits=int(about["bits"]),
            facts=dict(about["facts"]),
            members=str(about["members"]),
            n_groups=int(about["n_groups"]),
        )


def bucket_spans(bucket: FloatArray, bits: int) -> tuple[FloatArray, FloatArray]:
    """Lower edge and width of each bucket."""
    return bucket, bucket_edges(bucket_of(bucket, bits), bits)[1]


def _grouped(
    name: str,
    edges: tuple[FloatArray, FloatArray],
    sums: Mapping[str, FloatArray],
    i: int,
    *,
    weighted: bool,
) -> Buckets:
    """The non-empty buckets of one resample."""
    used = np.flatnonzero(sums["count"][i])
    payloads = {payload: values[i][used] for payload, values in sums.items() if payload != "count"}
    count = sums["count"][i][used]
    return Buckets(name, edges[0][used], edges[1][used], count if weighted else _whole(count), payloads)


def _used(key: IntArray, count: FloatArray, *, weighted: bool) -> tuple[IntArray, npt.NDArray[Any]]:
    used = np.flatnonzero(count)
    return key[used], count[used] if weighted else _whole(count[used])


def _whole(count: FloatArray) -> IntArray:
    return np.rint(count).astype(np.int64)


def _added(values: npt.NDArray[Any], pool: IntArray, size: int) -> npt.NDArray[Any]:
    made = np.zeros(size, dtype=values.dtype)
    np.add.at(made, pool, values)
    return made


def _pooled_moments(rows: FloatArray, count: npt.NDArray[Any], pool: IntArray, size: int) -> FloatArray:
    made = [Moments()] * size
    for place, n, row in zip(pool.tolist(), count.tolist(), rows.T.tolist(), strict=True):
        made[place] = made[place].merge(Moments(n, *row))
    return np.asarray([(m.mean, m.m2, m.low, m.high) for m in made]).T


def _weighted_moments(weights: FloatArray, count: npt.NDArray[Any], rows: FloatArray) -> list[Moments]:
    """Moments of every resample, from mean, m2, low and high of the groups, shape (4, groups)."""
    mean, m2, low, high = rows
    with np.errstate(invalid="ignore", over="ignore"):
        origin = float(np.mean(mean[np.isfinite(mean)])) if np.isfinite(mean).any() else 0.0
        gap = mean - origin
        sums = weighted_sums(weights, np.stack([count, count * gap, m2 + count * gap * gap], axis=1))
        n, first, second = sums.T
        centre, spread = origin + first / n, second - first * first / n
    drawn = weights > 0
    least = np.where(drawn, low, np.inf).min(axis=1)
    greatest = np.where(drawn, high, -np.inf).max(axis=1)
    spread = np.where(least == greatest, 0.0, np.maximum(spread, 0.0))
    columns = zip(
        n.tolist(), centre.tolist(), spread.tolist(), least.tolist(), greatest.tolist(), strict=True
    )
    return [Moments(whole(size), *rest) for size, *rest in columns]
