"""Files as named columns, by pandas, pyarrow, zarr and xarray.

A file may come from anywhere: nothing is ever unpickled, and its stated size is compared with its actual size before
it is read.
"""

from __future__ import annotations

import gzip
import importlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uq_tracking.checks import plain_text
from uq_tracking.errors import FileFormatError, MissingPackageError, SettingsError, UQTrackingError
from uq_tracking.inputs.convert import EXACT, check_whole
from uq_tracking.npz import VARIABLE, check_ratio, check_sizes

ROOM = 2**30
"""Any file may unpack to this many bytes, however small it is; the environment may set another limit."""
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
LONGEST_HEAD = 2**20
"""Characters of the first line used to detect a table's separator."""
EXTRA = 'pip install "uq-tracking[files]"'

Columns = dict[str, Any]


@dataclass(frozen=True)
class ColumnFile:
    """A file's column names, and how to read some of them.

    Columns of a ``sliceable`` file are read from disk only as they are sliced.
    """

    path: Path
    names: list[str]
    columns: Callable[[Sequence[str]], Columns]
    sliceable: bool = False

    def load(self, names: Sequence[str]) -> Columns:
        """Read some columns whole."""
        with reading(self.path):
            found = self.columns(names)
            return {name: in_memory(array) for name, array in found.items()} if self.sliceable else found

    def holds_numbers(self, name: str) -> bool:
        """True if a column holds numbers rather than text or dates."""
        return np.asarray(self.load([name])[name]).dtype.kind in "fiu"


def in_memory(array: Any) -> Any:
    """Read a memory map, an array of zarr or one of xarray, which keeps its axes and attributes."""
    return array.load() if hasattr(array, "load") else np.array(array)


