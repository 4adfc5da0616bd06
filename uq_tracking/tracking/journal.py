"""A run written down: typed lines in the order of the calls, and the files that they name.

A run's folder keeps its lines in ``log.jsonl``, a spool entry in ``entry.json``; `replay` writes either to another
run.

===============  ==============================================================
``scalars``      ``step`` (None for final ones), ``values`` by name; ``again`` if they were sent before
``tags``         ``values`` by name
``seal``         tags that say everything else has arrived, ``values`` by name
``curve``        ``name``; its columns in ``file``, everything else in ``about``
``figure``       ``name``, and the picture in ``file``
``map``          the same, for the panel of one case
``table``        ``name``, ``columns``, ``rows``
``file``         ``name``, and the content in ``file``
``description``  ``values``, see `Description`
``dataset``      ``values``, see `Dataset`
``view``         nothing more: the page of all runs is to show what was logged
===============  ==============================================================

In a run's folder each line is appended by a single write, which concurrent writers on a local file system cannot
interleave, so no lock is needed; a writer killed mid-write leaves one truncated line, which readers report and skip.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.checks import check_plain, plain_text
from uq_tracking.curves import Curve
from uq_tracking.drawings import picture_of, png_of
from uq_tracking.errors import BackendError, FileFormatError, TrackerUnreachableError, redact
from uq_tracking.tables import formats
from uq_tracking.tracking.backend import Cell, Run, called_at, finite, picture_file
from uq_tracking.tracking.overview import Dataset, Description
from uq_tracking.typed import DAMAGE, record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Line = dict[str, Any]
"""One line; ``kind`` says what it holds."""
Write = Callable[[Run], object]
"""Writes one thing to a run."""
PAGES = ("description", "dataset", "view")
"""Kinds that are only for display: a tracker that refuses them loses nothing."""
LONGEST, LONGEST_LINE = 2**30, 2**22
"""Bytes of a journal that are read at once, and characters of a line."""
_log = logging.getLogger("uq_tracking")


class JournalRun(Run):
    """A run that is written down line by line."""

    @abstractmethod
    def _note(self, kind: str, **line: Any) -> None:
        """Add a line."""

    @abstractmethod
    def _keep(self, name: str, content: bytes | Path) -> str:
        """Keep a file, given its content or path, and return how lines name it."""

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Note the finite numbers; see `Run`."""
        self._note("scalars", step=step, values=finite(scalars))

    def log_again(self, scalars: Mapping[str, float], *, step: int) -> None:
        """Note the numbers as sent before; see `Run`."""
        self._note("scalars", step=step, values=finite(scalars), again=True)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Note the tags; see `Run`."""
        self._note("tags", values={name: str(value) for name, value in tags.items()})

    def seal(self, tags: Mapping[str, str]) -> None:
        """Note the tags that come last; see `Run`."""
        self._note("seal", values={name: str(value) for name, value in tags.items()})

    def log_curve(self, name: str, curve: Curve) -> None:
        """Keep every column of the curve as ``<name>.csv``; see `Run`."""
        self._note_curve(name, curve, f"{name}.csv")

    def _note_curve(self, name: str, curve: Curve, file: str) -> None:
        about = {key: value for key, value in curve.to_dict().items() if key != "columns"}
        self._note("curve", name=name, file=self._keep(file, csv_of(curve)), about=about)

    def log_figure(self, name: str, figure: Figure) -> None:
        """Keep the figure as a PNG file; see `Run`."""
        self._note_picture("figure", name, figure)

    def log_map(self, name: str, figure: Figure) -> None:
        """Keep the map as a PNG file; see `Run`."""
        self._note_picture("map", name, figure)

    def _note_picture(self, kind: str, name: str, figure: Figure) -> None:
        self._note(kind, name=name, file=self._keep(picture_file(name), png_of(figure)))

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Note the table; see `Run`."""
        self._note("table", name=name, columns=list(columns), rows=[list(row) for row in rows])

    def log_file(self, path: Path, name: str) -> None:
        """Keep a copy of the file; see `Run`."""
        self._note("file", name=name, file=self._keep(name, path))

    def describe(self, description: Description) -> None:
        """Note the description; see `Run`."""
        self._note("description", values=asdict(description))

    def use_dataset(self, dataset: Dataset) -> None:
        """Note which truth was scored; see `Run`."""
        self._note("dataset", values=asdict(dataset))

    def relate(self, model_id: str | None, dataset: Mapping[str, str] | None) -> None:
        """Note what the scores belong to; see `Run`."""
        self._note("relation", model_id=model_id, dataset=dataset)

    def show(self) -> str | None:
        """Note that the page of all runs is to show the run; see `Run`."""
        self._note("view")
        return None


