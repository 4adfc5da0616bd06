"""Which samples count, and whether those that count can be scored (rules for missing and bad input).

Shapes must be equal, but for the axis of members, draws or quantile levels, which the truth lacks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uq_tracking.checks import whole_number
from uq_tracking.errors import EmptyInputError, SettingsError, ShapeError
from uq_tracking.formatting import format_number
from uq_tracking.inputs.convert import BoolArray, FloatArray, Source, read_floats
from uq_tracking.parallel import inner

BLOCK = 2**16
"""Samples per block: three float32 arrays of this size stay in the L2 cache."""
FEWEST = 50
"""Fewest samples to say what standard deviations may be that cannot be any."""


@dataclass
class Finding:
    """Where the first sample with a defect is, and how many have it."""

    index: tuple[int, ...]
    count: int = 0


Defect = tuple[str, str]
"""What is bad, and how: ("y_std", "negative")."""


@dataclass
class Scan:
    """Which samples count, and how many do not, by reason; a boolean array is made only when one is left out."""

    shape: tuple[int, ...]
    valid: BoolArray | None = None
    n_masked: int = 0
    n_absent: int = 0
    """Samples without truth."""
    n_invalid: int = 0
    defects: dict[Defect, Finding] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of samples that count."""
        return math.prod(self.shape) - self.n_masked - self.n_absent - self.n_invalid

    def add(
        self, offset: int, masked: BoolArray | None, absent: BoolArray, defects: Mapping[Defect, BoolArray]
    ) -> None:
        """Count a piece's samples, arrays of shape (n,), the first of which is at the flat position ``offset``."""
        if masked is None and not absent.any() and not any(hits.any() for hits in defects.values()):
            return
        here = np.ones(absent.shape, dtype=bool) if masked is None else ~masked
        keep = here & ~absent
        good = keep.copy()
        for defect, hits in defects.items():
            if count := int(np.count_nonzero(keep & hits)):
                first = np.unravel_index(offset + int(np.argmax(keep & hits)), self.shape)
                self.defects.setdefault(defect, Finding(tuple(map(int, first)))).count += count
                good &= ~hits
        self.n_masked += here.size - int(np.count_nonzero(here))
        self.n_absent += int(np.count_nonzero(here)) - int(np.count_nonzero(keep))
        self.n_invalid += int(np.count_nonzero(keep)) - int(np.count_nonzero(good))
        if self.valid is None and not good.all():
            self.valid = np.ones(self.shape, dtype=bool)
        if self.valid is not None:
            self.valid.reshape(-1)[offset : offset + good.size] = good


def check_shapes(*arrays: tuple[str, tuple[int, ...]]) -> None:
    """Reject arrays of unequal shape."""
    name, first = arrays[0]
    if all(shape == first for _, shape in arrays):
        if first == ():
            raise ShapeError(f"{name} is a single number; pass arrays, for example [{name}], also as batches")
        return
    listed = ", ".join(f"{name} {shape}" for name, shape in arrays)
    raise ShapeError(f"shapes differ, and nothing is broadcast: {listed}{_shape_cure(arrays)}")


