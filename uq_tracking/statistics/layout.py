"""What a task's statistics consist of: what distinguishes a regression from a classification here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import RLock
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import map_threads
from uq_tracking.statistics.cells import CellCounts
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.orders import Buckets, Order
from uq_tracking.statistics.weights import WEIGHT

T = TypeVar("T")
Rows = Mapping[str, npt.NDArray[Any]]
"""Columns of samples, each of shape (n,)."""


class OnDemand(Mapping[str, T]):
    """A mapping whose values are computed when first asked for, each once.

    >>> squares = OnDemand({"two": lambda: 2 * 2})
    >>> squares["two"], dict(OnDemand.joined(squares, {"three": 9}))
    (4, {'two': 4, 'three': 9})
    """

    def __init__(self, functions: Mapping[str, Callable[[], T]]) -> None:
        self._functions, self._values, self._lock = dict(functions), dict[str, T](), RLock()

    def __getitem__(self, name: str) -> T:
        with self._lock:
            if name not in self._values:
                self._values[name] = self._functions[name]()
                self._functions[name] = partial(self._values.__getitem__, name)  # frees what it was made of
            return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    @classmethod
    def joined(cls, *mappings: Mapping[str, T]) -> OnDemand[T]:
        """All values of several mappings, the last one's if names repeat."""
        return cls({name: partial(each.__getitem__, name) for each in mappings for name in each})

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


@dataclass(frozen=True)
class Parts:
    """What statistics are made of, apart from the counts of samples left out."""

    orders: Mapping[str, Order]
    sums: Mapping[str, float]
    moments: Mapping[str, Moments]
    tables: Mapping[str, CellCounts] = field(default_factory=dict)
    derived: Mapping[str, float | None] = field(default_factory=dict)
    """By-products of sorting, such as a rank correlation, that cannot be summed."""
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def weighted(self) -> bool:
        """Whether the samples have weights."""
        return WEIGHT in self.moments

    @property
    def unit(self) -> float:
        """The weight of the lightest sample; 1 if samples have no weights."""
        return self.moments[WEIGHT].low if self.weighted else 1.0

    def in_units(self, unit: float) -> Parts:
        """The same samples, with weights in units of ``unit`` times the present unit; for sketches."""
        if unit == 1.0:
            return self
        moments = {
            name: found if name == WEIGHT else found.scaled(1 / unit) for name, found in self.moments.items()
        }
        return replace(
            self,
            orders={
                name: order.in_units(unit) if isinstance(order, Buckets) else order
                for name, order in self.orders.items()
            },
            sums={name: total / unit for name, total in self.sums.items()},
            moments=moments,
            tables={name: table.in_units(unit) for name, table in self.tables.items()},
        )


class Layout(ABC):
    """Which orders, sums and tables the statistics of a task hold, and how they are computed from samples.

    Samples come as rows: a mapping of names to columns. ``columns`` turns a block of rows into every payload of the
    sketch; ``sort`` turns all rows into exact statistics. A column ``weight`` says how much each sample counts;
    layouts need not know about it.
    """

    task: ClassVar[str]
    orders: ClassVar[Mapping[str, tuple[str, ...]]]
    """The values by which samples are ordered, and the payloads summed along each."""
    sums: ClassVar[tuple[str, ...]]
    """Columns that are only summed."""
    moments: ClassVar[tuple[str, ...]]
    """Columns whose moments are kept."""
    tables: ClassVar[Mapping[str, type[CellCounts]]]
    grids: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """The tables that are grids of two orders."""
    counts: ClassVar[tuple[str, ...]]
    """Names of the counts, ``n`` first."""
    counted: ClassVar[tuple[str, ...]] = ()
    """Counts that are sums of a column of the same name."""
    kept: ClassVar[tuple[str, ...]]
    """Columns that exact statistics hold for every sample."""
    forgotten: ClassVar[tuple[str, ...]] = ()
    """Sums and moments that cannot be computed from these columns."""
    noted: ClassVar[tuple[str, ...]] = ()
    """What is derived from columns that exact statistics do not hold, so that it is stored with them."""
    alike: ClassVar[Mapping[str, str]]
    """Facts that must agree for statistics to be merged, and what error messages call them."""

    @abstractmethod
    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Every payload, summed column and moment variable of a block of rows, in float64."""

    def cells(
        self, columns: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]
    ) -> dict[str, CellCounts]:
        """The tables of a block other than grids, from its columns."""
        return {}

    @abstractmethod
    def places(
        self, columns: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any], bits: int
    ) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any], int]]:
        """For each table: the keys that occur in a block, each sample's position among them, and the table's size.

        Tables that are grids have ``bits`` mantissa bits.
        """

    @abstractmethod
    def empty_tables(self, facts: Mapping[str, Any]) -> dict[str, CellCounts]:
        """The tables for no samples."""

    @abstractmethod
    def sort(self, rows: Rows, facts: Mapping[str, Any], known: Parts | None = None) -> Parts:
        """Return exact statistics of rows, whose orders, sums and moments are computed when first asked for.

        ``known`` holds what cannot be recomputed from stored rows.
        """

    def complete(self, parts: Parts) -> None:
        """Compute now, on all cores, whatever exact statistics would otherwise compute when asked for it."""
        map_threads(lambda order: order.value([1]), parts.orders.values())
        for values in (parts.sums, parts.moments, parts.derived):
            dict(values)

    def derived(
        self, columns: Mapping[str, npt.NDArray[Any]], counts: npt.NDArray[np.float64]
    ) -> dict[str, float | None]:
        """By-products of sorting samples with weights."""
        return {}

    def noted_in(self, parts: Parts | None) -> dict[str, float]:
        """What was noted about samples."""
        derived = {} if parts is None else parts.derived
        return {name: value for name in self.noted if (value := derived.get(name)) is not None}

    @abstractmethod
    def rows_of(self, orders: Mapping[str, Order]) -> Rows:
        """The rows that exact orders were made from, which ``sort`` accepts again."""
