"""Arrays in npz files: written whole or not at all, never pickled, and measured before they are read."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError

LIMIT = 8 * 2**30
"""Bytes above which a file is not unpacked."""
MOST_ENTRIES = 10_000
SMALL = 64 * 2**20
"""Bytes that any file may unpack to."""
PIECE = 1024
"""Numbers by which it is tried whether an array can be packed."""
WORTH_PACKING = 0.85
"""Share of its size that an array is packed to at most."""
RATIO = 100
"""How many times its own size a larger file may unpack to: what this package compresses stays far below."""

VARIABLE = "UQ_TRACKING_READ_LIMIT"
"""Of the environment: bytes that a stranger's file may unpack to, however small it is."""
CURE = f"if they are yours, set {VARIABLE} to the bytes that may be read, or pass the arrays"

Arrays = dict[str, npt.NDArray[Any]]


def write_arrays(path: Path, arrays: Mapping[str, Any], *, compressed: bool = False) -> None:
    """Write named arrays, none of them of objects, into an npz file that appears whole or not at all.

    The same arrays give the same bytes. With ``compressed`` those are packed that become smaller by it, and quickly:
    packing measured numbers as tightly as can be takes three times as long and saves 3 %.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(part, "w", compresslevel=1) as archive:
            for name, values in arrays.items():
                array = np.asanyarray(values)
                archive.compression = _packing(array) if compressed else zipfile.ZIP_STORED
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _packing(array: npt.NDArray[Any]) -> int:
    """How to store an array, by four pieces of it: noise in its last digits cannot be packed."""
    places = range(0, max(array.size - PIECE, 0) + 1, max((array.size - PIECE) // 3, 1))
    pieces = b"".join(array.flat[place : place + PIECE].tobytes() for place in places)
    is_worth_it = len(zlib.compress(pieces, 1)) < WORTH_PACKING * len(pieces)
    return zipfile.ZIP_DEFLATED if is_worth_it else zipfile.ZIP_STORED


def read_arrays(path: Path, limit: int = LIMIT) -> Arrays:
    """Read every array of an npz file.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        It is damaged, foreign, holds Python objects, or unpacks to more than it should.
    """
    with path.open("rb") as file:  # errors of the operating system pass as they are
        packed = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
                _check_sizes(members, packed, limit)
                return {info.filename.removesuffix(".npy"): _read(archive, info) for info in members}
        except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds for damaged bytes
            told = str(error) if isinstance(error, FileFormatError) else f"{type(error).__name__}: {error}"
            raise FileFormatError(
                f"{path.name} cannot be read as an npz file of plain arrays: {told}"
            ) from error


def check_room(path: Path, small: int) -> None:
    """FileFormatError for a stranger's npz file that would fill the memory; up to ``small`` bytes any will do."""
    with zipfile.ZipFile(path) as archive:
        _check_sizes(archive.infolist(), path.stat().st_size, LIMIT, small)


def _check_sizes(members: list[zipfile.ZipInfo], packed: int, limit: int, small: int = SMALL) -> None:
    """Refuse what would fill the memory, by what the archive says of itself; no more than that is unpacked."""
    size = sum(info.file_size for info in members)
    if len(members) > MOST_ENTRIES or size > limit:
        raise FileFormatError(
            f"it holds {len(members)} arrays of {size:,} bytes, more than the limit of {limit:,}"
        )
    if size > max(small, RATIO * packed):
        raise FileFormatError(f"{packed:,} bytes would unpack to {size:,}, as no measured numbers do; {CURE}")
    if len({info.filename for info in members}) < len(members):
        raise FileFormatError("it holds two arrays of one name")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """One array, after its header has been compared with the room that it takes."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in header:
            raise FileFormatError(f"{info.filename} has the format version {version}")
        shape, _, dtype = header[version](member)
        if dtype.hasobject:
            raise FileFormatError(f"{info.filename} holds Python objects")
        if math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
            raise FileFormatError(f"{info.filename} does not have the size that its header says")
    with archive.open(info) as member:
        found: npt.NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        return found
