"""Locks between processes of one user on one machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from uq_tracking.errors import BackendError

LOCKS = 256
"""Files that the locks of runs share; two runs with the same file take turns."""


class LockedError(BackendError):
    """Another process, or another thread, is at the same work."""


def spool_lock(folder: Path, seconds: float) -> AbstractContextManager[None]:
    """Let one process at a time send the entries of a folder."""
    return _locked(folder / ".lock", seconds, f"sending the entries of {folder}")


def run_lock(uri: str, seconds: float) -> AbstractContextManager[None]:
    """Let one process at a time read a run, rescore it and write it, so that each builds on the other's result."""
    number = int(hashlib.sha256(uri.encode()).hexdigest(), 16) % LOCKS
    folder = platformdirs.user_state_path("uq_tracking", appauthor=False) / "locks"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return _locked(folder / f"{number:02x}", seconds, f"rescoring {uri}")


@contextmanager
def _locked(path: Path, seconds: float, work: str) -> Iterator[None]:
    """Hold the lock of a file; none where it cannot be made, or on a file system without locks.

    Raises
    ------
    LockedError
        Another process has held it for longer than ``seconds``.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise LockedError(f"another process is {work}; try again when it has finished") from None
    except (OSError, NotImplementedError):  # a read-only folder, for example
        yield
        return
    try:
        yield
    finally:
        lock.release()
