"""The samples of a classification that a verdict looks at: which belong together, what recalibration makes of them.

As of `samples`, they are copies in the order given; of many, some are kept, evenly spread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from scipy import special

from uq_tracking.errors import RecalibrationError
from uq_tracking.inference.doctor import halves_of
from uq_tracking.inference.events import SLIGHT_GAP, Event
from uq_tracking.inference.limits import FEWEST_GROUPS, TINY, contrast_parts, means_of
from uq_tracking.inference.places import (
    PARTS,
    PER_PART,
    TOGETHER,
    TREND,
    apart,
    is_nested,
    mean_limits,
    some_of,
    trend_of,
)
from uq_tracking.inference.samples import COPIES, MOST_NUMBERS, Dependence, InOrder, beside, chosen, labels_of
from uq_tracking.inputs.forms.probabilities import Probabilities
from uq_tracking.inputs.predictions import looks_spatial
from uq_tracking.metrics.events import fitted_odds
from uq_tracking.metrics.registry import Metric, compute
from uq_tracking.recalibration.base import ClassificationRecalibration
from uq_tracking.recalibration.classification import CERTAIN, BiasTemperature, lacks_samples, points
from uq_tracking.settings import Settings
from uq_tracking.statistics.classification import BINARY, CLASSIFICATION
from uq_tracking.statistics.collecting import build_groups, build_statistics
from uq_tracking.statistics.layout import Rows
from uq_tracking.statistics.orders import FloatArray, IntArray, run_starts
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import cached_property, override

MOST_CURED = 1 << 18
"""Probabilities that a recalibration is looked for with."""
MOST_CLASSES = 50
"""Of more classes, it is not looked for labels or times at which a single one is stated too often."""
MOST_RECURRING = 11
"""Events whose errors may recur after a period: that the label is wrong, and the first classes."""
OF_CLASSES = 0.5
"""Share of a level that is left to single classes."""
CONTRASTS = 3
"""Contrasts of more than two classes in which samples may be alike."""
IN_DOUBT, AT_ODDS = 10.0, 0.02
"""Pairs of equal rows whose labels should differ, by their probabilities, from which on rows are known to be copies
if at most this share of so many do."""
SATURATED = 1e-6
"""Probability up to which those of an event and of its opposite are not compared, as 1 - p is rounded."""
PER_CLASS = 5
"""Samples of each class, on average, from which on labels that hold whole classes are made of them."""
FEWEST_ALIKE = 10
"""Events, stated or occurring, and others, from which on neighboring rows may be found alike."""
RUNS = 5
"""How many times as long as by chance runs of a label are where rows may be sorted by it."""
DEALT, MOST_DEALT = 20, 100
"""Stretches of equal length that must all have the same labels, and most rows of each."""
FITTED = 1e-6
"""How close probabilities are to those of a fit to the same samples, and how seldom others are so by chance."""
DRAWN = {"boundary", "interior"}
"""Labels that ``by="boundary"`` draws from the classes."""
Labels = tuple[list[str], IntArray]
"""Names, and the place of each sample's label among them."""
Rated = tuple[str, float, tuple[FloatArray, FloatArray]]
"""Name of an event, its share of a level, and how often it is stated and occurs."""
EVENT, ERRORS = "the event", "errors"
"""What is looked at: the event of two classes, or that the top label of more is wrong; and single classes."""


