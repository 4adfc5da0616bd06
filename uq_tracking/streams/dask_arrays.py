"""Scoring dask arrays that need not fit into memory: a count per chunk, reduced as a tree.

The work runs on whatever scheduler is active: threads by default, processes, or ``dask.distributed``. Chunks are
pure tasks, so a scheduler that loses a worker computes its chunks again and the result is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from uq_tracking.errors import InvalidValueError, SettingsError, ShapeError
from uq_tracking.inputs.alignment import check_alignment, xarray_axes
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.settings import EXACT_LIMIT, Method
from uq_tracking.streams.accumulator import Accumulator
from uq_tracking.streams.kept import KeptCase, case_number

SPLIT_EVERY = 8
"""How many counts are merged at a time."""

BY_CHUNK = "chunk"
"""``groups="chunk"``: each chunk is a group of its own."""

CONTENT = ("y_true", "y_pred", "y_std", "mask")


def count_dask(
    y_true: Any,
    y_pred: Any,
    y_std: Any,
    *,
    mask: Any = None,
    groups: Any = None,
    by: Any = None,
    method: Method = "auto",
    cases: Sequence[int] = (),
    images: Any = None,
    split_every: int = SPLIT_EVERY,
    **settings: Any,
) -> Accumulator:
    """Count dask arrays into an accumulator.

    Parameters
    ----------
    y_true : dask array, or xarray DataArray on one
        Its chunks are the blocks of work; the other arrays are cut to them.
    y_pred, y_std, mask : arrays of that shape, lazy or not
        As for `evaluate`.
    groups, by : labels, optional
        As for `evaluate`, lazy or not; ``groups="chunk"`` makes each chunk a group.
    method : {"auto", "exact", "sketch"}
        "auto" is exact up to ten million samples; then all of them come together where the tree ends.
    cases, images
        Numbers of the spatial cases to keep for maps, and the input images of all cases.
    split_every : int
        How many counts are merged at a time.
    **settings
        Further options of `Accumulator`.

    Raises
    ------
    ShapeError
        Shapes differ, or are unknown.
    InvalidValueError
        Bad values; the message says in which block.
    """
    dask: Any = import_module("dask")

    arrays = _arrays({"y_true": y_true, "y_pred": y_pred, "y_std": y_std, "mask": mask})
    shape, chunks = arrays["y_true"].shape, arrays["y_true"].chunks
    exact = method == "exact" or (method == "auto" and int(np.prod(shape)) <= EXACT_LIMIT)
    if method not in ("auto", "exact", "sketch"):
        raise SettingsError(f"method is {method!r}; choose auto, exact or sketch")
    options = {**settings, "method": "exact" if exact else "sketch"}
    Accumulator(**options)  # a wrong option raises here, not on a worker
    labels = {"groups": _labels(groups, "groups", shape, chunks), "by": _labels(by, "by", shape, chunks)}
    parts = _parts(arrays, labels, options)
    while len(parts) > 1:
        merged = dask.delayed(_merged, pure=True)
        parts = [merged(parts[i : i + split_every], options) for i in range(0, len(parts), split_every)]
    (counted,) = dask.compute(parts[0])
    _keep(counted, arrays, cases, images)
    made: Accumulator = counted
    return made


def _arrays(values: Mapping[str, Any]) -> dict[str, Any]:
    """All as dask arrays in the chunks of ``y_true``."""
    da: Any = import_module("dask.array")

    given = {name: value for name, value in values.items() if value is not None}
    missing = [name for name in CONTENT[:3] if name not in given]
    if missing:
        raise SettingsError(f"{' and '.join(missing)} missing; pass y_true, y_pred and y_std")
    labelled = [(name, xarray_axes(value)) for name, value in given.items() if hasattr(value, "dims")]
    check_alignment(labelled)
    bare = {name: value.data if hasattr(value, "dims") else value for name, value in given.items()}
    lazy = {name: value if isinstance(value, da.Array) else da.asarray(value) for name, value in bare.items()}
    for name, array in lazy.items():
        if np.isnan(np.asarray(array.shape, dtype=float)).any():
            raise ShapeError(f"{name} has chunks of unknown size; call {name}.compute_chunk_sizes() first")
    check_shapes(*((name, array.shape) for name, array in lazy.items()))
    chunks = lazy["y_true"].chunks
    return {name: array.rechunk(chunks) for name, array in lazy.items()}


def _labels(value: Any, name: str, shape: tuple[int, ...], chunks: Any) -> Any:
    """Labels as a dask array cut like the target; None, or the word for one label per chunk."""
    da: Any = import_module("dask.array")

    if value is None:
        return None
    if isinstance(value, str):
        if value == BY_CHUNK and name == "groups":
            return BY_CHUNK
        raise SettingsError(f"{name} is {value!r}; pass labels{', or chunk' if name == 'groups' else ''}")
    bare = value.data if hasattr(value, "dims") else value
    labels = bare if isinstance(bare, da.Array) else da.asarray(np.asarray(bare))
    if labels.shape not in (shape, shape[:1]):
        raise ShapeError(
            f"{name} has shape {labels.shape}; pass one label per sample {shape}, "
            f"or one per entry of the first axis {shape[:1]}"
        )
    return labels.rechunk(chunks[: labels.ndim])


def _parts(arrays: Mapping[str, Any], labels: Mapping[str, Any], options: Mapping[str, Any]) -> list[Any]:
    """A lazy count per chunk."""
    dask: Any = import_module("dask")

    count = dask.delayed(_count_block, pure=True)
    # Not optimised one by one: arrays that share tasks (the outputs of one model) keep sharing them.
    blocks = {name: array.to_delayed(optimize_graph=False) for name, array in arrays.items()}
    strata = {
        name: label if label is None or isinstance(label, str) else label.to_delayed(optimize_graph=False)
        for name, label in labels.items()
    }
    offsets = [np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist() for sizes in arrays["y_true"].chunks]
    parts = []
    for place in np.ndindex(*arrays["y_true"].numblocks):
        own = {name: block[place] for name, block in blocks.items()}
        own |= {name: _label_of(label, place) for name, label in strata.items() if label is not None}
        start = tuple(offset[k] for offset, k in zip(offsets, place, strict=True))
        parts.append(count(own, start, dict(options)))
    return parts


def _label_of(label: Any, place: tuple[int, ...]) -> Any:
    return ".".join(map(str, place)) if isinstance(label, str) else label[place[: label.ndim]]


def _count_block(
    arrays: Mapping[str, Any], start: tuple[int, ...], options: Mapping[str, Any]
) -> Accumulator:
    """Count one chunk, on a worker."""
    counted = Accumulator(**{**options, "maps": False})
    arguments = dict(arrays)
    if isinstance(arguments.get("groups"), str):
        arguments["groups"] = np.full(len(arguments["y_true"]), arguments["groups"])
    try:
        counted.update(**arguments)
    except InvalidValueError as error:
        raise InvalidValueError(f"in the block that starts at {start}: {error}") from error
    return counted


def _merged(parts: Sequence[Accumulator], options: Mapping[str, Any]) -> Accumulator:
    """A new accumulator of several; the parts stay as they are, for a scheduler may need them again."""
    merged = Accumulator(**{**options, "maps": False})
    for part in parts:
        merged.merge(part)
    return merged


def _keep(counted: Accumulator, arrays: Mapping[str, Any], cases: Sequence[int], images: Any) -> None:
    """Read the cases wanted for maps."""
    da: Any = import_module("dask.array")
    dask: Any = import_module("dask")

    shape = arrays["y_true"].shape
    places = [np.unravel_index(case, shape[:-2]) if len(shape) > 2 else () for case in cases]
    truth = arrays["y_true"]
    if "mask" in arrays:
        truth = da.where(arrays["mask"], np.nan, truth)
    wanted = [[array[place] for array in (truth, arrays["y_pred"], arrays["y_std"])] for place in places]
    for case, place, found in zip(cases, places, dask.compute(*wanted), strict=True):
        image = None if images is None else np.asarray(images[case_number(place, shape)])
        target, mean, std = found
        counted.keep(case, KeptCase(target, mean, std, image))
