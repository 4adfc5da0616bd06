"""Recognise lazy arrays (dask, or xarray on dask) without importing either library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class LazyPredictions:
    """Lazy arrays, and the constructor of `Predictions` to call on each of their blocks.

    Attributes
    ----------
    constructor : str
        Name of the constructor.
    arrays : dict
        Arguments that are split into blocks, truth first; at least one of them is lazy.
    axes : dict of int
        For those with an axis of members, draws or levels, which axis it is; in a list of arrays it comes first.
    arguments : dict
        All other arguments of the constructor.
    options : dict
        Options common to all constructors.
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
    """Whether a value is a dask array, an xarray DataArray holding one, or predictions made from such arrays."""
    root = type(value).__module__.split(".")[0]
    return (
        isinstance(value, LazyPredictions)
        or root == "dask"
        or (root == "xarray" and getattr(value, "chunks", None) is not None)
    )
