"""A stored picture as a figure, so that every tracker can show it in its own way."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.image import imread

DPI = 100


def picture(path: Path) -> Figure:
    """A figure that shows a PNG file, pixel by pixel.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    matplotlib.figure.Figure
        Of the picture's size in pixels.
    """
    pixels = imread(path)
    height, width = pixels.shape[:2]
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
    figure.figimage(pixels, cmap="gray", vmin=0, vmax=1)
    return figure
