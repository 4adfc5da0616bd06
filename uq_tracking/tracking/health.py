"""Whether a tracker answers, and what is kept until it does: one circuit breaker per tracker and process.

A tracker that fails is marked sick. Calls for it go straight to the spool, and a thread of its own retries after
pauses that grow from one second to a minute. Once it answers, the spooled calls are sent in order, into the same
runs; until that is done, new calls queue behind them.

A call may fail for ever at a tracker that takes others. So when a spooled call fails, another is tried; a call that
fails both before and after the tracker has taken another is stepped over. It is tried a few times more, then left to
`sync`, and while it is in the spool, new calls go there too: the next one like it must not make the job wait.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from uq_tracking.errors import (
    BackendError,
    FileFormatError,
    RunNotFoundError,
    TrackerUnreachableError,
    redact,
)
from uq_tracking.tracking.backend import Run
from uq_tracking.tracking.deadline import THREADS, check_listens, started
from uq_tracking.tracking.guard import Limit, limited
from uq_tracking.tracking.places import LockedError, spool_lock
from uq_tracking.tracking.resolve import find_backend
from uq_tracking.tracking.spool import number_of, read_entry

SECONDS = 300.0
"""Seconds that one piece of a kept call, such as a file, may take in the background."""
LOCK_SECONDS = 5.0
"""Seconds to wait for a `sync` that is sending the same entries."""

Outcome = Literal["sent", "absent", "gone", "refused", "stuck", "failed", "again"]
_log = logging.getLogger("uq_tracking")


@dataclass
class Waiting:
    """An entry, and the run it goes into."""

    path: Path
    open: Callable[[], Run]
    run: str
    key: str = ""
    """Identifies run, step, splits and scores, if the run exists."""
    tries: int = 0
    """Number of times the tracker has rejected it, or failed on it and accepted others."""
    probes: int = 0
    """Number of times it was sent because another one failed."""
    answers: int | None = None
    """Number of calls the tracker had answered when it last failed on this one."""
    is_stuck: bool = False
    """True if the tracker has failed on it and accepted others."""
    state: Literal["queued", "refused", "left"] = "queued"
    """To be sent in order; tried again later, alongside the others; or left to `sync`."""

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

        def took(limit: Limit) -> None:
            nonlocal taken
            taken += 1
            limit.extend(SECONDS)

        try:
            check_listens(place)
            with spool_lock(self.path.parent, LOCK_SECONDS):
                try:
                    entry = read_entry(self.path)
                except FileNotFoundError:
                    return "absent"
                with limited(SECONDS) as limit, closing(self.open()) as run:
                    entry.send(run, lambda: took(limit))
                    if entry.origin.step is None:
                        run.confirm()
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
        """Return whether it is a later call of the same key, hence not one that creates its own run."""
        is_same = self.key != "" and (self.run, self.key) == (other.run, other.key)
        return is_same and number_of(self.path) > number_of(other.path)


def is_sick(error: BaseException) -> bool:
    """Return whether an error means that the tracker is down, rather than that it rejects what it was given.

    A plain ValueError is the client's own, of a value that it cannot send; what else a client raises may be anything.
    """
    if type(error) in (ValueError, OverflowError):
        return False
    return isinstance(error, TrackerUnreachableError) or not isinstance(error, BackendError)


PROBE_SECONDS = 5.0
"""Seconds in which a tracker that failed must answer a short question, at first; then as many as the pause has."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
MOST_TRIES = 5
"""How many times to send an entry that the tracker rejects, or fails on while it takes others."""
MOST_TOLD, LONGEST_ERROR = 1000, 500
"""How many errors to remember, and how many characters of each."""
DRAINERS = 3
"""Maximum number of threads waiting for one tracker."""


