"""The panel of maps for one 2-D prediction: target, prediction, absolute error and rescaled uncertainty."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.figures import style
from uq_tracking.figures.style import finished, new_figure
from uq_tracking.figures.text import clipped, one_line, readable, with_unit

FloatArray = npt.NDArray[np.float64]
Masked = Any
"""A masked float array; numpy has no good static type for one."""

TIMES = "\N{MULTIPLICATION SIGN}"
MAX_PIXELS = 1000
"""Longest side of a drawn map; larger maps are reduced to this by block means."""
COLORS = {"value": "viridis", "error": "magma", "image": "gray"}
LONGEST = 6.0
"""Ratio of the sides above which a map is stretched, so that it does not become a line."""


@dataclass(frozen=True)
class _Panel:
    """One map to draw; panels with the same ``scale`` share colours and colour bar."""

    title: str
    values: Masked
    scale: Literal["value", "error", "image"]


def uncertainty_map(
    target: npt.ArrayLike,
    mean: npt.ArrayLike,
    std: npt.ArrayLike,
    *,
    scale: float,
    unit: str | None = None,
    image: npt.ArrayLike | None = None,
    title: str | None = None,
    origin: Literal["upper", "lower"] = "upper",
) -> Figure:
    """Draw one 2-D case: target, prediction, absolute error and rescaled uncertainty.

    Target and prediction share their colours, and so do error and ``scale * std``: a useful uncertainty looks
    like the error, bright where the error is and dark elsewhere. Colours span the central 99 % of the target
    and 99 % of the errors; a colour bar is pointed where values lie beyond. Maps longer than 1000 pixels are
    reduced by block means.

    Parameters
    ----------
    target : array, shape (height, width)
        Truth in the target's unit; a non-finite pixel has no ground truth and is drawn grey.
    mean, std : array, shape (height, width)
        Prediction and its standard deviation.
    scale : float
        Factor on ``std``, usually MeRCI's lambda, which makes the rescaled std cover 95 % of the errors.
    unit : str, optional
        Unit of the target.
    image : array, shape (h, w) or (h, w, 1, 3 or 4), optional
        The model's input, drawn first; of any resolution.
    title : str, optional
        Title of the whole figure, for instance the case's name.
    origin : {"upper", "lower"}
        Where the first row is drawn.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ShapeError
        When target, mean and std are not 2-D and of one shape, or the image is no picture.
    SettingsError
        When ``scale`` is not a finite number >= 0, or the origin is unknown.

    References
    ----------
    .. [1] MeRCI, 2018, fig. 4 and eq. 8.
    """
    arrays = [_plain(array) for array in (target, mean, std)]
    _check(arrays, scale, origin)
    panels = _panels(arrays, float(scale), None if image is None else _picture(_plain(image)))
    return finished(_draw(panels, unit, title, origin))


def _check(arrays: Sequence[npt.NDArray[Any]], scale: float, origin: str) -> None:
    shapes = [array.shape for array in arrays]
    if len(shapes[0]) != 2 or len(set(shapes)) > 1 or 0 in shapes[0]:
        raise ShapeError(
            f"a map needs target, mean and std of one 2-D shape, got {shapes[0]}, {shapes[1]} and "
            f"{shapes[2]}; pass one case at a time"
        )
    if not (np.isfinite(scale) and scale >= 0):
        raise SettingsError(
            f"scale is {scale}; pass a finite factor >= 0 for the std, such as MeRCI's lambda or 1.0"
        )
    if origin not in ("upper", "lower"):
        raise SettingsError(f"origin is {origin!r}; pass 'upper' or 'lower'")


def _plain(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return an array whose masked entries, if any, are NaN."""
    if isinstance(array, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(array.astype(np.float64), np.nan))
    return np.asarray(array)


def _panels(arrays: Sequence[npt.NDArray[Any]], scale: float, picture: _Panel | None) -> list[_Panel]:
    target, mean, std = arrays
    error, error_mean = _reduced(lambda t, m: np.abs(m - t), target, mean)
    spread, spread_mean = _reduced(lambda s: scale * s, std)
    panels = [
        _Panel("target", _reduced(lambda t: t, target)[0], "value"),
        _Panel("prediction", _reduced(lambda m: m, mean)[0], "value"),
        _Panel(f"absolute error, mean {error_mean}", error, "error"),
        _Panel(f"{readable(scale)} {TIMES} std, mean {spread_mean}", spread, "error"),
    ]
    return panels if picture is None else [picture, *panels]


