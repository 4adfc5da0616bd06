"""When the call that is being written was made: what is sent late keeps its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_called_at: ContextVar[float | None] = ContextVar("uq_tracking_called_at", default=None)
_is_late: ContextVar[bool] = ContextVar("uq_tracking_is_late", default=False)


def called_at() -> float:
    """Seconds since 1970 at which the call that is being written was made; now, outside of one.

    A tracker that stores a time should store this one. What is sent again then has the same time, and trackers that
    drop identical rows keep one of them.
    """
    given = _called_at.get()
    return time.time() if given is None else given


def is_late() -> bool:
    """Whether the call that is being written was kept, so that a part of it may have arrived already."""
    return _is_late.get()


@contextmanager
def calling(at: float | None = None) -> Iterator[float]:
    """Let ``called_at`` tell this time inside, that of a call that was kept; by default the present one."""
    now = time.time() if at is None else at
    token, late = _called_at.set(now), _is_late.set(at is not None)
    try:
        yield now
    finally:
        _called_at.reset(token)
        _is_late.reset(late)
