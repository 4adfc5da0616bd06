"""Two classes: how often the event is stated and occurs, how its odds must be changed, and how well it is told apart.

The event is class 1 unless another is chosen. Its stated probability follows from the order by doubt: it is the doubt
of samples predicted to be the other class, and one minus the doubt of those predicted to be the event.

Cox (1958) regresses the event on the logit x of its stated probability, :math:`P = 1 / (1 + e^{-(a + b x)})`: a slope
b below 1 says that probabilities are too extreme, an offset a (with b = 1) below 0 that they are too high.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from uq_tracking.metrics import groups
from uq_tracking.metrics.registry import Undefined, intermediate, metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.classification import BINARY, BY_WEIGHT, PREDICTED, bin_of, sums_by_weight
from uq_tracking.statistics.exact import FEW, SortedRows
from uq_tracking.statistics.groups import GroupCells, GroupTables
from uq_tracking.statistics.orders import Block, Buckets, FloatArray, IntArray, Order, bucketed, run_starts
from uq_tracking.statistics.sketch import SKETCH_BITS, coarse_bucket
from uq_tracking.statistics.statistics import Statistics

LOGIT = math.log(1e7)
"""Largest absolute logit in regressions; probabilities themselves are not changed."""
STEPS = 60
"""Newton steps after which a regression has no maximum."""
SINGULAR = 1e13
"""Condition number from which on a regression has no single maximum."""
PAYLOADS = ("probability", "variance", "event")
DOUBT = ("count", "one_minus_confidence", "one_minus_confidence2", "correct")
"""Sums over all samples; `PREDICTED` are those over samples that are predicted to be the event."""
ROUNDING = 1e-9
"""A weight below this share of its bucket's is rounding."""


def two_classes(statistics: Any, settings: Settings | None = None) -> bool:
    """Return whether there are two classes, one of which is the event."""
    return bool(statistics.facts.get("n_classes") == 2)


def several_classes(statistics: Any, settings: Settings | None = None) -> bool:
    """Return whether there are more than two classes."""
    return not two_classes(statistics)


def require_event(statistics: Any) -> None:
    """Raise Undefined for statistics that do not hold the probability of an event."""
    if statistics.layout is BINARY:
        return
    if two_classes(statistics):
        raise Undefined("the statistics were stored by an older version, without the event; ece_top is known")
    raise Undefined("there are more than two classes, so none is the event")


@intermediate
def event_order(statistics: Any, *, top: bool = False) -> Order:
    """Order by the event's stated probability, ascending, with its variance p (1 - p) and whether it occurs.

    With ``top`` the event is that the top label is right, of any number of classes.
    """
    if not top:
        require_event(statistics)
    by_doubt = statistics.orders["one_minus_confidence"]
    if not isinstance(by_doubt, SortedRows):
        return _event_buckets(bucketed(by_doubt), top=top)
    doubt, correct = (by_doubt.columns[name] for name in ("one_minus_confidence", "correct"))
    stated = np.ones(len(doubt), dtype=bool) if top else by_doubt.columns["predicted"]
    probability = np.concatenate([doubt[~stated], 1 - doubt[stated][::-1]])
    event = np.concatenate([~correct[~stated], correct[stated][::-1]])
    return SortedRows("probability", {"probability": probability, "event": event})


