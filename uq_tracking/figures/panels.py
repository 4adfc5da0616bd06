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

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.figures import style
from uq_tracking.figures.header import Line, put_header, title_lines
from uq_tracking.figures.style import MARGIN, readable, wrapped
from uq_tracking.formatting import one_line

FloatArray = npt.NDArray[np.float64]
Masked = Any
"""A masked float array; numpy has no good static type for one."""

BAND = 1 << 18
"""Pixels reduced at a time, so that large maps need little memory."""
Scale = Literal["value", "error", "std", "part", "z", "entropy", "image", "class"]
COLORS: dict[str, str] = {
    "value": "viridis",
    "error": "magma",
    "std": "cividis",
    "part": "cividis",
    "z": "RdBu_r",
    "entropy": "magma",
    "image": "gray",
}
"""Color maps; classes have their own colors."""
WIDE, TALL, SIDE = 4.4, 5.0, 2.7
"""Longer side, in inches, of a panel that is much wider than tall, much taller than wide, or nearly square."""
LONGEST = 6.0
"""Above this aspect ratio a map is stretched, so that it does not become a line."""


Origin = Literal["upper", "lower"]
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
        both = np.stack([np.where(finite, found, 0.0), finite])
        for axis in (2, 3):
            both = np.add.reduceat(both, range(0, both.shape[axis], block), axis)
        sums.append(both)
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


def check_origin(origin: str) -> None:
    """Raise ``SettingsError`` unless the first row is drawn at one of both ends."""
    if origin not in ("upper", "lower"):
        raise SettingsError(f"origin is {origin!r}; pass 'upper' or 'lower'")


def distinct_limits(low: float, high: float) -> tuple[float, float]:
    """Distinct limits, so that a constant map has a color."""
    if high > low:
        return low, high
    half = 0.01 * abs(low) or 0.5
    return low - half, high + half


@dataclass(frozen=True)
class Layout:
    """An arrangement of panels: size of the figure, rows and columns of its grid, and the place of each panel."""

    size: tuple[float, float]
    rows: int
    columns: int
    places: Sequence[tuple[int | slice, int]]
    bars: Literal["right", "bottom"] = "right"


def shown_pixels(ratio: float) -> int:
    """Pixels of the longer side of a panel with this height-to-width ratio."""
    ratio = min(max(ratio, 1 / LONGEST), LONGEST)
    return int(style.DPI * (WIDE if ratio < 0.45 else TALL if ratio > 2.2 else SIDE * max(ratio, 1.0) ** 0.5))


