"""One or more files as `Predictions`."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import (
    EmptyInputError,
    FileFormatError,
    InputError,
    InputTypeError,
    SettingsError,
    ShapeError,
)
from uq_tracking.files.columns import NUMERIC, choose
from uq_tracking.files.formats import ColumnFile, open_table, reading
from uq_tracking.inputs import Options, Predictions
from uq_tracking.inputs.labels import spread
from uq_tracking.inputs.storage import ABOUT, REQUIRED

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NUMBERS = ("level", "levels", "axis")
_OF_MEMBERS = ("samples", "member_std", "quantiles")


def read_predictions(
    path: str | Path | Sequence[Path], columns: Mapping[str, str] | None = None, **options: Unpack[Options]
) -> Predictions:
    """Read predictions from npz, npy, csv (also tsv, gzipped), parquet, zarr, or a table in JSON (split orientation).

    Parameters
    ----------
    path
        A file, or a glob such as ``"scenes/*.npz"``: files are read in name order and joined. 1-D columns and stacks
        are joined along the first axis, 2-D maps of equal size become a stack, maps of different sizes are flattened.
        Or a list of files, read in the given order.
    columns
        Names in the file by role: ``target``; ``mean``; one of ``std``, ``variance``, ``log_variance``, ``low`` and
        ``high`` with ``level`` (a number such as ``"0.9"``), ``samples`` (members along the first or last axis, or a
        pattern such as ``"member_*"``; with ``member_std`` if there is one), or quantiles, by level (``{"0.1":
        "q10"}``) or by a pattern (``{"quantiles": "AutoARIMA-*"}``); ``mask`` (True excludes a sample), ``weights``,
        ``groups`` and ``by``. Common names are found without it, except for masks, because files differ in what True
        means, and weights. The columns of a plain npy matrix are numbered from "0"; three columns are target, mean
        and std.
    **options
        As for `Predictions`; arrays given here override those in the file.

    Returns
    -------
    Predictions
        For a single file from `Predictions.save`, everything that was saved.

    Raises
    ------
    FileNotFoundError
        No file matches.
    FileFormatError
        A file is damaged, of an unknown kind, or inconsistent with the others.
    MissingPackageError
        The package that reads it is not installed.
    SettingsError
        Columns cannot be found or are ambiguous.
    InputError
        The columns cannot be scored.
    """
    paths = matching(path)
    tables = [open_table(file) for file in paths]
    if len(tables) == 1 and not columns and _is_own(tables[0]):
        return _load_own(paths[0], options)
    found = [load(table, columns) for table in tables]
    values = found[0] if len(found) == 1 else _join(paths, found)
    try:
        return build(values, options)
    except InputError as error:
        where = path if isinstance(path, str | Path) else f"{paths[0]} ... {paths[-1]}"
        raise type(error)(f"{where}: {error}") from error


def matching(path: str | Path | Sequence[Path]) -> list[Path]:
    """The files that a path, a glob or a list names."""
    if not isinstance(path, str | Path):
        return list(path)
    if Path(path).exists():
        return [Path(path)]
    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    if not found:
        raise FileNotFoundError(f"there is no file {path}")
    return found


def _is_own(table: ColumnFile) -> bool:
    return table.path.suffix.lower() == ".npz" and {ABOUT, *REQUIRED} <= set(table.names)


def _load_own(path: Path, options: Options) -> Predictions:
    """A file from `Predictions.save`, which already determines which samples count."""
    data = Predictions.load(path)
    if options.get("mask") is not None:
        raise SettingsError(f"{path} already states which samples count; omit mask=")
    given: Any = {
        name: value for name, value in options.items() if name != "on_invalid" and value is not None
    }
    return data.replace(**given) if given else data


def load(table: ColumnFile, columns: Mapping[str, str] | None) -> dict[str, Any]:
    """The content of a file by role; ``level`` and the ``axis`` of the members are numbers."""
    chosen = choose(table.path, table.names, columns, table.holds_numbers)
    level, levels = chosen.pop("level", None), chosen.pop("levels", None)
    own = _is_own(table) and "mask" not in chosen
    if own and "weights" in table.names:
        chosen.setdefault("weights", ["weights"])
    saved = ["valid"] if own and "valid" in table.names else []
    names = list(dict.fromkeys([name for several in chosen.values() for name in several] + saved))
    with reading(table.path):
        arrays = table.load(names)
    for role in chosen.keys() & NUMERIC:
        _check_numbers(table.path, role, {name: arrays[name] for name in chosen[role]})
    values = {role: _one(role, [arrays[name] for name in several]) for role, several in chosen.items()}
    if own:
        values["mask"] = ~arrays["valid"] if saved else np.zeros(np.shape(values["target"]), dtype=bool)
    if "samples" in values:
        one_array = len(chosen["samples"]) == 1
        values["axis"] = _member_axis(values["samples"], np.shape(values["target"])) if one_array else 0
    if levels is not None:
        values |= {"levels": [_number(text) for text in levels], "axis": 0}
    return values if level is None else {**values, "level": _number(level[0])}


def _check_numbers(path: Path, role: str, arrays: Mapping[str, Any]) -> None:
    """Raise InputTypeError, naming the column, if it holds dates or text; EmptyInputError if a table has no rows."""
    for name, array in arrays.items():
        if np.asarray(array).dtype.kind == "O" and not np.size(array):
            raise EmptyInputError(f"{path} has column names but no rows; there is nothing to score")
        told = _other_than_numbers(np.asarray(array))
        if told:
            raise InputTypeError(f"{path}: column {name!r} (for {role}) holds {told}, not numbers")


def _other_than_numbers(array: npt.NDArray[Any]) -> str:
    """What an array holds instead of numbers; empty for numbers, and if only the values would tell."""
    if array.dtype.kind in "fiubc":
        return ""
    first = next((value for value in array.flat if value is not None and value == value), None)
    texts = [(row, value) for row, value in enumerate(array.flat, start=1) if isinstance(value, str)]
    if texts:
        row, text = next(((row, text) for row, text in texts if not _is_number(text)), texts[0])
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return f"text such as {str(text)!r}" + (f" (data row {row})" if array.ndim == 1 else "")
        return "dates"
    return "dates" if isinstance(first, date | np.datetime64) else ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _one(role: str, arrays: Sequence[Any]) -> Any:
    """The array for a role; several columns are the members of an ensemble."""
    array = arrays[0] if len(arrays) == 1 else np.stack([np.asarray(array) for array in arrays])
    return np.asarray(array) != 0 if role == "mask" and np.asarray(array).dtype.kind in "iu" else array


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SettingsError(f"level={text!r} is not a number; write, for example, level=0.9") from None


def build(values: dict[str, Any], options: Options) -> Predictions:
    """Add the file's mask and labels to the options, unless the options already have them."""
    own: Any = {name: values[name] for name in ("mask", "weights", "groups", "by") if name in values}
    own.update((name, value) for name, value in options.items() if value is not None)
    return _construct(values, own)


