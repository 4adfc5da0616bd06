"""Count predictions where they are, piece by piece, and add up: Spark, Ray, dask, databases, batches.

An engine counts its pieces into accumulators, wherever they are, and merges these. `Counting` is what its workers do;
all else is the engine's. Pieces are pure tasks, so an engine that loses a worker counts them again, with the same
result.
"""

from __future__ import annotations

import inspect
import math
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from uq_tracking.errors import (
    EmptyInputError,
    InputError,
    InputTypeError,
    InvalidValueError,
    MissingPackageError,
    SettingsError,
    ShapeError,
    UQTrackingError,
)
from uq_tracking.evaluation.plan import Plan
from uq_tracking.inputs.constructors import PER_SAMPLE
from uq_tracking.inputs.convert import (
    IN_A_TABLE,
    Pieces,
    check_alignment,
    check_units,
    engine_of,
    xarray_axes,
    xarray_unit,
)
from uq_tracking.inputs.forms.distribution import wants_quantiles
from uq_tracking.inputs.forms.form import Form
from uq_tracking.inputs.labels import label_array, label_shape
from uq_tracking.inputs.predictions import BESIDE_ARGUMENTS, Case, Forecast, Predictions, case_place
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.statistics.collecting import wants_exact
from uq_tracking.streams.accumulator import Accumulator
from uq_tracking.streams.map_samples import WantedMaps
from uq_tracking.tasks import task_of

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
    arrays = {"y_true": y_true, "y_pred": y_pred, "y_std": y_std, "mask": mask, "weights": weights}
    given = {name: array for name, array in arrays.items() if array is not None}
    check_shapes(*((name, tuple(array.shape)) for name, array in given.items() if name != "weights"))
    for name, labels in (("groups", groups), ("by", by)):
        if labels is not None:
            given[name] = label_array(labels, name, tuple(y_true.shape))
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


ROWS = 1 << 20
"""Rows of a piece, where we choose: fewer take longer, more hold more memory."""

SPLIT_EVERY = 8
"""How many accumulators are merged at a time."""


@dataclass(frozen=True)
class Counting:
    """What every worker does.

    Attributes
    ----------
    kind : type of Form
        Of all pieces.
    read : callable
        Makes `Predictions` of a piece, or arguments of ``Accumulator.update``.
    options : dict
        Of the accumulators.
    """

    kind: type[Form]
    read: Callable[[Any], Any]
    options: Mapping[str, Any]

    def count(self, pieces: Iterable[Any], start: Sequence[Any] = ()) -> Accumulator:
        """Count pieces; ``start`` is what ``Accumulator.place`` takes, if that is known.

        Samples before the pieces and of all, the index of their first sample, and the shape of the whole.
        """
        counted = Accumulator(**self.options)
        if start:
            counted.place(*start)
        for piece in pieces:
            try:
                batch = self.read(piece)
                counted.update(**(batch if isinstance(batch, Mapping) else {"y_true": batch}))
            except EmptyInputError as error:
                counted.count_nothing(task_of(self.kind), error.counts)
            except InvalidValueError as error:
                if not start:
                    raise
                raise InvalidValueError(f"in the block starting at {start[2]}: {error}") from error
        return counted

    def merge(self, parts: Iterable[Any]) -> Accumulator:
        """Merge accumulators, or states of some, one at a time to a new one; raise the first error among states.

        The parts stay unchanged, because an engine may need them again.
        """
        merged = Accumulator(**self.options)
        for part in parts:
            found = part if isinstance(part, Accumulator) else pickle.loads(part)
            if isinstance(found, Exception):
                raise found
            merged.merge(found)
        return merged

    def state(self, parts: Iterable[Any], *, are_states: bool) -> bytes:
        """Return pieces that are counted, or states as one; or the error that says what is bad.

        An engine would repeat a task that raises.
        """
        try:
            return pickle.dumps(self.merge(parts) if are_states else self.count(parts))
        except UQTrackingError as error:
            is_of_piece = isinstance(error, InputError) and not are_states
            return pickle.dumps(type(error)(f"in one piece of the table: {error}") if is_of_piece else error)


