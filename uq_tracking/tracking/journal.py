"""The append-only file of a run in a directory: JSON lines, each written by one call.

A line is appended by a single write, which several writers on a local file system cannot interleave, so no
lock is needed; a writer killed inside it leaves one cut line that readers report and leave out.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from uq_tracking.errors import BackendError, TrackingWarning

Step = int | None


class Journal:
    """Scalars and tags in the file ``path``, which need not exist yet; the last line wins."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, **line: Any) -> None:
        """Add one line with the current time.

        Raises
        ------
        OSError
            The file cannot be written.
        BackendError
            The disk took only a part of the line.
        """
        text = json.dumps({"time": now()} | line, allow_nan=False) + "\n"
        data = (text if self._ends_a_line() else "\n" + text).encode()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            written = os.write(descriptor, data)
        finally:
            os.close(descriptor)
        if written != len(data):
            raise BackendError(
                f"{self.path}: {written} of {len(data)} bytes were written; free some disk space"
            )

    def scalars(self) -> dict[tuple[Step, str], float]:
        """Last value of every scalar at every step; the step None holds the final ones."""
        found: dict[tuple[Step, str], float] = {}
        for line in self._lines():
            found.update({(line.get("step"), name): value for name, value in line.get("scalars", {}).items()})
        return found

    def tags(self) -> dict[str, str]:
        """Last value of every tag."""
        found: dict[str, str] = {}
        for line in self._lines():
            found.update(line.get("tags", {}))
        return found

    def _lines(self) -> list[Mapping[str, Any]]:
        if not self.path.is_file():
            return []
        text = self.path.read_text(encoding="utf-8", errors="replace")
        numbered = enumerate(text.split("\n"), start=1)
        return [line for number, content in numbered if content and (line := self._parse(number, content))]

    def _parse(self, number: int, text: str) -> Mapping[str, Any] | None:
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if isinstance(line, dict):
            return line
        message = f"{self.path}, line {number} is cut and was left out; log that call again"
        warnings.warn(message, TrackingWarning, stacklevel=2)
        return None

    def _ends_a_line(self) -> bool:
        """Whether a new line can follow: the file is new, empty or whole, not cut by a killed writer."""
        try:
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END) == 0:
                    return True
                file.seek(-1, os.SEEK_END)
                return file.read(1) == b"\n"
        except FileNotFoundError:
            return True


def now() -> str:
    """Return the time in UTC, to the millisecond."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
