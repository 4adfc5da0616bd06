"""A spool entry that this process will send, and what becomes of one attempt."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uq_tracking.errors import BackendError, FileFormatError, RunNotFoundError, TrackerUnreachableError
from uq_tracking.tracking.deadline import check_listens
from uq_tracking.tracking.locks import LockedError, spool_lock
from uq_tracking.tracking.redaction import redact
from uq_tracking.tracking.replay import replay
from uq_tracking.tracking.resolve import Opened
from uq_tracking.tracking.spool import number_of, read_entry

LOCK_SECONDS = 5.0
"""Seconds to wait for a `sync` that is sending the same entries."""

Outcome = Literal["sent", "absent", "gone", "refused", "stuck", "failed", "again"]
_log = logging.getLogger("uq_tracking")


@dataclass
class Waiting:
    """An entry, and the run it goes into."""

    path: Path
    open: Callable[[], Opened]
    run: str
    key: str = ""
    """Identifies run, step, splits and scores, if the run exists."""
    tries: int = 0
    """How many times the tracker has rejected it, or failed on it and taken others."""
    probes: int = 0
    """How many times it was sent because another one failed."""
    answers: int | None = None
    """How many calls the tracker had answered when it last failed on this one."""
    is_stuck: bool = False
    """Whether the tracker has failed on it and taken others."""

    def send(self, tracker: str, place: str) -> Outcome:
        """Send it once.

        Returns
        -------
        Outcome
            "sent"; "absent", if someone else has sent it, or it is damaged and needs a person; "gone", if its run is;
            "refused", if the tracker answers but does not take it; "failed", if the tracker may be down; "again", if
            another process is sending.
        """
        taken = 0

        def took() -> None:
            nonlocal taken
            taken += 1

        try:
            check_listens(place)
            with spool_lock(self.path.parent, LOCK_SECONDS):
                try:
                    entry = read_entry(self.path)
                except FileNotFoundError:
                    return "absent"
                opened = self.open()
                try:
                    replay(entry, opened.run, took)
                finally:
                    opened.release()
                with suppress(OSError):
                    self.path.unlink(missing_ok=True)
        except FileFormatError:
            return "absent"
        except RunNotFoundError:
            return "gone"  # `sync` makes a new run that names it
        except LockedError:
            return "again"
        except Exception as error:  # trackers raise whatever their libraries raise
            _log.debug("%s did not take %s: %s", tracker, self.path, redact(str(error)))
            return "failed" if not taken and is_sick(error) else "refused"
        return "sent"

    def supersedes(self, other: Waiting) -> bool:
        """Whether it is a later call of the same key, hence not one that creates its own run."""
        is_same = self.key != "" and (self.run, self.key) == (other.run, other.key)
        return is_same and number_of(self.path) > number_of(other.path)


def is_sick(error: BaseException) -> bool:
    """Whether an error means that the tracker is down, rather than that it rejects what it was given.

    A plain ValueError is the client's own, of a value that it cannot send; what else a client raises may be anything.
    """
    if type(error) in (ValueError, OverflowError):
        return False
    return isinstance(error, TrackerUnreachableError) or not isinstance(error, BackendError)
