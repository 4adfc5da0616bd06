"""Figures as pixels: ``wandb.Image`` turns float arrays into black pictures, so it gets uint8 drawn by us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.tracking.backend import Image

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rgb(figure: Figure) -> Image:
    """Draw a figure off screen and return it as uint8 of shape (height, width, 3), on white.

    The figure keeps its own canvas, so a pyplot figure stays one.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    original = figure.canvas
    canvas: Any = FigureCanvasAgg(figure)
    try:
        canvas.draw()
        rgba = np.array(canvas.buffer_rgba(), dtype=np.uint8)
    finally:
        figure.set_canvas(original)
    return _over_white(rgba)


def _over_white(rgba: Image) -> Image:
    """Blend pixels of shape (height, width, 4) with white by their alpha."""
    if (rgba[..., 3] == 255).all():
        return np.ascontiguousarray(rgba[..., :3])
    alpha = rgba[..., 3:].astype(np.float64) / 255.0
    return np.rint(rgba[..., :3] * alpha + 255.0 * (1.0 - alpha)).astype(np.uint8)
