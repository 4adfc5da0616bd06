"""Maps of several methods on one color scale, as bare-pixel pictures that a page lays out itself."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.colors import Colormap, Normalize, to_hex
from matplotlib.image import imsave

from uq_tracking.figures.style import NO_DATA

FloatArray = npt.NDArray[np.float64]

LONGEST = 320
"""Maximum pixels of the longer side; larger maps are reduced to this by block means."""
COLORS = {"value": "viridis", "error": "magma"}
"""Color maps of values in the target's unit and of errors, as in single maps."""


def reduced(values: npt.NDArray[np.floating]) -> FloatArray:
    """Means over square blocks such that the longer side has at most ``LONGEST``; NaN if no value is finite.

    Parameters
    ----------
    values : array, shape (height, width)
        Non-finite values are left out of the means.
    """
    height, width = values.shape
    block = max(1, math.ceil(max(height, width) / LONGEST))
    if block == 1:
        return np.where(np.isfinite(values), values, np.nan).astype(np.float64)
    rows, columns = np.arange(0, height, block), np.arange(0, width, block)
    finite = np.isfinite(values)
    known = np.where(finite, values, 0).astype(np.float64)
    total = np.add.reduceat(np.add.reduceat(known, rows, axis=0), columns, axis=1)
    count = np.add.reduceat(np.add.reduceat(finite.astype(np.int64), rows, axis=0), columns, axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(count > 0, total / count, np.nan))


def error_limits(errors: Iterable[FloatArray]) -> tuple[float, float]:
    """Common color limits of absolute errors: from 0 to the 99th percentile of all of them together."""
    seen = np.concatenate([error[np.isfinite(error)] for error in errors])
    high = float(np.percentile(seen, 99)) if len(seen) else 0.0
    return 0.0, high or (float(seen.max()) if len(seen) and seen.max() > 0 else 1.0)


def value_limits(target: FloatArray) -> tuple[float, float]:
    """Color limits of target and predictions: the central 99 % of the target."""
    seen = target[np.isfinite(target)]
    low, high = (float(v) for v in np.percentile(seen, (0.5, 99.5))) if len(seen) else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def map_png(values: FloatArray, limits: tuple[float, float], colors: str) -> bytes:
    """Draw a map as a PNG file of one pixel per value; the same values give the same bytes.

    Parameters
    ----------
    values : array, shape (height, width)
        NaN is drawn grey.
    limits : (float, float)
        Values of the first and the last color.
    colors : {"value", "error"}
        Which color map.
    """
    cells = Normalize(*limits, clip=True)(np.ma.masked_invalid(values))
    buffer = io.BytesIO()
    nameless: Any = {"Software": None}  # omits the name of the software; its type does not allow None
    imsave(buffer, _colormap(colors)(cells, bytes=True), format="png", metadata=nameless)
    return buffer.getvalue()


def color_stops(colors: str, count: int = 9) -> list[str]:
    """Evenly spaced colors of a color map, from low to high, as ``#rrggbb``."""
    palette = _colormap(colors)
    return [to_hex(palette(k / (count - 1))) for k in range(count)]


def _colormap(colors: str) -> Colormap:
    return colormaps[COLORS[colors]].with_extremes(bad=NO_DATA)
