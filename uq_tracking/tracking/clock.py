"""When the call that is being written was made: what is sent late keeps its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_called_at: ContextVar[float | None] = ContextVar("uq_tracking_called_at", default=None)


def called_at() -> float:
    """Seconds since 1970 at which the call that is being written was made; now, outside of one.

    A tracker that stores a time should store this one. What is sent again then has the same time, and trackers that
    drop identical rows keep one of them.
    """
    given = _called_at.get()
    return time.time() if given is None else given


@contextmanager
def calling(at: float | None = None) -> Iterator[float]:
    """Let ``called_at`` tell this time inside, by default the present one."""
    now = time.time() if at is None else at
    token = _called_at.set(now)
    try:
        yield now
    finally:
        _called_at.reset(token)
