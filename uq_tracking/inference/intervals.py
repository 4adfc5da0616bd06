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
rejected. Upper limits of areas between coverage and level hold for gaps that move together, as these do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from uq_tracking.inference import read
from uq_tracking.inference.gaps import GRIDS, SCORES, GapScore, Kind, weighted_absolute
from uq_tracking.inference.leave_out import (
    SETS,
    LeftOut,
    leave_out,
    too_few,
)
from uq_tracking.inference.limits import DOMINATED, Influence, Range, share_limits, size_freedom
from uq_tracking.inference.noise import (
    group_moves,
    held_by_bins,
    is_thin,
    left_out_moves,
    multivariate_t,
)
from uq_tracking.inference.noise import without as without_each
from uq_tracking.inference.tails import heavy_tails
from uq_tracking.metrics.registry import Metric, NeedsGroups, Undefined
from uq_tracking.settings import Settings, check_level
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.orders import FloatArray

if TYPE_CHECKING:
    from uq_tracking.report import Report

HOPELESS = 0.75
"""From this dominance on (see ``limits``) there is no interval."""
ENOUGH_CARRYING = 25
"""This many equal groups are enough, whatever their share."""
HEAVY_TAILS = (
    "errors have such heavy tails that the spread of their squares is unknown, so no interval would hold"
)


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals by metric key, why others have none, and which are rough."""

    values: Mapping[str, Range]
    undefined: Mapping[str, str]
    notes: Mapping[str, str]


def interval_table(
    tables: GroupTables,
    settings: Settings,
    metrics: Iterable[Metric],
    level: float = 0.95,
    *,
    scores: Mapping[str, float] | None = None,
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
    scores : mapping of float, optional
        Exact scores to place the intervals around; by default those of the groups' coarse statistics.

    Raises
    ------
    SettingsError
        The level is out of range.
    """
    check_level(level)
    chosen = [metric for metric in metrics if not metric.needs and (scores is None or metric.key in scores)]
    if (reason := too_few(tables)) is not None:
        return Intervals({}, dict.fromkeys((metric.key for metric in chosen), reason), {})
    known = SCORES.get(tables.layout.task, {})
    plain = [metric for metric in chosen if metric.key not in known]
    left = leave_out(tables, settings, plain)
    together = _Together(read.of_groups(tables), settings)
    values: dict[str, Range] = {}
    undefined: dict[str, str] = {}
    notes: dict[str, str] = {}
    for metric in chosen:
        key = metric.key
        try:
            if (hidden := left.hidden(metric)) and not metric.share:
                raise Undefined(hidden)
            together.require_carried(metric.needs_groups)
            if key in known:
                exact = None if scores is None else scores[key]
                found = together.gap_limits(known[key], level, exact)
            else:
                if _averages_squares(metric, tables, settings) and together.heavy:
                    raise Undefined(HEAVY_TAILS)
                exact = left.whole.get(key) if scores is None else scores[key]
                found = _plain_limits(metric, left, exact, level, notes)
            if not all(map(math.isfinite, found)):
                raise OverflowError
        except Undefined as reason:
            undefined[key] = str(reason)
            continue
        except OverflowError:
            undefined[key] = "its limits overflow 64-bit numbers"
            continue
        values[key] = found
    return Intervals(values, undefined, notes)


def _averages_squares(metric: Metric, tables: GroupTables, settings: Settings) -> bool:
    return metric.squares(tables, settings) if callable(metric.squares) else metric.squares


def intervals(
    tables: GroupTables, settings: Settings, metrics: Iterable[Metric], level: float = 0.95
) -> dict[str, Range]:
    """Confidence intervals of the groups' own scores by key; see ``interval_table``."""
    return dict(interval_table(tables, settings, metrics, level).values)


