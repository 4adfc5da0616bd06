"""Several runs as one: merge the statistics of seeds, folds or shards into one report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from uq_tracking.checks import as_names, named_options
from uq_tracking.errors import BackendError, FileFormatError, InputTypeError, SettingsError, warn
from uq_tracking.evaluation.scoring import score
from uq_tracking.formatting import run_text, some_of
from uq_tracking.inference import Judgement, no_verdict
from uq_tracking.inference.intervals import with_intervals
from uq_tracking.inference.words import UNORDERED
from uq_tracking.metrics.registry import select
from uq_tracking.report import Report, same_targets
from uq_tracking.runs.read import LoggedRun, logged_runs
from uq_tracking.runs.request import checked_changes
from uq_tracking.runs.score import about_input, level_of
from uq_tracking.settings import Family, Settings, check_level
from uq_tracking.statistics.groups import GroupTables, digest_of
from uq_tracking.statistics.statistics import Statistics

MOST_SHOWN = 3
"""How many labels or runs a message names."""


@named_options
def pool(
    sources: str | Report | Iterable[str | Report],
    *,
    where: str | None = None,
    split: str | None = None,
    metrics: str | Iterable[str] | None = None,
    level: float | None = None,
    alpha: float | None = None,
    n_bins: int | None = None,
    family: Family | None = None,
    dof: float | None = None,
    unit: str | None = None,
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
    level : float, optional
        Confidence level of the intervals, which there are if all runs have groups; by default that of the reports.
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
    changes = checked_changes(alpha=alpha, n_bins=n_bins, family=family, dof=dof, unit=unit)
    parts, repeats = _distinct(list(_parts(sources, where, split)))
    if not parts:
        raise BackendError("there are no runs to pool")
    common = _settings(parts, changes)
    level = _level(parts) if level is None else level
    groups, assumptions = _groups(parts)
    statistics = replace(_merged([replace(part.statistics, groups=None) for part in parts]), groups=groups)
    for doubt in (*repeats, *_doubts(parts), *assumptions):
        warn(doubt)
    chosen = select(statistics.task, keys)
    about = about_input(statistics, parts[0].report)
    report = score(statistics, common, chosen, about=about, asked=keys)
    if groups is not None:
        report = with_intervals(report, groups, common, chosen, level)
    elif any(part.report.verdict.worth is not None for part in parts):
        report = replace(report, judgement=Judgement(report.noise, no_verdict(UNORDERED)))
    pooled = [
        {
            "run": part.name if part.run is None else part.run.stored.uri,
            "n": part.report.counts["n"],
            "digest": part.digest,
        }
        for part in parts
    ]
    return replace(report, provenance={**report.provenance, "digest": _joint(parts), "pooled": pooled})


@dataclass(frozen=True, eq=False)
class _Part:
    """A report to pool, its statistics, and the run that holds it."""

    report: Report
    statistics: Statistics
    name: str
    run: LoggedRun | None

    @property
    def digest(self) -> str | None:
        """Digest of the predictions, if the report knows it."""
        digest = self.report.provenance.get("digest")
        return digest if isinstance(digest, str) else None

    @property
    def inner(self) -> set[Any]:
        """Digests of the parts of a pool."""
        return {part.get("digest") for part in self.report.provenance.get("pooled") or ()} - {None}

    def __str__(self) -> str:
        return self.name


def _parts(sources: Any, where: str | None, split: str | None) -> Iterator[_Part]:
    """Read every report with its statistics; a run that is named twice once, and a comparison's not at all."""
    seen: set[tuple[str, str | None]] = set()
    several = isinstance(sources, Iterable) and not isinstance(sources, str)
    for source in sources if several else [sources]:
        if isinstance(source, Report):
            yield _part(source)
        elif isinstance(source, str):
            for found in logged_runs(source, where=where, split=split):
                run = found.settled()
                if (run.stored.uri, run.split) not in seen and not run.holds_comparison():
                    seen.add((run.stored.uri, run.split))
                    yield _part(run)
        else:
            raise InputTypeError(
                f"cannot pool a {type(source).__name__}; pass addresses of runs, and reports"
            )


def _part(source: Report | LoggedRun) -> _Part:
    """Read the statistics of a report or run."""
    if isinstance(source, Report):
        name, report, run = "a report", source, None
    else:
        name, run = run_text(source.name, source.stored.uri), source
        try:
            report = source.scored()
        except FileNotFoundError:
            raise BackendError(f"{name} has {run.lacking()}; or exclude it with where=") from None
        except FileFormatError as error:
            raise BackendError(f"{name} cannot be pooled: {error}; exclude it with where=") from error
    if report.statistics is None:
        raise BackendError(
            f"{name} holds no statistics to pool; log the run again, or read it with Report.from_npz"
        )
    return _Part(report, report.statistics, name, run)


def _distinct(parts: Sequence[_Part]) -> tuple[list[_Part], list[str]]:
    """Return the parts whose predictions are in no other, and sentences on those left out or counted twice."""
    # without a digest of its predictions, a part is its report
    keys = [part.digest or id(part.report) for part in parts]
    last = dict(zip(keys, parts, strict=True))
    digests = {part.digest for part in last.values()}
    kept = [part for part in last.values() if not part.inner & digests]
    repeats = [
        f"{part} holds the same predictions as "
        f"{'a later report' if counted.run is None else counted}, which counts"
        for key, part in zip(keys, parts, strict=True)
        if (counted := last[key]) is not part
    ]
    repeats += [
        f"{part} is a pool of runs that are pooled here, and is left out; exclude it with where="
        for part in last.values()
        if part.inner & digests
    ]
    repeats += [
        f"{one} and {other} are pools that share runs, whose samples count twice; pool the runs themselves"
        for one, other in combinations(kept, 2)
        if one.inner & other.inner
    ]
    return kept, repeats


