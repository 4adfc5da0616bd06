"""Plain arrays of groups: the sums of each group in every bin or below every position, and what groups are worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.families import Standard
from uq_tracking.statistics.groups import GroupCells, GroupTables, bucket_spans
from uq_tracking.statistics.layout import Rows
from uq_tracking.statistics.orders import Block, Buckets, FloatArray
from uq_tracking.statistics.regression import DISTRIBUTION, HIGH, LOW, joint_counts
from uq_tracking.statistics.weights import WEIGHT, equal_edges, in_units
from uq_tracking.statistics.weights import whole as whole_number
from uq_tracking.typed import cached_property

ZERO_GAP = 1e-300


def count(statistics: Any) -> int | None:
    """Number of groups (or pools of them) whose sums are known; None if samples stand for themselves."""
    return None if statistics.groups is None else len(statistics.groups)


class OfGroups:
    """Groups alone, in the form in which these functions read statistics."""

    def __init__(self, groups: GroupTables) -> None:
        self.groups, self.layout, self.facts = groups, groups.layout, groups.facts

    @cached_property
    def orders(self) -> dict[str, Buckets]:
        """The values of all groups together, in coarse buckets."""
        return {name: whole(table, name, self.groups.bits) for name, table in self.groups.orders.items()}


def total(statistics: Any) -> float:
    """Total count of the samples of all groups: their number, or the sum of their weights as given."""
    return float(np.sum(statistics.groups.sizes_by_weight))


def positions(statistics: Any, places: Callable[[float], npt.NDArray[Any]]) -> FloatArray:
    """Positions within the total count, by weight as given; ``places`` works in units of the lightest."""
    unit = statistics.groups.unit
    return np.asarray(places(whole_number(total(statistics) / unit)) * unit, dtype=np.float64)


def effective(statistics: Any) -> tuple[float, float]:
    """Effective sample size, and its share of the total count; n and 1 without weights."""
    n: float = statistics.n_effective
    return n, n / statistics.n


def weighted_rows(statistics: Any) -> tuple[Rows, FloatArray] | None:
    """Columns of weighted samples, and the weights in units of the lightest; None if unknown or all equal."""
    if statistics.kind != "exact" or not statistics.weighted:
        return None
    rows = statistics.rows()
    weight = in_units(rows[WEIGHT], statistics.unit)
    return None if np.all(weight == 1) else (rows, weight)


def sizes(statistics: Any) -> FloatArray:
    """Samples of each group."""
    return sums_of(next(iter(statistics.groups.orders.values())), "count")


def freedom(statistics: Any) -> float:
    """Degrees of freedom that the group sizes allow."""
    return size_freedom(np.square(sizes(statistics)))


def sums_of(table: GroupCells, name: str) -> FloatArray:
    """One sum of a table over each group's samples, shape (groups,)."""
    return np.asarray(table.sums[name].sum(axis=1), dtype=np.float64)


def column_sums(table: GroupCells, name: str) -> FloatArray:
    """One sum of a table over all groups, shape (buckets,)."""
    return np.asarray(table.sums[name].sum(axis=0), dtype=np.float64)


def sums_below(table: GroupCells, name: str, positions: FloatArray) -> FloatArray:
    """Sum of each group's samples before each position, shape (groups, positions).

    Positions count the samples of all groups, in order; within a bucket samples have no order.
    """
    totals = column_sums(table, "count")
    ends = np.cumsum(totals)
    bucket = np.minimum(np.searchsorted(ends, positions), len(totals) - 1)
    part = np.clip((positions - ends[bucket] + totals[bucket]) / np.maximum(totals[bucket], ZERO_GAP), 0, 1)
    cells = table.sums[name].toarray()
    whole_buckets = np.cumsum(cells, axis=1)[:, bucket]
    return np.asarray(whole_buckets - (1 - part) * cells[:, bucket])


def whole(table: GroupCells, by: str, bits: int) -> Buckets:
    """All groups of a table together."""
    low, width = bucket_spans(table.bucket, bits)
    sums = {name: column_sums(table, name) for name in table.sums}
    return Buckets(by, low, width, sums.pop("count").astype(table.sums["count"].dtype), sums)


def binned(table: GroupCells, edges: FloatArray, names: tuple[str, ...]) -> list[FloatArray]:
    """Sums of each group in the bins between positions ``edges``, each of shape (groups, bins)."""
    return [np.diff(sums_below(table, name, edges), axis=1) for name in names]


