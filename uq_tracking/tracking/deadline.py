"""How long one call may wait for trackers, and the threads that do the waiting."""

from __future__ import annotations

import contextvars
import logging
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from uq_tracking.checks import value_text
from uq_tracking.errors import BackendError, SettingsError, TrackerUnreachableError, log_once
from uq_tracking.tracking.guard import LIMIT, Limit, watch

DEADLINE = 10.0
PATIENCE = 300.0
"""Seconds that a command waits for a tracker or another process: a person started it, and no job waits for it."""
LONGEST = 1e9
"""The longest wait, in seconds, that every system supports; longer deadlines, even infinite ones, are cut to it."""
CONNECT_SECONDS = 2.0
VARIABLE = "UQ_TRACKING_DEADLINE"
THREADS = "uq-tracking"
"""Prefix of the names of the threads that wait for trackers."""
RESERVE = 0.2
"""Share of the deadline reserved for each further tracker of the call."""
MOST_ABANDONED = 3
"""Abandoned calls of one tracker that may be under way; while there are more, no other is started."""

Ending = Callable[[], Exception | None]
"""Waits for the end of a call."""


def checked_deadline(given: Any = None) -> float:
    """Seconds that a call may wait: as given, else from the environment, else 10.

    A wrong environment must not end a job that logs once, after days: it is logged, and 10 taken.

    Raises
    ------
    SettingsError
        What is given is not a positive number.
    """
    value = (os.environ.get(VARIABLE) or DEADLINE) if given is None else given
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if seconds > 0:
        return min(seconds, LONGEST)
    wrong = f"is {value_text(value)}; pass how many seconds a call may wait for trackers, such as 10"
    if given is not None:
        raise SettingsError(f"deadline {wrong}")
    log_once(logging.WARNING, "%s %s; waiting at most %s s", VARIABLE, wrong, f"{DEADLINE:g}")
    return DEADLINE


class Budget:
    """The seconds that one call may wait for all its trackers together.

    Parameters
    ----------
    seconds
        In total; only waiting counts, not scoring or drawing.
    trackers
        How many trackers will be waited for. A failing one leaves the others their share.
    """

    def __init__(self, seconds: float, trackers: int = 1) -> None:
        self.seconds = seconds
        self._spent = 0.0
        self._others = max(trackers - 1, 0)

    def left(self) -> float:
        """Seconds that one tracker may take now."""
        reserved = min(RESERVE * self._others, 0.8) * self.seconds
        return max(self.seconds - self._spent - reserved, 0.0)

    def hurry(self, seconds: float) -> None:
        """Wait no longer than this many seconds from now on."""
        self.seconds = min(self.seconds, self._spent + seconds)

    def given_up(self) -> None:
        """Note that a tracker has been given up, which frees its share for the others."""
        self._others = max(self._others - 1, 0)

    def begin(
        self, function: Callable[[], object], abandoned: list[threading.Thread], waits_for: str = ""
    ) -> Ending:
        """Start a call in a thread, and abandon it if it takes longer than the time that is left.

        An SDK's time-outs and retries apply to the whole process, including the user's own calls, so they stay as
        they are. The connections of an abandoned call are shut; what else it does, it carries on in its thread, which
        does not keep the process alive.

        Parameters
        ----------
        function
            The call.
        abandoned
            Threads of the same tracker that were abandoned; at most three may be alive.
        waits_for
            What the tracker writes to, if it is not a server.

        Returns
        -------
        function
            Waits, and returns what the call raised, TrackerUnreachableError if it was abandoned, else None. Raises
            only what a signal handler raises during the wait.
        """
        abandoned[:] = [thread for thread in abandoned if thread.is_alive()]
        if self.left() <= 0 or len(abandoned) >= MOST_ABANDONED:
            reason = f"the deadline of {self.seconds:g} s has passed"
            if self.left() > 0:
                reason = f"{len(abandoned)} earlier calls are still waiting for its answer"
            return lambda: TrackerUnreachableError(reason)
        context, done, raised = contextvars.copy_context(), threading.Event(), list[BaseException]()
        limit = LIMIT.get() or Limit(self.left())
        context.run(LIMIT.set, limit)

        def work() -> None:
            try:
                watch()
                context.run(function)
            except BaseException as error:
                raised.append(error)
            done.set()

        thread = started(work, THREADS)
        if thread is None:
            return lambda: TrackerUnreachableError("no thread can be started that would wait for its answer")

        def ending() -> Exception | None:
            start, left = time.monotonic(), self.left()
            try:
                done.wait(None if math.isinf(left) else left)
            finally:  # a user's signal handler may have raised during the wait
                self._spent += time.monotonic() - start
                if not done.is_set() and thread not in abandoned:
                    abandoned.append(thread)
            if not done.is_set():
                limit.cut()
                missed = f"within the deadline of {self.seconds:g} s"
                text = f"it was not done with {waits_for} {missed}" if waits_for else f"no answer {missed}"
                return TrackerUnreachableError(text)
            error = raised[0] if raised else None
            if isinstance(error, SystemExit):
                return BackendError(f"it asked the job to exit ({error!r})")
            if error is None or isinstance(error, Exception):
                return error
            raise error

        return ending


def started(work: Callable[[], object], name: str) -> threading.Thread | None:
    """Start a thread that does not keep the process alive; None if it would never run, as when Python exits."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    try:
        if not sys.is_finalizing():
            thread.start()
    except RuntimeError:  # the system allows no more threads
        return None
    return thread if thread.ident else None


def check_listens(place: str) -> None:
    """Raise TrackerUnreachableError if nothing accepts connections at a server's address: a call would hang."""
    parts = urlsplit(place)
    is_direct = getproxies().keys().isdisjoint((parts.scheme, "all"))
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_direct:
        return
    try:
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        socket.create_connection((parts.hostname, port), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise TrackerUnreachableError(f"{place} does not accept connections ({error})") from error
