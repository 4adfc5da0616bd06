"""Panels of maps: how arrays are reduced to their size, arranged, drawn and given a color bar."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import FixedLocator, MaxNLocator

from uq_tracking.errors import ShapeError
from uq_tracking.figures import style
from uq_tracking.figures.header import HINTED, SPACING, put_header, title_lines
from uq_tracking.figures.style import MARGIN, FloatArray, new_figure, readable, text_width
from uq_tracking.formatting import one_line

Masked = Any
"""A masked float array; numpy has no good static type for one."""

BAND = 1 << 18
"""Pixels reduced at a time, so that large maps need little memory."""
Scale = Literal["value", "error", "part", "entropy", "image", "class"]
COLORS: dict[str, str] = {
    "value": "viridis",
    "error": "magma",
    "part": "cividis",
    "entropy": "magma",
    "image": "gray",
}
"""Color maps; classes have their own colors."""
WIDE, TALL, SIDE = 3.4, 4.2, 2.1
"""Longer side, in inches, of a panel that is much wider than tall, much taller than wide, or nearly square."""
BAR, BETWEEN, EDGE = 0.6, 0.12, 0.11
"""Inches for a color bar and its label, without its numbers, between panels, and at the border of the figure."""
SCALE_BELOW = 0.85
"""Inches below panels with a color bar there."""
LARGEST_TITLE = 26.0
LONGEST = 6.0
"""Above this aspect ratio a map is stretched, so that it does not become a line."""


Limits = Mapping[str, tuple[float, float]]
Drawn = tuple[Axes, AxesImage]


@dataclass(frozen=True)
class Panel:
    """One map to draw; panels with the same ``scale`` share colors and color bar."""

    title: str
    values: Masked
    scale: Scale


def plain(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return an array whose masked entries, if any, are NaN."""
    if isinstance(array, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(array.astype(np.float64), np.nan))
    return np.asarray(array)


