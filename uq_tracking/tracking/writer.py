"""Write to one tracker that may fail: within the deadline, and with the spool for what it does not take."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from uq_tracking.errors import (
    BackendError,
    PermissionDeniedError,
    RunFinishedError,
    RunNotFoundError,
    TrackerUnreachableError,
    log_once,
    printable,
    redact,
)
from uq_tracking.tracking.backend import Run
from uq_tracking.tracking.deadline import Budget, Ending, check_listens
from uq_tracking.tracking.health import Health, Waiting, is_sick
from uq_tracking.tracking.resolve import Target, check_usable, find_backend
from uq_tracking.tracking.spool import Group, Origin, keep

_log = logging.getLogger("uq_tracking")
T = TypeVar("T")

LAST_SECONDS = 1.0
"""Seconds that an interrupted call waits for writes in progress."""
LONGEST_REASON = 600
"""How many characters of a tracker's own message to show."""
_MAX_FAILURES_IN_A_ROW = 2
_HOPELESS = (TrackerUnreachableError, RunNotFoundError, PermissionDeniedError)
"""Errors that the next request of the call would meet again."""
_LATER = (TrackerUnreachableError, RunNotFoundError, RunFinishedError)
"""Errors after which a call can be sent later: to a tracker that is back, a new run, or a reopened one."""


@dataclass(frozen=True)
class Safety:
    """Protection of the job from a tracker: the call's deadline, the tracker's state, and the spool."""

    budget: Budget
    health: Health
    step: int | None = None
    splits: Sequence[str | None] = (None,)
    kind: str = ""
    """Scores that the call logs: a later call replaces one of its own kind only."""
    strict: bool = False
    """True if the caller is told of a refusal by an error, and decides: it is then not sent later."""


