"""Writing to trackers that may fail: what did not arrive is remembered, and nothing raises until the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from uq_tracking.errors import RunNotFoundError, TrackerUnreachableError
from uq_tracking.tracking.backend import Run
from uq_tracking.tracking.resolve import Opened, Target

_MAX_FAILURES_IN_A_ROW = 2
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s'\"]+@")
_SECRETS = re.compile(r"(?i)\b(password|passwd|token|api_key|secret)=[^&\s'\"]+")


def redact(text: str) -> str:
    """Hide credentials in addresses, as error messages and tracking URIs contain them.

    >>> redact("https://me:pw@host/api?token=abc failed")
    'https://***@host/api?token=*** failed'
    """
    return _SECRETS.sub(r"\1=***", _CREDENTIALS.sub("***@", text))


@dataclass
class RunWriter:
    """What one tracker got. A dead tracker is asked once, a failing one twice in a row, then no more."""

    target: Target
    lost: list[str] = field(default_factory=list)
    """Names of what did not arrive."""
    arrived: int = 0
    error: Exception | None = None
    """The first failure."""
    run: Run | None = None
    _opened: Opened | None = None
    _gave_up: bool = False
    _failures: int = 0

    def write(self, name: str, action: Callable[[Run], None]) -> None:
        """Write one thing; a failure is remembered."""
        if self._gave_up:
            self.lost.append(name)
            return
        try:
            action(self._open())
        except Exception as error:  # trackers raise whatever their libraries raise
            self._failed(name, error)
        else:
            self.arrived += 1
            self._failures = 0

    def write_together(self, items: Sequence[tuple[str, Callable[[Run], None]]]) -> None:
        """Write several things as one request or version, where the tracker has such a thing."""
        if self._gave_up or len(items) < 2:
            for name, action in items:
                self.write(name, action)
            return
        arrived = self.arrived
        try:
            with self._open().batch():
                for name, action in items:
                    self.write(name, action)
        except Exception as error:  # trackers raise whatever their libraries raise
            self.arrived = arrived
            self._failed(" and ".join(name for name, _ in items), error)

    def close(self) -> None:
        """Release the run."""
        if self._opened is None:
            return
        try:
            self._opened.release()
        except Exception as error:
            self._failed("the end of the run", error)

    def problem(self) -> str | None:
        """Say in one sentence what was lost and why, or None when everything arrived."""
        if self.error is None:
            return None
        what = self.lost[0] if len(self.lost) == 1 else f"{self.lost[0]} and {len(self.lost) - 1} more"
        rest = "; the rest was logged" if self.arrived else ""
        error = f"{type(self.error).__name__}: {self.error}"
        return redact(f"{self.target.backend} ({self.target.label}) did not take {what}{rest}. {error}")

    def _open(self) -> Run:
        if self._opened is None:
            self._opened = self.target.open()
            self.run = self._opened.run
        return self._opened.run

    def _failed(self, name: str, error: Exception) -> None:
        self.lost.append(name)
        self.error = self.error or error
        self._failures += 1
        hopeless = isinstance(error, TrackerUnreachableError | RunNotFoundError) or self._opened is None
        self._gave_up = hopeless or self._failures >= _MAX_FAILURES_IN_A_ROW