def _construct(values: dict[str, Any], options: Options) -> Predictions:
    target, mean = values["target"], values.get("mean")
    if "quantiles" in values:
        return Predictions.from_quantiles(
            target, values["quantiles"], values["levels"], mean, axis=0, **options
        )
    if "samples" in values:
        noise, axis = values.get("member_std"), values["axis"]
        if noise is None:
            return Predictions.from_samples(target, values["samples"], axis=axis, **options)
        return Predictions.from_ensemble(target, values["samples"], noise, axis=axis, **options)
    if "low" in values:
        low, high = values["low"], values["high"]
        return Predictions.from_interval(target, low, high, values["level"], mean, **options)
    if "variance" in values:
        return Predictions.from_variance(target, mean, values["variance"], **options)
    if "log_variance" in values:
        return Predictions.from_log_variance(target, mean, values["log_variance"], **options)
    return Predictions(target, mean, values["std"], **options)


def _member_axis(samples: Any, shape: tuple[int, ...]) -> int:
    """The members axis, first or last, inferred from the target's shape."""
    first, last = samples.shape[1:] == shape, samples.shape[:-1] == shape
    if first and last:
        raise SettingsError(
            f"samples has shape {samples.shape}, so its members could be along the first or the last axis; "
            "load it yourself and use Predictions.from_samples(..., axis=)"
        )
    return -1 if last else 0


def _join(paths: Sequence[Path], found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The values of several files as those of one."""
    for path, values in zip(paths, found, strict=True):
        if values.get("levels") != found[0].get("levels"):
            raise FileFormatError(
                f"{path} has quantiles at other levels than {paths[0]}; read them separately"
            )
        if set(values) != set(found[0]):
            raise FileFormatError(
                f"{path} has {', '.join(sorted(values))}, but {paths[0]} has {', '.join(sorted(found[0]))}; "
                "read them separately, or name the columns"
            )
    shapes = [np.shape(values["target"]) for values in found]
    parts = [_spread_out(*item) for item in zip(paths, found, shapes, strict=True)]
    joined = {role: found[0][role] for role in _NUMBERS if role in found[0]}
    for role in parts[0]:
        lead = int(role in _OF_MEMBERS)
        joined[role] = _join_arrays([part[role] for part in parts], shapes, lead, paths)
    return joined | ({"axis": 0} if "axis" in joined else {})


def _spread_out(path: Path, values: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Members first, and one label per sample, so that all arrays can be joined the same way."""
    out = {role: np.asarray(value) for role, value in values.items() if role not in _NUMBERS}
    for role in _OF_MEMBERS:
        if role in out:
            out[role] = np.moveaxis(out[role], values["axis"], 0)
    for role in ("weights", "groups", "by"):
        if role in out and out[role].shape == shape[:1]:
            out[role] = spread(out[role], shape)
    for role, array in out.items():
        if array.shape[int(role in _OF_MEMBERS) :] != shape:
            raise ShapeError(
                f"{path}: {role} has shape {array.shape}, but target has {shape}; they must be equal"
            )
    return out


def _join_arrays(
    arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]], lead: int, paths: Sequence[Path]
) -> Any:
    """Join along the first axis after ``lead`` axes of members."""
    if len({array.shape[:lead] for array in arrays}) > 1:
        raise FileFormatError(
            f"{paths[0]} and the others hold ensembles of different sizes; read them separately"
        )
    maps = any(len(shape) == 2 for shape in shapes)
    if maps and len(set(shapes)) == 1:
        return np.stack(arrays, axis=lead)
    if maps or len({shape[1:] for shape in shapes}) > 1:
        arrays = [array.reshape(*array.shape[:lead], -1) for array in arrays]
    return np.concatenate(arrays, axis=lead)
