"""More than two classes: tests of their probabilities, together at 5 %, and the scores of each class.

* **Sharpness**, at 1.25 %: the mean log probability of the label against minus the mean entropy, the score test of a
  temperature of 1. Samples whose label had a probability below 1e-7 count as if it had this one.
* **Top label**, at 1.25 %: the tests of an event, which is that the top label is right.
* **Level of classes**, at 1.25 %: the number of samples of each class against the sum of its probabilities, by Holm.
* **Slope and shape of classes**, at .625 % each: those of an event, on bins of each class's probability; not with
  groups.

Each finds what the others miss. With groups, sums vary as the groups show, never as independent samples would.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import special

from uq_tracking.inference.events import (
    FEWEST_INFORMATIVE,
    SLIGHT_GAP,
    SLIGHT_SLOPE,
    Event,
    EventTests,
    Tested,
    log_of_p,
    p_of_sums,
)
from uq_tracking.inference.limits import FEWEST_CARRYING, FEWEST_GROUPS, Influence, set_weights
from uq_tracking.metrics import groups
from uq_tracking.metrics.events import EventCells, square_of
from uq_tracking.metrics.groups import size_freedom
from uq_tracking.statistics.classification import BY_WEIGHT, ClassSums, pairs_by_class
from uq_tracking.statistics.groups import GroupTables
from uq_tracking.statistics.orders import FloatArray, IntArray

PART = 0.0125
"""Level of each of the four parts."""
FAR_OUT = 1.5
"""Slopes of all other classes are at least so many times that of a class whose scores are looked at first."""
LEAST_VARIANCE = 1e-9
"""Variance of the log probability below which all outcomes are stated to be equally likely, apart from rounding."""


@dataclass(frozen=True)
class OffClass:
    """A class whose probability is wrong by more than chance.

    Attributes
    ----------
    name : str
        Its name, or its number.
    off : int
        Number of classes that are off, and of how many; 1 if errors of all others may follow from this one, as
        probabilities add to 1.
    of : int
    event : Event
        How often it is stated and occurs, and its calibration slope.
    what : {"level", "slope", "shape"}
        What is wrong with it.
    is_extreme : bool
        Of a slope, whether probabilities are too extreme (else not extreme enough).
    stands_out : bool
        Of a slope, whether it is far smaller than those of all other classes.
    mixed : tuple of str
        If two of more classes are off, and one has what the other lacks: that one, whose labels may be of the other.
    """

    name: str
    off: int
    of: int
    event: Event
    what: str
    is_extreme: bool = False
    stands_out: bool = False
    mixed: tuple[str, ...] = ()

    @property
    def is_slight(self) -> bool:
        """Return whether it is off by too little to matter."""
        return self.event.is_level_slight if self.what == "level" else self.event.is_slope_slight


@dataclass(frozen=True)
class Found:
    """Outcomes of the tests.

    Attributes
    ----------
    sharpness : float or None
        Standardized excess of the log probability of the labels over what is implied: below 0 for probabilities that
        are too extreme. None if not tested.
    top : Tested
    top_event : Event
        That the top label is right.
    level, slope : OffClass or None
        The worst class by its level, and by its slope or shape.
    strength : dict of float
        By test that rejects ("sharpness", "top level", "top slope", "top shape", "level", "slope"): log of p over
        the test's share of the level.
    classes : int
        Number of classes that were tested.
    classes_proven : bool
        Whether the limits of every class leave only slight gaps.
    reversed : tuple of str
        Classes that occur less often the higher their probability is.
    is_temperature_slight : bool
        Whether the best temperature, as the score test of 1 estimates it, is too close to 1 to matter.
    """

    sharpness: float | None
    top: Tested
    top_event: Event
    level: OffClass | None
    slope: OffClass | None
    strength: dict[str, float]
    classes: int
    classes_proven: bool
    reversed: tuple[str, ...] = ()
    is_temperature_slight: bool = False

    @property
    def is_proven(self) -> bool:
        """Whether only slight errors are left, however certain some of them are."""
        known = self.top_event.is_proven and self.classes_proven and "top shape" not in self.strength
        off = [each for each in (self.level, self.slope) if each is not None]
        are_slight = all(each.is_slight and each.what != "shape" for each in off)
        return known and are_slight and ("sharpness" not in self.strength or self.is_temperature_slight)

    @property
    def lead(self) -> str | None:
        """The test with the smallest p relative to its share; None if none rejects."""
        return _clearest(self.strength) if self.strength else None

    @property
    def is_extreme(self) -> bool | None:
        """Whether probabilities are too extreme as a whole, or not extreme enough (False); None if neither."""
        signs = {
            "sharpness": self.sharpness, "top level": self.top.level, "top slope": self.top.slope
        }  # fmt: skip
        known = {name: self.strength[name] for name, sign in signs.items() if name in self.strength and sign}
        return (signs[_clearest(known)] or 0) < 0 if known else None


def _clearest(strength: Mapping[str, float]) -> str:
    """Return the test that rejects most clearly; of those that differ by rounding, one that names classes."""
    return min(strength, key=lambda name: (round(strength[name], 6), name.startswith("top")))


def tests_of_classes(statistics: Any, each: float) -> list[EventTests]:
    """Return tests of every class against the rest, each at this level; none without sums by class.

    With groups, only the level can be tested.
    """
    sums: ClassSums | None = statistics.classes
    is_grouped = groups.count(statistics) is not None
    if sums is None or (is_grouped and not sums.labels):
        return []
    share = statistics.n_effective / sums.total
    size = len(sums)
    made, weight = [], sums.of_groups[:, :1]
    freedom = size_freedom(np.square(weight[:, 0])) if is_grouped else math.inf
    stated, events = sums.of_groups[:, 2 : 2 + size], sums.of_groups[:, 2 + size :]
    for place in range(size):
        count, probability, square, own = sums.bins[:4, place]
        there = np.flatnonzero(count)
        variance = np.maximum(probability - square, 0.0)
        cells = EventCells(*(column[there] for column in (count, probability, variance, own)))
        by_group = (weight, stated[:, [place]], events[:, [place]]) if is_grouped else None
        spread = cells.variance * square_of(
            sums.bins[BY_WEIGHT, place], cells.probability / cells.count, there
        )
        made.append(EventTests(cells, spread, by_group, freedom, share, each, math.inf))
    return made


def levels_of(tests: Sequence[EventTests]) -> tuple[FloatArray, FloatArray]:
    """Return the standardized level of each class, and its p-value."""
    found = [each.level() for each in tests]
    return np.asarray([z for z, _ in found]), np.asarray([p for _, p in found])


def find(statistics: Any, names: Sequence[str] | None, among: float = 1) -> Found:
    """Run all tests, at their share of the level if several reports are judged together."""
    part = PART / among
    top = EventTests.of(statistics, part / 3, top=True)
    tested, event = top.tested()
    strength = {f"top {name}": clear for name, clear in tested.strength.items()}
    sharpness, p = _sharpness(statistics, top)
    if sharpness is not None and p <= part:
        strength["sharpness"] = log_of_p(p, sharpness) - math.log(part)
    each = tests_of_classes(statistics, part)
    names = names or list(map(str, range(len(each))))
    level = _worst_level(each, names, part, strength)
    is_grouped = groups.count(statistics) is not None
    fits = [None if is_grouped else test.fitted(slope=True) for test in each]
    events = [test.event(fit) for test, fit in zip(each, fits, strict=True)]
    slope = None if is_grouped else _worst_slope(each, names, fits, part / 2, strength)
    gaps = [max(abs(event.stated - event.low), abs(event.stated - event.high)) for event in events]
    is_proven = max(gaps, default=1.0) < SLIGHT_GAP
    of_names = zip(names, events, strict=True)
    against = tuple(name for name, event in of_names if slope is not None and event.sorts == "reversed")
    sharp = (0.0, 0.0) if statistics.classes is None else statistics.classes.sharp[:2].tolist()
    is_slight = SLIGHT_SLOPE[0] * sharp[1] < sharp[0] + sharp[1] < SLIGHT_SLOPE[1] * sharp[1]
    return Found(sharpness, tested, event, level, slope, strength, len(each), is_proven, against, is_slight)


def _sharpness(statistics: Any, top: EventTests) -> tuple[float | None, float]:
    """Return the standardized excess of the labels' log probability, None if not tested, and its p-value."""
    sums: ClassSums | None = statistics.classes
    if sums is None or top.few or float(top.cells.variance.sum()) * top.share < FEWEST_INFORMATIVE:
        return None, 1.0
    if top.by_group is not None:
        return p_of_sums(sums.of_groups[:, 1], top.freedom) if sums.labels else (None, 1.0)
    if sums.sharp[1] < LEAST_VARIANCE * sums.total:
        return None, 1.0
    is_even = statistics.n_effective == statistics.n
    variance = float(sums.sharp[1] * sums.total / statistics.n if is_even else sums.sharp[2])
    z = float(sums.sharp[0]) / math.sqrt(max(variance, 1e-300))
    return z, float(2 * special.ndtr(-abs(z)))


