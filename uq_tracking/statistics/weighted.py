"""Exact statistics of samples with weights: one bucket per distinct value, whatever the task.

Samples without weights take a faster, task-specific route (``sorting``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.exact import stable_order
from uq_tracking.statistics.layout import Layout, Parts, Rows
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.orders import Buckets, FloatArray
from uq_tracking.statistics.sketch import JOINT_BITS
from uq_tracking.statistics.weights import WEIGHT, in_units


@dataclass(frozen=True, eq=False)
class WeightedRows(Buckets):
    """Buckets of equal values, made of samples that are still available."""

    rows: Rows = field(default_factory=dict)
    """Columns of the samples, and their weights as given."""


def sort_weighted(layout: Layout, rows: Rows, facts: Mapping[str, Any], known: Parts | None = None) -> Parts:
    """Exact statistics of rows with a column ``weight``, all above 0; arguments as for ``Layout.sort``."""
    weight = np.asarray(rows[WEIGHT], dtype=np.float64)
    moments = {WEIGHT: Moments.of(weight)}
    counts = in_units(weight, moments[WEIGHT].low)
    columns = layout.columns(rows)
    told = {name: column for name, column in columns.items() if known is None or name not in layout.forgotten}
    sums = {name: float((told[name] * counts).sum()) for name in layout.sums if name in told}
    moments |= {name: Moments.of(told[name], counts) for name in layout.moments if name in told}
    tables = {
        name: layout.tables[name](key, np.bincount(place, counts, len(key)), size)
        for name, (key, place, size) in layout.places(told, facts, JOINT_BITS).items()
    }
    if known is not None:
        sums |= {name: known.sums[name] for name in layout.sums if name not in told}
        moments |= {name: known.moments[name] for name in layout.moments if name not in told}
        tables = {**known.tables, **tables}
    held = {**rows, **columns}
    orders = {
        name: _ordered(name, columns, payloads, counts, {name: held[name] for name in (*layout.kept, WEIGHT)})
        for name, payloads in layout.orders.items()
    }
    counted = {name: int(np.count_nonzero(columns[name])) for name in layout.counted}
    derived = {**layout.noted_in(known), **layout.derived(columns, counts)}
    return Parts(orders, sums, moments, tables, derived, {"n": len(weight), **counted})


def _ordered(
    by: str,
    columns: Mapping[str, npt.NDArray[Any]],
    payloads: Sequence[str],
    counts: FloatArray,
    rows: Rows,
) -> WeightedRows:
    order, values = stable_order(columns[by])
    values += 0.0  # no negative zeros
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    sums = {name: np.add.reduceat((columns[name] * counts)[order], first) for name in payloads}
    count = np.add.reduceat(counts[order], first)
    return WeightedRows(by, values[first], np.zeros(len(first)), count, sums, rows)


def weighted_ranks(values: npt.NDArray[Any], counts: FloatArray) -> FloatArray:
    """Weight below each sample, plus half that of its ties, minus half the total."""
    order, ordered = stable_order(values)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    count = np.add.reduceat(counts[order], first)
    middle = np.cumsum(count) - count / 2
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(
        middle - (middle[-1] + count[-1] / 2) / 2, np.diff(np.append(first, len(values)))
    )
    return ranks


def weighted_correlation(one: FloatArray, other: FloatArray, counts: FloatArray) -> float | None:
    """Rank correlation of two columns; None if either is constant."""
    x, y = weighted_ranks(one, counts), weighted_ranks(other, counts)
    spread, wide = float((counts * x * x).sum()), float((counts * y * y).sum())
    return (
        float((counts * x * y).sum() / (np.sqrt(spread) * np.sqrt(wide))) if spread > 0 and wide > 0 else None
    )
