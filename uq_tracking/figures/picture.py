"""A stored picture as a figure, so that every tracker can show it in its own way."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from PIL import Image

DPI = 100


class Picture(Figure):
    """A figure of a picture's size that shows it pixel by pixel, and is written as the bytes of its file.

    Parameters
    ----------
    png : bytes
        Content of the PNG file, which is unpacked only where the figure is drawn.
    """

    def __init__(self, png: bytes) -> None:
        self.png = png
        with Image.open(BytesIO(png)) as image:
            width, height = image.size
        super().__init__(figsize=(width / DPI, height / DPI), dpi=DPI)

    def draw(self, renderer: Any) -> None:
        """Draw the pixels; see ``Figure.draw``."""
        if not self.images:
            self.figimage(self.pixels())
        super().draw(renderer)

    def pixels(self) -> npt.NDArray[np.uint8]:
        """The pixels with their opacity, shape (height, width, 4)."""
        with Image.open(BytesIO(self.png)) as image:
            return np.asarray(image.convert("RGBA"))

    def savefig(self, fname: Any, *, transparent: bool | None = None, **options: Any) -> None:
        """Write the file's own bytes, whatever the options; see ``Figure.savefig``."""
        if hasattr(fname, "write"):
            fname.write(self.png)
        else:
            Path(fname).write_bytes(self.png)


def picture(path: Path) -> Picture:
    """A figure that shows a PNG file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Picture
        Of the picture's size in pixels.
    """
    return Picture(path.read_bytes())
