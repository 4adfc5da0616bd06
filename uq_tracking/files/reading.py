"""One or more files as predictions, whole or block by block."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError, InputError, SettingsError, ShapeError
from uq_tracking.files.columns import OF_CLASSES, SEVERAL, check_numbers, choose
from uq_tracking.files.formats import ColumnFile, in_memory, open_table, reading
from uq_tracking.inputs import Options, Predictions
from uq_tracking.inputs.constructors import PER_SAMPLE
from uq_tracking.inputs.forms.mean_std import Numbers
from uq_tracking.inputs.labels import spread
from uq_tracking.inputs.predictions import FORMAT
from uq_tracking.npz import ABOUT
from uq_tracking.typed import Unpack

Values = dict[str, Any]
"""Arrays by role; ``level``, ``levels`` and the ``axis`` of the members are numbers."""
BLOCK_SAMPLES = 1 << 22
_NUMBERS = ("level", "levels", "axis", "classes")


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
        "q10"}``) or by a pattern (``{"quantiles": "AutoARIMA-*"}``); of classes, ``labels`` with ``probs`` or
        ``logits`` (one array with the classes along its last axis, or a pattern such as ``"prob_*"`` with one column
        per class, in the order of their numbers; labels that are text are looked up in what ``*`` stands for);
        ``mask`` (True excludes a sample), ``weights``, ``groups`` and ``by``. Common names are found without it,
        except for masks, because files differ in what True means, and weights; columns numbered by class have to
        start at 0. The columns of a plain npy matrix are numbered from "0"; three columns are target, mean and std.
    **options
        As for `Predictions`; arrays given here override those in the file.

    Returns
    -------
    Predictions
        For a single file from their ``save``, everything that was saved.

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
    tables = _open(path)
    if len(tables) == 1 and not columns and _is_own(tables[0]):
        return _saved(tables[0].path, options)
    found = [_values(table, columns) for table in tables]
    values = found[0] if len(found) == 1 else _join([table.path for table in tables], found)
    try:
        return _predictions(values, options)
    except InputError as error:
        where = path if isinstance(path, str | Path) else f"{tables[0].path} ... {tables[-1].path}"
        raise type(error)(f"{where}: {error}") from error


@dataclass(frozen=True)
class FileBlocks:
    """Predictions from files, block by block."""

    total: int | None
    """Samples in all files; None if a file must be read to find out."""
    blocks: Iterator[Predictions | dict[str, Any]]
    """Batches for ``Accumulator.update``, or all of them for `evaluate`."""


def read_blocks(
    path: str | Path, columns: Mapping[str, str] | None = None, **options: Unpack[Options]
) -> FileBlocks:
    """Read predictions without holding them all: npy and zarr in slices of the first axis, others file by file.

    Parameters
    ----------
    path, columns, **options
        As for `read_predictions`.

    Returns
    -------
    FileBlocks
        Its blocks are batches for ``Accumulator.update``, or all of them for `evaluate`.

    Raises
    ------
    FileNotFoundError, FileFormatError, MissingPackageError, SettingsError, InputError
        As for `read_predictions`, when a block is read.
    """
    tables = _open(path)
    sliced = [_sliced(table, columns) for table in tables]
    sizes = [prod(arrays["target"].shape) for arrays in sliced if arrays is not None]

    def blocks() -> Iterator[Predictions | dict[str, Any]]:
        for table, arrays in zip(tables, sliced, strict=True):
            if arrays is None:
                yield _predictions(_values(table, columns), options)
                continue
            shape = arrays["target"].shape
            step = max(1, BLOCK_SAMPLES // max(1, prod(shape[1:])))
            for start in range(0, shape[0], step):
                with reading(table.path):
                    part = {
                        role: _as_role(role, [in_memory(array[start : start + step])])
                        for role, array in arrays.items()
                    }
                yield _arguments(part) if "std" in part else _predictions(part, options)

    return FileBlocks(sum(sizes) if len(sizes) == len(tables) else None, blocks())


def _open(path: str | Path | Sequence[Path]) -> list[ColumnFile]:
    """Open the files that a path, a glob or a list names."""
    if not isinstance(path, str | Path):
        return [open_table(file) for file in path]
    if Path(path).exists():
        return [open_table(Path(path))]
    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    if not found:
        raise FileNotFoundError(f"there is no file {path}")
    return [open_table(file) for file in found]


def _sliced(table: ColumnFile, columns: Mapping[str, str] | None) -> dict[str, Any] | None:
    """Arrays by role that can be read in slices; None if the file must be read whole."""
    if not table.sliceable:
        return None
    chosen = choose(table, columns)
    if {*SEVERAL, "level"} & chosen.keys():  # not split along the target's first axis
        return None
    with reading(table.path):
        arrays = table.columns([several[0] for several in chosen.values()])
    found = {role: arrays[several[0]] for role, several in chosen.items()}
    if len({array.shape[:1] for array in found.values()}) > 1:
        shapes = ", ".join(f"{role} {array.shape}" for role, array in found.items())
        raise ShapeError(f"{table.path}: shapes differ, and nothing is broadcast: {shapes}")
    return found


def _arguments(part: dict[str, Any]) -> dict[str, Any]:
    """Arguments for ``Accumulator.update``, whose options decide about bad values and blocks without truth."""
    names = {"target": "y_true", "mean": "y_pred", "std": "y_std"}
    return {names.get(role, role): array for role, array in part.items()}


def _is_own(table: ColumnFile) -> bool:
    """Return True for a file written by `Predictions.save`."""
    is_npz = table.path.suffix.lower() == ".npz" and ABOUT in table.names
    return is_npz and FORMAT in str(table.load([ABOUT])[ABOUT])


def _saved(path: Path, options: Options) -> Predictions:
    """A file from `Predictions.save`, which already determines which samples count."""
    data = Predictions.load(path)
    if options.get("mask") is not None:
        raise SettingsError(f"{path} already states which samples count; omit mask=")
    given: Any = {
        name: value for name, value in options.items() if name != "on_invalid" and value is not None
    }
    fixed = given if not isinstance(data.form, Numbers) else given.keys() - signature(data.replace).parameters
    if fixed:
        names = ", ".join(sorted(fixed))
        raise SettingsError(
            f"{path} holds predictions as they were saved; {names} must be given when making them"
        )
    return data.replace(**given) if given else data


def _values(table: ColumnFile, columns: Mapping[str, str] | None) -> Values:
    """The content of a file by role."""
    chosen = choose(table, columns)
    level, levels = chosen.pop("level", None), chosen.pop("levels", None)
    own = _is_own(table) and "mask" not in chosen
    if own and "weights" in table.names:
        chosen.setdefault("weights", ["weights"])
    saved = ["valid"] if own and "valid" in table.names else []
    arrays = table.load(list(dict.fromkeys([*(name for one in chosen.values() for name in one), *saved])))
    check_numbers(table.path, chosen, arrays)
    values = {role: _as_role(role, [arrays[name] for name in several]) for role, several in chosen.items()}
    if own:
        values["mask"] = ~arrays["valid"] if saved else np.zeros(np.shape(values["target"]), dtype=bool)
    if "samples" in values:
        one_array = len(chosen["samples"]) == 1
        values["axis"] = _member_axis(values["samples"], np.shape(values["target"])) if one_array else 0
    role = next((role for role in OF_CLASSES if len(chosen.get(role, ())) > 1), "")
    if role and np.asarray(values["target"]).dtype.kind not in "biuf":
        stem = re.split(r"[*?[]", (columns or {}).get(role, ""))[0]
        values["classes"] = [name.removeprefix(stem) for name in chosen[role]]
    if levels is not None:
        values |= {"levels": [_number(text) for text in levels], "axis": 0}
    return values if level is None else {**values, "level": _number(level[0])}


def _as_role(role: str, arrays: Sequence[Any]) -> Any:
    """The array for a role; several columns are the members of an ensemble, or the classes."""
    if len(arrays) > 1:
        return np.stack([np.asarray(one) for one in arrays], axis=-1 if role in OF_CLASSES else 0)
    is_mask = role == "mask" and np.asarray(arrays[0]).dtype.kind in "iu"
    return np.asarray(arrays[0]) != 0 if is_mask else arrays[0]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SettingsError(f"level={text!r} is not a number; write, for example, level=0.9") from None


def _predictions(values: Values, options: Options) -> Predictions:
    """Construct predictions; the file's mask and labels serve unless the options have them."""
    own: Any = {name: values[name] for name in (*PER_SAMPLE, "classes") if name in values}
    own |= {name: value for name, value in options.items() if value is not None}
    target, mean = values["target"], values.get("mean")
    for role in OF_CLASSES:
        if role in values:
            return Predictions.from_probs(target, values[role], logits=role == "logits", **own)
    if "quantiles" in values:
        return Predictions.from_quantiles(target, values["quantiles"], values["levels"], mean, axis=0, **own)
    if "samples" in values:
        noise, axis = values.get("member_std"), values["axis"]
        if noise is None:
            return Predictions.from_samples(target, values["samples"], axis=axis, **own)
        return Predictions.from_ensemble(target, values["samples"], noise, axis=axis, **own)
    if "low" in values:
        return Predictions.from_interval(target, values["low"], values["high"], values["level"], mean, **own)
    if "variance" in values:
        return Predictions.from_variance(target, mean, values["variance"], **own)
    if "log_variance" in values:
        return Predictions.from_log_variance(target, mean, values["log_variance"], **own)
    return Predictions(target, mean, values["std"], **own)