def accumulator_options(plan: Plan, given: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    """Return options of the accumulators that count for a plan; options that they do not have are left out."""
    values, known = plan.options.settings.to_dict(), inspect.signature(Accumulator).parameters
    return {
        **{name: values[name] for name in plan.task.settings},
        **{name: value for name, value in given.items() if name in known and value is not None},
        "metrics": None if plan.options.metrics is None else list(plan.options.metrics),
        **own,
    }


def count_pieces(plan: Plan, forecast: Forecast, maps: WantedMaps | str = False) -> Accumulator:
    """Count predictions that are read piece by piece, on the engine that holds them.

    Without knowing how many samples there are, "auto" statistics are a sketch.

    Raises
    ------
    SettingsError
        An option belongs to the constructor, or to the batches.
    MissingPackageError
        The engine's workers cannot import this package.
    """
    pieces: Pieces = forecast.y_true
    forecast.check_whole(*inspect.signature(Accumulator).parameters if pieces.read is arguments_of else ())
    exact = "exact" if plan.options.statistics == "exact" else "sketch"
    given = {**pieces.options, **forecast.options}
    options = accumulator_options(plan, given, statistics=exact, maps=maps)
    Accumulator(**options)  # so that a wrong option raises here, not on a worker
    counting = Counting(pieces.kind, pieces.read, options)
    engine = engine_of(pieces.source)
    if engine not in ON_WORKERS:
        return counting.count(HERE[engine](pieces) if engine in HERE else pieces.source)
    try:
        return ON_WORKERS[engine](pieces.source, pieces.columns, counting)
    except UQTrackingError:
        raise
    except Exception as error:
        found = OTHER_PYTHON.search(str(error))
        if found is None:
            raise
        cure = (
            f"set PYSPARK_PYTHON to one that has it, here {sys.executable}, before the session starts"
            if engine == "Spark"
            else "pass the packages it needs as runtime_env"
        )
        raise MissingPackageError(
            f"{engine}'s workers run a Python that lacks {found[1] or 'the version of this one'}; {cure}, or install "
            "uq_tracking where they run"
        ) from error


OTHER_PYTHON = re.compile("No module named '([^']+)'|PYTHON_VERSION_MISMATCH")
"""What an engine's error says if its workers run another Python."""


def _in_spark(table: Any, columns: Sequence[str], counting: Counting) -> Accumulator:
    """Count each partition, merge in two steps, and collect one row."""
    states = table.select(*(f"`{name}`" for name in dict.fromkeys(columns)))
    for parts in (None, SPLIT_EVERY, 1):
        cut = states if parts is None else states.repartition(parts)
        work = partial(_state_of_partition, counting, parts is not None)
        states = cut.mapInArrow(work, "state binary")
    return counting.merge(row["state"] for row in states.collect())


def _state_of_partition(counting: Counting, are_states: bool, batches: Iterator[Any]) -> Iterator[Any]:
    """Count the record batches of a partition, or merge the states in it."""
    parts = (row.as_py() for batch in batches for row in batch["state"]) if are_states else _large(batches)
    state = counting.state(parts, are_states=are_states)
    yield import_module("pyarrow").RecordBatch.from_pydict({"state": [state]})


def _large(batches: Iterator[Any]) -> Iterator[Any]:
    """Join record batches of pyarrow to tables, since small ones take longer."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= ROWS:
            yield import_module("pyarrow").Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield import_module("pyarrow").Table.from_batches(waiting)


def _in_ray(dataset: Any, columns: Sequence[str], counting: Counting) -> Accumulator:
    """Count each block, merge a few at a time, and the rest here."""
    states = dataset.select_columns([*dict.fromkeys(columns)])
    for size in (None, SPLIT_EVERY):
        work = partial(_state_of_block, counting, size is not None)
        states = states.map_batches(work, batch_size=size, batch_format="pyarrow")
    return counting.merge(row["state"] for row in states.iter_rows())


def _state_of_block(counting: Counting, are_states: bool, table: Any) -> Any:
    """Count a block, or merge the states in it."""
    parts = table["state"].to_pylist() if are_states else [table]
    return import_module("pyarrow").table({"state": [counting.state(parts, are_states=are_states)]})


def _in_dask(table: Any, columns: Sequence[str], counting: Counting) -> Accumulator:
    """Count each partition, and merge as a tree."""
    dask: Any = import_module("dask")

    count = dask.delayed(counting.count, pure=True)
    return merged_by_dask([count([part]) for part in table[[*dict.fromkeys(columns)]].to_delayed()], counting)


def merged_by_dask(parts: list[Any], counting: Counting) -> Accumulator:
    """Compute delayed accumulators and merge them, a few at a time, on the active scheduler."""
    dask: Any = import_module("dask")

    merge = dask.delayed(counting.merge, pure=True)
    while len(parts) > 1:
        parts = [merge(parts[i : i + SPLIT_EVERY]) for i in range(0, len(parts), SPLIT_EVERY)]
    merged: Accumulator = dask.compute(parts[0])[0]
    return merged


ON_WORKERS: dict[str | None, Callable[[Any, Any, Counting], Accumulator]] = {
    "Spark": _in_spark,
    "Ray": _in_ray,
    "dask": _in_dask,
}
"""How an engine counts a table and merges."""


def _of_cursor(pieces: Pieces) -> Iterator[Any]:
    """Rows of a database, fetched many at a time, as columns; NULL is missing, and decimals become floats."""
    names = [column[0] for column in pieces.source.description]
    while rows := pieces.source.fetchmany(ROWS):
        columns = [np.asarray(column) for column in zip(*rows, strict=True)]
        floats = [column.astype(float) if column.dtype == object else column for column in columns]
        yield dict(zip(names, floats, strict=True))


HERE: dict[str | None, Callable[[Pieces], Iterator[Any]]] = {
    "polars": lambda pieces: pieces.source.select(pieces.columns).collect_batches(chunk_size=ROWS),
    "pyarrow": lambda pieces: _large(pieces.source.to_batches(columns=pieces.columns)),
    "cursor": _of_cursor,
}
"""Tables that are read piece by piece in this process."""


Make = Callable[..., Predictions]
"""Makes predictions of a block's truth and arrays, with members, draws or levels along the last axis."""
BY_CHUNK = "chunk"
"""``groups="chunk"``: each chunk is its own group."""


def count_dask(plan: Plan, forecast: Forecast, cases: Mapping[int, Case] | None = None) -> Accumulator:
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
    cases : dict of Case, optional
        Spatial cases to keep for maps, by number, with their input images.

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
    shape = lazy["y_true"].shape
    exact = wants_exact(int(np.prod(shape)), plan.options.statistics)
    options = accumulator_options(plan, own, statistics="exact" if exact else "sketch", maps=False)
    if "unit" in options and options["unit"] is None:
        check_units((name, xarray_unit(array)) for name, array in named.items())
        options["unit"] = xarray_unit(named["y_true"])
    Accumulator(**options)  # so that a wrong option raises here, not on a worker
    labels = {"groups": _labels(groups, "groups", shape), "by": _labels(by, "by", shape)}
    checks: dict[str, Any] = {name: options[name] for name in ("std_floor", "on_invalid") if name in options}
    counting = Counting(kind, partial(_read_block, make, checks) if kind.splits else dict, options)
    counted = merged_by_dask(_parts(lazy, labels, counting), counting)
    for number, case in (cases or {}).items():
        place = case_place(number, shape)
        (block,) = dask.compute({name: array[place] for name, array in lazy.items()})
        try:
            data = _read_block(make, own, block)
        except EmptyInputError:
            continue  # a picture without any ground truth
        counted.keep(number, data.case((), case.image).copy())
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


def _labels(value: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Labels as a lazy array whose axes are those of a truth of this shape; None, False and "chunk" as given."""
    da: Any = import_module("dask.array")

    if value is None or value is False:
        return value
    if isinstance(value, str):
        if value == BY_CHUNK and name == "groups":
            return value
        raise SettingsError(f"{name} is {value!r}; pass labels{', or chunk' if name == 'groups' else ''}")
    if isinstance(value, Mapping):
        value = label_array(value, name, shape)
    bare = value.data if hasattr(value, "dims") else value
    labels = bare if isinstance(bare, da.Array) else da.asarray(np.asarray(bare))
    return labels.reshape(label_shape(labels.shape, name, shape))


def _parts(arrays: Mapping[str, Any], labels: Mapping[str, Any], counting: Counting) -> list[Any]:
    """A lazy count per chunk of the truth."""
    dask: Any = import_module("dask")

    truth = arrays["y_true"]
    count = dask.delayed(counting.count, pure=True)
    lazy = {**arrays, **{name: array for name, array in labels.items() if hasattr(array, "rechunk")}}
    beside = {name: value for name, value in labels.items() if name not in lazy and value is not None}
    blocks = {}
    for name, array in lazy.items():
        # Axes along which labels repeat, and the last ones, which only the predictions have, stay whole.
        own = zip_longest(array.shape, truth.shape[: array.ndim], truth.chunks[: array.ndim])
        chunks = tuple(sizes if size == whole else (size,) for size, whole, sizes in own)
        # Not optimized one by one, so that arrays that share tasks (the outputs of one model) keep sharing them.
        blocks[name] = array.rechunk(chunks).to_delayed(optimize_graph=False)
    offsets = [np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist() for sizes in truth.chunks]
    parts, before = [], 0
    for place in np.ndindex(*truth.numblocks):
        piece = {**beside, **{name: block[_place_in(block, place)] for name, block in blocks.items()}}
        if beside.get("groups") == BY_CHUNK:
            piece["groups"] = np.full(truth.chunks[0][place[0]], ".".join(map(str, place)))
        start = tuple(offset[k] for offset, k in zip(offsets, place, strict=True))
        parts.append(count([piece], (before, truth.size, start, truth.shape)))
        before += math.prod(sizes[k] for sizes, k in zip(truth.chunks, place, strict=True))
    return parts


def _place_in(block: Any, place: tuple[int, ...]) -> tuple[int, ...]:
    """The place of an array's block beside that of the truth; 0 along axes that stay whole."""
    return tuple(min(k, size - 1) for k, size in zip((*place, *block.shape), block.shape, strict=False))


def _read_block(make: Make, options: Mapping[str, Any], block: Mapping[str, Any]) -> Predictions:
    """Make predictions in another form."""
    given = {name: array for name, array in block.items() if name in BESIDE_ARGUMENTS}
    arrays = {name: array for name, array in block.items() if name not in given}
    return make(arrays.pop("y_true"), arrays, **given, **options)


def is_stream(value: Any) -> bool:
    """Return True for batches, not an array: an iterator, something else to iterate over once, or a list of them."""
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value[0], Accumulator | Predictions | Mapping)
    if hasattr(value, "__array__") or hasattr(value, "__getitem__") or isinstance(value, set | frozenset):
        return False
    return isinstance(value, Iterable) and engine_of(value) in (None, "iterator")


def stream_of(batches: Iterable[Any]) -> Pieces | Accumulator:
    """Return batches as pieces of what the first one forecasts; and accumulators, such as a pool's, as one."""
    rest = iter(batches)
    first = next(rest, None)
    if first is None:
        raise EmptyInputError("there is no batch", {})
    if isinstance(first, Accumulator):
        merged = copy(first)
        for part in rest:
            merged.merge(part)
        return merged
    given = arguments_of(first)
    kind = Forecast.of(given.pop("y_true"), {}, given).kind
    return Pieces(chain([first], rest), None, kind, arguments_of, {}, "the batches")