@dataclass(frozen=True)
class OffPart:
    """Where an event is off: at a label of ``by=``, by more than all samples are, or along the order of the samples.

    Attributes
    ----------
    of : str
        "the event", "errors", or the class whose rate is wrong, as in "class 3".
    ends : tuple of (str, Event)
        The label that is off furthest, and how often the event is stated and occurs there. With a slope, which is
        that of a straight line, the event is not stated too often or too rarely there, but too extremely. Two of
        them where no label stands out, but all together differ by more than chance: those furthest off to either
        side. Of a drift, the "first" and the "last" fifth of the order.
    p : float
        p-value of all labels together; of a drift, over its level.
    others : list of str
        Other labels of its set that are off too.
    opposite : bool
        Whether a single other one is off to the other side.
    alike : int
        Number of those that show no difference.
    least : int
        Number of samples of the smallest label.
    recur : str
        After how many samples errors recur, if labels are places in that period; else "".
    is_area : bool
        Whether labels are areas of maps.
    fifth : int
        Of the order, where a single one is off.
    """

    of: str
    ends: tuple[tuple[str, Event], ...]
    p: float = 1.0
    others: Sequence[str] = ()
    opposite: bool = False
    alike: int = 0
    least: int = 0
    recur: str = ""
    is_area: bool = False
    fifth: int = 0

    @property
    def distance(self) -> tuple[bool, bool, float]:
        """How bad it is: a reversed order of probabilities, then a rate that is wrong, then a slope."""
        event = self.ends[0][1]
        gap = abs(event.stated - event.observed) if event.slope is None else abs(1 - event.slope)
        return event.sorts == "reversed", event.slope is None, gap


