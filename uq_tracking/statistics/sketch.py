"""Sketched statistics: sums in log-spaced buckets of the value, constant in size and merged by addition.

A bucket holds the values whose floating-point representation starts with the same bits: sign, exponent and
the first ``bits`` of the mantissa, a relative width of at most ``2 ** -bits``. Finding it is a shift. The idea
comes from DDSketch (Masson, Rim and Lee, VLDB 2019), with payload sums alongside the count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.orders import Buckets, FloatArray, IntArray

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
        self._fine = max(bits, JOINT_BITS)
        self._shift = np.full(PAGES, CLOSED, dtype=np.int64)
        """Per page, the offset from a fine bucket's number to its position."""
        self._pages: list[int] = []
        self._count: npt.NDArray[Any] = np.zeros(0, dtype=np.int64)
        self._sums = {name: np.zeros(0) for name in self.payloads}

    def places(self, values: FloatArray) -> IntArray:
        """Position of each value (float64) among the fine buckets; makes room for new octaves."""
        place = (values + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0
        page = place >> MANTISSA
        shift = self._shift[page]  # pages of negative values count from the end
        if shift.min(initial=0) == CLOSED:
            self._open(np.flatnonzero(np.bincount(page & (PAGES - 1))))
            shift = self._shift[page]
        place >>= MANTISSA - self._fine
        place += shift
        return place

    def add(self, places: IntArray, sums: Mapping[str, FloatArray], weight: FloatArray | None = None) -> None:
        """Count values at these positions and add their payloads, each multiplied by its weight."""
        index, size = self._index(places), len(self._count)
        if weight is not None:
            self._count = self._count.astype(np.float64, copy=False)
        self._count += np.bincount(index, weight, size)
        for name in self.payloads:
            column = sums[name] if weight is None else sums[name] * weight
            self._sums[name] += np.bincount(index, column, size)

    def absorb(self, buckets: Buckets) -> None:
        """Add the buckets of another sketch with the same ``bits``."""
        nearest_zero = np.where(buckets.key < 0, buckets.key + buckets.width, buckets.key)
        index = self._index(self.places(nearest_zero))
        if buckets.weighted:
            self._count = self._count.astype(np.float64, copy=False)
        self._count[index] += buckets.count
        for name in self.payloads:
            self._sums[name][index] += buckets.sums[name]

    def _index(self, places: IntArray) -> IntArray:
        return places if self._fine == self.bits else places >> (self._fine - self.bits)

    def _open(self, pages: npt.NDArray[Any]) -> None:
        fresh = pages[self._shift[pages] == CLOSED]
        signed = fresh - np.where(fresh >= PAGES // 2, PAGES, 0)  # what the shift makes of a negative value
        self._shift[fresh] = (len(self._pages) + np.arange(len(fresh)) - signed) << self._fine
        self._pages.extend(fresh.tolist())
        size = len(fresh) << self.bits
        self._count = np.concatenate([self._count, np.zeros(size, dtype=self._count.dtype)])
        for name, column in self._sums.items():
            self._sums[name] = np.concatenate([column, np.zeros(size)])

    def buckets(self) -> Buckets:
        """The non-empty buckets, sorted by value."""
        used = np.flatnonzero(self._count)
        low, width = bucket_edges(self._buckets(used, self.bits), self.bits)
        order = np.argsort(low, kind="stable")
        sums = {name: column[used][order] for name, column in self._sums.items()}
        return Buckets(self.by, low[order], width[order], self._count[used][order], sums)

    @property
    def n_cells(self) -> int:
        """Number of cells along one axis of a grid."""
        return len(self._pages) << JOINT_BITS

    def cells(self, places: IntArray) -> IntArray:
        """The cell along a grid's axis that contains each position."""
        return places >> (self._fine - JOINT_BITS)

    def cell_buckets(self, cells: IntArray) -> IntArray:
        """Bucket numbers of cells."""
        return self._buckets(cells, JOINT_BITS).astype(np.int64)

    def _buckets(self, index: IntArray, bits: int) -> npt.NDArray[np.uint64]:
        page = np.asarray(self._pages, dtype=np.uint64)[index >> bits]
        return np.asarray((page << np.uint64(bits)) | (index & ((1 << bits) - 1)).astype(np.uint64))


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
