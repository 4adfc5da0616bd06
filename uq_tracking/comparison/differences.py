"""Differences between methods, with intervals: which methods the data can distinguish.

The first of these that the runs allow is used:

* **paired groups**: the reports hold scores without sets of the same groups (images, scenes) of the same data; sets
  are left out for both together, so what is hard for both cancels.
* **paired blocks**: the runs stored sums of losses over the same blocks of consecutive samples, and no groups were
  given. The variance of the difference is that of its slow movements along the blocks, so that dependence between
  neighbors is allowed for. Only for scores that are functions of mean losses.
* **paired folds**: runs of both methods on the same three or more sets of targets. Student's interval of the
  differences on each.
* **over runs**: both methods have two or more runs. Welch's interval of the difference of means; it is about the
  methods on this test set.
* **from the intervals**: single runs whose reports hold confidence intervals, combined as if they were
  independent (MOVER: Zou and Donner 2008, Statistics in Medicine 27, 1693). Methods scored on the same data tend to
  err together, so this is wider than a paired interval.

Paired groups and blocks say how a difference varies with the samples. Where a method has several runs, the variance
of the mean over runs is added: otherwise three seeds that hardly differ would make a difference on thirty samples
certain, and two that differ much would not count.

Each interval is for one difference; those of skills hold jointly. Ties with the best are decided for all pairs
jointly: each pair is at the level of all divided by their number (Dunn 1961, Journal of the American Statistical
Association 56, 52).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, combinations, product
from statistics import fmean, stdev, variance
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.comparison.runs import ScoredRun, by_value, is_alike, losses_of, mean_losses, set_of
from uq_tracking.formatting import format_interval, format_number, format_percent, listed, one_line, shortened
from uq_tracking.inference.intervals import LeftOut
from uq_tracking.inference.limits import Range
from uq_tracking.inference.paired import (
    FEWEST_SAMPLES,
    MANY_SAMPLES,
    Paired,
    block_moves,
    limits_by_blocks,
    limits_by_groups,
    relative_change,
)
from uq_tracking.inference.words import OF_FITTED
from uq_tracking.metrics.registry import INFINITE, Metric, Undefined
from uq_tracking.report import same_targets
from uq_tracking.statistics.blocks import Blocks
from uq_tracking.statistics.orders import FloatArray
from uq_tracking.tables import unit_text

How = Literal["paired groups", "paired blocks", "paired folds", "over runs", "from the intervals", "none"]
Verdict = Literal["better", "worse", "indistinguishable", "unknown"]

MANY_RUNS = 3
"""Runs from which on a method's own spread is added to that of samples, and folds that are paired."""
LONE = 4.0
"""Times the variance over runs where one method has a single run: losses of runs are skewed, as a bad one is worse
than others are good, and with twice the reach equal methods are told apart in 5 % also where these are squares."""
ROUNDING = 1e-12
"""Differences up to this share of the losses are rounding: they count as 0."""
OF_FEW = {"tiny std", "corrupt target", "filled prediction", "unit of some"}
"""Suspicions about few samples."""
DRAWS = 50_000
"""Number of simulated differences."""
SKILLS = {"crps": "crps_skill", "brier": "brier_skill"}
"""Share by which a method lowers the baseline's loss, by the key of the loss."""
OFTEN = 3
"""Times that hashes of two test sets are as often equal as those of one, from which on the sets overlap."""
CHANGES = 2.0
"""A difference changes along the rows if its interval is this many times as wide as for independent rows: not by
chance, and not where neighbors are correlated by up to .9."""
MOSTLY = 0.8
"""A difference is found mostly if it is in this share of cases."""


@dataclass(frozen=True)
class Difference:
    """One metric of a method minus that of a reference.

    Attributes
    ----------
    method, reference, metric : str
    value : float
        Difference of the means over runs; for a metric with a target value, difference of the distances to it.
    interval : (float, float) or None
        Confidence interval; None if the runs allow none.
    how : str
        How the interval was obtained.
    verdict : {"better", "worse", "indistinguishable", "unknown"}
        What the interval says about the method; "unknown" without one.
    effect : float or None
        Cohen's d: ``value`` over the standard deviation of the groups' differences, or over the root of the mean
        variance of the two methods' runs; None if neither is known, or it is 0.
    relative : float or None
        ``value`` relative to the reference's mean; None if the metric has no natural zero.
    """

    method: str
    reference: str
    metric: str
    value: float
    interval: Range | None
    how: How
    verdict: Verdict
    effect: float | None = None
    relative: float | None = None


