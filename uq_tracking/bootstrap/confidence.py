"""Confidence intervals of scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from uq_tracking.bootstrap.bands import banded
from uq_tracking.bootstrap.resampling import (
    FEWEST_GROUPS,
    RESAMPLES,
    Range,
    check_level,
    deviation_range,
    resample,
    too_few,
)
from uq_tracking.metrics.registry import Metric, Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_tables import GroupTables

if TYPE_CHECKING:
    from uq_tracking.report import Report


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals by metric key, and why others have none."""

    values: Mapping[str, Range]
    undefined: Mapping[str, str]


def intervals(
    tables: GroupTables,
    settings: Settings,
    metrics: Iterable[Metric],
    level: float = 0.95,
    n_boot: int = RESAMPLES,
    seed: int = 0,
    *,
    scores: Mapping[str, float] | None = None,
) -> dict[str, Range]:
    """Confidence intervals of scores by resampling groups.

    Parameters
    ----------
    tables : GroupTables
        Statistics of all groups, such as ``Accumulator.group_tables`` or ``report.statistics.groups``.
    settings : Settings
    metrics : iterable of Metric
    level : float
        Confidence level.
    n_boot : int
        Number of resamples.
    seed : int
        Of the resamples.
    scores : mapping of float, optional
        Exact scores, which the intervals are laid around; by default those of the sketches.

    Returns
    -------
    dict
        (low, high) by key; `interval_table` gives the reasons of metrics that are not there.

    Raises
    ------
    SettingsError
        The level or the number of resamples is out of range.
    """
    return dict(interval_table(tables, settings, metrics, level, n_boot, seed, scores=scores).values)


def interval_table(
    tables: GroupTables,
    settings: Settings,
    metrics: Iterable[Metric],
    level: float = 0.95,
    n_boot: int = RESAMPLES,
    seed: int = 0,
    *,
    scores: Mapping[str, float] | None = None,
) -> Intervals:
    """Confidence intervals and the reasons where there is none; arguments as for ``intervals``."""
    check_level(level, n_boot)
    chosen = [metric for metric in metrics if not metric.needs and (scores is None or metric.key in scores)]
    if len(tables) < FEWEST_GROUPS:
        return Intervals({}, dict.fromkeys((metric.key for metric in chosen), too_few(len(tables))))
    drawn = resample(tables, settings, chosen, n_boot, seed)
    values: dict[str, Range] = {}
    undefined: dict[str, str] = {}
    for metric in chosen:
        try:
            low, high = deviation_range(drawn.deviations(metric.key), level, drawn.n_groups)
        except Undefined as reason:
            undefined[metric.key] = str(reason)
            continue
        centre = drawn.coarse[metric.key] if scores is None else scores[metric.key]
        values[metric.key] = _within(metric, centre, centre + low, centre + high)
    return Intervals(values, undefined)


def _within(metric: Metric, centre: float, low: float, high: float) -> Range:
    """The interval inside the metric's range; it always holds the score itself."""
    least, greatest = metric.bounds
    return min(max(low, least), centre), max(min(high, greatest), centre)


def with_intervals(
    report: Report, tables: GroupTables, settings: Settings, metrics: Iterable[Metric], **options: Any
) -> Report:
    """The report with intervals of its scores, bands of a regression's curves, the groups' statistics, and how.

    ``options`` are ``level``, ``n_boot`` and ``seed``. Where there are no intervals, ``provenance["intervals"]`` says
    why.
    """
    made = interval_table(tables, settings, metrics, scores=report.scores, **options)
    about = {**options, "groups": tables.n_groups, "drawn": len(tables), "undefined": dict(made.undefined)}
    curves = banded(dict(report.curves), tables, settings, **options)
    return replace(
        report,
        curves=curves,
        intervals=dict(made.values),
        statistics=None if report.statistics is None else replace(report.statistics, groups=tables),
        provenance={**report.provenance, "intervals": about},
    )
