"""How much memory a stranger's file may take: what it says of itself is compared with its size before it is read."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any

from uq_tracking.errors import FileFormatError, SettingsError
from uq_tracking.npz import CURE, RATIO, VARIABLE

ROOM = 2**30
"""Bytes that any file may unpack to, however small it is; the environment may name more or fewer."""


def room() -> int:
    """Bytes that any file may unpack to.

    Raises
    ------
    SettingsError
        The environment names no whole number of bytes.
    """
    given = os.environ.get(VARIABLE) or str(ROOM)
    if not given.isdecimal():
        raise SettingsError(f"{VARIABLE} is {given!r}; it is a whole number of bytes, such as {ROOM}")
    return int(given)


def check_unpacked(path: Path, size: int, packed: int) -> None:
    """FileFormatError where so many bytes would be unpacked from so few that no measured numbers are like that."""
    if size > max(room(), RATIO * packed):
        raise FileFormatError(
            f"{path}: {packed:,} bytes would unpack to {size:,}, as no measured numbers do; {CURE}"
        )


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


class Unpacked(io.RawIOBase):
    """What a gzipped file unpacks to, up to a limit."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0
        self._limit = max(room(), RATIO * size_of(path))
        self._stream = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as much as fits; FileFormatError beyond the limit."""
        number = self._stream.readinto(buffer)
        self._read += number
        if self._read > self._limit:
            raise FileFormatError(
                f"{self._path} unpacks to more than {self._limit:,} bytes, as no measured numbers do; {CURE}"
            )
        return number

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        super().close()
