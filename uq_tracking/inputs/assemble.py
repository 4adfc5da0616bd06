"""From converted arrays to the checked values of `Predictions`: one route for every constructor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from uq_tracking.checks import check_choice, value_text, whole_number
from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs.alignment import check_alignment, check_units
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray, Source, read_mask
from uq_tracking.inputs.labels import check_no_gaps, read_labels, spread
from uq_tracking.inputs.time_blocks import Series
from uq_tracking.inputs.validation import Scan, Wording, check_scan, check_shapes, scan
from uq_tracking.inputs.weights import check_weights, read_weights


def assemble(
    sources: Sequence[Source],
    mean: FloatArray,
    std: FloatArray,
    wording: Wording,
    *,
    mask: Any = None,
    weights: Any = None,
    on_invalid: str = "raise",
    std_floor: float | None = None,
    groups: Any = None,
    by: Any = None,
    unit: str | None = None,
) -> dict[str, Any]:
    """Check target, mean and std, and return the attributes of `Predictions`.

    Parameters
    ----------
    sources
        The arrays the user passed, target first: their masks and labelled axes apply.
    mean, std
        What they were converted to, in the target's shape.
    wording
        How error messages refer to them.
    mask, weights, on_invalid, std_floor, groups, by, unit
        As for `Predictions`.
    """
    check_policy(on_invalid, std_floor)
    truth = sources[0]
    sources = list(sources) if mask is None else [*sources, _read_mask(mask, truth)]
    check_alignment([(source.name, source.axes) for source in sources])
    if unit is None:
        check_units((source.name, source.unit) for source in sources)
    given = None if weights is None else read_weights(weights, truth)
    sources = sources if given is None else [*sources, given]
    found = scan(truth.values, mean, std, _left_out(sources))
    check_scan(found, wording, on_invalid)
    if given is not None:
        check_weights(given.values, found.valid)
    labels = _labels(groups, "groups", truth, found.valid)
    if isinstance(groups, Series):
        counted = np.ones(mean.shape, dtype=bool) if found.valid is None else found.valid
        error = (truth.values[counted] - mean[counted]).astype(np.float64)
        labels = groups.labels(spread(groups.times, mean.shape)[counted], (error, np.abs(error)))
    values = {
        "target": truth.values,
        "mean": mean,
        "std": _unsigned(std, found) if std_floor is None else _raised(std, std_floor),
        "valid": found.valid,
        "weights": None if given is None else given.values,
        "groups": labels,
        "by": _labels(by, "by", truth, found.valid),
    }
    views = {name: read_only(array) for name, array in values.items()}
    return {
        **views,
        "counts": found.counts,
        "std_floor": std_floor,
        "unit": truth.unit if unit is None else unit,
    }


def members_first(source: Source, axis: int) -> Source:
    """Move the members axis to the front.

    Raises
    ------
    ShapeError
        There is no such axis.
    """
    axis = whole_number("axis", axis)
    if not -source.values.ndim <= axis < source.values.ndim:
        raise ShapeError(f"{source.name} has shape {source.values.shape}, so there is no members axis {axis}")
    axes = list(source.axes)
    if axes:
        axes.insert(0, axes.pop(axis))
    left_out = None if source.left_out is None else np.moveaxis(source.left_out, axis, 0)
    return source._replace(values=np.moveaxis(source.values, axis, 0), left_out=left_out, axes=tuple(axes))


def without_members(source: Source) -> Source:
    """Masks and axes per sample: left out if any member is."""
    left_out = None if source.left_out is None else np.asarray(source.left_out.any(axis=0))
    return source._replace(left_out=left_out, axes=source.axes[1:])


def read_only(array: AnyArray | None) -> AnyArray | None:
    """Return a read-only view; the user's own array stays writable."""
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view


def check_policy(on_invalid: str, std_floor: float | None) -> None:
    """Check the options that say what to do with bad predictions and small stds."""
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    if std_floor is None:
        return
    if not (isinstance(std_floor, Real) and 0 < std_floor <= sys.float_info.max):
        raise SettingsError(
            f"std_floor is {value_text(std_floor)}; pass a positive number in the target's unit"
        )


def _read_mask(mask: Any, truth: Source) -> Source:
    source = read_mask(mask, "mask")
    check_shapes((truth.name, truth.values.shape), ("mask", source.values.shape))
    hidden = [mask for mask in (source.values, source.left_out) if mask is not None]
    return source._replace(left_out=_either(hidden))


def _left_out(sources: Sequence[Source]) -> BoolArray | None:
    """Where any of the arrays is masked."""
    masks = [source.left_out for source in sources if source.left_out is not None]
    return _either(masks) if masks else None


def _either(masks: Sequence[BoolArray]) -> BoolArray:
    union: Any = masks[0]
    for mask in masks[1:]:
        union = union | mask
    return np.asarray(union)


def _labels(value: Any, name: str, truth: Source, valid: BoolArray | None) -> AnyArray | None:
    if value is None:
        return None
    labels = read_labels(value, name, truth.values.shape, truth.axes, truth.name)
    check_no_gaps(labels, name, valid)
    return labels


def _unsigned(std: FloatArray, found: Scan) -> FloatArray:
    """The stds with -0.0, which would flip the sign of quotients, replaced by 0.0."""
    return std + std.dtype.type(0) if found.n_zero_std and np.signbit(std).any() else std


def _raised(std: FloatArray, floor: float) -> FloatArray:
    """Raise ``std`` to the floor, copying only if some values are below it."""
    info = np.finfo(std.dtype)
    if not float(info.tiny) <= floor <= float(info.max):
        raise SettingsError(f"std_floor={floor!r} is outside the range of {std.dtype}; pass y_std as float64")
    limit = std.dtype.type(floor)
    with np.errstate(invalid="ignore"):  # NaN where the target is missing
        return np.maximum(std, limit) if np.any(std < limit) else std
