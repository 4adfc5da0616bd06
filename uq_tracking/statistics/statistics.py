"""Sufficient statistics of predictions, from which all scores, curves and recalibrations of a task follow."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError, IncompatibleStatisticsError, SettingsError
from uq_tracking.npz import Arrays, prefixed, under
from uq_tracking.parallel import keep_memory
from uq_tracking.statistics.classification import ClassSums
from uq_tracking.statistics.exact import SortedRows
from uq_tracking.statistics.groups import GroupTables, Label
from uq_tracking.statistics.layout import BUILD_BLOCK, HeldRows, Layout, Parts, Rows, joined_rows, row_count
from uq_tracking.statistics.orders import Buckets, bucketed
from uq_tracking.statistics.sketch import SKETCH_BITS, BucketSums
from uq_tracking.statistics.weights import WEIGHT, Moments, whole
from uq_tracking.typed import DAMAGE

Kind = Literal["exact", "sketch"]

WORKING = 256
"""Working memory per sample of a block, in bytes."""

STORED_ROWS = 50_000
"""Exact statistics of up to this many samples are stored as they are, larger ones as a sketch."""

EACH_AT_ONCE = 1 << 16
"""Weights, groups by groups, held at a time when every group is examined by itself."""


class SketchCollector:
    """Counts a stream into a sketch of constant size.

    Samples are counted in blocks of fixed size, whatever the batch size, so splitting the same stream into different
    batches does not change a bit of the result.

    Parameters
    ----------
    layout : Layout
    facts : dict
        As in `Statistics`.
    bits : int
        Mantissa bits of a bucket.
    """

    def __init__(self, layout: Layout, facts: Mapping[str, Any], bits: int = SKETCH_BITS) -> None:
        self.layout, self.facts, self.bits = layout, facts, bits
        self._waiting: list[Rows] = []
        self._filled = 0
        self._orders = {name: BucketSums(name, payloads, bits) for name, payloads in layout.orders.items()}
        self._totals: Parts | None = None

    def add(self, rows: Rows) -> None:
        """Count validated samples, once they fill a block; those that do not are copied."""
        start, size = 0, row_count(rows)
        while start < size:
            end = min(start + BUILD_BLOCK - self._filled, size)
            part = {name: column[start:end] for name, column in rows.items()}
            whole = end - start == BUILD_BLOCK
            self._waiting.append(part if whole else {name: column.copy() for name, column in part.items()})
            self._filled, start = self._filled + end - start, end
            if self._filled == BUILD_BLOCK:
                self._flush()

    def _flush(self) -> None:
        """Count what waits."""
        if not self._waiting:
            return
        keep_memory(WORKING * self._filled)
        rows = joined_rows(self._waiting)
        self._waiting, self._filled = [], 0
        columns, weight = self.layout.columns(rows), rows.get(WEIGHT)
        for buckets in self._orders.values():
            buckets.add(columns, weight)
        self._add(self.layout.totals(rows, columns, self.facts, weight))

    def _add(self, totals: Parts) -> None:
        self._totals = totals if self._totals is None else _summed(self._totals, totals)

    def absorb(self, parts: Parts) -> None:
        """Add the samples of a finished sketch of the same resolution."""
        self._flush()
        if not parts.counts["n"]:
            return
        parts = parts.in_units(1 / parts.unit)
        for name, buckets in self._orders.items():
            buckets.absorb(bucketed(parts.orders[name]))
        self._add(replace(parts, orders={}))

    def statistics(self) -> Statistics:
        """Return statistics of everything added."""
        self._flush()
        return self._counted()

    def _counted(self) -> Statistics:
        """Return statistics of everything counted, without what waits."""
        known = self._totals or Parts({}, {}, {})
        made = replace(
            known,
            orders={name: sums.buckets() for name, sums in self._orders.items()},
            sums={**dict.fromkeys(self.layout.sums, 0.0), **known.sums},
            moments={**dict.fromkeys(self.layout.moments, Moments()), **known.moments},
        )
        return Statistics.of(self.layout, made.in_units(made.unit), bits=self.bits, facts=self.facts)

    def merge(self, other: SketchCollector) -> None:
        """Add the samples of another collector."""
        self.absorb(other.statistics())

    def to_arrays(self) -> Arrays:
        """Return plain arrays from which ``load`` continues."""
        return {**self._counted().to_arrays(), **prefixed("waiting", joined_rows(self._waiting))}

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from what ``to_arrays`` returned, bit for bit as if never interrupted."""
        self.absorb(Statistics.from_arrays(self.layout, arrays))
        if waiting := under("waiting", arrays):
            self.add(waiting)


