"""A stored picture as a figure, so that every tracker can show it in its own way."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from PIL import Image

DPI = 100


class Picture(Figure):
    """A figure that shows a picture pixel by pixel at its own size, and is saved as the bytes of its file.

    Parameters
    ----------
    png : callable
        Returns the content of the PNG file, which may still be being compressed while other figures are drawn.
    size : tuple of int
        Its width and height in pixels.
    """

    def __init__(self, png: Callable[[], bytes], size: tuple[int, int]) -> None:
        self._png = png
        width, height = size
        super().__init__(figsize=(width / DPI, height / DPI), dpi=DPI)

    @property
    def png(self) -> bytes:
        """Content of the PNG file."""
        return self._png()

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
        With the picture's size in pixels.
    """
    png = path.read_bytes()
    with Image.open(BytesIO(png)) as image:
        return Picture(lambda: png, image.size)


def packed(pixels: npt.NDArray[np.uint8], dpi: float) -> bytes:
    """RGBA pixels as a PNG file, without alpha if all are opaque; equal pixels give equal bytes."""
    drawn = Image.fromarray(pixels[..., :3].copy() if (pixels[..., 3] == 255).all() else pixels)
    buffer = BytesIO()
    # Run-length matches only: a third of the time of a full search; maps are no larger, curves by 20 kB.
    drawn.save(buffer, "png", dpi=(dpi, dpi), compress_type=zlib.Z_RLE)
    return buffer.getvalue()
