"""What comes beside truth and forecast: labels of groups and strata, weights, the order of a series."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import EmptyInputError, InputTypeError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.inputs.convert import (
    AnyArray,
    BoolArray,
    FloatArray,
    Source,
    check_alignment,
    check_exact,
    located,
    read,
    read_floats,
)
from uq_tracking.parallel import inner

LONGEST = 1000
"""Characters of a label."""
BETWEEN = "\x1f"
"""Stands between the labels of a sample that has one of each of several sets."""


def label_array(value: Any, name: str, shape: tuple[int, ...]) -> AnyArray:
    """Return labels, or those of several sets, as an array whose axes are those of a truth of this shape."""
    if isinstance(value, Mapping):
        each = {str(key): label_array(own, f"{name}[{key!r}]", shape) for key, own in value.items()}
        return join_labels(each, len(shape))
    labels = np.asarray(value)
    return labels.reshape(label_shape(labels.shape, name, shape))


def join_labels(sets: Mapping[str, AnyArray], ndim: int) -> AnyArray:
    """Return labels that hold one of each set, such as "organ: liver" and "site: A"; ``ndim`` is the truth's."""
    if not sets:
        raise InputTypeError("by is an empty mapping; pass a name and labels for each set")
    texts, codes = [], []
    for name, labels in sets.items():
        distinct, code = np.unique(labels, return_inverse=True)
        texts.append(np.asarray([f"{name}: {label}" for label in distinct], dtype=object))
        codes.append(code.reshape(*labels.shape, *(1,) * (ndim - labels.ndim)))
    every = [code.reshape(-1) for code in np.broadcast_arrays(*codes)]
    shape, place = np.broadcast_shapes(*(code.shape for code in codes)), np.zeros_like(every[0])
    for text, code in zip(texts, every, strict=True):
        # Numbered anew each time: the product may not fit in 64 bits.
        _, first, place = np.unique(place * len(text) + code, return_index=True, return_inverse=True)
    rows = zip(*(text[code[first]] for text, code in zip(texts, every, strict=True)), strict=True)
    return np.asarray([BETWEEN.join(row) for row in rows])[place.reshape(shape)]


def sets_of(labels: Sequence[Any]) -> list[tuple[list[Any], AnyArray]]:
    r"""Return the labels of each set, and the place among them of that which each joint label holds.

    >>> [(names, place.tolist()) for names, place in sets_of(["a: 1\x1fb: 3", "a: 2\x1fb: 3"])]
    [(['a: 1', 'a: 2'], [0, 1]), (['b: 3'], [0, 0])]
    """
    rows = [label.split(BETWEEN) if isinstance(label, str) else [label] for label in labels]
    sizes = {len(row) for row in rows}
    if len(sizes) != 1 or sizes == {1}:  # one set, or text that has the mark itself
        return [(list(labels), np.arange(len(labels)))]
    found = []
    for column in zip(*rows, strict=True):
        place = {name: number for number, name in enumerate(dict.fromkeys(column))}
        found.append((list(place), np.asarray([place[name] for name in column])))
    return found


def read_labels(value: Any, name: str, truth: Source, valid: BoolArray | None) -> AnyArray:
    """Read labels: numbers, text, booleans or dates; samples that count need one.

    Parameters
    ----------
    value
        One label per sample; one per entry of the first axis, for example per image; one per entry of the
        last axes (strata only), for example per lead time; or with axes of length 1, along which labels repeat.
    name
        How errors call it.
    truth : Source
        The truth, whose shape and labelled axes apply.
    valid : bool array, optional
        Which samples count; None if all do.
    """
    if isinstance(value, list | tuple):
        _check_length(_longest(value), name)
    source = read(value, name)
    labels = _usable(source.values, name)
    labels = labels.reshape(label_shape(labels.shape, name, truth.values.shape))
    if len(source.axes) < len(labels.shape):  # along the last axes
        source = source._replace(axes=(*(None,) * (labels.ndim - len(source.axes)), *source.axes))
    check_alignment([(truth.name, truth.axes), (name, source.axes)])
    if source.left_out is not None:
        raise InputTypeError(
            f"{name} is a masked array; pass a label for every sample, and mask= for those to exclude"
        )
    _check_no_gaps(labels, name, valid)
    return labels