class RowCollector:
    """Keeps every sample, for exact statistics of sets that fit in memory; methods as of `SketchCollector`."""

    def __init__(self, layout: Layout, facts: Mapping[str, Any]) -> None:
        self.layout, self.facts = layout, facts
        self._parts: list[Rows] = []

    def add(self, rows: Rows) -> None:
        """Copy samples: the caller reuses a batch's memory."""
        self._parts.append({name: column.copy() for name, column in rows.items()})

    def statistics(self) -> Statistics:
        """Return statistics of everything added."""
        rows = self.to_arrays()
        if not row_count(rows):
            return Statistics.counted(self.layout, [], facts=self.facts)
        return Statistics.exact(self.layout, rows, facts=self.facts)

    def merge(self, other: RowCollector) -> None:
        """Add the samples of another collector."""
        self._parts += other._parts

    def to_arrays(self) -> Arrays:
        """Return the columns."""
        self._parts = [joined_rows(self._parts)]
        return dict(self._parts[0])

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take the columns."""
        self._parts = [dict(arrays)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Statistics(Parts):
    """Samples in the orders of the values that a task names, with sums, moments and counts; merged with ``+``.

    Attributes
    ----------
    layout : Layout
        What the statistics of the task consist of.
    orders : dict of Order
        For a regression by ``std``, ``abs_error`` and ``z``; for a classification by ``one_minus_confidence``,
        ``entropy`` and ``brier``; each with its payload sums.
    sums : dict of float
        For a regression ``log_std``; for a classification ``log_loss`` (over samples where it is finite) and
        ``impossible`` (samples whose label had probability 0).
    moments : dict of Moments
        Of a regression's target, std, error and z; of the weights, if samples have any.
    tables : dict of CellCounts
        ``joint`` (std and absolute error) of a sketched regression, ``confusion`` of a classification.
    counts : dict of int
        ``n``, the samples that count, and how many were left out, by reason: numbers of samples, whatever their
        weights. With weights also ``n_effective``, rounded.
    derived : dict
        ``rank_correlation`` of an exact regression: Spearman's, None if std or error is constant.
    bits : int or None
        Resolution of a sketch; None for exact statistics.
    facts : dict
        What must agree for a merge: ``std_floor``, ``n_classes``.
    groups : GroupTables or None
        Coarse statistics of each group (image, scene), resampled for confidence intervals.
    classes : ClassSums or None
        Sums of the probability of each class; None where only some columns of the samples were at hand.
    """

    layout: Layout
    bits: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    groups: GroupTables | None = None
    classes: ClassSums | None = None

    @classmethod
    def of(
        cls, layout: Layout, parts: Parts, *, bits: int | None = None, facts: Mapping[str, Any] | None = None
    ) -> Statistics:
        """Return statistics of sorted parts or, with ``bits``, of parts counted into buckets."""
        known = {item.name: getattr(parts, item.name) for item in fields(Parts)}
        known["counts"] = {**dict.fromkeys(layout.counts, 0), **parts.counts}
        about = {**dict.fromkeys(layout.alike), **(facts or {})}
        made = cls(**known, layout=layout, bits=bits, facts=about)
        return made.with_counts({"n_effective": round(made.n_effective)}) if parts.weighted else made

    @classmethod
    def exact(
        cls,
        layout: Layout,
        rows: Rows,
        *,
        facts: Mapping[str, Any] | None = None,
        known: Parts | None = None,
        lazy: bool = False,
    ) -> Statistics:
        """Return exact statistics of validated rows.

        Parameters
        ----------
        layout, rows, facts
            As of the statistics.
        known : Parts, optional
            What cannot be recomputed from stored rows.
        lazy : bool
            Whether orders, sums and moments are computed when first asked for; the rows must keep their values.
        """
        made = (layout.sort_weighted if WEIGHT in rows else layout.sort)(rows, facts or {})
        if known is not None:
            made = made.knowing(known, {*layout.forgotten})
        if not lazy and not made.weighted:
            layout.complete(made)
        return cls.of(layout, made, facts=facts)

    def complete(self) -> None:
        """Compute now, on all cores, what lazy statistics would otherwise compute when asked for it."""
        if self.kind == "exact":
            self.layout.complete(self)

    @classmethod
    def counted(
        cls,
        layout: Layout,
        blocks: Iterable[Rows],
        *,
        bits: int = SKETCH_BITS,
        facts: Mapping[str, Any] | None = None,
    ) -> Statistics:
        """Return a sketch of blocks of validated rows; without any, an empty one, which changes nothing if added."""
        collector = SketchCollector(layout, facts or {}, bits)
        for rows in blocks:
            collector.add(rows)
        return collector.statistics()

    @property
    def kind(self) -> Kind:
        """Exact: one bucket per distinct value; or a sketch: log-spaced ones of ``bits`` mantissa bits."""
        return "exact" if self.bits is None else "sketch"

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.layout.task

    @property
    def n(self) -> float:
        """Total count of all samples: their number, or the sum of their weights in units of the lightest sample.

        Means are sums divided by this; ``counts["n"]`` is the number of samples whatever their weights.
        """
        weight, n = self.moments.get(WEIGHT), self.counts["n"]
        return n if weight is None or not n else whole(n * weight.mean / weight.low)

    @property
    def n_effective(self) -> float:
        """Effective sample size, ``(sum w)^2 / sum w^2`` (Kish 1965)."""
        weight, n = self.moments.get(WEIGHT), self.counts["n"]
        return n if weight is None or not n else whole(n / (1 + weight.m2 / (n * weight.mean * weight.mean)))

    def rows(self) -> Rows:
        """The columns that exact statistics are made of, in their stored order; exact statistics only."""
        if self.kind != "exact":
            raise IncompatibleStatisticsError(
                "a sketch has no rows; evaluate with statistics='exact' to keep them"
            )
        found: dict[str, npt.NDArray[Any]] = {}
        for order in self.orders.values():
            if isinstance(order, HeldRows):
                return order.rows
            if isinstance(order, SortedRows) and not found.keys() >= set(self.layout.kept):
                found = {**order.columns, **found}
        return {name: found[name] for name in self.layout.kept}

    def sketched(self, bits: int = SKETCH_BITS) -> Statistics:
        """The same samples as a sketch of ``bits`` mantissa bits."""
        if self.kind == "sketch":
            if bits != self.bits:
                raise IncompatibleStatisticsError(
                    f"bits differs ({bits} and {self.bits}); sketch both at the same resolution"
                )
            return self
        made = self.counted(self.layout, [self.rows()], bits=bits, facts=self.facts)
        tables = {**made.tables, **self.tables}
        return replace(self, orders=made.orders, tables=tables, derived={}, bits=bits)

    def stored(self) -> Statistics:
        """The form stored with a run: a few megabytes at any sample size."""
        made = self.sketched() if self.kind == "exact" and self.counts["n"] > STORED_ROWS else self
        return made if self.groups is None else replace(made, groups=self.groups.stored())

    def with_counts(self, counts: Mapping[str, int]) -> Statistics:
        """The same samples, with the counts from their validation."""
        return replace(self, counts={**self.counts, **counts})

    def __add__(self, other: Statistics) -> Statistics:
        return _merged(self, other) if isinstance(other, Statistics) else NotImplemented

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
            table_arrays = {"key": table.key, "count": table.count, "size": np.asarray(table.size)}
            arrays |= prefixed(f"table/{name}", table_arrays)
        if self.groups is not None:
            arrays |= prefixed("groups", self.groups.to_arrays())
        if self.classes is not None:
            arrays |= prefixed("classes", self.classes.to_arrays())
        if self.kind == "exact":
            return arrays | prefixed("row", self.rows())
        arrays["bits"] = np.asarray(self.bits)
        for name, order in self.orders.items():
            arrays |= prefixed(f"order/{name}", bucketed(order).to_arrays())
        return arrays

    @classmethod
    def from_arrays(cls, layout: Layout, arrays: Mapping[str, npt.NDArray[Any]]) -> Statistics:
        """Statistics from the arrays made by ``to_arrays``; FileFormatError for anything else."""
        own, sums = under("groups", arrays), under("classes", arrays)
        try:
            return replace(
                _from_arrays(layout, arrays),
                groups=GroupTables.from_arrays(layout, own) if own else None,
                classes=ClassSums.from_arrays(sums) if sums else None,
            )
        except DAMAGE as error:
            raise FileFormatError(f"these arrays are not {layout.task} statistics ({error!r})") from error


def resampled(tables: GroupTables, weights: npt.NDArray[np.float64]) -> Iterator[Statistics]:
    """Statistics of every resample of groups; ``weights``, shape (resamples, groups), give how often each counts."""
    for parts in tables.resampled(weights):
        yield Statistics.of(tables.layout, parts, bits=tables.bits, facts=tables.facts)


def by_label(tables: GroupTables | None) -> dict[Label, Statistics]:
    """Statistics of every group."""
    if tables is None:
        return {}
    weights, step = np.eye(len(tables)), max(1, EACH_AT_ONCE // max(len(tables), 1))
    each = (resampled(tables, weights[start : start + step]) for start in range(0, len(tables), step))
    return dict(zip(tables.labels, chain.from_iterable(each), strict=True))


def _merged(one: Statistics, other: Statistics) -> Statistics:
    """Return statistics of both sets of samples; IncompatibleStatisticsError names what differs."""
    if one.layout is not other.layout:
        if one.task == other.task == "classification":
            _check_facts(one, other, {**one.layout.alike, **other.layout.alike})
        if one.task == other.task:
            forms = [statistics.facts.get("distribution") or "mean and std" for statistics in (one, other)]
            raise IncompatibleStatisticsError(
                f"distribution differs ({' and '.join(forms)}); evaluate both the same way"
            )
        raise IncompatibleStatisticsError(f"statistics of a {one.task} and a {other.task} cannot be pooled")
    counts = {name: one.counts[name] + other.counts[name] for name in one.layout.counts}
    if not one.n or not other.n:
        return (one if one.n else other).with_counts(counts)
    if one.weighted != other.weighted:
        raise IncompatibleStatisticsError(
            "one set of samples has weights and the other has none; evaluate both with weights="
        )
    _check_facts(one, other, one.layout.alike)
    groups = None if one.groups is None or other.groups is None else one.groups.merge(other.groups)
    classes = None if one.classes is None or other.classes is None else one.classes + other.classes
    if one.kind == other.kind == "exact":
        mine, theirs = one.rows(), other.rows()
        unit = min(one.unit, other.unit)  # of the lightest sample overall
        summed = _summed(*(each.in_units(unit / each.unit) for each in (one, other)))
        rows = {name: np.concatenate([mine[name], theirs[name]]) for name in mine}
        made = Statistics.exact(one.layout, rows, facts=one.facts, known=summed).with_counts(counts)
    else:
        bits = one.bits or other.bits or SKETCH_BITS
        collector = SketchCollector(one.layout, one.facts, bits)
        for each in (one, other):
            collector.absorb(each.sketched(bits))
        made = collector.statistics().with_counts(counts)
    return replace(made, groups=groups, classes=classes)


def _summed(one: Parts, other: Parts) -> Parts:
    """What simply adds: all but orders."""
    return Parts(
        {},
        {name: one.sums[name] + other.sums[name] for name in one.sums},
        {name: moments.merge(other.moments[name]) for name, moments in one.moments.items()},
        {name: table.merge(other.tables[name]) for name, table in one.tables.items() if name in other.tables},
        counts={
            name: count + other.counts[name] for name, count in one.counts.items() if name in other.counts
        },
    )


def _check_facts(one: Statistics, other: Statistics, alike: Mapping[str, str]) -> None:
    for name, words in alike.items():
        if one.facts.get(name) != other.facts.get(name):
            raise IncompatibleStatisticsError(
                f"{words} differs ({one.facts.get(name)} and {other.facts.get(name)}); evaluate both the same way"
            )


def _from_arrays(layout: Layout, arrays: Mapping[str, npt.NDArray[Any]]) -> Statistics:
    counts = dict(zip(layout.counts, (int(c) for c in arrays["counts"]), strict=True))
    facts = dict(json.loads(str(arrays["facts"])))
    moments: dict[str, Moments] = {}
    total: float = counts["n"]
    if f"moments/{WEIGHT}" in arrays:
        moments[WEIGHT] = Moments.from_array(counts["n"], arrays[f"moments/{WEIGHT}"])
        total = whole(total * moments[WEIGHT].mean / moments[WEIGHT].low)
    moments |= {name: Moments.from_array(total, arrays[f"moments/{name}"]) for name in layout.moments}
    known = Parts(
        {},
        dict(zip(layout.sums, (float(value) for value in arrays["sums"]), strict=True)),
        moments,
        {
            name: kind.from_arrays(held)
            for name, kind in layout.tables.items()
            if (held := under(f"table/{name}", arrays))
        },
    )
    if str(arrays["kind"]) == "exact":
        rows = under("row", arrays)
        made = Statistics.exact(layout, rows, facts=facts, known=known).with_counts(counts)
    else:
        orders = {
            name: Buckets.from_arrays(name, payloads, under(f"order/{name}", arrays))
            for name, payloads in layout.orders.items()
        }
        parts = replace(known, orders=orders, counts=counts)
        made = Statistics.of(layout, parts, bits=int(arrays["bits"]), facts=facts)
    totals = [order.total for order in made.orders.values()]
    totals += [table.count.sum().item() for table in made.tables.values()]
    rounding = 1e-9 * made.n if made.weighted else 0
    if any(abs(total - made.n) > rounding for total in totals):
        raise ValueError(
            f"counts disagree: {made.n} samples, but {sorted(set(totals))} in the orders and tables"
        )
    return made


POWERS = {
    "std": {"std": 1.0, "std2": 2.0, "abs_error": 0.0, "sq_error": 0.0, "error": 0.0},
    "z": {"z": -1.0, "z2": -2.0, "std": 1.0, "error": 0.0, "inv_std": -1.0, "inv_sqrt_std": -0.5},
}
"""Power of the factor by which each payload is multiplied, in the orders that change."""


def scaled(statistics: Statistics, factor: float) -> Statistics:
    """Statistics of the same samples with ``factor * std``: no order changes, z is divided by the factor.

    Parameters
    ----------
    statistics : Statistics
    factor : float
        Above 0.

    Raises
    ------
    SettingsError
        The factor is not positive and finite.
    """
    if not 0 < factor < math.inf:
        raise SettingsError(f"factor is {factor}; pass a finite number above 0")
    moments, orders = dict(statistics.moments), dict(statistics.orders)
    for name, powers in POWERS.items():
        order, by = orders[name], {payload: factor**power for payload, power in powers.items()}
        if isinstance(order, SortedRows):
            columns = {
                column: values if powers[column] == 0 else values.astype(np.float64) * by[column]
                for column, values in order.columns.items()
            }
            orders[name] = SortedRows(name, columns)
        else:
            held = bucketed(order)
            sums = {payload: values * by[payload] for payload, values in held.sums.items()}
            orders[name] = Buckets(name, held.key * by[name], held.width * by[name], held.count, sums)
        moments[name] = moments[name].times(by[name])
    return replace(
        statistics,
        orders=orders,
        moments=moments,
        sums={"log_std": statistics.sums["log_std"] + statistics.n * math.log(factor)},
        groups=None,
    )
