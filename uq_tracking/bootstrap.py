"""Confidence intervals of scores, and of differences between two methods: a bootstrap over groups.

Samples of one image resemble each other, so drawing samples one by one would make intervals far too narrow. Groups
(images, scenes, blocks) are drawn instead, with replacement (Efron 1979; Davison and Hinkley 1997, section 3.8):
every group counts a multinomial number of times, its statistics are weighted with that number and added up, and
every metric is computed on the sum as on any other statistics.

The statistics of a group are a coarse sketch, whose scores lie a little beside the exact ones; and the scores of
resamples lie, on average, beside the score they are resampled from: for error measures above it, because a resample
is noisier than the data. Both offsets are left out: an interval is the percentiles of (resample - mean of the
resamples) around the exact score. These are widened by ``t(G - 1) / normal * sqrt(G / (G - 1))`` for G groups,
without which intervals from few groups are too narrow (Hesterberg 2015, section 4.4), and end at the limits of the
metric's range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.errors import IncompatibleStatisticsError, SettingsError
from uq_tracking.inputs import Predictions
from uq_tracking.metrics.registry import Metric, Undefined, compute
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_tables import (
    MOST_GROUPS,
    GroupTables,
    Label,
    digest_of,
    label_order,
    pool_chain,
)
from uq_tracking.statistics.labelled import LabelledSketches, plain_labels
from uq_tracking.statistics.regression import RegressionStatistics

if TYPE_CHECKING:
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]
Range = tuple[float, float]

FEWEST_GROUPS = 8
"""Below this the spread over groups is too badly known for an interval."""
DEFINED_SHARE = 0.9
"""Share of the resamples in which a metric must have a value."""
RESAMPLES = 400
AT_ONCE = 512
"""Resamples whose tables are held at a time."""


@dataclass(frozen=True, eq=False)
class Resamples:
    """Scores of bootstrap resamples.

    Attributes
    ----------
    coarse : dict of float
        Scores of the groups' own statistics, all counted once.
    scores : dict of array, shape (n_boot,)
        Scores of every resample; NaN where a metric is undefined.
    n_groups : int
        Number of groups (or pools of them) that were drawn.
    """

    coarse: Mapping[str, float]
    scores: Mapping[str, FloatArray]
    n_groups: int

    def deviations(self, key: str) -> FloatArray:
        """Resample minus coarse score where both are defined; Undefined where that is too rarely so."""
        values = self.scores[key][np.isfinite(self.scores[key])]
        if key not in self.coarse or len(values) < DEFINED_SHARE * len(self.scores[key]):
            raise Undefined(f"{key} is undefined in more than a tenth of the resamples")
        return values - self.coarse[key]


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals by metric key, and why others have none."""

    values: Mapping[str, Range]
    undefined: Mapping[str, str]


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
        The same, turned so that below 0 the first method is better.
    told_apart : bool
        Whether the interval leaves out 0; if not, the two cannot be told apart on this test set.
    """

    value: float
    interval: Range
    loss_interval: Range
    told_apart: bool


def intervals(
    groups: Mapping[Label, RegressionStatistics] | GroupTables,
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
    groups : mapping of label to RegressionStatistics, or GroupTables
        Sketches of all groups, such as ``Accumulator.group_statistics``.
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
    tables = groups if isinstance(groups, GroupTables) else GroupTables.of(groups)
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
        return Intervals({}, dict.fromkeys((metric.key for metric in chosen), _too_few(len(tables))))
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


def _too_few(groups: int) -> str:
    return f"{groups} groups are too few for an interval; it takes {FEWEST_GROUPS}"


def check_level(level: float, n_boot: int) -> None:
    """SettingsError for a confidence level or a number of resamples that makes no interval."""
    if not 0 < level < 1:
        raise SettingsError(f"level is {level}; it is a confidence level between 0 and 1, such as 0.95")
    if n_boot < 20 or int(n_boot) != n_boot:
        raise SettingsError(f"n_boot is {n_boot}; it is a whole number of resamples, at least 20")


def resample(
    tables: GroupTables, settings: Settings, metrics: Sequence[Metric], n_boot: int, seed: int
) -> Resamples:
    """Scores of ``n_boot`` resamples of the groups; the same seed and groups give the same resamples."""
    size = len(tables)
    weights = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), n_boot).astype(float)
    coarse = _scores(tables, np.ones((1, size)), settings, metrics)[0]
    starts = range(0, n_boot, AT_ONCE)
    rows = [
        row
        for start in starts
        for row in _scores(tables, weights[start : start + AT_ONCE], settings, metrics)
    ]
    found = {m.key: np.asarray([row.get(m.key, math.nan) for row in rows]) for m in metrics}
    return Resamples(coarse, found, size)


def _scores(
    tables: GroupTables, weights: FloatArray, settings: Settings, metrics: Sequence[Metric]
) -> list[dict[str, float]]:
    like = RegressionStatistics.zero()
    with np.errstate(all="ignore"):
        return [compute(one, settings, metrics)[0] for one in tables.resampled(weights, like)]


def deviation_range(deviations: FloatArray, level: float, n_groups: int) -> Range:
    """Percentiles of deviations around their mean, widened for few groups."""
    tail = (1 - level) / 2
    wide = float(special.stdtrit(n_groups - 1, 1 - tail) / special.ndtri(1 - tail))
    wide *= math.sqrt(n_groups / (n_groups - 1))
    low, high = np.quantile(deviations - deviations.mean(), [tail, 1 - tail])
    return wide * float(low), wide * float(high)


def _within(metric: Metric, centre: float, low: float, high: float) -> Range:
    """The interval inside the metric's range; it always holds the score itself."""
    least, greatest = metric.bounds
    return min(max(low, least), centre), max(min(high, greatest), centre)


