"""Differences between two methods scored on the same groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uq_tracking.errors import IncompatibleStatisticsError
from uq_tracking.inference.leave_out import LeftOut, leave_out, too_few
from uq_tracking.inference.limits import Influence, Range
from uq_tracking.metrics.registry import Metric, Undefined, compute
from uq_tracking.settings import Settings, check_level
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.orders import FloatArray
from uq_tracking.statistics.statistics import Statistics

if TYPE_CHECKING:
    from uq_tracking.report import Report


@dataclass(frozen=True)
class PairedDifference:
    """One metric of a method minus that of another, on the same groups.

    Attributes
    ----------
    value : float
        Difference of the scores; for a metric with a target value, of the distances to it.
    interval : (float, float)
        Confidence interval of ``value``.
    loss_interval : (float, float)
        The same, transformed so that below 0 the first method is better.
    distinguishable : bool
        Whether the interval excludes 0; if not, this test set does not distinguish the two.
    effect : float or None
        ``value`` over the standard deviation of the groups' differences (Cohen's d of pairs); None if they do not
        vary.
    relative : float or None
        ``value`` relative to the other method's score; None if that has no natural zero (see `relative_change`).
    """

    value: float
    interval: Range
    loss_interval: Range
    distinguishable: bool
    effect: float | None = None
    relative: float | None = None


def paired_differences(
    one: Statistics | Report,
    other: Statistics | Report,
    settings: Settings | None = None,
    metrics: Iterable[Metric] | None = None,
    level: float = 0.95,
) -> dict[str, PairedDifference]:
    """Differences of two methods scored on the same groups: what is hard for both cancels.

    Parameters
    ----------
    one, other : statistics or Report
        For the same task, with statistics of the same groups: evaluated, or logged, with ``groups=``.
    settings : Settings, optional
        By default those of ``one`` if it is a report.
    metrics : iterable of Metric, optional
        By default all that both define.
    level : float
        Confidence level.

    Returns
    -------
    dict of PairedDifference
        By key; metrics that are undefined for one of the two, or without some of the groups, are not there, nor
        those that depend on errors where both have too few (see `LeftOut`).

    Raises
    ------
    IncompatibleStatisticsError
        No groups are stored, there are too few, or they differ; or the tasks differ.

    Examples
    --------
    >>> import numpy as np, uq_tracking as uq
    >>> rng = np.random.default_rng(0)
    >>> truth, images = rng.normal(size=4000), np.repeat(np.arange(20), 200)
    >>> good, poor = (uq.evaluate(truth, truth + s * rng.normal(size=4000), np.ones(4000), groups=images)
    ...               for s in (1.0, 1.5))
    >>> paired_differences(good, poor)["rmse"].distinguishable
    True
    """
    check_level(level)
    (mine, my_scores), (theirs, their_scores) = _side(one), _side(other)
    tables = _same_groups(mine, theirs)
    settings = settings or _settings_of(one)
    chosen = _chosen(mine, metrics)
    if not my_scores or metrics is not None:
        my_scores = _exact(mine, settings, chosen)
    if not their_scores or metrics is not None:
        their_scores = _exact(theirs, settings, chosen)
    chosen = [metric for metric in chosen if metric.key in my_scores and metric.key in their_scores]
    left = [leave_out(part, settings, chosen) for part in tables]
    found = {}
    for metric in chosen:
        try:
            found[metric.key] = _paired(metric, my_scores[metric.key], their_scores[metric.key], left, level)
        except Undefined:
            continue
    return found


def _side(given: Statistics | Report) -> tuple[Statistics, Mapping[str, float]]:
    if isinstance(given, Statistics):
        return given, {}
    if given.statistics is None:
        raise IncompatibleStatisticsError("the report holds no statistics to resample")
    return given.statistics, given.scores


def _settings_of(given: Statistics | Report) -> Settings:
    settings = getattr(given, "settings", None)
    return Settings() if settings is None else Settings.from_dict(settings)


def _chosen(statistics: Statistics, metrics: Iterable[Metric] | None) -> list[Metric]:
    from uq_tracking.metrics.registry import select

    return [m for m in (select(statistics.task) if metrics is None else metrics) if not m.needs]


def _exact(statistics: Statistics, settings: Settings, metrics: Sequence[Metric]) -> dict[str, float]:
    with np.errstate(all="ignore"):
        return compute(statistics, settings, metrics)[0]


def _same_groups(one: Statistics, other: Statistics) -> tuple[GroupTables, GroupTables]:
    if one.task != other.task:
        raise IncompatibleStatisticsError("a regression and a classification have no scores in common")
    if one.groups is None or other.groups is None:
        raise IncompatibleStatisticsError(
            "statistics of groups are not stored for both; evaluate or log both with groups="
        )
    mine: GroupTables = one.groups
    theirs: GroupTables = other.groups
    if mine.members != theirs.members:
        raise IncompatibleStatisticsError(
            f"the groups differ ({mine.n_groups} and {theirs.n_groups}); score both methods on the same images"
        )
    if (reason := too_few(mine)) is not None:
        raise IncompatibleStatisticsError(reason)
    fewest = min(len(mine), len(theirs))
    return mine.pooled_to(fewest), theirs.pooled_to(fewest)


def _paired(
    metric: Metric, mine: float, theirs: float, left: Sequence[LeftOut], level: float
) -> PairedDifference:
    """The difference of losses; turned back into scores for a metric that is better when higher."""
    if all(part.hidden(metric) for part in left):
        raise Undefined("both have too few errors")
    losses = metric.loss(mine), metric.loss(theirs)
    value = losses[0] - losses[1]
    first, second = (
        [metric.loss(score) for score in part.estimates(metric.key, exact).tolist()]
        for part, exact in zip(left, (mine, theirs), strict=True)
    )
    (low, high), effect = paired_limits(value, np.subtract(first, second), left, level)
    sign = -1 if metric.direction == "higher" else 1
    return PairedDifference(
        sign * value,
        (low, high) if sign > 0 else (-high, -low),
        (low, high),
        not low <= 0 <= high,
        None if effect is None else sign * effect,
        relative_change(metric, *losses),
    )


def paired_limits(
    value: float, differences: FloatArray, left: Sequence[LeftOut], level: float
) -> tuple[Range, float | None]:
    """Interval of a difference of losses and its effect size, from the differences without each set of groups."""
    influence = Influence.left_out(differences, min(part.freedom for part in left))
    low, high = influence.limits(value, level, cautious=True)
    spread = influence.standard_error * math.sqrt(min(part.n_groups for part in left))
    return (min(low, value), max(high, value)), value / spread if spread > 0 else None


def relative_change(metric: Metric, mine: float, theirs: float) -> float | None:
    """The difference of two losses, transformed back to scores, relative to the second.

    None if the second is 0 or the metric has no natural zero: log scores, and scores that may be negative.

    >>> from uq_tracking.metrics.registry import find
    >>> relative_change(*find(["crps"]), 1.5, 1.0), relative_change(*find(["nll"]), 1.5, 1.0)
    (0.5, None)
    """
    if not isinstance(metric.direction, float) and (metric.bounds[0] != 0 or metric.unit == "nats"):
        return None
    sign = -1 if metric.direction == "higher" else 1
    return sign * (mine - theirs) / abs(theirs) if theirs else None
