r"""Tests of the probability of an event: its level, given that its slope, and given both its shape.

Each statement is given the earlier fits (Cox 1958; Miller et al. 1991): without that, a pure shift of all odds looks
like probabilities that are not extreme enough. Each of the three is tested at :math:`1 - .95^{1/3}`.

* **Level**: the number of events against the binomial with the mean and variance of a sum of Bernoulli variables (Ehm
  1991), on the side, events or not, that is expected to be rarer. It is exact for equal probabilities and few events.
* **Slope**: the score of the slope, with the fitted offset.
* **Shape**: gaps of bins of about equal count from the Cox fit, without the directions of offset and slope, whose
  squares are chi-square.

With groups, the same sums vary as the groups show. Bins are unions of buckets that every form of the statistics has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from uq_tracking.inference.limits import FEWEST_CARRYING, FEWEST_ERRORS, Influence, Range, share_limits
from uq_tracking.metrics import groups
from uq_tracking.metrics.events import (
    EventCells,
    doubt_bucket,
    event_cells,
    event_order,
    events_of_groups,
    fitted_odds,
    weighted_cells,
)
from uq_tracking.metrics.gaps import multivariate_t
from uq_tracking.metrics.groups import size_freedom
from uq_tracking.statistics.groups import GROUP_BITS
from uq_tracking.statistics.orders import FloatArray, IntArray, run_starts

LEVEL_OF_EACH = 1 - 0.95 ** (1 / 3)
"""Level of each of the three tests (Sidak)."""
FEWEST_INFORMATIVE = 5.0
"""Sum of p (1 - p) below which slope and shape are not tested."""
LEAST_STEP, ON_GRID = 1e-3, 10
"""Least step of the grid of probabilities that are rounded, and fewest of its values that they take."""
LEAST_SPREAD = 0.02
"""Standard deviation of the logit below which probabilities hardly vary."""
SLIGHT_GAP, SLIGHT_RATIO, SLIGHT_SLOPE = 0.01, 1.05, (0.95, 1.05)
"""Errors of level and slope below these are slight."""
UNKNOWN = 1.5
"""A factor on the rarer rate that data must exclude, or they are too few to tell."""
BINS, FEWEST_BINS, PER_BIN = 10, 4, 5.0


def is_slight_level(stated: float, rate: float) -> bool:
    """Return whether a rate differs from the stated one by too little to matter."""
    return abs(stated - rate) < SLIGHT_GAP and stated < SLIGHT_RATIO * rate and rate < SLIGHT_RATIO * stated


@dataclass(frozen=True)
class Event:
    """What is stated of the event, and what occurs.

    Attributes
    ----------
    stated, observed : float
        Mean probability, and share of samples in which the event occurs.
    low, high : float
        98.3 % limits of the share, given the data.
    slope : float or None
        Calibration slope; below 1, probabilities are too extreme.
    slope_low, slope_high : float or None
        Its 98.3 % limits.
    offset : float or None
        What must be added to the log odds, if the slope is 1.
    """

    stated: float
    observed: float
    low: float
    high: float
    slope: float | None = None
    slope_low: float | None = None
    slope_high: float | None = None
    offset: float | None = None

    @property
    def ratio(self) -> float:
        """Events stated over those that occur; infinite if none do."""
        return self.stated / self.observed if self.observed > 0 else math.inf

    @property
    def distance(self) -> float:
        """Log of the ratio, without its sign."""
        return abs(math.log(self.ratio)) if 0 < self.ratio < math.inf else math.inf

    @property
    def limits_agree(self) -> bool:
        """Return whether the limits exclude what is stated."""
        return not self.low <= self.stated <= self.high

    @property
    def _rarer(self) -> tuple[float, float, float, float]:
        """Stated and observed rate and limits of the event, or of its opposite where that is stated more rarely."""
        rates = self.stated, self.observed, self.low, self.high
        return rates if self.stated <= 0.5 else (1 - rates[0], 1 - rates[1], 1 - rates[3], 1 - rates[2])

    @property
    def is_level_slight(self) -> bool:
        """Return whether the level is off by too little to matter."""
        stated, observed, *_ = self._rarer
        return is_slight_level(stated, observed)

    @property
    def is_slope_slight(self) -> bool:
        """Return whether the slope is off by too little to matter."""
        return self.slope is not None and SLIGHT_SLOPE[0] < self.slope < SLIGHT_SLOPE[1]

    @property
    def is_off(self) -> bool:
        """Return whether limits exclude what is stated, or a slope of 1, and the difference matters."""
        if self.slope_low is None or self.slope_high is None:
            return self.limits_agree and not self.is_level_slight
        return not self.slope_low <= 1 <= self.slope_high and not self.is_slope_slight

    @property
    def sorts(self) -> str | None:
        """Say that probabilities do not sort the outcomes; None if they do, however badly."""
        if self.slope is None or self.slope_high is None or self.slope > 0:
            return None
        return "reversed" if self.slope_high < 0 else "unrelated to the event"

    @property
    def surely_sorts(self) -> bool:
        """Return whether no slope of 0 or below is possible, as far as slopes are known."""
        return self.slope_low is None or self.slope_low > 0

    @property
    def is_proven(self) -> bool:
        """Return whether the limits leave only slight errors of level and slope."""
        if self.slope_low is None or self.slope_high is None:
            return False
        stated, _, low, high = self._rarer
        is_slight = all(is_slight_level(stated, end) for end in (low, high))
        return is_slight and SLIGHT_SLOPE[0] < self.slope_low <= self.slope_high < SLIGHT_SLOPE[1]

    @property
    def is_unknown(self) -> bool:
        """Return whether the rarer of events and others may be half as many again, or as few."""
        stated, _, low, high = self._rarer
        return high > UNKNOWN * stated or low * UNKNOWN < stated


@dataclass(frozen=True)
class Tested:
    """Outcomes of the tests of an event.

    Attributes
    ----------
    level, slope : float or None
        Standardized deviations, above 0 for more events than stated and for timid probabilities; None if not tested.
    shape_p : float or None
    refused : str
        Why slope and shape are not tested; empty if they are.
    strength : dict of float
        By test that rejects ("level", "slope", "shape"): log of p over the level of each.
    """

    level: float
    slope: float | None
    shape_p: float | None
    refused: str
    strength: Mapping[str, float]


def level_p(events: float, expected: float, variance: float, n: float) -> float:
    """Two-sided p-value of a number of events.

    >>> round(level_p(2, 10 * 0.5, 10 * 0.25, 10), 4)  # twice the binomial P(X <= 2)
    0.1094
    """
    if expected > n - expected:
        events, expected = n - events, n - expected
    if expected <= 0:
        return 1.0 if events <= 0 else 0.0
    share = min(max((expected - variance) / expected, 1e-12), 1 - 1e-12)
    trials = expected / share
    if events > trials - 1 and events >= expected + 1:
        # Hardly possible: Hoeffding's (1956) bound, of equal ones.
        trials, share = n, expected / n
    low = special.betainc(max(trials - events, 1e-9), events + 1, 1 - share) if events < trials else 1.0
    high = special.betainc(events, max(trials - events + 1, 1e-9), share) if events > 0 else 1.0
    return float(min(1.0, 2 * min(low, high)))


def log_of_p(p: float, z: float) -> float:
    """Log of a p-value; of one too small to be represented, that of its normal deviate."""
    return math.log(p) if p > 1e-300 else float(special.log_ndtr(-max(abs(z), 37.0))) + math.log(2)


def p_of_sums(by_group: FloatArray, freedom: float) -> tuple[float, float]:
    """Standardized sum of what groups contribute, and its p-value; ``freedom`` is what the group sizes allow."""
    total = float(by_group.sum())
    influence = Influence.of(by_group, None, freedom)
    return influence.tested(total) if influence.square else (0.0, float(total == 0))


def bins_of(cells: EventCells, share: float, bins: float = BINS) -> IntArray:
    """Bin of each cell: about equal counts, joined until each expects five events and five others.

    ``share`` is the effective number of samples over their count; with infinitely many ``bins``, counts may differ.
    """
    first = run_starts(doubt_bucket(cells.probability / cells.count, GROUP_BITS))
    joined = cells.joined(first)
    total, label = float(joined.count.sum()), np.empty(len(first), dtype=np.int64)
    k, count, events, others = 0, 0.0, 0.0, 0.0
    for i, (size, stated) in enumerate(zip(joined.count.tolist(), joined.probability.tolist(), strict=True)):
        label[i] = k
        count, events, others = count + size, events + stated, others + size - stated
        if count >= total / bins * (1 - 1e-9) and min(events, others) * share >= PER_BIN:
            k, count, events, others = k + 1, 0.0, 0.0, 0.0
    if count > 0 and k > 0 and (min(events, others) * share < PER_BIN or count < total / bins / 2):
        label[label == k] = k - 1
    return np.repeat(label, np.diff(np.append(first, len(cells.count))))


@dataclass(frozen=True, eq=False)
class EventTests:
    """Sums over cells from which level, slope and shape are tested.

    Attributes
    ----------
    cells : EventCells
    square : array, shape (cells,)
        Variance of each cell's number of events.
    by_group : tuple of arrays, shape (groups, cells), or None
        Counts, sums of probability, and events of each group.
    freedom : float
        Degrees of freedom that the group sizes allow.
    share : float
        Effective number of samples over their count.
    each : float
        Level of each test.
    bins : float
        Number of bins of equal count that the shape is tested with; infinite for cells that are few bins already.
    """

    cells: EventCells
    square: FloatArray
    by_group: tuple[FloatArray, ...] | None
    freedom: float
    share: float
    each: float = LEVEL_OF_EACH
    bins: float = BINS

    @classmethod
    def of(cls, statistics: Any, each: float = LEVEL_OF_EACH, *, top: bool = False) -> EventTests:
        """Return the sums of statistics, by group if they have groups; ``top`` as of `event_order`."""
        share = groups.effective(statistics)[1]
        if groups.count(statistics) is None:
            cells, square = weighted_cells(statistics, top=top)
            return cls(cells, square, None, math.inf, share, each)
        tables = statistics.groups
        held = events_of_groups(tables, top=top)
        names = ("count", "probability", "event")
        by_group = [np.asarray(held.sums[name].toarray(), dtype=np.float64) / tables.unit for name in names]
        variance = groups.column_sums(held, "variance") / tables.unit
        sums = [part.sum(axis=0) for part in by_group]
        there = sums[0] > 1e-12 * sums[0].sum()
        cells = EventCells(sums[0][there], sums[1][there], np.maximum(variance[there], 0.0), sums[2][there])
        known = tuple(part[:, there] for part in by_group)
        return cls(cells, cells.variance / share, known, groups.freedom(statistics), share, each)

    def in_doubt(self) -> EventTests:
        """Return the tests of samples that are stated neither at 0 nor at 1."""
        there = (self.cells.probability > 0) & (self.cells.probability < self.cells.count)
        cells = EventCells(*(each[there] for each in vars(self.cells).values()))
        by_group = None if self.by_group is None else tuple(each[:, there] for each in self.by_group)
        return replace(self, cells=cells, square=self.square[there], by_group=by_group)

    @property
    def n(self) -> float:
        """Count of all samples."""
        return float(self.cells.count.sum())

    def units(self) -> float:
        """Effective samples per unit of count, where their outcome is open; with groups, groups per unit."""
        if self.by_group is not None:
            return (self.freedom + 1) / self.n
        square = float(self.square.sum())
        return float(self.cells.variance.sum()) / square if square > 0 else self.share

    @property
    def few(self) -> bool:
        """Return whether groups show too few events, or others, to tell how these vary."""
        if self.by_group is None:
            return False
        count, _, events = self.by_group
        rare = min(events.sum(axis=1), (count - events).sum(axis=1), key=np.sum)
        samples = float(rare.sum()) * self.share
        return samples < FEWEST_ERRORS or size_freedom(rare) + 1 < FEWEST_CARRYING

    def limits(self) -> Range:
        """Limits of the share of events."""
        events = float(self.cells.event.sum())
        if self.by_group is None or self.few:
            units = self.units()
            return share_limits(events * units, self.n * units, 1 - self.each)
        count, _, own = self.by_group
        rate = events / self.n
        influence = Influence.of((own - rate * count).sum(axis=1) / self.n, None, self.freedom)
        low, high = influence.limits(rate, 1 - self.each, cautious=True)
        return max(low, 0.0), min(high, 1.0)

    def event(self, fit: tuple[float, float] | None = None) -> Event:
        """Return how often the event is stated and occurs, with the slope of a fit."""
        stated, observed = (float(part.sum()) / self.n for part in (self.cells.probability, self.cells.event))
        event = Event(stated, observed, *self.limits())
        if fit is None:
            return event
        low, high = self.slope_limits(fit)
        return replace(event, slope=fit[1], slope_low=low, slope_high=high)

    def _standardized(
        self, total: float, variance: float, by_group: FloatArray | None
    ) -> tuple[float, float]:
        """Standardized sum, and its p-value; groups show its variance."""
        if by_group is not None:
            return p_of_sums(by_group, self.freedom)
        z = total / math.sqrt(max(variance, 1e-300))
        return z, float(2 * special.ndtr(-abs(z)))

    def level(self) -> tuple[float, float]:
        """Return the standardized number of events beyond those stated, and its p-value."""
        cells, units = self.cells, self.units()
        excess = float((cells.event - cells.probability).sum())
        sums = None if self.by_group is None else (self.by_group[2] - self.by_group[1]).sum(axis=1)
        z, p = self._standardized(excess, float(self.square.sum()), sums)
        if self.by_group is None or self.few:
            events, stated, variance = (
                float(part.sum()) * units for part in (cells.event, cells.probability, cells.variance)
            )
            p = level_p(events, stated, variance, self.n * units)
        return z, p

    @property
    def _informative(self) -> float:
        """Effective number of samples whose outcome is open."""
        return float(self.cells.variance.sum()) * (self.units() if self.by_group is None else self.share)

    def refusal(self) -> str:
        """Say why slope and shape are not tested, or ""."""
        x, v = self.cells.logit, self.cells.variance
        if self._informative < FEWEST_INFORMATIVE:
            return (
                "samples are too few, or probabilities too close to 0 and 1 "
                f"({self._informative:.1f} uncertain outcomes; at least {FEWEST_INFORMATIVE:.0f} are needed)"
            )
        if self.few:
            return "too few events, or others, or in too few groups"
        mean = float(v @ x) / float(v.sum())
        if math.sqrt(float(v @ np.square(x - mean)) / float(v.sum())) < LEAST_SPREAD:
            return "probabilities hardly vary"
        return ""

    def fitted(self, *, slope: bool) -> tuple[float, float] | None:
        """Offset and slope of the log odds; None where there is no fit, or it tells too little."""
        if self.refusal():
            return None
        return fitted_odds(self.cells.event, self.cells.count, self.cells.logit, slope=slope)

    def _odds(self, fit: tuple[float, float]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Fitted probability of each cell, weight p (1 - p) of its samples, and variance of its events."""
        q, mean = special.expit(fit[0] + fit[1] * self.cells.logit), self.cells.probability / self.cells.count
        weight, alike = self.cells.count * q * (1 - q), self.cells.count * mean * (1 - mean)
        # Less than 1 where probabilities differ within a cell.
        ratio = self.square / np.maximum(alike, 1e-300)
        return q, weight, weight * np.where(self.cells.variance > 0, ratio, 1.0)

    def slope(self, fit: tuple[float, float]) -> tuple[float, float]:
        """Return the standardized score of the slope, given the fitted offset, and its p-value."""
        q, weight, square = self._odds(fit)
        x = self.cells.logit - float(weight @ self.cells.logit) / float(weight.sum())
        total = float((self.cells.event - q * self.cells.count) @ x)
        sums = None if self.by_group is None else (self.by_group[2] - q * self.by_group[0]) @ x
        return self._standardized(total, float(square @ np.square(x)), sums)

    def slope_limits(self, fit: tuple[float, float]) -> Range:
        """Wald limits of the slope, with the sandwich covariance of weights or groups."""
        q, weight, square = self._odds(fit)
        design = np.stack([np.ones(len(q)), self.cells.logit], axis=1)
        inverse = np.linalg.inv(design.T @ (design * weight[:, None]))
        if self.by_group is None:
            meat, reach = design.T @ (design * square[:, None]), float(special.ndtri(1 - self.each / 2))
        else:
            sums = (self.by_group[2] - q * self.by_group[0]) @ design
            count = len(sums)
            meat = sums.T @ sums * (count / (count - 1))
            reach = float(special.stdtrit(max(1.0, min(count - 1.0, self.freedom)), 1 - self.each / 2))
        error = math.sqrt(float((inverse @ meat @ inverse)[1, 1]))
        return fit[1] - reach * error, fit[1] + reach * error

    def shape_p(self, fit: tuple[float, float]) -> float | None:
        """p-value of the shape, given the fitted offset and slope; None with too few bins."""
        label = bins_of(self.cells, self.share, self.bins)
        size = int(label.max()) + 1
        if size < FEWEST_BINS:
            return None
        q, weight, square = self._odds(fit)
        informative = np.bincount(label, weight, size)
        x = np.bincount(label, weight * self.cells.logit, size) / informative
        spread = informative if self.by_group is not None else np.bincount(label, square, size)
        design = np.stack([np.ones(size), x], axis=1) * (informative / np.sqrt(spread))[:, None]
        basis, corner = np.linalg.qr(design)
        basis = basis[:, np.abs(np.diag(corner)) > 1e-9 * np.abs(corner).max()]

        def rest(gaps: FloatArray) -> FloatArray:
            scaled = gaps / np.sqrt(spread)
            return np.asarray(scaled - (scaled @ basis) @ basis.T)

        gap = np.asarray(np.bincount(label, self.cells.event - q * self.cells.count, size), dtype=np.float64)
        found = float(np.square(rest(gap)).sum())
        if self.by_group is None:
            return float(special.gammaincc((size - basis.shape[1]) / 2, found / 2))
        own: FloatArray = (self.by_group[2] - q * self.by_group[0]) @ np.eye(size)[label]
        count = len(own)
        moves = rest(own - own.mean(axis=0)) * math.sqrt(count / (count - 1))
        drawn = np.square(multivariate_t(moves, self.freedom)).sum(axis=1)
        return float((1 + np.count_nonzero(drawn >= found)) / (1 + len(drawn)))

    def tested(self) -> tuple[Tested, Event]:
        """Run the tests in their order."""
        z, p = self.level()
        offset = self.fitted(slope=False)
        both = None if offset is None else self.fitted(slope=True)
        slope, slope_p = (None, None) if offset is None else self.slope(offset)
        shape = None if both is None else self.shape_p(both)
        event = replace(self.event(both), offset=None if offset is None else offset[0])
        found = {"level": (p, z), "slope": (slope_p, slope), "shape": (shape, 0.0)}
        strength = {
            name: log_of_p(p, of or 0.0) - math.log(self.each)
            for name, (p, of) in found.items()
            if p is not None and p <= self.each
        }
        return Tested(z, slope, shape, self.refusal(), strength), event

    def too_many_errors(self) -> tuple[float, float] | None:
        """Return rates of errors implied and made, where more are made than near-certain probabilities imply.

        Overconfidence itself makes probabilities uninformative, so this comes before the other tests are refused.
        """
        if self._informative >= FEWEST_INFORMATIVE:
            return None
        cells, units = self.cells, self.units()
        p = cells.probability / cells.count
        doubt = np.minimum(cells.probability, cells.count - cells.probability)
        wrong = np.where(p > 0.5, cells.count - cells.event, cells.event)
        errors, implied, variance = (float(part.sum()) * units for part in (wrong, doubt, cells.variance))
        n = self.n * units
        rejects = errors > implied > 0 and level_p(errors, implied, variance, n) <= self.each
        return (implied / n, errors / n) if rejects else None


def step_of(statistics: Any) -> float:
    """Return the step of the grid that the event's probabilities are rounded to; 0 if there is none."""
    cells = event_cells(statistics)
    stated = np.unique(np.round(cells.probability / cells.count, 6))
    steps = np.diff(stated)
    parts = round(1 / steps.min(where=steps > LEAST_STEP, initial=1.0))
    on_grid = np.abs(stated * parts - np.round(stated * parts)).max() < 0.01
    return 1 / parts if on_grid and ON_GRID <= len(stated) < cells.count.sum() / 2 else 0.0


def impossible_events(statistics: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """Events that occurred although 0 was stated, and that did not although 1 was, each with how often it was."""
    order = event_order(statistics)
    zeros, below_one = order.position([0.0], side="right")[0], order.position([1.0], side="left")[0]
    none, upto = order.cumulative("event", (zeros, below_one))
    ones = order.total - below_one
    return (float(none), float(zeros)), (float(ones - (order.sum("event") - upto)), float(ones))
