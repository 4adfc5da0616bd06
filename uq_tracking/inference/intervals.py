r"""Confidence intervals of the population values of scores: what infinitely many such groups would give.

==========================  ==========================================================================
what the score is           how its interval is made
==========================  ==========================================================================
a share (coverage,          Clopper and Pearson's limits for the effective number of independent
accuracy)                   samples (Korn and Graubard 1998)
mean absolute or squared    debiased squares: for gaps d with jackknife covariance S, limits of
gap (ENCE, ECE, AUCE ...)   :math:`\sum w (d^2 - S_{ii})`, negative ones 0; for absolute gaps their roots
largest gap (PIT-KS, MCE)   the score, plus and minus the 95 % point of the largest gap of noise
any other                   the jackknife over sets of groups (``leave_out``)
==========================  ==========================================================================

All limits use the corrections of ``limits``. An interval for a calibration error begins at 0 if calibration cannot be
rejected. Noise raises a mean of gaps: where it is most of the score, the interval, which is of the debiased value,
lies below the score, and a note says so. Upper limits of areas between coverage and level hold for gaps that move
together, as these do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from uq_tracking.inference.limits import (
    DOMINATED,
    SETS,
    Influence,
    Range,
    heavy_tails,
    set_weights,
    share_limits,
    too_few,
    too_few_errors,
)
from uq_tracking.metrics import groups
from uq_tracking.metrics.gaps import Gap, Reduction, left_out_moves, multivariate_t
from uq_tracking.metrics.groups import size_freedom
from uq_tracking.metrics.registry import Metric, NeedsGroups, Undefined, compute
from uq_tracking.settings import Settings, check_level
from uq_tracking.statistics.groups import ENOUGH_GROUPS, GroupTables
from uq_tracking.statistics.orders import FloatArray
from uq_tracking.statistics.statistics import resampled
from uq_tracking.typed import cached_property, plain, record

if TYPE_CHECKING:
    from uq_tracking.report import Report

HOPELESS = 0.75
"""From this dominance on (see ``limits``) there is no interval."""
ENOUGH_CARRYING = 25
"""This many equal groups are enough, whatever their share."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Scores without each set of groups, from which intervals are made, and those of differences between reports.

    Attributes
    ----------
    members : str
        Digest of the groups' labels.
    pools : int
        Number of pools that many groups were put in; equal groups in as many pools make the same sets.
    n_groups : int
        Number of groups.
    whole : dict of float
        Scores of all groups together, from the same coarse statistics.
    without : dict of array, shape (sets,)
        Scores without each set, where all are defined.
    freedom : float
        Degrees of freedom that the group sizes allow.
    few_errors : str or None
        Why a classification has too few errors for the groups to show their spread.
    """

    members: str
    pools: int
    n_groups: int
    whole: Mapping[str, float]
    without: Mapping[str, FloatArray]
    freedom: float = math.inf
    few_errors: str | None = None

    def hidden(self, metric: Metric) -> str | None:
        """Say why the groups do not show the spread of a metric, or None; shares have limits of their own."""
        return None if metric.family == "spread" else self.few_errors

    def estimates(self, key: str, exact: float | None = None) -> FloatArray:
        """Scores without each set, shifted to match the exact score; Undefined if one is missing."""
        if key not in self.without:
            raise Undefined(f"{key} is undefined without some of the groups")
        values = self.without[key]
        return values if exact is None else values - self.whole[key] + exact

    def has_sets_of(self, other: LeftOut) -> bool:
        """Return whether the same groups are left out together."""
        return (self.members, self.pools) == (other.members, other.pools)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        without = {key: values.tolist() for key, values in self.without.items()}
        return {item.name: plain(getattr(self, item.name)) for item in fields(self)} | {"without": without}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LeftOut:
        """Inverse of ``to_dict``; TypeError or ValueError for anything else."""
        without = {key: np.asarray(each, dtype=np.float64) for key, each in values["without"].items()}
        freedom = math.inf if values["freedom"] is None else values["freedom"]
        known = {**values, "without": {}, "freedom": freedom}
        made = replace(record(cls, known), without=without)
        sets = min(made.pools, SETS)
        if sets < 2 or any(each.shape != (sets,) or key not in made.whole for key, each in without.items()):
            raise ValueError("scores without sets of groups are damaged")
        return made


def leave_out(tables: GroupTables, settings: Settings, metrics: Sequence[Metric]) -> LeftOut:
    """Scores of the groups' statistics without each set of groups, and with all.

    Groups are pooled as they are before they are stored, so that sets are the same whichever statistics are at hand.
    """
    tables = tables.pooled_to(ENOUGH_GROUPS)
    weights = np.concatenate([np.ones((1, len(tables))), set_weights(len(tables))])
    with np.errstate(all="ignore"):
        whole, *rows = (compute(one, settings, metrics)[0] for one in resampled(tables, weights))
    without = {
        key: np.asarray([row[key] for row in rows]) for key in whole if all(key in row for row in rows)
    }
    squares = (1 - weights[1:]) @ np.square(tables.sizes_by_weight.astype(float))
    few = too_few_errors(tables)
    return LeftOut(tables.members, len(tables), tables.n_groups, whole, without, size_freedom(squares), few)


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals by metric key, why others have none, which are rough, and what they were made of."""

    values: Mapping[str, Range]
    undefined: Mapping[str, str]
    notes: Mapping[str, str]
    left_out: LeftOut | None = None


