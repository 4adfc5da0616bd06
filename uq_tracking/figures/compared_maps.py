"""Maps of several methods on one color scale, as bare-pixel pictures that a page lays out itself."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.colors import Colormap, Normalize, to_hex, to_rgb
from matplotlib.image import imsave

from uq_tracking.figures import panels
from uq_tracking.figures.maps import class_colors, limits_of, shown_classes
from uq_tracking.figures.style import NO_DATA, NO_INPUT
from uq_tracking.formatting import one_line

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LONGEST = 320
"""Maximum pixels of the longer side; larger maps are reduced to this by block means, classes by subsampling."""


def reduced(values: npt.NDArray[np.floating]) -> FloatArray:
    """Return means of finite values over square blocks, at most ``LONGEST`` a side; NaN if none is finite."""
    ((means, _),) = panels.reduced(values, block=_block(values.shape))
    return np.asarray(means.filled(np.nan))


def reduced_classes(classes: IntArray) -> IntArray:
    """Return one class per square block of those of ``reduced``: that of the pixel in its middle."""
    block = _block(classes.shape)
    middle = [np.minimum(np.arange(0, size, block) + block // 2, size - 1) for size in classes.shape]
    return np.asarray(classes[np.ix_(*middle)])


def _block(shape: tuple[int, ...]) -> int:
    """Return the side of the square blocks of which each becomes a pixel."""
    return max(1, math.ceil(max(shape) / LONGEST))


def error_limits(errors: Iterable[FloatArray]) -> tuple[float, float]:
    """Return common color limits of errors or entropies: from 0 to the 99th percentile of all of them together."""
    seen = np.concatenate([np.ravel(error) for error in errors])
    return limits_of(seen, "error") or (0.0, 1.0)


def value_limits(target: FloatArray) -> tuple[float, float]:
    """Return color limits of target and predictions: the central 99 % of the target."""
    return limits_of(target, "value") or (0.0, 1.0)


def map_png(values: FloatArray, limits: tuple[float, float], colors: str) -> bytes:
    """Draw a map, shape (height, width), as a PNG file of one pixel per value, always of the same bytes; NaN is grey.

    ``limits`` have the first and the last color of the scale that ``colors`` names.
    """
    cells = Normalize(*limits, clip=True)(np.ma.masked_invalid(values))
    return _png(_colormap(colors)(cells, bytes=True))


def class_png(classes: IntArray) -> bytes:
    """Draw a map of classes as ``map_png`` draws one of values; negative classes are grey."""
    table = np.vstack([class_colors(max(int(classes.max()), 0) + 1), to_rgb(NO_DATA)])
    return _png(np.rint(255 * table[np.where(classes < 0, -1, classes)]).astype(np.uint8))


def image_png(image: npt.ArrayLike) -> bytes:
    """Draw a model's input, channels last, as single maps do; ShapeError for anything but a picture."""
    values = panels.picture(panels.plain(image)).values
    colors = values if values.ndim == 3 else np.ma.stack([values] * 3, axis=-1)
    known = ~np.ma.getmaskarray(colors)
    return _png(np.rint(255 * np.where(known, colors.data, to_rgb(NO_INPUT))).astype(np.uint8))


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    nameless: Any = {"Software": None}  # omits the name of the software; its type does not allow None
    imsave(buffer, pixels, format="png", metadata=nameless)
    return buffer.getvalue()


def class_legend(maps: Sequence[IntArray], names: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return name and color of every class in these maps, in order, and of pixels without a class."""
    shown = sorted(shown_classes(*maps))
    colors = class_colors(max(shown, default=0) + 1)
    named = [(one_line(names[k]) if names else f"class {k}", to_hex(colors[k])) for k in shown]
    return named + [("no label", NO_DATA.lower())] * any(bool((each < 0).any()) for each in maps)


def color_stops(colors: str, count: int = 9) -> list[str]:
    """Return evenly spaced colors of a color map, from low to high, as ``#rrggbb``."""
    palette = _colormap(colors)
    return [to_hex(palette(k / (count - 1))) for k in range(count)]


def _colormap(colors: str) -> Colormap:
    return colormaps[panels.COLORS[colors]].with_extremes(bad=NO_DATA)