def _reduced(of: Callable[..., FloatArray], *arrays: npt.NDArray[Any], least: int = 1) -> tuple[Masked, str]:
    """Means over square blocks (of at least so many pixels a side) of a function, and its overall mean as text.

    Non-finite pixels are left out. Bands of rows keep the memory small, however large the map is.
    """
    height, width = arrays[0].shape
    block = max(least, -(-max(height, width) // MAX_PIXELS))
    columns = np.arange(0, width, block)
    total, count = np.empty((2, -(-height // block), len(columns)))
    for row in range(len(total)):
        with np.errstate(invalid="ignore", over="ignore"):
            values = of(*(array[row * block : (row + 1) * block].astype(np.float64) for array in arrays))
        finite = np.isfinite(values)
        total[row] = np.add.reduceat(np.where(finite, values, 0.0).sum(axis=0), columns)
        count[row] = np.add.reduceat(finite.sum(axis=0), columns)
    mean = readable(float(total.sum() / count.sum()), padded=True) if count.any() else "undefined"
    return np.ma.masked_array(total / np.maximum(count, 1), mask=count == 0), mean


def _picture(image: npt.NDArray[Any]) -> _Panel:
    """Make a panel of grey values or colours in [0, 1], stretched between percentiles where needed."""
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    if image.ndim not in (2, 3) or image.size == 0 or (image.ndim == 3 and image.shape[2] not in (3, 4)):
        raise ShapeError(
            f"image has shape {image.shape}; pass (height, width) or (height, width, 1, 3 or 4), "
            "channels last"
        )
    channels = [image] if image.ndim == 2 else [image[..., k] for k in range(3)]
    reduced = [_reduced(lambda c: c, channel, least=_sparse_block(channel))[0] for channel in channels]
    stacked = np.ma.stack(reduced, axis=-1) if len(reduced) > 1 else reduced[0]
    low, high = (0.0, 255.0) if image.dtype == np.uint8 else _stretch(stacked)
    known = float(np.isfinite(image).mean())
    title = "input" if known > 0.995 else f"input, {readable(100 * known, 2)} % known"
    return _Panel(title, np.ma.clip((stacked - low) / (high - low), 0.0, 1.0), "image")


def _sparse_block(channel: npt.NDArray[Any]) -> int:
    """Choose blocks that hold about one known pixel each, so that scattered measurements can be seen."""
    known = float(np.isfinite(channel).mean())
    return min(math.ceil(known**-0.5), max(1, max(channel.shape) // 40)) if known else 1


def _stretch(values: Masked) -> tuple[float, float]:
    seen = values.compressed()
    if len(seen) == 0 or (seen.min() >= 0 and seen.max() <= 1):
        return 0.0, 1.0
    low, high = np.percentile(seen, [1, 99])
    return _apart(float(low), float(high))


def _apart(low: float, high: float) -> tuple[float, float]:
    """Limits that differ, so that a constant map has a colour."""
    if high > low:
        return low, high
    half = 0.01 * abs(low) or 0.5
    return low - half, high + half


def _limits(panels: Sequence[_Panel]) -> dict[str, tuple[float, float]]:
    """Colour limits: of the values, those of the target; of the errors, from 0."""
    limits = {"image": (0.0, 1.0), "value": (0.0, 1.0), "error": (0.0, 1.0)}
    for scale, percentiles in (("value", (0.5, 99.5)), ("error", (0, 99))):
        for panel in (panel for panel in panels if panel.scale == scale):
            seen = panel.values.compressed()
            if len(seen) and (scale == "value" or seen.max() > 0):
                low, high = np.percentile(seen, percentiles)
                limits[scale] = (
                    _apart(float(low), float(high)) if scale == "value" else (0.0, float(high or seen.max()))
                )
                break
    return limits


def _draw(
    panels: Sequence[_Panel], unit: str | None, title: str | None, origin: Literal["upper", "lower"]
) -> Figure:
    height, width = panels[-1].values.shape
    layout = _layout(height / width, with_image=len(panels) == 5)
    figure = new_figure(layout.size)
    cells = figure.add_gridspec(layout.rows, layout.columns)
    limits = _limits(panels)
    drawn: dict[str, list[tuple[Axes, AxesImage]]] = {"image": [], "value": [], "error": []}
    for panel, (row, column) in zip(panels, layout.places(len(panels)), strict=True):
        ax = figure.add_subplot(cells[row, column])
        drawn[panel.scale].append((ax, _show(ax, panel, limits[panel.scale], origin, layout.font)))
    for scale, label in (("value", "value"), ("error", "error")):
        _colour_bar(figure, drawn[scale], with_unit(label, unit), layout)
    if title:
        letters = round(style.TITLE_WIDTH * 0.88 * layout.size[0] / style.SIZE[0])
        figure.suptitle(
            clipped(one_line(title), letters), fontsize=style.TITLE, fontweight="bold", color="black"
        )
    return figure


@dataclass(frozen=True)
class _Layout:
    """How the panels are arranged: 2 x 2 with the image at their left, or all in one row or column."""

    rows: int
    columns: int
    size: tuple[float, float]
    font: float
    bars: Literal["right", "bottom"]

    def places(self, panels: int) -> list[tuple[int | slice, int]]:
        """Row and column of each panel."""
        if self.rows == 1 or self.columns == 1:
            return [(k, 0) if self.columns == 1 else (0, k) for k in range(panels)]
        first = self.columns - 2
        pairs: list[tuple[int | slice, int]] = [(0, first), (0, first + 1), (1, first), (1, first + 1)]
        return [(slice(None), 0), *pairs] if panels == 5 else pairs


def _layout(ratio: float, *, with_image: bool) -> _Layout:
    """Arrangement for maps of this height over width."""
    ratio, panels = min(max(ratio, 1 / LONGEST), LONGEST), 4 + with_image
    if ratio < 0.45:
        return _Layout(panels, 1, (6.4, panels * (5.0 * ratio + 0.45) + 0.4), 11.5, "right")
    if ratio > 2.2:
        return _Layout(1, panels, (panels * max(5.0 / ratio, 1.75) + 0.2, 6.4), 11.0, "bottom")
    side = 2.7 / max(ratio, 1.0) ** 0.5
    return _Layout(
        2, 2 + with_image, ((2 + with_image) * side + 1.2, 2 * (side * ratio + 0.4) + 0.3), 11.0, "right"
    )


def _show(
    ax: Axes, panel: _Panel, limits: tuple[float, float], origin: Literal["upper", "lower"], font: float
) -> AxesImage:
    ax.set_facecolor(style.NO_INPUT if panel.scale == "image" else style.NO_DATA)
    height, width = panel.values.shape[:2]
    stretched = not 1 / LONGEST <= height / width <= LONGEST
    values = panel.values if panel.values.ndim == 2 else panel.values.filled(0.85)
    shown = ax.imshow(
        values, cmap=COLORS[panel.scale], vmin=limits[0], vmax=limits[1], origin=origin,
        interpolation="antialiased",
        aspect="auto" if stretched else "equal",
    )  # fmt: skip
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    ax.spines[:].set(visible=True, color="#555555", linewidth=0.8)
    name = panel.title.replace(", ", ",\n") if values.shape[0] > 2.2 * values.shape[1] else panel.title
    ax.set_title(name, fontsize=font, color="black", fontweight="normal", loc="center", pad=4)
    if np.ma.getmaskarray(panel.values).all():
        ax.text(0.5, 0.5, "no ground truth", ha="center", va="center", fontsize=font, transform=ax.transAxes)
    return shown


def _colour_bar(figure: Figure, drawn: Sequence[tuple[Axes, AxesImage]], label: str, layout: _Layout) -> None:
    """Draw one colour bar beside the panels that share it, pointed at the ends where values lie beyond."""
    images = [image for _, image in drawn]
    bar = figure.colorbar(
        images[0], ax=[ax for ax, _ in drawn], location=layout.bars, extend=_extend(images), pad=0.02,
        aspect=18,
        shrink=0.95,
    )  # fmt: skip
    axis = bar.ax.yaxis if layout.bars == "right" else bar.ax.xaxis
    axis.set_major_locator(MaxNLocator(5 if layout.bars == "right" else 4))
    axis.set_major_formatter(style.TickNumbers())
    style.dress_bar(bar, label, size=layout.font, ticks=layout.font - 1)


def _extend(images: Sequence[AxesImage]) -> Literal["neither", "both", "min", "max"]:
    low, high = images[0].get_clim()
    seen = np.concatenate([np.ma.compressed(np.ma.asarray(image.get_array())) for image in images])
    under, over = bool((seen < low).any()), bool((seen > high).any())
    return "both" if under and over else "min" if under else "max" if over else "neither"