def _either_class(sums: Mapping[str, Any], *, top: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the sums of buckets of doubt into those of either predicted class; the top label is always predicted."""
    count, doubt, square, correct = (sums[name] for name in (DOUBT if top else PREDICTED))
    chosen = (count, doubt, square, correct)
    others, doubts, squares, missed = (sums[name] - part for name, part in zip(DOUBT, chosen, strict=True))
    below = (others, doubts, squares, doubts - squares, others - missed)
    above = (count, count - doubt, count - 2 * doubt + square, doubt - square, correct)
    names = ("count", "probability", "probability2", "variance", "event")
    return dict(zip(names, below, strict=True)), dict(zip(names, above, strict=True))


def _event_buckets(held: Buckets, *, top: bool) -> Buckets:
    """Split every bucket of doubt into that of either predicted class."""
    below, above = _either_class({"count": held.count, **held.sums}, top=top)
    low = below["count"] > ROUNDING * held.count
    high = np.flatnonzero(above["count"] > ROUNDING * held.count)[::-1]

    def joined(one: FloatArray, other: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(np.concatenate([one[low], other[high]]), 0.0))

    sums = {name: joined(below[name], above[name]) for name in below}
    counts = sums.pop("count")
    return Buckets(
        "probability",
        joined(held.key, 1 - (held.key + held.width)),
        np.concatenate([held.width[low], held.width[high]]),
        counts if held.weighted else np.rint(counts).astype(np.int64),
        sums,
    )


@intermediate
def events_of_groups(tables: GroupTables, *, top: bool = False) -> GroupCells:
    """Sums of each group in every bucket of the event's probability, ascending; ``top`` as of `event_order`."""
    from scipy.sparse import hstack

    held = tables.orders["one_minus_confidence"]
    below, above = _either_class(held.sums, top=top)
    names = ("count", *PAYLOADS)
    sums = {name: hstack([below[name], above[name][:, ::-1]]).tocsr() for name in names}
    return GroupCells(np.arange(2 * len(held.bucket)), sums)


@dataclass(frozen=True)
class EventCells:
    """Samples of nearly equal stated probability, ascending.

    Attributes
    ----------
    count, probability, variance, event : array, shape (cells,)
        Number of samples, and sums of p, of p (1 - p) and of the events.
    """

    count: FloatArray
    probability: FloatArray
    variance: FloatArray
    event: FloatArray

    @property
    def logit(self) -> FloatArray:
        """Logit of the mean probability of each cell."""
        return logit(self.probability / self.count)

    def joined(self, first: IntArray) -> EventCells:
        """Return the sums of the runs of cells that begin at these places."""
        parts = (self.count, self.probability, self.variance, self.event)
        return EventCells(*(np.add.reduceat(part, first) for part in parts))

    def in_buckets(self, bits: int) -> EventCells:
        """Return the same samples in the buckets of ``doubt_bucket``."""
        return self.joined(run_starts(doubt_bucket(self.probability / self.count, bits)))


def doubt_bucket(p: FloatArray, bits: int) -> IntArray:
    """Return the number of the bucket of ``min(p, 1 - p)``, another one on either side of 1/2."""
    above = p > 0.5
    return np.asarray(2 * coarse_bucket(np.where(above, 1 - p, p), bits) + above)


def logit(p: FloatArray) -> FloatArray:
    """Return log odds, at most `LOGIT` in size."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(p) - np.log1p(-np.minimum(p, 1.0)), -LOGIT, LOGIT))


@intermediate
def event_cells(statistics: Any, *, top: bool = False) -> EventCells:
    """Cells of the event's probability: of few samples one for each value, else those of a sketch."""
    order = event_order(statistics, top=top)
    several = isinstance(order, SortedRows) and order.total > FEW

    def of_block(block: Block) -> EventCells:
        found = EventCells(block.count, *(block.sums[name] for name in PAYLOADS))
        return found.in_buckets(SKETCH_BITS) if several else found

    parts = order.map_blocks(of_block, PAYLOADS, "merged")
    columns = ("count", *PAYLOADS)
    made = EventCells(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))
    return made.in_buckets(SKETCH_BITS) if several else made  # a block may end within a bucket


def weight_of_events(sums: FloatArray) -> float:
    """How many times an event weighs what another sample of the same probability does; 1 if that may be chance.

    The ratio of Mantel and Haenszel (1959) over bins of the probability; ``sums`` are those of `sums_by_weight`.
    """
    weight, own, square, own_square = sums[:, sums[0] > 0]
    rest, rest_square = weight - own, square - own_square
    ratio = float(own_square @ (rest / weight)) / max(float(rest_square @ (own / weight)), 1e-300)
    if not 0 < ratio < 1e100:
        return 1.0
    chance = 2 * (float(own_square.sum() / own.sum() ** 2) + float(rest_square.sum() / rest.sum() ** 2))
    return math.exp(math.log(ratio) * max(0.0, 1 - 4 * chance / max(math.log(ratio) ** 2, 1e-300)))


