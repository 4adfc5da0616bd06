"""The runs of a comparison, read from what a user names; unreadable ones are listed with the reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from uq_tracking.curves.spec import is_overlaid
from uq_tracking.errors import BackendError, FileFormatError, InputTypeError, TrackerUnreachableError
from uq_tracking.metrics.registry import Metric, is_infinite
from uq_tracking.report import Report
from uq_tracking.runs.read import LoggedRun, logged_runs
from uq_tracking.tracking.names import REPORT_FILE, file_name

T = TypeVar("T")

RunSource: TypeAlias = "str | LoggedRun | Mapping[str, Report | Iterable[Report]]"
"""What a user may name: an address, a logged run, or reports by method."""


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """One run of a method, and its report without statistics; equal to another with equal ``to_dict()``.

    Attributes
    ----------
    label : str
        Name of the run, unique within a comparison.
    method : str
        Name of the method; its runs differ only by seed, fold or shard. The run's name if it has no method.
    uri : str or None
        Where the run is logged; None for a report passed directly.
    report : Report
    split : str or None
        The split or output that the report covers.
    logged : LoggedRun or None
        Gives access to what else the run stored; None in a comparison read from a file.
    """

    label: str
    method: str
    uri: str | None
    report: Report
    split: str | None = None
    logged: LoggedRun | None = field(default=None, repr=False)

    def score(self, metric: Metric) -> float | None:
        """The value of a score, infinite if it is infinitely bad; None without one."""
        if is_infinite(self.report.undefined.get(metric.key, "")):
            return -math.inf if metric.direction == "higher" else math.inf
        return self.report.scores.get(metric.key)

    @property
    def of_half(self) -> bool:
        """Whether scores after recalibration are of the half of the samples to which nothing was fitted."""
        return any("split" in entry for entry in self.report.scored_methods().values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        curves = {k: curve for k, curve in self.report.curves.items() if is_overlaid(k, self.report.task)}
        report = replace(self.report, curves=curves).to_dict()
        names = ("label", "method", "uri", "split")
        return {name: getattr(self, name) for name in names} | {"report": report}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScoredRun) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.label, self.method, self.uri, self.split))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ScoredRun:
        """Inverse of ``to_dict``."""
        uri, split = values["uri"], values.get("split")
        return cls(
            label=str(values["label"]),
            method=str(values["method"]),
            uri=None if uri is None else str(uri),
            report=Report.from_dict(values["report"]),
            split=None if split is None else str(split),
        )


@dataclass(frozen=True)
class SkippedRun:
    """A run that is not compared, and why."""

    label: str
    uri: str
    reason: str


def by_method(runs: Iterable[ScoredRun]) -> dict[str, list[ScoredRun]]:
    """The runs of each method, in order of appearance."""
    return by_value(runs, lambda run: run.method)


def by_value(runs: Iterable[ScoredRun], of: Callable[[ScoredRun], T]) -> dict[T, list[ScoredRun]]:
    """The runs of each value, in order of appearance."""
    groups: dict[T, list[ScoredRun]] = {}
    for run in runs:
        groups.setdefault(of(run), []).append(run)
    return groups


def collect(
    sources: Iterable[RunSource],
    where: str | None = None,
    split: str | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> tuple[list[ScoredRun], list[SkippedRun]]:
    """Read the reports of all sources; a run that is named twice is read once.

    Raises
    ------
    InputTypeError
        A source is not a URI, a logged run or a mapping of names to reports.
    BackendError
        No backend handles a URI, or its tracker does not answer.
    """
    runs: list[ScoredRun] = []
    skipped: list[SkippedRun] = []
    seen: set[tuple[str, str | None]] = set()
    for source in sources:
        if isinstance(source, Mapping):
            runs.extend(_given(source))
            continue
        for logged in _logged(source, where, split):
            if (logged.stored.uri, logged.split) in seen:
                continue
            seen.add((logged.stored.uri, logged.split))
            if progress is not None:
                progress(logged.name, len(seen))
            for found in _scored(logged):
                if isinstance(found, SkippedRun):
                    skipped.append(found)
                else:
                    runs.append(found)
    return runs, skipped


def _logged(source: Any, where: str | None, split: str | None) -> Iterable[LoggedRun]:
    if isinstance(source, LoggedRun):
        return [source if split is None else replace(source, split=split)]
    if isinstance(source, str):
        return logged_runs(source, where=where, split=split)
    cure = 'pass {"a name": report}' if isinstance(source, Report) else "see uq.compare"
    raise InputTypeError(
        f"cannot compare a {type(source).__name__}: sources are addresses such as mlflow:EXPERIMENT or dir:PATH, "
        f"logged runs, and mappings of names to reports; {cure}"
    )


def _given(reports: Mapping[str, Any]) -> Iterator[ScoredRun]:
    for method, value in reports.items():
        for report in value if isinstance(value, Iterable) else [value]:
            if not isinstance(report, Report):
                raise InputTypeError(
                    f"{method!r} names a {type(report).__name__}; pass a Report or a list of Reports"
                )
            yield ScoredRun(str(method), str(method), None, report)


def _scored(run: LoggedRun) -> list[ScoredRun | SkippedRun]:
    """Read a run's report; if it has none at this level, those of its splits or outputs."""
    try:
        return [_read(run)]
    except TrackerUnreachableError:
        raise  # every further run would wait for the same tracker
    except FileNotFoundError:
        return _below(run)
    except FileFormatError as error:
        reason = f"its report cannot be read: {error}"
    except Exception as error:  # a single run may fail in any way; the others are still compared
        reason = f"{type(error).__name__}: {error}"
    return [SkippedRun(run.name, run.stored.uri, reason)]


def _read(run: LoggedRun) -> ScoredRun:
    return ScoredRun(run.name, run.method or run.name, run.stored.uri, run.report(), run.split, run)


def _below(run: LoggedRun) -> list[ScoredRun | SkippedRun]:
    """The reports of the splits or outputs of a run without its own report; nothing for a comparison's run."""
    try:
        if run.holds_comparison():
            return []
    except BackendError as error:
        return [SkippedRun(run.name, run.stored.uri, str(error))]
    wanted = file_name(REPORT_FILE, run.split)
    splits = run.splits()
    if not splits:
        others = replace(run, split=None).splits()
        cure = (
            f"; it has one for split {', '.join(map(repr, others))}"
            if others
            else ", which uq.log writes when called without step="
        )
        return [SkippedRun(run.name, run.stored.uri, f"it has no {wanted}{cure}")]
    return [item for split in splits for item in _scored(replace(run, split=split))]
