"""When the call being written was made: calls sent late keep their original time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_called_at: ContextVar[float | None] = ContextVar("uq_tracking_called_at", default=None)
_is_late: ContextVar[bool] = ContextVar("uq_tracking_is_late", default=False)


def called_at() -> float:
    """When the call being written was made, in seconds since 1970; outside a call, the current time.

    A tracker that stores a time should store this one: rows sent twice then carry the same time, and trackers that
    drop identical rows keep one of them.
    """
    given = _called_at.get()
    return time.time() if given is None else given


def is_late() -> bool:
    """Whether the call being written comes from the spool, so that part of it may already have arrived."""
    return _is_late.get()


@contextmanager
def calling(at: float | None = None) -> Iterator[float]:
    """Make ``called_at`` return this time inside the block, by default the current time."""
    now = time.time() if at is None else at
    token, late = _called_at.set(now), _is_late.set(at is not None)
    try:
        yield now
    finally:
        _called_at.reset(token)
        _is_late.reset(late)
