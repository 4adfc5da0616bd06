"""Score dask arrays that need not fit in memory: a count per chunk, reduced as a tree.

The work runs on the active scheduler: threads by default, processes, or ``dask.distributed``. Chunks are pure tasks,
so a scheduler that loses a worker recomputes its chunks with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from uq_tracking.errors import EmptyInputError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.evaluation.plan import Plan
from uq_tracking.inputs.constructors import PER_SAMPLE
from uq_tracking.inputs.convert import check_alignment, check_units, xarray_axes, xarray_unit
from uq_tracking.inputs.forms.distribution import wants_quantiles
from uq_tracking.inputs.labels import label_array, label_shape
from uq_tracking.inputs.predictions import BESIDE_ARGUMENTS, Forecast, Predictions, case_place
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.statistics.collecting import wants_exact
from uq_tracking.streams.accumulator import Accumulator
from uq_tracking.streams.engines import Counting, accumulator_options, merged_by_dask
from uq_tracking.streams.map_samples import case_image

Make = Callable[..., Predictions]
"""Makes predictions of a block's truth and arrays, with members, draws or levels along the last axis."""
LabelsAt = Callable[[tuple[int, ...]], Any]
"""Gives the labels of a chunk, lazy or one for all its samples, by its place among the chunks."""


BY_CHUNK = "chunk"
"""``groups="chunk"``: each chunk is its own group."""


def count_dask(
    plan: Plan, forecast: Forecast, *, cases: Sequence[int] = (), images: Any = None
) -> Accumulator:
    """Count dask arrays into an accumulator.

    Parameters
    ----------
    plan : Plan
        How to score; "auto" statistics are exact up to ten million samples, which are gathered at the root of the
        tree.
    forecast : Forecast
        Truth and predictions, dask arrays or xarray DataArrays on some. The truth's chunks are the units of work; the
        other arrays are rechunked to match. Among its options, ``mask``, ``weights``, ``groups`` and ``by`` are lazy
        or not; ``groups="chunk"`` makes each chunk a group.
    cases, images
        Numbers of the spatial cases to keep for maps, and the input images of all cases.

    Raises
    ------
    ShapeError
        Shapes differ or are unknown.
    InvalidValueError
        There are bad values; the message says in which block.
    """
    dask: Any = import_module("dask")

    forecast.check_whole()
    kind, named, own = forecast.kind, {"y_true": forecast.y_true, **forecast.arrays}, dict(forecast.options)
    mask, weights, groups, by = (own.pop(name, None) for name in PER_SAMPLE)
    lazy = _arrays({**named, "mask": mask, "weights": weights}, forecast.axes)
    make: Make = partial(Predictions.of, kind)
    if kind.splits:
        of_form = {name: own.pop(name) for name in own.keys() - {*BESIDE_ARGUMENTS, *kind.options}}
        if "quantile_scores" in of_form:
            wanted = wants_quantiles(lazy["y_true"].size, of_form["quantile_scores"])
            of_form["quantile_scores"] = wanted
        make = partial(make, axis=-1, **of_form)
    else:
        lazy, own = plan.task.lazy(lazy, own)
    shape, chunks = lazy["y_true"].shape, lazy["y_true"].chunks
    exact = wants_exact(int(np.prod(shape)), plan.options.statistics)
    options = accumulator_options(plan, own, statistics="exact" if exact else "sketch", maps=False)
    if "unit" in options and options["unit"] is None:
        check_units((name, xarray_unit(array)) for name, array in named.items())
        options["unit"] = xarray_unit(named["y_true"])
    Accumulator(**options)  # so that a wrong option raises here, not on a worker
    labels = {"groups": _labels(groups, "groups", shape, chunks), "by": _labels(by, "by", shape, chunks)}
    checks: dict[str, Any] = {name: options[name] for name in ("std_floor", "on_invalid") if name in options}
    counting = Counting(kind, partial(_read_block, make, checks) if kind.splits else dict, options)
    counted = merged_by_dask(_parts(lazy, labels, counting), counting)
    for number in cases:
        place = case_place(number, shape)
        (found,) = dask.compute({name: array[place] for name, array in lazy.items()})
        more = {name: found.pop(name) for name in ("mask", "weights") if name in found}
        try:
            data = make(found.pop("y_true"), found, **own, **more)
        except EmptyInputError:
            continue  # a picture without any ground truth
        image = case_image(images, place, shape)
        counted.keep(number, data.case((), image).copy())
    return counted


