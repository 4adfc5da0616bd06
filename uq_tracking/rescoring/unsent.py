"""Send from the spool what trackers did not take: to the run it was meant for, else to one that names it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote

from uq_tracking.errors import (
    BackendError,
    RunNotFoundError,
    TrackerUnreachableError,
    UQTrackingError,
    redact,
)
from uq_tracking.runs.outcomes import Outcome
from uq_tracking.tracking.backend import RunStore
from uq_tracking.tracking.deadline import PATIENCE
from uq_tracking.tracking.health import is_sick
from uq_tracking.tracking.names import ORIGIN_TAG
from uq_tracking.tracking.places import spool_lock
from uq_tracking.tracking.resolve import Opened, find_backend, open_store, reopened
from uq_tracking.tracking.spool import SPOOL, SUFFIX, Entry, Origin, entries, read_entry

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
    """Why an entry was not sent, where it is, and how to give it up if it can never be sent."""
    kind = "" if isinstance(error, OSError | UQTrackingError) else f"{type(error).__name__}: "
    is_refused = isinstance(error, UQTrackingError) and not isinstance(error, TrackerUnreachableError)
    rest = (
        f"to give it up: uq-tracking sync --drop {quote(str(path))}" if is_refused else f"it stays in {path}"
    )
    return Outcome(path.as_uri(), name, "failed", redact(f"{kind}{error}; {rest}"), error=error)


def _run_of(entry: Entry) -> tuple[str, str, str]:
    """What distinguishes the entry's run from others; a run yet to be created is the entry's own, or its fit's."""
    return entry.origin.place, entry.origin.uri, _mark(entry)


def _mark(entry: Entry) -> str:
    """What a run that is created for the entry is recognized by."""
    origin, call = entry.origin, entry.path.name.removesuffix(SUFFIX)
    return origin.uri if origin.is_run else origin.tags.get(ORIGIN_TAG, call)


def _send_run(
    own: Sequence[Entry], destination: str | None, *, dry_run: bool, keep: bool
) -> Iterator[Outcome]:
    """Send the entries of one run, and put away those that it has certainly taken."""
    told = f"would be sent to {own[0].origin.uri}"
    try:
        _check_place(own[0].origin)
        failed: dict[Path, Exception] = {}
        if not dry_run:
            told, failed = _sent(own, destination)
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
        yield Outcome(address, name, "done", told)


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
    """The run the entry was meant for, if it exists; else one that names it, created once."""
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
    """A run that names the entry's run or call; created once."""
    origin = entry.origin
    store = _store_beside(origin) if destination is None else open_store(destination)[0]
    mark = _mark(entry)
    made = _made_before(store, mark)
    name = origin.name or origin.uri.rpartition("/")[2]
    run = store.create(name, {**origin.tags, ORIGIN_TAG: mark}) if made is None else store.reopen(made)
    return Opened(run, lambda: store.close_run(run))


def _store_beside(origin: Origin) -> RunStore:
    """The store that holds a run, or will hold it."""
    parent = origin.uri.rpartition("/")[0] if origin.is_run else origin.uri
    try:
        return open_store(parent or origin.uri)[0]
    except RunNotFoundError as error:
        raise RunNotFoundError(
            f"{error}; pass a destination to create a run in instead, such as mlflow:EXPERIMENT"
        ) from error


def _made_before(store: RunStore, mark: str) -> str | None:
    """The run that an earlier, interrupted call created."""
    try:
        return next((run.run_id for run in store.runs() if run.tags.get(ORIGIN_TAG) == mark), None)
    except RunNotFoundError:  # the experiment is made with its first run
        return None


def _put_away(path: Path, *, keep: bool) -> None:
    if not keep:
        path.unlink(missing_ok=True)
        return
    folder = path.parent / SENT
    folder.mkdir(exist_ok=True)
    path.replace(folder / path.name)
