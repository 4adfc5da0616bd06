"""Which 2-D cases of spatial predictions are drawn as maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from uq_tracking.errors import SettingsError
from uq_tracking.streams.map_samples import AUTO_CASES, looks_spatial

Maps = Literal["auto"] | int | Sequence[int] | bool


def choose_cases(shape: tuple[int, ...], maps: Maps) -> list[int]:
    """Choose the cases to draw: all axes but the last two count cases, (height, width) is a single one.

    Parameters
    ----------
    shape
        Of the predictions.
    maps
        ``"auto"``: up to four cases spread evenly, when the last two axes look like a picture (both at least 16
        long, neither more than eight times the other); True: the same without that condition; an int: so many,
        spread evenly; a list: these; False: none.

    Returns
    -------
    list of int
        The same for every run on the same data, so that runs can be compared case by case.

    Raises
    ------
    SettingsError
        Maps are asked for and the predictions are not spatial, or have no such case.

    Examples
    --------
    >>> choose_cases((100, 240, 320), "auto")
    [0, 33, 66, 99]
    >>> choose_cases((5000, 3), "auto")
    []
    """
    if maps is False:
        return []
    if maps == "auto" and not looks_spatial(shape):
        return []
    if len(shape) < 2:
        raise SettingsError(f"maps={maps!r} needs predictions of shape (..., height, width), not {shape}")
    count = int(np.prod(shape[:-2]))
    if maps == "auto" or maps is True:
        return _spread(count, AUTO_CASES)
    if isinstance(maps, int):
        return _spread(count, maps)
    return _checked(maps, count)


def _spread(count: int, wanted: int) -> list[int]:
    if wanted < 0:
        raise SettingsError(f"maps={wanted}; pass how many cases to draw, or a list of their indices")
    return sorted({int(index) for index in np.linspace(0, count - 1, min(wanted, count)).round()})


def _checked(indices: Sequence[int], count: int) -> list[int]:
    chosen = [int(index) for index in indices]
    wrong = [index for index in chosen if not 0 <= index < count]
    if wrong:
        raise SettingsError(f"maps names case {wrong[0]}, but the predictions hold cases 0 to {count - 1}")
    return chosen
