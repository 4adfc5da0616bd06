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
        One label per sample (``shape``); one per entry of the first axis, for example per image; one per entry of the
        last axes (strata only), for example per lead time; or with axes of length 1, along which labels repeat.
    name
        How errors call it.
    shape, axes, truth
        Shape, labelled axes and name of the target.

    Raises
    ------
    InputTypeError
        The labels have mixed or unusable types.
    ShapeError
        The shape is none of these, or it is ambiguous because the first and last axes are equally long.

    Returns
    -------
    array
        In the target's shape, that of its first axis, or with as many axes, some of length 1.
    """
    source = read(value, name)
    labels = _usable(source.values, name)
    labels = labels.reshape(label_shape(labels.shape, name, shape))
    if len(source.axes) < len(labels.shape):  # along the last axes
        source = source._replace(axes=(*(None,) * (labels.ndim - len(source.axes)), *source.axes))
    check_alignment([(truth, axes), (name, source.axes)])
    if source.left_out is not None:
        raise InputTypeError(
            f"{name} is a masked array; pass a label for every sample, and mask= for those to exclude"
        )
    return labels


def label_shape(own: tuple[int, ...], name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of labels, with leading axes of length 1 if they belong to the last axes.

    Raises
    ------
    ShapeError
        They match no axes, or the first as well as the last.

    Examples
    --------
    >>> label_shape((24,), "by", (100, 24)), label_shape((100,), "by", (100, 24))
    ((1, 24), (100,))
    """
    first, last = own == shape[:1], 0 < len(own) < len(shape) and own == shape[-len(own) :]
    if first and last and name != "groups":
        axes = ", ".join(["None"] * (len(shape) - 1))
        raise ShapeError(
            f"{name} has shape {own}, but the first and last axes of {shape} are equally long; pass "
            f"{name}[:, {axes}] for labels of the first, {name}[{axes}, :] for labels of the last"
        )
    full = len(own) == len(shape) and all(size in (1, whole) for size, whole in zip(own, shape, strict=True))
    if first or full:
        return own
    if last and name != "groups":
        return (*(1,) * (len(shape) - len(own)), *own)
    also = "" if name == "groups" or len(shape) < 2 else f", one per entry of the last {shape[-1:]}"
    raise ShapeError(
        f"{name} has shape {own}; pass one label per sample {shape}, "
        f"or one per entry of the first axis {shape[:1]}{also}"
    )


def _usable(labels: AnyArray, name: str) -> AnyArray:
    if labels.dtype.kind in "biufUM":
        return labels
    if labels.dtype.kind == "S":
        return labels.astype(str)
    if labels.dtype.kind == "T" or all(isinstance(label, str) for label in labels.flat):
        return labels.astype(np.str_)
    if labels.dtype.kind == "O" and all(isinstance(label, int | np.integer) for label in labels.flat):
        try:
            return labels.astype(np.int64)
        except OverflowError:
            raise InputTypeError(
                f"{name} holds whole numbers that do not fit in 64 bits; convert them to text"
            ) from None
    raise InputTypeError(
        f"{name} holds labels of dtype {labels.dtype} that are neither all text nor all numbers; "
        "convert them with numpy.asarray(labels).astype(str), and name missing ones"
    )


def check_no_gaps(labels: AnyArray, name: str, valid: BoolArray | None) -> None:
    """Reject NaN and NaT labels of samples that count.

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
            "exclude them with mask=, or give them their own label"
        )


def spread(labels: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Repeat labels over the samples they belong to, as a read-only view."""
    if labels.shape == shape:
        return labels
    return np.broadcast_to(labels.reshape(*labels.shape, *(1,) * (len(shape) - labels.ndim)), shape)