class Known(NamedTuple):
    """What tells how far one loss of a method is from that of another."""

    values: list[float]
    """One for each run that has the score."""
    without: FloatArray | None
    """Mean losses without each set of groups, shifted to match the exact scores; None if a run lacks them."""
    moves: FloatArray | None
    """Contributions of blocks to the mean loss; None if a run lacks them."""
    hidden: bool
    """True if no run has the errors that show how the score varies between groups."""

    @property
    def mean(self) -> float:
        """Mean over the runs; not finite if there is none."""
        return fmean(self.values) if self.values else math.nan


@dataclass(frozen=True, eq=False)
class Pairs:
    """Differences between any two of the methods; of one with several runs, of the mean of their losses."""

    groups: Mapping[str, Sequence[ScoredRun]]
    left: Mapping[str, LeftOut]
    """Scores without each of the same sets of groups, by the label of each run whose report holds them."""
    blocks: Mapping[str, Blocks]
    """Sums of losses over the same blocks of samples, by the label of each run that stored them."""
    level: float
    data: Mapping[str, int] = field(default_factory=dict)
    """Number of the targets that a run was scored on, by its label; empty if they are not known for all."""
    _known: dict[tuple[str, str], Known] = field(default_factory=dict, init=False, repr=False)

    def difference(self, name: str, reference: str, metric: Metric, pairs: int = 1) -> Difference | None:
        """Return the difference in one metric; None if either has no value, or an infinite one.

        With several ``pairs``, intervals of that many hold jointly.
        """
        means = self.known(name, metric).mean, self.known(reference, metric).mean
        if not all(map(math.isfinite, means)):
            return None
        value = means[0] - means[1]
        interval, how, effect = self._interval(name, reference, metric, 1 - (1 - self.level) / pairs)
        if max(map(abs, (value, *(interval or ())))) <= ROUNDING * max(map(abs, means)):
            value, interval = 0.0, None if interval is None else (0.0, 0.0)
            effect = None if effect is None else 0.0
        verdict = _verdict(interval)
        if metric.direction == "higher":
            value, interval = -value, None if interval is None else (-interval[1], -interval[0])
            effect = None if effect is None else -effect
        relative = relative_change(metric, *means)
        return Difference(name, reference, metric.key, value, interval, how, verdict, effect, relative)

    def against(self, baseline: str, metrics: Sequence[Metric]) -> tuple[Difference, ...]:
        """Return the differences of every other method to the baseline."""
        others = [name for name in self.groups if name != baseline]
        found = [self.difference(name, baseline, metric) for name in others for metric in metrics]
        losses = [metric for metric in metrics if metric.key in SKILLS]
        found += [self.skill(name, baseline, metric) for name in others for metric in losses]
        return tuple(item for item in found if item is not None)

    def is_worse(self, name: str, reference: str, metric: Metric, pairs: int) -> bool:
        """Return whether a method is worse by more than chance, of so many pairs, or infinitely so."""
        found = self.difference(name, reference, metric, pairs)
        mine, theirs = self.known(name, metric).mean, self.known(reference, metric).mean
        return mine == math.inf > theirs if found is None else found.verdict == "worse"

    def skill(self, name: str, baseline: str, metric: Metric) -> Difference | None:
        """Return by which share a method lowers a loss of the baseline; None if either has no value.

        With the share held, the interval is that of the loss less this share of the baseline's. Those of all methods
        hold jointly, since the best of them are looked at.
        """
        mine, loss = self.known(name, metric).mean, self.known(baseline, metric).mean
        if not (math.isfinite(mine) and math.isfinite(loss) and loss > 0):
            return None
        level = 1 - (1 - self.level) / (len(self.groups) - 1)
        limits, how, _ = self._interval(name, baseline, metric, level, mine / loss)
        value = 1 - mine / loss
        interval = None if limits is None else (value - limits[1] / loss, value - limits[0] / loss)
        verdict = _verdict(limits, value * loss)
        return Difference(name, baseline, SKILLS[metric.key], value, interval, how, verdict)

    def ties(self, metric: Metric) -> list[Difference]:
        """Return differences of all methods to the best one, with verdicts that hold for all pairs jointly."""
        losses = mean_losses(self.groups, metric)
        known = {name: loss for name, loss in losses.items() if math.isfinite(loss)}
        if len(known) < 2:
            return []
        best, pairs = min(known, key=known.__getitem__), math.comb(len(known), 2)
        found = (self.difference(name, best, metric, pairs) for name in known if name != best)
        return [item for item in found if item is not None]

    def tells(self, metric: Metric) -> bool:
        """Return whether any two methods are compared."""
        found = (self.difference(*pair, metric) for pair in combinations(self.groups, 2))
        return any(each is not None and each.verdict != "unknown" for each in found)

    def known(self, name: str, metric: Metric) -> Known:
        """Return what tells how far a loss of a method is from others, computed once."""
        if (name, metric.key) not in self._known:
            runs = self.groups[name]

            def left_out(label: str, score: float) -> FloatArray:
                moved = self.left[label].estimates(metric.key, score)
                return np.asarray([metric.loss(value) for value in moved.tolist()])

            def of_blocks(label: str, score: float) -> FloatArray:
                return block_moves(metric, self.blocks[label], score)

            without, moves = self._over_runs(runs, metric, left_out), self._over_runs(runs, metric, of_blocks)
            hidden = all(run.label in self.left and self.left[run.label].hidden(metric) for run in runs)
            self._known[name, metric.key] = Known(losses_of(runs, metric), without, moves, hidden)
        return self._known[name, metric.key]

    def _interval(
        self, name: str, reference: str, metric: Metric, level: float, times: float = 1.0
    ) -> tuple[Range | None, How, float | None]:
        """Return the interval of the difference of mean losses, how it was made, and the size of the effect.

        ``times`` multiplies the losses of the reference.
        """
        one, other = self.groups[name], self.groups[reference]
        if not is_alike(one, other, self.data) or self.untold((*one, *other)):
            return None, "none", None
        first, second = self.known(name, metric), self.known(reference, metric)
        mine, theirs = first.values, [times * loss for loss in second.values]
        value = fmean(mine) - fmean(theirs)
        found: Paired | None = None
        how: How = "none"
        same = len({self.data.get(run.label) for run in (*one, *other)}) == 1
        effect = cohens_d(mine, theirs) if min(len(mine), len(theirs)) > 1 else None
        shown = same and not (first.hidden and second.hidden)
        if shown and first.without is not None and second.without is not None:
            left = [self.left[run.label] for run in (*one, *other)]
            found = limits_by_groups(value, first.without - times * second.without, left, level)
            spread = found.error * math.sqrt(min(part.n_groups for part in left))
            how, effect = "paired groups", value / spread if spread > 0 else None
        elif same and first.moves is not None and second.moves is not None:
            n, moves = one[0].report.counts["n"], first.moves - times * second.moves
            found, how = limits_by_blocks(value, moves, level, n, distant_of((*one, *other))), "paired blocks"
        if found is not None:
            return found.over_runs(*variance_over_runs(mine, theirs), level), how, effect
        folds = self._folds(one, other, metric, times)
        if len(folds) >= MANY_RUNS:
            error = stdev(folds) / math.sqrt(len(folds))
            half = float(special.stdtrit(len(folds) - 1, (1 + level) / 2)) * error
            return (fmean(folds) - half, fmean(folds) + half), "paired folds", effect
        if min(len(mine), len(theirs)) > 1 and not self.apart(one, other):
            return welch(mine, theirs, level), "over runs", effect
        ranges = [_loss_range(runs, metric) for runs in (one, other)] if len(mine) == len(theirs) == 1 else []
        if ranges and ranges[0] is not None and ranges[1] is not None:
            scaled = times * ranges[1][0], times * ranges[1][1]
            wider = special.ndtri((1 + level) / 2) / special.ndtri((1 + self.level) / 2)
            return mover(mine[0], ranges[0], theirs[0], scaled, float(wider)), "from the intervals", None
        return None, "none", None

    def _folds(
        self, one: Sequence[ScoredRun], other: Sequence[ScoredRun], metric: Metric, times: float
    ) -> list[float]:
        """Return the difference on each set of targets; nothing unless both have runs on each."""
        mine, theirs = (by_value(runs, lambda run: self.data.get(run.label)) for runs in (one, other))
        if mine.keys() != theirs.keys():
            return []
        losses = [(losses_of(mine[fold], metric), losses_of(theirs[fold], metric)) for fold in mine]
        return [fmean(a) - times * fmean(b) for a, b in losses if a and b]

    def apart(self, one: Sequence[ScoredRun], other: Sequence[ScoredRun]) -> bool:
        """Return whether no targets are common, so that the spread over runs of the same targets says nothing."""
        mine, theirs = ({self.data.get(run.label) for run in runs} for runs in (one, other))
        return mine.isdisjoint(theirs) and min(len(mine), len(theirs)) == 1

    def is_fitted(self, name: str) -> bool:
        """Return whether a run of a method fits its samples so exactly that it was fitted to them."""
        return any(OF_FITTED in run.report.verdict.caveats for run in self.groups[name])

    def is_doubtful(self, name: str) -> bool:
        """Return whether few samples of a run of a method seem wrong, or hold most of its errors."""
        verdicts = [run.report.verdict for run in self.groups[name]]
        names = {suspicion.name for verdict in verdicts for suspicion in verdict.suspicions}
        return bool(names & OF_FEW) or any("in few samples" in each.calibration for each in verdicts)

    def untold(self, runs: Sequence[ScoredRun]) -> str:
        """Say why neither groups nor folds tell how far differences vary; "" if they may."""
        names = {each.name for run in runs for each in run.report.suspicions}
        if names & {"crossed groups", "groups in sequence"}:
            return CROSSED
        methods = by_value(runs, lambda run: run.method).values()
        return OVERLAP if any(self.overlap(each) for each in methods) else ""

    def overlap(self, runs: Sequence[ScoredRun]) -> bool | None:
        """Return whether test sets share targets, or targets and losses, far more often than each repeats its own.

        None where targets repeat, as labels and counts do, so that what is shared may not show.
        """
        sets = [of[0] for of in by_value(runs, lambda run: set_of(run, self.data)).values()]
        known = [blocks.lowest for run in sets if (blocks := run.report.blocks) is not None]
        within = 0
        for place in (1, 0) if len(known) > 1 else ():
            within, pairs_within = pairs_of([own[place] for own in known])
            of_all, pairs_of_all = pairs_of([np.concatenate([own[place] for own in known])])
            between, pairs = of_all - within, pairs_of_all - pairs_within
            if place and distant_of(sets):  # copies, as of samples that are drawn with replacement
                within = 0
            if between * pairs_within > OFTEN * (within + 1) * pairs:
                return True
        return None if within or len(known) < len(sets) > 1 else False

    def _over_runs(
        self, runs: Sequence[ScoredRun], metric: Metric, of: Callable[[str, float], FloatArray]
    ) -> FloatArray | None:
        """Return the mean over runs of what each stored about a loss; None if one lacks it, or has other targets."""
        if len({self.data.get(run.label) for run in runs}) > 1:
            return None
        try:
            found = [of(run.label, run.report.scores[metric.key]) for run in runs]
            return np.asarray(np.mean(found, axis=0))
        except (Undefined, KeyError):
            return None


