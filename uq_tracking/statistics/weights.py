"""Sample weights: how much each sample counts.

Statistics hold weights in units of the lightest sample. So multiplying all weights by a constant changes nothing, and
samples with weights 1, 2 and 3 behave as if they occurred once, twice and three times: in sums and order statistics,
and also where numbers of samples matter (bin edges, fractions, degrees of freedom). A weight of 0 excludes a sample
before anything is counted.

Certainty is a separate question: one sample that counts twice is not two samples. Noise floors, bands and
verdicts use the effective sample size, ``(sum w)^2 / sum w^2`` (Kish 1965).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

WEIGHT = "weight"
"""Name of the column of rows, and of the moments of statistics, when samples have weights."""

ROUNDING = 1e-9
"""Multiples of a unit this close to a whole number are taken as whole."""

LARGEST = 2**53
"""Up to here, every whole number is exactly representable in float64."""


def whole(total: float) -> float:
    """Return a total as an int if it is a whole number up to rounding; else the total itself.

    >>> whole(3 * 0.1 / 0.1), whole(2.5)
    (3, 2.5)
    """
    if isinstance(total, int) or not total < LARGEST:
        return total
    near = round(total)
    return near if abs(total - near) <= ROUNDING * max(total, 1.0) else total


def in_units(weights: npt.NDArray[Any], unit: float) -> npt.NDArray[np.float64]:
    """Weights in units of one of them, with rounding removed where they are multiples of it.

    >>> in_units(np.asarray([0.1, 0.3]), 0.1)
    array([1., 3.])
    """
    made = np.asarray(weights / unit, dtype=np.float64)
    near = np.rint(made)
    return np.where(np.abs(made - near) <= ROUNDING * near, near, made)


def equal_edges(total: float, parts: int) -> npt.NDArray[Any]:
    """Edges of parts of equal weight, starting with 0; for whole numbers, with the sizes of ``numpy.array_split``.

    >>> equal_edges(7, 3)
    array([0, 3, 5, 7])
    """
    if not isinstance(total, int):
        return np.arange(parts + 1) * (total / parts)
    size, larger = divmod(total, parts)
    return np.concatenate([[0], np.cumsum(np.full(parts, size) + (np.arange(parts) < larger))])


def middle_ranks(total: float) -> tuple[float, float]:
    """The two ranks that the median lies midway between, with half of the total on either side.

    >>> middle_ranks(4), middle_ranks(5)
    ((2, 3), (3, 3))
    """
    if isinstance(total, int):
        return (total + 1) // 2, total // 2 + 1
    return total / 2, total / 2 * (1 + ROUNDING)