def _member_axis(samples: Any, shape: tuple[int, ...]) -> int:
    """The members axis, first or last, inferred from the target's shape."""
    first, last = samples.shape[1:] == shape, samples.shape[:-1] == shape
    if first and last:
        raise SettingsError(
            f"samples has shape {samples.shape}, so its members could be along the first or the last axis; "
            "load it yourself and use Predictions.from_samples(..., axis=)"
        )
    return -1 if last else 0


def _join(paths: Sequence[Path], found: Sequence[Values]) -> Values:
    """The values of several files as those of one."""
    for path, values in zip(paths, found, strict=True):
        if any(values.get(name) != found[0].get(name) for name in ("levels", "classes")):
            raise FileFormatError(f"{path} has other quantiles or classes than {paths[0]}; read it alone")
        if set(values) != set(found[0]):
            raise FileFormatError(
                f"{path} has {', '.join(sorted(values))}, but {paths[0]} has {', '.join(sorted(found[0]))}; "
                "read them separately, or name the columns"
            )
    shapes = [np.shape(values["target"]) for values in found]
    parts = [_spread_out(*item) for item in zip(paths, found, shapes, strict=True)]
    joined = {role: found[0][role] for role in _NUMBERS if role in found[0]}
    for role in parts[0]:
        array = _join_arrays([part[role] for part in parts], shapes, int(role in SEVERAL), paths)
        if role in OF_CLASSES:
            array = array[0] if np.shape(found[0][role]) == shapes[0] else np.moveaxis(array, 0, -1)
        joined[role] = array
    return joined | ({"axis": 0} if "axis" in joined else {})


def _spread_out(path: Path, values: Values, shape: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
    """Members or classes first, and one label per sample, so that all arrays can be joined the same way."""
    out = {role: np.asarray(value) for role, value in values.items() if role not in _NUMBERS}
    for role in out.keys() & set(SEVERAL):
        array = out[role][..., None] if out[role].shape == shape else out[role]  # probabilities of an event
        out[role] = np.moveaxis(array, -1 if role in OF_CLASSES else values["axis"], 0)
    for role in ("weights", "groups", "by"):
        if role in out and out[role].shape == shape[:1]:
            out[role] = spread(out[role], shape)
    for role, array in out.items():
        if array.shape[int(role in SEVERAL) :] != shape:
            raise ShapeError(
                f"{path}: {role} has shape {array.shape}, but target has {shape}; they must be equal"
            )
    return out


def _join_arrays(
    arrays: Sequence[npt.NDArray[Any]], shapes: Sequence[tuple[int, ...]], lead: int, paths: Sequence[Path]
) -> npt.NDArray[Any]:
    """Join along the first axis after ``lead`` axes of members or classes."""
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
