"""Lazy arrays (dask, or xarray on dask): told from arrays in memory, without importing either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class LazyPredictions:
    """Lazy arrays and the constructor of `Predictions` that makes predictions of each of their blocks.

    Attributes
    ----------
    constructor : str
        Its name.
    arrays : dict
        Arguments that are cut to blocks, the truth first; one of them at least is lazy.
    axes : dict of int
        Of those with an axis of members, draws or levels, where it is; a list of arrays has it in front.
    arguments : dict
        All others of the constructor.
    options : dict
        Those that every constructor takes.
    """

    constructor: str
    arrays: Mapping[str, Any]
    axes: Mapping[str, int]
    arguments: Mapping[str, Any]
    options: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the truth."""
        return tuple(next(iter(self.arrays.values())).shape)


def is_lazy(value: Any) -> bool:
    """Whether a value is a dask array, an xarray DataArray that holds one, or predictions made of such arrays."""
    root = type(value).__module__.split(".")[0]
    return (
        isinstance(value, LazyPredictions)
        or root == "dask"
        or (root == "xarray" and getattr(value, "chunks", None) is not None)
    )
