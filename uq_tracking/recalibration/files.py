"""Recalibrations of a logged run, and recalibrated standard deviations in a user's file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from uq_tracking.checks import read_json
from uq_tracking.errors import FileFormatError, RecalibrationError
from uq_tracking.files.columns import GUESSES
from uq_tracking.npz import read_arrays, write_arrays
from uq_tracking.recalibration.base import Recalibration, RegressionRecalibration

SUFFIX = "_recalibrated"

Array = npt.NDArray[Any]


def read_recalibrations(source: str | Path) -> dict[str, Recalibration]:
    """Read the fitted parameters in ``uq/recalibration.json`` of a run, by method.

    Also reads a file written by ``Recalibration.to_json``.

    Raises
    ------
    FileFormatError
        The file is foreign, damaged or too new.
    """
    values = read_json(source)
    if not isinstance(values, Mapping) or not isinstance(values.get("methods"), Mapping):
        one = Recalibration.from_dict(values)
        return {one.method: one}
    entries = list(values["methods"].values())
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise FileFormatError("the recalibrations are damaged: each method needs its own object")
    found = [Recalibration.from_dict(e["recalibration"]) for e in entries if e.get("recalibration")]
    return {one.method: one for one in found}


class Columns(NamedTuple):
    """Named arrays of a file, and how to write them back."""

    arrays: dict[str, Array]
    write: Callable[[Path, Mapping[str, Array]], None]


def recalibrate_file(
    recalibration: Recalibration,
    source: str | Path,
    output: str | Path | None = None,
    *,
    std: str | None = None,
    mean: str | None = None,
    by: str | None = None,
) -> Path:
    """Write a copy of a file of predictions, with recalibrated standard deviations added.

    Parameters
    ----------
    recalibration : Recalibration
        A regression recalibration.
    source : path of a .npz, .npy, .csv or .parquet file
        Holds standard deviations, and means if the recalibration changes them, under names that
        ``uq_tracking.files.read_predictions`` knows, such as ``std`` or ``sigma`` and ``mean`` or ``y_pred``. A .npy
        file holds just the standard deviations.
    output : path, optional
        By default the source with ``.recalibrated`` before its suffix.
    std, mean : str, optional
        Their names, if different.
    by : str, optional
        Name of the column of groups, for a recalibration fitted by groups.

    Returns
    -------
    Path
        The new file: everything in the source, plus ``<name>_recalibrated``.

    Raises
    ------
    RecalibrationError
        The recalibration is of a classification, or the file would be overwritten.
    FileFormatError
        The file has no such columns, or cannot be read.
    """
    source = Path(source)
    target = (
        source.with_name(f"{source.stem}.recalibrated{source.suffix}") if output is None else Path(output)
    )
    if not isinstance(recalibration, RegressionRecalibration):
        raise RecalibrationError(
            f"{recalibration.method} recalibrates probabilities; for a file of stds, use another method"
        )
    if target.suffix.lower() != source.suffix.lower():
        raise RecalibrationError(
            f"{target} does not end in {source.suffix}; the file is written as it was read"
        )
    if target.resolve() == source.resolve():
        raise RecalibrationError(f"{target} would be overwritten; choose another output")
    columns = _read(source)
    arrays, mean_name = columns.arrays, None
    std_name = _find(arrays, std, GUESSES["std"], "standard deviations", source)
    labels = None if by is None else arrays[_find(arrays, by, (), "groups", source)]
    if source.suffix != ".npy" and np.any(recalibration.new_mean(np.zeros(1), np.ones(1)) != 0):
        mean_name = _find(arrays, mean, GUESSES["mean"], "means", source)
    old_mean = np.zeros_like(arrays[std_name]) if mean_name is None else arrays[mean_name]
    new_mean, new_std = recalibration.apply(old_mean, arrays[std_name], labels)
    moved = {} if mean_name is None else {mean_name + SUFFIX: new_mean}
    columns.write(target, {**moved, std_name + SUFFIX: new_std})
    return target


def _find(names: Iterable[str], given: str | None, usual: tuple[str, ...], what: str, source: Path) -> str:
    there = list(names)
    wanted = usual if given is None else (given,)
    lower = {name.lower(): name for name in reversed(there)}
    found = given if given in there else next((lower[name] for name in wanted if name in lower), None)
    if found is None:
        raise FileFormatError(
            f"{source} holds {', '.join(there) or 'nothing'}, but no {what} ({', '.join(wanted)}); pass the name"
        )
    return found


def _read(source: Path) -> Columns:
    readers = {".npz": _read_npz, ".npy": _read_npy, ".csv": _read_csv, ".parquet": _read_parquet}
    if source.suffix not in readers:
        raise FileFormatError(f"{source} has an unknown suffix; use one of {', '.join(readers)}")
    if not source.exists():
        raise FileNotFoundError(f"there is no file {source}")
    return readers[source.suffix](source)


def _read_npz(source: Path) -> Columns:
    arrays = read_arrays(source)
    return Columns(arrays, lambda target, new: write_arrays(target, {**arrays, **new}))


def _read_npy(source: Path) -> Columns:
    try:
        values = np.load(source, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FileFormatError(f"{source} cannot be read as an array: {error}") from error

    def write(target: Path, new: Mapping[str, Array]) -> None:
        with target.open("wb") as file:
            np.save(file, new["std" + SUFFIX], allow_pickle=False)

    return Columns({"std": values}, write)


def _read_csv(source: Path) -> Columns:
    with source.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise FileFormatError(f"{source} is not a table: its rows must be as long as its header")
    texts = np.asarray(rows[1:], dtype=str).reshape(-1, len(rows[0])).T
    arrays = {name: _numbers(column) for name, column in zip(rows[0], texts, strict=True)}

    def write(target: Path, new: Mapping[str, Array]) -> None:
        added = zip(*(array.tolist() for array in new.values()), strict=True)
        with target.open("w", newline="", encoding="utf-8") as file:
            lines = ([*row, *values] for row, values in zip(rows, [tuple(new), *added], strict=True))
            csv.writer(file).writerows(lines)

    return Columns(arrays, write)


def _numbers(texts: Array) -> Array:
    """Return a column as numbers, NaN where it is empty; as it is if it holds other text."""
    try:
        return np.where(np.char.strip(texts) == "", "nan", texts).astype(np.float64)
    except ValueError:
        return texts


def _read_parquet(source: Path) -> Columns:
    try:
        import pandas as pd
    except ImportError as error:
        raise FileFormatError(f"reading {source} needs pandas: pip install 'uq-tracking[files]'") from error
    table = pd.read_parquet(source)
    arrays = {str(name): table[name].to_numpy() for name in table.columns}
    return Columns(arrays, lambda target, new: table.assign(**dict(new)).to_parquet(target))