def pairs_of(hashes: Sequence[npt.NDArray[np.uint64]]) -> tuple[int, int]:
    """Return how many pairs in each of these are equal, and how many there are.

    >>> pairs_of([np.array([1, 2, 2]), np.array([2, 2])])
    (2, 4)
    """
    counts = [np.unique(each, return_counts=True)[1] for each in hashes]
    return sum(int(each @ (each - 1)) // 2 for each in counts), sum(
        math.comb(each.sum(), 2) for each in counts
    )


def _verdict(interval: Range | None, moved: float = 0.0) -> Verdict:
    """Return what the interval of a loss says once it is moved down."""
    if interval is None:
        return "unknown"
    return "better" if interval[1] < moved else "worse" if interval[0] > moved else "indistinguishable"


SAID, NAMED, LONGEST_NAME = 3, 4, 60
"""Groups of methods that a sentence names, methods of a group, and letters of a name."""
CROSSED = (
    "No differences: groups, or rows far apart, are alike, as on the same date; pass groups=, the name of what they "
    "share, or order=, their times."
)
OVERLAP = (
    "No differences: equal targets or losses show that test sets overlap; score all their rows in one call, "
    "with groups=, the number of each row."
)
ONLY_PREDICTIONS = (
    "Only predictions are compared, not uncertainties, whose forms or levels differ: log all methods in one form, at "
    "the same levels."
)
ONLY_COMPONENTS = (
    "Dependence within vectors is not compared: pass groups=, their numbers, and metrics=['variogram_score']."
)
FITTED = "The fit of {} is exact, as after a recalibration on these samples, which flatters it: score others."
SHUFFLE = "then shuffle them alike for all methods, else pass groups="
ELSEWHERE = "Targets or weights differ: use the same for all methods, in one unit, rounding and class order."
ASSUMED = (
    "This holds if no row is in several test sets, as in repeated or random splits; else score all rows in one call, "
    "with groups=, the number of each row."
)
DISTANT = (
    "Samples are alike (copies of a row, or one date at many stations) and count as {:,.0f}: pass groups=, "
    "the name of what they share, to see smaller differences."
)
FEW_RUNS = (
    f"Fewer than {MANY_RUNS} runs of a method hardly show how runs vary; {MANY_RUNS} of each show more."
)
ORDER = "Samples are taken in the order they were logged; if they were shuffled, only groups= shows how they depend."


