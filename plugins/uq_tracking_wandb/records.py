"""Reader of ``run-<id>.wandb`` files: LevelDB log framing around protobuf records.

The file starts with a 7-byte header and is divided into 32 KiB blocks. A block holds chunks, each with a 7-byte
header (checksum, length, kind) and its bytes; a record is one full chunk, or a first, any number of middle and a
last one. A block's tail that is too short for a header is padding.

Source: the log format of LevelDB (``doc/log_format.md``), with W&B's own header and CRC-32 (IEEE) checksums.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
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
    """Which part of a record a chunk is."""

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
    _check_file_header(file_header, path)
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


def _check_file_header(header: bytes, path: Path) -> None:
    if len(header) < _FILE_HEADER.size or _FILE_HEADER.unpack(header)[:2] != _IDENTITY:
        raise FileFormatError(f"{path} is not a .wandb file; expected run-<id>.wandb of an offline run")