def _plain_limits(
    metric: Metric, left: LeftOut, exact: float | None, level: float, notes: dict[str, str]
) -> Range:
    """The jackknife's limits within the metric's range; Undefined if they would not hold."""
    influence = left.influence(metric.key)
    if exact is None:
        raise Undefined(f"{metric.key} is undefined")
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
    made: dict[Kind, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    @cached_property
    def heavy(self) -> bool:
        """Whether squared errors have too heavy a tail."""
        return heavy_tails(self.statistics, cautious=True)

    @cached_property
    def carrying(self) -> float:
        """How many groups of equal variance these groups are worth: ``(sum v)^2 / sum v^2``."""
        return size_freedom(read.group_squares(self.statistics)[1]) + 1

    @cached_property
    def even(self) -> float:
        """How many groups of equal mean variance these groups are worth, whatever their sizes."""
        variance = read.group_squares(self.statistics)[1]
        return size_freedom(variance / np.maximum(read.group_sizes(self.statistics), read.ZERO_GAP)) + 1

    def require_carried(self, needed_of: NeedsGroups) -> None:
        """Raise Undefined if a score is carried by too few groups."""
        fewest = needed_of.weighted if self.statistics.groups.weighted else needed_of.equal
        if fewest and self.carrying < fewest:
            raise Undefined(
                f"it is carried by groups with large standard deviations, worth {self.carrying:.1f} equal groups; "
                f"it needs {fewest}"
            )
        groups = len(self.statistics.groups)
        needed = min(needed_of.even * groups, ENOUGH_CARRYING)
        if needed and self.even < needed:
            raise Undefined(
                f"groups differ so much in scale that these {groups} are worth {self.even:.1f} equal ones; "
                f"it needs {needed:.1f}"
            )

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom that the group sizes allow."""
        return read.group_freedom(self.statistics)

    def gap_limits(self, score: GapScore, level: float, exact: float | None) -> Range:
        """Limits of a score of gaps."""
        kind = score.kind
        if (
            kind == "variance" and score.score is weighted_absolute
        ):  # in the target's unit, which also varies over groups
            return gap_limits(
                replace(score, kind="confidence"),
                *_squared_gaps(self.statistics, self.settings),
                self.freedom,
                level,
                exact,
            )
        if score.norm == "largest" and kind == "confidence":
            _require_full_bins(self.statistics, self.settings)
        if kind not in self.made:
            self.made[kind] = group_moves(self.statistics, kind, self.settings)
        return gap_limits(score, *self.made[kind], self.freedom, level, exact)


def _require_full_bins(statistics: Any, settings: Settings) -> None:
    """Raise Undefined if a bin holds samples, but too few to know its gap."""
    samples, groups = held_by_bins(statistics, settings.n_bins)
    thin = samples[(samples > 0) & is_thin(samples, groups)]
    if len(thin):
        raise Undefined(
            f"{len(thin)} bins hold too few samples (as few as {thin.min():.0f}) but may have the largest gap; "
            "lower n_bins"
        )


def _squared_gaps(statistics: Any, settings: Settings) -> tuple[FloatArray, FloatArray]:
    """Mean squared error minus mean variance of each bin without each group, and the bins' shares of the samples."""
    count, variance, square = read.variance_sums(statistics, settings.n_bins)
    return without_each(square - variance) / without_each(count), count.sum(axis=0) / read.group_total(
        statistics
    )


def gap_limits(
    score: GapScore,
    without: FloatArray,
    weights: FloatArray,
    freedom: float,
    level: float,
    exact: float | None = None,
) -> Range:
    """Limits of a score of gaps.

    Parameters
    ----------
    score : GapScore
    without : array, shape (groups, bins or levels)
        The gaps without each group; for bins of variances, the log of mean squared error over mean variance.
    weights : array, shape (bins,)
        Weights of bins that have their own.
    freedom : float
        Degrees of freedom that the group sizes allow.
    level : float
    exact : float, optional
        The score itself, around which to place the limits of a largest gap; by default that of the gaps.
    """
    if score.kind == "variance":
        without = np.expm1(without / 2)
    if score.norm == "largest":
        return _largest_limits(without, freedom, level, exact)
    each = score.weights(weights, without.shape[1])
    unit = max(float(np.abs(without).max()), read.ZERO_GAP)  # its fourth power may overflow float64
    without, total = without / unit, float(each.sum())
    share = each / total
    centre, moves = without.mean(axis=0), left_out_moves(without)
    gap = score.counted(centre)
    estimate = float(share @ (np.square(gap) - np.square(moves).sum(axis=0)))
    squares = Influence.left_out(np.square(score.counted(without)) @ share, freedom)
    low = math.sqrt(max(squares.limits(estimate, level)[0], 0.0))
    high = math.sqrt(squares.limits(max(estimate, 0.0), level)[1])
    if score.kind in GRIDS:
        reach = float(special.stdtrit(squares.freedom, (1 + level) / 2))
        high = math.sqrt(max(estimate, 0.0)) + reach * float(np.linalg.norm(moves * np.sqrt(share), 2))
    noise = score.counted(multivariate_t(moves, freedom))
    if score.norm == "absolute":
        size = float(share @ np.abs(gap))
        low *= size / math.sqrt(float(share @ np.square(gap))) if size else 1.0
        by_chance = np.mean(np.abs(noise) @ share >= size)
    else:
        by_chance = np.mean(np.square(noise) @ share >= share @ np.square(gap))
    if by_chance >= (1 - level) / 2:
        low = 0.0
    low, high = low * unit, high * unit
    return (total * low * low, total * high * high) if score.norm == "square" else (total * low, total * high)


def _largest_limits(without: FloatArray, freedom: float, level: float, exact: float | None) -> Range:
    """Limits of the largest gap, which is off by at most the largest gap of noise."""
    noise = np.abs(multivariate_t(left_out_moves(without), freedom)).max(axis=1)
    observed = float(np.abs(without.mean(axis=0)).max()) if exact is None else exact
    reach = float(np.quantile(noise, level))
    return max(observed - reach, 0.0), min(observed + reach, 1.0)


def with_intervals(
    report: Report, tables: GroupTables, settings: Settings, metrics: Iterable[Metric], level: float = 0.95
) -> Report:
    """The report with intervals of its scores, bands of a regression's curves, and the groups' statistics.

    ``provenance["intervals"]`` says how they were made, why some are missing, and which are rough.
    """
    from uq_tracking.inference.bands import banded
    from uq_tracking.inference.consistency import with_chance

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
        statistics=statistics,
        provenance={**report.provenance, "intervals": about},
    )
