"""Sample weights: how much each sample counts.

Statistics hold weights in units of the lightest sample. So nothing changes when all weights are multiplied by a
number, and samples with the weights 1, 2 and 3 are as if they were there once, twice and three times: in sums and
order statistics, and where numbers of samples matter (edges of bins, fractions, degrees of freedom) as well. A weight
of 0 leaves a sample out before anything is counted.

How sure one may be of a score is another question: two samples are not one that counts twice. Noise floors, bands and
verdicts go by the effective number of samples, ``(sum w)^2 / sum w^2`` (Kish 1965).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

WEIGHT = "weight"
"""Column of rows, and moments of statistics, where samples have weights."""

ROUNDING = 1e-9
"""Multiples of a unit that are this close to a whole number are meant to be one."""

LARGEST = 2**53
"""Up to here every whole number is a float64."""


def whole(total: float) -> float:
    """The whole number that a total is up to rounding, as an int; else the total itself.

    >>> whole(3 * 0.1 / 0.1), whole(2.5)
    (3, 2.5)
    """
    if isinstance(total, int) or not total < LARGEST:
        return total
    near = round(total)
    return near if abs(total - near) <= ROUNDING * max(total, 1.0) else total


def in_units(weights: npt.NDArray[Any], unit: float) -> npt.NDArray[np.float64]:
    """Weights in units of one of them, freed of rounding where they are multiples of it.

    >>> in_units(np.asarray([0.1, 0.3]), 0.1)
    array([1., 3.])
    """
    made = np.asarray(weights / unit, dtype=np.float64)
    near = np.rint(made)
    return np.where(np.abs(made - near) <= ROUNDING * near, near, made)


def equal_edges(total: float, parts: int) -> npt.NDArray[Any]:
    """Ends of parts of equal weight, the first being 0; of whole numbers with the sizes of ``numpy.array_split``.

    >>> equal_edges(7, 3)
    array([0, 3, 5, 7])
    """
    if not isinstance(total, int):
        return np.arange(parts + 1) * (total / parts)
    size, larger = divmod(total, parts)
    return np.concatenate([[0], np.cumsum(np.full(parts, size) + (np.arange(parts) < larger))])


def middle_ranks(total: float) -> tuple[float, float]:
    """Ranks whose values the median lies half way between: up to the first and beyond the second lies half of all.

    >>> middle_ranks(4), middle_ranks(5)
    ((2, 3), (3, 3))
    """
    if isinstance(total, int):
        return (total + 1) // 2, total // 2 + 1
    return total / 2, total / 2 * (1 + ROUNDING)
