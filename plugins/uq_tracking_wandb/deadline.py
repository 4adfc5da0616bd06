"""Calls to the server that must not hold up training for long."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from uq_tracking.errors import TrackerUnreachableError

ANSWER_SECONDS = 10.0
"""How long a call may wait for the server; uploads go on in wandb-core meanwhile."""

T = TypeVar("T")


def within_deadline(call: Callable[[], T], what: str) -> T:
    """Result of ``call``, or TrackerUnreachableError when the server has not answered in time.

    The SDK's own time-outs cannot be set per call, so the call runs in a thread of its own; a late one goes on
    there and does no harm.
    """
    outcome: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
    Thread(target=_report, args=(call, outcome), name=f"uq-tracking: {what}", daemon=True).start()
    try:
        value, error = outcome.get(timeout=ANSWER_SECONDS)
    except Empty:
        raise TrackerUnreachableError(
            f"{what}: W&B has not answered within {ANSWER_SECONDS:g} s; training goes on. "
            "Check the connection, or log with WANDB_MODE=offline and run `wandb sync` later"
        ) from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # no error: ``value`` is what ``call`` returned


def _report(call: Callable[[], T], outcome: SimpleQueue[tuple[T | None, BaseException | None]]) -> None:
    try:
        outcome.put((call(), None))
    except BaseException as error:
        outcome.put((None, error))
