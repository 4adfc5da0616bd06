"""Sketched statistics: sums in log-spaced buckets of the value, of constant size and merged by addition.

A bucket holds the values whose floating-point representation starts with the same bits: sign, exponent and
the first ``bits`` of the mantissa, a relative width of at most ``2 ** -bits``. Finding it is a shift. The idea
is DDSketch's (Masson, Rim and Lee, VLDB 2019), with payload sums beside the count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import spans
from uq_tracking.statistics.grouped import FloatArray, Grouped, IntArray

MANTISSA = 52
PAGES = 1 << 12
"""Values of the sign and the exponent of a float64."""

CLOSED = -(1 << 62)
"""In place of the shift to a page that no value has called for."""

SKETCH_BITS = 11
"""Mantissa bits of a full sketch: buckets are at most 1/2048 of their value wide."""


class BucketSums:
    """Counts and payload sums per bucket, kept in pages of one octave, so memory follows the data."""

    def __init__(self, by: str, payloads: Sequence[str], bits: int = SKETCH_BITS) -> None:
        self.by, self.payloads, self.bits = by, tuple(payloads), bits
        self._shift = np.full(PAGES, CLOSED, dtype=np.int64)
        """From a bucket's number to its place in the tables, per page."""
        self._pages: list[int] = []
        self._count: npt.NDArray[Any] = np.zeros(0, dtype=np.int64)
        self._sums = {name: np.zeros(0) for name in self.payloads}

    def add(
        self, values: FloatArray, sums: Mapping[str, FloatArray], weight: FloatArray | None = None
    ) -> None:
        """Count values (float64, shape (n,)) and add their payloads, each as often as its weight says."""
        index = self._index(values)
        if weight is not None:
            self._count = self._count.astype(np.float64, copy=False)
        self._count += np.bincount(index, weight, minlength=len(self._count))
        for name in self.payloads:
            column = sums[name] if weight is None else sums[name] * weight
            self._sums[name] += np.bincount(index, column, minlength=len(self._count))

    def absorb(self, groups: Grouped) -> None:
        """Add the buckets of another sketch of the same ``bits``."""
        nearest_zero = np.where(groups.key < 0, groups.key + groups.width, groups.key)
        index = self._index(nearest_zero)
        if groups.weighted:
            self._count = self._count.astype(np.float64, copy=False)
        self._count[index] += groups.count
        for name in self.payloads:
            self._sums[name][index] += groups.sums[name]

    def _index(self, values: FloatArray) -> IntArray:
        """Where in the tables each value's bucket lies; makes room for new octaves."""
        index = np.empty(len(values), dtype=np.int64)
        for start, end in spans(len(values)):
            bucket = coarse_bucket(values[start:end], self.bits)
            page = bucket >> self.bits
            page &= PAGES - 1
            shift = self._shift.take(page)
            if shift.min() == CLOSED:
                self._open(np.unique(page))
                shift = self._shift.take(page)
            np.add(bucket, shift, out=index[start:end])
        return index

    def _open(self, pages: npt.NDArray[Any]) -> None:
        fresh = pages[self._shift[pages] == CLOSED]
        signed = fresh - np.where(fresh >= PAGES // 2, PAGES, 0)  # what the shift makes of a negative value
        self._shift[fresh] = (len(self._pages) + np.arange(len(fresh)) - signed) << self.bits
        self._pages.extend(fresh.tolist())
        size = len(fresh) << self.bits
        self._count = np.concatenate([self._count, np.zeros(size, dtype=self._count.dtype)])
        for name, column in self._sums.items():
            self._sums[name] = np.concatenate([column, np.zeros(size)])

    def grouped(self) -> Grouped:
        """The buckets that hold samples, sorted by value."""
        used = np.flatnonzero(self._count)
        page = np.asarray(self._pages, dtype=np.uint64)[used >> self.bits]
        bucket = (page << np.uint64(self.bits)) | (used & ((1 << self.bits) - 1)).astype(np.uint64)
        low, width = bucket_edges(bucket, self.bits)
        order = np.argsort(low, kind="stable")
        sums = {name: column[used][order] for name, column in self._sums.items()}
        return Grouped(self.by, low[order], width[order], self._count[used][order], sums)


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
    """Bucket number of values, increasing with the value where it is not negative."""
    bucket = (values + 0.0).view(np.int64)  # + 0.0 makes -0.0 zero
    bucket >>= MANTISSA - bits
    return bucket


def bucket_of(key: FloatArray, bits: int) -> npt.NDArray[np.uint64]:
    """Bucket numbers of lower edges; a bucket of negative values starts, seen from 0, at its upper edge."""
    key = np.asarray(key, dtype=float) + 0.0
    number = key.view(np.uint64) >> np.uint64(MANTISSA - bits)
    negative = (key < 0) & np.isfinite(key)
    return np.where(negative, number - np.uint64(1), number)


def coarse_keys(key: FloatArray, bits: int, fewer: int) -> FloatArray:
    """Lower edges of the wider buckets of ``fewer`` mantissa bits that buckets of ``bits`` fall into."""
    bucket = bucket_of(key, bits) >> np.uint64(bits - fewer)
    return bucket_edges(bucket, fewer)[0]
