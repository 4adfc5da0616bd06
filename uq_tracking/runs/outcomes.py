"""Outcomes of a rescore or sync, run by run: as data, as text and in a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from uq_tracking.errors import TrackerUnreachableError, UQTrackingError, redact
from uq_tracking.formatting import encodable
from uq_tracking.runs.read import LoggedRun

if TYPE_CHECKING:
    from rich.console import Console

Status = Literal["done", "skipped", "failed"]
STYLE: dict[Status, str] = {"done": "green", "skipped": "dim", "failed": "red"}
MOST = 20
"""Maximum number of table rows for runs with the same status."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run.

    Attributes
    ----------
    uri, name : str
        The run.
    status : {"done", "skipped", "failed"}
    reason : str
        Why it was skipped or failed; if done, what was written.
    source : str or None
        What the scores were computed from: ``exact statistics``, ``sketch`` or ``predictions``.
    error : Exception or None
        The cause of the failure.
    """

    uri: str
    name: str
    status: Status
    reason: str
    source: str | None = None
    error: Exception | None = None


Progress = Callable[[Outcome, int], object]
"""Called with every outcome, as soon as it is available, and the total number of runs."""


@dataclass(frozen=True)
class Summary:
    """The outcomes of all runs, in order; for a dry run, what they would be."""

    outcomes: Sequence[Outcome]
    dry_run: bool = False

    @property
    def done(self) -> list[Outcome]:
        """Runs that were written to, or would be."""
        return self._with("done")

    @property
    def skipped(self) -> list[Outcome]:
        """Runs with nothing to do, or without the data to do it."""
        return self._with("skipped")

    @property
    def failed(self) -> list[Outcome]:
        """Runs that could not be rescored; they keep their old scores."""
        return self._with("failed")

    def raise_failures(self) -> None:
        """Raise UQTrackingError with all reasons if any run failed."""
        if self.failed:
            lines = [f"{outcome.uri}: {outcome.reason}" for outcome in self.failed]
            raise UQTrackingError(
                f"{len(lines)} of {len(self.outcomes)} runs failed. " + "; ".join(lines)
            ) from self.failed[0].error

    def __str__(self) -> str:
        verb = "would be done" if self.dry_run else "done"
        head = f"{len(self.done)} {verb}, {len(self.skipped)} skipped, {len(self.failed)} failed"
        shown = [*self.failed, *self.skipped]
        lines = [head, *(f"{item.status}: {item.name}: {item.reason}" for item in shown)]
        return encodable("\n".join(lines))

    def _with(self, status: Status) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status == status]


def failure(uri: str, name: str, error: Exception, rest: str = "") -> Outcome:
    """Return the outcome of a run that raised; errors of others than this package are named by their type."""
    kind = "" if isinstance(error, UQTrackingError) else f"{type(error).__name__}: "
    return Outcome(uri, name, "failed", redact(f"{kind}{error}{rest}"), error=error)


def worked(
    runs: Sequence[LoggedRun], work: Callable[[LoggedRun], Outcome], workers: int, progress: Progress | None
) -> Iterator[Outcome]:
    """Yield outcomes in the order of the runs; once the tracker is gone, the remaining runs are not tried.

    Errors that ``work`` raises become outcomes: the other runs are still tried.
    """
    gone = threading.Event()

    def outcome_of(run: LoggedRun) -> Outcome:
        if gone.is_set():
            return Outcome(run.stored.uri, run.name, "failed", "not tried: the tracker stopped answering")
        try:
            return work(run)
        except Exception as error:  # damaged files and trackers may raise anything
            if any(isinstance(each, TrackerUnreachableError) for each in (error, error.__cause__)):
                gone.set()
            return failure(run.stored.uri, run.name, error)

    pool = ThreadPoolExecutor(workers, thread_name_prefix="uq-rescore") if workers > 1 else None
    try:
        for outcome in map(outcome_of, runs) if pool is None else pool.map(outcome_of, runs):
            if progress is not None:
                progress(outcome, len(runs))
            yield outcome
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def show_summary(summary: Summary, console: Console, reworded: Callable[[str], str]) -> None:
    """Print one line per run, all failed ones last, and the number of each kind."""
    from rich.markup import escape
    from rich.table import Table

    sources = any(outcome.source for outcome in summary.outcomes)
    table = Table("run", "status", *["from"] * sources, "what", show_edge=False, pad_edge=False)
    for status, style in STYLE.items():
        found = [outcome for outcome in summary.outcomes if outcome.status == status]
        shown = found if status == "failed" else found[:MOST]
        for outcome in shown:
            cells = [outcome.name, status, *[outcome.source or ""] * sources, reworded(outcome.reason)]
            table.add_row(*map(escape, cells), style=style)
        if len(found) > len(shown):
            table.add_row("...", f"{len(found) - len(shown)} more {status}", style=style)
    if summary.outcomes:
        console.print(table)
    console.print(str(summary).partition("\n")[0], markup=False, highlight=False, soft_wrap=True)
