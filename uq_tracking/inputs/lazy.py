"""Telling lazy arrays (dask, or xarray on dask) from arrays in memory, without importing either."""

from __future__ import annotations

from typing import Any


def is_lazy(value: Any) -> bool:
    """Whether a value is a dask array, or an xarray DataArray that holds one."""
    root = type(value).__module__.split(".")[0]
    return root == "dask" or (root == "xarray" and getattr(value, "chunks", None) is not None)
