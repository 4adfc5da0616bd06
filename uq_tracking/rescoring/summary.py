"""What became of every run of a rescoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from uq_tracking.errors import UQTrackingError

Status = Literal["done", "skipped", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What became of one run.

    Attributes
    ----------
    uri, name : str
        The run.
    status : {"done", "skipped", "failed"}
    reason : str
        Why it was skipped or failed; for one that is done, what was written.
    source : str or None
        What the scores were computed from: ``exact statistics``, ``sketch`` or ``predictions``.
    error : Exception or None
        What made it fail.
    """

    uri: str
    name: str
    status: Status
    reason: str
    source: str | None = None
    error: Exception | None = None


@dataclass(frozen=True)
class Summary:
    """What became of every run, in the order of the runs; a dry run tells what would become of them."""

    outcomes: Sequence[Outcome]
    dry_run: bool = False

    @property
    def done(self) -> list[Outcome]:
        """Runs that were written to, or would be."""
        return self._with("done")

    @property
    def skipped(self) -> list[Outcome]:
        """Runs with nothing to do, or nothing to do it with."""
        return self._with("skipped")

    @property
    def failed(self) -> list[Outcome]:
        """Runs that could not be rescored; they keep the scores they had."""
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
