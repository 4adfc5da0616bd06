"""Labelled axes and units must agree: different places, or meters and kilometers, are never compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from uq_tracking.errors import AlignmentError


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


def pandas_axes(table: Any) -> Axes:
    """Axes of a Series or DataFrame."""
    index = Axis("pandas", "index", table.index)
    return (index, Axis("pandas", "columns", table.columns)) if table.ndim == 2 else (index,)


def check_alignment(arrays: Sequence[tuple[str, Axes]]) -> None:
    """Compare the labelled axes of every array with those of the first labelled array.

    Raises
    ------
    AlignmentError
        Two arrays name or label an axis differently.
    """
    labelled = [(name, axes) for name, axes in arrays if axes]
    for name, axes in labelled[1:]:
        first, expected = labelled[0]
        for place, (theirs, ours) in enumerate(zip(expected, axes, strict=False)):
            if theirs is not None and ours is not None and theirs.package == ours.package:
                _check_axis(first, theirs, name, ours, place)


def check_units(arrays: Iterable[tuple[str, str | None]]) -> None:
    """Compare the units that arrays in the target's unit state; an array without one may have any.

    Raises
    ------
    AlignmentError
        Two arrays state different units.
    """
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
    cure = _cure(first, name, ours)
    raise AlignmentError(f"{first} and {name} have different labels along {ours.name!r}; {cure}")


def _cure(first: str, name: str, axis: Axis) -> str:
    if axis.package == "pandas":
        method = f"{name}.reindex({axis.name}={first}.{axis.name})"
    else:
        method = f"xarray.align({first}, {name}, join='inner')"
    return f"align them ({method}), or pass .to_numpy() if they are already in the same order"
