"""Statistics of a stream: samples arrive in batches and only their statistics are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import IncompatibleStatisticsError
from uq_tracking.statistics.regression import (
    BUILD_BLOCK,
    RegressionStatistics,
    SketchBuilder,
    exact_statistics,
)
from uq_tracking.statistics.sketch import SKETCH_BITS

Column = npt.NDArray[Any]
Arrays = dict[str, npt.NDArray[Any]]
COLUMNS = ("target", "mean", "std")


class Collector(ABC):
    """Takes in validated samples; ``statistics`` are those of everything so far."""

    @abstractmethod
    def add(self, target: Column, mean: Column, std: Column) -> None:
        """Count samples: arrays of shape (N,), all finite, std >= 0."""

    @abstractmethod
    def absorb(self, other: Any) -> None:
        """Add the samples of another collector of the same class."""

    @abstractmethod
    def statistics(self) -> RegressionStatistics:
        """Statistics of everything added."""

    @abstractmethod
    def to_arrays(self) -> Arrays:
        """Plain arrays that ``load`` continues from."""

    @abstractmethod
    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what ``to_arrays`` gave, to the last bit as if never interrupted."""


class SketchCollector(Collector):
    """A sketch of constant size.

    Samples are counted in blocks of a fixed number, whatever the size of the batches: so cutting the same stream
    into other batches changes no bit of the result.
    """

    def __init__(self, bits: int = SKETCH_BITS) -> None:
        self.bits = bits
        self._builder = SketchBuilder(bits)
        self._waiting = np.empty((len(COLUMNS), 0))
        self._filled = 0

    def add(self, target: Column, mean: Column, std: Column) -> None:  # noqa: D102
        if not self._waiting.size:
            self._waiting = np.empty((len(COLUMNS), BUILD_BLOCK))
        done = 0
        while done < len(target):
            count = min(BUILD_BLOCK - self._filled, len(target) - done)
            place = slice(self._filled, self._filled + count)
            for row, column in zip(self._waiting, (target, mean, std), strict=True):
                row[place] = column[done : done + count]
            self._filled, done = self._filled + count, done + count
            if self._filled == BUILD_BLOCK:
                self._flush()

    def _flush(self) -> None:
        if self._filled:
            target, mean, std = self._waiting[:, : self._filled]
            self._builder.add(std, target, mean)
            self._filled = 0

    def absorb(self, other: SketchCollector) -> None:  # noqa: D102
        self.absorb_statistics(other.statistics())

    def absorb_statistics(self, statistics: RegressionStatistics) -> None:
        """Add the samples of a finished sketch."""
        if statistics.bits != self.bits:
            raise IncompatibleStatisticsError(
                f"bits differs ({self.bits} and {statistics.bits}); sketch both with the same resolution"
            )
        self._flush()
        self._builder.absorb(statistics)

    def statistics(self) -> RegressionStatistics:  # noqa: D102
        self._flush()
        return self._builder.finish()

    def to_arrays(self) -> Arrays:  # noqa: D102
        waiting = self._waiting[:, : self._filled].copy()
        return {**self._builder.finish().to_arrays(), "waiting": waiting}

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:  # noqa: D102
        self._builder = SketchBuilder(self.bits)
        self._builder.absorb(RegressionStatistics.from_arrays(arrays))
        self._filled = 0
        self.add(*arrays["waiting"])


class RowCollector(Collector):
    """Every sample, for exact statistics of sets that fit into memory."""

    def __init__(self) -> None:
        self._parts: list[tuple[Column, Column, Column]] = []

    def add(self, target: Column, mean: Column, std: Column) -> None:  # noqa: D102
        self._parts.append((target.copy(), mean.copy(), std.copy()))  # the batch's memory may be used again

    def absorb(self, other: RowCollector) -> None:  # noqa: D102
        self._parts += other._parts

    def _rows(self) -> tuple[Column, Column, Column]:
        if not self._parts:
            return np.empty(0), np.empty(0), np.empty(0)
        if len(self._parts) > 1:
            target, mean, std = (np.concatenate(column) for column in zip(*self._parts, strict=True))
            self._parts = [(target, mean, std)]
        return self._parts[0]

    def statistics(self) -> RegressionStatistics:  # noqa: D102
        rows = self._rows()
        return exact_statistics(*rows) if len(rows[0]) else RegressionStatistics.zero()

    def to_arrays(self) -> Arrays:  # noqa: D102
        return dict(zip(COLUMNS, self._rows(), strict=True))

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:  # noqa: D102
        self._parts = [(arrays["target"], arrays["mean"], arrays["std"])] if len(arrays["target"]) else []


def with_counts(
    statistics: RegressionStatistics, counts: Mapping[str, int], std_floor: float | None
) -> RegressionStatistics:
    """The same samples, with what the validation counted before they came."""
    return replace(statistics, counts=dict(counts), std_floor=std_floor, memo={})
