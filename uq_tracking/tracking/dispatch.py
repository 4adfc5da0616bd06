"""What all logging functions share: content goes to its targets, and no failing tracker stops the job."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from uq_tracking.errors import BackendError, redact, warn
from uq_tracking.tracking.arguments import LogOptions
from uq_tracking.tracking.backend import calling
from uq_tracking.tracking.content import Content
from uq_tracking.tracking.deadline import Budget, checked_deadline
from uq_tracking.tracking.folder import fallback_target
from uq_tracking.tracking.health import health_of
from uq_tracking.tracking.overview import hint
from uq_tracking.tracking.publish import publish
from uq_tracking.tracking.resolve import Target, is_rank_zero, tell_once
from uq_tracking.tracking.writer import RunWriter, Safety

_log = logging.getLogger("uq_tracking")


def send(content: Content, targets: list[Target], destination: LogOptions) -> None:
    """Write the content to the targets of the destination, or to a folder if there is none.

    In a distributed job only rank zero creates the folder, unless ``every_rank``.

    Warns
    -----
    TrackingWarning
        A tracker has just failed. While it is known to be down, further calls are spooled without another warning.

    Raises
    ------
    BackendError
        With ``strict``, whenever a tracker did not take something.
    """
    if not targets and not (destination.every_rank or is_rank_zero()):
        tell_once()
        return
    problems: list[str] = []
    if not targets:
        try:
            targets = [_fallback(content, destination.to)]
        except BackendError as error:
            problems.append(redact(f"The report could not be saved anywhere: {error}."))
    writers = _writers(content, targets, checked_deadline(destination.deadline))
    with calling():
        problems += publish(content, writers)
    if content.step is None:
        hint(content.report, [writer.page for writer in writers])
    known = [writer.problem() for writer in writers if not writer.is_news and writer.kept is not None]
    problems += [told for writer in writers if (told := writer.problem()) and told not in known]
    problems += [told for told in known if told and destination.strict]
    if problems:
        message = " ".join(problems)
        if destination.strict:
            raise BackendError(message) from next((item.error for item in writers if item.error), None)
        warn(message)


def _writers(content: Content, targets: Sequence[Target], deadline: float) -> list[RunWriter]:
    budget = Budget(deadline, len(targets))
    splits = [each.split for each in (content, *content.also)]
    kind = f"{content.report.task} {content.scores}"
    return [
        RunWriter(
            target,
            Safety(budget, health_of(target.backend, target.place, deadline), content.step, splits, kind),
        )
        for target in targets
    ]


def _fallback(content: Content, to: str | Sequence[str] | None) -> Target:
    """Target a folder and log where: a log line is visible and, unlike a warning, can never stop the job."""
    considered = [to] if isinstance(to, str) else list(to or ())
    target, is_new = fallback_target(content.method, content.split, content.step)
    if is_new and "dir" not in considered:
        _log.warning(
            "%s an active run: logging to %s; to log elsewhere, start a run first or pass run=",
            f"to={'/'.join(considered)} does not have" if considered else "no tracker has",
            target.label,
        )
    return target
