"""Copy runs from one store to another, such as those that waited in ``./uq_runs`` for a tracker."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from typing import Any

from uq_tracking.checks import check_callable, check_flag, check_text, named_options
from uq_tracking.errors import (
    BackendError,
    FileFormatError,
    RunNotFoundError,
    TrackerUnreachableError,
    UQTrackingError,
    redact,
)
from uq_tracking.runs.outcomes import Outcome, Progress, Summary, worked
from uq_tracking.runs.read import LoggedRun, logged_runs
from uq_tracking.tracking.backend import RunStore, StoredRun, calling
from uq_tracking.tracking.deadline import PATIENCE
from uq_tracking.tracking.health import is_sick
from uq_tracking.tracking.journal import PAGES, JournalRun, Line, replay
from uq_tracking.tracking.names import ORIGIN_TAG, REPORT_FILE, curve_name, map_name
from uq_tracking.tracking.overview import dataset, description
from uq_tracking.tracking.places import copy_lock, scratch_folder, spool_lock
from uq_tracking.tracking.resolve import Opened, find_backend, open_store, reopened
from uq_tracking.tracking.spool import SPOOL, SUFFIX, Entry, Origin, entries, read_entry

SOURCE_TAG = "uq.synced"
"""Names the run that was copied; in a copy of a copy, the first one."""
CONTENT_TAG = "uq.synced.content"
"""Digest of what was copied; set last."""


@named_options
def sync(
    source: str | None = None,
    destination: str | None = None,
    *,
    where: str | None = None,
    dry_run: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
) -> Summary:
    """Send what trackers missed while they were down, and copy runs to another tracker.

    Without a destination, every call that `log` kept for a failing tracker is sent to the run it was meant for; if
    that run is gone, to a new one beside it whose tag ``uq.origin`` names it. With a destination, the runs of the
    source are also copied there with everything that was logged to them: each once, recognized by a tag, updated if
    it has changed, and left alone otherwise. A copy is not copied back to where its original is. Both can be
    interrupted and called again. Processes of one machine that copy to the same place take turns; if two machines
    copied the same runs at once, the next call names the copies that there are twice.

    Parameters
    ----------
    source : str, optional
        Runs to copy, such as ``dir:uq_runs``. From another tracker, only the last values of scalars are copied.
        Without a destination, the folder whose kept calls to send; by default all places where `log` keeps them.
    destination : str, optional
        Where to copy runs, such as ``mlflow:EXPERIMENT`` or ``wandb:ENTITY/PROJECT``.
    where : str, optional
        Filter expression, in the syntax of the source's tracker.
    dry_run : bool
        Only say what would be sent or copied; write nothing.
    keep : bool
        Keep the files of calls that were sent in ``spool/sent``.
    progress : callable, optional
        ``progress(outcome, total)`` is called after every run.

    Returns
    -------
    Summary
        What became of each run of the source.

    Raises
    ------
    BackendError
        No backend handles an address, the source does not exist (RunNotFoundError), the destination is a single run
        or holds the source's runs itself, or a tracker is unavailable.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> _ = uq.log([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3], run="dir:waiting", method="example")
    >>> len(uq.sync("dir:waiting", "dir:shared").done), len(uq.sync("dir:waiting", "dir:shared").skipped)
    (1, 1)
    """
    for name, given in {"source": source, "destination": destination}.items():
        check_text(name, given, "dir:uq_runs")
    for name, flag in {"dry_run": dry_run, "keep": keep}.items():
        check_flag(name, flag)
    check_callable("progress", progress)
    if source is not None:
        _check_exists(source)
    kept = list(_send_kept(source, destination, dry_run=dry_run, keep=keep, progress=progress))
    if destination is None or source is None:
        return Summary(kept, dry_run=dry_run)
    store, run_id = open_store(destination)
    if run_id is not None:
        raise BackendError(
            f"{destination} is a single run; name the experiment or folder to copy the runs to"
        )
    with nullcontext() if dry_run else copy_lock(_place_of(destination), PATIENCE):
        runs, held = list(logged_runs(source, where=where)), _held(store)
        if {run.stored.uri for run in runs} & {run.uri for run in held}:
            raise BackendError(
                f"{source} and {destination} are the same place; name another one to copy the runs to"
            )
        work = _Sync(store, held, dry_run)
        return Summary([*kept, *worked(runs, work, 1, progress)], dry_run=dry_run)


def _place_of(uri: str) -> str:
    """Return what two spellings of a folder, or of an experiment on one server, have in common."""
    scheme, _, address = uri.partition(":")
    place = find_backend(scheme).place(address, scheme=scheme)
    return f"{scheme}:{place}" if Path(place).is_absolute() else f"{scheme}:{place} {address.strip('/')}"


def _check_exists(source: str) -> None:
    """Raise RunNotFoundError if the source is to be a folder on this machine, and is none."""
    scheme, colon, address = source.partition(":")
    folder = Path(source).expanduser().absolute()
    place = Path(find_backend(scheme).place(address, scheme=scheme)) if colon else folder
    if place.is_absolute() and not place.is_dir():
        raise RunNotFoundError(
            f"{source}: there is no folder {place}; check the address (without one, sync sends every kept call)"
        )


def _send_kept(
    source: str | None, destination: str | None, *, dry_run: bool, keep: bool, progress: Progress | None
) -> Iterator[Outcome]:
    """Send the kept calls of the source, if it is a folder on this machine."""
    scheme, colon, address = (source or "").partition(":")
    if colon and scheme != "dir":
        if destination is None:
            raise BackendError(f"{source} is not a folder; name the destination to copy its runs to")
        return
    folder = Path(address if colon else scheme).expanduser().absolute() if source else None
    outcomes = list(send_entries(folder, destination, dry_run=dry_run, keep=keep))
    for outcome in outcomes:
        if progress is not None:
            progress(outcome, len(outcomes))
        yield outcome


def _held(store: RunStore) -> list[StoredRun]:
    """List the runs already in the store."""
    try:
        return list(store.runs())
    except RunNotFoundError:  # the experiment is created with its first run
        return []


@dataclass(frozen=True)
class _Sync:
    """Work on each run of the source."""

    store: RunStore
    held: Sequence[StoredRun]
    dry_run: bool

    @cached_property
    def copies(self) -> dict[str, list[StoredRun]]:
        """The copies in the destination, by what they are copies of."""
        found: dict[str, list[StoredRun]] = {}
        for run in self.held:
            if SOURCE_TAG in run.tags:
                found.setdefault(run.tags[SOURCE_TAG], []).append(run)
        return found

    @cached_property
    def originals(self) -> dict[str, StoredRun]:
        """The runs in the destination, by the tag that a copy of them has."""
        return {_identity(run): run for run in self.held}

    def __call__(self, run: LoggedRun) -> Outcome:
        origin = run.stored.tags.get(SOURCE_TAG)
        original = self.originals.get(origin or "")
        if original is not None:
            return Outcome(run.stored.uri, run.name, "skipped", f"it is a copy of {original.uri}")
        source, content = origin or _identity(run.stored), _content_digest(run)
        copies = self.copies.get(source, [])
        copy = copies[0] if copies else None
        twice = "".join(f"; {double.uri} is another copy: delete it" for double in copies[1:])
        if copy is not None and copy.tags.get(CONTENT_TAG) == content:
            return Outcome(run.stored.uri, run.name, "skipped", f"{copy.uri} is already a copy{twice}")
        message = "copied" if copy is None else f"updated in {copy.uri}"
        if not self.dry_run:
            left_out = self._write(run, copy, source, content)
            message += f"; left out: {'; '.join(left_out)}" if left_out else ""
        return Outcome(run.stored.uri, run.name, "done", message + twice)

    def _write(self, run: LoggedRun, copy: StoredRun | None, source: str, content: str) -> list[str]:
        """Write the run's journal to its copy; leave out and name what is damaged."""
        left_out: list[str] = []
        if copy is None:
            written = self.store.create(run.name, {SOURCE_TAG: source})
        else:
            written = self.store.reopen(copy.run_id)
        try:
            with calling(time.time()), scratch_folder() as folder:
                rebuilt = _Rebuilt(folder)
                replay(
                    _journal(run, rebuilt, left_out), partial(_file, run, folder), written, damaged=left_out
                )
            written.seal({CONTENT_TAG: content})
        finally:
            self.store.close_run(written)
        return left_out


