"""Which samples count, and whether those that count can be scored (rules for missing and bad input).

The arrays are read once, in cache-sized blocks; a boolean array is made only when a sample is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from uq_tracking.errors import EmptyInputError, InvalidValueError, ShapeError
from uq_tracking.inputs.convert import BoolArray, FloatArray

BLOCK = 2**16
"""Samples per block: three float32 arrays of this size stay in the L2 cache."""


class Wording(NamedTuple):
    """How error messages refer to the mean and std derived from the arguments, and the cure for bad ones."""

    target: str = "y_true"
    mean: str = "y_pred"
    std: str = "y_std"
    negative_cure: str = "pass standard deviations, or use Predictions.from_variance / from_log_variance"
    non_finite_cure: str = ""


@dataclass
class Finding:
    """How many samples have a defect, and the flat position of the first."""

    count: int = 0
    first: int = -1

    def add(self, hits: BoolArray, offset: int) -> None:
        """Count the hits of a block that starts at the flat position ``offset``."""
        found = int(np.count_nonzero(hits))
        if found and not self.count:
            self.first = offset + int(np.argmax(hits))
        self.count += found

    def describe(self, name: str, what: str, shape: tuple[int, ...]) -> str:
        """How many, and where the first is."""
        noun = "value" if self.count == 1 else "values"
        return f"{name} has {self.count} {what} {noun} (first at index {self.index(shape)})"

    def index(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Index of the first."""
        return tuple(int(k) for k in np.unravel_index(self.first, shape))


@dataclass
class Scan:
    """What one pass over the arrays found."""

    shape: tuple[int, ...]
    valid: BoolArray | None = None
    n_masked: int = 0
    n_missing: int = 0
    n_invalid: int = 0
    n_zero_std: int = 0
    bad_mean: Finding = field(default_factory=Finding)
    bad_std: Finding = field(default_factory=Finding)
    negative_std: Finding = field(default_factory=Finding)

    @property
    def size(self) -> int:
        """Number of samples, including those left out."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def counts(self) -> dict[str, int]:
        """The counts of a report."""
        n = self.size - self.n_masked - self.n_missing - self.n_invalid
        return {
            "n": n,
            "n_missing": self.n_missing,
            "n_masked": self.n_masked,
            "n_invalid": self.n_invalid,
            "n_zero_std": self.n_zero_std,
        }


def check_shapes(*arrays: tuple[str, tuple[int, ...]]) -> None:
    """Reject arrays of unequal shape.

    Raises
    ------
    ShapeError
        Shapes differ, or the arrays are single numbers.
    """
    if all(shape == arrays[0][1] for _, shape in arrays):
        if arrays[0][1] == ():
            raise ShapeError(f"{arrays[0][0]} is a single number; pass arrays, for example [{arrays[0][0]}]")
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
    return ""


def blocks(*arrays: Any, size: int = BLOCK) -> Iterator[tuple[Any, ...]]:
    """Walk arrays of equal shape together in C order, as 1-D blocks; copies if memory is ordered differently."""
    if len(arrays) == 1:  # numpy yields a single operand without a tuple
        for first, _ in blocks(arrays[0], arrays[0], size=size):
            yield (first,)
        return
    settings: Any = {"flags": ["external_loop", "buffered"], "order": "C", "buffersize": size}
    if arrays[0].size:
        yield from np.nditer(list(arrays), **settings)


def scan(target: FloatArray, mean: FloatArray, std: FloatArray, left_out: BoolArray | None) -> Scan:
    """Read every sample once and count what is missing, bad or zero."""
    result = Scan(target.shape)
    valid: BoolArray | None = None
    offset = 0
    arrays = (target, mean, std) if left_out is None else (target, mean, std, left_out)
    for block in blocks(*arrays):
        stop = offset + block[0].size
        if not _all_fine(result, *block):
            if valid is None:
                valid = np.ones(target.size, dtype=bool)
            valid[offset:stop] = _sort_out(result, offset, *block)
        offset = stop
    result.valid = None if valid is None else valid.reshape(target.shape)
    return result


def _all_fine(
    result: Scan, target: FloatArray, mean: FloatArray, std: FloatArray, left_out: Any = None
) -> bool:
    if left_out is not None and left_out.any():
        return False
    if not (np.isfinite(target).all() and np.isfinite(mean).all() and np.isfinite(std).all()):
        return False
    smallest = std.min()
    if smallest == 0:
        result.n_zero_std += std.size - int(np.count_nonzero(std))
    return bool(smallest >= 0)


def _sort_out(
    result: Scan, offset: int, target: FloatArray, mean: FloatArray, std: FloatArray, left_out: Any = None
) -> BoolArray:
    """Count the defects in one block; return which of its samples count."""
    here = np.ones(target.size, dtype=bool) if left_out is None else ~left_out
    result.n_masked += here.size - int(np.count_nonzero(here))
    keep: BoolArray = here & np.isfinite(target)
    result.n_missing += int(np.count_nonzero(here)) - int(np.count_nonzero(keep))
    finite_mean, finite_std = np.isfinite(mean), np.isfinite(std)
    with np.errstate(invalid="ignore"):
        negative = finite_std & (std < 0)
    result.bad_mean.add(keep & ~finite_mean, offset)
    result.bad_std.add(keep & ~finite_std, offset)
    result.negative_std.add(keep & negative, offset)
    good: BoolArray = keep & finite_mean & finite_std & ~negative
    result.n_invalid += int(np.count_nonzero(keep)) - int(np.count_nonzero(good))
    result.n_zero_std += int(np.count_nonzero(good & (std == 0)))
    return good


def check_scan(result: Scan, wording: Wording, on_invalid: str) -> None:
    """Judge a scan by the user's policy.

    Raises
    ------
    InvalidValueError
        Samples that count have bad values, under ``on_invalid="raise"``.
    EmptyInputError
        No sample is left.
    """
    if result.n_invalid and on_invalid == "raise":
        raise InvalidValueError(_bad_values(result, wording))
    if result.counts["n"] == 0:
        raise EmptyInputError(_nothing_left(result, wording), result.counts)


def _bad_values(result: Scan, wording: Wording) -> str:
    defects = [
        (result.bad_mean, wording.mean, "non-finite"),
        (result.bad_std, wording.std, "non-finite"),
        (result.negative_std, wording.std, "negative"),
    ]
    parts = [finding.describe(name, what, result.shape) for finding, name, what in defects if finding.count]
    cures = [wording.negative_cure] if result.negative_std.count else []
    if result.bad_mean.count or result.bad_std.count:
        cures += [wording.non_finite_cure] if wording.non_finite_cure else []
        cures.append("leave such samples out with mask= or on_invalid='drop'")
    return "; ".join([*parts, *cures])


def _nothing_left(result: Scan, wording: Wording) -> str:
    if result.size == 0:
        return f"{wording.target} is empty (shape {result.shape}); there is nothing to score"
    parts = {
        "missing (non-finite target)": result.n_missing,
        "masked": result.n_masked,
        "invalid": result.n_invalid,
    }
    listed = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
    cure = (
        "; mask=True leaves a sample out: pass ~mask if yours marks what to keep" if result.n_masked else ""
    )
    return f"none of {result.size} samples is left: {listed}{cure}"
