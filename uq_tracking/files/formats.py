"""Files as named columns. Nothing is ever unpickled, because a file of predictions may come from anywhere."""

from __future__ import annotations

import importlib
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from uq_tracking.errors import FileFormatError, MissingPackageError, UQTrackingError
from uq_tracking.files.room import Unpacked, check_unpacked, room, size_of
from uq_tracking.npz import check_room

LONGEST_HEAD = 2**20
"""Characters of the first line used to detect a table's separator."""
EXTRA = 'pip install "uq-tracking[files]"'


@dataclass(frozen=True)
class ColumnFile:
    """A file's column names, and how to load some of them."""

    path: Path
    names: list[str]
    load: Callable[[Sequence[str]], dict[str, Any]]
    lazy: Callable[[Sequence[str]], dict[str, Any]] | None = None
    """Columns as arrays that are read only as they are sliced, if the format supports that."""

    def holds_numbers(self, name: str) -> bool:
        """Whether a column holds numbers rather than text or dates."""
        with reading(self.path):
            return np.asarray(self.load([name])[name]).dtype.kind in "fiu"


def open_table(path: Path) -> ColumnFile:
    """Inspect a file without loading its data, if the format allows that.

    Raises
    ------
    FileFormatError
        The kind of file is unknown, or the file is damaged.
    MissingPackageError
        The package that reads this kind is not installed.
    """
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


def _open_npz(path: Path) -> ColumnFile:
    check_room(path, room())
    with (
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):  # numpy leaves a damaged file open
        names = list(archive.files)

    def load(wanted: Sequence[str]) -> dict[str, Any]:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in wanted}

    return ColumnFile(path, names, load)


def _open_npy(path: Path) -> ColumnFile:
    whole = _matrix(path, np.load(path, mmap_mode="r", allow_pickle=False))
    return replace(
        whole,
        load=lambda wanted: {name: np.array(a) for name, a in whole.load(wanted).items()},
        lazy=whole.load,
    )


def _matrix(path: Path, array: Any) -> ColumnFile:
    """A structured array by its fields; a plain one by its columns: target, mean and std if there are three."""
    if array.dtype.names:
        return ColumnFile(
            path, list(array.dtype.names), lambda wanted: {name: array[name] for name in wanted}
        )
    if array.ndim != 2:
        raise FileFormatError(
            f"{path} holds an array of shape {array.shape}; it needs one column each for target, mean and std"
        )
    width = array.shape[1]
    names = ["target", "mean", "std"] if width == 3 else [str(k) for k in range(width)]

    def load(wanted: Sequence[str]) -> dict[str, Any]:
        return {name: array[:, names.index(name)] for name in wanted}

    return ColumnFile(path, names, load)


def _open_csv(path: Path) -> ColumnFile:
    pandas = _need("pandas", path)
    with _text(path) as file:
        separator = max(",;\t|", key=file.readline(LONGEST_HEAD).count)
    with _text(path) as file:
        names = [str(name) for name in pandas.read_csv(file, sep=separator, nrows=0).columns]
    exact: dict[str, Any] = {"float_precision": "round_trip"} if _loses_digits(pandas) else {}

    def load(wanted: Sequence[str]) -> dict[str, Any]:
        with _text(path) as file:
            table = pandas.read_csv(file, sep=separator, usecols=list(wanted), **exact)
        return {name: table[name].to_numpy() for name in wanted}

    return ColumnFile(path, names, load)


def _loses_digits(pandas: Any) -> bool:
    """Whether this pandas may lose the last digit of a number by default; from 3.1 on it does not."""
    major, minor = (int(part) for part in pandas.__version__.split(".")[:2])
    return (major, minor) < (3, 1)


def _text(path: Path) -> Any:
    if path.suffix != ".gz":
        return path.open(encoding="utf-8")
    return io.TextIOWrapper(io.BufferedReader(Unpacked(path)), encoding="utf-8")


def _open_parquet(path: Path) -> ColumnFile:
    dataset = _need("pyarrow.dataset", path).dataset(path, format="parquet")

    def load(wanted: Sequence[str]) -> dict[str, Any]:
        check_unpacked(path, _parquet_bytes(dataset, wanted), size_of(path))
        table = dataset.to_table(columns=list(wanted))
        return {name: _arrow_column(table.column(name)) for name in wanted}

    return ColumnFile(path, list(dataset.schema.names), load)


