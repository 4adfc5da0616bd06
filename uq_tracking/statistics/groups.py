"""Coarse statistics of many groups (images, scenes, blocks) side by side, so that resampling is one matrix product.

A resample draws groups with replacement, so each group counts some number of times. Its statistics are the groups'
cells, weighted with these numbers and summed; no sample is revisited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from uq_tracking.npz import Arrays, prefixed
from uq_tracking.parallel import map_threads, worker_count
from uq_tracking.statistics.layout import BUILD_BLOCK, Layout, Parts, Rows
from uq_tracking.statistics.orders import Buckets, FloatArray, IntArray, run_starts
from uq_tracking.statistics.sketch import bucket_edges, bucket_of, coarse_bucket, coarse_keys, compact, dense
from uq_tracking.statistics.weights import WEIGHT, Moments, whole
from uq_tracking.typed import cached_property

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Label: TypeAlias = str | int | float | bool

MOST_GROUPS = 1000
"""More groups than this are pooled at random into this many pools of nearly equal numbers of groups."""
GROUP_BITS, GROUP_TABLE_BITS = 5, 3
"""Mantissa bits in the sketch of a group (an image, say), of which there may be thousands."""
STRATUM_BITS, STRATUM_TABLE_BITS = 8, 4
"""Mantissa bits in the sketch of a stratum, of which there are few."""
STORED_BYTES = 8 * 2**20
"""Tables are reduced below this size, uncompressed, before they are stored."""
ENOUGH_GROUPS = 400
"""More groups than this are pooled before buckets are widened: 200 groups give the spread to within 5 %."""
COARSEST = 3
WORTH_COARSER = 0.9
"""Wider buckets must shrink the tables at least to this fraction."""
DENSE = 1 << 22
"""How many numbers of a dense table are multiplied at a time."""
WAITING = 1 << 18
"""At least this many cells may wait before they are summed."""


@dataclass(frozen=True, eq=False)
class GroupCells:
    """Sums by group and bucket, as sparse matrices: a row per group, a column per bucket."""

    bucket: npt.NDArray[Any]
    """Key of each column, ascending."""
    sums: Mapping[str, csr_array]
    """Sums over each cell's samples, including ``count``; all have the same cells."""

    @classmethod
    def of(
        cls, groups: int, row: IntArray, column: IntArray, bucket: npt.NDArray[Any], sums: Arrays
    ) -> GroupCells:
        """Add up the cells of ``groups`` groups that share a row and a bucket, whose key is ``bucket[column]``."""
        from scipy.sparse import csr_array

        used, place = np.unique(bucket, return_inverse=True)
        width = max(len(used), 1)
        cell, at, _ = compact(row.astype(np.int64) * width + place[column], groups * width)
        index = np.int32 if max(len(cell), width) < 2**31 else np.int64
        indices = (cell % width).astype(index)
        indptr = np.searchsorted(cell, np.arange(groups + 1) * width).astype(index)

        def matrix(values: npt.NDArray[Any]) -> csr_array:
            data = np.bincount(at, values, len(cell)).astype(values.dtype, copy=False)
            return csr_array((data, indices, indptr), shape=(groups, len(used)))

        return cls(used, {name: matrix(values) for name, values in sums.items()})

    @classmethod
    def summed(cls, tables: Sequence[GroupCells], pool: IntArray, size: int) -> GroupCells:
        """Sum the groups of all tables into pools; ``pool`` holds the pool of each, one table after the other."""
        rows = np.cumsum([0, *(len(table) for table in tables)])
        columns = np.cumsum([0, *(len(table.bucket) for table in tables)])
        return cls.of(
            size,
            pool[np.concatenate([table.row + start for table, start in zip(tables, rows, strict=False)])],
            np.concatenate([table.column + start for table, start in zip(tables, columns, strict=False)]),
            np.concatenate([table.bucket for table in tables]),
            {name: np.concatenate([table.sums[name].data for table in tables]) for name in tables[0].sums},
        )

    def __len__(self) -> int:
        return int(self.sums["count"].shape[0])

    @cached_property
    def row(self) -> IntArray:
        """Group of each cell."""
        return np.repeat(np.arange(len(self)), np.diff(self.sums["count"].indptr))

    @property
    def column(self) -> IntArray:
        """Bucket of each cell."""
        return np.asarray(self.sums["count"].indices)

    @property
    def values(self) -> dict[str, npt.NDArray[Any]]:
        """The sums of each cell."""
        return {name: matrix.data for name, matrix in self.sums.items()}

    def rebucketed(self, bucket: npt.NDArray[Any]) -> GroupCells:
        """Return the same cells with ``bucket[j]`` for column j; columns that coincide are summed."""
        return self.of(len(self), self.row, self.column, bucket, self.values)

    def weighted(self, weights: FloatArray) -> dict[str, FloatArray]:
        """Every sum by resample and bucket, shape (resamples, buckets); ``weights`` has shape (resamples, groups)."""
        step = max(1, DENSE // max(len(self.bucket), 1))
        made = {name: np.zeros((len(weights), len(self.bucket))) for name in self.sums}
        for start in range(0, len(self), step):  # dense, because most cells of many samples are in use
            part = slice(start, start + step)
            for name, matrix in self.sums.items():
                made[name] += weighted_sums(weights[:, part], matrix[part].toarray())
        return made

    def to_arrays(self, *, full: bool = False) -> Arrays:
        """Plain arrays that ``from_arrays`` reads; sums in 32 bits where that is enough, unless ``full``."""
        sums = self.values if full else {name: _lean(values) for name, values in self.values.items()}
        return {
            "bucket": self.bucket,
            "row": self.row.astype(np.int32),
            "column": self.column.astype(np.int32),
            **{f"sum/{name}": values for name, values in sums.items()},
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], name: str, payloads: Sequence[str], groups: int
    ) -> GroupCells:
        """Inverse of ``to_arrays``, with ``name/`` before each; KeyError or ValueError for anything else."""
        bucket, row, column = (np.asarray(arrays[f"{name}/{part}"]) for part in ("bucket", "row", "column"))
        sums = {payload: np.asarray(arrays[f"{name}/sum/{payload}"]) for payload in payloads}
        if len({len(row), len(column), *(len(values) for values in sums.values())}) != 1:
            raise ValueError(f"columns of {name} differ in length")
        if len(row) and (
            min(row.min(), column.min()) < 0 or row.max() >= groups or column.max() >= len(bucket)
        ):
            raise ValueError(f"cells of {name} lie outside its table")
        wide = {
            payload: values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
            for payload, values in sums.items()
        }
        return cls.of(groups, row, column, bucket, wide)