@dataclass
class RunWriter:
    """Write a call to one tracker and remember what arrived; a dead one is tried once, a failing one twice in a row.

    Parameters
    ----------
    target
        Where to write.
    safety
        None for functions that a person waits for: they keep trying as long as the tracker's own package does.
    """

    target: Target
    safety: Safety | None = None
    lost: list[str] = field(default_factory=list)
    """Names of what did not arrive."""
    arrived: int = 0
    error: Exception | None = None
    """The first failure."""
    run: Run | None = None
    page: str | None = None
    """Address of the page that shows all runs at a glance."""
    kept: Path | None = None
    """The spool entry with everything, once the writer is closed."""
    keeping_failed: Exception | None = None
    is_news: bool = False
    """True if the failure is new."""
    _gave_up: bool = False
    _failures: int = 0
    _writing: tuple[Group, list[tuple[str, Exception]], Ending] | None = None
    """Items being written, errors of single items, and the function that waits for the request for all of them."""
    _groups: list[Group] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.safety is None:
            return
        reason = self.safety.health.refusal(self.target.label, strict=self.safety.strict)
        if reason is not None:
            self._give_up(self.safety, reason)

    def begin(self, items: Group) -> None:
        """Start writing several things together in the background; ``settle`` waits for them."""
        self.settle()
        self._groups.append(items)
        if self._gave_up:
            self.lost.extend(name for name, _ in items)
            return
        failures: list[tuple[str, Exception]] = []
        self._writing = items, failures, self._begin(lambda: self._write(items, failures))

    def settle(self) -> None:
        """Wait for writes in progress, and note what does not arrive."""
        if self._writing is None:
            return
        items, failures, ending = self._writing
        error, self._writing = ending(), None
        if error is not None:
            self._failed([name for name, _ in items], error)
            return
        for name, failure in failures:
            self._failed([name], failure)
        self.arrived += len(items) - len(failures)
        if len(failures) < len(items):
            self._failures = 0

    def present(self, name: str, action: Callable[[Run], T]) -> T | None:
        """Do something that is only for display: if the tracker refuses, nothing is lost and nothing is reported.

        A tracker that does not answer gets it later, with the rest of the call.
        """
        self.settle()
        self._groups.append([(name, action)])
        if self._gave_up:
            return None
        found: list[T] = []
        error = self._begin(lambda: found.append(action(self._open())))()
        if isinstance(error, TrackerUnreachableError):
            self._failed([name], error)
        return found[0] if found else None

    def confirm(self) -> None:
        """Read back what a final call has written; what the tracker has not kept counts as lost."""
        self.settle()
        if self.safety is None or self.run is None or self._gave_up or self.lost:
            return
        error = self._begin(self.run.confirm)()
        if error is not None:
            self._failed(["all that it had accepted"], error)

    def close(self) -> None:
        """Release the run; keep what did not arrive."""
        self.settle()
        is_ours = self.safety is None or self.target.given is None
        if self.run is not None and is_ours and not self._gave_up:
            error = self._begin(self.run.close)()
            if error is not None:
                self._failed(["the end of the run"], error)
        if self.safety is None:
            return
        if self.lost and self.error is not None:
            self._keep(self.safety, self.error)
        elif self._groups:
            origin = self._origin(self.safety)
            run, key = self.target.label, f"{origin.key} {self.safety.kind}"
            self.safety.health.forget_entries(lambda waiting: (waiting.run, waiting.key) == (run, key))
            arrival = None if self.run is None else self.run.arrival()
            if arrival is None:
                return
            try:  # files that the tracker uploads in the background are kept until it has them
                path = keep(origin, self._groups, drawings=False)
            except Exception as error:  # a full disk: they are on their way regardless
                _log.debug("%s: no copy could be kept: %s", self.target.label, redact(str(error)))
                return
            self.safety.health.confirm(path, arrival)

    def interrupted(self) -> bool:
        """Stop asking the tracker because the user interrupted; return whether the call can be spooled instead."""
        if self.safety is None:
            return False
        self.safety.budget.hurry(LAST_SECONDS)  # a run being created is continued, not created again
        self.settle()
        self._groups.clear()
        self.lost.clear()
        self._give_up(self.safety, "the call was interrupted")
        return True

    def problem(self) -> str | None:
        """Say in one sentence what was lost and why, or None if everything arrived."""
        if self.error is None:
            return None
        others = len(self.lost) - 1
        what = self.lost[0] + (f" and {others} other item{'s' * (others > 1)}" if others else "")
        rest = "; the rest was logged" if self.arrived else ""
        error = printable(f"{type(self.error).__name__}: {self.error}").rstrip(": ")  # some say nothing
        error = textwrap.shorten(error, LONGEST_REASON)
        message = redact(f"{self.target.backend} ({self.target.label}) did not take {what}{rest}. {error}")
        if self.kept is not None:
            how = "it is sent when the tracker answers, or by `uq-tracking sync`"
            if isinstance(self.error, RunNotFoundError):
                how = "`uq-tracking sync` makes it a new run"
            if isinstance(self.error, RunFinishedError):
                how = "`uq-tracking sync` reopens the run and sends it"
            return f"{message}. Everything is kept in {self.kept}; {how}."
        if self.keeping_failed is not None:
            return f"{message}. No copy could be kept either: {redact(str(self.keeping_failed))}."
        return message

    def _write(self, items: Group, failures: list[tuple[str, Exception]]) -> None:
        """Write the items; note what single ones raise, let through what the request for all of them raises."""
        run = self._open()
        with run.batch():
            for name, action in items:
                try:
                    action(run)
                except Exception as error:  # the others may still arrive
                    failures.append((name, error))
                    if len(failures) >= _MAX_FAILURES_IN_A_ROW or isinstance(error, _HOPELESS):
                        raise

    def _begin(self, function: Callable[[], object]) -> Ending:
        """Start a call of the tracker, in the background if the job must not wait for it longer than its deadline."""
        if self.safety is not None:
            waits_for = (
                "" if "://" in self.target.place or not self.target.place else "its files on this machine"
            )
            return self.safety.budget.begin(function, self.safety.health.abandoned, waits_for)
        found: Exception | None = None
        try:
            function()
        except Exception as error:  # trackers raise whatever their libraries raise
            found = error
        return lambda: found

    def _open(self) -> Run:
        if self.run is not None:
            return self.run
        try:
            check_listens(self.target.place)
        except TrackerUnreachableError:
            check_usable(find_backend(self.target.backend))  # what is not installed is the reason to give
            raise
        self.run = self.target.open()
        is_series = self.safety is not None and self.safety.step is not None
        if self.target.is_new and is_series and not self.target.is_joined:
            log_once(
                logging.WARNING,
                "run=%s creates a new run in every call, so steps do not form a series; pass one run instead, "
                "or its own address (%s/RUN_ID)",
                self.target.label,
                self.target.label,
            )
        return self.run

    def _failed(self, names: Sequence[str], error: Exception) -> None:
        self.lost.extend(names)
        self._failures += 1
        hopeless = isinstance(error, _HOPELESS) or self.run is None
        if hopeless or self._failures >= _MAX_FAILURES_IN_A_ROW:
            self._gave_up = True
        self.error = self.error or error
        self.is_news = True
        if self._gave_up and self.safety is not None:
            self.safety.budget.given_up()

    def _give_up(self, safety: Safety, reason: str) -> None:
        """Stop trying for the rest of this call, for a known reason."""
        self._gave_up, self.error, self.is_news = True, TrackerUnreachableError(reason), False
        safety.budget.given_up()

    def _keep(self, safety: Safety, error: Exception) -> None:
        """Write this whole call to the spool, to be sent in the background."""
        health, label = safety.health, self.target.label
        is_down = isinstance(error, TrackerUnreachableError) or (is_sick(error) and not self.arrived)
        if isinstance(error, RunNotFoundError):
            health.gone.add(label)
        elif self.is_news and is_down:
            health.failed()
        if safety.strict and isinstance(error, BackendError) and not isinstance(error, _LATER):
            return
        if not safety.strict and health.is_known(label, error):
            self.is_news = False
        if isinstance(error, PermissionDeniedError):
            health.denied.add(label)
        origin = self._origin(safety)
        try:
            earlier = self._earlier() if origin.is_run and safety.step is None else ()
            self.kept = keep(origin, [*earlier, *self._groups])
        except Exception as failure:  # a full disk; plugins' figures may raise anything
            self.keeping_failed = failure
            return
        key = f"{origin.key} {safety.kind}" if origin.is_run else ""
        waiting = Waiting(self.kept, self.target.open, label, key)
        health.wait_with(waiting, refused=label in health.denied or not is_down)

    def _earlier(self) -> Iterator[Group]:
        """Yield the steps of earlier calls that the tracker has accepted, but perhaps not kept."""
        try:
            steps = (self.run or self.target.open()).unconfirmed()
        except Exception:  # the run cannot be opened, which is what failed
            return

        def write(run: Run) -> None:
            for step, scalars in steps.items():
                run.log_again(scalars, step=step)

        if steps:
            yield [("the steps of earlier calls", write)]

    def _origin(self, safety: Safety) -> Origin:
        target = self.target
        return Origin(
            tracker=target.backend,
            place=target.place,
            uri=target.label if self.run is None else self.run.uri,
            is_run=self.run is not None or target.given is not None,
            name=target.name,
            tags=dict(target.tags),
            step=safety.step,
            splits=list(safety.splits),
        )
