"""How much memory a stranger's file may take: its stated size is compared with its actual size before reading."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any

from uq_tracking.errors import FileFormatError, SettingsError
from uq_tracking.npz import CURE, RATIO, VARIABLE

ROOM = 2**30
"""Any file may unpack to this many bytes, however small it is; the environment may set another limit."""


def room() -> int:
    """Number of bytes to which any file may unpack.

    Raises
    ------
    SettingsError
        The environment does not hold a whole number of bytes.
    """
    given = os.environ.get(VARIABLE) or str(ROOM)
    if not given.isdecimal():
        raise SettingsError(f"{VARIABLE} is {given!r}; set it to a whole number of bytes, such as {ROOM}")
    return int(given)


def check_unpacked(path: Path, size: int, packed: int) -> None:
    """Raise FileFormatError if a file would unpack to far more bytes than measured numbers ever do."""
    if size > max(room(), RATIO * packed):
        raise FileFormatError(
            f"{path}: {packed:,} bytes would unpack to {size:,}, which measured numbers never do; {CURE}"
        )


def size_of(path: Path) -> int:
    """Size in bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


class Unpacked(io.RawIOBase):
    """The content of a gzipped file, up to a limit."""

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
                f"{self._path} unpacks to more than {self._limit:,} bytes, which measured numbers never do; {CURE}"
            )
        return number

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        super().close()
