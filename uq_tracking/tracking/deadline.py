"""How long one call may wait for trackers, and the threads that do the waiting."""

from __future__ import annotations

import contextvars
import math
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

from uq_tracking.checks import value_text
from uq_tracking.errors import SettingsError, TrackerUnreachableError

T = TypeVar("T")

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


def checked_deadline(given: Any = None) -> float:
    """Seconds that a call may wait: as given, else from the environment, else 10.

    Raises
    ------
    SettingsError
        It is not a positive number.
    """
    name, value = (
        ("deadline", given) if given is not None else (VARIABLE, os.environ.get(VARIABLE) or DEADLINE)
    )
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not seconds > 0:
        raise SettingsError(
            f"{name} is {value_text(value)}; pass how many seconds a call may wait for trackers, such as 10"
        )
    return min(seconds, LONGEST)


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

    def call(self, function: Callable[[], T], left_behind: LeftBehind) -> T:
        """Return the function's result; TrackerUnreachableError once it has used up the remaining time."""
        return self.begin(function, left_behind)()

    def begin(self, function: Callable[[], T], left_behind: LeftBehind) -> Callable[[], T]:
        """Start a call in the background; the returned function waits, then returns or raises like ``call``."""
        if self.left() <= 0:
            raise TrackerUnreachableError(f"the deadline of {self.seconds:g} s has passed")
        begun = left_behind.begin(function)

        def result() -> T:
            start = time.monotonic()
            try:
                return left_behind.result(begun, self.left(), self.seconds)
            finally:
                self._spent += time.monotonic() - start

        return result


@dataclass(frozen=True)
class Begun(Generic[T]):
    """A call running in a thread."""

    outcome: Future[T]
    thread: threading.Thread


class LeftBehind:
    """Runs calls in their own threads and leaves behind those that take too long, at most ``most`` of them.

    An SDK's time-outs and retries apply to the whole process, including the user's own calls, so they stay as they
    are; a call that takes too long carries on in its thread, which does not keep the process alive.
    """

    def __init__(self, most: int = 3) -> None:
        self._most = most
        self._threads: list[threading.Thread] = []

    def begin(self, function: Callable[[], T]) -> Begun[T]:
        """Start a call; TrackerUnreachableError if too many have already been left behind."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= self._most:
            raise TrackerUnreachableError(
                f"{len(self._threads)} earlier calls are still waiting for its answer"
            )
        outcome: Future[T] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                outcome.set_result(context.run(function))
            except BaseException as error:
                outcome.set_exception(error)

        thread = threading.Thread(target=work, name=THREADS, daemon=True)
        thread.start()
        return Begun(outcome, thread)

    def result(self, begun: Begun[T], seconds: float, deadline: float) -> T:
        """Return what the call returns, or raise what it raises.

        Raises
        ------
        TrackerUnreachableError
            It takes longer than ``seconds``, the time left before the deadline.
        """
        try:
            wait([begun.outcome], None if math.isinf(seconds) else seconds)
            if begun.outcome.done():
                return begun.outcome.result()
            raise TrackerUnreachableError(f"no answer within the deadline of {deadline:g} s")
        finally:  # a user's signal handler may have raised during the wait
            if not begun.outcome.done() and begun.thread not in self._threads:
                self._threads.append(begun.thread)


def check_listens(place: str) -> None:
    """Raise TrackerUnreachableError if nothing accepts connections at a server's address: a call would hang."""
    parts = urlsplit(place)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.scheme in getproxies():
        return
    try:
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        socket.create_connection((parts.hostname, port), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise TrackerUnreachableError(f"{place} does not accept connections ({error})") from error