def write_of(line: Line, file: Callable[[str], Path]) -> Write:
    """Return the function that writes a line to a run.

    Parameters
    ----------
    line
        The line, as read from a file.
    file
        Returns the path of a file that lines name; called when the line is written.

    Raises
    ------
    FileFormatError
        The line is damaged; the returned function raises it for a damaged file.
    """
    match line:
        case {"step": step} if isinstance(step, bool) or not isinstance(step, int | None):
            raise FileFormatError(f"a line of kind {line.get('kind')!r} has the step {step!r}")
        case {"kind": "scalars", "step": int(at), "values": dict(values), "again": True}:
            earlier = {name: float(value) for name, value in values.items()}
            return lambda run: run.log_again(earlier, step=at)
        case {"kind": "scalars", "step": None | int() as step, "values": dict(values)}:
            scalars = {name: float(value) for name, value in values.items()}
            return lambda run: run.log_scalars(scalars, step=step)
        case {"kind": "tags" | "seal" as kind, "values": dict(values)}:
            return lambda run: (run.seal if kind == "seal" else run.set_tags)(values)
        case {"kind": "curve", "name": str(name), "file": str(member), "about": dict(about)}:
            return lambda run: run.log_curve(name, _read_curve(file(member), about))
        case {"kind": "figure" | "map" as kind, "name": str(name), "file": str(member)}:
            return lambda run: getattr(run, f"log_{kind}")(name, picture_of(file(member)))
        case {"kind": "table", "name": str(name), "columns": list(columns), "rows": list(rows)}:
            return lambda run: run.log_table(name, columns, rows)
        case {"kind": "file", "name": str(name), "file": str(member)}:
            return lambda run: run.log_file(file(member), name)
        case {"kind": "description", "values": dict(values)}:
            description = record(Description, values)
            return lambda run: run.describe(description)
        case {"kind": "dataset", "values": dict(values)}:
            dataset = record(Dataset, values)
            return lambda run: run.use_dataset(dataset)
        case {"kind": "relation", "model_id": None | str() as model, "dataset": None | dict() as related}:
            return lambda run: run.relate(model, related)
        case {"kind": "view"}:
            return lambda run: run.show()
        case _:
            raise FileFormatError(f"a line of kind {line.get('kind')!r} is damaged, or of a later version")


def replay(
    batches: Iterable[Iterable[Line]],
    file: Callable[[str], Path],
    run: Run,
    *,
    after_batch: Callable[[], None] = lambda: None,
    damaged: list[str] | None = None,
) -> None:
    """Write lines into a run; what the run already holds stays as it is.

    Parameters
    ----------
    batches
        The lines, checked when they were read; those of a batch are sent together, where the tracker supports that.
    file
        Returns the path of a file that lines name.
    run
        Where to write.
    after_batch
        Called after each batch that the run has accepted.
    damaged
        Receives what is damaged, which is left out; without it, FileFormatError.
    """
    for batch in batches:
        with run.batch():
            for line in batch:
                try:
                    write_of(line, file)(run)
                except FileFormatError as error:
                    if damaged is None:
                        raise
                    damaged.append(f"{line.get('name', line.get('kind'))} ({error})")
                except TrackerUnreachableError:
                    raise
                except Exception as error:  # trackers raise whatever their libraries raise
                    if line.get("kind") not in PAGES:
                        raise
                    _log.debug("the run's page was not updated: %s", redact(str(error)))
        after_batch()


def csv_of(curve: Curve) -> bytes:
    """Return the columns of a curve as CSV, x first."""
    names = sorted(curve.columns, key=lambda name: name != curve.x)
    columns = {name: np.asarray(curve.columns[name], dtype=np.float64).tolist() for name in names}
    return formats.csv_of(columns).encode()


def _read_curve(path: Path, about: Mapping[str, Any]) -> Curve:
    """Read a curve's columns beside what its line says."""
    try:
        names, *rows = plain_text(path).splitlines()
        values = [[float(cell) for cell in row.split(",")] for row in rows]
        columns = dict(zip(names.split(","), zip(*values, strict=True), strict=True))
    except ValueError as error:
        raise FileFormatError(f"{path.name} is not a curve ({error})") from error
    return Curve.from_dict({**about, "columns": columns})


def parsed(text: str) -> Line | None:
    """Parse one line of a run's journal; None if it is damaged. What names files is checked when it is replayed.

    >>> parsed('{"kind": "scalars", "step": 3, "values": {"uq/nll": 1.5}}')
    {'kind': 'scalars', 'step': 3, 'values': {'uq/nll': 1.5}}
    >>> parsed('{"kind": "scalars", "step": 3, "val')
    """
    try:
        line: Line = json.loads(text)
        write_of(line, Path)
    except DAMAGE:
        return None
    return line


