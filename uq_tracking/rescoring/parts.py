"""What is pooled: the reports of runs, each once, and what makes one doubt that they belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from uq_tracking.errors import BackendError, FileFormatError, InputTypeError
from uq_tracking.formatting import run_text
from uq_tracking.logged_run import LoggedRun, logged_runs
from uq_tracking.report import Report
from uq_tracking.statistics.statistics import Statistics

UNNAMED = "a report"


@dataclass(frozen=True, eq=False)
class Part:
    """A report to pool, with its statistics, and where it is from."""

    report: Report
    statistics: Statistics
    run: LoggedRun | None = None

    @property
    def address(self) -> str:
        """The run's address."""
        return UNNAMED if self.run is None else self.run.stored.uri

    @property
    def method(self) -> str | None:
        """Name of the uncertainty method, from the run's tags."""
        return None if self.run is None else self.run.method

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
        return UNNAMED if self.run is None else run_text(self.run.name, self.run.stored.uri)


def parts_of(sources: Any, where: str | None, split: str | None) -> Iterator[Part]:
    """Every report with its statistics; a run that is named twice is read once, and a comparison's not at all."""
    seen: set[tuple[str, str | None]] = set()
    several = isinstance(sources, Iterable) and not isinstance(sources, str)
    for source in sources if several else [sources]:
        if isinstance(source, Report):
            yield _whole(source)
        elif isinstance(source, str):
            for found in logged_runs(source, where=where, split=split):
                run = found.settled()
                if (run.stored.uri, run.split) not in seen and not run.holds_comparison():
                    seen.add((run.stored.uri, run.split))
                    yield _read(run)
        else:
            raise InputTypeError(
                f"cannot pool a {type(source).__name__}; pass addresses of runs, and reports"
            )


def _read(run: LoggedRun) -> Part:
    name = run_text(run.name, run.stored.uri)
    try:
        return _whole(run.scored(), run)
    except FileNotFoundError:
        raise BackendError(f"{name} has {run.lacking()}; or exclude it with where=") from None
    except FileFormatError as error:
        raise BackendError(f"{name} cannot be pooled: {error}; exclude it with where=") from error


def _whole(report: Report, run: LoggedRun | None = None) -> Part:
    if report.statistics is None:
        name = UNNAMED if run is None else run_text(run.name, run.stored.uri)
        raise BackendError(
            f"{name} holds no statistics to pool; log the run again, or read it with Report.from_npz"
        )
    return Part(report, report.statistics, run)


def distinct(parts: Sequence[Part]) -> tuple[list[Part], list[str]]:
    """The parts whose predictions are in no other, and which are left out or count twice."""
    last = {_predictions(part): part for part in parts}
    left_out = [
        f"{part} holds the same predictions as {_other(kept)}, which counts"
        for part in parts
        if (kept := last[_predictions(part)]) is not part
    ]
    digests = {part.digest for part in last.values()}
    kept_parts = [part for part in last.values() if not part.inner & digests]
    left_out += [
        f"{part} is a pool of runs that are pooled here, and is left out; exclude it with where="
        for part in last.values()
        if part.inner & digests
    ]
    left_out += [
        f"{one} and {other} are pools that share runs, whose samples count twice; pool the runs themselves"
        for one, other in combinations(kept_parts, 2)
        if one.inner & other.inner
    ]
    return kept_parts, left_out


def _predictions(part: Part) -> object:
    """What identifies the predictions; without a digest, the report itself."""
    return id(part.report) if part.digest is None else part.digest


def _other(part: Part) -> str:
    return "a later report" if part.run is None else str(part)


def doubts(parts: Sequence[Part]) -> list[str]:
    """Why the runs may not belong together: several methods, or several splits."""
    runs = [part for part in parts if part.run is not None]
    found = []
    for what, values, cure in (
        ("methods", {part.method for part in runs}, "where="),
        ("splits or outputs", {part.run.split for part in runs if part.run is not None}, "split="),
    ):
        if len(values) > 1:
            found.append(f"runs of several {what} are pooled: {_listed(values)}; choose one with {cure}")
    return found


def _listed(values: Iterable[str | None]) -> str:
    return ", ".join(sorted("none" if value is None else repr(value) for value in values))
