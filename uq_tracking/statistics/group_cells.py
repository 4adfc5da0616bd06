"""Tables with a row per group and a column per bucket, most of whose cells may be empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.orders import FloatArray, IntArray

DENSE = 1 << 22
"""How many numbers of a dense table are multiplied at a time."""


@dataclass(frozen=True, eq=False)
class GroupCells:
    """Cells of a table with a row per group and a column per bucket; empty cells are left out."""

    bucket: npt.NDArray[Any]
    """Key of each column, ascending; cells are sorted by column, then by row."""
    row: IntArray
    column: IntArray
    sums: Mapping[str, npt.NDArray[Any]]
    """Sums over each cell's samples, including ``count``."""

    @classmethod
    def of(cls, row: IntArray, bucket: npt.NDArray[Any], sums: Mapping[str, npt.NDArray[Any]]) -> GroupCells:
        """Add up the cells that share a row and a bucket."""
        used, column = np.unique(bucket, return_inverse=True)
        rows = int(row.max(initial=0)) + 1
        cell, place = np.unique(column * rows + row, return_inverse=True)
        return cls(
            used, cell % rows, cell // rows, {name: _added(v, place, len(cell)) for name, v in sums.items()}
        )

    @classmethod
    def joined(cls, tables: Sequence[GroupCells], starts: Sequence[int] | None = None) -> GroupCells:
        """Cells of several tables in one; ``starts`` gives the row at which each begins, by default the first."""
        starts = [0] * len(tables) if starts is None else starts
        row = np.concatenate([table.row + start for table, start in zip(tables, starts, strict=True)])
        bucket = np.concatenate([table.bucket[table.column] for table in tables])
        sums = {name: np.concatenate([table.sums[name] for table in tables]) for name in tables[0].sums}
        return cls.of(row, bucket, sums)

    def moved(self, rows: IntArray) -> GroupCells:
        """The same cells with ``rows[i]`` for row i; rows that coincide are summed."""
        return GroupCells.of(rows[self.row], self.bucket[self.column], self.sums)

    def rebucketed(self, bucket: npt.NDArray[Any]) -> GroupCells:
        """The same cells with ``bucket[j]`` for column j; columns that coincide are summed."""
        return GroupCells.of(self.row, bucket[self.column], self.sums)

    def weighted(self, weights: FloatArray) -> dict[str, FloatArray]:
        """Every sum by resample and bucket, shape (resamples, buckets); ``weights`` has shape (resamples, groups)."""
        return {name: self._weighted(weights, values) for name, values in self.sums.items()}

    def _weighted(self, weights: FloatArray, values: npt.NDArray[Any]) -> FloatArray:
        """One dense range of columns at a time."""
        groups, buckets = weights.shape[1], len(self.bucket)
        made = np.empty((len(weights), buckets))
        step = max(1, DENSE // groups)
        for start in range(0, buckets, step):
            first, last = np.searchsorted(self.column, [start, start + step])
            part = slice(int(first), int(last))
            dense = np.zeros((groups, min(step, buckets - start)))
            dense[self.row[part], self.column[part] - start] = values[part]
            made[:, start : start + step] = weighted_sums(weights, dense)
        return made

    def nbytes(self) -> int:
        """Size of the numbers in bytes."""
        return int(self.row.nbytes + self.column.nbytes + sum(v.nbytes for v in self.sums.values()))


def _added(values: npt.NDArray[Any], place: IntArray, size: int) -> npt.NDArray[Any]:
    if size == len(values):  # no two share a cell
        made = np.empty_like(values)
        made[place] = values
        return made
    made = np.zeros(size, dtype=values.dtype)
    np.add.at(made, place, values)
    return made


def weighted_sums(weights: FloatArray, values: FloatArray) -> FloatArray:
    """``weights @ values``, where a group of weight 0 does not count even if its value is infinite."""
    finite = np.isfinite(values)
    if finite.all():
        return weights @ values
    made = weights @ np.where(finite, values, 0.0)
    column = np.flatnonzero(~finite.all(axis=0))
    first = np.argmin(finite[:, column], axis=0)
    touched = (weights @ (~finite[:, column]).astype(float)) > 0
    made[:, column] = np.where(touched, values[first, column], made[:, column])
    return made


def cell_arrays(cells: Mapping[str, GroupCells], *, full: bool = False) -> dict[str, npt.NDArray[Any]]:
    """Plain arrays that ``read_cells`` reads."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, table in cells.items():
        arrays |= {f"{name}/bucket": table.bucket, f"{name}/row": table.row.astype(np.int32)}
        arrays[f"{name}/column"] = table.column.astype(np.int32)
        arrays |= {
            f"{name}/sum/{key}": values if full else _lean(values) for key, values in table.sums.items()
        }
    return arrays


def _lean(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind in "iu":
        return values.astype(np.int32) if values.max(initial=0) < 2**31 else values
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    lossless = np.array_equal(np.isfinite(small), np.isfinite(values)) and not np.any(
        (small == 0) & (values != 0)
    )
    return small if lossless else values


def read_cells(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, payloads: Sequence[str], rows: int
) -> GroupCells:
    """Inverse of ``cell_arrays``; KeyError or ValueError for anything else."""
    bucket, row, column = (np.asarray(arrays[f"{name}/{part}"]) for part in ("bucket", "row", "column"))
    sums = {payload: np.asarray(arrays[f"{name}/sum/{payload}"]) for payload in payloads}
    if len({len(row), len(column), *(len(values) for values in sums.values())}) != 1:
        raise ValueError(f"columns of {name} differ in length")
    if len(row) and (row.min() < 0 or row.max() >= rows or column.min() < 0 or column.max() >= len(bucket)):
        raise ValueError(f"cells of {name} lie outside its table")
    wide = {
        payload: values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
        for payload, values in sums.items()
    }
    return GroupCells(bucket, row.astype(np.int64), column.astype(np.int64), wide)
