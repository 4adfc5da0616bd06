"""Batches: what they may be, and arrays on disk cut into them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from uq_tracking.errors import InputTypeError
from uq_tracking.inputs.convert import IN_A_TABLE
from uq_tracking.inputs.labels import label_array
from uq_tracking.inputs.predictions import Predictions
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.streams.accumulator import Accumulator

BLOCK_SAMPLES = 1 << 22
"""Samples read at a time from arrays that do not state their chunks."""


FORMS = {2: ("y_true", "probs"), 3: ("y_true", "y_pred", "y_std")}
"""Names of the arrays in a tuple, by its length."""


def arguments_of(batch: Any, what: str = "a batch") -> dict[str, Any]:
    """Return arguments of ``Accumulator.update``, from a tuple, predictions or a dict of them.

    Raises
    ------
    InputTypeError
        It is something else, or the names in the dict are not those of the arguments.
    """
    if isinstance(batch, Predictions):
        return {"y_true": batch}
    known = [
        name for name in inspect.signature(Accumulator.update).parameters if name not in ("self", "arrays")
    ]
    if isinstance(batch, Mapping):
        if batch.keys() - {*known} or "y_true" not in batch:
            raise InputTypeError(
                f"{what} is a dict of {sorted(map(str, batch))}; use the names of the arguments of "
                f"Accumulator.update: {', '.join(known)}"
            )
        return dict(batch)
    if isinstance(batch, tuple | list) and len(batch) in FORMS:
        return dict(zip(FORMS[len(batch)], batch, strict=True))
    table = f"; {IN_A_TABLE}" if hasattr(batch, "columns") else ""
    raise InputTypeError(
        f"{what} is of type {type(batch).__name__}; it must be (y_true, y_pred, y_std), (labels, probs), "
        f"predictions, or a dict of the arguments of Accumulator.update{table}"
    )


def array_blocks(
    y_true: Any,
    y_pred: Any,
    y_std: Any,
    *,
    mask: Any = None,
    weights: Any = None,
    groups: Any = None,
    by: Any = None,
    samples: int = BLOCK_SAMPLES,
) -> Iterator[dict[str, Any]]:
    """Split sliceable arrays (numpy memory maps, zarr, HDF5) along their first axis.

    Only the current block is read. Blocks are whole chunks if the target has ``chunks``.

    Parameters
    ----------
    y_true, y_pred, y_std : array-like with ``shape`` and slicing
        Of equal shape.
    mask, weights, groups, by : array-like, optional
        As for `Predictions`; weights and labels may also be one per entry of the first axis, strata of the last.
    samples : int
        Approximate number of samples per block.

    Yields
    ------
    dict
        Arguments for ``Accumulator.update``.

    Raises
    ------
    ShapeError
        Shapes differ.
    """
    arrays = {"y_true": y_true, "y_pred": y_pred, "y_std": y_std, "mask": mask}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    check_shapes(*((name, tuple(array.shape)) for name, array in arrays.items()))
    beside = {"weights": weights, "groups": groups, "by": by}
    given = arrays | {name: array for name, array in beside.items() if array is not None}
    for name in ("groups", "by"):
        if name in given:
            given[name] = label_array(given[name], name, tuple(y_true.shape))
    step, size = rows_per_block(y_true, samples), y_true.shape[0]
    for start in range(0, size, step):
        yield {
            name: array[start : start + step] if array.shape[0] == size else array
            for name, array in given.items()
        }


def rows_per_block(array: Any, samples: int = BLOCK_SAMPLES) -> int:
    """Entries of the first axis that make up about this many samples: whole chunks, and at least one."""
    row = max(1, int(np.prod(array.shape[1:])))
    rows = max(1, samples // row)
    chunks = getattr(array, "chunks", None)
    if not chunks or not isinstance(chunks[0], int):
        return rows
    return max(1, rows // chunks[0]) * int(chunks[0])
