"""Groups of samples (images, scenes, blocks) side by side: what their tables have in common in every task."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.cells import Table
from uq_tracking.statistics.grouped import FloatArray, IntArray

if TYPE_CHECKING:
    from typing_extensions import Self

Label = str | int | float | bool
Arrays = dict[str, npt.NDArray[Any]]

MOST_GROUPS = 1000
"""More groups than this are pooled at random into so many, of nearly equal numbers of groups."""
STORED_BYTES = 8 * 2**20
"""Size that tables are brought under before they are stored, uncompressed."""
ENOUGH_GROUPS = 400
"""More groups than this are pooled before their buckets are made wider: the spread is known to 5 % from 200."""
COARSEST = 3
WORTH_COARSER = 0.9
"""Wider buckets have to make the tables at least so much smaller."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pools(ABC):
    """Coarse statistics of groups, in tables that are resampled, pooled, merged, and made coarser to be stored.

    Attributes
    ----------
    labels : tuple
        Label of each group, in an order that depends on the labels alone; numbers where groups are pooled.
    orders : dict of Table
        Counts and payload sums by each value that the samples are sorted by.
    bits : int
        Mantissa bits of the buckets.
    members : str
        Digest of the groups' labels, which tells whether two tables hold the same groups.
    n_groups : int
        Number of groups before pooling.
    """

    labels: tuple[Label, ...]
    orders: Mapping[str, Table]
    bits: int
    members: str
    n_groups: int

    def __len__(self) -> int:
        return len(self.labels)

    @abstractmethod
    def resampled(self, weights: FloatArray, like: Any) -> Iterator[Any]:
        """Statistics of every resample.

        Parameters
        ----------
        weights : float array, shape (resamples, groups)
            How many times each group counts.
        like : statistics of the task
            Where the resamples take what does not depend on the samples from.
        """

    @abstractmethod
    def pooled(self, pool: IntArray) -> Self:
        """Groups added up: ``pool`` holds the new place of each, 0 ... P - 1, all of them in use."""

    @abstractmethod
    def coarsened(self, bits: int) -> Self:
        """The same groups in wider buckets."""

    @abstractmethod
    def above(self, other: Self) -> Self:
        """These groups and then those of another set of the same bits; labels may repeat."""

    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all numbers."""

    @abstractmethod
    def to_arrays(self) -> Arrays:
        """Plain arrays to store; sums in 32 bits where these hold them."""

    def width(self) -> int:
        """Numbers that a resample's weighted sums take."""
        return sum(len(table.bucket) * len(table.sums) for table in self.orders.values())

    def pooled_to(self, size: int) -> Self:
        """The groups in at most ``size`` pools: halved until they are, so that equal groups pool alike."""
        return self if len(self) <= size else self.pooled(pool_chain(len(self), size))

    def named(self, pooling: Pooling) -> Self:
        """The same tables of the pools that ``pooling`` put its groups into."""
        labels = pooling.labels if len(pooling.labels) == len(self) else self.labels
        return replace(self, labels=labels, members=pooling.members, n_groups=len(pooling.labels))

    def merge(self, other: Self) -> Self | None:
        """Groups of both; None where one holds pooled groups, which no longer tell their labels."""
        if any(len(tables) != tables.n_groups for tables in (self, other)):
            return None
        bits = min(self.bits, other.bits)
        joined = self.coarsened(bits).above(other.coarsened(bits))
        labels = sorted({*self.labels, *other.labels}, key=label_order)
        place = {(type(label), label): i for i, label in enumerate(labels)}
        pool = np.asarray([place[type(label), label] for label in joined.labels])
        made = replace(
            joined.pooled(pool), labels=tuple(labels), members=digest_of(labels), n_groups=len(labels)
        )
        return made.pooled_to(MOST_GROUPS)

    def stored(self, limit: int = STORED_BYTES) -> Self:
        """The form that takes at most ``limit`` bytes: fewer, pooled groups, then wider buckets."""
        made = self
        while made.nbytes() > 2 * limit and len(made) > ENOUGH_GROUPS:  # stored as 32-bit numbers
            made = made.pooled_to((len(made) + 1) // 2)
        while made.nbytes() > 2 * limit and made.bits > COARSEST:
            finer, made = made, made.coarsened(made.bits - 1)
            if made.nbytes() > WORTH_COARSER * finer.nbytes():
                made = finer  # it is not the buckets that take the room, but pairs of many classes
                break
        while made.nbytes() > 2 * limit and len(made) > 2:
            made = made.pooled_to((len(made) + 1) // 2)
        return made


@dataclass(frozen=True, eq=False)
class Pooling:
    """Where groups go before they are counted.

    Attributes
    ----------
    labels : tuple
        Distinct labels, in an order that depends on them alone.
    place : int array
        Pool of each label, in the order that the labels were given in.
    members : str
        Digest of the labels.
    """

    labels: tuple[Label, ...]
    place: IntArray
    members: str

    @classmethod
    def of(cls, names: Sequence[Label], members: str | None = None, most: int = MOST_GROUPS) -> Pooling:
        """Pools of distinct labels; ``members`` stands for a digest of them."""
        order = sorted(range(len(names)), key=lambda i: label_order(names[i]))
        place = np.empty(len(names), dtype=np.int64)
        place[order] = pool_chain(len(names), most)
        labels = tuple(names[i] for i in order)
        return cls(labels, place, digest_of(labels) if members is None else members)


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


def table_arrays(tables: Mapping[str, Table], *, full: bool = False) -> Arrays:
    """Plain arrays of tables that ``read_table`` reads; sums in 32 bits where these hold them, unless ``full``."""
    arrays: Arrays = {}
    for name, table in tables.items():
        arrays |= {f"{name}/bucket": table.bucket, f"{name}/row": table.row.astype(np.int32)}
        arrays[f"{name}/column"] = table.column.astype(np.int32)
        arrays |= {
            f"{name}/sum/{key}": values if full else _lean(values) for key, values in table.sums.items()
        }
    return arrays


def _lean(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind in "iu":
        return values.astype(np.int32) if values.max(initial=0) < 2**31 else values
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    lossless = np.array_equal(np.isfinite(small), np.isfinite(values)) and not np.any(
        (small == 0) & (values != 0)
    )
    return small if lossless else values


def read_table(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, payloads: Sequence[str], rows: int
) -> Table:
    """A table of ``table_arrays``; KeyError or ValueError for anything else."""
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