@dataclass
class Health:
    """State of one tracker."""

    name: str
    place: str
    deadline: float
    """Deadline of the last call; bounds how long the program may wait at exit."""
    abandoned: list[threading.Thread] = field(default_factory=list)
    """Threads whose calls took too long; see `Budget`."""
    told: set[tuple[str, str]] = field(default_factory=set)
    """Runs and errors that were warned of; the numbers in a text differ from step to step."""
    gone: set[str] = field(default_factory=set)
    """Addresses of runs that the tracker no longer has."""
    denied: set[str] = field(default_factory=set)
    """Addresses of runs and experiments that the tracker does not let this user write to."""
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _entries: list[Waiting] = field(default_factory=list)
    _unconfirmed: dict[Path, threading.Thread] = field(default_factory=dict)
    _sick_since: float | None = None
    _answers: int = 0
    _pause: float = 0.0
    _ask_at: float = 0.0
    _drainers: list[threading.Thread] = field(default_factory=list)
    _asking_since: float | None = None
    _asked: int = 0

    def refusal(self, run: str, *, strict: bool = False) -> str | None:
        """Return why a call for this run should not be sent now; None if it should.

        A strict call always asks whether it is permitted now.
        """
        with self._changed:
            if run in self.gone:
                return f"{run} is gone"
            if run in self.denied and not strict:
                return "it has denied permission before"
            if self._sick_since is not None:
                ago = time.monotonic() - self._sick_since
                return f"it has not answered for {ago:.0f} s and is being retried in the background"
            # An entry's file goes when it has been sent, just before the entry itself does.
            if any(entry.path.exists() for entry in self._of_run(run, "queued")):
                return "earlier calls are still being sent"
            stuck = next((each.path for each in self._entries if each.is_stuck and each.path.exists()), None)
            return None if stuck is None else f"it fails on {stuck}, so calls are sent in the background"

    def is_known(self, run: str, error: Exception) -> bool:
        """Note an error of a run; return whether the same was noted before."""
        found = run, re.sub(r"[\d.]+", "", f"{type(error).__name__}: {error}"[:LONGEST_ERROR])
        with self._changed:
            is_known = found in self.told
            if len(self.told) < MOST_TOLD:
                self.told.add(found)
            return is_known

    @property
    def _label(self) -> str:
        return f"{self.name} ({self.place})" if self.place else self.name

    def failed(self) -> None:
        """Mark the tracker as failing."""
        with self._changed:
            self._sick_since = self._sick_since or time.monotonic()
            self._pause = min(self._pause * 2, LONGEST_PAUSE) if self._pause else FIRST_PAUSE
            self._ask_at = time.monotonic() + self._pause

    def answered(self) -> None:
        """Mark the tracker as answering."""
        with self._changed:
            if self._sick_since is not None:
                seconds = time.monotonic() - self._sick_since
                self.told.clear()
                _log.info("%s answers again after %.0f s", self._label, seconds)
            self._sick_since, self._pause = None, 0.0
            self._answers += 1

    def wait_with(self, waiting: Waiting, *, refused: bool = False) -> None:
        """Queue an entry until the tracker takes it: in order, or, if it was refused, alongside the others."""
        if waiting.run in self.gone:
            return
        with self._changed:
            self._entries.append(waiting)
            if refused:
                self._refuse(waiting)
            self._start()
            self._changed.notify_all()

    def forget_entries(self, is_old: Callable[[Waiting], bool]) -> None:
        """Forget refused entries in whose place a later call was logged in full."""
        with self._changed:
            old = [waiting for waiting in self._in("refused", "left") if is_old(waiting)]
            self._entries = [waiting for waiting in self._entries if waiting not in old]
        for waiting in old:
            with suppress(OSError):
                waiting.path.unlink(missing_ok=True)

    def confirm(self, path: Path, arrival: Callable[[], None]) -> None:
        """Remove an entry once a tracker that uploads in the background has its content; otherwise it stays."""

        def confirmed() -> None:
            try:
                with limited(math.inf):
                    arrival()
            except Exception as error:  # trackers raise whatever their libraries raise
                _log.debug("%s has not confirmed %s: %s", self.name, path, redact(str(error)))
                return
            with suppress(OSError):
                path.unlink(missing_ok=True)
            with self._changed:
                self._unconfirmed.pop(path, None)

        with self._changed:
            if (thread := started(confirmed, f"{THREADS}: {self.name} confirms")) is not None:
                self._unconfirmed[path] = thread

    def waiting(self) -> int:
        """Return the number of entries still to be sent or confirmed."""
        with self._changed:
            return len(self._in("queued", "refused")) + len(self._unconfirmed)

    def finish(self, end: float) -> None:
        """Send what is queued until ``end``, by ``time.monotonic``; give up if the tracker is still sick then."""
        with self._changed:
            asked, self._ask_at = self._asked, 0.0
            self._changed.notify_all()
            while self._in("queued", "refused"):
                if (self._sick_since is not None or not self._in("queued")) and self._asked > asked:
                    break
                if not self._changed.wait(max(end - time.monotonic(), 0.0)):
                    break
            left = [waiting.path for waiting in self._in("queued", "refused") if waiting.path.exists()]
        for thread in list(self._unconfirmed.values()):
            thread.join(max(end - time.monotonic(), 0.0))
        left += self._unconfirmed
        if left:
            _log.warning(
                "%s has not taken %d call%s, kept in %s; run `uq-tracking sync` to send them",
                self._label,
                len(left),
                "s" * (len(left) > 1),
                left[0].parent,
            )

    def forget(self) -> None:
        """Stop sending: what is queued is left to `sync`, and threads end when their call returns."""
        with self._changed:
            self._entries.clear()
            self._unconfirmed.clear()
            self._changed.notify_all()

    def _in(self, *states: str) -> list[Waiting]:
        """Return the entries in these states, in order."""
        return [waiting for waiting in self._entries if waiting.state in states]

    def _of_run(self, run: str, *states: str) -> list[Waiting]:
        """Return the entries of a run in these states."""
        return [waiting for waiting in self._in(*states) if waiting.run == run]

    def _start(self) -> None:
        """Start a sending thread unless one is running; start another if that one is stuck."""
        self._drainers = [thread for thread in self._drainers if thread.is_alive()]
        is_stuck = self._asking_since is not None and time.monotonic() - self._asking_since > LONGEST_PAUSE
        if self._drainers and not (is_stuck and len(self._drainers) < DRAINERS):
            return
        if (thread := started(self._drain, f"{THREADS}: {self.name}")) is not None:
            self._drainers.append(thread)

    def _drain(self) -> None:
        while (waiting := self._next()) is not None:
            if not self._is_back():
                self.failed()
                self._settle(waiting, "again")
                continue
            outcome = waiting.send(self.name, self.place)
            self._settle(waiting, self._judged(waiting) if outcome == "failed" else outcome)

    def _is_back(self) -> bool:
        """Return whether a tracker that failed answers a short question; kept calls may take long to fail."""
        if self._sick_since is None:
            return True
        try:
            with limited(max(PROBE_SECONDS, self._pause)):
                check_listens(self.place)
                find_backend(self.name).probe(self.place)
        except Exception as error:  # trackers raise whatever their libraries raise
            _log.debug("%s is not back: %s", self._label, redact(str(error)))
            return not is_sick(error)
        return True

    def _settle(self, waiting: Waiting, outcome: Outcome) -> None:
        """Put an entry where it belongs after an attempt to send it."""
        with self._changed:
            self._asking_since = None
            self._asked += 1
            is_wanted = waiting in self._in("queued", "refused")
            if outcome in ("sent", "refused"):
                self.answered()
            if outcome == "sent" and waiting.run in self.denied:
                self.denied.discard(waiting.run)
                for entry in self._of_run(waiting.run, "refused", "left"):
                    entry.state = "queued"
            if outcome == "gone":
                self.gone.add(waiting.run)
            if outcome in ("refused", "stuck") and is_wanted:
                waiting.tries += 1
                self._refuse(waiting)
            elif outcome not in ("failed", "again"):
                self._entries = [item for item in self._entries if item is not waiting]
            self._changed.notify_all()
        if outcome == "sent":
            self.forget_entries(waiting.supersedes)

    def _judged(self, waiting: Waiting) -> Outcome:
        """Decide whether the tracker fails, or only this entry: others have been accepted since it last failed."""
        with self._changed:
            before, waiting.answers = waiting.answers, self._answers
            waiting.is_stuck = waiting.is_stuck or (before is not None and before < self._answers)
            if waiting.is_stuck:
                return "stuck"
            self.failed()
            others = [item for item in self._in("queued") if item is not waiting]
            if not others:
                return "again"
            other = min(others, key=lambda item: (item.probes, item.run == waiting.run))
            other.probes += 1
            self._asking_since = time.monotonic()
        self._settle(other, other.send(self.name, self.place))
        return "again"

    def _next(self) -> Waiting | None:
        """Wait until something is due, first of runs without a stuck entry; None when nothing is left."""
        with self._changed:
            while queue := self._in("queued") or self._in("refused")[:1]:
                pause = self._ask_at - time.monotonic()
                if pause <= 0 or (queue[0].state == "queued" and self._sick_since is None):
                    self._asking_since = time.monotonic()
                    stuck = {entry.run for entry in self._entries if entry.is_stuck}
                    return min(queue, key=lambda waiting: waiting.run in stuck)
                self._changed.wait(pause)
            self._drainers.remove(threading.current_thread())
            return None

    def _refuse(self, waiting: Waiting) -> None:
        """Try an entry again later, a few times; then it is left to `sync`."""
        before = self._of_run(waiting.run, "left") if waiting.run in self.denied else []
        waiting.state = "left" if before or waiting.tries >= MOST_TRIES else "refused"
        self._entries = [*(item for item in self._entries if item is not waiting), waiting]
        if waiting.state == "left" and not before:
            if waiting.run in self.denied:
                for entry in self._of_run(waiting.run, "refused"):
                    entry.state = "left"
            _log.warning(
                "%s answers, but does not take the call in %s; `uq-tracking sync` tries again and says why",
                self._label,
                waiting.path,
            )
        elif self._sick_since is None:
            self._ask_at = time.monotonic() + min(FIRST_PAUSE * 4.0**waiting.tries, LONGEST_PAUSE)


