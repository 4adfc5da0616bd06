"""What a tracker did not take, kept in files until it does: one self-contained, atomic entry per call.

An entry is a zip archive in ``<place>/spool``: ``entry.json`` holds the run it is for and the call's journal, and the
files that its lines name lie beside it. It is written under a temporary name, flushed to disk and renamed, so it
exists whole or not at all. Its name gives the order of the calls, independent of any clock, the run and a digest of
the content; process ids from different hosts and forks cannot collide in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.checks import LONGEST_TEXT, check_plain, check_version
from uq_tracking.errors import FileFormatError
from uq_tracking.npz import LIMIT, Archive
from uq_tracking.tracking.backend import Run, called_at, calling
from uq_tracking.tracking.journal import JournalRun, Line, Write, replay, write_of
from uq_tracking.tracking.places import in_first_place, places, scratch_folder
from uq_tracking.typed import record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPOOL = "spool"
SUFFIX = ".uqspool.zip"
Group = Sequence[tuple[str, Write]]
"""Named writes that are sent together."""
FORMAT = "uq_tracking.spool"
VERSION = 1
ENTRY = "entry.json"


@dataclass(frozen=True)
class Origin:
    """The run an entry is for."""

    tracker: str
    """Name of the backend."""
    place: str
    """Place of the tracker: a server's address or a folder, without credentials."""
    uri: str
    """The address of the run, or of the store in which to create one."""
    is_run: bool = True
    """True if ``uri`` names a run."""
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Name and tags of a run to be created."""
    step: int | None = None
    splits: Sequence[str | None] = (None,)

    @property
    def key(self) -> str:
        """Eight hexadecimal digits that identify what the entry is for: tracker, run, step and splits."""
        text = json.dumps([self.tracker, self.place, self.uri, self.step, list(self.splits)])
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]


def keep(origin: Origin, groups: Sequence[Group], *, drawings: bool = True) -> Path:
    """Write an entry to the first place that takes it, with or without drawings, and return its path.

    Raises
    ------
    BackendError
        No place accepts it.
    """
    return in_first_place(lambda place: _write(place / SPOOL, origin, groups, drawings=drawings))


def _write(folder: Path, origin: Origin, groups: Sequence[Group], *, drawings: bool) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    order = f"{_process(os.getpid()).next(folder)}-{origin.key}"
    part = folder / f".{order}-{uuid.uuid4().hex}.part"
    try:
        # only this user may read it: it holds predictions, on a machine that others use too
        with open(part, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            digest = _fill(file, origin, groups, drawings=drawings)
            file.flush()
            os.fsync(file.fileno())
        path = folder / f"{order}-{digest[:12]}{SUFFIX}"
        part.replace(path)
        with suppress(OSError):  # not every system can flush the new name to disk
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return path


class _Recorder(JournalRun):
    """A run that exists only in an archive."""

    uri = "spool:"

    def __init__(self, archive: zipfile.ZipFile, *, drawings: bool) -> None:
        self._archive = archive
        self._drawings = drawings
        self.groups: list[list[Line]] = []
        self.members: dict[str, str] = {}
        """Digest of every file in the archive."""

    def _note(self, kind: str, **line: Any) -> None:
        if self._drawings or kind != "table":
            self.groups[-1].append({"kind": kind, **line})

    def _keep(self, name: str, content: bytes | Path) -> str:
        data = content if isinstance(content, bytes) else content.read_bytes()
        member = f"{len(self.members):04d}"
        self._archive.writestr(zipfile.ZipInfo(member), data)  # whatever the year of the clock
        self.members[member] = hashlib.sha256(data).hexdigest()
        return member

    def _note_picture(self, kind: str, name: str, figure: Figure) -> None:
        if self._drawings:
            super()._note_picture(kind, name, figure)


def _fill(file: Any, origin: Origin, groups: Sequence[Group], *, drawings: bool) -> str:
    """Write the archive, and return the digest of its content."""
    with Archive(file, "w", zipfile.ZIP_STORED) as archive:
        recorder = _Recorder(archive, drawings=drawings)
        for group in groups:
            recorder.groups.append([])
            for _, write in group:
                write(recorder)
        content = {"groups": recorder.groups, "members": recorder.members}
        digest = _digest(content)
        about = {"format": FORMAT, "version": VERSION, "origin": asdict(origin), "called": called_at()}
        about |= {"host": socket.gethostname(), "pid": os.getpid(), "digest": digest, **content}
        archive.writestr(zipfile.ZipInfo(ENTRY), json.dumps(about, allow_nan=True))
    return digest


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class _Process:
    """Numbers the calls of one process: each above all kept before, by this process and by others."""

    def __init__(self) -> None:
        self._name = f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:12]}"
        self._number = 0
        self._lock = threading.RLock()  # a signal handler may log, too

    def next(self, folder: Path) -> str:
        """The prefix of the next entry's name, by which entries are sorted."""
        with self._lock:
            for spool in {folder, *(place / SPOOL for place in places())}:
                with suppress(OSError):
                    self._number = max([*map(number_of, spool.iterdir()), self._number])
            self._number += 1
            return f"{self._number:08d}-{self._name}"