def _lean(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values in 32 bits, if that changes no count and neither makes nor loses a zero or an infinity."""
    if values.dtype.kind in "iu":
        return values.astype(np.int32) if values.max(initial=0) < 2**31 else values
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    kept = np.array_equal(np.isfinite(small), np.isfinite(values)) and not np.any(
        (small == 0) & (values != 0)
    )
    return small if kept else values


def weighted_sums(weights: FloatArray, values: FloatArray) -> FloatArray:
    """``weights @ values``, where a group of weight 0 does not count even if its value is infinite."""
    finite = np.isfinite(values)
    if finite.all():
        return weights @ values
    made = weights @ np.where(finite, values, 0.0)
    column = np.flatnonzero(~finite.all(axis=0))
    first = np.argmin(finite[:, column], axis=0)
    touched = (weights @ (~finite[:, column]).astype(float)) > 0
    made[:, column] = np.where(touched, values[first, column], made[:, column])
    return made


def pool_chain(groups: int, size: int) -> IntArray:
    """Pool of each group when pools are halved until there are at most ``size``.

    Halved rather than cut to size, so that equal groups share pools whatever size they were reduced to before.
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
    return hashlib.sha256(json.dumps(_as_numbers(labels)).encode()).hexdigest()[:16]


def _as_numbers(labels: Iterable[Label]) -> list[Label]:
    """Return labels; integers, if all are their text, as where one method reads its groups from a file.

    >>> _as_numbers(["2", "10"]), _as_numbers(["2", "010"])
    ([2, 10], ['2', '010'])
    """
    kept = list(labels)
    are_text = all(isinstance(label, str) and label.isdecimal() for label in kept)
    numbers: list[Label] = list(map(int, kept)) if are_text else []
    return numbers if list(map(str, numbers)) == kept else kept


def _in_order(labels: Iterable[Label]) -> list[int]:
    """Return the places of labels in an order that depends on them alone."""
    keys = [(type(key).__name__, key) for key in _as_numbers(labels)]
    return sorted(range(len(keys)), key=keys.__getitem__)


def plain_labels(labels: npt.NDArray[Any]) -> list[Label]:
    """Labels as plain Python text and numbers; dates as ISO text."""
    if labels.dtype.kind in "mM":
        labels = labels.astype(str)
    plain: list[Label] = labels.tolist()
    return plain


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
    def sizes_by_weight(self) -> npt.NDArray[Any]:
        """Weight of each group's samples, or their number if they have no weights."""
        n = self.sums["n"]
        return n * self.moments[-1, 0] if self.weighted else n

    @property
    def unit(self) -> float:
        """Weight of the lightest sample; 1 if samples have no weights."""
        return float(self.moments[-1, 2].min()) if self.weighted else 1.0

    @property
    def moments_by_name(self) -> dict[str, tuple[npt.NDArray[Any], FloatArray]]:
        """The sample count behind each variable's moments, shape (groups,), and the moments, shape (4, groups)."""
        counts = [self.sizes_by_weight] * len(self.layout.moments) + [self.sums["n"]] * self.weighted
        names = [*self.layout.moments, WEIGHT][: len(self.moments)]
        return dict(zip(names, zip(counts, self.moments, strict=True), strict=True))

    @property
    def cells(self) -> list[GroupCells]:
        """All tables of cells."""
        return [*self.orders.values(), *self.tables.values()]

    def resampled(self, weights: FloatArray) -> Iterator[Parts]:
        """Return the parts of every resample, as a sketch of ``bits``.

        Parameters
        ----------
        weights : float array, shape (resamples, groups)
            How many times each group counts.
        """
        orders = {name: cells.weighted(weights) for name, cells in self.orders.items()}
        edges = {name: bucket_spans(cells.bucket, self.bits) for name, cells in self.orders.items()}
        tables = {name: cells.weighted(weights)["count"] for name, cells in self.tables.items()}
        sums = {name: weighted_sums(weights, column[:, None])[:, 0] for name, column in self.sums.items()}
        moments = {
            name: _weighted_moments(weights, count, rows)
            for name, (count, rows) in self.moments_by_name.items()
        }
        for i in range(len(weights)):
            own = {name: found[i] for name, found in moments.items()}
            if self.weighted:  # the same unit whichever groups are drawn
                own[WEIGHT] = replace(own[WEIGHT], low=self.unit)
            made = Parts(
                {name: self._buckets(name, edges[name], found, i) for name, found in orders.items()},
                {name: float(sums[name][i]) for name in self.layout.sums},
                own,
                {
                    name: self.layout.tables[name](
                        self.tables[name].bucket[used := np.flatnonzero(found[i])],
                        self._counts(found[i][used]),
                        self.sizes[name],
                    )
                    for name, found in tables.items()
                },
                counts={name: round(float(sums[name][i])) for name in ("n", *self.layout.counted)},
            )
            yield made.in_units(self.unit)

    def _buckets(
        self, name: str, edges: tuple[FloatArray, FloatArray], sums: Mapping[str, FloatArray], i: int
    ) -> Buckets:
        """Return the non-empty buckets of one resample."""
        used = np.flatnonzero(sums["count"][i])
        payloads = {payload: values[i][used] for payload, values in sums.items() if payload != "count"}
        return Buckets(name, edges[0][used], edges[1][used], self._counts(sums["count"][i][used]), payloads)

    def _counts(self, count: FloatArray) -> npt.NDArray[Any]:
        return count if self.weighted else np.rint(count).astype(np.int64)

    @classmethod
    def summed(cls, parts: Sequence[GroupTables], pool: IntArray, labels: tuple[Label, ...]) -> GroupTables:
        """Sum the groups of all parts into pools with these labels; ``pool`` holds the pool of each group."""
        one, size, order = parts[0], len(labels), np.argsort(pool, kind="stable")
        starts = run_starts(pool[order])
        sums = {
            name: np.add.reduceat(np.concatenate([part.sums[name] for part in parts])[order], starts)
            for name in one.sums
        }
        moments = []
        for found in zip(*(part.moments_by_name.values() for part in parts), strict=True):
            count, rows = (np.concatenate(values, axis=-1)[..., order] for values in zip(*found, strict=True))
            moments.append(_moments(rows, count, starts))

        def cells(kind: str) -> dict[str, GroupCells]:
            tables = [vars(part)[kind] for part in parts]
            return {
                name: GroupCells.summed([each[name] for each in tables], pool, size) for name in tables[0]
            }

        return replace(
            one,
            labels=labels,
            orders=cells("orders"),
            tables=cells("tables"),
            sums=sums,
            moments=np.asarray(moments).reshape(len(moments), 4, size),
        )

    def coarsened(self, bits: int) -> GroupTables:
        """The same groups in wider buckets."""
        coarse = {
            name: self.layout.tables[name].coarse_keys(cells.bucket, self.sizes[name], self.bits - bits)
            for name, cells in self.tables.items()
        }
        return replace(
            self,
            orders={
                name: cells.rebucketed(coarse_keys(cells.bucket, self.bits, bits))
                for name, cells in self.orders.items()
            },
            tables={name: cells.rebucketed(coarse[name][0]) for name, cells in self.tables.items()},
            sizes={name: size for name, (_, size) in coarse.items()},
            bits=bits,
        )

    @classmethod
    def joined(cls, parts: Sequence[GroupTables]) -> GroupTables:
        """Return the groups of several sets with the same bits, by label; groups with equal labels are summed."""
        one = parts[0]
        found = [(type(label), label) for part in parts for label in part.labels]
        labels = list(dict.fromkeys(found))
        place = {labels[i]: k for k, i in enumerate(_in_order(label for _, label in labels))}
        names = tuple(label for _, label in place)
        if len(parts) > 1 or one.labels != names:
            one = cls.summed(parts, np.asarray([place[item] for item in found]), names)
        return replace(one, members=digest_of(names), n_groups=len(names))

    def nbytes(self) -> int:
        """Size of all numbers in bytes, with 64 bits each."""
        numbers = sum(len(cells.column) * (2 + len(cells.sums)) for cells in self.cells)
        return int(self.moments.nbytes + 8 * numbers + 8 * len(self.sums) * len(self))

    def pooled_to(self, size: int) -> GroupTables:
        """The groups in at most ``size`` pools, halved repeatedly so that equal groups pool alike."""
        if len(self) <= size:
            return self
        pool = pool_chain(len(self), size)
        return self.summed([self], pool, tuple(range(int(pool.max()) + 1)))

    def merge(self, *others: GroupTables) -> GroupTables | None:
        """Groups of all; None if one holds pooled groups, whose labels are lost."""
        every = (self, *others)
        if any(len(tables) != tables.n_groups for tables in every):
            return None
        bits = min(tables.bits for tables in every)
        return self.joined([tables.coarsened(bits) for tables in every]).pooled_to(MOST_GROUPS)

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
        arrays = {"about": np.asarray(json.dumps(about)), "moments": self.moments}
        arrays |= prefixed("sum", self.sums)
        for kind, tables in (("order", self.orders), ("table", self.tables)):
            for name, cells in tables.items():
                arrays |= prefixed(f"{kind}/{name}", cells.to_arrays(full=full))
        return arrays

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
            name: GroupCells.from_arrays(arrays, f"table/{name}", ("count",), len(labels))
            for name in layout.tables
        }
        for name, kind in layout.tables.items():
            kind.check_keys(tables[name].bucket, sizes[name])
        return cls(
            layout=layout,
            labels=labels,
            orders={
                name: GroupCells.from_arrays(arrays, f"order/{name}", ("count", *payloads), len(labels))
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


class GroupTally:
    """Counts samples by label.

    Parameters
    ----------
    layout, facts
        As of `Statistics`.
    bits, table_bits : int
        Mantissa bits of the buckets, and of the cells of grids.
    orders : dict of tuple of str, optional
        The orders and payloads that are counted, without any tables; by default all, with the tables.
    """

    def __init__(
        self,
        layout: Layout,
        facts: Mapping[str, Any],
        bits: int = GROUP_BITS,
        table_bits: int = GROUP_TABLE_BITS,
        orders: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.layout, self.facts, self.bits, self.table_bits = layout, facts, bits, table_bits
        self.orders = orders
        self._parts: list[GroupTables] = []
        self._waiting = self._held = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, labels: npt.NDArray[Any], rows: Rows) -> None:
        """Count samples.

        Parameters
        ----------
        labels : array, shape (L,)
            Distinct labels.
        rows : Rows
            Validated samples, as the layout takes them, with the position of each one's label as ``codes``.
        """
        codes = rows["codes"]
        order = np.argsort(codes, kind="stable")
        step = worker_count() * BUILD_BLOCK  # tables of no more blocks wait to be added
        for first in range(0, len(codes), step):
            blocks = range(first, min(first + step, len(codes)), BUILD_BLOCK)
            for tables in map_threads(partial(self._block, labels, rows, order), blocks):
                self.absorb(tables)

    def _block(self, labels: npt.NDArray[Any], every: Rows, order: IntArray, start: int) -> GroupTables:
        """Count a block of samples in an order that sorts them by code."""
        part = order[start : start + BUILD_BLOCK]
        rows = {name: column[part] for name, column in every.items()}
        codes = rows.pop("codes")
        starts = run_starts(codes)
        sizes = np.diff(np.append(starts, len(codes)))
        row = np.repeat(np.arange(len(starts)), sizes)
        columns, weight = self.layout.columns(rows), rows.get(WEIGHT)
        heavy = columns if weight is None else {name: column * weight for name, column in columns.items()}
        groups = len(starts)
        each = {"count": np.ones(len(codes), dtype=np.int64) if weight is None else weight}
        orders = {}
        for name, payloads in (self.orders or self.layout.orders).items():
            buckets, index = dense(coarse_bucket(columns[name], self.bits))
            key = bucket_edges(buckets.astype(np.uint64), self.bits)[0]
            sums = {**each, **{payload: heavy[payload] for payload in payloads}}
            orders[name] = GroupCells.of(groups, row, index, key, sums)
        places = {} if self.orders else self.layout.places(columns, self.facts, self.table_bits)
        sums = {"n": sizes}
        sums |= {
            name: np.add.reduceat(columns[name].astype(np.int64), starts) for name in self.layout.counted
        }
        sums |= {name: np.add.reduceat(heavy[name], starts) for name in self.layout.sums}
        variables = [(columns[name], each["count"]) for name in self.layout.moments]
        variables += [] if weight is None else [(weight, np.ones(len(weight)))]
        moments = [_moments((values, 0.0, values, values), count, starts) for values, count in variables]
        return GroupTables(
            layout=self.layout,
            labels=tuple(plain_labels(labels[codes[starts]])),
            orders=orders,
            tables={
                name: GroupCells.of(groups, row, index, key, each) for name, (key, index, _) in places.items()
            },
            sizes={name: size for name, (_, _, size) in places.items()},
            sums=sums,
            moments=np.asarray(moments, dtype=float).reshape(len(moments), 4, len(starts)),
            bits=self.bits,
            facts=dict(self.facts),
            members="",
            n_groups=len(starts),
        )

    def absorb(self, tables: GroupTables) -> None:
        """Add groups counted with the same bits."""
        self._parts.append(tables)
        self._waiting += sum(len(cells.column) for cells in tables.cells)
        if self._waiting > max(
            WAITING, self._held
        ):  # joined once doubled, so each cell is joined only a few times
            self.tables()

    def tables(self) -> GroupTables | None:
        """Tables of everything counted, in the order of the labels; None if nothing was."""
        if not self._parts:
            return None
        made = GroupTables.joined(self._parts)
        self._parts, self._waiting = [made], 0
        self._held = sum(len(cells.column) for cells in made.cells)
        return made


def count_groups(
    tally: GroupTally, names: Sequence[Label], blocks: Iterable[Rows], members: str | None = None
) -> GroupTables | None:
    """Count rows, whose ``codes`` number distinct names, in an order of the names that depends on them alone.

    Many groups are counted into pools; ``members``, if given, is the digest of the names.
    """
    order = _in_order(names)
    place = np.empty(len(names), dtype=np.int64)
    place[order] = pool_chain(len(names), MOST_GROUPS)
    pools = np.arange(MOST_GROUPS)
    for rows in blocks:
        tally.add(pools, {**rows, "codes": place[rows["codes"]]})
    made, labels = tally.tables(), tuple(names[i] for i in order)
    if made is None:
        return None
    known = labels if len(labels) == len(made) else made.labels
    return replace(made, labels=known, members=members or digest_of(labels), n_groups=len(labels))


def _moments(rows: Any, count: npt.NDArray[Any], starts: IntArray) -> FloatArray:
    """Mean, m2, low and high of consecutive parts, shape (4, parts), from those of their entries and their counts."""
    mean, m2, low, high = rows
    size = np.diff(np.append(starts, len(mean)))
    origin = np.where(np.isfinite(mean[starts]), mean[starts], 0.0)
    with np.errstate(invalid="ignore", over="ignore"):  # a zero std gives infinite z
        gap = mean - np.repeat(origin, size)  # a constant gives exactly zero spread
        shift = np.add.reduceat(gap * count, starts) / np.add.reduceat(count, starts)
        spread = np.add.reduceat(m2 + np.square(gap - np.repeat(shift, size)) * count, starts)
    return np.stack(
        [origin + shift, spread, np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)]
    )