def group_tables(predictions: Predictions, wanted: bool | None = None) -> GroupTables | None:
    """Statistics of the predictions' groups.

    Parameters
    ----------
    predictions : Predictions
    wanted : bool, optional
        None makes them where there are groups; True takes samples for groups where there are none.
    """
    if wanted is False or (wanted is None and predictions.groups is None):
        return None
    if predictions.groups is None:
        labels, codes = np.arange(predictions.n), np.arange(predictions.n)
    else:
        labels, codes = predictions.label_codes("groups")
        used, codes = np.unique(codes, return_inverse=True)
        labels = labels[used]
    names = plain_labels(labels)
    order = np.asarray(sorted(range(len(names)), key=lambda i: label_order(names[i])))
    place = np.empty(len(names), dtype=np.int64)
    place[order] = pool_chain(len(names), MOST_GROUPS)
    sketches = LabelledSketches()
    sketches.add(np.arange(place.max() + 1), place[codes], *predictions.flat())
    ordered = [names[i] for i in order.tolist()]
    members = predictions.target_digest() if predictions.groups is None else digest_of(ordered)
    pooled = GroupTables.of(sketches.statistics)
    return replace(
        pooled,
        labels=tuple(ordered) if len(ordered) == len(pooled) else pooled.labels,
        members=members,
        n_groups=len(names),
    )


def with_intervals(
    report: Report, tables: GroupTables, settings: Settings, metrics: Iterable[Metric], **options: Any
) -> Report:
    """The report with intervals of its scores, the groups' statistics, and how the intervals were made.

    ``options`` are ``level``, ``n_boot`` and ``seed``. Where there are no intervals, ``provenance["intervals"]`` says
    why.
    """
    made = interval_table(tables, settings, metrics, scores=report.scores, **options)
    about = {**options, "groups": tables.n_groups, "drawn": len(tables), "undefined": dict(made.undefined)}
    statistics = report.statistics
    if isinstance(statistics, RegressionStatistics):
        statistics = replace(statistics, groups=tables)
    return replace(
        report,
        intervals=dict(made.values),
        statistics=statistics,
        provenance={**report.provenance, "intervals": about},
    )


