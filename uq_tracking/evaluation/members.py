"""Metrics against the number of ensemble members."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from uq_tracking.curves.curve import Curve
from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.repeats import Repeats
from uq_tracking.metrics.registry import Metric, MetricInputs, compute, select
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import How, build_statistics
from uq_tracking.tasks import Task

SUBSETS = 10
"""Number of random subsets of each size, or all if there are fewer."""


def by_members(
    task: Task,
    data: Any,
    settings: Settings,
    metrics: Sequence[Metric],
    *,
    reference: Any = None,
    seed: int = 0,
    subsets: int = SUBSETS,
    how: How = "auto",
) -> list[Curve]:
    """One curve per metric against the number M of members, over random subsets of the ensemble.

    M runs over 1, 2, 4 ... and the full size, starting from the fewest members that have an uncertainty. If a
    reference is given, the divergence of each subset from it also gets a curve.

    Parameters
    ----------
    task, data
        Predictions that know their members.
    settings, metrics
        How to score, and what.
    reference : optional
        What the task's reference metrics compare with.
    seed : int
        Seed of the choice of subsets.
    subsets : int
        Maximum number of each size.
    how : {"auto", "exact", "sketch"}
        Kind of statistics for the subsets.

    Raises
    ------
    SettingsError
        The predictions hold no members.

    References
    ----------
    .. [1] Gustafsson et al., 2020, fig. 5, 6 and 8.
    """
    known = task.members(data)
    if known is None:
        raise SettingsError(
            "by_members needs the members of an ensemble; make the predictions with Predictions.from_ensemble, or "
            "pass members_axis= to a classification"
        )
    members, fewest = known
    rng = np.random.default_rng(seed)
    metrics = [*metrics, *_comparing(task, reference)]

    def scores_of(chosen: Sequence[int]) -> dict[str, float]:
        part = task.member_subset(data, chosen)
        statistics = build_statistics(task.layout_of(part), part, how)
        return compute(statistics, settings, metrics, MetricInputs(statistics, part, reference, seed))[0]

    scores = {}
    for size in member_counts(members, first=fewest):
        with np.errstate(all="ignore"):
            scores[float(size)] = [scores_of(chosen) for chosen in subsets_of(members, size, subsets, rng)]
    return Repeats(scores).curves("by_members", "members", "Members", metrics, settings.unit)


def _comparing(task: Task, reference: Any) -> list[Metric]:
    """The metrics that compare predictions with a reference, if one is given."""
    if reference is None:
        return []
    found = select(task.name, given=("predictions", "reference"))
    return [metric for metric in found if "reference" in metric.needs]


def member_counts(members: int, first: int) -> list[int]:
    """Powers of two up to the number of members, and that number itself."""
    powers = [2**k for k in range(members.bit_length()) if first <= 2**k < members]
    return [*powers, members]


def subsets_of(members: int, size: int, most: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """All subsets of a size if there are at most ``most``, else that many distinct random ones."""
    if math.comb(members, size) <= most:
        yield from (list(chosen) for chosen in itertools.combinations(range(members), size))
        return
    seen: set[tuple[int, ...]] = set()
    while len(seen) < most:
        chosen = tuple(sorted(rng.choice(members, size, replace=False).tolist()))
        if chosen not in seen:
            seen.add(chosen)
            yield list(chosen)
