"""Folders on this machine: where reports are kept that no tracker has, and where files are made on the way."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import platformdirs

from uq_tracking.errors import BackendError

T = TypeVar("T")

FOLDER = "uq_runs"
NOWHERE = Path("/no folder for temporary files")
ROOMY = 512 * 2**20
"""Free bytes with which a folder serves for the files of any call."""


def places() -> Iterator[Path]:
    """Folders for reports that no tracker has, in the order in which they are tried.

    ``./uq_runs``, the user's state directory, and one that is this user's in the temporary directory. None of them
    has to exist or to be writable.
    """
    with suppress(OSError):  # the working directory may have been deleted
        yield Path.cwd() / FOLDER
    with suppress(OSError, RuntimeError):  # no home
        yield Path(platformdirs.user_state_dir("uq_tracking", appauthor=False)).absolute() / FOLDER
    with suppress(OSError):  # no temporary directory
        yield Path(tempfile.gettempdir()).absolute() / f"uq_tracking-{_user()}" / FOLDER


def in_first_place(use: Callable[[Path], T]) -> T:
    """Return what ``use`` makes of the first place that it can write to.

    Raises
    ------
    BackendError
        None of the places takes it.
    """
    problems: list[str] = []
    for place in places():
        try:
            _check_owner(place)
            return use(place)
        except OSError as error:
            problems.append(f"{place}: {error.strerror or error}")
    raise BackendError(f"no folder takes it ({'; '.join(problems)}); free some space, or change folder")


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _check_owner(place: Path) -> None:
    """Refuse a folder in the shared temporary directory that somebody else has made."""
    parent = place.parent
    if parent.name != f"uq_tracking-{_user()}":
        return
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and (parent.is_symlink() or parent.stat().st_uid != os.getuid()):
        raise PermissionError(f"{parent} belongs to another user")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder where there is room: in the temporary directory, else where reports are kept.

    Where none can be made, it is one that does not exist: every file that is to be made in it says so by itself.
    """
    made = _roomiest()
    try:
        yield NOWHERE if made is None else Path(made.name)
    finally:
        if made is not None:
            with suppress(OSError):
                made.cleanup()


def _roomiest() -> TemporaryDirectory[str] | None:
    """The first folder with enough room, else the one with most."""
    made: list[tuple[int, TemporaryDirectory[str]]] = []
    for make in (_temporary, *(_beside(place) for place in places())):
        try:
            folder = make()
            made.append((shutil.disk_usage(folder.name).free, folder))
        except OSError:
            continue
        if made[-1][0] >= ROOMY:
            break
    if not made:
        return None
    chosen = max(made, key=lambda item: item[0])[1]
    for _, folder in made:
        if folder is not chosen:
            folder.cleanup()
    return chosen


def _temporary() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="uq_tracking_", ignore_cleanup_errors=True)


def _beside(place: Path) -> Callable[[], TemporaryDirectory[str]]:
    def make() -> TemporaryDirectory[str]:
        _check_owner(place)
        place.mkdir(parents=True, exist_ok=True)
        return TemporaryDirectory(prefix=".uq_tracking_", dir=place, ignore_cleanup_errors=True)

    return make
