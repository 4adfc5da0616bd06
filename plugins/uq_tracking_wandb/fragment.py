"""What one ``.wandb`` file says about its run, and how the fragments of a run combine."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from io import SEEK_CUR
from pathlib import Path
from typing import Any, BinaryIO

from uq_tracking.errors import FileFormatError

BLOCK = 32768
_FILE_HEADER = struct.Struct("<4sHB")
_CHUNK_HEADER = struct.Struct("<IHB")
_IDENTITY = (b":W&B", 0xBEE1)


class Chunk(IntEnum):
    """Part of a record that a chunk holds."""

    PADDING = 0
    FULL = 1
    FIRST = 2
    MIDDLE = 3
    LAST = 4


def read_records(path: Path) -> Iterator[Any]:
    """Protobuf ``Record`` messages of a file, in writing order.

    A file that is still being written ends mid-record; reading stops before it.

    Raises
    ------
    FileFormatError
        The file is not a ``.wandb`` file, or a checksum does not match.
    """
    from wandb.proto import wandb_internal_pb2

    protocol: Any = wandb_internal_pb2  # its classes are created at import, invisible to type checkers

    for data in _payloads(path):
        record = protocol.Record()
        try:
            record.ParseFromString(data)
        except Exception as error:  # protobuf's class for it differs by release
            raise FileFormatError(f"{path} holds a record that cannot be read: {error}") from error
        yield record


def _payloads(path: Path) -> Iterator[bytes]:
    """Join the chunks of each record."""
    parts: list[bytes] = []
    with path.open("rb") as file:
        for kind, data in _chunks(file, path):
            parts = [data] if kind in (Chunk.FULL, Chunk.FIRST) else [*parts, data]
            if kind in (Chunk.FULL, Chunk.LAST):
                yield b"".join(parts)


def _chunks(file: BinaryIO, path: Path) -> Iterator[tuple[Chunk, bytes]]:
    file_header = file.read(_FILE_HEADER.size)
    if not file_header:
        return  # the run has only just started
    if len(file_header) < _FILE_HEADER.size or _FILE_HEADER.unpack(file_header)[:2] != _IDENTITY:
        raise FileFormatError(f"{path} is not a .wandb file; expected run-<id>.wandb of an offline run")
    while True:
        left = BLOCK - file.tell() % BLOCK
        if left < _CHUNK_HEADER.size:
            file.seek(left, SEEK_CUR)
            continue
        header = file.read(_CHUNK_HEADER.size)
        if len(header) < _CHUNK_HEADER.size:
            return
        checksum, length, kind = _CHUNK_HEADER.unpack(header)
        data = file.read(length)
        if len(data) < length:
            return
        if kind == Chunk.PADDING and length == 0:
            file.seek(left - _CHUNK_HEADER.size, SEEK_CUR)
            continue
        if zlib.crc32(data, zlib.crc32(bytes([kind]))) != checksum:
            raise FileFormatError(f"{path}: wrong checksum before byte {file.tell()}; the file is damaged")
        if kind not in set(Chunk):
            raise FileFormatError(
                f"{path}: unknown chunk {kind} before byte {file.tell()}; the file is damaged"
            )
        yield Chunk(kind), data


@dataclass(frozen=True)
class LoggedArtifact:
    """A version of an artifact and where its files are staged."""

    name: str
    type: str
    files: Mapping[str, Path]


@dataclass
class Fragment:
    """Content of one file, or of several files of the same run."""

    folder: Path = field(default_factory=Path)
    """Folder ``files`` of the run, which holds its media."""
    options: dict[str, Any] = field(default_factory=dict)
    """What ``wandb.init`` was given; further fragments repeat it so that a sync does not change it."""
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    axes: dict[str, str] = field(default_factory=dict)
    """Maps a metric name or pattern to the metric that is its x axis."""
    artifacts: list[LoggedArtifact] = field(default_factory=list)
    media: dict[str, Path] = field(default_factory=dict)
    """Media file by its path inside the run."""
    exit_code: int | None = None
    """None without an ``exit`` record: the run is still going, or its process was killed."""

    @property
    def next_step(self) -> int:
        """Step of the next row added to the history."""
        return max((row["_step"] + 1 for row in self.history), default=0)

    @property
    def own_summary(self) -> dict[str, Any]:
        """Summary without W&B's own entries."""
        return {key: value for key, value in self.summary.items() if not key.startswith("_")}

    @property
    def status(self) -> str:
        """W&B's word for the state of the run."""
        if self.exit_code is None:
            return "running"
        return "failed" if self.exit_code else "finished"


def read_fragment(*paths: Path, history: bool = True) -> Fragment:
    """Read a run's ``.wandb`` files, oldest first, as if each continued where the previous one stopped.

    Listings need no ``history``. FileFormatError if one is damaged.
    """
    fragment = Fragment()
    for path in paths:
        fragment.folder, fragment.exit_code = path.parent / "files", None
        try:
            for record in read_records(path):
                kind = record.WhichOneof("record_type")
                if kind is not None and (history or kind != "history"):
                    _read(fragment, kind, getattr(record, kind))
        except (FileFormatError, OSError):
            raise
        except Exception as error:  # protobuf and json may raise anything for foreign data
            raise FileFormatError(f"{path} holds a record that cannot be read: {error}") from error
    return fragment


def started(path: Path) -> float:
    """Return the start of the run of a ``.wandb`` file, in seconds since 1970; 0 if not yet written."""
    with suppress(FileFormatError):  # reading the rest will say what is wrong
        for record in read_records(path):
            if record.WhichOneof("record_type") == "run":
                return float(record.run.start_time.ToNanoseconds() / 1e9)
    return 0.0


def _read(fragment: Fragment, kind: str, content: Any) -> None:
    """Add the content of one record."""
    match kind:
        case "run":
            given = {
                "id": content.run_id,
                "project": content.project,
                "entity": content.entity,
                "name": content.display_name,
                "group": content.run_group,
                "job_type": content.job_type,
                "notes": content.notes,
                "tags": tuple(content.tags),
            }
            fragment.options = {name: value for name, value in given.items() if value}
            _update(fragment.config, content.config.update)
        case "config":
            _update(fragment.config, content.update)
            _remove(fragment.config, content.remove)
        case "summary":
            _update(fragment.summary, content.update)
            _remove(fragment.summary, content.remove)
        case "history":
            fragment.history.append({})
            _update(fragment.history[-1], content.item)
        case "metric" if content.step_metric:
            fragment.axes[content.name or content.glob_name] = content.step_metric
        case "artifact":
            files = {entry.path: Path(entry.local_path) for entry in content.manifest.contents}
            fragment.artifacts.append(LoggedArtifact(content.name, content.type, files))
        case "files":
            fragment.media.update({item.path: fragment.folder / item.path for item in content.files})
        case "exit":
            fragment.exit_code = content.exit_code


def _keys(item: Any) -> list[str]:
    return list(item.nested_key) or [item.key]


def _update(target: dict[str, Any], items: Iterable[Any]) -> None:
    """Set the (nested) keys of summary, history or config items."""
    for item in items:
        *outer, last = _keys(item)
        inner = target
        for key in outer:
            if not isinstance(inner.get(key), dict):
                inner[key] = {}
            inner = inner[key]
        inner[last] = json.loads(item.value_json)


def _remove(target: dict[str, Any], items: Iterable[Any]) -> None:
    for item in items:
        *outer, last = _keys(item)
        inner: Any = target
        for key in outer:
            inner = inner.get(key, {})
        inner.pop(last, None)
