"""Sketched statistics: sums in log-spaced buckets of the value, constant in size and merged by addition.

A bucket holds the values whose floating-point representation starts with the same bits: sign, exponent and
the first ``bits`` of the mantissa, a relative width of at most ``2 ** -bits``. Finding it is a shift. The idea
comes from DDSketch (Masson, Rim and Lee, VLDB 2019), with payload sums alongside the count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import IncompatibleStatisticsError
from uq_tracking.parallel import TABLE_BLOCK
from uq_tracking.statistics.orders import Buckets, FloatArray, IntArray, run_starts
from uq_tracking.statistics.weights import in_units
from uq_tracking.typed import Self, override

MANTISSA = 52
PAGES = 1 << 12
"""Number of combinations of sign and exponent in a float64."""

CLOSED = -(1 << 62)
"""Stands for the shift of a page that no value has needed yet."""

SKETCH_BITS = 11
"""Mantissa bits of a full sketch: buckets are at most 1/2048 of their value wide."""

JOINT_BITS = 5
"""Mantissa bits of a grid cell: 32 cells per octave for each of the two variables."""


class BucketSums:
    """Counts and payload sums per bucket, in pages of one octave, so that memory grows only with the data's range."""

    def __init__(self, by: str, payloads: Sequence[str], bits: int = SKETCH_BITS) -> None:
        self.by, self.payloads, self.bits = by, tuple(payloads), bits
        self._shift = np.full(PAGES, CLOSED, dtype=np.int64)
        """Per page, the offset from a bucket's number to its position."""
        self._pages: list[int] = []
        self._sums, self._weighted = np.zeros((1 + len(self.payloads), 0)), False
        """Per bucket, its number of samples or their weight, and the sum of each payload."""

    def _places(self, values: FloatArray) -> IntArray:
        """Position of each value (float64) among the buckets; makes room for new octaves."""
        place = (values + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0
        page = place >> MANTISSA
        shift = self._shift[page]  # pages of negative values count from the end
        if shift.min(initial=0) == CLOSED:
            self._open(np.flatnonzero(np.bincount(page & (PAGES - 1))))
            shift = self._shift[page]
        place >>= MANTISSA - self.bits
        place += shift
        return place

    def add(self, columns: Mapping[str, FloatArray], weight: FloatArray | None = None) -> None:
        """Count samples and add their payloads, each multiplied by its weight."""
        index, size = self._places(columns[self.by]), self._sums.shape[1]
        self._weighted |= weight is not None
        self._sums[0] += np.bincount(index, weight, size)
        for sums, name in zip(self._sums[1:], self.payloads, strict=True):
            sums += np.bincount(index, columns[name] if weight is None else columns[name] * weight, size)

    def absorb(self, buckets: Buckets) -> None:
        """Add the buckets of another sketch with the same ``bits``."""
        nearest_zero = np.where(buckets.key < 0, buckets.key + buckets.width, buckets.key)
        index = self._places(nearest_zero)
        self._weighted |= buckets.weighted
        self._sums[:, index] += [buckets.count, *(buckets.sums[name] for name in self.payloads)]

    def _open(self, pages: npt.NDArray[Any]) -> None:
        fresh = pages[self._shift[pages] == CLOSED]
        signed = fresh - np.where(fresh >= PAGES // 2, PAGES, 0)  # what the shift makes of a negative value
        self._shift[fresh] = (len(self._pages) + np.arange(len(fresh)) - signed) << self.bits
        self._pages.extend(fresh.tolist())
        self._sums = np.pad(self._sums, ((0, 0), (0, len(fresh) << self.bits)))

    def buckets(self) -> Buckets:
        """The non-empty buckets, sorted by value."""
        used = np.flatnonzero(self._sums[0])
        page = np.asarray(self._pages, dtype=np.uint64)[used >> self.bits] << np.uint64(self.bits)
        low, width = bucket_edges(page | (used & ((1 << self.bits) - 1)).astype(np.uint64), self.bits)
        order = np.argsort(low, kind="stable")
        count, *sums = np.take(self._sums, used[order], axis=1)
        count = count if self._weighted else count.astype(np.int64)
        return Buckets(self.by, low[order], width[order], count, dict(zip(self.payloads, sums, strict=True)))


def bucket_edges(bucket: npt.NDArray[np.uint64], bits: int) -> tuple[FloatArray, FloatArray]:
    """Lower edge and width of each bucket; zero and infinity are values of their own."""
    shift = np.uint64(MANTISSA - bits)
    near = (bucket << shift).view(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        far = ((bucket + np.uint64(1)) << shift).view(np.float64)
        single = (near == 0) | ~np.isfinite(near)
        low = np.where(single, near, np.minimum(near, far)) + 0.0
        width = np.where(single, 0.0, np.abs(far - near))
    return low, np.where(np.isfinite(width), width, 0.0)


def coarse_bucket(values: FloatArray, bits: int) -> IntArray:
    """Bucket numbers of values, increasing with the value if it is not negative."""
    bucket = (values + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0
    bucket >>= MANTISSA - bits
    return bucket


def bucket_of(key: FloatArray, bits: int) -> npt.NDArray[np.uint64]:
    """Bucket numbers of lower edges; seen from 0, a bucket of negative values starts at its upper edge."""
    key = np.asarray(key, dtype=float) + 0.0
    number = key.view(np.uint64) >> np.uint64(MANTISSA - bits)
    negative = (key < 0) & np.isfinite(key)
    return np.where(negative, number - np.uint64(1), number)


def coarse_keys(key: FloatArray, bits: int, fewer: int) -> FloatArray:
    """Lower edges of the wider buckets, with ``fewer`` mantissa bits, that contain buckets of ``bits``."""
    bucket = bucket_of(key, bits) >> np.uint64(bits - fewer)
    return bucket_edges(bucket, fewer)[0]


_SHIFT = 32
_LOW = (1 << _SHIFT) - 1


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Non-empty cells of a table: merged by adding the counts of equal keys.

    Attributes
    ----------
    key : int array, shape (cells,)
        Ascending.
    count : array, shape (cells,)
        Samples (int64), or their weights.
    size : int
        What the keys mean: mantissa bits of a grid, or the number of classes. Tables of different sizes do not merge.
    """

    key: IntArray
    count: npt.NDArray[Any]
    size: int

    what: ClassVar[str]
    """What ``size`` is, for error messages."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Cells from arrays named like the attributes; KeyError or ValueError for anything else."""
        made = cls(arrays["key"], arrays["count"], int(arrays["size"]))
        cls.check_keys(made.key, made.size)
        return made

    @classmethod
    def check_keys(cls, key: IntArray, size: int) -> None:
        """Raise ValueError for keys outside a table of this size."""
        if len(key) and key.min() < 0:
            raise ValueError("cells lie outside their table")

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """Cells of all parts, which must have the same size."""
        key = np.concatenate([part.key for part in parts])
        order = np.argsort(key, kind="stable")  # fast for concatenated sorted parts
        key, count = key[order], np.concatenate([part.count for part in parts])[order]
        first = run_starts(key)
        return cls(key[first], np.add.reduceat(count, first), parts[0].size)

    def in_units(self, unit: float) -> Self:
        """The same cells, with weights in units of ``unit``."""
        return replace(self, count=in_units(self.count, unit))

    def merge(self, other: Self) -> Self:
        """Cells of both sets of samples; IncompatibleStatisticsError if the sizes differ."""
        if self.size != other.size:
            raise IncompatibleStatisticsError(
                f"{self.what} differs ({self.size} and {other.size}); merge only statistics of one kind"
            )
        return self.total([self, other])

    @classmethod
    def coarse_keys(cls, key: IntArray, size: int, drop: int) -> tuple[IntArray, int]:
        """Keys and size of a table with ``drop`` fewer bits if it is a grid; otherwise unchanged."""
        return key, size


class Confusion(CellCounts):
    """Samples by true and predicted class: ``key`` is ``true * n_classes + predicted``, ``size`` is ``n_classes``."""

    what = "the number of classes"

    @classmethod
    @override
    def check_keys(cls, key: IntArray, size: int) -> None:
        if len(key) and not 0 <= key.min() <= key.max() < size**2:
            raise ValueError("pairs of classes lie outside the confusion matrix")


class Joint(CellCounts):
    """A log-spaced grid: ``key`` is the std's bucket and the error's, 32 bits each; ``size`` is its mantissa bits."""

    what = "joint bits"

    @classmethod
    def places(cls, std: FloatArray, size: FloatArray, bits: int) -> tuple[IntArray, IntArray]:
        """Keys of the non-empty cells, and each row's position among them."""
        s_used, s_index = dense(coarse_bucket(std, bits))
        a_used, a_index = dense(coarse_bucket(size, bits))
        cell, place, _ = compact(s_index * len(a_used) + a_index, len(s_used) * len(a_used))
        return cls.keys(s_used[cell // len(a_used)], a_used[cell % len(a_used)]), place

    @classmethod
    @override
    def coarse_keys(cls, key: IntArray, size: int, drop: int) -> tuple[IntArray, int]:
        drop = min(drop, size - 1)
        return cls.keys((key >> _SHIFT) >> drop, (key & _LOW) >> drop), size - drop

    @staticmethod
    def keys(std_bucket: IntArray, error_bucket: IntArray) -> IntArray:
        """Keys of cells, ordered by the std's bucket, then by the error's."""
        return (std_bucket << _SHIFT) | error_bucket

    @classmethod
    def of(cls, std: npt.NDArray[Any], error: npt.NDArray[Any]) -> Joint:
        """Count samples."""
        made = [cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), JOINT_BITS)]
        for start in range(0, len(std), TABLE_BLOCK):  # a table is traversed once for each of these
            s, a = (column[start : start + TABLE_BLOCK].astype(np.float64) for column in (std, error))
            key = cls.keys(coarse_bucket(s, JOINT_BITS), coarse_bucket(np.abs(a), JOINT_BITS))
            made.append(cls(*np.unique(key, return_counts=True), JOINT_BITS))
        return cls.total(made)

    def coarsened(self, bits: int) -> Joint:
        """The same counts in cells of ``bits`` mantissa bits, or of its own if those are fewer."""
        drop = max(self.size - bits, 0)
        key = self.keys((self.key >> _SHIFT) >> drop, (self.key & _LOW) >> drop)
        return self.total([Joint(key, self.count, self.size - drop)])

    def fitting(self, cells: int) -> Joint:
        """The same counts on the finest grid that uses at most ``cells`` cells along each axis."""
        axes, bits = [np.unique(self.key >> _SHIFT), np.unique(self.key & _LOW)], self.size
        while bits > 0 and max(len(axis) for axis in axes) > cells:
            bits -= 1
            axes = [np.unique(axis >> 1) for axis in axes]
        return self.coarsened(bits)

    def edges(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Lower and upper edges of each cell: std_low, std_high, error_low, error_high."""
        s_low, s_width = bucket_edges((self.key >> _SHIFT).astype(np.uint64), self.size)
        a_low, a_width = bucket_edges((self.key & _LOW).astype(np.uint64), self.size)
        return s_low, s_low + s_width, a_low, a_low + a_width


def dense(bucket: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct buckets, and each row's position among them."""
    low = int(bucket.min())
    above = bucket - low
    present = np.bincount(above) > 0
    place = np.cumsum(present) - 1
    return np.flatnonzero(present) + low, np.take(place, above, out=above, mode="clip")  # "raise" would copy


def compact(cell: IntArray, size: int) -> tuple[IntArray, IntArray, IntArray]:
    """The non-empty cells (of 0 ... size - 1), each row's position among them, and their counts."""
    if np.all(cell[1:] > cell[:-1]):  # as stored
        return cell, np.arange(len(cell)), np.ones(len(cell), dtype=np.int64)
    if size > 8 * len(cell):  # the table would be nearly all zeros
        used, place, count = np.unique(cell, return_inverse=True, return_counts=True)
        return used, place, count.astype(np.int64)
    count = np.bincount(cell, minlength=size)
    used = np.flatnonzero(count)
    index = np.zeros(size, dtype=np.int64)
    index[used] = np.arange(len(used))
    return used, index[cell], count[used].astype(np.int64)
