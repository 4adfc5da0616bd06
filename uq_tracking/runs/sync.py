"""Copy runs from one store to another, such as those that waited in ``./uq_runs`` for a tracker."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from shlex import quote

from uq_tracking.checks import check_callable, check_flag, check_text, named_options
from uq_tracking.errors import (
    BackendError,
    FileFormatError,
    RunNotFoundError,
    TrackerUnreachableError,
    UQTrackingError,
)
from uq_tracking.runs.outcomes import Outcome, Progress, Summary, failure, worked
from uq_tracking.runs.read import LoggedRun, logged_runs
from uq_tracking.tracking.backend import Run, RunStore, StoredRun, calling
from uq_tracking.tracking.deadline import PATIENCE
from uq_tracking.tracking.folder import FolderRun, FolderStore
from uq_tracking.tracking.guard import LONG_ANSWER, limited
from uq_tracking.tracking.health import is_sick
from uq_tracking.tracking.journal import PAGES, Line, replay
from uq_tracking.tracking.names import ORIGIN_TAG, REPORT_FILE, curve_name, map_name
from uq_tracking.tracking.overview import dataset, description
from uq_tracking.tracking.places import scratch_folder, spool_lock, work_lock
from uq_tracking.tracking.resolve import check_place, create_once, find_backend, open_store, reopened
from uq_tracking.tracking.spool import SPOOL, Entry, call_name, entries, read_entry

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
    kept = list(_send_kept(source, destination, dry_run=dry_run, keep=keep))
    if progress is not None:
        for outcome in kept:
            progress(outcome, len(kept))
    if destination is None or source is None:
        return Summary(kept, dry_run=dry_run)
    store, run_id = open_store(destination)
    if run_id is not None:
        raise BackendError(
            f"{destination} is a single run; name the experiment or folder to copy the runs to"
        )
    with nullcontext() if dry_run else work_lock(f"copying runs to {_place_of(destination)}", PATIENCE):
        runs, held = list(logged_runs(source, where=where)), _held(store)
        if {run.stored.uri for run in runs} & {run.uri for run in held}:
            raise BackendError(
                f"{source} and {destination} are the same place; name another one to copy the runs to"
            )
        work = partial(_copied, store=store, held=held, dry_run=dry_run)
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


def _held(store: RunStore) -> list[StoredRun]:
    """List the runs already in the store."""
    try:
        return list(store.runs())
    except RunNotFoundError:  # the experiment is created with its first run
        return []


def _copied(run: LoggedRun, store: RunStore, held: Sequence[StoredRun], dry_run: bool) -> Outcome:
    """Copy a run to a store that holds some already, unless it is there as it is now."""
    origin = run.stored.tags.get(SOURCE_TAG)
    original = next((there for there in held if _identity(there) == origin), None)
    if original is not None:
        return Outcome(run.stored.uri, run.name, "skipped", f"it is a copy of {original.uri}")
    source, content = origin or _identity(run.stored), _content_digest(run)
    copies = [there for there in held if there.tags.get(SOURCE_TAG) == source]
    copy = copies[0] if copies else None
    twice = "".join(f"; {double.uri} is another copy: delete it" for double in copies[1:])
    if copy is not None and copy.tags.get(CONTENT_TAG) == content:
        return Outcome(run.stored.uri, run.name, "skipped", f"{copy.uri} is already a copy{twice}")
    left_out: list[str] = []
    if not dry_run:
        made = store.create(run.name, {SOURCE_TAG: source}) if copy is None else store.reopen(copy.run_id)
        with closing(made) as written, calling(time.time()), scratch_folder() as folder:
            rebuilt = FolderStore(folder).open(".rebuilt", run.name)
            file = partial(_file, run, folder, rebuilt)
            replay(_journal(run, rebuilt, left_out), file, written, damaged=left_out)
            written.seal({CONTENT_TAG: content})
    message = "copied" if copy is None else f"updated in {copy.uri}"
    message += f"; left out: {'; '.join(left_out)}" if left_out else ""
    return Outcome(run.stored.uri, run.name, "done", message + twice)


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


def _journal(run: LoggedRun, rebuilt: FolderRun, left_out: list[str]) -> list[list[Line]]:
    """Return the lines of a run by what is sent together: series, final numbers, drawings and files, pages.

    A journal that the run's tracker does not keep is made again in ``rebuilt``, from what the run holds.
    """
    by_step: dict[int | None, dict[str, float]] = {}
    for (step, name), value in run.store.series(run.stored).items():
        if step is not None or not _is_curve(name):
            by_step.setdefault(step, {})[name] = value
    lines: list[Line] = [{"kind": "tags", "values": _tags(run.stored)}]
    lines += [{"kind": "scalars", "step": step, "values": values} for step, values in by_step.items()]
    kept = run.store.lines(run.stored.run_id)
    if not kept:
        _rebuild(run, rebuilt, left_out)
    lines += kept or rebuilt.journal.others()
    stored = {line.get("file") for line in lines}
    lines += [_line_of(name, run) for name in run.files if not _is_curve(name) and name not in stored]
    return [list(batch) for _, batch in groupby(sorted(lines, key=_place), lambda line: _place(line)[0])]


def _place(line: Line) -> tuple[int, bool, int]:
    """Return which batch a line belongs to, and its place there: a series goes by its steps, after the tags."""
    kind, step = line["kind"], line.get("step")
    if kind == "tags" or step is not None:
        return 0, kind != "tags", step or 0
    return 1 if kind in ("scalars", "curve") else 3 if kind in PAGES else 2, False, 0


def _rebuild(run: LoggedRun, rebuilt: FolderRun, left_out: list[str]) -> None:
    """Note the curves, the description and the data set of every report, also those of splits and outputs."""
    for split in (*([None] if run.has(REPORT_FILE) else []), *run.splits()):
        try:
            report = replace(run, split=split).report()
        except FileFormatError as error:
            left_out.append(f"curves ({error})")
            continue
        for key, curve in report.curves.items():
            rebuilt.log_curve(curve_name(key, split, report.settings, report.task), curve)
        rebuilt.describe(description(report, split))
        rebuilt.use_dataset(dataset(report, split))
        rebuilt.show()


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


def _file(run: LoggedRun, folder: Path, rebuilt: FolderRun, name: str) -> Path:
    """Return the path of a curve that was made again, or of a file that is fetched."""
    path = rebuilt.path / name
    try:
        return path if _is_curve(name) and path.is_file() else run.fetch(name, folder)
    except FileNotFoundError as error:
        raise FileFormatError(f"{name} is gone") from error


SENT = "sent"
"""Folder in which sent entries are kept."""
SECONDS = 3600.0
"""Seconds that the calls of one run may take to be sent."""
MOST_FAILURES = 2
"""After how many entries in a row a tracker that fails on them is not asked again."""


def _send_kept(
    source: str | None, destination: str | None, *, dry_run: bool, keep: bool
) -> Iterator[Outcome]:
    """Send the kept calls of a folder on this machine, by default of all places; yield the outcomes in order.

    Entries of one run share one opening of it, in call order. Those that a tracker has taken are removed at once, so
    an interrupted call continues where it stopped.
    """
    scheme, colon, address = (source or "").partition(":")
    if colon and scheme != "dir":
        if destination is None:
            raise BackendError(f"{source} is not a folder; name the destination to copy its runs to")
        return
    folder = Path(address if colon else scheme).expanduser().absolute() if source else None
    paths = list(entries(folder))
    with ExitStack() as locks:
        for spool in () if dry_run else sorted({path.parent for path in paths}):
            locks.enter_context(spool_lock(spool, PATIENCE))
        of_runs: dict[tuple[str, str, str], list[Entry]] = {}
        for path in paths:
            try:
                entry = read_entry(path)
            except FileNotFoundError:  # another process has sent it in the meantime
                continue
            except (OSError, UQTrackingError) as error:
                yield _failed(path, path.name, error)
            else:
                of_runs.setdefault((entry.origin.place, entry.origin.uri, _mark(entry)), []).append(entry)
        for own in of_runs.values():
            yield from _send_run(own, destination, dry_run=dry_run, keep=keep)


def drop_entry(which: str) -> Path:
    """Delete an entry, given by its file name or path, instead of sending it; BackendError if there is none."""
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
    is_refused = isinstance(error, UQTrackingError) and not isinstance(error, TrackerUnreachableError)
    rest = (
        f"to give it up: uq-tracking sync --drop {quote(str(path))}" if is_refused else f"it stays in {path}"
    )
    return failure(path.as_uri(), name, error, f"; {rest}")


def _mark(entry: Entry) -> str:
    """Return what a run that is created for the entry is recognized by."""
    origin = entry.origin
    return origin.uri if origin.is_run else origin.tags.get(ORIGIN_TAG, call_name(entry.path))


def _send_run(
    own: Sequence[Entry], destination: str | None, *, dry_run: bool, keep: bool
) -> Iterator[Outcome]:
    """Send the entries of one run, and put away those that it has certainly taken."""
    first = own[0].origin
    message = f"would be sent to {first.uri}"
    try:
        check_place(first.tracker, first.place)
        failed: dict[Path, Exception] = {}
        if not dry_run:
            with limited(SECONDS, LONG_ANSWER):
                run = _opened(own[0], destination)
                failed = _replayed(own, run)
            message = f"sent to {run.uri}"
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


def _replayed(own: Sequence[Entry], run: Run) -> dict[Path, Exception]:
    """Write the entries in order; return those not taken, with the reason. Stop when the tracker seems down."""
    failed: dict[Path, Exception] = {}
    sick: list[Exception] = []
    with closing(run):
        for entry in own:
            if len(sick) == MOST_FAILURES:
                failed[entry.path] = sick[-1]
                continue
            try:
                entry.send(run)
                sick = []
            except Exception as error:  # trackers raise whatever their libraries raise
                failed[entry.path] = error
                sick = [*sick, error] if is_sick(error) else []
        if len(failed) < len(own):
            try:
                run.confirm()
            except Exception as error:  # trackers raise whatever their libraries raise
                failed = {entry.path: failed.get(entry.path, error) for entry in own}
    return failed


def _opened(entry: Entry, destination: str | None) -> Run:
    """Open the run the entry was meant for, if it exists; else one that names it, created once."""
    origin = entry.origin
    if origin.uri.startswith("<") and destination is None:
        raise BackendError(
            f"it belongs to {origin.uri}, which has no address; name a destination, such as mlflow:EXPERIMENT"
        )
    if not origin.is_run or origin.uri.startswith("<"):
        _, run_id = open_store(destination or origin.uri)
        # an id: the address of a run that could not be opened when the call was made
        return _instead(entry, destination) if run_id is None else reopened(destination or origin.uri)
    try:
        return reopened(origin.uri)
    except BackendError as error:
        if not isinstance(error, RunNotFoundError) and (destination is None or is_sick(error)):
            raise
    if destination is None and origin.tracker == "dir":  # a path is one run
        path = Path(origin.uri.partition(":")[2])
        return FolderStore(path.parent).open(path.name, path.name, {ORIGIN_TAG: _mark(entry)})
    return _instead(entry, destination)


def _instead(entry: Entry, destination: str | None) -> Run:
    """Open a run that names the entry's run or call; created once, also if an earlier call was interrupted."""
    origin, mark = entry.origin, _mark(entry)
    above = origin.uri.rpartition("/")[0] if origin.is_run else ""
    try:
        store, _ = open_store(destination or above or origin.uri)
    except RunNotFoundError as error:
        if destination is not None:
            raise
        raise RunNotFoundError(
            f"{error}; pass a destination to create a run in instead, such as mlflow:EXPERIMENT"
        ) from error
    return create_once(store, origin.name or origin.uri.rpartition("/")[2], {**origin.tags, ORIGIN_TAG: mark})


def _put_away(path: Path, *, keep: bool) -> None:
    if not keep:
        path.unlink(missing_ok=True)
        return
    folder = path.parent / SENT
    folder.mkdir(exist_ok=True)
    path.replace(folder / path.name)
