"""The panel of maps for one 2-D prediction: target, prediction, absolute error and rescaled uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.figures.panels import (
    Panel,
    colour_bar,
    distinct_limits,
    layout_for,
    picture,
    plain,
    reduced,
    show,
    title_over,
)
from uq_tracking.figures.style import new_figure, plain_texts
from uq_tracking.figures.text import readable
from uq_tracking.formatting import axis_label

TIMES = "\N{MULTIPLICATION SIGN}"


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
    arrays = [plain(array) for array in (target, mean, std)]
    _check(arrays, scale, origin)
    panels = _panels(arrays, float(scale), None if image is None else picture(plain(image)))
    return plain_texts(_draw(panels, unit, title, origin))


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


def _panels(arrays: Sequence[npt.NDArray[Any]], scale: float, image: Panel | None) -> list[Panel]:
    target, mean, std = arrays
    error, error_mean = reduced(lambda t, m: np.abs(m - t), target, mean)
    spread, spread_mean = reduced(lambda s: scale * s, std)
    panels = [
        Panel("target", reduced(lambda t: t, target)[0], "value"),
        Panel("prediction", reduced(lambda m: m, mean)[0], "value"),
        Panel(f"absolute error, mean {error_mean}", error, "error"),
        Panel(f"{readable(scale)} {TIMES} std, mean {spread_mean}", spread, "error"),
    ]
    return panels if image is None else [image, *panels]


def _limits(panels: Sequence[Panel]) -> dict[str, tuple[float, float]]:
    """Colour limits: of the values, those of the target; of the errors, from 0."""
    limits = {"image": (0.0, 1.0), "value": (0.0, 1.0), "error": (0.0, 1.0)}
    for scale, percentiles in (("value", (0.5, 99.5)), ("error", (0, 99))):
        for panel in (panel for panel in panels if panel.scale == scale):
            seen = panel.values.compressed()
            if len(seen) and (scale == "value" or seen.max() > 0):
                low, high = np.percentile(seen, percentiles)
                limits[scale] = (
                    distinct_limits(float(low), float(high))
                    if scale == "value"
                    else (0.0, float(high or seen.max()))
                )
                break
    return limits


def _draw(
    panels: Sequence[Panel], unit: str | None, title: str | None, origin: Literal["upper", "lower"]
) -> Figure:
    height, width = panels[-1].values.shape
    layout = layout_for(height / width, with_image=len(panels) == 5)
    figure = new_figure(layout.size, "constrained")
    cells = figure.add_gridspec(layout.rows, layout.columns)
    limits = _limits(panels)
    drawn: dict[str, list[tuple[Axes, AxesImage]]] = {"image": [], "value": [], "error": []}
    for panel, (row, column) in zip(panels, layout.places(len(panels)), strict=True):
        ax = figure.add_subplot(cells[row, column])
        drawn[panel.scale].append((ax, show(ax, panel, limits[panel.scale], origin, layout.font)))
    for scale, label in (("value", "value"), ("error", "error")):
        colour_bar(figure, drawn[scale], axis_label(label, "target", unit), layout)
    title_over(figure, title)
    return figure