@lru_cache(maxsize=1)
def _process(pid: int) -> _Process:
    """One object per process: a forked child has another ``pid``, hence its own."""
    return _Process()


def number_of(path: Path) -> int:
    """The number in the name of an entry; 0 for other files."""
    found = re.match(r"(\d{8})-", path.name) if path.name.endswith(SUFFIX) else None
    return int(found[1]) if found else 0


def call_name(path: Path) -> str:
    """Return what identifies the call of an entry, wherever that is moved."""
    return path.name.removesuffix(SUFFIX)


@dataclass(frozen=True)
class Entry:
    """An entry that was read."""

    path: Path
    origin: Origin
    called: float
    groups: Sequence[Sequence[Line]]
    members: Mapping[str, str]

    def member(self, name: str) -> bytes:
        """Bytes of a figure or file; FileFormatError if they are not those that were kept."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                content = archive.read(name)
        except Exception as error:  # zipfile and zlib raise a dozen kinds of errors for damaged bytes
            raise FileFormatError(f"its member {name} cannot be read ({error})") from error
        if hashlib.sha256(content).hexdigest() != self.members.get(name):
            raise FileFormatError(f"its member {name} is not what was kept (its digest differs)")
        return content

    def send(self, run: Run, after_batch: Callable[[], None] = lambda: None) -> None:
        """Write everything into a run, with the time of the original call; see `replay`."""
        with calling(self.called), scratch_folder() as folder:
            path = folder / "content"

            def file(member: str) -> Path:
                path.write_bytes(self.member(member))
                return path

            try:
                replay(self.groups, file, run, after_batch=after_batch)
            except FileFormatError as error:
                raise FileFormatError(f"{self.path} is damaged: {error}") from error


def read_entry(path: Path) -> Entry:
    """Read an entry.

    Raises
    ------
    FileNotFoundError
        It is gone.
    FileFormatError
        It is damaged, foreign, too new or too large.
    """
    if path.is_symlink():
        raise FileFormatError(f"{path} is a link; entries are plain files")
    check_plain(path, LIMIT)
    with path.open("rb") as file:  # operating system errors pass through
        try:
            with zipfile.ZipFile(file) as archive:
                if sum(info.file_size for info in archive.infolist()) > os.fstat(file.fileno()).st_size:
                    raise FileFormatError("it is packed, as entries are not")
                if archive.getinfo(ENTRY).file_size > LONGEST_TEXT:
                    raise FileFormatError(f"{ENTRY} has more than {LONGEST_TEXT:,} bytes")
                about = json.loads(archive.read(ENTRY))
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise FileFormatError("it is not an entry of uq_tracking")
            check_version("it", about["version"], VERSION)
            content = {"groups": about["groups"], "members": about["members"]}
            if about["digest"] != _digest(content):
                raise FileFormatError("its content does not match its digest")
            origin, members = record(Origin, about["origin"]), dict(content["members"])
            entry = Entry(path, origin, float(about["called"]), content["groups"], members)
            for line in chain.from_iterable(entry.groups):
                write_of(line, Path)
        except FileFormatError as error:
            raise FileFormatError(f"{path} is damaged: {error}") from error
        except Exception as error:  # zipfile, zlib and json raise a dozen kinds of errors for damaged bytes
            raise FileFormatError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    return entry


def entries(folder: Path | None = None) -> Iterator[Path]:
    """Paths of the entries, in call order within each process, and across processes that ran one after another.

    Parameters
    ----------
    folder
        A folder of reports, such as ``uq_runs``; by default all places on this machine.
    """
    found: list[Path] = []
    for place in places() if folder is None else (folder,):
        spool = place if place.name == SPOOL else place / SPOOL
        with suppress(OSError):
            found += (path for path in spool.iterdir() if path.name.endswith(SUFFIX))
    yield from sorted(found, key=lambda path: (number_of(path), path.name))