def square_of(sums: FloatArray, probability: FloatArray, place: IntArray) -> FloatArray:
    """Variance of a weighted sum of events around each probability p in these bins, over that with weights of 1.

    Weights may go with the event. Calibrated are then the weighted events, so that, of samples that weigh w or r w,
    ``p / (p + (1 - p) r)`` are events.
    """
    weight, _, square, _ = sums
    ratio = weight_of_events(sums)
    mean = np.divide(square, weight, out=np.zeros_like(square), where=weight > 0)[place]
    p = probability
    return np.asarray(mean * ((1 - p) * ratio + p) / (ratio * p + 1 - p))


def square_of_top(sums: FloatArray, cells: EventCells) -> FloatArray:
    """Variance of the weighted number of right top labels, as it is in bins: weights may go with the class."""
    place, size = bin_of(cells.probability / cells.count), sums.shape[1]
    count, stated, variance = (
        np.bincount(place, column, size) for column in (cells.count, cells.probability, cells.variance)
    )
    _, _, square, own_square = sums
    p = stated / np.maximum(count, 1e-300)
    found = np.square(1 - p) * own_square + np.square(p) * (square - own_square)
    known = variance > 0
    return np.asarray(cells.variance * np.divide(found, variance, out=np.zeros(size), where=known)[place])


def weighted_cells(statistics: Any, *, top: bool = False) -> tuple[EventCells, FloatArray]:
    """Cells of the event's probability, and the variance of the weighted number of events in each."""
    known = groups.weighted_rows(statistics)
    if known is None:
        cells = event_cells(statistics, top=top)
        share, sums = groups.effective(statistics)[1], statistics.classes
        if sums is None or share == 1:
            return cells, cells.variance / share
        p, unit = cells.probability / cells.count, sums.total / statistics.n
        if top:
            return cells, square_of_top(sums.top, cells) / unit**2
        of_event = sums.bins[BY_WEIGHT, statistics.facts["event"]]
        return cells, cells.variance * square_of(of_event, p, bin_of(p)) / unit
    rows, weight = known
    doubt = rows["one_minus_confidence"].astype(np.float64)
    stated = np.ones(len(doubt), dtype=bool) if top else rows["predicted"].astype(bool)
    p = np.where(stated, 1 - doubt, doubt)
    order = np.lexsort((weight, rows["correct"], p))
    p, weight, event = p[order], weight[order], (rows["correct"] == stated)[order]
    first = run_starts(doubt_bucket(p, SKETCH_BITS)) if len(p) > FEW else run_starts(p)
    variance, of_bins = p * (1 - p), sums_by_weight(p, weight, event)
    cells = EventCells(
        *(np.add.reduceat(part, first) for part in (weight, weight * p, weight * variance, weight * event))
    )
    if top:
        return cells, square_of_top(of_bins, cells)
    ratio = weight_of_events(of_bins)
    square = np.square(np.where(event, weight / ratio, weight)) * ratio
    return cells, np.add.reduceat(square * variance * ((1 - p) * ratio + p) / (p + (1 - p) * ratio), first)


def fitted_odds(
    events: FloatArray, count: FloatArray, x: FloatArray, *, slope: bool
) -> tuple[float, float] | None:
    """Fit offset and slope of the log odds of events by maximum likelihood; the slope is 1 if it is not fitted.

    Returns None without a finite maximum: the events are separated, or all x are alike.
    """
    design = np.stack([np.ones(len(x)), x], axis=1) if slope else np.ones((len(x), 1))
    found, fixed = np.asarray([0.0, 1.0] if slope else [0.0]), 0.0 if slope else x
    for _ in range(STEPS):
        p = special.expit(design @ found + fixed)
        curvature = design.T @ (design * (count * p * (1 - p))[:, None])
        if not np.isfinite(curvature).all() or np.linalg.cond(curvature) > SINGULAR:
            return None
        step = np.linalg.solve(curvature, design.T @ (events - count * p))
        size = float(np.abs(step).max())
        found = found + step * min(1.0, 1.0 / max(size, 1e-300))
        if size < 1e-9:
            return float(found[0]), float(found[1]) if slope else 1.0
    return None


@intermediate
def cox(statistics: Any, *, slope: bool) -> tuple[float, float]:
    """Offset and slope of the event's log odds; Undefined if no finite ones fit best."""
    cells = event_cells(statistics)
    found = fitted_odds(cells.event, cells.count, cells.logit, slope=slope)
    if found is None:
        raise Undefined(
            "no finite odds fit best: the event always or never occurs, is separated by its probability, or that "
            "hardly varies"
        )
    return found


