"""Convert arrays of any library to numpy arrays without importing that library.

A library is used only if it is already loaded: its objects cannot exist otherwise. Nothing is copied that can be
viewed, and nothing is changed in place. Labelled axes and units must agree: different places, or meters and
kilometers, are never compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import AlignmentError, InputError, InputTypeError, InvalidValueError


class Axis(NamedTuple):
    """Name and labels of one axis; ``labels`` is a pandas Index or None."""

    package: str
    name: str
    labels: Any | None


Axes = tuple[Axis | None, ...]

IN_TARGET_UNIT = frozenset(
    ("y_true", "y_pred", "y_std", "means", "stds", "draws", "quantiles", "low", "high", "gamma", "crps")
)
"""Arguments in the target's unit; others, such as variances, have their own."""


def xarray_axes(array: Any) -> Axes:
    """Axes of a DataArray."""
    indexes = array.indexes
    return tuple(Axis("xarray", str(dim), indexes.get(dim)) for dim in array.dims)


def xarray_unit(array: Any) -> str | None:
    """The unit that a DataArray states; None for other arrays."""
    unit = getattr(array, "attrs", {}).get("units")
    return unit if isinstance(unit, str) else None


def check_alignment(arrays: Sequence[tuple[str, Axes]]) -> None:
    """Compare the labelled axes of every array with those of the first labelled array."""
    labelled = [(name, axes) for name, axes in arrays if axes]
    for name, axes in labelled[1:]:
        first, expected = labelled[0]
        for place, (theirs, ours) in enumerate(zip(expected, axes, strict=False)):
            if theirs is not None and ours is not None and theirs.package == ours.package:
                _check_axis(first, theirs, name, ours, place)


def check_units(arrays: Iterable[tuple[str, str | None]]) -> None:
    """Compare the units that arrays in the target's unit state; an array without one may have any."""
    stated = [(name, unit.strip()) for name, unit in arrays if unit and name in IN_TARGET_UNIT]
    for name, unit in stated[1:]:
        first, expected = stated[0]
        if unit != expected:
            raise AlignmentError(
                f"{first} is in {expected!r} and {name} in {unit!r}, says attrs['units']; convert them to one "
                "unit, or pass unit= if their numbers already are in one"
            )


def _check_axis(first: str, theirs: Axis, name: str, ours: Axis, place: int) -> None:
    if theirs.name != ours.name:
        raise AlignmentError(
            f"axis {place} is {theirs.name!r} in {first} and {ours.name!r} in {name}; "
            f"put them in the same order ({name}.transpose(*{first}.dims)), or pass .to_numpy() of both"
        )
    if theirs.labels is None or ours.labels is None or theirs.labels.equals(ours.labels):
        return
    if ours.name == "columns" and set(theirs.labels) != set(ours.labels):
        return  # "depth" and "depth_mean" are common; the same names in another order are a mistake
    methods = {
        "pandas": f"{name}.reindex({ours.name}={first}.{ours.name})",
        "xarray": f"xarray.align({first}, {name}, join='inner')",
    }
    raise AlignmentError(
        f"{first} and {name} have different labels along {ours.name!r}; align them ({methods[ours.package]}), or "
        "pass .to_numpy() if they are already in the same order"
    )


FloatArray = npt.NDArray[np.floating[Any]]
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

_CURES = {
    "c": "pass the real part or the absolute value",
    "O": "convert it with .astype(float), with float('nan') for missing values",
    **dict.fromkeys("UTS", "convert the text with .astype(float)"),
    "M": "dates have no standard deviation; convert them to numbers, such as hours or days",
    "m": "divide by a unit first, for example numpy.timedelta64(1, 's')",
    "V": "pick one field of the records, for example array['mean']",
}
_SMALL_FLOATS = ("bfloat16", "float8", "float6", "float4")
EXACT = 2**53
"""Up to this size float64 holds every whole number."""


class Source(NamedTuple):
    """A user's array as numpy sees it."""

    name: str
    values: AnyArray
    left_out: BoolArray | None = None
    """Where a masked array hides its value."""
    axes: Axes = ()
    """Names and labels of the axes, if the library has them."""
    unit: str | None = None

    def output(self, k: int) -> Source:
        """Return entry k along the last axis."""
        left_out = None if self.left_out is None else self.left_out[..., k]
        return self._replace(values=self.values[..., k], left_out=left_out, axes=self.axes[:-1])