def answer(pairs: Pairs, metric: Metric, unit: str | None, others: Sequence[Metric] = ()) -> Iterator[str]:
    """Yield which methods are better by more than chance, and by how much, which cannot be told apart, and why.

    ``others`` are proper scores that may say the opposite.
    """
    losses = mean_losses(pairs.groups, metric)
    order = sorted(losses, key=losses.__getitem__)
    texts = shortened([one_line(name) for name in pairs.groups], LONGEST_NAME)
    names = dict(zip(pairs.groups, texts, strict=True))
    apart: list[str] = []
    alike: list[str] = []
    used: set[How] = set()
    elsewhere = False
    differences = pairs.ties(metric)
    remaining, of_pairs = order, math.comb(sum(map(math.isfinite, losses.values())), 2)
    while differences and len(apart) + len(alike) < SAID:
        first, found = differences[0].reference, {each.method: each for each in differences}
        used |= {each.how for each in differences}
        elsewhere |= any(pairs.apart(pairs.groups[first], pairs.groups[name]) for name in found)
        judged = [name for name in order if name in found]
        tied = [name for name in judged if found[name].verdict == "indistinguishable"]
        worse = [name for name in judged if found[name].verdict == "worse"]
        if worse:
            gap = _better(pairs, found[worse[0]], metric, unit, names)
            if against := [each.key for each in others if pairs.is_worse(first, worse[0], each, of_pairs)]:
                gap += f", but worse by {listed(against)}"
            apart.append(gap)
        if tied:
            along = (_along_rows(pairs, found[name], of_pairs, metric, unit, names) for name in tied)
            but = next(filter(None, along), "") or _of_tied(pairs, (first, *tied), others, unit, names)
            verb = "cannot be told apart" + f" by {metric.key}" * (not apart or bool(but))
            doubtful = [names[name] for name in (first, *tied) if pairs.is_doubtful(name)]
            if all(found[name].interval == (0.0, 0.0) for name in tied):
                verb = f"are equal by {metric.key}"
            elif doubtful and not but:
                but = f", but few samples may decide: see the verdict of {listed(doubtful)}"
            alike.append(f"{listed([names[name] for name in (first, *tied)], NAMED)} {verb}{but}")
        # one that cannot be paired does not hide the others
        remaining = worse or ([] if tied else remaining[1:])
        rest = (pairs.difference(name, remaining[0], metric, of_pairs) for name in remaining[1:])
        differences = [each for each in rest if each is not None]
    if apart or alike:
        yield "; ".join([*apart, *alike]) + "."
        if fitted := [names[name] for name in order if pairs.is_fitted(name)]:
            yield FITTED.format(listed(fitted))
    if elsewhere:
        yield ELSEWHERE
    runs = list(chain.from_iterable(pairs.groups.values()))
    for each in (metric, *(other for other in others if other.headline)):
        undefined = {run.method: run.report.undefined for run in runs if each.key in run.report.undefined}
        whys = {name: reasons[each.key] for name, reasons in undefined.items()}
        for why in dict.fromkeys(whys.values()) if each is metric or len(whys) < len(names) else ():
            of = listed([names[name] for name in whys if whys[name] == why])
            yield f"No finite {each.key} of {of}: {why.removeprefix(INFINITE)}."
    sizes = [len(runs) for runs in pairs.groups.values()]
    if alike and min(sizes) < MANY_RUNS and max(sizes) > 1:
        yield FEW_RUNS
    if apart and used & {"paired folds", "over runs"}:
        yield from [ASSUMED] * any(pairs.overlap(runs) is None for runs in pairs.groups.values())
    if "paired blocks" in used:
        fewest, distant = min(run.report.counts["n"] for run in runs), distant_of(runs)
        few = f" {fewest} samples are too few to allow for dependence." if fewest < MANY_SAMPLES else ""
        yield ORDER + few
        if distant is not None:
            yield DISTANT.format(distant)


