"""Differences of methods scored on the same groups, leaving out the same sets of groups for all methods in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from uq_tracking.comparison.runs import ScoredRun, by_method
from uq_tracking.errors import UQTrackingError
from uq_tracking.inference.enough import FEWEST_GROUPS
from uq_tracking.inference.intervals import LeftOut, leave_out
from uq_tracking.inference.limits import Range
from uq_tracking.inference.paired import paired_limits, tied_with_best
from uq_tracking.metrics.registry import Metric, Undefined
from uq_tracking.report import same_targets
from uq_tracking.settings import Settings
from uq_tracking.statistics.groups import GroupTables
from uq_tracking.statistics.orders import FloatArray

MANY_RUNS = 3
"""If both methods have this many runs, the spread over runs says more about the methods than the groups do."""


@dataclass(frozen=True, eq=False)
class PairedGroups:
    """Scores without each of the same sets of groups, for every run that stored its groups' statistics.

    A method with several runs is represented by the mean of their losses.
    """

    left: Mapping[str, LeftOut] = field(default_factory=dict)
    """Leave-out scores by the run's label."""
    seed: int = 0
    """Seed of the resamples that show how large the largest of many differences is by chance."""

    def limits(
        self, one: Sequence[ScoredRun], other: Sequence[ScoredRun], metric: Metric, level: float
    ) -> tuple[Range, float | None] | None:
        """Return interval and effect size of the difference of mean losses; None if the groups do not show it."""
        if self._hide(one, metric) and self._hide(other, metric):
            return None
        first, second = self._losses(one, metric), self._losses(other, metric)
        if first is None or second is None:
            return None
        value = _mean_loss(one, metric) - _mean_loss(other, metric)
        return paired_limits(value, first - second, [self.left[run.label] for run in (*one, *other)], level)

    def tied(
        self, groups: Mapping[str, Sequence[ScoredRun]], metric: Metric, level: float
    ) -> frozenset[str] | None:
        """Return the methods not distinguishable from the best, for all pairs jointly.

        None if groups are not known, or do not show the spread of two of the methods.
        """
        if sum(self._hide(runs, metric) for runs in groups.values()) > 1:
            return None
        without = {name: self._losses(runs, metric) for name, runs in groups.items()}
        columns = [column for column in without.values() if column is not None]
        if len(columns) < len(without) or len(columns) < 2:
            return None
        losses = np.asarray([_mean_loss(runs, metric) for runs in groups.values()])
        tied = tied_with_best(losses, np.stack(columns, axis=1), level, self.seed)
        return frozenset(name for name, is_tied in zip(groups, tied, strict=True) if is_tied)

    def _hide(self, runs: Sequence[ScoredRun], metric: Metric) -> bool:
        """True if no run has the errors that show how a metric varies between groups."""
        left = [self.left.get(run.label) for run in runs]
        return all(part is not None and part.hidden(metric) for part in left)

    def _losses(self, runs: Sequence[ScoredRun], metric: Metric) -> FloatArray | None:
        """Return mean losses without each set of groups, shifted to match the exact scores."""
        found = []
        for run in runs:
            left, exact = self.left.get(run.label), run.report.scores.get(metric.key)
            if left is None or exact is None:
                return None
            try:
                moved = left.estimates(metric.key, exact)
            except (Undefined, KeyError):
                return None
            found.append([metric.loss(value) for value in moved.tolist()])
        return np.asarray(np.mean(found, axis=0))


def _mean_loss(runs: Sequence[ScoredRun], metric: Metric) -> float:
    return float(np.mean([metric.loss(run.report.scores[metric.key]) for run in runs]))


def paired_groups(
    runs: Sequence[ScoredRun], metrics: Sequence[Metric], seed: int
) -> tuple[PairedGroups, list[str]]:
    """Score every run without each set of groups, if they are stored, and say why runs are left out.

    Statistics are fetched only for runs whose report has intervals, and not at all if every method has many runs.
    """
    problems: list[str] = []
    if all(len(group) >= MANY_RUNS for group in by_method(runs).values()):
        return PairedGroups(), problems
    found = [(run, tables) for run in runs if (tables := _tables(run, problems)) is not None]
    same = [
        (run, tables)
        for run, tables in found
        if tables.members == found[0][1].members
        and (run is found[0][0] or same_targets(found[0][0].report, run.report))
    ]
    labels = {run.label for run, _ in same}
    others = [run.label for run, _ in found if run.label not in labels]
    if others:
        first = found[0][0].label
        problems.append(
            f"No paired differences for {', '.join(others)}: their groups differ from those of {first}."
        )
    if len(same) < 2:
        return PairedGroups(), problems
    fewest = min(len(tables) for _, tables in same)
    left = {}
    for run, tables in same:
        settings = Settings.from_dict(run.report.settings)
        chosen = [
            m for m in metrics if m.key in run.report.scores and m.direction is not None and not m.needs
        ]
        left[run.label] = leave_out(tables.pooled_to(fewest), settings, chosen)
    return PairedGroups(left, seed), problems


def _tables(run: ScoredRun, problems: list[str]) -> GroupTables | None:
    """Read the statistics of the run's groups; None if they are not stored or cannot be read."""
    statistics = run.report.statistics
    if run.report.intervals and statistics is None and run.logged is not None:
        try:
            statistics = run.logged.statistics(run.report)
        except FileNotFoundError:
            return None
        except (UQTrackingError, OSError) as error:  # the comparison continues without this run's resamples
            problems.append(f"No paired differences for {run.label}: {error}.")
    if not run.report.intervals or statistics is None or statistics.groups is None:
        return None
    return statistics.groups if len(statistics.groups) >= FEWEST_GROUPS else None