def _doubts(parts: Sequence[_Part]) -> Iterator[str]:
    """Yield why the runs may not belong together: several methods, or several splits."""
    runs = [part.run for part in parts if part.run is not None]
    for what, values, cure in (
        ("methods", {run.method for run in runs}, "where="),
        ("splits or outputs", {run.split for run in runs}, "split="),
    ):
        if len(values) > 1:
            names = ", ".join(sorted("none" if value is None else repr(value) for value in values))
            yield f"runs of several {what} are pooled: {names}; choose one with {cure}"


def _settings(parts: Sequence[_Part], changes: Mapping[str, Any]) -> Settings:
    """Return the settings that all reports share, with the changes."""
    first = parts[0]
    common = Settings.from_dict({**first.report.settings, **changes})
    for part in parts[1:]:
        other = Settings.from_dict({**part.report.settings, **changes}).to_dict()
        differing = [key for key, value in common.to_dict().items() if other[key] != value]
        if differing:
            raise SettingsError(
                f"{first} and {part} were scored with different {', '.join(differing)}; pass "
                f"{differing[0]}= to pool them"
            )
    return common


def _level(parts: Sequence[_Part]) -> float:
    """Return the confidence level that all reports share."""
    levels = {level_of(part.report) for part in parts if part.report.intervals}
    if len(levels) > 1:
        shown = ", ".join(map(str, sorted(levels)))
        raise SettingsError(
            f"the reports' intervals have different levels ({shown}); pass level= to pool them"
        )
    return levels.pop() if levels else level_of(parts[0].report)


def _merged(statistics: Sequence[Any]) -> Any:
    """Return the sum, made in pairs so that every sample is moved only a few times."""
    while len(statistics) > 1:
        pairs = [statistics[k : k + 2] for k in range(0, len(statistics), 2)]
        statistics = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return statistics[0]


def _joint(parts: Sequence[_Part]) -> str | None:
    """Return a digest of all the data, whatever their order; None if a report lacks its own."""
    digests = [part.digest for part in parts if part.digest is not None]
    if len(digests) < len(parts):
        return None
    return hashlib.sha256(",".join(sorted(digests)).encode()).hexdigest()[:16]


_Held = Sequence[tuple[_Part, GroupTables]]


def _groups(parts: Sequence[_Part]) -> tuple[GroupTables | None, list[str]]:
    """Return the groups of all parts, if all have them, and what was assumed of them."""
    held = [(part, tables) for part in parts if (tables := part.statistics.groups) is not None]
    lacking = dict.fromkeys(str(part) for part in parts if part.statistics.groups is None)
    if held and lacking:
        return None, [
            f"no intervals, as there are runs scored without groups ({some_of(lacking, MOST_SHOWN)}); log all with "
            "groups="
        ]
    if len(held) < 2:
        return next((tables for _, tables in held), None), []
    first, *rest = _labelled([tables for _, tables in held])
    merged = first.merge(*rest)
    if merged is None:
        return None, []
    lost = {tables.members: tables.n_groups - len(tables) for _, tables in held}
    return replace(merged, n_groups=merged.n_groups + sum(lost.values())), [*_shared(held), *_apart(held)]


def _labelled(every: Sequence[GroupTables]) -> list[GroupTables]:
    """Return the tables; groups whose labels are unknown get labels that only runs of the same groups share."""
    fewest: dict[str, int] = {}
    for tables in every:
        if not _has_labels(tables):
            fewest[tables.members] = min(len(tables), fewest.get(tables.members, len(tables)))
    found = []
    for tables in every:
        if tables.members in fewest:
            tables = tables.pooled_to(fewest[tables.members])
            labels = tuple(f"{tables.members} {number:06}" for number in range(len(tables)))
            tables = replace(tables, labels=labels, n_groups=len(labels))
        found.append(tables)
    return found


def _has_labels(tables: GroupTables) -> bool:
    """True if its groups have the user's labels: not if they were pooled to be stored, or are single samples."""
    return len(tables) == tables.n_groups and tables.members == digest_of(tables.labels)


def _shared(held: _Held) -> Iterator[str]:
    """Yield what was assumed of groups that have equal labels in runs of different targets."""
    labels: dict[tuple[type, object], None] = {}
    for (one, own), (other, theirs) in combinations(held, 2):
        if _has_labels(own) and _has_labels(theirs) and not same_targets(one.report, other.report):
            known = {(type(label), label) for label in theirs.labels}
            labels |= dict.fromkeys(item for label in own.labels if (item := (type(label), label)) in known)
    if labels:
        shown = some_of((repr(label) for _, label in labels), MOST_SHOWN)
        yield (
            f"runs of different targets share labels of groups ({shown}), each of which is taken for one group; if "
            "they are different images, log the runs again with labels that no two runs share"
        )


def _apart(held: _Held) -> Iterator[str]:
    """Yield what was assumed of groups that were pooled to be stored, which lost their labels."""
    pooled = dict.fromkeys(
        str(part) for part, tables in held if len(tables) < tables.n_groups < part.report.counts["n"]
    )
    if pooled and len({tables.members for _, tables in held}) > 1:
        yield (
            f"the groups of {some_of(pooled, MOST_SHOWN)} were too many to be stored with their labels, and are "
            "taken for others than those of the other runs"
        )
