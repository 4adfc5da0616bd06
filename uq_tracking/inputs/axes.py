"""The axis of members, draws or quantile levels, which the truth lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uq_tracking.checks import whole_number
from uq_tracking.errors import EmptyInputError, SettingsError, ShapeError
from uq_tracking.inputs.convert import Source, read_floats
from uq_tracking.inputs.validation import check_shapes


def read_equal(*read: Source, **arrays: Any) -> tuple[Source, ...]:
    """Read arrays of real numbers by argument name, and reject shapes unequal to each other and to those ``read``."""
    sources = (*read, *(read_floats(value, name) for name, value in arrays.items()))
    check_shapes(*((source.name, source.values.shape) for source in sources))
    return sources


def members_first(value: Any, name: str, truth: Source, axis: int | None, what: str) -> Source:
    """Read an array and move its axis of members, draws or quantiles to the front."""
    source = read_floats(value, name)
    values = source.values
    if axis is None:
        axis = _named_axis(truth, source)
    if axis is None and is_list_of(value, truth.values.shape):
        axis = 0
    axis = axis_of(name, values.shape, truth.values.shape, axis, what)
    axes = list(source.axes)
    if axes:
        axes.insert(0, axes.pop(axis))
    left_out = None if source.left_out is None else np.moveaxis(source.left_out, axis, 0)
    return source._replace(values=np.moveaxis(values, axis, 0), left_out=left_out, axes=tuple(axes))


def is_list_of(value: Any, shape: tuple[int, ...]) -> bool:
    """Return True for a list of arrays of this shape."""
    return isinstance(value, list | tuple) and all(
        tuple(getattr(item, "shape", ())) == shape != () for item in value
    )


def _named_axis(truth: Source, source: Source) -> int | None:
    """Return the axis of an xarray DataArray whose name the truth lacks."""
    if not truth.axes or len(source.axes) != len(truth.axes) + 1:
        return None
    known = {axis.name for axis in truth.axes if axis is not None}
    spare = [
        place
        for place, axis in enumerate(source.axes)
        if axis is not None and axis.package == "xarray" and axis.name not in known
    ]
    return spare[0] if len(spare) == 1 else None


def axis_of(name: str, shape: tuple[int, ...], truth: tuple[int, ...], axis: int | None, what: str) -> int:
    """Return the axis that the truth lacks; ShapeError if there is no such axis, or if several fit.

    Examples
    --------
    >>> axis_of("draws", (100, 7), (7,), None, "draw"), axis_of("draws", (7, 100), (7,), None, "draw")
    (0, 1)
    """
    if axis is not None:
        axis = whole_number("axis", axis)
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(f"{name} has shape {shape}, so there is no {what}s axis {axis}")
        return axis % len(shape)
    fits = [place for place in range(len(shape)) if (*shape[:place], *shape[place + 1 :]) == truth]
    if len(fits) > 1 and shape[fits[0]] > 1:
        choices = " or ".join(f"axis={place}" for place in fits)
        raise ShapeError(
            f"{name} has shape {shape} and y_true {truth}, so more than one axis may hold the {what}s; say which: "
            f"{choices}"
        )
    if not fits and len(shape):
        raise ShapeError(
            f"{name} has shape {shape}, but y_true has {truth}: each {what} must have the shape of y_true, and one "
            f"axis more holds the {what}s"
        )
    return fits[0] if fits else 0


def lazy_axes(
    arrays: Mapping[str, Any], shape: tuple[int, ...], axis: int | None, what: str
) -> dict[str, int]:
    """Return the axis of members of the arrays that have one: lazy arrays, or lists of these."""
    found = {}
    for name, value in arrays.items():
        if isinstance(value, list | tuple):
            found[name] = 0 if axis is None else axis
        elif value is not None and value.ndim > len(shape):
            found[name] = axis_of(name, tuple(value.shape), shape, axis, what)
    return found


def without_members(source: Source) -> Source:
    """Masks and axes per sample: left out if any member is."""
    left_out = None if source.left_out is None else np.asarray(source.left_out.any(axis=0))
    return source._replace(left_out=left_out, axes=source.axes[1:])


def check_members(
    truth: Source, members: Source, noise: Source | None, what: str, *, fewest: int = 2
) -> None:
    """Reject members or quantiles if one does not have the target's shape, or if there are too few."""
    name, shape, expected = members.name, members.values.shape, truth.values.shape
    if shape[1:] != expected:
        raise ShapeError(
            f"with its {what}s first, {name} has shape {shape}, but y_true has {expected}: each {what} must "
            f"have the shape of y_true; say which axis holds the {what}s, for example axis=-1"
        )
    if noise is not None and noise.values.shape != shape:
        raise ShapeError(f"{name} has shape {shape} and stds {noise.values.shape}; they must be equal")
    if expected == ():
        raise ShapeError("y_true is a single number; pass arrays, for example [y_true]")
    if shape[0] == 0:
        raise EmptyInputError(f"{name} has no {what}s (M = 0 along the axis of {what}s)")
    if shape[0] < fewest and noise is None:
        raise SettingsError(
            f"{name} has a single {what} (M = 1), so its spread is zero and says nothing about uncertainty; "
            "pass more, their own stds (from_ensemble), or the right axis="
        )
