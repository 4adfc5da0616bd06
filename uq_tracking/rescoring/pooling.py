"""Several runs as one: merge the statistics of seeds, folds or shards into one report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from uq_tracking.errors import (
    BackendError,
    FileFormatError,
    InputTypeError,
    SettingsError,
)
from uq_tracking.evaluation.scoring import score
from uq_tracking.logged_run import logged_runs
from uq_tracking.metrics.registry import select
from uq_tracking.report import Report
from uq_tracking.rescoring.scoring import about_input
from uq_tracking.settings import Family, Settings
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
) -> Report:
    """Score the samples of several runs as one set, from their statistics.

    For folds or shards this is the score of the whole. For seeds on the same data it is the score of a predictor that
    picks one of the runs at random; every sample counts once per run.

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

    Returns
    -------
    Report
        ``provenance["pooled"]`` names the runs. Pass it to ``uq.log`` to log it.

    Raises
    ------
    BackendError
        There are no runs to pool, or one holds no statistics.
    SettingsError
        The reports' settings differ.
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
    found = list(_found(sources, where, split))
    if not found:
        raise BackendError("there are no runs to pool")
    reports = [report for _, report in found]
    given = {"alpha": alpha, "n_bins": n_bins, "family": family, "dof": dof, "unit": unit}
    settings = _settings(found, {name: value for name, value in given.items() if value is not None})
    keys = (metrics,) if isinstance(metrics, str) else metrics
    pooled = _scored(_merged([report.statistics for report in reports]), settings, keys, reports[0])
    about = [{"run": name, "n": report.counts["n"], "digest": _digest(report)} for name, report in found]
    return replace(pooled, provenance={**pooled.provenance, "digest": _joint(reports), "pooled": about})


def _found(sources: Any, where: str | None, split: str | None) -> Iterable[tuple[str, Report]]:
    """Every report with its statistics, and its human-readable name."""
    for source in [sources] if isinstance(sources, str | Report) else sources:
        if isinstance(source, Report):
            yield "a report", _whole("a report", source)
        elif isinstance(source, str):
            for run in logged_runs(source, where=where, split=split):
                try:
                    yield run.stored.uri, _whole(run.stored.uri, run.settled().scored())
                except (FileNotFoundError, FileFormatError) as error:
                    raise BackendError(
                        f"{run.name} cannot be pooled: {error}; exclude it with where="
                    ) from error
        else:
            raise InputTypeError(
                f"cannot pool a {type(source).__name__}; pass addresses of runs, and reports"
            )


def _whole(name: str, report: Report) -> Report:
    if report.statistics is None:
        raise BackendError(
            f"{name} holds no statistics to pool; log the run again, or read it with Report.from_npz"
        )
    return report


def _settings(found: Sequence[tuple[str, Report]], given: dict[str, Any]) -> Settings:
    """The settings that all reports share, with those given."""
    first_name, first = found[0]
    common = Settings.from_dict({**first.settings, **given})
    for name, report in found[1:]:
        other = Settings.from_dict({**report.settings, **given})
        differing = [key for key, value in common.to_dict().items() if other.to_dict()[key] != value]
        if differing:
            raise SettingsError(
                f"{first_name} and {name} were scored with different {', '.join(differing)}; pass "
                f"{differing[0]}= to pool them"
            )
    return common


def _merged(statistics: Sequence[Any]) -> Any:
    """The sum, made in pairs so that every sample is moved only a few times."""
    while len(statistics) > 1:
        pairs = [statistics[k : k + 2] for k in range(0, len(statistics), 2)]
        statistics = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return statistics[0]


def _scored(statistics: Statistics, settings: Settings, keys: Iterable[str] | None, like: Report) -> Report:
    asked = None if keys is None else list(keys)
    chosen = select(statistics.task, asked)
    return score(statistics, settings, chosen, about=about_input(statistics, like), asked=asked)


def _digest(report: Report) -> Any:
    return report.provenance.get("digest")


def _joint(reports: Sequence[Report]) -> str | None:
    """Digest of all the data, whatever their order; None if a report lacks its own."""
    digests = [_digest(report) for report in reports]
    if not all(isinstance(digest, str) for digest in digests):
        return None
    return hashlib.sha256(",".join(sorted(digests)).encode()).hexdigest()[:16]