@dataclass(frozen=True, eq=False)
class ClassSamples(InOrder):
    """Labels and probabilities.

    Attributes
    ----------
    data : Predictions
        The samples in one dimension.
    repeated : int
        Number of rows, if those that repeat others were left out; else 0.
    mirrored : bool
        Whether some of these repeat the other event, as where each game is seen by both teams.
    """

    data: Any
    repeated: int = 0
    mirrored: bool = False

    @classmethod
    def of(cls, data: Any) -> ClassSamples | None:
        """Copy samples of predictions; None if only their top label counts."""
        form, shape = data.form, data.shape
        if not isinstance(form, Probabilities) or form.top_label_only:
            return None
        excess, step, case = form.values.size / MOST_NUMBERS, 1, None
        cut: tuple[Any, ...] = (slice(None),) * len(shape)
        if looks_spatial(shape):
            step = max(math.ceil(math.sqrt(excess)), 1)
            cut = (*cut[:-2], *(slice(None, None, step),) * 2)
        elif excess > 1:
            cut = np.unravel_index(chosen(0, math.prod(shape), math.ceil(math.log2(excess))), shape)
            case = cut[0] if len(shape) > 1 else None
        truth = data.truth[cut]
        valid = None if data.valid is None else np.array(data.valid[cut])
        keep = slice(None) if valid is None else valid.reshape(-1)

        def kept(array: Any) -> Any:
            return None if array is None else np.array(array[cut].reshape(-1)[keep])

        values, about, labels = form.values[(slice(None), *cut)], beside(data, kept), kept(data.truth)
        flat = values.reshape(len(values), truth.size, *values.shape[1 + truth.ndim :])
        own = {
            "truth": labels,
            "form": replace(form, values=np.array(flat[:, keep]), axes=(-1, form.axes[1] and 0)),
            "valid": None,
            "counts": {**dict.fromkeys(data.counts, 0), "n": len(labels)},
            "weights": kept(data.weights),
            "groups": about["group"],
            "by": None,
        }
        return cls(
            changed(data, **own),
            step=step,
            shape=truth.shape,
            valid=valid,
            case=case,
            total=data.n if truth.size < math.prod(shape) else None,
            **about,
        )

    def in_season(self) -> ClassSamples:
        """Label samples by their places in a period after which errors of the event, or of a class, recur."""
        if self.in_runs:  # of labels, which recur themselves
            return self
        events = islice(self.events(1.0), MOST_RECURRING)
        return self.with_season(*(occurs - stated for *_, (stated, occurs) in events))

    @cached_property
    def runs(self) -> list[IntArray]:
        """Lengths of the runs of each class."""
        starts = run_starts(self.data.truth)
        length, label = np.diff(starts, append=len(self.data.truth)), self.data.truth[starts]
        return [length[label == k] for k in np.unique(label)]

    @property
    def by_class(self) -> bool:
        """Whether rows come class by class."""
        return len(self.shape) == 1 and all(len(each) == 1 for each in self.runs)

    @property
    def in_runs(self) -> bool:
        """Whether rows may be sorted by label, in parts."""
        size = np.asarray([each.sum() for each in self.runs])
        few = RUNS * (sum(map(len, self.runs)) - 1) < size.sum() - size @ size / size.sum()
        return bool(few) or self.has_stretch

    @property
    def has_stretch(self) -> bool:
        """Whether rows come class by class, or those of one in a run far longer than its others."""
        far = RUNS * math.log(max(len(self.data.truth), 2))
        others = [max((each.sum() - each.max()) / max(len(each) - 1, 1), 1.0) for each in self.runs]
        is_long = any(each.max() > far * usual for each, usual in zip(self.runs, others, strict=True))
        return self.by_class or (len(self.shape) == 1 and is_long)

    def different(self) -> ClassSamples:
        """Leave out rows that repeat others, as where a rare class was oversampled.

        They have equal probabilities, and equal labels far more often than these allow; or both of the other event.
        """
        n, truth, rows = len(self.data.truth), self.data.truth.astype(np.int64), self.rows
        is_series = len(self.shape) == 1 and not self.total and self.data.weights is None
        if not is_series or self.group is not None or self.independent or not n:
            return self
        label, key = truth, rows["entropy"]
        if self.data.form.n_classes == 2:
            label, doubt = np.asarray(rows["correct"], dtype=np.int64), rows["one_minus_confidence"]
            key = np.where(doubt > SATURATED, np.float32(1 - doubt), key)
        place = np.unique(key, return_inverse=True)[1]
        at_random = np.random.default_rng(0).permutation(n)
        order = at_random[np.argsort(place[at_random], kind="stable")]
        equal = np.diff(place[order]) == 0
        # the probability that the labels of two rows differ, lower where errors are rarer than stated
        differ = 2 - rows["brier"] - 2 * np.exp(rows["log_chosen"])
        rarer = min(np.sum(1 - rows["correct"]) / max(rows["one_minus_confidence"].sum(), TINY), 1.0)
        expected = rarer * float(differ[order[1:]][equal].sum())
        is_copied = np.count_nonzero(np.diff(label[order])[equal]) <= AT_ODDS * expected
        if expected < IN_DOUBT or not is_copied or np.bincount(place).max() > COPIES * n:
            return self
        # not the first one of each, which is the earlier the more there are
        kept = np.unique((place * self.data.form.n_classes + label)[at_random], return_index=True)[1]
        kept = np.sort(at_random[kept])
        form = replace(self.data.form, values=self.data.form.values[:, kept])
        data = changed(self.data, truth=self.data.truth[kept], form=form, counts={"n": len(kept)})
        by = self.by and labels_of(self.by[0], self.by[1][kept])
        mirrored = bool(np.any(np.diff(truth[order])[equal]))
        own = replace(self, data=data, shape=(len(kept),), valid=None, by=by, case=None)
        return replace(own, repeated=n, mirrored=mirrored)

    @cached_property
    def rows(self) -> Rows:
        """Columns of the samples."""
        rows: Rows = self.data.rows()
        return rows

    @cached_property
    def event(self) -> tuple[FloatArray, FloatArray]:
        """How often the event is stated and occurs; of more than two classes, that the top label is wrong."""
        stated, right = (np.asarray(self.rows[name], float) for name in ("one_minus_confidence", "correct"))
        is_event = self.rows.get("predicted", False)
        return np.where(is_event, 1 - stated, stated), np.where(is_event, right, 1 - right)

    @cached_property
    def is_isotonic_fit(self) -> bool:
        """Whether an isotonic regression of these events, smoothed or not, states these probabilities.

        One that is not smoothed states the rate of each level. Several are exactly that by chance with about the
        probability of the most frequent number of events of each.
        """
        from scipy.optimize import isotonic_regression

        stated, occurs = self.event
        if all(np.count_nonzero(stated == end) == 1 for end in (stated.min(), stated.max())):
            return False  # its levels, at least the outer ones, are of several samples
        p, place = np.unique(stated, return_inverse=True)
        given = self.data.weights
        weight = np.ones(len(stated)) if given is None else given * (given.sum() / np.square(given).sum())
        columns = [np.bincount(place, weight * each) for each in (1.0, occurs, stated)]
        sums: FloatArray = np.asarray(columns, dtype=np.float64)
        if np.allclose(isotonic_regression(sums[1] / sums[0], weights=sums[0]).x, p, rtol=0, atol=FITTED):
            variance = sums[0] * p * (1 - p)
            return float(np.log(2 * math.pi * variance[variance > 0]).sum()) > -2 * math.log(FITTED)
        ends = points(sums)[1][[0, -1]]
        return bool(ends[0] < ends[1]) and np.allclose(ends, p[[0, -1]], rtol=0, atol=FITTED)

    @cached_property
    def probs(self) -> FloatArray:
        """Probabilities of more than two classes, shape (n, C)."""
        form = self.data.form
        return np.concatenate([form.probabilities(at) for at in form.places(self.data.shape)])

    @property
    def allow_offsets(self) -> bool:
        """Whether all samples together are enough to fit an offset for each class."""
        return not lacks_samples(self.data.truth, self.data.form.n_classes)

    def events(self, level: float) -> Iterator[Rated]:
        """Yield the event of two classes, or errors and the single classes."""
        form = self.data.form
        classes = form.n_classes if 2 < form.n_classes <= MOST_CLASSES else 0
        yield EVENT if form.n_classes == 2 else ERRORS, level * (1 - OF_CLASSES if classes else 1), self.event
        for k in range(classes):
            name = k if form.classes is None else form.classes[k]
            occurs = (self.data.truth == k).astype(float)
            yield f"class {name}", level * OF_CLASSES / classes, (self.probs[:, k], occurs)

    @property
    def weighs_classes(self) -> bool:
        """Whether weights differ between classes, and nowhere else."""
        weights = self.data.weights
        if weights is None or np.ptp(weights) == 0:
            return False
        own = np.unique(weights, return_inverse=True)[1]
        return is_nested(self.data.truth.astype(np.int64), own)

    @override
    def are_of_truth(self, names: Sequence[str], label: IntArray) -> bool:
        """Return whether labels are those of classes, groups of classes, or right or wrong predictions."""
        outcomes = [np.asarray(each, dtype=np.int64) for each in (self.data.truth, self.rows["correct"])]
        are_drawn = {name.rpartition(": ")[2] for name in names} <= DRAWN
        return are_drawn or any(is_drawn(label, outcome) for outcome in outcomes)

    def off_stratum(self, dependence: Dependence | None, level: float, sets: Any = None) -> OffPart | None:
        """Find the label, of all sets or these, that is wrong by most; None if none is, or if nothing tells.

        A label is off if its gap between what is stated and what occurs, or the slope of that gap, differs from that
        of all samples, at this level for all labels together, if limits of its own exclude no gap, and if it matters.
        Where none stands out, all together may differ by more than chance.
        """
        group = self.units(dependence)
        if group is not None and int(group.max()) + 1 < FEWEST_GROUPS:
            return None
        if self.recur and self.in_order(dependence):  # blocks hold all places of a period
            group = self.units(replace(self, group=None).dependence())
        sets = self.sets if sets is None else sets
        tested = sum(int(np.sum(np.bincount(label) >= PER_PART)) for _, label in sets)
        if tested < 2:
            return None
        events = self.events(level / tested)
        found = [part for each in events for own in sets for part in self._off_of(each, own, group)]
        return max(found, key=lambda each: each.distance, default=None)

    def _off_of(self, tested: Rated, labels: Labels, group: IntArray | None) -> list[OffPart]:
        """Return those of one set of labels at which an event is off; its level is that of all tests of each."""
        (of, level, rates), (names, label) = tested, labels
        order, size = np.argsort(label, kind="stable"), np.bincount(label)
        columns = (*rates, self.data.weights, group, label)
        part_by_part: Any = (None if column is None else column[order] for column in columns)
        stated, occurs, weight, group, label = part_by_part
        slopes = of in (EVENT, ERRORS)
        about: Any = {"least": int(size.min()), "recur": self.recur, "is_area": self.by is None}
        level = level / 2 if slopes else level
        starts = np.searchsorted(label, np.arange(len(names)))
        gap, lean = occurs - stated, stated - means_of(stated, label, weight)[label]
        each, many, judged = level * (1 - TOGETHER), size >= PER_PART, np.zeros(len(names), dtype=bool)
        off, of_all = dict[int, Event](), list[OffPart]()

        def event_at(place: int, *, slope: bool) -> Event:
            here = label == place
            mass, units = (None if column is None else column[here] for column in (weight, group))
            rate, score = float(np.average(stated[here], weights=mass)), gap[here]
            limits = mean_limits(score * lean[here] if slope else score, mass, units, 1 - each)
            if slope:
                spread = max(float(np.average(np.square(lean[here]), weights=mass)), TINY)
                return Event(rate, rate, 0.0, 1.0, *(1 + each / spread for each in limits))
            value, low, high = (rate + each for each in limits)
            return Event(rate, value, max(low, 0.0), min(high, 1.0))

        for slope in (False, True)[: 1 + slopes]:
            score = lean * gap if slope else gap
            tests = contrast_parts(score, starts, ratio=False, weight=weight, group=group)
            known = many if group is None else many & (tests.freedom >= 2)
            judged |= known
            for place in np.flatnonzero(known & (tests.p < each)).tolist():
                event = event_at(place, slope=slope)
                if event.is_off:
                    off.setdefault(place, event)
            joint = tests.together(size, known) if is_nested(group, label) else None
            least = SLIGHT_GAP * float(np.average(np.square(lean), weights=weight)) if slope else SLIGHT_GAP
            if joint and joint.p < level * TOGETHER * known.sum() and joint.spread > least:
                ends = tuple((names[place], event_at(place, slope=slope)) for place in joint.ends)
                of_all.append(OffPart(of, ends, joint.p, **about))
        alike, found = int(judged.sum()) - len(off), []
        for place, event in off.items():
            others = {names[other]: each for other, each in off.items() if other != place}
            of_rate, is_high = _side(event)
            opposite = [_side(each) for each in others.values()] == [(of_rate, not is_high)]
            own = ((names[place], event),)
            found.append(OffPart(of, own, 1.0, list(others), opposite, alike, **about))
        return found or of_all

    def drift(self, dependence: Dependence | None, level: float) -> OffPart | None:
        """Return the event that drifts along the order of the samples, or is off in a fifth of it; else None.

        Tested are the gaps of blocks: what neighbors have in common hardly passes from one to the next. What labels
        explain is no drift.
        """
        group = self.units(dependence) if self.in_order(dependence) else None
        if group is None or (dependence is not None and self.has_stretch):  # as these may be sorted
            return None
        block, weight = np.unique(group, return_inverse=True)[1], self.data.weights
        mass, label, found = np.bincount(block, weight).astype(float), self.recurring, list[OffPart]()
        if len(mass) < FEWEST_GROUPS:
            return None
        at = (np.cumsum(mass) - mass / 2) / mass.sum()
        fifth = np.minimum(PARTS * at, PARTS - 1).astype(np.int64)
        fifths = fifth == np.arange(PARTS)[:, None]

        def values_of(score: FloatArray) -> FloatArray:
            rest = score if label is None else score - means_of(score, label, weight)[label]
            return means_of(rest, block, weight)

        for of, share, (stated, occurs) in self.events(level):
            lean, fixed = stated - np.average(stated, weights=weight), _refitted(stated, occurs, weight)
            slopes = (False, True) if of in (EVENT, ERRORS) else (False,)
            for slope in slopes:
                spread = float(np.average(np.square(lean), weights=weight)) if slope else 1.0
                score, rest = ((occurs - each) * (lean if slope else 1) for each in (stated, fixed))
                each, least = share / len(slopes), SLIGHT_GAP * spread
                means = (
                    means_of(column, fifth[block], weight).tolist() for column in (stated, occurs, score)
                )
                events = [
                    Event(rate, seen, 0.0, 1.0, 1 + rise / spread if slope else None)
                    for rate, seen, rise in zip(*means, strict=True)
                ]
                both = [values_of(score), values_of(rest)]  # what one recalibration mends is no drift
                trends = [trend_of(at, values) for values in both]
                p = max(trend.p for trend in trends)
                if p < TREND * each and min(abs(trend.slope) for trend in trends) >= least:
                    found.append(OffPart(of, (("first", events[0]), ("last", events[-1])), p / each))
                elif len(mass) > 2 * PARTS:
                    of_fifths = apart(fifths, both)
                    place = int(of_fifths.argmin())
                    if of_fifths[place] < each and abs(both[0][fifths[place]].mean()) >= least:
                        p = float(of_fifths[place])
                        found.append(OffPart(of, (("", events[place]),), p / each, fifth=place))
        return min(found, key=lambda each: each.p, default=None)

    def dependence(self) -> Dependence | None:
        """Find out which samples belong together, by errors of the event, or of more classes.

        Of these, by those of the top label and of some contrasts of the classes, whichever leave the fewest. Events
        so few as in a chance cluster tell nothing.
        """
        if self.group is not None or self.independent or not len(self.data.truth):
            return None
        truth = np.unique(self.data.truth, return_inverse=True)[1]
        stated, occurs = self.event
        rarer = min(max(stated.sum(), occurs.sum()), max((1 - stated).sum(), (1 - occurs).sum()))
        if len(self.shape) == 1 and rarer < FEWEST_ALIKE:
            return Dependence("independent", None, float(len(truth)))
        variance = [stated * (1 - stated)]
        errors = [occurs - stated]
        if self.data.form.n_classes > 2:
            contrasts = np.random.default_rng(0).choice([-1.0, 1.0], (self.data.form.n_classes, CONTRASTS))
            implied = self.probs @ contrasts
            errors += list((contrasts[self.data.truth] - implied).T)
            variance += list((1 - np.square(implied)).T)
        # smooth probabilities make the sizes of errors alike, but not what exceeds the sizes that they imply
        sizes = [np.square(error) - each for error, each in zip(errors, variance, strict=True)]
        is_dealt = self.by_class or (len(self.shape) == 1 and are_dealt(truth))  # which is no order in time
        label = truth if is_dealt else self.recurring
        if label is not None:
            errors, sizes = ([_ranks_within(each, label) for each in own] for own in (errors, sizes))
        tried = zip(errors, sizes, strict=True)
        found = min(
            (self.alike(error, (stated,), size) for error, size in tried), key=lambda each: each.worth
        )
        return found if found.reach is None else replace(found, reach=self.step * found.reach)

    def grouped(self, statistics: Statistics, group: IntArray) -> Statistics:
        """Return the statistics of these samples with groups."""
        return counted(changed(self.data, groups=group))