def health_of(name: str, place: str, deadline: float) -> Health:
    """Return the state of a tracker in this process; a forked child starts afresh, without its parent's threads."""
    health = _of_process(os.getpid()).setdefault((name, place), Health(name, place, deadline))
    health.deadline = deadline
    return health


def forget_health() -> None:
    """Start as a new process would, with every tracker well; what is still queued is left to `sync`."""
    known = _of_process(os.getpid())
    for health in known.values():
        health.forget()
    known.clear()


@lru_cache(maxsize=1)
def _of_process(pid: int) -> dict[tuple[str, str], Health]:
    """Return the trackers of this process; a forked child has another ``pid``, hence its own."""
    known: dict[tuple[str, str], Health] = {}
    atexit.register(_finish, known, pid)
    return known


def _finish(known: dict[tuple[str, str], Health], pid: int) -> None:
    """Let exit take no longer than the longest deadline, however many trackers there are."""
    if os.getpid() != pid:  # inherited by a forked child
        return
    trackers = [health for health in list(known.values()) if health.waiting()]
    end = time.monotonic() + max((health.deadline for health in trackers), default=0.0)
    for health in trackers:
        try:
            health.finish(end)
        except KeyboardInterrupt:  # the user does not want to wait
            end = 0.0
            health.finish(end)