def _worst_level(
    tests: Sequence[EventTests], names: Sequence[str], part: float, strength: dict[str, float]
) -> OffClass | None:
    """Return the class that is off by the largest factor, of those that are off by Holm (1979)."""
    z, p = levels_of(tests)
    order = np.lexsort((-np.abs(z), p))
    is_small = p[order] <= part / np.arange(len(p), 0, -1)
    off = len(p) if is_small.all() else int(np.argmin(is_small))
    if not off:
        return None
    first = int(order[0])
    strength["level"] = log_of_p(float(p[first]), float(z[first])) + math.log(len(p) / part)
    events = {int(place): tests[place].event() for place in order[:off]}
    worst = max(events, key=lambda place: events[place].distance)
    gaps = {place: event.observed - event.stated for place, event in events.items()}
    rare, often = min(gaps, key=gaps.__getitem__), max(gaps, key=gaps.__getitem__)
    has = events[often].stated - gaps[rare]
    are_mixed = off == 2 < len(p) and events[often].low <= has <= events[often].high
    mixed = (names[often], names[rare]) * are_mixed
    off = 1 if all(gap * gaps[worst] < 0 for place, gap in gaps.items() if place != worst) else off
    return OffClass(names[worst], off, len(p), events[worst], "level", mixed=mixed)