def read(value: Any, name: str) -> Source:
    """Read any array as a numpy array, whatever its dtype."""
    if isinstance(value, Source):
        return value
    _refuse(value, name)
    try:
        return _read_known(value, name)
    except InputError:
        raise
    except Exception as error:
        # Libraries raise TypeError, ValueError or RuntimeError; what loads data, anything.
        told = isinstance(error, TypeError | ValueError | RuntimeError)
        reason = str(error) if told else f"{type(error).__name__} {error}".rstrip()
        raise InputTypeError(
            f"{name} ({_type_name(value)}) cannot be read as a numpy array: {reason}; pass a numpy array"
        ) from error


def read_floats(value: Any, name: str) -> Source:
    """Read any array of real numbers as floating point, keeping float32 and float64 as they are.

    float16 and bfloat16 become float32; integers and bool become float64, and so do longer floats. Values that
    float64 cannot hold exactly are refused, because the difference of two of them would be wrong.
    """
    source = read(value, name)
    values = source.values
    if values.dtype.kind == "f":
        target = np.dtype(np.float32 if values.dtype.itemsize <= 4 else np.float64)
    elif values.dtype.kind in "iub":
        target = np.dtype(np.float64)
    elif values.dtype.name.startswith(_SMALL_FLOATS):
        target = np.dtype(np.float32)
    else:
        cure = _CURES.get(values.dtype.kind, "convert it with .astype(float)")
        raise InputTypeError(f"{name} has dtype {values.dtype}, not real numbers; {cure}")
    if values.dtype == target:
        return source
    with np.errstate(over="ignore"):  # refused by name
        floats = values.astype(target)
    check_exact(values, floats, name, source.left_out)
    return source._replace(values=floats)