def distant_of(runs: Iterable[ScoredRun]) -> float | None:
    """Return how many samples at most are independent, where some far apart are alike; None if none are."""
    known = (run.report.verdict.distant for run in runs)
    return min((number for number in known if number is not None), default=None)


def _better(pairs: Pairs, gap: Difference, metric: Metric, unit: str | None, names: Mapping[str, str]) -> str:
    """Say that the reference is better than a method, by how much, and where."""
    where, than_chance = "is better than {}", ", more than chance"
    if pairs.is_fitted(gap.reference):
        where, than_chance = "scores better than {} on the samples it was fitted to,", ""
    elif pairs.apart(pairs.groups[gap.reference], pairs.groups[gap.method]):
        where = "scores better on its targets than {} on others,"
    better = f"{names[gap.reference]} {where.format(names[gap.method])}"
    return f"{better} by {_amount(gap, metric, unit)}{than_chance}"


def _of_tied(
    pairs: Pairs, tied: Sequence[str], others: Sequence[Metric], unit: str | None, names: Mapping[str, str]
) -> str:
    """Say which of the tied methods another headline score tells apart, jointly for all pairs and scores."""
    first = [each for each in others if each.headline]
    number = math.comb(len(pairs.groups), 2) * (len(first) + 1)
    for metric in first:
        losses = {name: loss for name in tied if math.isfinite(loss := pairs.known(name, metric).mean)}
        order = sorted(losses, key=losses.__getitem__)
        for name in order[1:]:
            gap = pairs.difference(name, order[0], metric, number)
            if gap is not None and gap.verdict == "worse":
                return f", but {_better(pairs, gap, metric, unit, names)}"
    return ""


