"""Which samples count, and whether those that count can be scored (rules for missing and bad input).

The arrays are read once, in cache-sized blocks; a boolean array is made only when a sample is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from uq_tracking.errors import ShapeError
from uq_tracking.inputs.convert import BoolArray

BLOCK = 2**16
"""Samples per block: three float32 arrays of this size stay in the L2 cache."""


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