def variance_sums(statistics: Any, n_bins: int) -> list[FloatArray]:
    """Samples, sums of s^2 and of e^2 of each group in the equal-count bins of ENCE, each of shape (groups, bins)."""
    edges = positions(statistics, lambda total: equal_edges(total, n_bins))
    return binned(statistics.groups.orders["std"], edges, ("count", "std2", "sq_error"))


def covered(statistics: Any, family: Standard, levels: FloatArray) -> FloatArray:
    """Samples of each group inside the central interval of each level, shape (groups, levels)."""
    if statistics.groups.layout is DISTRIBUTION:
        return _expected_below(statistics, (1 + levels) / 2) - _expected_below(statistics, (1 - levels) / 2)
    return within(statistics, family.central(levels))


def within(statistics: Any, half: FloatArray) -> FloatArray:
    """Samples of each group whose absolute z is at most this large, shape (groups, sizes)."""
    return _below(statistics, half, "right") - _below(statistics, -half, "left")


def below_quantiles(statistics: Any, family: Standard, levels: FloatArray) -> FloatArray:
    """Samples of each group below the quantile of each level, shape (groups, levels)."""
    if statistics.groups.layout is DISTRIBUTION:
        return _expected_below(statistics, levels)
    return _below(statistics, family.quantile(levels), "right")


def _expected_below(statistics: Any, levels: FloatArray) -> FloatArray:
    """Expected number of each group's samples with PIT at or below each level, as ``distribution.expected_below``."""
    groups, score = statistics.groups, special.ndtri(levels)

    def sums(order: str, *names: str) -> list[FloatArray]:
        table = groups.orders[order]
        at = whole(table, order, groups.bits).position(score)
        return [sums_below(table, name, at) for name in names]

    points, rate, start = sums(LOW, "point", "rate", "rate_low")
    risen, end = sums(HIGH, "rate", "rate_high")
    return np.asarray(points + levels * (rate - risen) - (start - end))


def sample_squares(statistics: Any) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Squared errors and variances of samples, and how many have them; for a sketch, those of a grid's cells."""
    if statistics.kind == "exact":
        rows, count = weighted_rows(statistics) or (statistics.rows(), None)
        return np.square(rows["error"].astype(np.float64)), np.square(rows["std"].astype(np.float64)), count
    joint = joint_counts(statistics)
    std_low, std_high, error_low, error_high = joint.edges()
    error, std = (error_low + error_high) / 2, (std_low + std_high) / 2
    return np.square(error), np.square(std), joint.count.astype(np.float64)


def squares(statistics: Any) -> list[FloatArray]:
    """Sums of squared errors and of variances of each group."""
    table = statistics.groups.orders["std"]
    return [sums_of(table, name) for name in ("sq_error", "std2")]


def _below(statistics: Any, z: FloatArray, side: Any) -> FloatArray:
    table = statistics.groups.orders["z"]
    together = whole(table, "z", statistics.groups.bits)
    return sums_below(table, "count", together.position(z, side))


def power_sums(statistics: Any, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Sums over samples of a function of each sample's z, of shape (powers, samples)."""

    def one(block: Block) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.einsum("...i,i->...", function(block.sums["z"] / block.count), block.count))

    parts = statistics.orders["z"].map_blocks(one, ("z",), "unordered")
    return np.asarray(np.sum(parts, axis=0))


def mean_of_z(statistics: Any, function: Callable[[FloatArray], FloatArray]) -> float:
    """Mean over samples of a function of each sample's z."""
    return float(power_sums(statistics, function)) / float(statistics.n)


def moments(statistics: Any, variable: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Samples, mean, and sum of squared deviations of a variable in each group."""
    groups = statistics.groups
    mean, spread = groups.moments[groups.layout.moments.index(variable)][:2]
    return groups.sizes_by_weight.astype(float), mean, spread


def class_sums(statistics: Any) -> list[FloatArray]:
    """For each group: the total count, the sum of doubt, and the count of correct samples."""
    table = statistics.groups.orders["one_minus_confidence"]
    names = ("count", "one_minus_confidence", "correct")
    return [sums_of(table, name) / statistics.unit for name in names]


def without(sums: FloatArray) -> FloatArray:
    """Sum over all groups except each one."""
    return np.asarray(sums.sum(axis=0) - sums)


def size_freedom(weights: FloatArray) -> float:
    """Degrees of freedom of a variance to which units contribute in these proportions.

    >>> size_freedom(np.ones(12)), round(size_freedom(np.asarray([1.0, 1.0, 1.0, 9.0])), 2)
    (11.0, 0.71)
    """
    largest = float(weights.max(initial=0.0))
    share = weights / largest if largest > 0 else weights
    return float(share.sum() ** 2 / max(np.square(share).sum(), 1e-300)) - 1
