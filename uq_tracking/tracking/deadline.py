"""How long one call may wait for trackers, and the threads that wait in its place."""

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

from uq_tracking.errors import SettingsError, TrackerUnreachableError

T = TypeVar("T")

DEADLINE = 10.0
PATIENCE = 300.0
"""Seconds that a command waits, which a person has started and no training waits for."""
LONGEST = 1e9
"""Seconds for which a thread can wait on every system; longer deadlines, infinite ones too, are as long as this."""
CONNECT_SECONDS = 2.0
VARIABLE = "UQ_TRACKING_DEADLINE"
THREADS = "uq-tracking"
"""What the names of the threads that wait for trackers start with."""
RESERVE = 0.2
"""Share of the deadline that is left for each further tracker of the call."""


def checked_deadline(given: Any = None) -> float:
    """Seconds that a call may wait: those given, else of the environment, else 10.

    Raises
    ------
    SettingsError
        It is no positive number.
    """
    name, value = (
        ("deadline", given) if given is not None else (VARIABLE, os.environ.get(VARIABLE) or DEADLINE)
    )
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds > 0:
        raise SettingsError(
            f"{name} is {value!r}; give the seconds that a call may wait for trackers, such as 10"
        )
    return min(seconds, LONGEST)


class Budget:
    """The seconds that one call may wait for all its trackers together.

    Parameters
    ----------
    seconds
        In all; only waiting counts, not scoring or drawing.
    trackers
        How many are going to be waited for. A sick one leaves the others a share.
    """

    def __init__(self, seconds: float, trackers: int = 1) -> None:
        self.seconds = seconds
        self._spent = 0.0
        self._others = max(trackers - 1, 0)

    def left(self) -> float:
        """Seconds that one tracker may use now."""
        reserved = min(RESERVE * self._others, 0.8) * self.seconds
        return max(self.seconds - self._spent - reserved, 0.0)

    def hurry(self, seconds: float) -> None:
        """Wait no more than so many seconds from now on."""
        self.seconds = min(self.seconds, self._spent + seconds)

    def given_up(self) -> None:
        """Note that a tracker is asked no more, so that its share is the others'."""
        self._others = max(self._others - 1, 0)

    def call(self, function: Callable[[], T], left_behind: LeftBehind) -> T:
        """Return the function's result; TrackerUnreachableError when it has taken all that is left."""
        return self.begin(function, left_behind)()

    def begin(self, function: Callable[[], T], left_behind: LeftBehind) -> Callable[[], T]:
        """Start a call beside what follows; the result waits for it, and returns or raises as ``call`` does."""
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
    """A call that goes on in a thread."""

    outcome: Future[T]
    thread: threading.Thread


class LeftBehind:
    """Runs calls in threads of their own, and leaves those behind that take too long: at most ``most``.

    The time-outs and retries of an SDK belong to the whole process, so to the user's own calls too; hence they are
    left as they are, and a call that takes too long goes on in its thread, which does not keep the process alive.
    """

    def __init__(self, most: int = 3) -> None:
        self._most = most
        self._threads: list[threading.Thread] = []

    def begin(self, function: Callable[[], T]) -> Begun[T]:
        """Start a call; TrackerUnreachableError when too many are left behind already."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= self._most:
            raise TrackerUnreachableError(f"{len(self._threads)} earlier calls still wait for its answer")
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
            It takes longer than so many seconds, which are what is left of the deadline.
        """
        try:
            wait([begun.outcome], None if math.isinf(seconds) else seconds)
            if begun.outcome.done():
                return begun.outcome.result()
            raise TrackerUnreachableError(f"no answer within the deadline of {deadline:g} s")
        finally:  # a signal handler of the user's may have raised something while it waited
            if not begun.outcome.done() and begun.thread not in self._threads:
                self._threads.append(begun.thread)


def check_listens(place: str) -> None:
    """TrackerUnreachableError when nothing accepts connections at the address of a server: a call would hang."""
    parts = urlsplit(place)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.scheme in getproxies():
        return
    try:
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        socket.create_connection((parts.hostname, port), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise TrackerUnreachableError(f"{place} accepts no connection ({error})") from error