def _worst_slope(
    tests: Sequence[EventTests],
    names: Sequence[str],
    fits: Sequence[tuple[float, float] | None],
    part: float,
    strength: dict[str, float],
) -> OffClass | None:
    """Return the class whose slope or shape is wrong by most."""
    found = list[tuple[str, int, float, float]]()
    for place, (test, fit) in enumerate(zip(tests, fits, strict=True)):
        if (offset := test.fitted(slope=False)) is not None:
            z, p = test.slope(offset)
            found.append(("slope", place, p, z))
        if fit is not None and (shape := test.shape_p(fit)) is not None:
            found.append(("shape", place, shape, 0.0))
    number = Counter(what for what, *_ in found)
    off = [each for each in found if each[2] * number[each[0]] <= part]
    if not off:
        return None
    what, place, p, z = min(off, key=lambda each: log_of_p(each[2], each[3]) + math.log(number[each[0]]))
    strength["slope"] = log_of_p(p, z) + math.log(number[what] / part)
    event = tests[place].event(fits[place])
    others = [fit[1] for fit in fits if fit is not None and fit is not fits[place]]
    stands_out = what == "slope" and 0 < FAR_OUT * (event.slope_high or 0) < min(others, default=0)
    number_off = 1 if stands_out else len({each[1] for each in off})
    return OffClass(names[place], number_off, len(tests), event, what, z < 0, stands_out)


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
    tables: GroupTables | None = statistics.groups
    table = ClassTable(labels, values)
    if tables is not None and len(tables) >= FEWEST_GROUPS:
        table = replace(table, limits=_limits_of_scores(tables, values, classes))
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
    if tests := tests_of_classes(statistics, 1 - LEVEL):
        fits = (each.fitted(slope=True) for each in tests)
        values["slope"] = np.asarray([np.nan if fit is None else fit[1] for fit in fits])
        values["level_p"] = levels_of(tests)[1]
    if "observed" not in table.limits or not sums.labels:
        return replace(table, values=values)
    weights, size = set_weights(len(sums.labels)), len(table)
    left = weights @ sums.of_groups
    rates = left[:, 2:].reshape(-1, 2, size) / left[:, :1, None]
    freedom = size_freedom((1 - weights) @ np.square(sums.of_groups[:, 0]))
    known, without = np.isfinite(table.limits["observed"][:, 0]), {"stated": rates[:, 0]}
    without["gap"] = rates[:, 0] - rates[:, 1]
    limits = {name: _limits(left, values[name], freedom, known) for name, left in without.items()}
    limits["stated"] = np.clip(limits["stated"], 0, 1)
    return replace(table, values=values, limits={**table.limits, **limits})


def _limits(without: FloatArray, values: FloatArray, freedom: float, known: Any) -> FloatArray:
    """Return the jackknife's limits of numbers of classes, from those without each set of groups, shape (sets, C)."""
    limits = np.full((len(values), 2), np.nan)
    for k in np.flatnonzero(known & np.isfinite(without).all(axis=0)).tolist():
        limits[k] = Influence.left_out(without[:, k], freedom).limits(float(values[k]), LEVEL)
    return limits


def _scores(pair: IntArray, count: FloatArray, classes: int) -> dict[str, FloatArray]:
    """Return the columns from counts of pairs ``true * classes + predicted``."""
    support, called, right = pairs_by_class(pair, count, classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "support": support,
            "recall": right / support,
            "precision": right / called,
            "iou": right / (support + called - right),
            "dice": 2 * right / (support + called),
            "observed": support / support.sum(),
        }


def _limits_of_scores(
    groups: GroupTables, values: Mapping[str, FloatArray], classes: int
) -> dict[str, FloatArray]:
    from scipy.sparse import csr_array

    cells, weights = groups.tables["confusion"], set_weights(len(groups))
    pair = np.asarray(cells.bucket, dtype=np.int64)
    parts = [_scores(pair, count, classes) for count in cells.weighted(weights)["count"]]
    freedom = size_freedom((1 - weights) @ np.square(groups.sizes_by_weight.astype(float)))
    true = csr_array((np.ones(len(pair)), (np.arange(len(pair)), pair // classes)), (len(pair), classes))
    held = (cells.sums["count"] @ true).toarray()
    is_known = np.asarray([size_freedom(column) + 1 >= FEWEST_CARRYING for column in held.T])
    made = {}
    for name in tuple(values)[1:]:  # those after the support
        without = np.stack([part[name] for part in parts])
        varies = np.ptp(without, axis=0) > 0
        made[name] = np.clip(_limits(without, values[name], freedom, is_known & varies), 0, 1)
    return made