def paired_differences(
    one: RegressionStatistics | Report,
    other: RegressionStatistics | Report,
    settings: Settings | None = None,
    metrics: Iterable[Metric] | None = None,
    level: float = 0.95,
    n_boot: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, PairedDifference]:
    """Differences of two methods scored on the same groups: what is hard for both cancels.

    Parameters
    ----------
    one, other : RegressionStatistics or Report
        With the statistics of the same groups: evaluated, or logged, with ``groups=``.
    settings : Settings, optional
        By default those of ``one`` if it is a report.
    metrics : iterable of Metric, optional
        By default all that both define.
    level, n_boot, seed
        As for ``intervals``.

    Returns
    -------
    dict of PairedDifference
        By key; metrics that are undefined for one of the two, or in many resamples, are not there.

    Raises
    ------
    IncompatibleStatisticsError
        No groups are stored, there are too few, or they differ.

    Examples
    --------
    >>> import numpy as np, uq_tracking as uq
    >>> rng = np.random.default_rng(0)
    >>> truth, images = rng.normal(size=4000), np.repeat(np.arange(20), 200)
    >>> good, poor = (uq.evaluate(truth, truth + s * rng.normal(size=4000), np.ones(4000), groups=images)
    ...               for s in (1.0, 1.5))
    >>> paired_differences(good, poor)["rmse"].told_apart
    True
    """
    check_level(level, n_boot)
    (mine, my_scores), (theirs, their_scores) = _side(one), _side(other)
    tables = _same_groups(mine, theirs)
    settings = settings or _settings_of(one)
    chosen = _chosen(metrics)
    if not my_scores or metrics is not None:
        my_scores = _exact(mine, settings, chosen)
    if not their_scores or metrics is not None:
        their_scores = _exact(theirs, settings, chosen)
    chosen = [metric for metric in chosen if metric.key in my_scores and metric.key in their_scores]
    draws = [resample(part, settings, chosen, n_boot, seed) for part in tables]
    found = {}
    for metric in chosen:
        try:
            found[metric.key] = _paired(metric, my_scores[metric.key], their_scores[metric.key], draws, level)
        except Undefined:
            continue
    return found


def _side(given: RegressionStatistics | Report) -> tuple[RegressionStatistics, Mapping[str, float]]:
    if isinstance(given, RegressionStatistics):
        return given, {}
    if not isinstance(given.statistics, RegressionStatistics):
        raise IncompatibleStatisticsError("the report holds no statistics of a regression to resample")
    return given.statistics, given.scores


def _settings_of(given: RegressionStatistics | Report) -> Settings:
    return Settings() if isinstance(given, RegressionStatistics) else Settings.from_dict(given.settings)


def _chosen(metrics: Iterable[Metric] | None) -> list[Metric]:
    from uq_tracking.metrics.registry import select

    return [m for m in (select("regression") if metrics is None else metrics) if not m.needs]


def _exact(
    statistics: RegressionStatistics, settings: Settings, metrics: Sequence[Metric]
) -> dict[str, float]:
    with np.errstate(all="ignore"):
        return compute(statistics, settings, metrics)[0]


def _same_groups(one: RegressionStatistics, other: RegressionStatistics) -> tuple[GroupTables, GroupTables]:
    if one.groups is None or other.groups is None:
        raise IncompatibleStatisticsError(
            "statistics of groups are not stored for both; evaluate or log both with groups="
        )
    mine, theirs = one.groups, other.groups
    if mine.members != theirs.members:
        raise IncompatibleStatisticsError(
            f"the groups differ ({mine.n_groups} and {theirs.n_groups}); score both methods on the same images"
        )
    if len(mine) < FEWEST_GROUPS:
        raise IncompatibleStatisticsError(_too_few(len(mine)))
    fewest = min(len(mine), len(theirs))
    return mine.pooled_to(fewest), theirs.pooled_to(fewest)


def _paired(
    metric: Metric, mine: float, theirs: float, draws: Sequence[Resamples], level: float
) -> PairedDifference:
    """The difference of losses; turned back into scores for a metric that is better when higher."""
    turn = metric.loss
    value = turn(mine) - turn(theirs)
    first, second = (
        _losses(metric, drawn, exact) for drawn, exact in zip(draws, (mine, theirs), strict=True)
    )
    gaps = first - second
    gaps = gaps[np.isfinite(gaps)]
    if len(gaps) < DEFINED_SHARE * len(first):
        raise Undefined(f"{metric.key} is undefined in more than a tenth of the resamples")
    low, high = deviation_range(gaps - value, level, draws[0].n_groups)
    losses = (min(value + low, value), max(value + high, value))
    apart = not losses[0] <= 0 <= losses[1]
    if metric.direction == "higher":
        return PairedDifference(-value, (-losses[1], -losses[0]), losses, apart)
    return PairedDifference(value, losses, losses, apart)


def _losses(metric: Metric, drawn: Resamples, exact: float) -> FloatArray:
    """Losses of the resamples, moved by the offset of the coarse score."""
    if metric.key not in drawn.coarse:
        raise Undefined(f"{metric.key} is undefined for the groups' statistics")
    moved = drawn.scores[metric.key] - drawn.coarse[metric.key] + exact
    return np.asarray([metric.loss(value) for value in moved.tolist()])