def layout_for(shape: tuple[int, ...], panels: int, *, with_image: bool) -> Layout:
    """Arrange this many maps: in pairs if wide, in a row if tall, else in two rows with the image on their left.

    The image, if there is one, comes first and counts as one of them.
    """
    ratio = min(max(shape[0] / shape[1], 1 / LONGEST), LONGEST)
    if ratio < 0.45:
        rows = -(-(panels + with_image) // 2)
        places = [(0, 0)] * with_image + [divmod(k, 2) for k in range(2 * with_image, panels + with_image)]
        return Layout((11.0, rows * (WIDE * ratio + 0.5) + 0.9), rows, 2, places)
    if ratio > 2.2:
        size = (panels * max(TALL / ratio, 1.75) + 0.2, 7.0)
        return Layout(size, 1, panels, [(0, column) for column in range(panels)], "bottom")
    side, across = SIDE / max(ratio, 1.0) ** 0.5, -(-(panels - with_image) // 2)
    cells = [divmod(k, across) for k in range(panels - with_image)]
    beside: list[tuple[int | slice, int]] = [(slice(None), 0)] * with_image
    columns = across + with_image
    size = (columns * (side + 0.55) + 0.3, 2 * (side * ratio + 0.45) + 0.9)
    return Layout(size, 2, columns, beside + [(row, column + with_image) for row, column in cells])


def draw_panels(
    figure: Figure, panels: Sequence[Panel], limits: Limits, layout: Layout, origin: Origin
) -> dict[Scale, list[Drawn]]:
    """Draw panels in their places; returns those of each scale."""
    cells = figure.add_gridspec(layout.rows, layout.columns)
    drawn: dict[Scale, list[Drawn]] = {}
    for panel, (row, column) in zip(panels, layout.places, strict=True):
        ax = figure.add_subplot(cells[row, column])
        shown = _show(ax, panel, limits[panel.scale], origin)
        drawn.setdefault(panel.scale, []).append((ax, shown))
    return drawn


def _show(ax: Axes, panel: Panel, limits: tuple[float, float], origin: Origin) -> AxesImage:
    missing = np.ma.getmaskarray(panel.values)
    ax.patch.set(facecolor=style.NO_INPUT if panel.scale == "image" else style.NO_DATA)
    if panel.scale != "image" and missing.any():
        ax.patch.set(hatch="///", edgecolor="#B4B4B4", linewidth=0)
    height, width = panel.values.shape[:2]
    stretched = not 1 / LONGEST <= height / width <= LONGEST
    shown = ax.imshow(
        panel.values if panel.values.ndim == 2 else panel.values.filled(0.85), cmap=COLORS.get(panel.scale),
        vmin=limits[0], vmax=limits[1], origin=origin, interpolation="antialiased",
        aspect="auto" if stretched else "equal",
    )  # fmt: skip
    ax.set(xticks=[], yticks=[])
    for axis in (ax.xaxis, ax.yaxis):  # so that they need not be measured
        axis.set_visible(False)
    ax.spines[:].set(visible=True, color=style.QUIET, linewidth=0.8)
    name = panel.title.replace(", ", ",\n") if height > 2.2 * width else panel.title
    ax.set_title(name, fontsize=style.TICKS, color="black", fontweight="normal", loc="center", y=1.0, pad=4)
    if missing.all():
        ground = {"facecolor": style.NO_DATA, "edgecolor": "none", "pad": 2.0}
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.TICKS, "bbox": ground}
        ax.text(0.5, 0.5, "no ground truth", transform=ax.transAxes, **look)
    return shown


def color_bar(
    figure: Figure, drawn: Sequence[Drawn], label: str, layout: Layout, marks: Sequence[float] = ()
) -> None:
    """Draw the color bar that panels share at the edge of the last one, without moving any.

    Its ends are pointed if values lie beyond them, and it labels its limits, or the values of ``marks``.
    """
    ax, shown = drawn[-1]
    low, high = shown.get_clim()
    seen = np.concatenate([np.ma.compressed(np.ma.asarray(image.get_array())) for _, image in drawn])
    under, over = bool((seen < low).any()), bool((seen > high).any())
    width, height = figure.get_size_inches() / (layout.columns, layout.rows)
    right = layout.bars == "right"
    place = (1 + 0.1 / width, 0.0, 0.13 / width, 1.0) if right else (0.0, -0.22 / height, 1.0, 0.13 / height)
    bar = figure.colorbar(
        shown, cax=ax.inset_axes(place), orientation="vertical" if right else "horizontal",
        extend="both" if under and over else "min" if under else "max" if over else "neither",
    )  # fmt: skip
    axis, other = (bar.ax.yaxis, bar.ax.xaxis) if right else (bar.ax.xaxis, bar.ax.yaxis)
    other.set_visible(False)
    middle = (low + high) / 2
    if marks:
        ticks = list(marks)
    elif np.allclose(seen, middle, rtol=1e-6, atol=0.0) and np.allclose(
        (low, high), distinct_limits(middle, middle)
    ):
        ticks = [middle]  # a constant map, with limits made up around its value
    else:  # both limits, and round ones in between that leave them room
        room = (0.14 if right else 0.45) * (high - low)
        inner = MaxNLocator(5 if right else 2).tick_values(low, high)
        ticks = [low, *(float(tick) for tick in inner if low + room < tick < high - room), high]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(style.TickNumbers())
    style.style_color_bar(bar, label, size=style.TICKS, ticks=style.TICKS - 1)


def title_over(figure: Figure, title: str | None, note: str = "") -> None:
    """Put a bold title above all panels, cut to the figure's width, and a sentence below it."""
    width = 72 * figure.get_figwidth() - 2 * MARGIN
    lines = title_lines(one_line(title), width) if title else []
    lines += [Line(text, style.SMALL, style.QUIET) for text in wrapped(note.split(), style.SMALL, width)]
    if lines:
        put_header(figure, lines)