def _along_rows(
    pairs: Pairs, gap: Difference, of: int, metric: Metric, unit: str | None, names: Mapping[str, str]
) -> str:
    """Say what a difference that changes along the rows is if these are independent, and where it is large."""
    runs = (*pairs.groups[gap.method], *pairs.groups[gap.reference])
    if gap.how != "paired blocks" or len(runs) > 2 or distant_of(runs):
        return ""
    mine, theirs = (np.asarray(pairs.known(name, metric).moves) for name in (gap.method, gap.reference))
    moves, size, (low, high) = mine - theirs, abs(gap.value), gap.interval or (0.0, 0.0)
    error = math.sqrt(len(moves) * moves.var(ddof=1))
    half = error * float(special.stdtrit(len(moves) - 1, 1 - (1 - pairs.level) / 2 / of))
    if size <= half or high - low < CHANGES * 2 * half:
        return ""
    total = np.cumsum(moves)
    start, end = ((int(place(total)) + 1) / len(moves) for place in (np.argmin, np.argmax))
    where = "between {:.0%} and {:.0%}" if start < end else "in the first {1:.0%}, last {2:.0%}"
    where = where.format(start, end, 1 - start).replace("%", " %")
    better = _better(pairs, replace(gap, interval=(size - half, size + half)), metric, unit, names)
    return f", but if rows are independent, {better}, mostly {where} of them: {SHUFFLE}"


