"""A digest of samples in their order, whatever their dtype."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash


def digest(blocks: Iterable[npt.NDArray[Any]], about: str = "") -> str:
    """Sixteen hexadecimal digits: XXH3 of ``about`` and of the values, read as float64 in C order.

    It distinguishes data sets that differ by accident; it is no protection against deliberate collisions.
    """
    state = xxhash.xxh3_64(about.encode())
    for values in blocks:
        numbers = np.add(values, 0.0, dtype=np.float64)  # adding zero turns -0.0 into 0.0
        state.update(np.ascontiguousarray(numbers, dtype="<f8").data)
    return state.hexdigest()