def _refitted(stated: FloatArray, occurs: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return probabilities after the offset and slope of their log odds that fit best, where there are any."""
    mass = np.full(len(stated), 1 / len(stated)) if weight is None else weight / weight.sum()
    odds = special.logit(stated).clip(-CERTAIN, CERTAIN)
    found = fitted_odds(mass * occurs, mass, odds, slope=True)
    return stated if found is None else special.expit(found[0] + found[1] * odds)


def _ranks_within(values: FloatArray, label: IntArray) -> FloatArray:
    """Return the rank of each value among those of its label, between -.5 and .5: labels no longer differ."""
    order = np.lexsort((np.random.default_rng(0).permutation(len(values)), values, label))
    size = np.bincount(label)
    rank = np.empty(len(values))
    rank[order] = np.arange(len(values)) - np.repeat(np.cumsum(size) - size, size)
    return np.asarray((rank + 0.5) / size[label] - 0.5)


def _side(event: Event) -> tuple[bool, bool]:
    """Return whether it is the rate that is wrong, and whether it, or the slope, is too high."""
    return event.slope is None, event.stated > event.observed if event.slope is None else event.slope > 1


def are_dealt(label: IntArray) -> bool:
    """Return whether each so many rows have the same labels, as matched pairs do."""
    sizes = range(2, min(len(label) // DEALT, MOST_DEALT) + 1)
    sums = (label[: len(label) // size * size].reshape(-1, size).sum(axis=1) for size in sizes)
    return any(np.ptp(each) == 0 for each in sums)


def is_drawn(label: IntArray, outcome: IntArray) -> bool:
    """Return whether labels are drawn from an outcome: one tells the other."""
    _, size = np.unique(outcome, return_counts=True)
    tells = len(size) > 1 and (is_nested(label, outcome) or is_nested(outcome, label))
    # of few samples of each class, chance may put all together
    return tells and PER_CLASS * len(size) <= len(label)


def changed(data: Any, **own: Any) -> Any:
    """Return predictions with other attributes."""
    return object.__new__(type(data))._fill({**vars(data), **own})


def counted(data: Any) -> Statistics:
    """Return all statistics of predictions, whatever a report scores, and of their groups, if they have any."""
    layout = BINARY if data.form.n_classes == 2 else CLASSIFICATION
    return replace(build_statistics(layout, data, "exact"), groups=build_groups(layout, data))


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Samples whose halves are recalibrated by what is fitted to the other.

    Attributes
    ----------
    data : Predictions
        Some of the samples, as logarithms of probabilities.
    side : array of int, shape (n,)
        The half of each; groups stay whole.
    sets : list
        Names and places of the labels of each set.
    """

    data: Any
    side: IntArray
    sets: list[Labels]

    @classmethod
    def of(cls, samples: ClassSamples, group: IntArray | None) -> CrossFit | None:
        """Take some of the samples, evenly spread; None if they are too few."""
        form, labels = samples.data.form, samples.data.truth
        every = some_of(len(labels), MOST_CURED // form.n_classes)
        labels, logs = labels[every], form.logarithms((every,))
        group = None if group is None else np.unique(group[every], return_inverse=True)[1]
        side = halves_of(len(labels), group)
        if side is None:
            return None
        plain = Probabilities(values=logs[None], logits=True, classes=form.classes, event=form.event)
        weights = samples.data.weights
        own = {"weights": None if weights is None else weights[every], "counts": {"n": len(labels)}}
        sets = [(names, label[every]) for names, label in samples.sets]
        return cls(changed(samples.data, truth=labels, form=plain, groups=group, **own), side, sets)

    def recalibrated(self, method: type[ClassificationRecalibration]) -> Any:
        """Return the samples with the probabilities of a method; RecalibrationError if it cannot be fitted."""
        data, logs = self.data, self.data.form.values[0]
        made = np.empty_like(logs)
        for half in (self.side == 0, self.side == 1):
            rest = ~half
            if method is BiasTemperature and lacks_samples(data.truth[rest], logs.shape[1]):
                raise RecalibrationError(lacks_samples(data.truth[rest], logs.shape[1]))
            weights = None if data.weights is None else data.weights[rest]
            fitted = method.fit(data.truth[rest], logs[rest], weights=weights)
            made[half] = fitted.new_logarithms(logs[half])
        return data.with_form(replace(data.form, values=made[None]))

    def losses(self, data: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log loss, Brier score and error of each sample, or of each group, by weight.

        The mean of each is that of all samples.
        """
        rows, weights = data.rows(), data.weights
        weights = np.ones(len(self.side)) if weights is None else weights
        unit = np.arange(len(weights)) if data.groups is None else data.groups

        def of_units(loss: FloatArray) -> FloatArray:
            made = np.bincount(unit, weights * loss)
            return np.asarray(made * len(made) / weights.sum())

        return of_units(-rows["log_chosen"]), of_units(rows["brier"]), of_units(1 - rows["correct"])

    def score(self, data: Any, metric: Metric, settings: Settings) -> float:
        """Return a score of all samples, or the mean of those of both halves.

        Groups differ, and rates of classes that are each fitted to the other half are right in both together.
        """
        is_whole = data.groups is None and metric.key != "worst_class_gap"
        parts = [data] if is_whole else [data.part(self.side == half) for half in (0, 1)]
        plain = [counted(changed(part, groups=None)) for part in parts]
        found = [compute(each, settings, [metric])[0].get(metric.key, math.nan) for each in plain]
        return float(np.mean(found))