def _amount(gap: Difference, metric: Metric, unit: str | None) -> str:
    """Return the size of a difference with its interval, unit and score."""
    low, high = sorted(gap.interval or (gap.value, gap.value), key=abs)
    ends = format_interval((abs(low), abs(high)))[1:-1].replace(", ", " to ")
    measure = f" {unit_text(metric.unit, unit)}".rstrip() if unit or "target" not in metric.unit else ""
    return f"{format_number(abs(gap.value), 2)}{measure} {metric.key} ({ends})"


def skill_sentences(baseline: str | None, differences: Sequence[Difference]) -> Iterator[str]:
    """Yield by how many per cent the methods' CRPS or Brier score is better than the baseline's."""
    for key, name in SKILLS.items():
        found = sorted((item for item in differences if item.metric == name), key=lambda item: -item.value)
        if found:
            texts = (f"{item.method} {_percent(item)}" for item in found[:SAID])
            yield f"{key} skill against {baseline}: {', '.join(texts)}."


def _percent(item: Difference) -> str:
    if item.interval is None:
        return format_percent(item.value)
    ends = " to ".join(format_number(100 * end, 2) for end in item.interval)
    return f"{format_percent(item.value)} ({ends} %)"


def paired_by(
    runs: Sequence[ScoredRun], data: Mapping[str, int]
) -> tuple[dict[str, LeftOut], dict[str, Blocks], list[str]]:
    """Return what runs can be paired by, by label, and say why others cannot.

    That is scores without each set of groups, or, of runs without groups, sums over blocks of samples; ``data`` is
    the number of each run's targets. Nothing is said where all methods have runs on several, as on folds.
    """
    grouped = {run.label: run for run in runs if "intervals" in run.report.provenance}
    free = {run.label: run for run in runs if run.label not in grouped}
    left = {run.label: part for run in grouped.values() if (part := run.report.left_out) is not None}
    blocks = {run.label: sums for run in free.values() if (sums := run.report.blocks) is not None}
    refused: dict[str, list[str]] = {}
    of_data = list(by_value(runs, lambda run: data.get(run.label)).values())
    shared = [scored for scored in of_data if len({run.method for run in scored}) > 1]
    usual = next(iter(shared or of_data), [])
    for scored, kind in product(of_data, (grouped, free)):
        alike = scored if len({run.method for run in scored}) > 1 else usual
        can = [run for run in alike if run.label in kind and (run.label in left or run.label in blocks)]
        first = next((run for run in can if run.report.counts["n"] >= FEWEST_SAMPLES), None)
        for run in scored:
            why = _unpaired(run, first or run, left, blocks) if run.label in kind else ""
            if why:
                refused.setdefault(why, []).append(run.label)
    reasons = [f"No paired differences for {listed(labels)}: {why}." for why, labels in refused.items()]
    if grouped and free:
        reasons.append(
            f"No paired differences between {listed([*grouped], NAMED)}, scored with groups=, and "
            f"{listed([*free], NAMED)}, scored without: log them all the same way."
        )
    for label in chain.from_iterable(refused.values()):
        left.pop(label, None)
        blocks.pop(label, None)
    everyone = {run.method for run in runs}
    of_all = [scored for scored in of_data if {run.method for run in scored} == everyone]
    return left, blocks, reasons if len(runs) > 1 and len(of_all) < MANY_RUNS else []


def _unpaired(
    run: ScoredRun, first: ScoredRun, left: Mapping[str, LeftOut], blocks: Mapping[str, Blocks]
) -> str:
    """Say why a run cannot be paired with the first that can; "" if it can."""
    groups, n = run.report.provenance.get("intervals"), run.report.counts["n"]
    if groups is not None:
        if run.label not in left:
            reasons = {} if run.report.intervals else groups.get("undefined", {})
            return next(iter(reasons.values()), "no scores without each group are stored; rescore")
        alike = run is first or same_targets(first.report, run.report)
        is_same = alike and left[run.label].has_sets_of(left[first.label])
        return "" if is_same else f"other groups than {first.label}"
    if run.label not in blocks:
        return "no sums of consecutive samples are stored; rescore where predictions are"
    if n < FEWEST_SAMPLES:
        return f"{n} samples are fewer than {FEWEST_SAMPLES}"
    mine, theirs = blocks[run.label], blocks[first.label]
    if mine.has_targets_of(theirs):
        return "" if mine.has_weights_of(theirs) else f"other weights than {first.label}"
    if mine.targets.sum() != theirs.targets.sum():
        return f"other targets than {first.label}"
    return f"the targets of {first.label} in another order; log all in the same order, or with groups="