def _shape_cure(arrays: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    largest = max((shape for _, shape in arrays), key=len)
    for name, shape in arrays:
        if shape == ():
            return f"; repeat the number: numpy.full_like({arrays[0][0]}, {name})"
        if longer := [other_name for other_name, other in arrays if other == (*shape, 1)]:
            dropped = ", ".join(f"{other_name}[..., 0]" for other_name in longer)
            return f"; drop the last axis of {' and '.join(longer)}: {dropped}"
        if name == "y_std" and shape == (*arrays[0][1], *arrays[0][1][-1:]):
            return (
                "; it looks like a covariance: pass the root of its diagonal, or Predictions.from_covariance"
            )
        if len(shape) == len(largest) and shape != largest and sorted(shape) == sorted(largest):
            return f"; the axes of {name} are in another order: transpose it"
        if name == "y_pred" and (cure := cure_of_members(arrays[0][1], shape)):
            return f"; {cure}"
    return ""


def cure_of_members(truth: tuple[int, ...], means: tuple[int, ...]) -> str:
    """Return the constructors for a forecast of these shapes if it has one axis more than the truth, else ""."""
    without = [(*means[:place], *means[place + 1 :]) for place in range(len(means))]
    if truth == () or truth not in without:
        return ""
    return (
        "if y_pred holds the members of an ensemble, pass Predictions.from_ensemble(y_true, y_pred, y_std), "
        "where y_std may be missing; if draws, Predictions.from_samples(y_true, y_pred); if quantiles, "
        "Predictions.from_quantiles(y_true, y_pred, levels)"
    )


@np.errstate(all="ignore")
def negative_hint(target: FloatArray, mean: FloatArray, std: FloatArray) -> str:
    """Return what negative "standard deviations" may be, as a question; "" if nothing fits."""
    if len(std) < FEWEST or not np.any(std < 0):
        return ""
    error = target - mean
    size = log_size(error)
    for name, log_std, constructor in (
        ("log-variance", std / 2, "from_log_variance"),
        ("log of the std", std, ""),
    ):
        slope = slope_of(size, log_std)
        if slope is None or slope.spread < 0.05 or np.ptp(log_std) >= 100:
            continue
        factor = math.sqrt(float(np.mean(np.square(error / np.exp(log_std)))))
        if abs(slope.value - 1) <= min(0.25, 3 * slope.error) and abs(math.log(factor)) <= 0.25:
            cure = f"use Predictions.{constructor}" if constructor else "pass np.exp(y_std)"
            share = format_number(100 * float(np.mean(std < 0)), 2)
            return (
                f"{share} % are negative, and as a {name} they fit the errors (factor {factor:.2f}): if that is what "
                f"they are, {cure}"
            )
    return ""


@dataclass(frozen=True)
class Slope:
    """A slope, its standard error, and the standard deviation of what it depends on."""

    value: float
    error: float
    spread: float


def log_size(error: FloatArray) -> FloatArray:
    """Return the log of absolute errors, those near 0 raised."""
    return np.asarray(np.log(np.maximum(np.abs(error), max(1e-4 * root_mean_square(error), 1e-300))))


def root_mean_square(values: FloatArray) -> float:
    """Return the root of the mean square."""
    return math.sqrt(float(np.mean(np.square(values))))


def slope_of(y: FloatArray, x: FloatArray) -> Slope | None:
    """Return the least-squares slope with White's standard error; None where x hardly varies."""
    dx, dy = x - x.mean(), y - y.mean()
    square = inner(dx, dx)
    if square <= 1e-12 * len(x):
        return None
    value = inner(dx, dy) / square
    rest = dy - value * dx
    return Slope(value, math.sqrt(float(np.sum(np.square(dx * rest)))) / square, math.sqrt(square / len(x)))


def read_equal(*read: Source, **arrays: Any) -> tuple[Source, ...]:
    """Read arrays of real numbers by argument name, and reject shapes unequal to each other and to those ``read``."""
    sources = (*read, *(read_floats(value, name) for name, value in arrays.items()))
    check_shapes(*((source.name, source.values.shape) for source in sources))
    return sources


def members_first(
    value: Any, name: str, truth: Source, axis: int | None, what: str, *, fewest: int = 1
) -> Source:
    """Read members, draws or quantiles, each in the shape of the truth, and move their axis to the front."""
    source = read_floats(value, name)
    values = source.values
    if axis is None:
        axis = _named_axis(truth, source)
    if axis is None and isinstance(value, list | tuple):
        own = truth.values.shape
        axis = 0 if all(tuple(getattr(item, "shape", ())) == own != () for item in value) else None
    axis = axis_of(name, values.shape, truth.values.shape, axis, what)
    values = np.moveaxis(values, axis, 0)
    if truth.values.shape == ():
        raise ShapeError("y_true is a single number; pass arrays, for example [y_true]")
    if len(values) == 0:
        raise EmptyInputError(f"{name} has no {what}s (M = 0 along the axis of {what}s)")
    if len(values) < fewest:
        raise SettingsError(
            f"{name} has a single {what} (M = 1), so its spread is zero and says nothing about uncertainty; "
            "pass more, their own stds (from_ensemble), or the right axis="
        )
    axes = list(source.axes)
    if axes:
        axes.insert(0, axes.pop(axis))
    left_out = None if source.left_out is None else np.moveaxis(source.left_out, axis, 0)
    return source._replace(values=values, left_out=left_out, axes=tuple(axes))


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
    """Return the axis that the truth lacks, as given; ShapeError if there is no such axis, or if several fit.

    Examples
    --------
    >>> axis_of("draws", (100, 7), (7,), None, "draw"), axis_of("draws", (7, 100), (7,), None, "draw")
    (0, 1)
    """
    fits = [place for place in range(len(shape)) if (*shape[:place], *shape[place + 1 :]) == truth]
    if axis is not None:
        if not -len(shape) <= whole_number("axis", axis) < len(shape):
            raise ShapeError(f"{name} has shape {shape}, so there is no {what}s axis {axis}")
        fits = [place for place in fits if place == axis % len(shape)]
    elif len(fits) > 1 and shape[fits[0]] > 1:
        choices = " or ".join(f"axis={place}" for place in fits)
        raise ShapeError(
            f"{name} has shape {shape} and y_true {truth}, so more than one axis may hold the {what}s; say which: "
            f"{choices}"
        )
    if not fits:
        raise ShapeError(
            f"{name} has shape {shape}, but y_true has {truth}: each {what} must have the shape of y_true, and one "
            f"axis more holds the {what}s"
        )
    return fits[0]


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
