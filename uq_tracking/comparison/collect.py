"""From what a user names to runs with reports; a run that cannot be read is listed with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from uq_tracking.comparison.rows import ScoredRun, Skipped, with_unique_labels
from uq_tracking.errors import BackendError, FileFormatError, InputTypeError, TrackerUnreachableError
from uq_tracking.logged_run import LoggedRun, logged_runs
from uq_tracking.report import Report
from uq_tracking.tracking.names import REPORT_FILE, file_name

PAGE_FILE = "uq_comparison.html"
"""The page that ``Comparison.log`` stores; a run that holds nothing else of ours is no run to compare."""

Source: TypeAlias = "str | LoggedRun | Mapping[str, Report | Iterable[Report]]"
Found: TypeAlias = "ScoredRun | Skipped"


def collect(
    sources: Iterable[Source], where: str | None = None, split: str | None = None
) -> tuple[list[ScoredRun], list[Skipped]]:
    """Read the reports of all sources; what was read twice counts once.

    Raises
    ------
    InputTypeError
        A source is none of a URI, a logged run and a mapping of names to reports.
    BackendError
        No backend claims a URI, or its tracker does not answer.
    """
    runs: list[ScoredRun] = []
    skipped: list[Skipped] = []
    seen: set[tuple[str, str | None]] = set()
    for found in (found for source in sources for found in _read(source, where, split, seen)):
        if isinstance(found, Skipped):
            skipped.append(found)
        else:
            runs.append(found)
    return with_unique_labels(runs), skipped


def _read(
    source: Any, where: str | None, split: str | None, seen: set[tuple[str, str | None]]
) -> Iterator[Found]:
    if isinstance(source, Mapping):
        yield from _given(source)
        return
    for run in _logged(source, where, split):
        identity = (run.stored.uri, run.split)
        if identity not in seen:
            seen.add(identity)
            found = _scored(run)
            if found is not None:
                yield found


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
        for report in [value] if isinstance(value, Report) else value:
            if not isinstance(report, Report):
                raise InputTypeError(
                    f"{method!r} names a {type(report).__name__}; pass a Report or a list of Reports"
                )
            yield ScoredRun(str(method), str(method), None, report)


def _scored(run: LoggedRun) -> Found | None:
    """Read a run's report; None for a run that holds a comparison instead."""
    try:
        report = run.report()
    except TrackerUnreachableError:
        raise  # every further run would wait for the same tracker
    except FileNotFoundError:
        return _without_report(run)
    except FileFormatError as error:
        return Skipped(run.name, run.stored.uri, f"its report cannot be read: {error}")
    except Exception as error:  # one run of a tracker may fail in any way; the others are still compared
        return Skipped(run.name, run.stored.uri, f"{type(error).__name__}: {error}")
    wrong = [key for key, value in report.scores.items() if not math.isfinite(value)]
    if wrong:
        return Skipped(run.name, run.stored.uri, f"its report is damaged: {wrong[0]} is no finite number")
    return ScoredRun(run.name, run.method or run.name, run.stored.uri, report, run)


def _without_report(run: LoggedRun) -> Skipped | None:
    try:
        files = run.files
    except BackendError as error:
        return Skipped(run.name, run.stored.uri, str(error))
    if PAGE_FILE in files:
        return None
    wanted = file_name(REPORT_FILE, run.split)
    splits = sorted(name.split("/")[1] for name in files if _is_report_of_a_split(name))
    cure = f"; it has one for split {', '.join(map(repr, splits))}" if splits else ""
    return Skipped(run.name, run.stored.uri, f"it has no {wanted}{cure}")


def _is_report_of_a_split(name: str) -> bool:
    parts = name.split("/")
    return len(parts) == 3 and (parts[0], parts[2]) == ("uq", REPORT_FILE)
