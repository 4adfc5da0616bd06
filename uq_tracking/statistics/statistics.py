"""Sufficient statistics of predictions: what every score, curve and recalibration of a task is a function of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError, IncompatibleStatisticsError
from uq_tracking.statistics.building import Builder, empty_parts
from uq_tracking.statistics.cells import CellCounts
from uq_tracking.statistics.group_tables import GroupTables, Label
from uq_tracking.statistics.grouped import Grouped, Groups, bucketed
from uq_tracking.statistics.layout import Layout, Parts, Rows
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.sketch import SKETCH_BITS
from uq_tracking.typed import DAMAGE

Kind = Literal["exact", "sketch"]
Arrays = dict[str, npt.NDArray[Any]]

STORED_ROWS = 50_000
"""Exact statistics up to this many samples are stored as they are, larger ones as a sketch."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """Samples grouped by the values that a task orders them by, with sums, moments and counts; merged with ``+``.

    Attributes
    ----------
    layout : Layout
        What the statistics of the task consist of.
    kind : {"exact", "sketch"}
        One group per distinct value, or one per log-spaced bucket of ``bits`` mantissa bits.
    orders : dict of Groups
        Of a regression by ``std``, ``abs_error`` and ``z``; of a classification by ``one_minus_confidence``,
        ``entropy`` and ``brier``; with the payload sums each serves.
    sums : dict of float
        Of a regression ``log_std``; of a classification ``log_loss`` (over samples where it is finite) and
        ``impossible`` (samples whose label had probability 0).
    moments : dict of Moments
        Of target, std, error and z of a regression.
    tables : dict of CellCounts
        ``joint`` (std and absolute error) of a sketched regression, ``confusion`` of a classification.
    counts : dict of int
        ``n`` samples that count, and how many were left out, and why.
    derived : dict
        ``rank_correlation`` of an exact regression: Spearman's, None when std or error is constant.
    bits : int or None
        Resolution of a sketch.
    facts : dict
        What has to agree for a merge: ``std_floor``, ``n_classes``.
    groups : GroupTables or None
        Coarse statistics of each group (image, scene), which are resampled for confidence intervals.
    """

    layout: Layout
    kind: Kind
    orders: Mapping[str, Groups]
    sums: Mapping[str, float]
    moments: Mapping[str, Moments]
    tables: Mapping[str, CellCounts]
    counts: Mapping[str, int]
    derived: Mapping[str, float | None] = field(default_factory=dict)
    bits: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    groups: GroupTables | None = None

    @classmethod
    def of(
        cls,
        layout: Layout,
        parts: Parts,
        *,
        bits: int | None = None,
        counts: Mapping[str, int] | None = None,
        facts: Mapping[str, Any] | None = None,
        groups: GroupTables | None = None,
    ) -> Statistics:
        """Statistics of parts that are sorted, or with ``bits`` counted into buckets; ``counts`` come on top."""
        return cls(
            layout,
            "exact" if bits is None else "sketch",
            parts.orders,
            parts.sums,
            parts.moments,
            parts.tables,
            {**dict.fromkeys(layout.counts, 0), **parts.counts, **(counts or {})},
            parts.derived,
            bits,
            {**dict.fromkeys(layout.alike), **(facts or {})},
            groups,
        )

    @classmethod
    def exact(
        cls,
        layout: Layout,
        rows: Rows,
        *,
        counts: Mapping[str, int] | None = None,
        facts: Mapping[str, Any] | None = None,
        known: Parts | None = None,
    ) -> Statistics:
        """Exact statistics of validated rows; ``known`` holds what stored rows alone no longer tell."""
        return cls.of(layout, layout.sort(rows, facts or {}, known), counts=counts, facts=facts)

    @classmethod
    def zero(cls, layout: Layout, bits: int = SKETCH_BITS, **facts: Any) -> Statistics:
        """The sketch of no samples: adding it changes nothing."""
        return cls.of(layout, empty_parts(layout, facts, bits), bits=bits, facts=facts)

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.layout.task

    @property
    def n(self) -> int:
        """Number of samples that count."""
        return self.counts["n"]

    @property
    def parts(self) -> Parts:
        """What the samples contribute."""
        return Parts(self.orders, self.sums, self.moments, self.tables, self.derived, self.counts)

    def rows(self) -> Rows:
        """The columns that exact statistics are made of, in the orders they are stored in; exact statistics only."""
        if self.kind != "exact":
            raise IncompatibleStatisticsError(
                "a sketch has no rows; evaluate with statistics='exact' to keep them"
            )
        return self.layout.rows_of(self.orders)

    def sketched(self, bits: int = SKETCH_BITS) -> Statistics:
        """The same samples as a sketch of ``bits`` mantissa bits."""
        if self.kind == "sketch":
            if bits != self.bits:
                raise IncompatibleStatisticsError(f"a sketch of {self.bits} bits cannot become one of {bits}")
            return self
        builder = Builder(self.layout, self.facts, bits)
        builder.add(self.rows())
        made = builder.finish()
        return replace(
            self,
            kind="sketch",
            orders=made.orders,
            tables={**made.tables, **self.tables},
            derived={},
            bits=bits,
        )

    def stored(self) -> Statistics:
        """The form that is kept with a run: a few megabytes at any size."""
        made = self.sketched() if self.kind == "exact" and self.n > STORED_ROWS else self
        return made if self.groups is None else replace(made, groups=self.groups.stored())

    def with_counts(self, counts: Mapping[str, int]) -> Statistics:
        """The same samples, with what their validation counted."""
        return replace(self, counts={**self.counts, **counts})

    def __add__(self, other: Statistics) -> Statistics:
        return merge(self, other) if isinstance(other, Statistics) else NotImplemented

    def to_arrays(self) -> Arrays:
        """Plain arrays that ``statistics_from_arrays`` reads back."""
        arrays: Arrays = {
            "task": np.asarray(self.task),
            "kind": np.asarray(self.kind),
            "facts": np.asarray(json.dumps(dict(self.facts))),
            "counts": np.asarray([self.counts[name] for name in self.layout.counts], dtype=np.int64),
            "sums": np.asarray([self.sums[name] for name in self.layout.sums], dtype=np.float64),
        }
        arrays |= {f"moments/{name}": m.to_array() for name, m in self.moments.items()}
        for name, table in self.tables.items():
            arrays |= {f"table/{name}/key": table.key, f"table/{name}/count": table.count}
            arrays[f"table/{name}/size"] = np.asarray(table.size)
        if self.groups is not None:
            arrays |= {f"groups/{name}": values for name, values in self.groups.to_arrays().items()}
        if self.kind == "exact":
            return arrays | {f"row/{name}": column for name, column in self.rows().items()}
        arrays["bits"] = np.asarray(self.bits)
        for name, groups in self.orders.items():
            arrays |= {
                f"order/{name}/{part}": column for part, column in bucketed(groups).to_arrays().items()
            }
        return arrays

    @classmethod
    def from_arrays(cls, layout: Layout, arrays: Mapping[str, npt.NDArray[Any]]) -> Statistics:
        """Statistics from the arrays that ``to_arrays`` made; FileFormatError for anything else."""
        own = {name.removeprefix("groups/"): arrays[name] for name in arrays if name.startswith("groups/")}
        try:
            made = _from_arrays(layout, arrays)
            return replace(made, groups=GroupTables.from_arrays(layout, own)) if own else made
        except DAMAGE as error:
            raise FileFormatError(f"these arrays are not {layout.task} statistics ({error!r})") from error


def resampled(tables: GroupTables, weights: npt.NDArray[np.float64]) -> Iterator[Statistics]:
    """Statistics of every resample of groups; ``weights``, shape (resamples, groups), say how often each counts."""
    for parts in tables.resampled(weights):
        yield Statistics.of(tables.layout, parts, bits=tables.bits, facts=tables.facts)


def by_label(tables: GroupTables | None) -> dict[Label, Statistics]:
    """Statistics of every group."""
    if tables is None:
        return {}
    return {
        label: Statistics.of(tables.layout, parts, bits=tables.bits, facts=tables.facts)
        for label, parts in tables.each()
    }


def merge(one: Statistics, other: Statistics) -> Statistics:
    """Statistics of both sets of samples; IncompatibleStatisticsError names what differs."""
    if one.layout is not other.layout:
        if one.task == other.task:
            forms = [statistics.facts.get("distribution") or "mean and std" for statistics in (one, other)]
            raise IncompatibleStatisticsError(
                f"distribution differs ({' and '.join(forms)}); evaluate both alike"
            )
        raise IncompatibleStatisticsError(
            f"statistics of a {one.task} and of a {other.task} cannot be pooled"
        )
    counts = {name: one.counts[name] + other.counts[name] for name in one.layout.counts}
    if not one.n or not other.n:
        return replace(one if one.n else other, counts=counts)
    _check_alike(one, other)
    groups = None if one.groups is None or other.groups is None else one.groups.merge(other.groups)
    if one.kind == other.kind == "exact":
        mine, theirs = one.rows(), other.rows()
        rows = {name: np.concatenate([mine[name], theirs[name]]) for name in mine}
        known = replace(_summed(one, other), orders={})
        return replace(
            Statistics.exact(one.layout, rows, counts=counts, facts=one.facts, known=known), groups=groups
        )
    bits = one.bits or other.bits or SKETCH_BITS
    if {one.bits or bits, other.bits or bits} != {bits}:
        raise IncompatibleStatisticsError(
            f"bits differs ({one.bits} and {other.bits}); sketch both with the same resolution"
        )
    one, other = one.sketched(bits), other.sketched(bits)
    orders = {
        name: bucketed(groups).merge(bucketed(other.orders[name])) for name, groups in one.orders.items()
    }
    parts = replace(_summed(one, other), orders=orders)
    return Statistics.of(one.layout, parts, bits=bits, counts=counts, facts=one.facts, groups=groups)


def _summed(one: Statistics, other: Statistics) -> Parts:
    """What is simply added."""
    return Parts(
        {},
        {name: one.sums[name] + other.sums[name] for name in one.sums},
        {name: one.moments[name].merge(other.moments[name]) for name in one.moments},
        {name: table.merge(other.tables[name]) for name, table in one.tables.items() if name in other.tables},
    )


def _check_alike(one: Statistics, other: Statistics) -> None:
    for name, words in one.layout.alike.items():
        if one.facts.get(name) != other.facts.get(name):
            raise IncompatibleStatisticsError(
                f"{words} differs ({one.facts.get(name)} and {other.facts.get(name)}); evaluate both alike"
            )


def _from_arrays(layout: Layout, arrays: Mapping[str, npt.NDArray[Any]]) -> Statistics:
    counts = dict(zip(layout.counts, (int(c) for c in arrays["counts"]), strict=True))
    facts = dict(json.loads(str(arrays["facts"])))
    known = Parts(
        {},
        dict(zip(layout.sums, (float(value) for value in arrays["sums"]), strict=True)),
        {name: Moments.from_array(counts["n"], arrays[f"moments/{name}"]) for name in layout.moments},
        {
            name: kind(
                arrays[f"table/{name}/key"], arrays[f"table/{name}/count"], int(arrays[f"table/{name}/size"])
            )
            for name, kind in layout.tables.items()
            if f"table/{name}/key" in arrays
        },
    )
    for name, table in known.tables.items():
        layout.tables[name].check_keys(table.key, table.size)
    if str(arrays["kind"]) == "exact":
        rows = {name.removeprefix("row/"): arrays[name] for name in arrays if name.startswith("row/")}
        made = Statistics.exact(layout, rows, counts=counts, facts=facts, known=known)
    else:
        orders = {
            name: Grouped.from_arrays(name, payloads, _beneath(arrays, f"order/{name}/"))
            for name, payloads in layout.orders.items()
        }
        made = Statistics.of(
            layout, replace(known, orders=orders), bits=int(arrays["bits"]), counts=counts, facts=facts
        )
    totals = {groups.total for groups in made.orders.values()}
    totals |= {int(table.count.sum()) for table in made.tables.values()}
    if totals != {counts["n"]}:
        raise ValueError(
            f"counts disagree: {counts['n']} samples, but {sorted(totals)} in the orders and tables"
        )
    return made


def _beneath(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> Arrays:
    return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
