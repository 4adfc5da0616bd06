"""Arrays in npz files: written whole or not at all, never pickled, and checked for size before they are read."""

from __future__ import annotations

import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.checks import check_plain, check_version
from uq_tracking.errors import FileFormatError
from uq_tracking.typed import DAMAGE

ABOUT, VERSION = "about", 1
"""Entry that holds a file's format, version and settings as JSON, and the newest version."""
LIMIT = 8 * 2**30
"""Files larger than this, in bytes, packed or unpacked, are not read."""
MOST_ENTRIES = 10_000
SMALL = 64 * 2**20
"""Any file may unpack to this many bytes."""
PIECE = 1024
"""Length of the samples used to test whether an array compresses."""
WORTH_PACKING = 0.85
"""An array is compressed only if that shrinks it to this fraction or less."""
RATIO = 100
"""How many times its own size a larger file may unpack to; this package's own files stay far below."""

VARIABLE = "UQ_TRACKING_READ_LIMIT"
"""Environment variable: how many bytes a stranger's file may unpack to, however small it is."""
CURE = f"if the file is yours, set {VARIABLE} to the number of bytes that may be read, or pass the arrays"

Arrays = dict[str, npt.NDArray[Any]]


class Archive(zipfile.ZipFile):
    """A zip archive being written: one that an interruption leaves behind says nothing when it is collected."""

    def __del__(self) -> None:
        self.fp = None


def write_arrays(path: Path, arrays: Mapping[str, Any], *, compressed: bool = False) -> None:
    """Write named arrays, none of objects, to an npz file that appears whole or not at all.

    The same arrays give the same bytes. With ``compressed``, arrays that shrink are compressed, at a fast setting:
    compressing measured numbers as tightly as possible takes three times as long and saves 3 %.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with Archive(part, "w", compresslevel=1) as archive:
            for name, values in arrays.items():
                array = np.asanyarray(values)
                archive.compression = _packing(array) if compressed else zipfile.ZIP_STORED
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _packing(array: npt.NDArray[Any]) -> int:
    """How to store an array, judged by four samples of it: noise in the last digits does not compress."""
    places = range(0, max(array.size - PIECE, 0) + 1, max((array.size - PIECE) // 3, 1))
    pieces = b"".join(array.flat[place : place + PIECE].tobytes() for place in places)
    is_worth_it = len(zlib.compress(pieces, 1)) < WORTH_PACKING * len(pieces)
    return zipfile.ZIP_DEFLATED if is_worth_it else zipfile.ZIP_STORED


def read_arrays(path: Path) -> Arrays:
    """Read every array of an npz file.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        It is damaged or foreign, holds Python objects, or unpacks to more than it should.
    """
    check_plain(path, 2 * LIMIT)
    with path.open("rb") as file:  # operating system errors pass through
        packed = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
                check_sizes(members, packed)
                return {info.filename.removesuffix(".npy"): _read(archive, info) for info in members}
        except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds of errors for damaged bytes
            told = str(error) if isinstance(error, FileFormatError) else f"{type(error).__name__}: {error}"
            raise FileFormatError(
                f"{path.name} cannot be read as an npz file of plain arrays: {told}"
            ) from error


def check_sizes(members: list[zipfile.ZipInfo], packed: int, small: int = SMALL) -> None:
    """Refuse an archive whose stated sizes would fill memory; ``small`` bytes are always fine.

    No more than those is ever unpacked.
    """
    size = sum(info.file_size for info in members)
    if len(members) > MOST_ENTRIES or size > LIMIT:
        raise FileFormatError(
            f"it holds {len(members)} arrays of {size:,} bytes, more than the limit of {LIMIT:,}"
        )
    check_ratio(size, packed, small)
    if len({info.filename for info in members}) < len(members):
        raise FileFormatError("it holds two arrays with the same name")


def check_ratio(size: int, packed: int, small: int, about: str = "") -> None:
    """Raise FileFormatError for bytes that would unpack to more than any file may, and more than measured numbers."""
    if size > max(small, RATIO * packed):
        raise FileFormatError(
            f"{about}{packed:,} bytes would unpack to {size:,}, which measured numbers never do; {CURE}"
        )


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Read one array, after checking its header against its size."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in header:
            raise FileFormatError(f"{info.filename} has the unknown format version {version}")
        shape, is_fortran, dtype = header[version](member)
        if dtype.hasobject:
            raise FileFormatError(f"{info.filename} holds Python objects")
        if math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
            raise FileFormatError(f"{info.filename} does not have the size stated in its header")
        content = bytearray(member.read())
    found: npt.NDArray[Any] = np.frombuffer(content, dtype)
    return found.reshape(shape[::-1]).T if is_fortran else found.reshape(shape)


def read_about(arrays: Arrays, source: object, known: str, maker: str, cure: str = "") -> dict[str, Any]:
    """Take out what a file says of itself; FileFormatError unless it is of the known format, and not newer."""
    try:
        about = dict(json.loads(str(arrays.pop(ABOUT))))
        stated, version = about["format"], int(about["version"])
    except DAMAGE as error:
        raise FileFormatError(f"{source} was not written by {maker} ({error!r}){cure}") from error
    if stated != known:
        raise FileFormatError(f"{source} holds {stated!r}, not {known!r}")
    check_version(source, version, VERSION)
    return about


def prefixed(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """The arrays, with ``prefix/`` before their names."""
    return {f"{prefix}/{name}": values for name, values in arrays.items()}


def under(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """The arrays whose names start with ``prefix/``, without it."""
    start = f"{prefix}/"
    return {name.removeprefix(start): arrays[name] for name in arrays if name.startswith(start)}
