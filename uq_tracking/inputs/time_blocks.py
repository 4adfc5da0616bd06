"""Blocks of consecutive samples, which serve as independent groups of ordered data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import EmptyInputError, InputTypeError, InvalidValueError, SettingsError
from uq_tracking.inputs.convert import AnyArray, read

MOST_BLOCKS, FEWEST_BLOCKS = 20, 8
"""Blocks of a series are few and long, so that little dependence crosses from one to the next. The t statistic of
their means holds its level whatever the dependence within them (Ibragimov and Mueller 2010, Journal of Business and
Economic Statistics 28, 453)."""
ALIKE = 1e-20
"""Losses whose mean square is below this fraction of the largest are equal up to rounding."""
BLOCKS_RATE = 0.2
"""Number of blocks as a fraction of ``n^(2/3)`` for n times: a shorter series has fewer."""


def time_blocks(order: Any, blocks: int | None = None) -> npt.NDArray[np.int64]:
    """Number of the block of consecutive samples to which each sample belongs.

    Parameters
    ----------
    order : array of numbers or dates, of any shape
        Time of each sample, or its position in the series. Samples with equal times stay together.
    blocks : int, optional
        Number of blocks of nearly equal size; by default 20 for 1000 or more times, fewer for a shorter series, but
        at least 8. Blocks depend on the order alone, so two methods scored on the same series share them.

    Returns
    -------
    int array
        In the shape of ``order``.

    Raises
    ------
    InputTypeError
        The values are neither numbers nor dates.
    InvalidValueError
        Some are missing.

    Examples
    --------
    >>> time_blocks([3.0, 1.0, 2.0, 4.0], blocks=2)
    array([1, 0, 0, 1])
    """
    return _cut(*_places(order), blocks)


def _places(order: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Position of each sample's time, in the shape of the order, and how many samples each time has."""
    values = np.asarray(read(order, "order").values)
    if not values.size:
        raise EmptyInputError("order is empty; pass the time of every sample")
    if values.dtype.kind not in "iufmM":
        raise InputTypeError(f"order holds {values.dtype}; pass the time of each sample, as numbers or dates")
    if values.dtype.kind in "fmM" and not np.isfinite(values.astype(np.float64)).all():
        raise InvalidValueError("order has missing values; pass the time of every sample")
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return place.reshape(values.shape), count


def _cut(
    place: npt.NDArray[np.int64], count: npt.NDArray[np.int64], blocks: int | None = None
) -> npt.NDArray[np.int64]:
    """Number of the block of each sample."""
    if blocks is None:
        blocks = min(max(round(BLOCKS_RATE * len(count) ** (2 / 3)), FEWEST_BLOCKS), MOST_BLOCKS)
    ends = np.cumsum(count)
    middle = ends - (count + 1) / 2  # of the samples of each time
    block = np.minimum(middle * blocks // ends[-1], blocks - 1).astype(np.int64)
    return np.asarray(block[place])


class Series:
    """Blocks of an order as groups, or a single group if errors stay correlated for longer than a block."""

    def __init__(self, order: Any) -> None:
        self.times, count = _places(order)
        self.blocks = _cut(self.times, count)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return self.blocks.astype(dtype or self.blocks.dtype)

    def labels(self, times: AnyArray, losses: Sequence[AnyArray]) -> AnyArray:
        """The blocks, or a single label for all samples that says why.

        Parameters
        ----------
        times : int array, shape (n,)
            Position of the time of each sample that counts.
        losses : arrays, each of shape (n,)
            The losses by which samples are scored.
        """
        worth = min(self._worth(times, loss) for loss in losses)
        if worth >= len(np.unique(self.blocks)):
            return self.blocks
        return np.full(self.blocks.shape, f"a series worth {worth:.1f} independent samples")

    def _worth(self, times: AnyArray, loss: AnyArray) -> float:
        """Effective number of independent times behind the block means: times over the ratio F of mean squares."""
        count = np.bincount(times)
        known = np.flatnonzero(count)
        means = np.bincount(times, loss)[known] / count[known]
        means /= max(np.abs(means).max(), np.finfo(float).tiny)
        of_time = np.zeros(self.times.max() + 1, dtype=np.int64)
        of_time[self.times.reshape(-1)] = self.blocks.reshape(-1)
        _, block, size = np.unique(of_time[known], return_inverse=True, return_counts=True)
        centre = np.bincount(block, means) / size
        between = float(size @ np.square(centre - means.mean())) / max(len(size) - 1, 1)
        within = float(np.square(means - centre[block]).sum()) / max(len(known) - len(size), 1)
        return math.inf if between <= ALIKE or len(known) == len(size) else len(known) * within / between


def groups_of(groups: Any, order: Any) -> Any:
    """The given groups, or blocks of the order; SettingsError if both are given."""
    if order is None:
        return groups
    if groups is not None:
        raise SettingsError("order= makes groups of consecutive samples; omit groups=")
    return Series(order)
