"""Several runs as one: merge the statistics of seeds, folds or shards into one report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from uq_tracking.checks import as_names
from uq_tracking.errors import BackendError, SettingsError, warn
from uq_tracking.evaluation.scoring import score
from uq_tracking.inference.intervals import with_intervals
from uq_tracking.metrics.registry import select
from uq_tracking.report import Report
from uq_tracking.rescoring.parts import Part, distinct, doubts, parts_of
from uq_tracking.rescoring.pooled_groups import groups_of
from uq_tracking.rescoring.scoring import about_input, level_of
from uq_tracking.settings import Family, Settings, check_level
from uq_tracking.statistics.statistics import Statistics


def pool(
    sources: str | Report | Iterable[str | Report],
    *,
    where: str | None = None,
    split: str | None = None,
    metrics: str | Iterable[str] | None = None,
    alpha: float | None = None,
    n_bins: int | None = None,
    family: Family | None = None,
    dof: float | None = None,
    unit: str | None = None,
    level: float | None = None,
) -> Report:
    """Score the samples of several runs as one set, from their statistics.

    For folds or shards this is the score of the whole. For seeds on the same data it is the score of a predictor that
    picks one of the runs at random; every sample counts once per run. A run named twice counts once. Of runs or
    reports with the same predictions only the last one counts, with a warning, and a pool is left out if one of its
    parts is there. Runs of several methods or splits are pooled with a warning.

    Groups with equal labels are one group: the image that all seeds predict, or of which each shard holds a part. If
    the runs' targets differ, as in folds that each number their images from 0, a warning says so.

    Parameters
    ----------
    sources : str, Report, or several of these
        Addresses, such as ``mlflow:EXPERIMENT`` for all its runs, and reports that hold their statistics.
    where, split : str, optional
        Filter expression, in the tracker's own syntax, and the split to read.
    metrics : str or iterable of str, optional
        Keys to compute; by default the whole suite.
    alpha, n_bins, family, dof, unit : optional
        As for ``Settings``; by default those of the reports, which must then agree.
    level : float, optional
        Confidence level of the intervals, which there are if all runs have groups; by default that of the reports.

    Returns
    -------
    Report
        ``provenance["pooled"]`` names the runs. Pass it to ``uq.log`` to log it.

    Raises
    ------
    BackendError
        There are no runs to pool, or one holds no statistics.
    SettingsError
        The reports' settings or confidence levels differ.
    IncompatibleStatisticsError
        The tasks, std floors or numbers of classes differ.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> folds = [uq.evaluate([1.0, 2.0], [1.5, 1.0], [1.0, 1.0]), uq.evaluate([3.0, 5.0], [3.5, 4.0], [1.0, 1.0])]
    >>> pooled = uq.pool(folds)
    >>> pooled.counts["n"], pooled.scores["mae"]
    (4, 0.75)
    """
    if level is not None:
        check_level(level)
    keys = None if metrics is None else as_names("metrics", metrics)
    every = list(parts_of(sources, where, split))
    parts, repeats = distinct(every)
    if not parts:
        raise BackendError("there are no runs to pool")
    given = {"alpha": alpha, "n_bins": n_bins, "family": family, "dof": dof, "unit": unit}
    settings = _settings(parts, {name: value for name, value in given.items() if value is not None})
    chosen_level = _level(parts) if level is None else level
    groups, reasons = groups_of(parts)
    statistics = replace(_merged([replace(part.statistics, groups=None) for part in parts]), groups=groups)
    for doubt in (*repeats, *doubts(parts), *reasons):
        warn(doubt)
    pooled = _scored(statistics, settings, keys, parts[0].report, chosen_level)
    about = [{"run": part.address, "n": part.report.counts["n"], "digest": part.digest} for part in parts]
    return replace(pooled, provenance={**pooled.provenance, "digest": _joint(parts), "pooled": about})


def _settings(parts: Sequence[Part], given: dict[str, Any]) -> Settings:
    """The settings that all reports share, with those given."""
    first = parts[0]
    common = Settings.from_dict({**first.report.settings, **given})
    for part in parts[1:]:
        other = Settings.from_dict({**part.report.settings, **given})
        differing = [key for key, value in common.to_dict().items() if other.to_dict()[key] != value]
        if differing:
            raise SettingsError(
                f"{first} and {part} were scored with different {', '.join(differing)}; pass "
                f"{differing[0]}= to pool them"
            )
    return common


def _level(parts: Sequence[Part]) -> float:
    """The confidence level that all reports share."""
    levels = sorted(
        {level_of(part.report) for part in parts if part.report.intervals} or {level_of(parts[0].report)}
    )
    if len(levels) > 1:
        raise SettingsError(
            f"the reports' intervals have different levels ({', '.join(map(str, levels))}); pass level= to pool them"
        )
    return levels[0]


def _merged(statistics: Sequence[Any]) -> Any:
    """The sum, made in pairs so that every sample is moved only a few times."""
    while len(statistics) > 1:
        pairs = [statistics[k : k + 2] for k in range(0, len(statistics), 2)]
        statistics = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return statistics[0]


def _scored(
    statistics: Statistics, settings: Settings, keys: Iterable[str] | None, like: Report, level: float
) -> Report:
    asked = None if keys is None else list(keys)
    chosen = select(statistics.task, asked)
    report = score(statistics, settings, chosen, about=about_input(statistics, like), asked=asked)
    groups = statistics.groups
    return report if groups is None else with_intervals(report, groups, settings, chosen, level)


def _joint(parts: Sequence[Part]) -> str | None:
    """Digest of all the data, whatever their order; None if a report lacks its own."""
    digests = [part.digest for part in parts if part.digest is not None]
    if len(digests) < len(parts):
        return None
    return hashlib.sha256(",".join(sorted(digests)).encode()).hexdigest()[:16]
