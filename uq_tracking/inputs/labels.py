"""Labels of samples: the image, scene or block each belongs to (``groups``), or its stratum (``by``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from uq_tracking.errors import InputTypeError, ShapeError
from uq_tracking.inputs.alignment import Axes, check_alignment
from uq_tracking.inputs.convert import AnyArray, BoolArray, read


def read_labels(value: Any, name: str, shape: tuple[int, ...], axes: Axes, truth: str) -> AnyArray:
    """Read labels: numbers, text, booleans or dates.

    Parameters
    ----------
    value
        One label per sample (``shape``), or one per entry of the first axis, for example one per image.
    name
        How errors call it.
    shape, axes, truth
        Shape, labelled axes and name of the target.

    Raises
    ------
    InputTypeError
        Labels of mixed or unusable types.
    ShapeError
        Neither of the two shapes.
    """
    source = read(value, name)
    labels = _usable(source.values, name)
    if labels.shape not in (shape, shape[:1]):
        raise ShapeError(
            f"{name} has shape {labels.shape}; pass one label per sample {shape}, "
            f"or one per entry of the first axis {shape[:1]}"
        )
    check_alignment([(truth, axes), (name, source.axes)])
    if source.left_out is not None:
        raise InputTypeError(
            f"{name} is a masked array; pass labels for every place, and mask= for what to leave out"
        )
    return labels


def _usable(labels: AnyArray, name: str) -> AnyArray:
    if labels.dtype.kind in "biufUM":
        return labels
    if labels.dtype.kind == "S":
        return labels.astype(str)
    if labels.dtype.kind == "T" or all(isinstance(label, str) for label in labels.flat):
        return labels.astype(np.str_)
    if labels.dtype.kind == "O" and all(isinstance(label, int | np.integer) for label in labels.flat):
        return labels.astype(np.int64)
    raise InputTypeError(
        f"{name} holds labels of dtype {labels.dtype} that are neither all text nor all numbers; "
        "convert them with numpy.asarray(labels).astype(str), and give missing ones a name"
    )


def check_no_gaps(labels: AnyArray, name: str, valid: BoolArray | None) -> None:
    """Refuse NaN and NaT labels at places that count.

    Raises
    ------
    InputTypeError
        A sample that counts has no label.
    """
    if labels.dtype.kind not in "fM":
        return
    gaps = np.isnan(labels) if labels.dtype.kind == "f" else np.isnat(labels)
    if valid is not None and gaps.any():
        gaps = spread(gaps, valid.shape) & valid
    if gaps.any():
        first = tuple(int(k) for k in np.unravel_index(int(np.argmax(gaps)), gaps.shape))
        count = int(np.count_nonzero(gaps))
        raise InputTypeError(
            f"{name} has no label for {count} sample{'s' * (count > 1)} (first at index {first}); "
            "leave them out with mask=, or give them a label of their own"
        )


def spread(labels: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Repeat labels of the first axis over its samples, as a read-only view."""
    if labels.shape == shape:
        return labels
    return np.broadcast_to(labels.reshape(-1, *(1,) * (len(shape) - 1)), shape)
