"""Read labels and class probabilities, arrange them with classes last, and reject bad ones with a cure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from uq_tracking.checks import as_names, whole_number
from uq_tracking.errors import EmptyInputError, InputTypeError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.inputs.class_validation import TOLERANCES
from uq_tracking.inputs.convert import AnyArray, BoolArray, Source, read
from uq_tracking.inputs.labels import check_no_gaps, read_labels
from uq_tracking.inputs.probabilities import ClassScores
from uq_tracking.inputs.validation import check_shapes


def read_class_labels(value: Any) -> Source:
    """Labels as whole numbers; InputTypeError or EmptyInputError says what they are instead."""
    source = read(value, "labels")
    kind = source.values.dtype.kind
    if kind == "b":
        return source._replace(values=source.values.view(np.uint8))
    if kind in "iu":
        return source
    if source.values.size == 0:
        raise EmptyInputError(f"labels are empty (shape {source.values.shape}); there is nothing to score")
    if kind == "f" and source.values.ndim > 1:
        cure = "labels come first, then probs; for one-hot rows pass labels.argmax(axis=-1)"
    elif kind == "f":
        cure = (
            "convert them with .astype(int), giving samples without a class a number to pass as ignore_label"
        )
    else:
        cure = (
            "number them in the order of the classes in probs; if that is alphabetical: "
            "classes, labels = numpy.unique(labels, return_inverse=True)"
        )
    raise InputTypeError(f"labels have dtype {source.values.dtype}, not integers; {cure}")


def read_strata(value: Any, name: str, truth: Source, valid: BoolArray | None) -> AnyArray | None:
    """Labels of groups or strata, one for each sample that counts."""
    if value is None:
        return None
    labels = read_labels(value, name, truth.values.shape, truth.axes, "labels")
    check_no_gaps(labels, name, valid)
    return labels


def arranged(
    truth: Source, given: Source, class_axis: int, members_axis: int | None, logits: bool
) -> tuple[ClassScores, Source]:
    """Scores with members first and classes last, and their mask and axes per sample."""
    shape = truth.values.shape
    check_shapes(("labels", shape), ("labels", shape))  # rejects single numbers
    extra = given.values.ndim - truth.values.ndim - (members_axis is not None)
    if extra not in (0, 1):
        raise ShapeError(_shape_message(truth, given, members_axis))
    members = _axis("members_axis", members_axis, given, "members")
    classes = _axis("class_axis", class_axis, given, "classes") if extra else None
    if members is not None and members == classes:
        raise SettingsError(
            f"class_axis and members_axis are both axis {members} of probs {given.values.shape}"
        )
    moved = [axis for axis in (members, classes) if axis is not None]
    order = [axis for axis in range(given.values.ndim) if axis not in moved]
    rest = tuple(given.values.shape[axis] for axis in order)
    if rest != shape:
        raise ShapeError(_shape_message(truth, given, members_axis))
    if classes is not None and given.values.shape[classes] < 2:
        raise ShapeError(
            f"probs {given.values.shape} hold a single class; for a binary classifier, drop that axis: "
            f"{_without('probs', given.values.ndim, classes)}"
        )
    full = [*([] if members is None else [members]), *order, *([] if classes is None else [classes])]
    values = given.values.transpose(full)
    values = values if members is not None else values[None]
    values.flags.writeable = False  # only this view; the user's own array stays writable
    scores = ClassScores(values, logits, binary=not extra)
    left_out = None if given.left_out is None else np.asarray(given.left_out.any(axis=tuple(moved)))
    axes = tuple(given.axes[axis] for axis in order) if given.axes else ()
    return scores, given._replace(left_out=left_out, axes=axes)


def _axis(name: str, axis: int | None, given: Source, what: str) -> int | None:
    if axis is None:
        return None
    axis = whole_number(name, axis)
    if not -given.values.ndim <= axis < given.values.ndim:
        raise ShapeError(f"probs have shape {given.values.shape}, so there is no axis {axis} for {what}")
    return axis % given.values.ndim


def _shape_message(truth: Source, given: Source, members_axis: int | None) -> str:
    shape, other = truth.values.shape, given.values.shape
    message = (
        f"labels have shape {shape} and probs {other}; probs need the labels' shape and an axis of classes, or the "
        "labels' shape for a binary classifier"
    )
    members = None if members_axis is None else members_axis % len(other)
    rest = [axis for axis in range(len(other)) if axis != members]
    counted = "" if members is None else ", which counts the axis of the members too"
    for axis in rest:
        if tuple(other[each] for each in rest if each != axis) == shape:
            return f"{message}; if axis {axis} holds the classes, pass class_axis={axis}{counted}"
    if members is None and len(other) == len(shape) + 2:
        return f"{message}; if an axis holds the members of an ensemble, pass members_axis="
    spare = [axis for axis, length in enumerate(shape) if length == 1]
    for dropped, axis in product(spare, rest):
        if tuple(other[each] for each in rest if each != axis) == shape[:dropped] + shape[dropped + 1 :]:
            cure = _without("labels", len(shape), dropped)
            told = "" if axis == len(other) - 1 else f" and pass class_axis={axis}"
            return f"{message}; drop axis {dropped} of labels: {cure}{told}"
    return message


def _without(name: str, ndim: int, axis: int) -> str:
    """How to drop an axis of length 1."""
    return f"{name}[..., 0]" if axis == ndim - 1 else f"{name}[{':, ' * axis}0]"


def refuse_one_hot(labels: AnyArray, scores: ClassScores, class_axis: int) -> None:
    """Labels and probabilities of equal shape belong to a binary classifier, unless the labels are one-hot rows."""
    if not scores.binary or labels.ndim < 2 or not -labels.ndim <= class_axis < labels.ndim:
        return
    rows = np.moveaxis(labels, class_axis, -1).reshape(-1, labels.shape[class_axis])[:1000]
    if rows.shape[1] < 2 or not ((rows >= 0).all() and (rows.sum(axis=1) == 1).all()):
        return
    values = np.moveaxis(scores.values[0], class_axis, -1).reshape(-1, rows.shape[1])[:1000]
    if scores.logits or np.allclose(values.sum(axis=1), 1, rtol=0, atol=1e-2):
        raise InvalidValueError(
            f"labels {labels.shape} look one-hot; pass class indices: labels.argmax(axis={class_axis})"
        )


def left_out_of(*sources: Source) -> BoolArray | None:
    """Where any of the arrays, or the mask, leaves a sample out."""
    hidden = [source.left_out for source in sources if source.left_out is not None]
    hidden += [source.values for source in sources if source.name == "mask"]
    return np.logical_or.reduce(hidden) if hidden else None


def tolerance_of(probs: Any, values: AnyArray) -> float:
    """The tolerance for the dtype in which the probabilities were given."""
    first = probs[0] if isinstance(probs, list | tuple) and len(probs) else probs
    given = str(getattr(first, "dtype", values.dtype)).rpartition(".")[2]
    return TOLERANCES.get(given, TOLERANCES[str(values.dtype)])


def names_of(names: Sequence[str] | None, n_classes: int) -> tuple[str, ...] | None:
    """Names of the classes as a tuple; SettingsError if their number is wrong."""
    if names is None:
        return None
    texts = as_names("class_names", names)
    if len(texts) != n_classes:
        raise SettingsError(f"class_names holds {len(texts)} names for {n_classes} classes")
    return texts
