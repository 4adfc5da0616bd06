"""Samples sorted by a value, from which every ranking, scoring and calibration number is computed.

A bucket holds the samples that share a value (exact) or a narrow range of values (sketch). Samples within a bucket
have no order: every cumulative sum is linear in the count, which is its expectation over a uniformly random order, so
ties never depend on the order of the input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import IncompatibleStatisticsError
from uq_tracking.parallel import map_spans, spans
from uq_tracking.statistics.weights import in_units
from uq_tracking.typed import cached_property, override

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Side = Literal["left", "right"]
Ties = Literal["merged", "free", "unordered"]
"""Samples of equal value form one bucket, or one bucket each.

"free" is cheaper; it suffices where the order within ties makes no difference. "unordered" sorts nothing: blocks then
hold samples in any order, and their ``ends`` say nothing; it suffices for sums over samples.
"""

R = TypeVar("R")

SQUARE_OF = {
    "std": "std2",
    "abs_error": "sq_error",
    "z": "z2",
    "one_minus_confidence": "one_minus_confidence2",
    "probability": "probability2",
}
"""The payload that holds the square of the value by which buckets are sorted."""

TIED = 1e-5
"""A bucket's values count as equal if their relative spread is below this: sums of 10^5 equal values show 4e-6."""
SAME = 1e-10
"""A tied bucket's mean is known to this relative precision: that of 10^5 equal values is off by up to 2e-12."""
SHORT = 1 - 1e-12
"""Cumulative weights within this fraction of a rank reach it: the rest is rounding."""


@dataclass(frozen=True)
class Block:
    """Consecutive whole buckets: value range, count and payload sums of each."""

    low: FloatArray
    high: FloatArray
    """The same array as ``low`` if every bucket has a single value."""
    count: FloatArray
    ends: FloatArray
    """Number of samples up to the end of each bucket, counted from the very first bucket."""
    sums: Mapping[str, FloatArray]


class Order(ABC):
    """Samples sorted by ``by``, with sums of their other values."""

    by: str

    @property
    @abstractmethod
    def total(self) -> float:
        """Number of samples, or their weight in units of the lightest one."""

    @abstractmethod
    def position(self, values: npt.ArrayLike, side: Side = "right") -> FloatArray:
        """Expected number of samples at or below (``right``) or strictly below (``left``) each value."""

    @abstractmethod
    def cumulative(self, name: str, positions: npt.ArrayLike) -> FloatArray:
        """Expected sum of a payload over the first ``positions`` samples, positions in [0, total]."""

    @abstractmethod
    def between(self, name: str, positions: npt.ArrayLike) -> FloatArray:
        """Expected sums of a payload between neighboring positions, ascending; without cancellation."""

    @abstractmethod
    def value(self, ranks: npt.ArrayLike) -> FloatArray:
        """Order statistics; ranks count from 1."""

    @abstractmethod
    def absolute_value(self, ranks: npt.ArrayLike) -> FloatArray:
        """Order statistics of the absolute values; ranks count from 1."""

    @abstractmethod
    def spans(self, ties: Ties = "merged") -> list[tuple[int, int]]:
        """Consecutive ranges of whole buckets, each with a cache-sized number of samples."""

    @abstractmethod
    def block(self, names: Sequence[str], start: int, end: int, ties: Ties = "merged") -> Block:
        """The buckets of one span, with the payloads named."""

    def sum(self, name: str) -> float:
        """Sum of a payload over all samples."""
        return float(self.cumulative(name, [self.total])[0])

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """The buckets in order, span by span."""
        for start, end in self.spans():
            yield self.block(names, start, end)

    def map_blocks(self, function: Callable[[Block], R], names: Sequence[str], ties: Ties) -> list[R]:
        """Apply ``function`` to every block, in order, on all cores."""
        return map_spans(lambda start, end: function(self.block(names, start, end, ties)), self.spans(ties))