def interval_table(
    tables: GroupTables,
    settings: Settings,
    metrics: Iterable[Metric],
    level: float = 0.95,
    *,
    scores: Mapping[str, float],
) -> Intervals:
    """Confidence intervals of scores, or the reasons why there are none.

    Parameters
    ----------
    tables : GroupTables
        Statistics of all groups, such as ``report.statistics.groups``.
    settings : Settings
    metrics : iterable of Metric
    level : float
        Confidence level.
    scores : mapping of float
        Exact scores to place the intervals around, as those of the groups' statistics are coarse.

    Raises
    ------
    SettingsError
        The level is out of range.
    """
    check_level(level)
    chosen = [metric for metric in metrics if not metric.needs and metric.key in scores]
    if (reason := too_few(tables)) is not None:
        return Intervals({}, dict.fromkeys((metric.key for metric in chosen), reason), {})
    left = leave_out(tables, settings, chosen)
    together = _Together(groups.OfGroups(tables), settings)
    values: dict[str, Range] = {}
    undefined: dict[str, str] = {}
    notes: dict[str, str] = {}
    for metric in chosen:
        key, exact = metric.key, scores[metric.key]
        try:
            if (hidden := left.hidden(metric)) and not metric.share:
                raise Undefined(hidden)
            together.require_carried(metric.needs_groups)
            if metric.gap is not None and metric.reduction is not None:
                found = together.gap_limits(metric.gap, metric.reduction, level, exact)
            else:
                squares = metric.squares(tables, settings) if callable(metric.squares) else metric.squares
                if squares and together.heavy:
                    raise Undefined(
                        "errors have such heavy tails that the spread of their squares is unknown, so no interval "
                        "would hold"
                    )
                found = _plain_limits(metric, left, exact, level, notes)
            if not all(map(math.isfinite, found)):
                raise Undefined("its limits overflow 64-bit numbers")
        except Undefined as reason:
            undefined[key] = str(reason)
            continue
        values[key] = float(found[0]), float(found[1])
        if not found[0] <= exact <= found[1]:
            side = "above" if exact > found[1] else "below"
            notes[key] = (
                f"the interval is of the debiased value, without what noise adds: the score lies {side} it"
            )
    return Intervals(values, undefined, notes, left)


def _plain_limits(metric: Metric, left: LeftOut, exact: float, level: float, notes: dict[str, str]) -> Range:
    """The jackknife's limits within the metric's range; Undefined if they would not hold."""
    influence = Influence.left_out(left.estimates(metric.key), left.freedom)
    if metric.share:
        return effective_share_limits(exact, influence, left.n_groups, level)
    if influence.dominance > HOPELESS:
        raise Undefined("a single set of groups carries nearly all of its spread, so no interval would hold")
    if influence.dominance > DOMINATED:
        notes[metric.key] = "a few groups carry most of its spread: the interval may be too narrow"
    low, high = influence.limits(exact, level)
    least, greatest = metric.bounds
    return min(max(low, least), exact), max(min(high, greatest), exact)


def effective_share_limits(share: float, influence: Influence, n_groups: int, level: float) -> Range:
    """Clopper and Pearson's limits of a share, for the equivalent number of independent samples.

    That number is ``p (1 - p) / variance`` times ``(t_inf / t_df)^2``; if the groups show no spread, the number of
    groups.
    """
    variance = influence.standard_error * influence.standard_error
    if variance > 0 and 0 < share < 1:
        tail = (1 + level) / 2
        narrow = float(special.ndtri(tail) / special.stdtrit(influence.freedom, tail))
        total = share * (1 - share) / variance * narrow**2
    else:
        total = float(n_groups)
    return share_limits(share * total, total, level)