def cohens_d(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the difference of means over the root of the mean variance; None if nothing varies.

    >>> cohens_d([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    -1.0
    """
    spread = math.sqrt((variance(one) + variance(other)) / 2)
    return (math.fsum(one) / len(one) - math.fsum(other) / len(other)) / spread if spread > 0 else None


def mover(one: float, of_one: Range, other: float, of_other: Range, wider: float = 1.0) -> Range:
    """Return the interval of a difference from the intervals of its parts, assumed independent, that much wider."""
    gap = one - other
    below = math.hypot(one - of_one[0], of_other[1] - other)
    above = math.hypot(of_one[1] - one, other - of_other[0])
    return gap - wider * below, gap + wider * above


def _loss_range(runs: Sequence[ScoredRun], metric: Metric) -> Range | None:
    """Return the report's interval, transformed like the loss."""
    run = next(run for run in runs if metric.key in run.report.scores)
    interval = run.report.intervals.get(metric.key)
    if interval is None:
        return None
    ends = sorted(metric.loss(end) for end in interval)
    if isinstance(metric.direction, float) and interval[0] <= metric.direction <= interval[1]:
        ends[0] = 0.0
    return ends[0], ends[1]


def variance_over_runs(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Return the variance of a difference of means from run to run, and its degrees of freedom; 0 for single runs.

    Methods of fewer than three runs are taken to vary alike; a single one may be the bad run that several show.

    >>> variance_over_runs([1.0, 2.0, 3.0], [2.0]), variance_over_runs([1.0], [2.0])
    ((5.333333333333333, 2), (0.0, inf))
    """
    sizes = len(one), len(other)
    if max(sizes) == 1:
        return 0.0, math.inf
    a, b = (variance(values) if len(values) > 1 else 0.0 for values in (one, other))
    if min(sizes) < MANY_RUNS:
        freedom = sum(sizes) - 2
        pooled = ((sizes[0] - 1) * a + (sizes[1] - 1) * b) / freedom
        return pooled * (1 / sizes[0] + 1 / sizes[1]) * (LONE if min(sizes) == 1 else 1), freedom
    return _welch(one, other)


def _welch(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Return the variance of a difference of means, each group's its own, and its degrees of freedom."""
    a, b = (variance(values) / len(values) for values in (one, other))
    if a + b == 0:
        return 0.0, math.inf
    share = a / (a + b)
    return a + b, 1 / (share**2 / (len(one) - 1) + (1 - share) ** 2 / (len(other) - 1))


def welch(one: Sequence[float], other: Sequence[float], level: float) -> Range:
    """Return Welch's interval of a difference of means; a point if none varies.

    >>> low, high = welch([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 0.95)
    >>> round(low, 3), round(high, 3)
    (-3.267, 1.267)
    """
    gap, (spread, freedom) = math.fsum(one) / len(one) - math.fsum(other) / len(other), _welch(one, other)
    half = float(special.stdtrit(freedom, (1 + level) / 2)) * math.sqrt(spread)
    return gap - half, gap + half


@lru_cache(maxsize=32)
def found_mostly(runs: int, level: float, methods: int) -> float:
    """Return the difference of two of so many methods, of so many runs each, that is found in 80 % of cases.

    In standard deviations of the runs, by simulation of normal runs that vary alike.

    >>> [round(found_mostly(runs, 0.95, 2), 1) for runs in (3, 5, 10)]
    [3.5, 2.1, 1.3]
    """
    one, other = np.random.default_rng(0).normal(size=(2, DRAWS, runs))
    a, b = (values.var(axis=1, ddof=1) / runs for values in (one, other))
    freedom = (a + b) ** 2 / ((a**2 + b**2) / (runs - 1))
    half = special.stdtrit(freedom, 1 - (1 - level) / 2 / math.comb(methods, 2)) * np.sqrt(a + b)
    return float(np.quantile(half + one.mean(axis=1) - other.mean(axis=1), MOSTLY))
