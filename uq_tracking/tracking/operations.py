"""The writes that a spool entry holds: how each is recorded and, from one table, checked and made again."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.curves import Curve
from uq_tracking.drawings import picture_of, png_of
from uq_tracking.tracking.backend import Cell, Run, finite
from uq_tracking.tracking.overview import Dataset, Description
from uq_tracking.typed import record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Write = Callable[[Run], None]
Group = Sequence[tuple[str, Callable[[Run], object]]]


class _Recorder(Run):
    """A run that records what is written to it, in order."""

    uri = "spool:"

    def __init__(self, archive: zipfile.ZipFile, *, drawings: bool) -> None:
        self._archive = archive
        self._drawings = drawings
        self.groups: list[list[list[Any]]] = []
        self.digests: dict[str, str] = {}

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        self._note("scalars", step, finite(scalars))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        self._note("tags", {name: str(value) for name, value in tags.items()})

    def seal(self, tags: Mapping[str, str]) -> None:
        self._note("seal", {name: str(value) for name, value in tags.items()})

    def log_curve(self, name: str, curve: Curve) -> None:
        self._note("curve", name, curve.to_dict())

    def log_figure(self, name: str, figure: Figure) -> None:
        if self._drawings:
            self._note("figure", name, self._member(png_of(figure)))

    def log_map(self, name: str, figure: Figure) -> None:
        if self._drawings:
            self._note("map", name, self._member(png_of(figure)))

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        if self._drawings:
            self._note("table", name, list(columns), [list(row) for row in rows])

    def log_file(self, path: Path, name: str) -> None:
        self._note("file", name, self._member(path.read_bytes()))

    def describe(self, description: Description) -> None:
        self._note("description", asdict(description))

    def use_dataset(self, dataset: Dataset) -> None:
        self._note("dataset", asdict(dataset))

    def show(self, names: Collection[str]) -> None:
        self._note("page", sorted(names))

    def _note(self, *operation: Any) -> None:
        self.groups[-1].append(list(operation))

    def _member(self, content: bytes) -> str:
        name = f"{len(self.digests):04d}"
        self._archive.writestr(name, content)
        self.digests[name] = hashlib.sha256(content).hexdigest()
        return name


def recorded(archive: zipfile.ZipFile, groups: Sequence[Group], *, drawings: bool) -> dict[str, Any]:
    """The writes, as plain values, with digests of the figures and files that became members of the archive."""
    recorder = _Recorder(archive, drawings=drawings)
    for group in groups:
        recorder.groups.append([])
        for _, action in group:
            action(recorder)
    return {"groups": recorder.groups, "members": recorder.digests}


@dataclass(frozen=True)
class Operation:
    """How a kind of write is checked and made again."""

    parts: tuple[Any, ...]
    """Types of its parts."""
    write: Callable[..., object]
    """Makes it again, given the run and the parts."""
    read: Callable[[Any], Any] | None = None
    """Makes of the last part what the run takes."""
    is_file: bool = False
    """Whether the last part names a member of the entry, to be passed on as the path of a file."""
    is_display: bool = False
    """Whether a tracker that does not take it loses nothing; see ``RunWriter.present``."""


OPERATIONS = {
    "scalars": Operation((int | None, dict), lambda run, step, scalars: run.log_scalars(scalars, step=step)),
    "tags": Operation((dict,), lambda run, tags: run.set_tags(tags)),
    "seal": Operation((dict,), lambda run, tags: run.seal(tags)),
    "curve": Operation((str, dict), lambda run, *parts: run.log_curve(*parts), Curve.from_dict),
    "figure": Operation((str, str), lambda run, *parts: run.log_figure(*parts), picture_of, is_file=True),
    "map": Operation((str, str), lambda run, *parts: run.log_map(*parts), picture_of, is_file=True),
    "table": Operation((str, list, list), lambda run, *parts: run.log_table(*parts)),
    "file": Operation((str, str), lambda run, name, path: run.log_file(path, name), is_file=True),
    "description": Operation(
        (dict,), lambda run, it: run.describe(it), partial(record, Description), is_display=True
    ),
    "dataset": Operation(
        (dict,), lambda run, it: run.use_dataset(it), partial(record, Dataset), is_display=True
    ),
    "page": Operation((list,), lambda run, names: run.show([str(name) for name in names]), is_display=True),
}


def is_sound(operation: Sequence[Any]) -> bool:
    """Whether a recorded write has as many parts as its kind, of the right types."""
    kind, *parts = operation
    types = OPERATIONS[kind].parts
    return len(parts) == len(types) and all(map(isinstance, parts, types))
