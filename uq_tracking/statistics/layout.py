"""What a task's statistics consist of: the facts that tell a regression from a classification here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy.typing as npt

from uq_tracking.statistics.cells import CellCounts
from uq_tracking.statistics.grouped import Groups
from uq_tracking.statistics.moments import Moments

Rows = Mapping[str, npt.NDArray[Any]]
"""Columns of samples, each of shape (n,)."""


@dataclass(frozen=True)
class Parts:
    """What statistics are made of, besides what they say of the samples that were left out."""

    orders: Mapping[str, Groups]
    sums: Mapping[str, float]
    moments: Mapping[str, Moments]
    tables: Mapping[str, CellCounts] = field(default_factory=dict)
    derived: Mapping[str, float | None] = field(default_factory=dict)
    """What a sort finds beside the orders, such as a rank correlation; nothing that could be added up."""
    counts: Mapping[str, int] = field(default_factory=dict)


class Layout(ABC):
    """Which orders, sums and tables the statistics of a task hold, and how they are made of samples.

    Samples come as rows: a mapping of names to columns. ``columns`` turns a block of rows into every payload of the
    sketch; ``sort`` turns all rows into exact statistics.
    """

    task: ClassVar[str]
    orders: ClassVar[Mapping[str, tuple[str, ...]]]
    """The values that samples are ordered by, and the payloads that are summed along each."""
    sums: ClassVar[tuple[str, ...]]
    """Columns that are only summed."""
    moments: ClassVar[tuple[str, ...]]
    """Columns whose moments are known."""
    tables: ClassVar[Mapping[str, type[CellCounts]]]
    counts: ClassVar[tuple[str, ...]]
    """Names of the counts, ``n`` first."""
    counted: ClassVar[tuple[str, ...]] = ()
    """Counts that are sums of a column of the same name."""
    alike: ClassVar[Mapping[str, str]]
    """Facts that statistics have to share to be merged, and how messages call them."""

    @abstractmethod
    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Every payload, summed column and moment variable of a block of rows, in float64."""

    @abstractmethod
    def cells(
        self, columns: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]
    ) -> dict[str, CellCounts]:
        """The tables of a block, from its columns."""

    @abstractmethod
    def places(
        self, columns: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any], bits: int
    ) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any], int]]:
        """For each table the keys that occur in a block, each sample's place among them, and the table's size.

        Tables that are grids have ``bits`` mantissa bits.
        """

    @abstractmethod
    def empty_tables(self, facts: Mapping[str, Any]) -> dict[str, CellCounts]:
        """The tables of no samples."""

    @abstractmethod
    def sort(self, rows: Rows, facts: Mapping[str, Any], known: Parts | None = None) -> Parts:
        """Exact statistics of rows; ``known`` holds what stored rows alone no longer tell."""

    @abstractmethod
    def rows_of(self, orders: Mapping[str, Groups]) -> Rows:
        """The rows that exact orders are made of, which ``sort`` takes again."""
