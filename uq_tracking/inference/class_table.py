"""Scores of each class of a classification, with intervals over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uq_tracking.inference.classes import levels_of, tests_of_classes
from uq_tracking.inference.enough import FEWEST_CARRYING, FEWEST_GROUPS
from uq_tracking.inference.events import EventTests
from uq_tracking.inference.limits import Influence, set_weights, sets_of
from uq_tracking.metrics.groups import size_freedom
from uq_tracking.statistics.classes import ClassSums
from uq_tracking.statistics.groups import GroupTables
from uq_tracking.statistics.orders import FloatArray, IntArray

LEVEL = 0.95
N_BINS = 10
MOST_DRAWN = 100
"""Of more classes than this, no bins are kept."""


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Numbers of each class, one row per class.

    Attributes
    ----------
    labels : tuple of str
        Names of the classes, or their numbers.
    values : dict of array, shape (C,)
        By column: ``support`` (samples of the class), ``recall``, ``precision``, ``iou``, ``dice``, ``observed``
        (share of all samples), and where probabilities were at hand ``stated`` (mean probability), ``gap`` (stated
        minus observed), ``ece`` (in ten bins), ``slope`` (calibration slope) and ``level_p`` (p-value of the gap);
        NaN where a class does not occur, is never predicted, or has too few informative samples.
    limits : dict of array, shape (C, 2)
        Confidence limits over groups of the columns that have any; NaN where a class has none.
    bins : dict of array, shape (C, 10)
        ``count`` of samples, ``stated`` (mean probability) and ``observed`` (share of the class) in ten bins of each
        class's probability; empty without probabilities, or for more than 100 classes.
    """

    labels: tuple[str, ...]
    values: Mapping[str, FloatArray]
    limits: Mapping[str, FloatArray] = field(default_factory=dict)
    bins: Mapping[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)

    def worst_first(self) -> IntArray:
        """Places of the classes, the worst first.

        First those whose ``gap`` has limits that exclude 0, by the factor between ``stated`` and ``observed``; then
        by the size of ``gap``, if known, else by ``iou``.
        """
        if "gap" not in self.values:
            return np.argsort(self.values["iou"], kind="stable")
        low, high = self.limits["gap"].T if "gap" in self.limits else np.full((2, len(self)), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.abs(np.log(self.values["stated"] / self.values["observed"]))
        factor = np.where((low > 0) | (high < 0), factor, 0.0)
        return np.lexsort((-np.abs(self.values["gap"]), -factor))

    def columns(self) -> dict[str, FloatArray]:
        """Every column by name, with ``<name>_low`` and ``<name>_high`` after those that have limits."""
        made: dict[str, FloatArray] = {}
        for name, values in self.values.items():
            made[name] = values
            if name in self.limits:
                made[f"{name}_low"], made[f"{name}_high"] = self.limits[name].T
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; None where there is no number."""
        columns = {name: _plain(values) for name, values in self.columns().items()}
        made = {"labels": list(self.labels), "columns": columns}
        bins = {name: values.tolist() for name, values in self.bins.items()}
        return {**made, "bins": bins} if bins else made

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ClassTable:
        """Inverse of ``to_dict``; KeyError, TypeError or ValueError for anything else."""
        labels = tuple(str(label) for label in values["labels"])
        columns = {name: np.asarray(column, dtype=np.float64) for name, column in values["columns"].items()}
        if any(column.shape != (len(labels),) for column in columns.values()):
            raise ValueError("the columns of the classes differ in length")
        limits = {
            name: np.stack([columns.pop(f"{name}_low"), columns.pop(f"{name}_high")], axis=1)
            for name in tuple(columns)
            if f"{name}_low" in columns
        }
        bins = {name: np.asarray(held, dtype=np.float64) for name, held in values.get("bins", {}).items()}
        if any(held.shape != (len(labels), N_BINS) for held in bins.values()):
            raise ValueError("the bins of the classes have another shape")
        return cls(labels, columns, limits, bins)


def _plain(values: FloatArray) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def class_table(statistics: Any, names: Sequence[str] | None = None) -> ClassTable:
    """Return the scores of each class, from the statistics of a classification.

    Limits are those of the jackknife over sets of groups; there are none with fewer than eight groups, and for
    classes that occur in groups worth fewer than five equal ones.
    """
    confusion, classes = statistics.tables["confusion"], statistics.facts["n_classes"]
    values = _scores(confusion.key, confusion.count * statistics.unit, classes)
    labels = tuple(map(str, range(classes))) if names is None else tuple(names)
    groups = statistics.groups
    limits = {} if groups is None or len(groups) < FEWEST_GROUPS else _limits(groups, values, classes)
    table = ClassTable(labels, values, limits)
    return table if statistics.classes is None else _with_stated(table, statistics)


def _with_stated(table: ClassTable, statistics: Any) -> ClassTable:
    """Add what is stated of each class: mean probability, class-wise ECE, calibration slope, and a test of its level.

    Limits are those of the jackknife over sets of groups, for the classes whose share has limits.
    """
    sums: ClassSums = statistics.classes
    values = {**table.values, "stated": sums.stated, "gap": sums.stated - sums.observed}
    bins = sums.joined(N_BINS)
    if bins is not None:
        values["ece"] = np.abs(bins[3] - bins[1]).sum(axis=1) / sums.total
        if len(table) <= MOST_DRAWN:
            held = np.maximum(bins[0], 1e-300)
            drawn = {"count": bins[0], "stated": bins[1] / held, "observed": bins[3] / held}
            table = replace(table, bins=drawn)
    if (tests := tests_of_classes(statistics, 1 - LEVEL)) is not None:
        values["slope"] = np.asarray([_slope(each) for each in tests])
        values["level_p"] = levels_of(tests)[1]
    if "observed" not in table.limits or not sums.labels:
        return replace(table, values=values)
    sets, size = sets_of(len(sums.labels)), len(table)
    of_sets = np.zeros((int(sets.max()) + 1, sums.of_groups.shape[1]))
    np.add.at(of_sets, sets, sums.of_groups)
    left = of_sets.sum(axis=0) - of_sets
    stated, observed = left[:, 2 : 2 + size] / left[:, :1], left[:, 2 + size :] / left[:, :1]
    freedom = size_freedom(np.bincount(sets, np.square(sums.of_groups[:, 0])).astype(np.float64))
    limits = np.full((2, size, 2), np.nan)
    for k in np.flatnonzero(np.isfinite(table.limits["observed"][:, 0])).tolist():
        for row, estimates, value in (
            (limits[0], stated[:, k], values["stated"][k]),
            (limits[1], stated[:, k] - observed[:, k], values["gap"][k]),
        ):
            row[k] = Influence.left_out(estimates, freedom).limits(float(value), LEVEL)
    stated_and_gap = {"stated": np.clip(limits[0], 0, 1), "gap": limits[1]}
    return replace(table, values=values, limits={**table.limits, **stated_and_gap})


def _slope(tests: EventTests) -> float:
    """Return the calibration slope of a class; NaN where its probabilities tell too little."""
    found = None if tests.refusal() else tests.fitted(slope=True)
    return np.nan if found is None else found[1]


def _scores(pair: IntArray, count: FloatArray, classes: int) -> dict[str, FloatArray]:
    """Return the columns from counts of pairs ``true * classes + predicted``."""
    true, predicted = np.divmod(pair, classes)
    is_right = true == predicted
    support, called = np.bincount(true, count, classes), np.bincount(predicted, count, classes)
    right = np.bincount(true[is_right], count[is_right], classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "support": support,
            "recall": right / support,
            "precision": right / called,
            "iou": right / (support + called - right),
            "dice": 2 * right / (support + called),
            "observed": support / support.sum(),
        }


def _limits(groups: GroupTables, values: Mapping[str, FloatArray], classes: int) -> dict[str, FloatArray]:
    cells, weights = groups.tables["confusion"], set_weights(len(groups))
    pair = np.asarray(cells.bucket, dtype=np.int64)
    parts = [_scores(pair, count, classes) for count in cells.weighted(weights)["count"]]
    freedom = size_freedom((1 - weights) @ np.square(groups.sizes_by_weight.astype(float)))
    is_known = _worth(groups, classes) >= FEWEST_CARRYING
    made = {}
    for name, whole in values.items():
        if name == "support":
            continue
        without = np.stack([part[name] for part in parts], axis=1)
        limits = np.full((classes, 2), np.nan)
        for k in np.flatnonzero(is_known & np.isfinite(without).all(axis=1)).tolist():
            influence = Influence.left_out(without[k], freedom)
            if influence.square > 0:
                limits[k] = np.clip(influence.limits(float(whole[k]), LEVEL), 0, 1)
        made[name] = limits
    return made


def _worth(groups: GroupTables, classes: int) -> FloatArray:
    """Return in how many equal groups each class occurs, shape (classes,)."""
    from scipy.sparse import csr_array

    cells = groups.tables["confusion"]
    true = np.asarray(cells.bucket, dtype=np.int64) // classes
    places = csr_array((np.ones(len(true)), (np.arange(len(true)), true)), shape=(len(true), classes))
    held = (cells.sums["count"] @ places).toarray()
    return np.asarray([size_freedom(column) + 1 for column in held.T])