def open_table(path: Path) -> ColumnFile:
    """Inspect a file without loading its data, if the format allows that."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileFormatError(f"{path} is not a file but a pipe or a device, which may never end")
    for suffixes, opener in _OPENERS.items():
        if path.name.lower().endswith(suffixes):
            with reading(path):
                return opener(path)
    kinds = ", ".join(suffix for suffixes in _OPENERS for suffix in suffixes)
    raise FileFormatError(
        f"{path} is not a supported kind of file ({kinds}); load it yourself and pass the arrays"
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever the readers raise for damaged files into one error that names the file."""
    try:
        yield
    except (UQTrackingError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # each reader has its own kinds of errors
        raise FileFormatError(f"{path} cannot be read: {error}") from error


def _need(module: str, path: Path, cure: str = EXTRA) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise MissingPackageError(
            f"reading {path} needs {package}, which is not installed: {cure}"
        ) from error


def _room() -> int:
    """Return the number of bytes to which any file may unpack."""
    given = os.environ.get(VARIABLE) or str(ROOM)
    if not given.isdecimal():
        raise SettingsError(f"{VARIABLE} is {given!r}; set it to a whole number of bytes, such as {ROOM}")
    return int(given)


def _check_unpacked(path: Path, size: int) -> None:
    """Raise FileFormatError if a file would unpack to far more bytes than measured numbers ever do."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    check_ratio(size, sum(file.stat().st_size for file in files), _room(), f"{path}: ")


def _open_npz(path: Path) -> ColumnFile:
    def columns(wanted: Sequence[str]) -> Columns:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in wanted}

    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:  # closes damaged files too
        check_sizes(archive.zip.infolist(), path.stat().st_size, _room())
        return ColumnFile(path, list(archive.files), columns)


def _matrix(path: Path, array: Any) -> ColumnFile:
    """Name the fields of a structured array, or the columns of a plain one: three are target, mean and std."""
    if array.dtype.names:
        names = list(array.dtype.names)
        return ColumnFile(path, names, lambda wanted: {name: array[name] for name in wanted}, sliceable=True)
    if array.ndim != 2:
        raise FileFormatError(
            f"{path} holds an array of shape {array.shape}; it needs one column each for target, mean and std"
        )
    width = array.shape[1]
    names = ["target", "mean", "std"] if width == 3 else [str(k) for k in range(width)]
    return ColumnFile(
        path, names, lambda wanted: {name: array[:, names.index(name)] for name in wanted}, sliceable=True
    )


def _open_csv(path: Path) -> ColumnFile:
    pandas = _need("pandas", path)
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    if opened is gzip.open:
        with gzip.open(path) as packed:
            _check_unpacked(path, sum(map(len, iter(lambda: packed.read(2**20), b""))))
    with opened(path, "rt", encoding="utf-8") as file:
        separator = max(",;\t|", key=file.readline(LONGEST_HEAD).count)
    names = pandas.read_csv(path, sep=separator, nrows=0).columns
    # From 3.1 on pandas keeps the last digit by itself.
    older = tuple(int(part) for part in pandas.__version__.split(".")[:2]) < (3, 1)
    exact = {"float_precision": "round_trip"} if older else {}

    def columns(wanted: Sequence[str]) -> Columns:
        table = pandas.read_csv(path, sep=separator, usecols=list(wanted), **exact)
        found = {name: table[name].to_numpy() for name in wanted}
        for name, values in found.items():
            if values.dtype == np.float64 and np.any(np.abs(values) >= EXACT):
                text = pandas.read_csv(path, sep=separator, usecols=[name], dtype=str, na_filter=False)[name]
                whole = [int(cell) if _WHOLE.fullmatch(cell) else None for cell in text]
                check_whole(values, whole, f"{path}: column {name!r}")
        return found

    return ColumnFile(path, [str(name) for name in names], columns)


def _open_parquet(path: Path) -> ColumnFile:
    dataset = _need("pyarrow.dataset", path).dataset(path, format="parquet")

    def columns(wanted: Sequence[str]) -> Columns:
        chunks = [
            group.column(place)
            for fragment in dataset.get_fragments()
            for group in map(fragment.metadata.row_group, range(fragment.metadata.num_row_groups))
            for place in range(group.num_columns)
        ]
        sizes = (
            max(8 * chunk.num_values, chunk.total_uncompressed_size)
            for chunk in chunks
            if chunk.path_in_schema.split(".")[0] in wanted
        )
        _check_unpacked(path, sum(sizes))
        table = dataset.to_table(columns=list(wanted))
        found = {name: _plain(table.column(name).to_numpy()) for name in wanted}
        for name, values in found.items():
            check_whole(values, table.column(name), f"{path}: column {name!r}")
        return found

    return ColumnFile(path, list(dataset.schema.names), columns)


def _plain(values: Any) -> Any:
    """Turn a column of equally long lists into a matrix; leave any other as it is."""
    is_list = values.dtype == object and len(values) > 0 and isinstance(values[0], np.ndarray)
    return np.stack(values) if is_list else values


def _open_json(path: Path) -> ColumnFile:
    """Read a table ``{"columns": [...], "data": [[...], ...]}``, as MLflow's ``log_table`` and W&B write it."""
    content = json.loads(plain_text(path))
    if not isinstance(content, dict) or not {"columns", "data"} <= content.keys():
        raise FileFormatError(
            f'{path} is not a table; write it as {{"columns": [...], "data": [[...], ...]}}'
        )
    names, rows = [str(name) for name in content["columns"]], content["data"]
    if any(len(row) != len(names) for row in rows):
        raise FileFormatError(f"{path}: its rows must be as long as its {len(names)} column names")

    def columns(wanted: Sequence[str]) -> Columns:
        found = {}
        for name in wanted:
            cells = [row[names.index(name)] for row in rows]
            found[name] = np.asarray(cells, dtype=np.float64 if None in cells else None)  # null is NaN
            if found[name].dtype == object:
                raise FileFormatError(
                    f"{path}: column {name!r} holds neither numbers nor equally long lists of numbers"
                )
            check_whole(found[name], cells, f"{path}: column {name!r}")
        return found

    return ColumnFile(path, names, columns)


def _open_zarr(path: Path) -> ColumnFile:
    zarr = _need("zarr", path)
    _refuse_pickle_codec(path)
    node = zarr.open(str(path), mode="r")
    if not hasattr(node, "array_keys"):
        _check_arrays(path, [node])
        return _matrix(path, node[...])
    names = sorted(node.array_keys())

    def columns(wanted: Sequence[str]) -> Columns:
        arrays = {name: node[name] for name in wanted}
        _check_arrays(path, list(arrays.values()))
        if not any(map(_has_dimensions, arrays.values())):
            return arrays
        xarray = _need("xarray", path, "pip install xarray (it decodes scale factors and fill values)")
        dataset = xarray.open_dataset(path, engine="zarr", chunks=None, consolidated=False)
        return {name: dataset[name] for name in wanted}

    return ColumnFile(path, names, columns, sliceable=True)


def _check_arrays(path: Path, arrays: Sequence[Any]) -> None:
    """Reject arrays, or single chunks, whose declared size far exceeds everything in the store."""
    sizes = [max(math.prod(array.shape), math.prod(array.chunks)) * array.dtype.itemsize for array in arrays]
    _check_unpacked(path, sum(sizes))


def _has_dimensions(array: Any) -> bool:
    """True if an array names its dimensions, and so may hide scale, offset and fill value (CF conventions)."""
    named = getattr(getattr(array, "metadata", None), "dimension_names", None)
    return "_ARRAY_DIMENSIONS" in array.attrs or bool(named)


def _refuse_pickle_codec(path: Path) -> None:
    """Reject pickle as a chunk codec, which the format allows but which would run a stranger's code."""
    for folder in (path, *(entry for entry in path.iterdir() if entry.is_dir())):
        for file in filter(Path.is_file, (folder / name for name in (".zarray", ".zmetadata", "zarr.json"))):
            if "pickle" in json.dumps(json.loads(plain_text(file))).lower():
                raise FileFormatError(
                    f"{file} uses the pickle codec, which can run arbitrary code; it is not opened"
                )


_OPENERS: dict[tuple[str, ...], Callable[[Path], ColumnFile]] = {
    (".npz",): _open_npz,
    (".npy",): lambda path: _matrix(path, np.load(path, mmap_mode="r", allow_pickle=False)),
    (".csv", ".tsv", ".csv.gz", ".tsv.gz"): _open_csv,
    (".parquet", ".pq"): _open_parquet,
    (".json",): _open_json,
    (".zarr",): _open_zarr,
}
