"""Files larger than memory: predictions block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.errors import ShapeError
from uq_tracking.files.columns import choose
from uq_tracking.files.formats import ColumnFile, open_table, reading
from uq_tracking.files.reading import build, load, matching
from uq_tracking.inputs import Options, Predictions

if TYPE_CHECKING:
    from typing_extensions import Unpack

BLOCK_SAMPLES = 1 << 22
_ARGUMENTS = {"target": "y_true", "mean": "y_pred", "std": "y_std"}
_WHOLE = ("samples", "member_std", "quantiles", "level")
"""Roles that are not split along the target's first axis."""


@dataclass(frozen=True)
class FileBlocks:
    """Predictions from files, block by block."""

    total: int | None
    """Samples in all files; None if a file must be read to find out."""
    blocks: Iterator[Predictions | dict[str, Any]]
    """Input for ``Accumulator.update`` and `evaluate_blocks`."""


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
        Its blocks are input for ``Accumulator.update`` or `evaluate_blocks`.

    Raises
    ------
    FileNotFoundError, FileFormatError, MissingPackageError, SettingsError, InputError
        As for `read_predictions`, when a block is read.
    """
    tables = [open_table(file) for file in matching(path)]
    sliced = [_sliced(table, columns) for table in tables]
    sizes = [None if arrays is None else prod(arrays["target"].shape) for arrays in sliced]
    known = [size for size in sizes if size is not None]
    return FileBlocks(
        sum(known) if len(known) == len(sizes) else None, _blocks(tables, sliced, columns, options)
    )


def _sliced(table: ColumnFile, columns: Mapping[str, str] | None) -> dict[str, Any] | None:
    """Arrays by role that can be read in slices; None if the file must be read whole."""
    chosen = choose(table.path, table.names, columns, table.holds_numbers)
    if table.lazy is None or any(role in chosen for role in _WHOLE):
        return None
    names = {role: several[0] for role, several in chosen.items()}
    with reading(table.path):
        arrays = table.lazy(list(names.values()))
    found = {role: arrays[name] for role, name in names.items()}
    if len({array.shape[:1] for array in found.values()}) > 1:
        shapes = ", ".join(f"{role} {array.shape}" for role, array in found.items())
        raise ShapeError(f"{table.path}: shapes differ, and nothing is broadcast: {shapes}")
    return found


def _blocks(
    tables: list[ColumnFile],
    sliced: list[dict[str, Any] | None],
    columns: Mapping[str, str] | None,
    options: Options,
) -> Iterator[Predictions | dict[str, Any]]:
    for table, arrays in zip(tables, sliced, strict=True):
        if arrays is None:
            yield build(load(table, columns), options)
            continue
        shape = arrays["target"].shape
        step = max(1, BLOCK_SAMPLES // max(1, prod(shape[1:])))
        for start in range(0, shape[0], step):
            with reading(table.path):
                part = {role: array[start : start + step] for role, array in arrays.items()}
            yield _arguments(part) if "std" in part else build(part, options)


def _arguments(part: dict[str, Any]) -> dict[str, Any]:
    """Arguments for ``Accumulator.update``, whose options decide about bad values and blocks without truth."""
    if "mask" in part and part["mask"].dtype.kind in "iu":
        part["mask"] = part["mask"] != 0
    return {_ARGUMENTS.get(role, role): array for role, array in part.items()}
