"""The built-in ``dir:`` backend: one folder per run, readable without any tool.

::

    uq_runs/20260131-120000-mc-dropout-1f3a/
        run.json          name, creation time and first tags; never changed
        log.jsonl         the journal: scalars with their step, tags and everything else, in the order of the calls
        uq_curve/*.csv    every column of every curve
        uq_*.png          figures
        uq/...            report, statistics, predictions

Files are replaced whole and lines appended whole, so concurrent writers need no lock.

For backends of others: `KeptRun` and `KeptStore` are the base of those whose tracker keeps each run in a folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from uq_tracking._version import __version__
from uq_tracking.checks import plain_text
from uq_tracking.errors import BackendError, FileFormatError, RunNotFoundError, printable, warn
from uq_tracking.hookspecs import hookimpl
from uq_tracking.tracking.backend import Backend, BackendStatus, Run, RunStore, StoredRun, finite, name_parts
from uq_tracking.tracking.journal import Journal, JournalRun, Line, journal_at, moment
from uq_tracking.tracking.places import in_first_place, places
from uq_tracking.tracking.resolve import Target

RUN_FILE = "run.json"
LOG_FILE = "log.jsonl"
_RESERVED = (RUN_FILE, LOG_FILE)


class FolderRun(JournalRun):
    """A run in the folder ``path``, which ``FolderStore.create`` made."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.uri = f"dir:{self.path}"

    @property
    def place(self) -> str:
        """The folder that contains the run's folder; see `Run`."""
        return os.path.dirname(self.uri.partition(":")[2])

    @property
    def journal(self) -> Journal:
        """The run's journal, for as long as the run is among those written last."""
        return journal_at(self.path / LOG_FILE)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Append the tags that are new or changed; see `Run`."""
        self._check_exists()
        known = _read_head(self.path)["tags"] | self.journal.tags()
        super().set_tags({name: value for name, value in tags.items() if known.get(name) != str(value)})

    def _note(self, kind: str, **line: Any) -> None:
        """Append what is new or changed."""
        self._check_exists()
        self.journal.append({"kind": kind, **line})

    def _keep(self, name: str, content: bytes | Path) -> str:
        """Put a file into the run's folder; readers see the old file or the new one, never a part."""
        self._check_exists()
        target = _stored_path(self.path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)
        return name

    def _check_exists(self) -> None:
        if not (self.path / RUN_FILE).is_file():
            raise RunNotFoundError(f"{self.path} holds no run (no {RUN_FILE}); was it moved or deleted?")


class PathRun(FolderRun):
    """A run in a folder that a user names, made with the first write: its disk may be away until then."""

    def _check_exists(self) -> None:
        FolderStore(self.path.parent).open(self.path.name, self.path.name)


