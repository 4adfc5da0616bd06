"""What a task's statistics consist of: what distinguishes a regression from a classification here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from threading import RLock
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import map_threads
from uq_tracking.settings import Settings
from uq_tracking.statistics.exact import stable_order
from uq_tracking.statistics.orders import Buckets, FloatArray, Order, run_starts
from uq_tracking.statistics.sketch import JOINT_BITS, CellCounts
from uq_tracking.statistics.weights import WEIGHT, Moments, in_units

T = TypeVar("T")
Rows = Mapping[str, npt.NDArray[Any]]
"""Columns of samples, each of shape (n,)."""
Places = tuple[npt.NDArray[Any], npt.NDArray[Any], int]
"""Keys of a table that occur among samples, the position of each sample among them, and the table's size."""
BUILD_BLOCK = 1 << 17
"""Samples counted at a time: bucket tables are added once per block."""


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


@dataclass(frozen=True, eq=False)
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

    def knowing(self, known: Parts, forgotten: Set[str]) -> Parts:
        """The same samples, with the tables, and the sums and moments of these names, that were known of them."""

        def joined(own: Mapping[str, T], stored: Mapping[str, T]) -> Mapping[str, T]:
            return OnDemand.joined(own, {name: stored[name] for name in forgotten & stored.keys()})

        sums, moments = joined(self.sums, known.sums), joined(self.moments, known.moments)
        return replace(self, sums=sums, moments=moments, tables={**known.tables, **self.tables})

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
    tables: ClassVar[Mapping[str, type[CellCounts]]] = {}
    counts: ClassVar[tuple[str, ...]]
    """Names of the counts, ``n`` first."""
    counted: ClassVar[tuple[str, ...]] = ()
    """Counts that are sums of a column of the same name."""
    kept: ClassVar[tuple[str, ...]]
    """Columns that exact statistics hold for every sample; the first order that has one holds it."""
    forgotten: ClassVar[tuple[str, ...]] = ()
    """Sums and moments that cannot be computed from these columns: what rows say of them is not used."""
    alike: ClassVar[Mapping[str, str]]
    """Facts that must agree for statistics to be merged, and what error messages call them."""

    @abstractmethod
    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Every payload, summed column and moment variable of a block of rows, in float64."""

    def tables_of(
        self, columns: Rows, facts: Mapping[str, Any], counts: npt.NDArray[Any] | None = None
    ) -> dict[str, CellCounts]:
        """The tables of samples, each of which counts once, or as often as ``counts`` says."""
        return {
            name: self.tables[name](key, np.bincount(place, counts, len(key)), size)
            for name, (key, place, size) in self.places(columns, facts, JOINT_BITS).items()
        }

    def truth(self, rows: Rows, facts: Mapping[str, Any]) -> npt.NDArray[Any]:
        """The truth of samples, by which runs on the same data are known."""
        return rows["target"]

    def losses(self, rows: Rows, settings: Settings) -> dict[str, npt.NDArray[Any]]:
        """Losses of samples, by name, whose means make scores (`Metric.means`); by default none."""
        return {}

    def places(self, columns: Rows, facts: Mapping[str, Any], bits: int) -> dict[str, Places]:
        """For each table: the keys that occur in a block, each sample's position among them, and the table's size.

        Tables that are grids have ``bits`` mantissa bits.
        """
        return {}

    def sort(self, rows: Rows, facts: Mapping[str, Any]) -> Parts:
        """Return exact statistics of rows, whose orders, sums and moments may be computed when first asked for."""
        return self.sort_weighted(rows, facts)

    def totals(
        self, rows: Rows, columns: Rows, facts: Mapping[str, Any], counts: npt.NDArray[Any] | None
    ) -> Parts:
        """What is known of samples without any order; each counts once, or as often as ``counts`` says."""
        moments = {name: Moments.of(columns[name], counts) for name in self.moments if name in columns}
        if WEIGHT in rows:
            moments[WEIGHT] = Moments.of(rows[WEIGHT])
        summed = {name: columns[name] for name in self.sums if name in columns}
        counted = {name: int(np.count_nonzero(columns[name])) for name in self.counted}
        return Parts(
            {},
            {name: float((each if counts is None else each * counts).sum()) for name, each in summed.items()},
            moments,
            self.tables_of(columns, facts, counts),
            counts={"n": row_count(rows), **counted},
        )

    def sort_weighted(self, rows: Rows, facts: Mapping[str, Any]) -> Parts:
        """Exact statistics of rows, of any weights above 0."""
        columns = self.columns(rows)
        counts: npt.NDArray[Any] = np.ones(row_count(rows), dtype=np.int64)
        if WEIGHT in rows:
            weight = np.asarray(rows[WEIGHT], dtype=np.float64)
            counts = in_units(weight, float(weight.min()))
        held = {name: {**rows, **columns}[name] for name in (*self.kept, *{WEIGHT} & rows.keys())}

        def ordered(by: str, payloads: Sequence[str]) -> HeldRows:
            order, values = stable_order(columns[by])
            values += 0.0  # no negative zeros
            first = run_starts(values)
            sums = {name: np.add.reduceat((columns[name] * counts)[order], first) for name in payloads}
            count = np.add.reduceat(counts[order], first)
            return HeldRows(by, values[first], np.zeros(len(first)), count, sums, held)

        orders = {name: ordered(name, payloads) for name, payloads in self.orders.items()}
        return replace(self.totals(rows, columns, facts, counts), orders=orders)

    def complete(self, parts: Parts) -> None:
        """Compute now, on all cores, whatever exact statistics would otherwise compute when asked for it."""
        map_threads(lambda order: order.value([1]), parts.orders.values())
        for values in (parts.sums, parts.moments, parts.derived):
            dict(values)


@dataclass(frozen=True, eq=False)
class HeldRows(Buckets):
    """Buckets of equal values, made of samples that are still available."""

    rows: Rows = field(default_factory=dict)
    """Columns of the samples, and their weights as given."""


def weighted_correlation(one: FloatArray, other: FloatArray, counts: npt.NDArray[Any]) -> float | None:
    """Rank correlation of two columns; None if either is constant."""
    ranks = []
    for values in (one, other):  # weight below each sample, plus half that of its ties, minus half the total
        distinct, place = np.unique(values, return_inverse=True)
        count = np.bincount(place, counts, len(distinct))
        ends = np.cumsum(count)
        ranks.append((ends - count / 2 - ends[-1] / 2)[place])
    x, y = ranks
    spread, wide = float((counts * x * x).sum()), float((counts * y * y).sum())
    return (
        float((counts * x * y).sum() / (np.sqrt(spread) * np.sqrt(wide))) if spread > 0 and wide > 0 else None
    )


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts together."""
    if len(parts) < 2:
        return parts[0] if parts else {}
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def row_count(rows: Rows) -> int:
    """Return the number of samples."""
    return len(next(iter(rows.values()), ()))