def check_exact(values: AnyArray, floats: FloatArray, name: str, left_out: BoolArray | None = None) -> None:
    """Raise InvalidValueError where whole numbers or long floats that count differ from their float64."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind not in "iuf" or size < 8 or (kind == "f" and size == 8):
        return
    if kind == "f":
        lost = (floats != values) & ~np.isnan(values)
    elif not values.size or max(-int(values.min()), int(values.max())) <= EXACT:
        return
    else:
        with np.errstate(invalid="ignore"):  # 2^63 and 2^64 do not convert back
            lost = (floats.astype(values.dtype) != values) | (floats >= float(np.iinfo(values.dtype).max))
    if left_out is not None:
        lost &= ~left_out
    if lost.any():
        _refuse_inexact(name, *located(lost))


def located(hits: BoolArray) -> tuple[int, tuple[int, ...]]:
    """Return how many entries are True, and the index of the first."""
    first = np.unravel_index(int(np.argmax(hits)), hits.shape)
    return int(np.count_nonzero(hits)), tuple(int(k) for k in first)


def check_whole(floats: AnyArray, source: Any, name: str) -> None:
    """Raise InvalidValueError if an array of floats was made of whole numbers that it cannot hold.

    Libraries make floats of whole numbers if others are missing, negative or not whole. ``source`` is a sequence, or
    an object of pandas, polars or pyarrow.
    """
    if floats.dtype != np.float64 or not np.any(np.abs(floats) >= EXACT):
        return
    methods = (getattr(source, name, None) for name in ("tolist", "to_list", "to_pylist", "rows"))
    items = next((method() for method in methods if method is not None), source)
    whole = [
        k
        for k, item in enumerate(np.asarray(items, dtype=object).reshape(-1))
        if isinstance(item, int | np.integer) and int(float(item)) != int(item)
    ]
    if whole:
        _refuse_inexact(name, len(whole), np.unravel_index(whole[0], floats.shape))


def _refuse_inexact(name: str, count: int, first: Sequence[Any]) -> None:
    raise InvalidValueError(
        f"{name} has {count} value{'s' * (count > 1)} that 64-bit floating point cannot hold exactly (first at index "
        f"{tuple(map(int, first))}), so differences would be wrong; subtract a common offset first, or convert with "
        ".astype(float) if only the leading 15 digits count"
    )


def read_mask(value: Any, name: str) -> Source:
    """Read a boolean array; True excludes a sample, as in ``numpy.ma``."""
    source = read(value, name)
    if source.values.dtype.kind != "b":
        raise InputTypeError(
            f"{name} has dtype {source.values.dtype}, not bool; pass, for example, {name} != 0, "
            "where True excludes a sample"
        )
    return source


def _read_known(value: Any, name: str) -> Source:
    if isinstance(value, np.ma.MaskedArray):
        mask: Any = np.ma.getmask(value)
        return Source(name, np.ma.getdata(value), None if mask is np.ma.nomask or not mask.any() else mask)
    if isinstance(value, np.ndarray):
        return Source(name, np.asarray(value))
    if is_a(value, "torch", "Tensor"):
        return Source(name, _read_tensor(value))
    if is_a(value, "xarray", "DataArray"):
        return Source(name, value.to_numpy(), None, xarray_axes(value), xarray_unit(value))
    if is_a(value, "pandas", "DataFrame"):
        axes = (Axis("pandas", "index", value.index), Axis("pandas", "columns", value.columns))
        return Source(name, _read_frame(value, name), None, axes)
    if is_a(value, "pandas", "Series"):
        return Source(name, _read_column(value, name), None, (Axis("pandas", "index", value.index),))
    if is_a(value, "pandas", "Index") or is_a(value, "pandas.api.extensions", "ExtensionArray"):
        return Source(name, _read_column(value, name))
    if isinstance(value, list | tuple):
        return _read_sequence(value, name)
    if is_a(value, "datasets", "Column"):
        return _read_known(value[:], name)  # at once, not item by item
    if is_a(value, "pyarrow", "Array", "ChunkedArray") and str(value.type) == "null":
        return Source(name, np.full(len(value), np.nan))  # every value is missing
    if hasattr(value, "__cuda_array_interface__") and hasattr(value, "get"):
        # CuPy rejects __array__ and copies to the host with get().
        return Source(name, np.asarray(value.get()))
    if _is_read_item_by_item(value):
        example = f", for example {name}.values() of a Darts series" if hasattr(value, "values") else ""
        raise InputTypeError(
            f"{name} is a {_type_name(value)}, not an array; pass its numbers as a numpy array{example}"
        )
    array = np.asarray(value)
    check_whole(array, value, name)
    return Source(name, array)


def _is_read_item_by_item(value: Any) -> bool:
    """Whether numpy would index the object thousands of times to inspect it; a Darts series logs each access."""
    if isinstance(value, Sequence) or not hasattr(value, "__getitem__"):
        return False
    if any(hasattr(value, name) for name in ("__array__", "__array_interface__", "__array_struct__")):
        return False
    try:
        memoryview(value)
    except TypeError:
        return True
    return False


def is_a(value: Any, module: str, *names: str) -> bool:
    """Whether ``value`` is an instance of one of the classes, without importing their module."""
    loaded = sys.modules.get(module)
    classes = tuple(getattr(loaded, name) for name in names if hasattr(loaded, name))
    return isinstance(value, classes)


def _type_name(value: Any) -> str:
    kind = type(value)
    return (
        kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.split('.')[0]}.{kind.__name__}"
    )


def _refuse(value: Any, name: str) -> None:
    """Reject what numpy would read as a single odd object, or would silently load whole."""
    if value is None:
        raise InputTypeError(f"{name} is None; pass an array of real numbers")
    for package in ("xarray", "datasets"):
        if is_a(value, package, "Dataset"):
            raise InputTypeError(
                f"{name} is a whole {package}.Dataset; pick one variable, for example dataset['mean']"
            )
    if is_dask(value):
        raise InputTypeError(
            f"{name} is a lazy dask array; load it with .compute(), "
            "or feed it block by block to uq_tracking.Accumulator"
        )
    if engine_of(value) in ENGINES or is_a(value, "pyspark.sql", "Column") or is_a(value, "polars", "Expr"):
        raise InputTypeError(f"{name} is a {_type_name(value)}, not an array; {IN_A_TABLE}")
    if isinstance(value, Mapping | Set | Iterator):
        raise InputTypeError(f"{name} is a {_type_name(value)}, not an array; pass numpy.array(list(...))")


def _read_tensor(value: Any) -> AnyArray:
    tensor = value.detach()
    if tensor.is_floating_point() and tensor.element_size() < 4:
        tensor = tensor.float()  # numpy has no bfloat16
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    array: AnyArray = tensor.cpu().numpy()
    return array


def _read_column(value: Any, name: str) -> AnyArray:
    if getattr(value.dtype, "tz", None) is not None:
        return np.asarray(value, dtype="datetime64[ns]")  # in UTC
    inner = getattr(value.dtype, "numpy_dtype", None)  # of a nullable column
    if isinstance(value.dtype, np.dtype) or not isinstance(inner, np.dtype) or inner.kind not in "fiu":
        array: AnyArray = np.asarray(value)
        return array.astype(bool) if str(value.dtype) == "boolean" and not value.isna().any() else array
    lacks_some = inner.kind in "iu" and value.isna().any()
    array = value.to_numpy(dtype=np.float64 if lacks_some else inner, na_value=np.nan)
    check_whole(array, value, name)
    return array


def _read_frame(value: Any, name: str) -> AnyArray:
    columns = [_read_column(value.iloc[:, k], f"{name}[{value.columns[k]!r}]") for k in range(value.shape[1])]
    for label, column in zip(value.columns, columns, strict=True):
        if column.dtype.kind not in "fiub":
            raise InputTypeError(
                f"column {label!r} of {name} has dtype {column.dtype}, not real numbers; drop it"
            )
    plain = all(isinstance(dtype, np.dtype) for dtype in value.dtypes)
    return _checked_parts(columns, value.to_numpy() if plain else np.stack(columns, axis=1), name)


def _checked_parts(parts: Sequence[AnyArray], joined: AnyArray, name: str) -> AnyArray:
    """Check that arrays of whole numbers were not joined with others to floats that cannot hold them."""
    for part in parts if joined.dtype.kind == "f" else ():
        check_exact(part, part.astype(np.float64), name)
    return joined


def _read_sequence(value: Sequence[Any], name: str) -> Source:
    if not _holds_arrays(value):
        if any(isinstance(item, np.ndarray) for item in value):
            _check_even([np.shape(item) for item in value], name)
        array = np.asarray(value)
        check_whole(array, value, name)
        return Source(name, array)
    parts = [read(item, f"{name}[{k}]") for k, item in enumerate(value)]
    check_alignment([(part.name, part.axes) for part in parts])
    _check_even([part.values.shape for part in parts], name)
    arrays = [part.values for part in parts]
    masks = [np.zeros(part.values.shape, bool) if part.left_out is None else part.left_out for part in parts]
    left_out = np.stack(masks) if any(part.left_out is not None for part in parts) else None
    axes = (None, *parts[0].axes) if parts[0].axes else ()
    joined = _checked_parts(arrays, np.stack(arrays), name)
    return Source(name, joined, left_out, axes, parts[0].unit)


def _check_even(shapes: Sequence[tuple[int, ...]], name: str) -> None:
    if len(set(shapes)) > 1:
        raise InputTypeError(
            f"the items of {name} differ in shape: {sorted(set(shapes))}; join batches with concatenate"
        )


def _holds_arrays(value: Sequence[Any]) -> bool:
    """Whether a list holds arrays whose mask, gradient, nulls or labels numpy would lose."""
    for kind in set(map(type, value)):
        if kind in (list, tuple):
            return any(_holds_arrays(item) for item in value if isinstance(item, list | tuple))
        if kind.__module__ not in ("builtins", "numpy") and hasattr(kind, "__array__"):
            return True
    return False


@dataclass(frozen=True, eq=False)
class Pieces:
    """Predictions that are read piece by piece: from a table that an engine holds, or batch after batch.

    Attributes
    ----------
    source : table or iterator
    columns : list of str, optional
        Columns of the table that are read; None for all.
    kind : type of Form
    read : callable
        Makes `Predictions` of one piece, or arguments of ``Accumulator.update``; called where the piece is.
    options : dict
        ``on_invalid``, ``std_floor`` and ``unit`` of the predictions, if given.
    made_by : str
        Where the options of the input belong, in error messages.
    """

    source: Any
    columns: list[str] | None
    kind: Any
    read: Callable[[Any], Any]
    options: Mapping[str, Any]
    made_by: str = "Predictions.from_frame"


ENGINES = {
    "Spark": ("pyspark.sql", "DataFrame"),
    "Ray": ("ray.data", "Dataset"),
    "dask": ("dask.dataframe", "DataFrame"),
    "polars": ("polars", "LazyFrame"),
    "pyarrow": ("pyarrow.dataset", "Dataset"),
}
"""Engines that hold tables in pieces, and the types of these tables."""
IN_A_TABLE = (
    "for columns of a table, pass Predictions.from_frame(table, y_true='y', y_pred='mu', y_std='sigma')"
)


def engine_of(table: Any) -> str | None:
    """Return what reads a table piece by piece; None for a table in memory, and for all else."""
    for name, (module, kind) in ENGINES.items():
        if is_a(table, module, kind):
            return name
    if hasattr(table, "fetchmany") and hasattr(table, "description"):
        return "cursor"  # of any database, after PEP 249
    return "iterator" if isinstance(table, Iterator) else None


def is_dask(value: Any) -> bool:
    """Whether a value is a dask array, or a DataArray holding one."""
    root = type(value).__module__.split(".")[0]
    return root == "dask" or (root == "xarray" and getattr(value, "chunks", None) is not None)
