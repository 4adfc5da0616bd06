"""Differences of methods scored on the same groups, the groups resampled together for all methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.bootstrap import (
    DEFINED_SHARE,
    FEWEST_GROUPS,
    RESAMPLES,
    Resamples,
    deviation_range,
    resample,
)
from uq_tracking.comparison.comparability import same_targets
from uq_tracking.comparison.runs import ScoredRun, by_method
from uq_tracking.errors import UQTrackingError
from uq_tracking.metrics.registry import Metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_tables import GroupTables

FloatArray = npt.NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class PairedBootstrap:
    """Scores of common resamples of the groups, for every run that stored its groups' statistics.

    A method with several runs counts with the mean of their losses in each resample.
    """

    draws: Mapping[str, Resamples] = field(default_factory=dict)
    """By the run's label."""

    def interval(
        self, one: Sequence[ScoredRun], other: Sequence[ScoredRun], metric: Metric, level: float
    ) -> Range | None:
        """Interval of the difference of mean losses, or None where a run has no resamples."""
        first, second = self._losses(one, metric), self._losses(other, metric)
        if first is None or second is None:
            return None
        gaps = first - second
        known = gaps[np.isfinite(gaps)]
        if len(known) < DEFINED_SHARE * len(gaps):
            return None
        value = _mean_loss(one, metric) - _mean_loss(other, metric)
        groups = self.draws[one[0].label].n_groups
        low, high = deviation_range(known - value, level, groups)
        return min(value + low, value), max(value + high, value)

    def _losses(self, runs: Sequence[ScoredRun], metric: Metric) -> FloatArray | None:
        """Losses of the resamples, moved by the offset of the groups' coarse statistics."""
        found = []
        for run in runs:
            drawn, exact = self.draws.get(run.label), run.report.scores.get(metric.key)
            if drawn is None or exact is None or metric.key not in drawn.coarse:
                return None
            moved = drawn.scores[metric.key] - drawn.coarse[metric.key] + exact
            found.append([metric.loss(value) for value in moved.tolist()])
        return np.asarray(np.mean(found, axis=0))


def _mean_loss(runs: Sequence[ScoredRun], metric: Metric) -> float:
    return float(np.mean([metric.loss(run.report.scores[metric.key]) for run in runs]))


def paired_bootstrap(
    runs: Sequence[ScoredRun], metrics: Sequence[Metric], seed: int
) -> tuple[PairedBootstrap, list[str]]:
    """Draw the groups of every run that stored their statistics, and say why runs are left out.

    Only runs whose report has intervals are asked for their statistics; nothing is fetched for the others, and
    nothing at all where every method has several runs.
    """
    problems: list[str] = []
    if all(len(group) > 1 for group in by_method(runs).values()):
        return PairedBootstrap(), problems
    tables: dict[str, GroupTables] = {}
    for run in runs:
        if run.report.intervals:
            found = _tables(run, problems)
            if found is not None:
                tables[run.label] = found
    tables = _common({run.label: run for run in runs}, tables, problems)
    if len(tables) < 2:
        return PairedBootstrap(), problems
    fewest = min(len(table) for table in tables.values())
    draws = {}
    for run in (run for run in runs if run.label in tables):
        settings = Settings.from_dict(run.report.settings)
        chosen = [
            m for m in metrics if m.key in run.report.scores and m.direction is not None and not m.needs
        ]
        draws[run.label] = resample(tables[run.label].pooled_to(fewest), settings, chosen, RESAMPLES, seed)
    return PairedBootstrap(draws), problems


def _tables(run: ScoredRun, problems: list[str]) -> GroupTables | None:
    """Statistics of the run's groups; None where they are not stored or cannot be read."""
    statistics: Any = run.report.statistics
    if statistics is None and run.logged is not None:
        try:
            statistics = run.logged.statistics(run.report)
        except FileNotFoundError:
            return None
        except (UQTrackingError, OSError) as error:  # the comparison goes on without this run's resamples
            problems.append(f"No paired differences for {run.label}: {error}.")
            return None
    groups = getattr(statistics, "groups", None)
    return groups if isinstance(groups, GroupTables) and len(groups) >= FEWEST_GROUPS else None


def _common(
    runs: Mapping[str, ScoredRun], tables: Mapping[str, GroupTables], problems: list[str]
) -> dict[str, GroupTables]:
    """The tables of the runs that were scored on the groups and the targets of the first one."""
    if not tables:
        return {}
    first = next(iter(tables))
    others = [
        label
        for label, table in tables.items()
        if table.members != tables[first].members
        or (label != first and not same_targets(runs[first], runs[label]))
    ]
    if others:
        problems.append(
            f"No paired differences for {', '.join(others)}: their groups are not those of {first}."
        )
    return {label: table for label, table in tables.items() if label not in others}