def _identity(stored: StoredRun) -> str:
    """Return what distinguishes the run from every other, wherever its store is."""
    created = f"@{stored.created}" if stored.created else ""
    return f"{stored.uri.partition(':')[0]}:{stored.run_id}{created}"


def _content_digest(run: LoggedRun) -> str:
    """Return a digest of the run's content; for files, of names and sizes."""
    sizes = {name: run.store.size(run.stored.run_id, name) for name in run.files}
    series = [[step, name, value] for (step, name), value in run.store.series(run.stored).items()]
    lines = run.store.lines(run.stored.run_id)
    text = json.dumps([series, _tags(run.stored), sizes, *lines], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _tags(stored: StoredRun) -> dict[str, str]:
    """Return the run's tags, except those that a tracker or an earlier copy keeps for itself."""
    return {
        name: value
        for name, value in stored.tags.items()
        if not name.startswith(("mlflow.", SOURCE_TAG)) and value
    }


class _Rebuilt(JournalRun):
    """The journal of a run whose tracker keeps none, made again in a folder from what the run holds."""

    uri = "rebuilt:"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.lines: list[Line] = []

    def _note(self, kind: str, **line: Any) -> None:
        self.lines.append({"kind": kind, **line})

    def _keep(self, name: str, content: bytes | Path) -> str:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        return name


def _journal(run: LoggedRun, rebuilt: _Rebuilt, left_out: list[str]) -> list[list[Line]]:
    """Return the lines of a run by what is sent together: series, final numbers, drawings and files, pages."""
    by_step: dict[int | None, dict[str, float]] = {}
    for (step, name), value in run.store.series(run.stored).items():
        if step is not None or not _is_curve(name):
            by_step.setdefault(step, {})[name] = value
    final = by_step.pop(None, {})
    rebuilt.set_tags(_tags(run.stored))
    for step in sorted(step for step in by_step if step is not None):
        rebuilt.log_scalars(by_step[step], step=step)
    series, rebuilt.lines = rebuilt.lines, []
    rebuilt.log_scalars(final)
    lines = list(run.store.lines(run.stored.run_id))
    if not lines:
        _rebuild(run, {*final}, rebuilt, left_out)
    lines = [*rebuilt.lines, *lines]
    stored = {line.get("file") for line in lines}
    lines += [_line_of(name, run) for name in run.files if not _is_curve(name) and name not in stored]
    place = {"scalars": 0, "curve": 0} | dict.fromkeys(PAGES, 2)
    return [series, *([line for line in lines if place.get(line["kind"], 1) == at] for at in range(3))]


def _rebuild(run: LoggedRun, names: set[str], rebuilt: _Rebuilt, left_out: list[str]) -> None:
    """Note the curves, the description and the data set of every report, also those of splits and outputs."""
    for split in (*([None] if run.has(REPORT_FILE) else []), *run.splits()):
        try:
            report = replace(run, split=split).report()
        except FileFormatError as error:
            left_out.append(f"curves ({error})")
            continue
        for key, curve in report.curves.items():
            name = curve_name(key, split, report.settings, report.task)
            rebuilt.log_curve(name, curve)
            names |= {name} if curve.steps is not None else set()
        rebuilt.describe(description(report, split))
        rebuilt.use_dataset(dataset(report, split))
    if any(line["kind"] == "description" for line in rebuilt.lines):
        drawn = [_line_of(name, run) for name in run.files]
        rebuilt.show(names | {line["name"] for line in drawn if line["kind"] == "map"})


def _is_curve(name: str) -> bool:
    return name.startswith("uq_curve/")


def _line_of(file: str, run: LoggedRun) -> Line:
    """Return the line of a stored file: figures and maps are shown, other files stored as they are."""
    name = file.removesuffix(".png")
    if name == file or not file.startswith("uq_") or "/" in file:
        return {"kind": "file", "name": file, "file": file}
    if not name.startswith("uq_map_"):
        return {"kind": "figure", "name": name, "file": file}
    case = name.removeprefix("uq_map_")
    splits = {f"{split.replace('/', '_')}_": split for split in run.splits()}
    start = max((start for start in splits if case.startswith(start)), key=len, default="")
    return {"kind": "map", "name": map_name(case.removeprefix(start), splits.get(start)), "file": file}


def _file(run: LoggedRun, folder: Path, name: str) -> Path:
    """Return the path of a file that was made again, or is fetched."""
    path = folder / name
    try:
        return path if path.is_file() else run.fetch(name, folder)
    except FileNotFoundError as error:
        raise FileFormatError(f"{name} is gone") from error


SENT = "sent"
"""Folder in which sent entries are kept."""
MOST_FAILURES = 2
"""After how many entries in a row a tracker that fails on them is not asked again."""


def send_entries(
    folder: Path | None = None, destination: str | None = None, *, dry_run: bool = False, keep: bool = False
) -> Iterator[Outcome]:
    """Send the entries of a folder of reports, by default of all places; return the outcome of each, in order.

    Entries of one run share one opening of it, in call order. Those that a tracker has taken are removed at once, so
    an interrupted call continues where it stopped.

    Parameters
    ----------
    folder
        A folder such as ``uq_runs``.
    destination
        Where to create runs for entries whose own run is gone; by default beside it.
    dry_run
        Only say what would be sent.
    keep
        Move sent entries to ``spool/sent``.
    """
    paths = list(entries(folder))
    with ExitStack() as locks:
        if not dry_run:
            for spool in sorted({path.parent for path in paths}):
                locks.enter_context(spool_lock(spool, PATIENCE))
        sound: list[Entry] = []
        for path in paths:
            try:
                sound.append(read_entry(path))
            except FileNotFoundError:  # another process has sent it in the meantime
                continue
            except (OSError, UQTrackingError) as error:
                yield _failed(path, path.name, error)
        for uri in dict.fromkeys(_run_of(entry) for entry in sound):
            own = [entry for entry in sound if _run_of(entry) == uri]
            yield from _send_run(own, destination, dry_run=dry_run, keep=keep)


def drop_entry(which: str) -> Path:
    """Delete an entry, given by its file name or path, instead of sending it; return its path.

    Raises
    ------
    BackendError
        There is no such entry.
    """
    given = Path(which).expanduser().absolute()
    kept: list[Path] = [*entries(), *(entries(given.parent) if given.parent.name == SPOOL else ())]
    found = next((path for path in kept if path.absolute() == given or path.name == which), None)
    if found is None:
        names = ", ".join(path.name for path in kept)
        raise BackendError(
            f"{which} is not a kept call; {f'choose from {names}' if names else 'there are none'}"
        )
    with spool_lock(found.parent, PATIENCE):
        found.unlink(missing_ok=True)
    return found


def _failed(path: Path, name: str, error: Exception) -> Outcome:
    """Return why an entry was not sent, where it is, and how to give it up if it can never be sent."""
    kind = "" if isinstance(error, OSError | UQTrackingError) else f"{type(error).__name__}: "
    is_refused = isinstance(error, UQTrackingError) and not isinstance(error, TrackerUnreachableError)
    rest = (
        f"to give it up: uq-tracking sync --drop {quote(str(path))}" if is_refused else f"it stays in {path}"
    )
    return Outcome(path.as_uri(), name, "failed", redact(f"{kind}{error}; {rest}"), error=error)


def _run_of(entry: Entry) -> tuple[str, str, str]:
    """Return what distinguishes the entry's run; one yet to be created is the entry's own, or its fit's."""
    return entry.origin.place, entry.origin.uri, _mark(entry)


def _mark(entry: Entry) -> str:
    """Return what a run that is created for the entry is recognized by."""
    origin, call = entry.origin, entry.path.name.removesuffix(SUFFIX)
    return origin.uri if origin.is_run else origin.tags.get(ORIGIN_TAG, call)


def _send_run(
    own: Sequence[Entry], destination: str | None, *, dry_run: bool, keep: bool
) -> Iterator[Outcome]:
    """Send the entries of one run, and put away those that it has certainly taken."""
    message = f"would be sent to {own[0].origin.uri}"
    try:
        _check_place(own[0].origin)
        failed: dict[Path, Exception] = {}
        if not dry_run:
            message, failed = _sent(own, destination)
    except Exception as error:  # trackers raise whatever their libraries raise
        failed = {entry.path: error for entry in own}
    for entry in own:
        step = "" if entry.origin.step is None else f", step {entry.origin.step}"
        address, name = entry.path.as_uri(), f"{entry.origin.uri}{step}"
        if (problem := failed.get(entry.path)) is not None:
            yield _failed(entry.path, name, problem)
            continue
        if not dry_run:
            _put_away(entry.path, keep=keep)
        yield Outcome(address, name, "done", message)


def _sent(own: Sequence[Entry], destination: str | None) -> tuple[str, dict[Path, Exception]]:
    """Write the entries to their run, or to a substitute if the tracker shows a run that it has deleted."""
    opened = _opened(own[0], destination)
    failed = _replayed(own, opened)
    refused = [entry for entry in own if isinstance(failed.get(entry.path), RunNotFoundError)]
    if refused and own[0].origin.is_run:
        opened = _instead(own[0], destination)
        failed = {path: error for path, error in failed.items() if not isinstance(error, RunNotFoundError)}
        failed |= _replayed(refused, opened)
    return f"sent to {opened.run.uri}", failed


def _replayed(own: Sequence[Entry], opened: Opened) -> dict[Path, Exception]:
    """Write the entries in order; return those not taken, with the reason. Stop when the tracker seems down."""
    failed: dict[Path, Exception] = {}
    sick: list[Exception] = []
    try:
        for entry in own:
            if len(sick) == MOST_FAILURES:
                failed[entry.path] = sick[-1]
                continue
            try:
                entry.send(opened.run)
                sick = []
            except Exception as error:  # trackers raise whatever their libraries raise
                failed[entry.path] = error
                sick = [*sick, error] if is_sick(error) else []
    finally:
        opened.release()
    return failed


def _check_place(origin: Origin) -> None:
    """Refuse to send to a server other than the one the entry was meant for."""
    current = find_backend(origin.tracker).place("")
    if "://" in origin.place and current and current != origin.place:
        raise BackendError(
            f"it belongs to {origin.place}, but {origin.tracker} is set to {current}; set the former and sync again"
        )


def _opened(entry: Entry, destination: str | None) -> Opened:
    """Open the run the entry was meant for, if it exists; else one that names it, created once."""
    origin = entry.origin
    parent = origin.uri
    if parent.startswith("<") and destination is None:
        raise BackendError(
            f"it belongs to {parent}, which has no address; name a destination, such as mlflow:EXPERIMENT"
        )
    if origin.is_run and not parent.startswith("<"):
        try:
            return reopened(origin.uri)
        except BackendError as error:
            is_gone = isinstance(error, RunNotFoundError)
            if not is_gone and (destination is None or is_sick(error)):
                raise
            return _instead(entry, destination)
    _, run_id = open_store(destination or parent)
    if run_id is not None:  # the address of a run that could not be opened when the call was made
        return reopened(destination or parent)
    return _instead(entry, destination)


def _instead(entry: Entry, destination: str | None) -> Opened:
    """Open a run that names the entry's run or call; created once, also if an earlier call was interrupted."""
    origin = entry.origin
    store = _store_beside(origin) if destination is None else open_store(destination)[0]
    mark = _mark(entry)
    made = next((run for run in _held(store) if run.tags.get(ORIGIN_TAG) == mark), None)
    name = origin.name or origin.uri.rpartition("/")[2]
    run = store.create(name, {**origin.tags, ORIGIN_TAG: mark}) if made is None else store.reopen(made.run_id)
    return Opened(run, lambda: store.close_run(run))


def _store_beside(origin: Origin) -> RunStore:
    """Open the store that holds a run, or will hold it."""
    parent = origin.uri.rpartition("/")[0] if origin.is_run else origin.uri
    try:
        return open_store(parent or origin.uri)[0]
    except RunNotFoundError as error:
        raise RunNotFoundError(
            f"{error}; pass a destination to create a run in instead, such as mlflow:EXPERIMENT"
        ) from error


def _put_away(path: Path, *, keep: bool) -> None:
    if not keep:
        path.unlink(missing_ok=True)
        return
    folder = path.parent / SENT
    folder.mkdir(exist_ok=True)
    path.replace(folder / path.name)
