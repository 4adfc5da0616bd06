"""What every verb that logs has in common: content goes to its targets, and no failing tracker stops the job."""

from __future__ import annotations

import logging
import operator
import warnings
from collections.abc import Sequence
from typing import Any

from uq_tracking.errors import BackendError, SettingsError, TrackingWarning
from uq_tracking.report import Report
from uq_tracking.tracking.fallback import fallback_target
from uq_tracking.tracking.publish import Content, publish
from uq_tracking.tracking.ranks import is_rank_zero, tell_once
from uq_tracking.tracking.resolve import Target
from uq_tracking.tracking.run_writer import RunWriter

_log = logging.getLogger("uq_tracking")


def checked_step(step: Any) -> int | None:
    """The step as an int; SettingsError if it is no whole number."""
    if step is None:
        return None
    try:
        return operator.index(step)
    except TypeError:
        raise SettingsError(f"step is {step!r}; pass a whole number, such as the epoch") from None


def send(
    content: Content,
    targets: list[Target],
    to: str | Sequence[str] | None,
    *,
    strict: bool,
    every_rank: bool = False,
) -> Report:
    """Write the content to every target, or to a folder if there is none; returns the report.

    Of the processes of a distributed job only rank zero makes the folder, unless ``every_rank``.

    Warns
    -----
    TrackingWarning
        Something was not taken, at the line of the verb's caller (the verb calls the function that calls this one).

    Raises
    ------
    BackendError
        The same with ``strict``.
    """
    if not targets and not (every_rank or is_rank_zero()):
        tell_once()
        return content.report
    if not targets:
        targets = [_fallback(content, notice="dir" not in ([to] if isinstance(to, str) else to or ()))]
    writers = [RunWriter(target) for target in targets]
    problems = publish(content, writers)
    failed = [problem for writer in writers if (problem := writer.problem())]
    if failed:
        failed.append(_rescue(content))
    if problems + failed:
        message = " ".join(problems + failed)
        if strict:
            raise BackendError(message) from next((item.error for item in writers if item.error), None)
        warnings.warn(message, TrackingWarning, stacklevel=4)
    return content.report


def _fallback(content: Content, *, notice: bool = True) -> Target:
    """Target a folder, and say where in a line that is visible and can stop nothing: the log, not a warning."""
    target, is_new = fallback_target(content.method, content.split, content.step)
    if notice and is_new:
        _log.warning("no tracker has an active run: logging to %s", target.label)
    return target


def _rescue(content: Content) -> str:
    """Keep everything in a folder, and say where."""
    writer = RunWriter(_fallback(content, notice=False))
    publish(content, [writer])
    problem = writer.problem()
    if problem is not None:
        return f"A copy could not be kept either: {problem}"
    return f"Everything is kept in {writer.target.label}; with the tracker back, pass the report to uq.log again."