def moment() -> str:
    """Return the time of the call in UTC, to the millisecond."""
    return datetime.fromtimestamp(called_at(), timezone.utc).isoformat(timespec="milliseconds")


class Journal:
    """The lines of a run in the file ``path``, which need not exist yet; the last value of a name wins.

    Each byte is read once, so that a call costs the same at any length.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._forget()

    def append(self, line: Line) -> None:
        """Add what a line says that is new, with the time of the call.

        Raises
        ------
        OSError
            The file cannot be written.
        BackendError
            Only part of the line was written to disk.
        """
        new = self._new(line)
        if new is None:
            return
        text = json.dumps({"time": moment()} | new, allow_nan=False) + "\n"
        with self._lock:
            is_cut = bool(self._read())  # a killed writer left part of a line
        data = ("\n" + text if is_cut else text).encode()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            written = os.write(descriptor, data)
        finally:
            os.close(descriptor)
        if written != len(data):
            raise BackendError(
                f"{self.path}: {written} of {len(data)} bytes were written; free some disk space"
            )

    def at(self, step: int | None) -> dict[str, float]:
        """Return the last value of every scalar at one step; the step None holds the final ones."""
        with self._lock:
            self._read()
            return self._at(step)

    def scalars(self) -> dict[tuple[int | None, str], float]:
        """Return the last value of every scalar at every step."""
        with self._lock:
            self._read()
            return {(step, name): value for step in self._values for name, value in self._at(step).items()}

    def tags(self) -> dict[str, str]:
        """Return the last value of every tag."""
        with self._lock:
            self._read()
            return dict(self._tags)

    def damaged(self) -> list[int]:
        """Return the numbers of damaged lines, which are skipped; the last one may be cut."""
        with self._lock:
            tail = self._read()
            return [*self._damaged, self._count + 1] if tail else self._damaged

    def others(self) -> list[Line]:
        """Return all other lines, the last one of each name, in order."""
        with self._lock:
            self._read()
            return list(self._others.values())

    def _new(self, line: Line) -> Line | None:
        """Return the part of a line that the journal does not hold yet."""
        if line["kind"] in ("scalars", "tags", "seal"):
            known: Mapping[str, Any] = self.at(line["step"]) if line["kind"] == "scalars" else self.tags()
            values = {name: value for name, value in line["values"].items() if known.get(name) != value}
            return {**line, "values": values} if values else None
        with self._lock:
            self._read()
            return None if self._others.get(_key(line)) == json.loads(json.dumps(line)) else line

    def _forget(self) -> None:
        self._file: tuple[int, int] | None = None
        self._offset = self._count = 0
        self._damaged: list[int] = []
        self._values: dict[int | None, tuple[tuple[str, ...], array[float]]] = {}
        """Names and numbers of every step: in arrays, which are small, with names that steps share."""
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._tags: dict[str, str] = {}
        self._others: dict[tuple[str, ...], Line] = {}

    def _read(self) -> bytes:
        """Read the lines that were added, or all if the file was replaced; return a last one that is cut."""
        try:
            check_plain(self.path, self._offset + LONGEST)
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                if (found.st_dev, found.st_ino) != self._file or found.st_size < self._offset:
                    self._forget()
                    self._file = (found.st_dev, found.st_ino)
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            self._forget()
            return b""
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for text in whole.decode("utf-8", "replace").split("\n")[:-1]:
            self._count += 1
            line = parsed(text) if len(text) < LONGEST_LINE else None
            if line is not None:
                self._add(line)
            elif text:
                self._damaged.append(self._count)
        return data[len(whole) :]

    def _add(self, line: Line) -> None:
        if line["kind"] in ("tags", "seal"):
            self._tags.update({name: str(value) for name, value in line["values"].items()})
        elif line["kind"] == "scalars":
            step, values = line.get("step"), line["values"]
            if step in self._values:
                values = {**self._at(step), **values}
            names = tuple(values)
            self._values[step] = self._names.setdefault(names, names), array("d", map(float, values.values()))
        else:
            line.pop("time", None)
            self._others.pop(_key(line), None)
            self._others[_key(line)] = line

    def _at(self, step: int | None) -> dict[str, float]:
        return dict(zip(*self._values.get(step, ((), ())), strict=True))


def _key(line: Line) -> tuple[str, ...]:
    """Return what a line with the same key replaces; a description is its split's."""
    values = line.get("values", {})
    return line["kind"], str(line.get("name", "")), str(values.get("split", values.get("name", "")))


@lru_cache(maxsize=16)
def journal_at(path: Path) -> Journal:
    """Return the journal of a run being written: who reopens the run reads on where the last one stopped."""
    return Journal(path)
