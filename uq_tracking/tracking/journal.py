"""The append-only file of a run in a directory: JSON lines, each written by one call.

Each line is appended by a single write, which concurrent writers on a local file system cannot interleave, so no
lock is needed; a writer killed mid-write leaves one truncated line, which readers report and skip.
"""

from __future__ import annotations

import json
import os
import threading
from array import array
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from uq_tracking.errors import BackendError, warn

Step = int | None


class Line(NamedTuple):
    """The content of one line."""

    step: Step
    scalars: Mapping[str, float]
    tags: Mapping[str, str]


def parsed(text: str) -> Line | None:
    """Parse one line of a journal; None if it is damaged.

    >>> parsed('{"step": 3, "scalars": {"uq/nll": 1.5}}')
    Line(step=3, scalars={'uq/nll': 1.5}, tags={})
    >>> parsed('{"step": 3, "scal')
    """
    try:
        line = json.loads(text)
        step, scalars, tags = line.get("step"), line.get("scalars", {}), line.get("tags", {})
        if step is not None and (isinstance(step, bool) or not isinstance(step, int)):
            return None
        return Line(
            step,
            {str(name): float(value) for name, value in scalars.items()},
            {str(name): str(value) for name, value in tags.items()},
        )
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


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
            Only part of the line was written to disk.
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
        """Last value of every scalar at every step; step None holds the final ones."""
        found: dict[tuple[Step, str], float] = {}
        for line in self._lines():
            found.update({(line.step, name): value for name, value in line.scalars.items()})
        return found

    def tags(self) -> dict[str, str]:
        """Last value of every tag."""
        found: dict[str, str] = {}
        for line in self._lines():
            found.update(line.tags)
        return found

    def known(self, step: Step) -> dict[str, float]:
        """Last value of every scalar at one step; reads only what was added since the last look."""
        return _index(os.fspath(self.path)).at(step)

    def known_tags(self) -> dict[str, str]:
        """Last value of every tag; reads only what was added since the last look."""
        return _index(os.fspath(self.path)).known_tags()

    def _lines(self) -> list[Line]:
        if not self.path.is_file():
            return []
        text = self.path.read_text(encoding="utf-8", errors="replace")
        lines = []
        for number, content in enumerate(text.split("\n"), start=1):
            line = parsed(content) if content else None
            if line is not None:
                lines.append(line)
            elif content:
                message = f"{self.path}, line {number} is damaged and was skipped; log that call again"
                warn(message)
        return lines

    def _ends_a_line(self) -> bool:
        """Whether a new line can follow: the file is new, empty or complete, not truncated by a killed writer."""
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


class _Index:
    """The content of a growing file so far: each byte is read once, so a call costs the same at any length."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._forget()

    def at(self, step: Step) -> dict[str, float]:
        with self._lock:
            self._read()
            parts = self._values.get(step, {})
            return {
                name: value
                for names, values in parts.items()
                for name, value in zip(names, values, strict=True)
            }

    def known_tags(self) -> dict[str, str]:
        with self._lock:
            self._read()
            return dict(self._tags)

    def _forget(self) -> None:
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._values: dict[Step, dict[tuple[str, ...], array[float]]] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._tags: dict[str, str] = {}

    def _read(self) -> None:
        """Read the lines that were added; read everything again if the file was replaced."""
        try:
            with open(self._path, "rb") as file:
                found = os.fstat(file.fileno())
                if (found.st_dev, found.st_ino) != self._file or found.st_size < self._offset:
                    self._forget()
                    self._file = (found.st_dev, found.st_ino)
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            self._forget()
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for text in whole.decode("utf-8", "replace").split("\n"):
            if text and (line := parsed(text)) is not None:
                self._add(line)

    def _add(self, line: Line) -> None:
        self._tags.update(line.tags)
        if not line.scalars:
            return
        names = self._names.setdefault(tuple(line.scalars), tuple(line.scalars))
        parts = self._values.setdefault(line.step, {})
        if names in parts or not parts:  # nearly always: a step's scalars come together
            parts[names] = array("d", line.scalars.values())
            return
        for old, values in list(parts.items()):  # a value written again stands in one part only
            left = {name: value for name, value in zip(old, values, strict=True) if name not in line.scalars}
            del parts[old]
            if left:
                key = self._names.setdefault(tuple(left), tuple(left))
                parts[key] = array("d", left.values())
        parts[names] = array("d", line.scalars.values())


@lru_cache(maxsize=16)
def _index(path: str) -> _Index:
    """One index per file: each call that reopens the run reads on from where the last one stopped."""
    return _Index(path)
