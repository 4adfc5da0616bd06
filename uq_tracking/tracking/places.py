"""Folders of this machine, for reports that no tracker has and for temporary files; locks between processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import platformdirs
from filelock import FileLock, Timeout

from uq_tracking.errors import BackendError

T = TypeVar("T")

FOLDER = "uq_runs"
_USER = os.getuid() if hasattr(os, "getuid") else 0
NOWHERE = Path("/no folder for temporary files")
ROOMY = 512 * 2**20
"""Free space, in bytes, that is enough for the files of any call."""


def places() -> list[Path]:
    """Folders for reports that no tracker has, in the order they are tried.

    ``./uq_runs``, the user's state directory, and the user's own folder in the temporary directory. None of them has
    to exist or be writable.
    """
    found = []  # no generator: an interruption while one is closed is lost
    with suppress(OSError):  # the working directory may have been deleted
        found.append(Path.cwd() / FOLDER)
    with suppress(OSError, RuntimeError):  # no home
        found.append(Path(platformdirs.user_state_dir("uq_tracking", appauthor=False)).absolute() / FOLDER)
    with suppress(OSError):  # no temporary directory
        found.append(Path(tempfile.gettempdir()).absolute() / f"uq_tracking-{_USER}" / FOLDER)
    return found


def in_first_place(use: Callable[[Path], T]) -> T:
    """Return the result of ``use`` on the first place it can write to.

    Raises
    ------
    BackendError
        It can write to none of them.
    """
    problems: list[str] = []
    for place in places():
        try:
            _check_owner(place)
            return use(place)
        except OSError as error:
            problems.append(f"{place}: {error.strerror or error}")
    raise BackendError(f"no folder is writable ({'; '.join(problems)}); free some space or change folder")


def _check_owner(place: Path) -> None:
    """Refuse a folder in the shared temporary directory that another user created."""
    parent = place.parent
    if parent.name != f"uq_tracking-{_USER}":
        return
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and (parent.is_symlink() or parent.stat().st_uid != _USER):
        raise PermissionError(f"{parent} belongs to another user")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a temporary folder where there is room: in the temporary directory, else where reports are kept.

    If none can be created, yield a path that does not exist: each file to be written there then fails by itself.
    """
    made: list[tuple[int, TemporaryDirectory[str]]] = []
    try:
        for place in chain((None,), places()):
            with suppress(OSError):
                if place is not None:
                    _check_owner(place)
                    place.mkdir(parents=True, exist_ok=True)
                prefix = "uq_tracking_" if place is None else ".uq_tracking_"
                folder = TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True)
                made.append((shutil.disk_usage(folder.name).free, folder))
                if made[-1][0] >= ROOMY:
                    break
        _, chosen = max(made, key=lambda item: item[0], default=(0, None))
        yield NOWHERE if chosen is None else Path(chosen.name)
    finally:
        for _, folder in made:
            with suppress(OSError):
                folder.cleanup()


LOCKS = 256
"""Files that the locks share; two pieces of work with the same file take turns."""


class LockedError(BackendError):
    """Another process, or another thread, is at the same work."""


def spool_lock(folder: Path, seconds: float) -> AbstractContextManager[None]:
    """Let one process at a time send the entries of a folder."""
    return _locked(folder / ".lock", seconds, f"sending the entries of {folder}")


def work_lock(work: str, seconds: float) -> AbstractContextManager[None]:
    """Let one process at a time do a piece of work, so that each builds on the other's result."""
    number = int(hashlib.sha256(work.encode()).hexdigest(), 16) % LOCKS
    folder = platformdirs.user_state_path("uq_tracking", appauthor=False) / "locks"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return _locked(folder / f"{number:02x}", seconds, work)


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