@dataclass(frozen=True, eq=False)
class Buckets(Order):
    """An order as arrays of buckets: value range, count and payload sums of each, sorted by value."""

    by: str
    key: FloatArray
    """Where the bucket starts on the value axis; equal keys mean the same bucket."""
    width: FloatArray
    """How far above its key the bucket ends; zero for a single value."""
    count: npt.NDArray[Any]
    """Number of samples; for weighted samples (float64), their weight in units of the lightest one."""
    sums: Mapping[str, FloatArray]

    @cached_property
    def ends(self) -> npt.NDArray[Any]:
        """Number of samples up to the end of each bucket, with a leading 0."""
        dtype = np.float64 if self.count.dtype.kind == "f" else np.int64
        return np.concatenate([[0], np.cumsum(self.count)]).astype(dtype)

    @property
    @override
    def total(self) -> float:
        total: float = self.ends[-1].item()
        return total

    @property
    def weighted(self) -> bool:
        """Whether the samples have weights."""
        return self.count.dtype.kind == "f"

    @cached_property
    def _range(self) -> tuple[FloatArray, FloatArray]:
        """Where each bucket's samples lie: its mean and spread, within its edges.

        For evenly spread samples that is the whole bucket; for tied ones it shrinks to their value.
        """
        top = self.key + self.width
        square = SQUARE_OF.get(self.by)
        if square is None or square not in self.sums:
            return self.key, top
        with np.errstate(invalid="ignore", over="ignore"):
            mean = self.sums[self.by] / self.count
            spread = np.sqrt(3 * np.maximum(self.sums[square] / self.count - mean**2, 0))
        spread = np.where(spread <= TIED * np.abs(mean), 0.0, spread)
        mean, spread = np.where(np.isfinite(mean), mean, self.key), np.where(np.isfinite(spread), spread, 0.0)
        return np.clip(mean - spread, self.key, top), np.clip(mean + spread, self.key, top)

    @override
    def position(self, values: npt.ArrayLike, side: Side = "right") -> FloatArray:
        wanted: FloatArray = np.atleast_1d(np.asarray(values, dtype=float))
        low, high = self._range
        wanted = wanted * (1 + np.sign(wanted) * (SAME if side == "right" else -SAME))
        whole = np.searchsorted(high, wanted, side=side)
        inside = np.minimum(whole, len(high) - 1)
        with np.errstate(divide="ignore", invalid="ignore"):  # an infinite z has no width
            width = high[inside] - low[inside]
            part = np.where(width > 0, (wanted - low[inside]) / width, 0.0)
        part = np.where(whole < len(high), np.fmin(np.fmax(part, 0), 1), 0.0)  # NaN becomes 0
        return np.asarray(self.ends[whole] + part * self.count[inside], dtype=float)

    @override
    def cumulative(self, name: str, positions: npt.ArrayLike) -> FloatArray:
        positions = np.atleast_1d(np.asarray(positions, dtype=float))
        cache: dict[str, FloatArray] = self.__dict__.setdefault("_cumsums", {})
        if name not in cache:
            cache[name] = np.concatenate([[0.0], np.cumsum(self.sums[name])])
        return np.asarray(np.interp(positions, self.ends, cache[name]))

    @override
    def between(self, name: str, positions: npt.ArrayLike) -> FloatArray:
        positions = np.atleast_1d(np.asarray(positions, dtype=float))
        places = np.clip(np.searchsorted(self.ends, positions, side="right") - 1, 0, len(self.count) - 1)
        sums, count = self.sums[name], self.count
        start, end, first, last = positions[:-1], positions[1:], places[:-1], places[1:]
        head = sums[first] * (np.where(first < last, self.ends[first + 1], end) - start) / count[first]
        tail = np.where(first < last, sums[last] * (end - self.ends[last]) / count[last], 0.0)
        inside = np.add.reduceat(np.append(sums, 0.0), np.stack([first + 1, last], axis=1).ravel())[::2]
        return np.asarray(head + np.where(first + 1 < last, inside, 0.0) + tail)

    @override
    def value(self, ranks: npt.ArrayLike) -> FloatArray:
        ranks = np.atleast_1d(np.asarray(ranks, dtype=float))
        low, high = self._range
        place = np.searchsorted(self.ends[1:], ranks * SHORT if self.weighted else ranks, side="left")
        place = np.minimum(place, len(self.count) - 1)
        share = (ranks - self.ends[place] - 0.5) / self.count[place]
        with np.errstate(invalid="ignore"):
            width = np.nan_to_num(high[place] - low[place])
        return np.asarray(low[place] + share * width)

    @override
    def spans(self, ties: Ties = "merged") -> list[tuple[int, int]]:
        return spans(len(self.count))

    @override
    def block(self, names: Sequence[str], start: int, end: int, ties: Ties = "merged") -> Block:
        (low, high), part = self._range, slice(start, end)
        sums = {name: self.sums[name][part] for name in names}
        ends = self.ends[start + 1 : end + 1].astype(float)
        return Block(low[part], high[part], self.count[part].astype(float), ends, sums)

    @override
    def absolute_value(self, ranks: npt.ArrayLike) -> FloatArray:
        return self._folded.value(ranks)

    @cached_property
    def _folded(self) -> Buckets:
        """Buckets of the absolute values."""
        low, high = self._range
        negative = high <= 0
        near = np.where(negative, -(self.key + self.width), self.key)  # buckets z and -z become one
        edge, place = np.unique(near + 0.0, return_inverse=True)
        least, greatest = np.full(len(edge), np.inf), np.full(len(edge), -np.inf)
        count = np.zeros(len(edge), dtype=self.count.dtype)
        np.minimum.at(least, place, np.where(negative, -high, low))
        np.maximum.at(greatest, place, np.where(negative, -low, high))
        np.add.at(count, place, self.count)
        with np.errstate(invalid="ignore"):
            width = np.nan_to_num(greatest - least)
        return Buckets("abs_" + self.by, least, width, count, {})

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Plain arrays that ``from_arrays`` reads back."""
        columns: dict[str, npt.NDArray[Any]] = {"key": self.key, "width": self.width, "count": self.count}
        return columns | {f"sum/{name}": column for name, column in self.sums.items()}

    @classmethod
    def from_arrays(cls, by: str, payloads: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Buckets:
        """Inverse of ``to_arrays``; KeyError or ValueError for anything else."""
        sums = {name: arrays[f"sum/{name}"] for name in payloads}
        columns = (arrays["key"], arrays["width"], arrays["count"])
        if len({len(column) for column in (*columns, *sums.values())}) != 1:
            raise ValueError(f"columns of {by} differ in length")
        return cls(by, *columns, sums)

    def in_units(self, unit: float) -> Buckets:
        """The same buckets, with weights in units of ``unit``."""
        sums = {name: column / unit for name, column in self.sums.items()}
        return Buckets(self.by, self.key, self.width, in_units(self.count, unit), sums)


def run_starts(ordered: npt.NDArray[Any]) -> IntArray:
    """Return where each run of equal values begins among sorted ones."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])


def bucketed(order: Order) -> Buckets:
    """The buckets of an order; IncompatibleStatisticsError if it holds the samples themselves."""
    if not isinstance(order, Buckets):
        raise IncompatibleStatisticsError(
            f"the order by {order.by} holds samples, not the buckets of a sketch"
        )
    return order