def reduced(
    *arrays: npt.NDArray[Any],
    of: Callable[..., Sequence[FloatArray]] = lambda *same: same,
    least: int = 1,
    block: int | None = None,
) -> list[tuple[Masked, float]]:
    """Return means over square blocks, and the overall mean or NaN, of each array or of those computed from them.

    By default the blocks are the largest that leave as many pixels as the panel has, with at least so many pixels a
    side. Non-finite pixels are left out.
    """
    height, width = arrays[0].shape
    block = block or max(least, max(height, width) // shown_pixels(height / width), 1)
    rows = block * max(1, BAND // (block * width))
    sums = []
    for row in range(0, height, rows):
        with np.errstate(invalid="ignore", over="ignore"):
            found = np.stack(of(*(array[row : row + rows].astype(np.float64) for array in arrays)))
        finite = np.isfinite(found)
        values = np.stack([np.where(finite, found, 0.0), finite])
        for _ in range(2):  # squares of pixels of the last two axes; those at the end may be smaller
            total = values[..., ::block, :].copy()
            for first in range(1, block):
                part = values[..., first::block, :]
                total[..., : part.shape[-2], :] += part
            values = total.swapaxes(-1, -2)
        sums.append(values)
    means = []
    for total, count in zip(*np.concatenate(sums, axis=2), strict=True):
        mean = float(total.sum() / count.sum()) if count.any() else math.nan
        means.append((np.ma.masked_array(total / np.maximum(count, 1), mask=count == 0), mean))
    return means


def told_mean(mean: float) -> str:
    """Format a panel's mean for its title."""
    return readable(mean, padded=True) if math.isfinite(mean) else "undefined"


def picture(image: npt.NDArray[Any]) -> Panel:
    """Make a panel of grey values or colors in [0, 1], stretched between percentiles if needed."""
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    if image.ndim not in (2, 3) or image.size == 0 or (image.ndim == 3 and image.shape[2] not in (3, 4)):
        raise ShapeError(
            f"image has shape {image.shape}; pass (height, width) or (height, width, 1, 3 or 4), "
            "channels last"
        )
    channels = [image] if image.ndim == 2 else [image[..., k] for k in range(3)]
    means = [reduced(channel, least=_sparse_block(channel))[0][0] for channel in channels]
    stacked = np.ma.stack(means, axis=-1) if len(means) > 1 else means[0]
    low, high = 0.0, 1.0
    seen = stacked.compressed()
    if image.dtype == np.uint8:
        high = 255.0
    elif len(seen) and (seen.min() < 0 or seen.max() > 1):
        low, high = distinct_limits(*np.percentile(seen, [1, 99]).tolist())
    known = float(np.isfinite(image).mean())
    title = "input" if known > 0.995 else f"input, {readable(100 * known, 2)} % known"
    return Panel(title, np.ma.clip((stacked - low) / (high - low), 0.0, 1.0), "image")


def _sparse_block(channel: npt.NDArray[Any]) -> int:
    """Choose blocks that hold about one known pixel each, so that scattered measurements are visible."""
    known = float(np.isfinite(channel).mean())
    return min(math.ceil(known**-0.5), max(1, max(channel.shape) // 40)) if known else 1


def distinct_limits(low: float, high: float) -> tuple[float, float]:
    """Distinct limits, so that a constant map has a color."""
    if high > low:
        return low, high
    half = 0.01 * abs(low) or 0.5
    return low - half, high + half


@dataclass(frozen=True)
class Layout:
    """An arrangement of panels, in inches: the size of all, and left, top, width and height of each.

    Measured, not solved: matplotlib's own layout takes longer than all drawing.
    """

    size: tuple[float, float]
    places: Sequence[tuple[float, float, float, float]]
    bars: Literal["right", "bottom"] = "right"
    rows: int = 1


def shown_pixels(ratio: float) -> int:
    """Pixels of the longer side of a panel with this height-to-width ratio."""
    ratio = min(max(ratio, 1 / LONGEST), LONGEST)
    return int(style.DPI * (WIDE if ratio < 0.45 else TALL if ratio > 2.2 else SIDE * max(ratio, 1.0) ** 0.5))


def layout_for(shape: tuple[int, ...], panels: Sequence[Panel], limits: Limits) -> Layout:
    """Arrange maps: in pairs if wide, in a row if tall, else in two rows; an image, the first, stands apart."""
    numbers = [readable(end) for panel in panels for end in limits[panel.scale]]
    bar = BAR + max(text_width(number, style.TICKS - 1) for number in numbers) / 72
    ratio = min(max(shape[0] / shape[1], 1 / LONGEST), LONGEST)
    images = [panel for panel in panels if panel.scale == "image"]
    count = len(panels) - len(images)
    if ratio < 0.45:
        width, height, across = WIDE, WIDE * ratio, 2
    elif ratio > 2.2:
        width, height, across = max(TALL / ratio, 1.55), max(TALL, 1.55 * ratio), count
    else:
        width = SIDE / max(ratio, 1.0) ** 0.5
        height, across = width * ratio, -(-count // 2)
    is_wide = any(
        ", " in panel.title and text_width(panel.title, style.TICKS) > 72 * width for panel in panels
    )
    over = 0.45 if is_wide else 0.27  # titles that are broken at their comma
    pitch, rows = over + height + BETWEEN, -(-count // across)
    first = EDGE + bool(images and ratio >= 0.45) * (width + BETWEEN)  # left of all but the image
    above = bool(images and ratio < 0.45) * pitch
    gap = 3 * BETWEEN if ratio > 2.2 else BETWEEN  # for the numbers below
    apart = 0.0 if ratio > 2.2 else bar - gap  # the third column stands right of the color bars
    cells = [divmod(place, across) for place in range(count)]
    places = [
        (first + column * (width + gap) + (column > 1) * apart, above + row * pitch + over, width, height)
        for row, column in cells
    ]
    middle = over if above or rows == 1 else (rows * pitch - BETWEEN + over - height) / 2
    right = max(left for left, *_ in places) + width + (gap if ratio > 2.2 else bar)
    bottom = above + rows * pitch - BETWEEN + (SCALE_BELOW if ratio > 2.2 else EDGE)
    beside = [(EDGE, middle, width, height)] * len(images)
    return Layout((right, bottom), beside + places, "bottom" if ratio > 2.2 else "right", rows)


def framed(layout: Layout, title: str | None, right: float = 0.0, below: float = 0.0) -> Figure:
    """Make the figure of a layout, with more room if asked for, and a bold title above.

    The title is legible where the picture is shown 256 pixels wide, as trackers do.
    """
    width, height = layout.size[0] + right, layout.size[1] + below
    room = HINTED * (72 * width - 2 * MARGIN)
    lines = title_lines(one_line(title), room, min(72 * width / 22, LARGEST_TITLE)) if title else []
    top = (MARGIN + SPACING * sum(line.size for line in lines)) / 72 if lines else 0.0
    figure = new_figure((width, height + top), None)
    put_header(figure, lines)
    return figure


def draw_panels(
    figure: Figure,
    panels: Sequence[Panel],
    limits: Limits,
    layout: Layout,
    below: float = 0.0,
) -> dict[Scale, list[Drawn]]:
    """Draw panels in their places, above the room left below; returns those of each scale."""
    width, height = figure.get_size_inches()
    top = height - below - layout.size[1]
    drawn: dict[Scale, list[Drawn]] = {}
    for panel, (left, down, across, along) in zip(panels, layout.places, strict=True):
        place = (left / width, 1 - (top + down + along) / height, across / width, along / height)
        ax = figure.add_axes(place)
        low, high = limits[panel.scale]
        missing = np.ma.getmaskarray(panel.values)
        ax.patch.set(facecolor=style.NO_INPUT if panel.scale == "image" else style.NO_DATA)
        if panel.scale != "image" and missing.any():
            ax.patch.set(hatch="///", edgecolor="#B4B4B4", linewidth=0)
        rows, columns = panel.values.shape[:2]
        stretched = not 1 / LONGEST <= rows / columns <= LONGEST
        shown = ax.imshow(
            panel.values if panel.values.ndim == 2 else panel.values.filled(0.85), cmap=COLORS.get(panel.scale),
            vmin=low, vmax=high, origin="upper", interpolation="antialiased",
            aspect="auto" if stretched else "equal",
        )  # fmt: skip
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color=style.QUIET, linewidth=0.8)
        name = panel.title
        if text_width(name, style.TICKS) > 72 * across:
            name = name.replace(", ", ",\n")
        ax.set_title(
            name, fontsize=style.TICKS, color="black", fontweight="normal", loc="center", y=1.0, pad=4
        )
        if missing.all():
            ground = {"facecolor": style.NO_DATA, "edgecolor": "none", "pad": 2.0}
            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.TICKS, "bbox": ground}
            ax.text(0.5, 0.5, "no ground truth", transform=ax.transAxes, **look)
        drawn.setdefault(panel.scale, []).append((ax, shown))
    return drawn


def color_bar(figure: Figure, drawn: Sequence[Drawn], label: str, layout: Layout) -> None:
    """Draw the color bar that panels share at the edge of the last one, without moving any.

    Its ends are pointed if values lie beyond them, and it labels its limits.
    """
    ax, shown = drawn[-1]
    low, high = shown.get_clim()
    seen = np.concatenate([np.ma.compressed(np.ma.asarray(image.get_array())) for _, image in drawn])
    under, over = bool((seen < low).any()), bool((seen > high).any())
    _, _, width, height = layout.places[-1]
    right = layout.bars == "right"
    middle = (low + high) / 2
    if np.allclose(seen, middle, rtol=1e-6, atol=0.0) and np.allclose(
        (low, high), distinct_limits(middle, middle)
    ):
        ticks = [middle]  # a constant map, with limits made up around its value
    else:  # both limits, and round ones in between that leave them room
        inches = height if right else width
        room = (0.29 if right else 0.7) / inches * (high - low)
        inner = MaxNLocator(min(5, max(1, int(inches / 0.4))) if right else 2).tick_values(low, high)
        ticks = [low, *(float(tick) for tick in inner if low + room < tick < high - room), high]
    place = (1 + 0.1 / width, 0.0, 0.13 / width, 1.0) if right else (0.0, -0.22 / height, 1.0, 0.13 / height)
    bar = figure.colorbar(
        shown, cax=ax.inset_axes(place), orientation="vertical" if right else "horizontal",
        ticks=FixedLocator(ticks), format=style.TickNumbers(),
        extend="both" if under and over else "min" if under else "max" if over else "neither",
    )  # fmt: skip
    style.style_color_bar(bar, label, size=style.TICKS, ticks=style.TICKS - 1)
