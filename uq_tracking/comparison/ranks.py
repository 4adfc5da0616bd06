"""Methods by metrics: mean and spread over the runs of a method, ranks, best and worst."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uq_tracking.comparison.rows import ScoredRun
from uq_tracking.metrics.registry import Metric

TIE = 1e-9
"""Relative difference up to which two numbers share a rank: sums of one set in another order differ so much."""


@dataclass(frozen=True)
class Cell:
    """One metric of one method.

    Attributes
    ----------
    value : float or None
        Mean over the runs of the method that have the metric; None when none has it.
    spread : float or None
        Standard deviation over these runs (``ddof=1``); None for a single one.
    runs, of : int
        Runs that have the metric, and runs of the method.
    interval : (float, float) or None
        Confidence interval of the single run's report, where it has one.
    rank : int or None
        1 for the best; equal values share the better rank. None when the metric does not judge.
    worst_rank : int or None
        Rank of the last method, so that ``rank`` can be read.
    reason : str or None
        Why there is no value.
    """

    value: float | None
    spread: float | None = None
    runs: int = 0
    of: int = 1
    interval: tuple[float, float] | None = None
    rank: int | None = None
    worst_rank: int | None = None
    reason: str | None = None

    @property
    def ranked(self) -> bool:
        """Whether the metric tells at least two methods apart."""
        return self.rank is not None and self.worst_rank is not None and self.worst_rank > 1

    @property
    def best(self) -> bool:
        """Whether no method is better and some method is worse."""
        return self.ranked and self.rank == 1

    @property
    def worst(self) -> bool:
        """Whether no method is worse and some method is better."""
        return self.ranked and self.rank == self.worst_rank

    @property
    def place(self) -> float | None:
        """Rank as a number from 0 (best) to 1 (worst)."""
        if not self.ranked or self.rank is None or self.worst_rank is None:
            return None
        return (self.rank - 1) / (self.worst_rank - 1)


def values_of(runs: Sequence[ScoredRun], key: str) -> list[float]:
    """The metric of those runs that have it."""
    return [run.report.scores[key] for run in runs if key in run.report.scores]


def mean_loss(runs: Sequence[ScoredRun], metric: Metric) -> float | None:
    """Mean over the runs of the value turned so that lower is better; of distances where there is a target.

    Two runs that miss a target on either side are not as good as two that meet it.
    """
    losses = [metric.loss(value) for value in values_of(runs, metric.key)]
    return statistics.fmean(losses) if losses else None


def ranks(losses: Mapping[str, float]) -> dict[str, int]:
    """Rank of each name, 1 for the lowest loss; losses that differ by rounding only share a rank."""
    found: dict[str, int] = {}
    first, rank = 0.0, 0
    for place, name in enumerate(sorted(losses, key=losses.__getitem__), start=1):
        loss = losses[name]
        if rank == 0 or loss - first > TIE * max(abs(loss), abs(first)):
            first, rank = loss, place
        found[name] = rank
    return found


def column(groups: Mapping[str, Sequence[ScoredRun]], metric: Metric) -> dict[str, Cell]:
    """The cells of one metric, by method."""
    losses = {name: mean_loss(runs, metric) for name, runs in groups.items()}
    judged = {name: loss for name, loss in losses.items() if loss is not None}
    places = ranks(judged) if metric.direction is not None else {}
    last = max(places.values(), default=None)
    return {name: _cell(runs, metric.key, places.get(name), last) for name, runs in groups.items()}


def _cell(runs: Sequence[ScoredRun], key: str, rank: int | None, last: int | None) -> Cell:
    values = values_of(runs, key)
    if not values:
        return Cell(None, of=len(runs), reason=_reason(runs, key))
    single = runs[0].report.intervals.get(key) if len(runs) == 1 else None
    return Cell(
        value=statistics.fmean(values),
        spread=statistics.stdev(values) if len(values) > 1 else None,
        runs=len(values),
        of=len(runs),
        interval=None if single is None else (single[0], single[1]),
        rank=rank,
        worst_rank=None if rank is None else last,
    )


def _reason(runs: Sequence[ScoredRun], key: str) -> str:
    reasons = {run.report.undefined[key] for run in runs if key in run.report.undefined}
    return "; ".join(sorted(reasons)) or "not computed"
