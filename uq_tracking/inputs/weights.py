"""Sample weights: how much each sample counts, such as the area of a grid cell, an exposure or an importance."""

from __future__ import annotations

from typing import Any

import numpy as np

from uq_tracking.errors import InvalidValueError, ShapeError
from uq_tracking.inputs.alignment import check_alignment
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray, Source, read_floats

LEAST, MOST = np.float64(1e-100), np.float64(1e100)
"""Range of weights in which sums of squares neither vanish nor overflow; float32 cannot hold its ends."""


def read_weights(value: Any, truth: Source) -> Source:
    """Read weights, in the shape of the truth.

    Parameters
    ----------
    value : array
        One weight per sample; or one per entry of the first axes of the truth (one per image); or with axes of length
        1, along which weights repeat; or an xarray DataArray with some of the truth's dimensions.
    truth : Source
        The truth, whose shape and labelled axes apply.

    Returns
    -------
    Source
        Weights in the shape of the truth, as a read-only view; samples with weight 0 are left out.

    Raises
    ------
    ShapeError, AlignmentError
        The shape is none of these, or the axis labels differ.
    InvalidValueError
        All weights are 0.
    """
    source, shape = _along_names(read_floats(value, "weights"), truth), truth.values.shape
    check_alignment([(truth.name, truth.axes), ("weights", source.axes)])
    left_out = np.asarray(source.values == 0)
    if left_out.size and left_out.all():
        raise InvalidValueError("weights are all 0, so no samples count; pass weights above 0")
    if source.left_out is not None:
        left_out = left_out | source.left_out
    hidden = _spread(left_out, shape, truth.name) if left_out.any() else None
    return source._replace(values=_spread(source.values, shape, truth.name), left_out=hidden)


def zero_where_left_out(weights: Source) -> FloatArray:
    """Weights with 0 for every sample left out."""
    return weights.values if weights.left_out is None else np.where(weights.left_out, 0, weights.values)


def check_weights(weights: FloatArray, valid: BoolArray | None) -> None:
    """Reject invalid weights of samples that count.

    Raises
    ------
    InvalidValueError
        Some are negative, not finite, or not between ``LEAST`` and ``MOST``.
    """
    bad = ~((weights == 0) | ((weights >= LEAST) & (weights <= MOST)))
    if valid is not None:
        bad &= valid
    if bad.any():
        first = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
        count = int(np.count_nonzero(bad))
        raise InvalidValueError(
            f"weights has {count} negative, non-finite or extreme number{'s' * (count > 1)} (first at index "
            f"{first}: {weights[first]}); pass 0, which excludes a sample, or a number "
            f"from {LEAST:g} to {MOST:g}"
        )


def _along_names(source: Source, truth: Source) -> Source:
    """Weights from an xarray DataArray with some of the truth's dimensions, aligned to them."""
    names = [None if axis is None else axis.name for axis in truth.axes]
    own = [None if axis is None else axis.name for axis in source.axes]
    if not own or len(own) >= len(names) or not all(name is not None and name in names for name in own):
        return source
    found = [own.index(name) if name in own else None for name in names]
    order = [k for k in found if k is not None]
    shape = [1 if k is None else source.values.shape[k] for k in found]

    def moved(array: AnyArray) -> AnyArray:
        return array.transpose(order).reshape(shape)

    left_out = None if source.left_out is None else moved(source.left_out)
    axes = tuple(None if k is None else source.axes[k] for k in found)
    return source._replace(values=moved(source.values), left_out=left_out, axes=axes)


def _spread(array: AnyArray, shape: tuple[int, ...], truth: str) -> AnyArray:
    lead = array.shape == shape[: array.ndim]
    fits = array.ndim == len(shape) and all(
        own in (1, size) for own, size in zip(array.shape, shape, strict=True)
    )
    if not array.ndim or not (lead or fits):
        raise ShapeError(
            f"weights have shape {array.shape} and {truth} {shape}; pass one weight per sample, one per entry of the "
            "first axes, or axes of length 1 along which weights repeat"
        )
    return np.broadcast_to(array.reshape(*array.shape, *(1,) * (len(shape) - array.ndim)), shape)