class FilesStore(RunStore):
    """What stores share that keep the files and the journal of each run in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @abstractmethod
    def is_run(self, folder: Path) -> bool:
        """Whether a folder is a run of the tracker."""

    @abstractmethod
    def _folder(self, run_id: str) -> Path:
        """Return the folder with a run's files, which need not exist before the first; RunNotFoundError."""

    @abstractmethod
    def _stored(self, folder: Path) -> StoredRun:
        """Read a run, given the tracker's folder of it."""

    def _listed(self, folders: Iterable[Path]) -> list[StoredRun]:
        """Read runs and sort them by their beginning; a damaged one is warned of, and does not hide the others."""
        found = []
        for folder in folders:
            try:
                found.append(self._stored(folder))
            except (BackendError, FileFormatError, OSError) as error:
                warn(f"run skipped: {printable(str(error))}")
        return sorted(found, key=lambda run: (run.created, run.run_id))

    def files(self, run_id: str) -> list[str]:
        """List the stored files, except the two that the backend keeps for itself; see `RunStore`."""
        folder = self._folder(run_id)
        paths = (path for path in folder.rglob("*") if path.is_file() and _is_inside(path, folder))
        whole = (path for path in paths if not (path.name.startswith(".") and path.suffix == ".part"))
        return sorted({path.relative_to(folder).as_posix() for path in whole} - set(_RESERVED))

    def fetch(self, run_id: str, name: str, folder: Path) -> Path:
        """Copy one stored file; see `RunStore`."""
        source = _stored_path(self._folder(run_id), name)
        if not source.is_file() or not _is_inside(source, self._folder(run_id)):
            raise FileNotFoundError(f"run {run_id} in {self.path} has no file {name!r}")
        target = folder.joinpath(*name_parts(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return target

    def lines(self, run_id: str) -> list[Line]:
        """Return what the run's journal says besides scalars and tags; see `RunStore`."""
        return _journal_in(self._folder(run_id)).others()

    def size(self, run_id: str, name: str) -> int | None:
        """Size of a stored file in bytes; None if there is none."""
        path = _stored_path(self._folder(run_id), name)
        return path.stat().st_size if path.is_file() else None


class FolderStore(FilesStore):
    """The runs in the folder ``path``, which need not exist before the first run."""

    def is_run(self, folder: Path) -> bool:
        """Whether a folder holds the head of a run."""
        return (folder / RUN_FILE).is_file()

    def runs(self, where: str | None = None) -> Iterator[StoredRun]:
        """List runs by creation time; ``where`` is comma-separated ``tag=value`` pairs that must all match."""
        wanted = _parse_where(where)
        for run in self._listed(path.parent for path in self.path.glob(f"*/{RUN_FILE}")):
            if all(run.tags.get(name) == value for name, value in wanted.items()):
                yield run

    def _stored(self, folder: Path) -> StoredRun:
        head, journal = _read_head(folder), _journal_in(folder)
        scalars = journal.scalars()
        # an early step may come late
        steps = sorted((step, name) for step, name in scalars if step is not None)
        last = {name: scalars[step, name] for step, name in steps}
        final = {name: value for (step, name), value in scalars.items() if step is None}
        return StoredRun(
            uri=f"dir:{folder}",
            run_id=folder.name,
            name=head["name"],
            status=str(head.get("status", "finished")),
            tags=head["tags"] | journal.tags(),
            scalars=last | final,
            created=head["created"],
        )

    def series(self, run: StoredRun) -> dict[tuple[int | None, str], float]:
        """Every scalar at every step; see `RunStore`."""
        return _journal_in(self._folder(run.run_id)).scalars()

    def reopen(self, run_id: str) -> FolderRun:
        """Open the run with this id; see `RunStore`."""
        return FolderRun(self._folder(run_id))

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> FolderRun:
        """Create a run whose id is the time, the name and four random digits."""
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        return self.open(f"{stamp}-{slug(name)}-{uuid.uuid4().hex[:4]}", name, tags)

    def open(self, run_id: str, name: str, tags: Mapping[str, str] | None = None) -> FolderRun:
        """Open the run with this id, creating it if missing."""
        folder = _stored_path(self.path, run_id)
        if not self.is_run(folder):
            folder.mkdir(parents=True, exist_ok=True)
            head = {"id": run_id, "name": name, "status": "finished", "created": moment()}
            write_whole(
                folder / RUN_FILE, (json.dumps(head | {"tags": dict(tags or {})}, indent=1) + "\n").encode()
            )
        return FolderRun(folder)

    def show(self) -> str | None:
        """Return the ``file:`` address of the folder."""
        return self.path.as_uri()

    def _folder(self, run_id: str) -> Path:
        folder = _stored_path(self.path, run_id)
        if not self.is_run(folder):
            raise RunNotFoundError(f"{self.path} has no run {run_id!r}; list them with `ls {self.path}`")
        return folder


KEPT = "uq"
"""The subfolder of a tracker's run for what the tracker does not hold."""


class KeptRun(FolderRun):
    """A run of a tracker that keeps each run in a folder: what the tracker does not hold is kept in its ``uq``.

    A subclass draws in the tracker what is new, then calls the method of this class, which keeps it.

    Parameters
    ----------
    folder : Path
        The tracker's folder of the run, which has to exist.
    scheme : str
        Scheme of the tracker's addresses.
    """

    def __init__(self, folder: Path, scheme: str) -> None:
        self.folder = folder.absolute()
        super().__init__(self.folder / KEPT)
        self.uri = f"{scheme}:{self.folder}"

    def new(self, scalars: Mapping[str, float], step: int | None) -> Iterator[tuple[str, float, int]]:
        """Yield the numbers that are not kept yet, and where to draw them: without a step, each at its last."""
        known, last = self.journal.at(step), dict[str, int]()
        for at, name in self.journal.scalars() if step is None else ():
            if at is not None:
                last[name] = max(at, last.get(name, at))
        for name, value in finite(scalars).items():
            if known.get(name) != value:
                yield name, value, last.get(name, 0) if step is None else step

    def start(self) -> None:
        """Write what the tracker recognizes a new run by."""

    def _check_exists(self) -> None:
        if not self.folder.is_dir():
            raise RunNotFoundError(f"{self.folder} holds no run; was it moved or deleted?")
        FolderStore(self.folder).open(KEPT, self.folder.name)


class KeptStore(FilesStore):
    """The runs below ``path`` of a tracker that keeps each in a folder; a run's id is its path relative to it.

    Attributes
    ----------
    scheme, tracker : str
        Scheme of the tracker's addresses, and its name in messages.
    evidence : str
        What a folder of a run holds, in messages.
    """

    scheme: ClassVar[str]
    tracker: ClassVar[str]
    evidence: ClassVar[str]

    @abstractmethod
    def folders(self) -> Iterable[Path]:
        """Find the folders of all runs below ``path``."""

    @abstractmethod
    def started(self, folder: Path) -> float:
        """Return when a run began, in seconds; FileFormatError if it is damaged, which leaves it out."""

    @abstractmethod
    def last_scalars(self, folder: Path) -> dict[str, float]:
        """Read the last value of every number that the tracker itself holds."""

    @abstractmethod
    def opened(self, folder: Path) -> KeptRun:
        """Open a run for writing."""

    def runs(self, where: str | None = None) -> Iterator[StoredRun]:
        """List the runs by their beginning; the tracker has no filter expressions; see `RunStore`."""
        if where is not None:
            raise BackendError(
                f"{self.tracker} has no filters; omit {where!r}, or name a run with {self.scheme}:FOLDER/RUN"
            )
        yield from self._listed(self.folders())

    def _stored(self, folder: Path) -> StoredRun:
        run_id = folder.relative_to(self.path).as_posix()
        # what this package keeps beside the tracker's files, if it has written to the run
        kept = next((run for run in FolderStore(folder).runs() if run.run_id == KEPT), None)
        scalars = {
            name: value
            for name, value in self.last_scalars(folder).items()
            if not (folder / KEPT / f"{name}.csv").is_file()  # a curve, whose axis is not a training step
        }
        return StoredRun(
            uri=f"{self.scheme}:{folder}",
            run_id=run_id,
            name=run_id if kept is None else kept.name,
            status="unknown",  # folders do not say whether more will come
            tags={} if kept is None else kept.tags,
            scalars=scalars if kept is None else {**scalars, **kept.scalars},
            created=datetime.fromtimestamp(self.started(folder), timezone.utc).isoformat(),
        )

    def series(self, run: StoredRun) -> dict[tuple[int | None, str], float]:
        """Last values, and those this package wrote at every step; see `RunStore`."""
        ours = _journal_in(self._folder(run.run_id)).scalars()
        names = {name for _, name in ours}
        return ours | {key: value for key, value in super().series(run).items() if key[1] not in names}

    def reopen(self, run_id: str) -> KeptRun:
        """Open the run with this id; see `RunStore`."""
        return self.opened(self._folder(run_id).parent)

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> KeptRun:
        """Create a run in a new folder of that name, with a number appended if needed."""
        self.path.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            folder = self.path / (slug(name) if number == 1 else f"{slug(name)}-{number}")
            with suppress(FileExistsError):
                folder.mkdir()
                break
        FolderStore(folder).open(KEPT, name, tags)
        run = self.opened(folder)
        run.start()
        return run

    def _folder(self, run_id: str) -> Path:
        folder = self.path if run_id == "." else self.path.joinpath(*name_parts(run_id))
        if not self.is_run(folder):
            raise RunNotFoundError(f"{self.path} has no run {run_id!r}: there are no {self.evidence}")
        return folder / KEPT


class FolderBackend(Backend):
    """Runs as plain folders; always usable. A tracker that keeps each run in a folder has another ``kind``."""

    name = "dir"
    kind: type[FilesStore] = FolderStore

    def status(self) -> BackendStatus:
        """Report that the backend is usable."""
        return BackendStatus(self.name, usable=True, version=__version__)

    def active_run(self) -> Run | None:
        """Return None: a folder is never active."""
        return None

    def place(self, address: str, *, scheme: str | None = None) -> str:
        """Return the folder; see `Backend`."""
        return os.path.abspath(os.path.expanduser(address or "."))

    def adopt(self, run: Any) -> Run | None:
        """Adopt the path of a run's folder, which is created with the first write if it is missing."""
        return PathRun(Path(run)) if isinstance(run, os.PathLike) else None

    def store(self, address: str, *, scheme: str | None = None) -> tuple[RunStore, str | None]:
        """Treat ``address`` as a run's folder if it holds a run, else as a folder of runs."""
        path = Path(address or ".").expanduser().absolute()
        store = self.kind(path)
        return (self.kind(path.parent), path.name) if store.is_run(path) else (store, None)


def slug(text: str) -> str:
    """Reduce a text to what every file system accepts in a name.

    >>> slug("MC dropout (p=0.1)")
    'MC-dropout-p-0.1'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:60] or "run"


def _stored_path(folder: Path, name: str) -> Path:
    if name in _RESERVED:
        raise BackendError(f"{name!r} is reserved for the backend; choose another name for the file")
    return folder.joinpath(*name_parts(name))


def _is_inside(path: Path, folder: Path) -> bool:
    """Return whether a file is inside the folder, not behind a link that leads out of it."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # circular links
        return False


def write_whole(path: Path, content: bytes | Path) -> None:
    """Put content, or a copy of a file, in place; readers see the old file or the new one, never a part."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        if isinstance(content, bytes):
            part.write_bytes(content)
        else:
            shutil.copyfile(content, part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _read_head(folder: Path) -> dict[str, Any]:
    path = folder / RUN_FILE
    try:
        head = json.loads(plain_text(path))
        return {
            **head,
            "name": str(head["name"]),
            "created": str(head["created"]),
            "tags": {str(key): str(value) for key, value in dict(head["tags"]).items()},
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BackendError(f"{path} does not describe a run ({error!r}); restore or remove it") from error


def _journal_in(folder: Path) -> Journal:
    journal = Journal(folder / LOG_FILE)
    for number in journal.damaged():
        warn(f"{journal.path}, line {number} is damaged and was skipped; log that call again")
    return journal


def _parse_where(where: str | None) -> dict[str, str]:
    pairs = [part.partition("=") for part in (where or "").split(",") if part.strip()]
    if any(not sign for _, sign, _ in pairs):
        raise BackendError(f"cannot read the filter {where!r}; write tag=value, e.g. uq.method=bagging")
    return {name.strip(): value.strip() for name, _, value in pairs}


@hookimpl
def uq_backends() -> list[Backend]:
    """Runs as folders."""
    return [FolderBackend()]


@lru_cache(maxsize=1)
def _of_process(pid: int) -> threading.local:
    """Return the runs of each thread of this process; a forked child has another ``pid``, hence its own."""
    return threading.local()


def fallback_target(method: str | None, split: str | None, step: int | None) -> tuple[Target, bool]:
    """Return the folder this call belongs to, and whether it is new.

    Calls of the same thread and method share a run, as they would share a tracker's: one line per step, one report
    per split. A second report of the same split opens another run instead of replacing the first.

    Raises
    ------
    BackendError
        No folder can be created anywhere.
    """
    here = vars(_of_process(os.getpid()))
    stamp = here.setdefault("stamp", f"{datetime.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}")
    known: dict[Any, list[tuple[FolderRun, set[str | None]]]] = here.setdefault("runs", {})
    runs = known.setdefault((method or "run", next(iter(places()), None)), [])
    is_new = not runs or not runs[-1][0].path.is_dir() or (step is None and split in runs[-1][1])
    if is_new:
        name = f"{stamp}-{slug(method or 'run')}" + (f"+{len(runs) + 1}" if runs else "")
        made = in_first_place(lambda place: FolderStore(place).open(name, method or "run"))
        runs.append((made, set()))
    run, splits = runs[-1]
    if step is None:
        splits.add(split)
    return Target("dir", run.uri, lambda: run, place=run.place), is_new