def _arrays(named: Mapping[str, Any], axes: Mapping[str, int]) -> dict[str, Any]:
    """All as dask arrays of known shape; ``axes`` of members, draws or levels are moved to the end."""
    da: Any = import_module("dask.array")

    given = {name: array for name, array in named.items() if array is not None}
    labelled = {name: value for name, value in given.items() if hasattr(value, "dims")}
    beside = [name for name in labelled if labelled[name].ndim <= named["y_true"].ndim]
    check_alignment([(name, xarray_axes(labelled[name])) for name in beside])
    shape, lazy = tuple(named["y_true"].shape), {}
    for name, value in given.items():
        is_listed = isinstance(value, list | tuple) and name in axes
        bare = da.stack(value) if is_listed else value.data if name in labelled else value
        array = lazy[name] = bare if isinstance(bare, da.Array) else da.asarray(bare)
        if np.isnan(np.asarray(array.shape, dtype=float)).any():
            raise ShapeError(f"{name} has chunks of unknown size; call {name}.compute_chunk_sizes() first")
        if name in axes:
            lazy[name] = da.moveaxis(array, axes[name], -1)
        if axes and name not in ("mask", "weights") and lazy[name].shape[: len(shape)] != shape:
            raise ShapeError(
                f"{name} has shape {tuple(array.shape)} and y_true {shape}: each member must have the shape of "
                "y_true; say which axis holds the members, for example axis=-1"
            )
    if "mask" in lazy:
        check_shapes(("y_true", shape), ("mask", lazy["mask"].shape))
    if "weights" in lazy:
        own = lazy["weights"]
        try:  # weights of the truth's first axes, or with axes of length 1, repeat
            lazy["weights"] = da.broadcast_to(own.reshape(*own.shape, *(1,) * (len(shape) - own.ndim)), shape)
        except ValueError as error:
            raise ShapeError(f"weights have shape {own.shape} and the truth {shape}: {error}") from error
    return lazy


def _labels(value: Any, name: str, shape: tuple[int, ...], chunks: Any) -> LabelsAt | None:
    """The labels of each of the target's chunks; None if there are none."""
    da: Any = import_module("dask.array")

    if value is None:
        return None
    if value is False:
        return lambda place: False
    if isinstance(value, str):
        if value == BY_CHUNK and name == "groups":
            return lambda place: ".".join(map(str, place))
        raise SettingsError(f"{name} is {value!r}; pass labels{', or chunk' if name == 'groups' else ''}")
    if isinstance(value, Mapping):
        value = label_array(value, name, shape)
    bare = value.data if hasattr(value, "dims") else value
    labels = bare if isinstance(bare, da.Array) else da.asarray(np.asarray(bare))
    labels = labels.reshape(label_shape(labels.shape, name, shape))
    cut = zip(labels.shape, shape[: labels.ndim], chunks, strict=False)
    sizes = tuple(sizes if own == whole else (1,) for own, whole, sizes in cut)
    blocks = labels.rechunk(sizes).to_delayed(optimize_graph=False)
    return lambda place: blocks[tuple(min(k, size - 1) for k, size in zip(place, blocks.shape, strict=False))]


def _parts(arrays: Mapping[str, Any], labels: Mapping[str, LabelsAt | None], counting: Counting) -> list[Any]:
    """A lazy count per chunk of the truth."""
    dask: Any = import_module("dask")

    truth = arrays["y_true"]
    count = dask.delayed(_count_block, pure=True)
    blocks = {}
    for name, array in arrays.items():
        # The last axes, which only the predictions have, stay whole.
        chunks = (*truth.chunks, *((size,) for size in array.shape[truth.ndim :]))
        # Not optimized one by one, so that arrays that share tasks (the outputs of one model) keep sharing them.
        blocks[name] = array.rechunk(chunks).to_delayed(optimize_graph=False)
    offsets = [np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist() for sizes in truth.chunks]
    parts, before = [], 0
    for place in np.ndindex(*truth.numblocks):
        own = {name: block[(*place, *(0,) * (block.ndim - len(place)))] for name, block in blocks.items()}
        own |= {name: label(place) for name, label in labels.items() if label is not None}
        start = tuple(offset[k] for offset, k in zip(offsets, place, strict=True))
        parts.append(count(counting, own, (before, truth.size, start, truth.shape)))
        before += math.prod(sizes[k] for sizes, k in zip(truth.chunks, place, strict=True))
    return parts


def _count_block(counting: Counting, arrays: Mapping[str, Any], place: Sequence[Any]) -> Accumulator:
    """Count one chunk on a worker; ``place`` is samples before it and of all, its first index and the whole shape."""
    piece = dict(arrays)
    if isinstance(piece.get("groups"), str):
        piece["groups"] = np.full(len(piece["y_true"]), piece["groups"])
    try:
        return counting.count([piece], place)
    except InvalidValueError as error:
        raise InvalidValueError(f"in the block starting at {place[2]}: {error}") from error


def _read_block(make: Make, options: Mapping[str, Any], block: Mapping[str, Any]) -> Predictions:
    """Make predictions in another form."""
    given = {name: array for name, array in block.items() if name in BESIDE_ARGUMENTS}
    arrays = {name: array for name, array in block.items() if name not in given}
    return make(arrays.pop("y_true"), arrays, **given, **options)