def _parquet_bytes(dataset: Any, wanted: Sequence[str]) -> int:
    """Size of some columns in memory, by the file's index: eight bytes per value, or more for longer text."""
    total = 0
    for fragment in dataset.get_fragments():
        about = fragment.metadata
        for group in map(about.row_group, range(about.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                if column.path_in_schema.split(".")[0] in wanted:
                    total += max(8 * column.num_values, column.total_uncompressed_size)
    return total


def _arrow_column(column: Any) -> Any:
    """A column as a numpy array; a column of equally long lists as a matrix."""
    values = column.to_numpy()
    is_list = values.dtype == object and len(values) > 0 and isinstance(values[0], np.ndarray)
    return np.stack(values) if is_list else values


def _open_json(path: Path) -> ColumnFile:
    """A table as ``{"columns": [...], "data": [[...], ...]}``, as MLflow's ``log_table`` and W&B write it."""
    with path.open(encoding="utf-8") as file:
        content = json.load(file)
    if not isinstance(content, dict) or not {"columns", "data"} <= content.keys():
        raise FileFormatError(
            f'{path} is not a table; write it as {{"columns": [...], "data": [[...], ...]}}'
        )
    names = [str(name) for name in content["columns"]]
    rows = content["data"]
    if any(len(row) != len(names) for row in rows):
        raise FileFormatError(f"{path}: its rows must be as long as its {len(names)} column names")

    def load(wanted: Sequence[str]) -> dict[str, Any]:
        return {name: _json_column(path, name, [row[names.index(name)] for row in rows]) for name in wanted}

    return ColumnFile(path, names, load)


def _json_column(path: Path, name: str, cells: list[Any]) -> Any:
    """Numbers, or equally long lists of them; null is NaN."""
    column = np.asarray(cells, dtype=None if all(cell is not None for cell in cells) else np.float64)
    if column.dtype == object:
        raise FileFormatError(
            f"{path}: column {name!r} holds neither numbers nor equally long lists of numbers"
        )
    return column


def _open_zarr(path: Path) -> ColumnFile:
    zarr = _need("zarr", path)
    _refuse_pickle_codec(path)
    node = zarr.open(str(path), mode="r")
    if not hasattr(node, "array_keys"):
        _check_zarr(path, [node])
        return _matrix(path, node[...])

    def load(wanted: Sequence[str]) -> dict[str, Any]:
        _check_zarr(path, [node[name] for name in wanted])
        if any(_by_xarray(node[name]) for name in wanted):
            return _load_by_xarray(path, wanted)
        return {name: node[name][...] for name in wanted}

    names = sorted(node.array_keys())
    if any(_by_xarray(node[name]) for name in names):
        return ColumnFile(path, names, load)
    return ColumnFile(path, names, load, lazy=lambda wanted: {name: node[name] for name in wanted})


def _check_zarr(path: Path, arrays: Sequence[Any]) -> None:
    """Reject arrays, or single chunks, whose declared size far exceeds everything in the store."""
    sizes = [max(math.prod(array.shape), math.prod(array.chunks)) * array.dtype.itemsize for array in arrays]
    check_unpacked(path, sum(sizes), size_of(path))


def _by_xarray(array: Any) -> bool:
    """Whether an array has dimension names, and so may hide scale, offset and fill value (CF conventions)."""
    named = getattr(getattr(array, "metadata", None), "dimension_names", None)
    return "_ARRAY_DIMENSIONS" in array.attrs or bool(named)


def _load_by_xarray(path: Path, wanted: Sequence[str]) -> dict[str, Any]:
    xarray = _need("xarray", path, "pip install xarray (it decodes scale factors and fill values)")
    with xarray.open_dataset(path, engine="zarr", chunks=None, consolidated=False) as dataset:
        return {name: dataset[name].load() for name in wanted}


def _refuse_pickle_codec(path: Path) -> None:
    """Reject pickle as a chunk codec, which the format allows but which would run a stranger's code."""
    for folder in (path, *(entry for entry in path.iterdir() if entry.is_dir())):
        for name in (".zarray", ".zmetadata", "zarr.json"):
            file = folder / name
            if (
                file.is_file()
                and "pickle" in json.dumps(json.loads(file.read_text(encoding="utf-8"))).lower()
            ):
                raise FileFormatError(
                    f"{file} uses the pickle codec, which can run arbitrary code; it is not opened"
                )


_OPENERS: dict[tuple[str, ...], Callable[[Path], ColumnFile]] = {
    (".npz",): _open_npz,
    (".npy",): _open_npy,
    (".csv", ".tsv", ".csv.gz", ".tsv.gz"): _open_csv,
    (".parquet", ".pq"): _open_parquet,
    (".json",): _open_json,
    (".zarr",): _open_zarr,
}
