"""The outcome of every run in a rescoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from uq_tracking.errors import UQTrackingError

Status = Literal["done", "skipped", "failed"]


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
        return "\n".join([head, *(f"{item.status}: {item.name}: {item.reason}" for item in shown)])

    def _with(self, status: Status) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status == status]