of_events = partial(metric, task="classification", when=two_classes)
"""Declares a score of the event of two classes."""
of_odds = partial(of_events, family="calibration")
"""Declares one of how often the event is stated and occurs."""
of_ranks = partial(of_events, family="accuracy", direction="higher", bounds=(0.0, 1.0))
"""Declares one of how well the event is told apart."""


@of_odds(
    direction=None,
    formula="mean 1[y = event]",
    bounds=(0.0, 1.0),
    share=True,
)
def event_rate(statistics: Statistics, settings: Settings) -> float:
    """Share of samples in which the event occurs.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("event_rate", "classification")
    0.333333
    """
    return event_order(statistics).sum("event") / statistics.n


@of_odds(
    direction=None,
    formula="mean p",
    bounds=(0.0, 1.0),
)
def stated_rate(statistics: Statistics, settings: Settings) -> float:
    """Mean stated probability of the event.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("stated_rate", "classification")
    0.354167
    """
    return event_order(statistics).sum("probability") / statistics.n


@of_odds(
    direction=1.0,
    formula="mean p / mean 1[y = event]",
    source="Steyerberg 2010 (expected over observed)",
    bounds=(0.0, math.inf),
    headline=True,
    glance=">1 states too many",
)
def event_ratio(statistics: Statistics, settings: Settings) -> float:
    """Number of events stated over the number that occur.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("event_ratio", "classification")
    1.0625
    """
    occurring = event_order(statistics).sum("event")
    if occurring <= 0:
        raise Undefined("the event does not occur")
    return event_order(statistics).sum("probability") / occurring


@of_odds(
    direction=1.0,
    formula="b of logit P(event) = a + b logit p, by maximum likelihood",
    source="Cox 1958; Van Calster 2016",
    headline=True,
    glance="<1 is too extreme",
)
def cal_slope(statistics: Statistics, settings: Settings) -> float:
    """Calibration slope of the event.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("cal_slope", "classification")
    2.98817
    """
    return cox(statistics, slope=True)[1]


@of_odds(
    direction=0.0,
    formula="a of logit P(event) = a + logit p, by maximum likelihood",
    source="Cox 1958; Van Calster 2016",
    glance="<0 is too high",
)
def cal_offset(statistics: Statistics, settings: Settings) -> float:
    """Calibration in the large of the event: what must be added to its log odds.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("cal_offset", "classification")
    -0.138771
    """
    return cox(statistics, slope=False)[0]


@of_ranks(
    formula="P(p of an event > p of a non-event) + P(equal) / 2",
    source="Hanley and McNeil 1982",
    headline=True,
)
def auroc(statistics: Statistics, settings: Settings) -> float:
    """Area under the receiver operating characteristic of the event.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("auroc", "classification")
    0.96875
    """
    return area_under_roc(event_order(statistics), "event", "the event always or never occurs")


def area_under_roc(order: Order, payload: str, reason: str) -> float:
    """Probability that a sample that counts comes later in an order than one that does not; ties half."""
    total, n = order.sum(payload), float(order.total)
    if not 0 < total < n:
        raise Undefined(reason)
    seen = wins = 0.0
    for block in order.blocks((payload,)):
        hits = block.sums[payload]
        misses = block.count - hits
        wins += float(np.dot(hits, seen + np.cumsum(misses) - misses / 2))
        seen += float(misses.sum())
    return wins / (total * (n - total))


@of_ranks(
    formula="sum over thresholds of (recall - next recall) precision",
    source="Manning 2008, as in scikit-learn",
)
def average_precision(statistics: Statistics, settings: Settings) -> float:
    """Mean precision of the event over its recall.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("average_precision", "classification")
    0.95
    """
    order = event_order(statistics)
    total, n = order.sum("event"), float(order.total)
    if total <= 0:
        raise Undefined("the event does not occur")
    seen = mean = 0.0
    for block in order.blocks(("event",)):
        hits = block.sums["event"]
        below = seen + np.cumsum(hits) - hits
        mean += float(np.dot(hits, (total - below) / (n - (block.ends - block.count))))
        seen += float(hits.sum())
    return mean / total
