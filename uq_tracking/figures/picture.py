"""A stored picture as a figure, so that every tracker can show it in its own way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.image import imread

DPI = 100


class Picture(Figure):
    """A figure that shows a PNG file pixel by pixel, and is written as the bytes of that file."""

    def __init__(self, png: bytes, **options: Any) -> None:
        super().__init__(**options)
        self.png = png

    def savefig(self, fname: Any, *, transparent: bool | None = None, **options: Any) -> None:
        """Write the file's own bytes, whatever the options; see ``Figure.savefig``."""
        if hasattr(fname, "write"):
            fname.write(self.png)
        else:
            Path(fname).write_bytes(self.png)


def picture(path: Path) -> Picture:
    """A figure that shows a PNG file, pixel by pixel.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Picture
        Of the picture's size in pixels.
    """
    pixels = imread(path)
    height, width = pixels.shape[:2]
    figure = Picture(path.read_bytes(), figsize=(width / DPI, height / DPI), dpi=DPI)
    figure.figimage(pixels, cmap="gray", vmin=0, vmax=1)
    return figure