def label_shape(own: tuple[int, ...], name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of labels, with leading axes of length 1 if they belong to the last axes.

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
    if first or _has_axes(own, shape):
        return own
    if last and name != "groups":
        return (*(1,) * (len(shape) - len(own)), *own)
    also = "" if name == "groups" or len(shape) < 2 else f", one per entry of the last {shape[-1:]}"
    raise ShapeError(
        f"{name} has shape {own}; pass one label per sample {shape}, "
        f"or one per entry of the first axis {shape[:1]}{also}"
    )


def _has_axes(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return True if an array of its own shape has all axes of the truth, maybe of length 1."""
    return len(own) == len(shape) and all(size in (1, whole) for size, whole in zip(own, shape, strict=True))


def _usable(labels: AnyArray, name: str) -> AnyArray:
    if labels.dtype.kind == "U":
        _check_length(labels.itemsize // 4, name)
    if labels.dtype.kind in "biufUM":
        if labels.dtype != np.longdouble:
            return labels
        check_exact(labels, labels.astype(np.float64), name)
        return labels.astype(np.float64)
    if labels.dtype.kind == "S":
        try:
            return np.char.decode(labels, "utf-8")
        except UnicodeDecodeError as error:
            raise InputTypeError(f"{name} holds bytes that are no text in UTF-8 ({error})") from None
    if labels.dtype.kind == "T" or all(isinstance(label, str) for label in labels.flat):
        _check_length(_longest(labels.flat), name)
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


def _longest(labels: Iterable[Any]) -> int:
    """Return the number of characters of the longest text."""
    return max((len(label) for label in labels if isinstance(label, str)), default=0)


def _check_length(longest: int, name: str) -> None:
    """Reject a text so long that an array, in which all labels take as much room, would exhaust memory."""
    if longest > LONGEST:
        raise InputTypeError(
            f"{name} has a label of {longest:,} characters; pass names of at most {LONGEST:,}"
        )


def _check_no_gaps(labels: AnyArray, name: str, valid: BoolArray | None) -> None:
    """Reject NaN and NaT labels of samples that count."""
    if labels.dtype.kind not in "fM":
        return
    gaps = np.isnan(labels)
    if valid is not None and gaps.any():
        gaps = spread(gaps, valid.shape) & valid
    if gaps.any():
        count, first = located(gaps)
        raise InputTypeError(
            f"{name} has no label for {count} sample{'s' * (count > 1)} (first at index {first}); "
            "exclude them with mask=, or give them their own label"
        )


def spread(labels: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Repeat labels over the samples they belong to, as a read-only view."""
    if labels.shape == shape:
        return labels
    return np.broadcast_to(labels.reshape(*labels.shape, *(1,) * (len(shape) - labels.ndim)), shape)


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
    """
    source, shape = _along_names(read_floats(value, "weights"), truth), truth.values.shape
    check_alignment([(truth.name, truth.axes), ("weights", source.axes)])
    left_out = np.asarray(source.values == 0)
    if left_out.size and left_out.all():
        raise InvalidValueError("weights are all 0, so no samples count; pass weights above 0")
    if source.left_out is not None:
        left_out = left_out | source.left_out
    own = left_out.shape
    if not own or not (own == shape[: len(own)] or _has_axes(own, shape)):
        raise ShapeError(
            f"weights have shape {own} and {truth.name} {shape}; pass one weight per sample, one per entry of the "
            "first axes, or axes of length 1 along which weights repeat"
        )
    hidden = spread(left_out, shape) if left_out.any() else None
    return source._replace(values=spread(source.values, shape), left_out=hidden)


def zero_where_left_out(weights: Source) -> FloatArray:
    """Weights with 0 for every sample left out."""
    return weights.values if weights.left_out is None else np.where(weights.left_out, 0, weights.values)


def check_weights(weights: FloatArray, valid: BoolArray | None) -> None:
    """Reject invalid weights of samples that count."""
    bad = ~((weights == 0) | ((weights >= LEAST) & (weights <= MOST)))
    if valid is not None:
        bad &= valid
    if bad.any():
        count, first = located(bad)
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
    order = [own.index(name) for name in names if name in own]
    spare = tuple(k for k, name in enumerate(names) if name not in own)
    values = np.expand_dims(source.values.transpose(order), spare)
    axes = tuple(source.axes[own.index(name)] if name in own else None for name in names)
    return source._replace(values=values, axes=axes)


SERIES = "a series worth"
"""Begins the label of all samples of a series that is too short."""
MOST_BLOCKS, FEWEST_BLOCKS = 20, 8
"""Blocks of a series are few and long, so that little dependence crosses from one to the next. The t statistic of
their means holds its level whatever the dependence within them (Ibragimov and Mueller 2010, Journal of Business and
Economic Statistics 28, 453)."""
ALIKE = 1e-20
"""Losses whose mean square is below this fraction of the largest are equal up to rounding."""
OF_STEP, MOST_MISSING = 0.01, 4
"""By how much of a step times on a clock may be off, and how many times as many steps as times there may be."""
BLOCKS_RATE = 0.2
"""Number of blocks as a fraction of ``n^(2/3)`` for n times: a shorter series has fewer."""


def _places(order: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Position of each sample's time, how many samples each time has, and how many steps apart these are."""
    source = read(order, "order")
    values = np.asarray(source.values)
    if not values.size:
        raise EmptyInputError("order is empty; pass the time of every sample")
    if values.dtype.kind == "O" and all(isinstance(time, datetime) and time.tzinfo for time in values.flat):
        moments = [time.astimezone(timezone.utc).replace(tzinfo=None) for time in values.flat]
        values = np.asarray(moments, dtype="datetime64[ns]").reshape(values.shape)
    if values.dtype.kind not in "iufmM":
        raise InputTypeError(f"order holds {values.dtype}; pass the time of each sample, as numbers or dates")
    if source.left_out is not None or (values.dtype.kind in "fmM" and not np.isfinite(values).all()):
        raise InvalidValueError("order has missing values; pass the time of every sample")
    known, place, count = np.unique(values, return_inverse=True, return_counts=True)
    gaps = np.diff(known.astype(np.int64 if values.dtype.kind in "mM" else np.float64))
    steps = gaps / gaps.min() if len(gaps) else gaps
    if np.abs(steps - np.round(steps)).max(initial=0) > OF_STEP or steps.sum() > MOST_MISSING * len(known):
        steps = np.ones(len(gaps))
    return place.reshape(values.shape), count, np.round(steps).astype(np.int64)


class Series:
    """Blocks of an order as groups, or a single group if errors stay correlated for longer than a block.

    Parameters
    ----------
    order : array of numbers or dates, of any shape
        Time of each sample, or its position in the series. Samples with equal times stay together.

    Attributes
    ----------
    times : int array
        Position of each sample's time among all, in the shape of ``order``.
    clock : int array
        The same with room for missing times, if all are multiples of a step.
    blocks : int array
        Number of the block of consecutive samples to which each sample belongs. There are 20 of nearly equal size for
        1000 or more times, fewer for a shorter series, but at least 8. Blocks depend on the order alone, so two
        methods scored on the same series share them.

    Raises
    ------
    InputTypeError
        The values are neither numbers nor dates.
    InvalidValueError
        Some are missing.

    Examples
    --------
    >>> Series([[16, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]).blocks
    array([[7, 0, 0, 1, 1, 2, 2, 3],
           [3, 4, 4, 5, 5, 6, 6, 7]])
    """

    def __init__(self, order: Any) -> None:
        self.times, count, steps = _places(order)
        self.clock: npt.NDArray[np.int64] = np.concatenate([[0], np.cumsum(steps)])[self.times]
        number = min(max(round(BLOCKS_RATE * len(count) ** (2 / 3)), FEWEST_BLOCKS), MOST_BLOCKS)
        ends = np.cumsum(count)
        middle = ends - (count + 1) / 2  # of the samples of each time
        blocks = np.minimum(middle * number // ends[-1], number - 1).astype(np.int64)
        self.blocks: npt.NDArray[np.int64] = blocks[self.times]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return self.blocks.astype(dtype or self.blocks.dtype)

    def labels(self, times: AnyArray, losses: Sequence[AnyArray]) -> AnyArray:
        """The blocks, or a single label for all samples that says why."""
        worth = min(self._worth(times, loss) for loss in losses)
        if worth >= len(np.unique(self.blocks)):
            return self.blocks
        return np.full(self.blocks.shape, f"{SERIES} {worth:.1f} independent samples")

    def _worth(self, times: AnyArray, loss: AnyArray) -> float:
        """Effective number of independent times behind the block means: times over the ratio F of mean squares.

        A single change, or a drift, is no dependence, if little of it is left without.
        """
        count = np.bincount(times)
        known = np.flatnonzero(count)
        means = np.bincount(times, loss)[known] / count[known]
        means /= max(np.abs(means).max(), np.finfo(float).tiny)
        of_time = np.zeros(self.times.max() + 1, dtype=np.int64)
        of_time[self.times.reshape(-1)] = self.blocks.reshape(-1)
        _, block, size = np.unique(of_time[known], return_inverse=True, return_counts=True)

        def worth(values: AnyArray) -> float:
            centre = np.bincount(block, values) / size
            between = float(size @ np.square(centre - values.mean())) / max(len(size) - 1, 1)
            within = float(np.square(values - centre[block]).sum()) / max(len(known) - len(size), 1)
            return math.inf if between <= ALIKE or len(known) == len(size) else len(known) * within / between

        found = worth(means)
        rest = worth(without_change(means)) if found < len(size) else found
        return rest if 2 * rest >= len(known) else found


def without_change(values: Any) -> npt.NDArray[np.float64]:
    """Return what remains of a series after a straight line, or after one step, whichever leaves less."""
    centred, n = values - values.mean(), len(values)
    before = np.arange(1, n)
    place = 1 + int((np.square(np.cumsum(centred)[:-1]) / (before * (n - before))).argmax()) if n > 1 else 0
    stepped = np.concatenate([each - each.mean() for each in (centred[:place], centred[place:]) if len(each)])
    return min(without_trend(values), stepped, key=lambda each: inner(each, each))


def without_trend(values: Any, place: Any = None) -> npt.NDArray[np.float64]:
    """Return what remains of a series after a straight line: a drift alone makes all its neighbors alike."""
    at = np.arange(len(values)) if place is None else place
    at = at - at.mean()
    return np.asarray(values - values.mean() - at * (inner(at, values) / max(inner(at, at), 1e-300)))


def groups_of(groups: Any, order: Any) -> Any:
    """The given groups, or blocks of the order; SettingsError if both are given."""
    if order is None:
        return groups
    if groups is not None:
        raise SettingsError("order= makes groups of consecutive samples; omit groups=")
    return Series(order)