@dataclass(eq=False)
class _Together:
    """Calibration gaps without each group, computed once for each kind."""

    statistics: Any
    settings: Settings
    made: dict[Gap, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    @cached_property
    def heavy(self) -> bool:
        """Return whether squared errors have too heavy a tail."""
        return heavy_tails(self.statistics, cautious=True)

    @cached_property
    def carrying(self) -> float:
        """Number of groups of equal variance that these groups are worth: ``(sum v)^2 / sum v^2``."""
        return size_freedom(groups.squares(self.statistics)[1]) + 1

    @cached_property
    def even(self) -> float:
        """Number of groups of equal mean variance that these groups are worth, whatever their sizes."""
        variance = groups.squares(self.statistics)[1]
        return size_freedom(variance / np.maximum(groups.sizes(self.statistics), groups.ZERO_GAP)) + 1

    def require_carried(self, needed_of: NeedsGroups) -> None:
        """Raise Undefined if a score is carried by too few groups."""
        fewest = needed_of.weighted if self.statistics.groups.weighted else needed_of.equal
        if fewest and self.carrying < fewest:
            raise Undefined(
                f"it is carried by groups with large standard deviations, worth {self.carrying:.1f} equal groups; "
                f"it needs {fewest}"
            )
        held = len(self.statistics.groups)
        needed = min(needed_of.even * held, ENOUGH_CARRYING)
        if needed and self.even < needed:
            raise Undefined(
                f"groups differ so much in scale that these {held} are worth {self.even:.1f} equal ones; "
                f"it needs {needed:.1f}"
            )

    def gap_limits(self, gap: Gap, reduction: Reduction, level: float, exact: float) -> Range:
        """Compute the limits of a reduced gap."""
        if reduction.is_largest and (reason := gap.why_no_largest(self.statistics, self.settings)):
            raise Undefined(reason)
        if gap not in self.made:
            self.made[gap] = gap.without_groups(self.statistics, self.settings)
        (without, shares), freedom = self.made[gap], groups.freedom(self.statistics)
        if reduction.is_largest:  # off by at most the largest gap of noise
            noise = np.abs(multivariate_t(left_out_moves(without), freedom)).max(axis=1)
            reach = float(np.quantile(noise, level))
            return max(exact - reach, 0.0), min(exact + reach, 1.0)
        return _mean_limits(gap, reduction, (without, shares), freedom, level)


def _mean_limits(
    gap: Gap, reduction: Reduction, made: tuple[FloatArray, FloatArray], freedom: float, level: float
) -> Range:
    """Compute the limits of a mean of gaps.

    Parameters
    ----------
    gap : Gap
        Those of levels move together.
    reduction : Reduction
    made : (array of shape (groups, bins or levels), array of shape (bins or levels,))
        The gaps without each group, and the share of the samples in each.
    freedom : float
        Degrees of freedom that the group sizes allow.
    level : float
    """
    without, weights = made[0], reduction.weights(made[1], gap.levels, made[0].shape[1])
    unit = max(float(np.abs(without).max()), groups.ZERO_GAP)  # its fourth power may overflow float64
    without, total = without / unit, float(weights.sum())
    share = weights / total
    centre, moves = without.mean(axis=0), left_out_moves(without)
    counted = reduction.counted(centre)
    estimate = float(share @ (np.square(counted) - np.square(moves).sum(axis=0)))
    squares = Influence.left_out(np.square(reduction.counted(without)) @ share, freedom)
    low = math.sqrt(max(squares.limits(estimate, level)[0], 0.0))
    high = math.sqrt(squares.limits(max(estimate, 0.0), level)[1])
    if gap.levels is not None:
        reach = float(special.stdtrit(squares.freedom, (1 + level) / 2))
        high = math.sqrt(max(estimate, 0.0)) + reach * float(np.linalg.norm(moves * np.sqrt(share), 2))
    noise = reduction.counted(multivariate_t(moves, freedom))
    if reduction.norm == "absolute":
        size = float(share @ np.abs(counted))
        low *= size / math.sqrt(float(share @ np.square(counted))) if size else 1.0
        by_chance = np.mean(np.abs(noise) @ share >= size)
    else:
        by_chance = np.mean(np.square(noise) @ share >= share @ np.square(counted))
    if by_chance >= (1 - level) / 2:
        low = 0.0
    low, high = low * unit, high * unit
    return (total * low * low, total * high * high) if reduction.degree == 2 else (total * low, total * high)


def with_intervals(
    report: Report, tables: GroupTables, settings: Settings, metrics: Iterable[Metric], level: float = 0.95
) -> Report:
    """The report with intervals of its scores, bands of a regression's curves, and the groups' statistics.

    ``provenance["intervals"]`` says how they were made, why some are missing, and which are rough.
    """
    from uq_tracking.inference.noise import banded, with_chance

    made = interval_table(tables, settings, metrics, level, scores=report.scores)
    about = {
        "level": level,
        "groups": tables.n_groups,
        "sets": min(len(tables), SETS),
        "undefined": dict(made.undefined),
        "notes": dict(made.notes),
    }
    statistics: Any = report.statistics
    curves = banded(dict(report.curves), tables, settings, level)
    if statistics is not None:
        statistics = replace(statistics, groups=tables)
        curves = with_chance(curves, statistics, report.task, settings)
    return replace(
        report,
        curves=curves,
        intervals=dict(made.values),
        left_out=made.left_out,
        statistics=statistics,
        provenance={**report.provenance, "intervals": about},
    )
