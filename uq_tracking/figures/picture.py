"""Figures as pixels: PNG files, arrays, and stored pictures that every tracker shows in its own way."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

Pixels = npt.NDArray[np.uint8]

DPI = 100


class ShownFigure(Figure):
    """A figure that notebooks show without pyplot, with its titles as alternative text."""

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        titles = [text.get_text() for text in self.texts]
        titles += [ax.get_title(side) for ax in self.axes for side in ("left", "center")]
        return to_png(self, dpi=80), {"alt": "; ".join(filter(None, titles))}


class Picture(Figure):
    """A figure that shows a picture pixel by pixel at its own size, and is saved as the bytes of its file.

    ``png`` returns these bytes, which may still be being compressed while other figures are drawn.
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

    def pixels(self) -> Pixels:
        """Return the pixels with their opacity, shape (height, width, 4)."""
        with Image.open(BytesIO(self.png)) as image:
            return np.asarray(image.convert("RGBA"))

    def savefig(self, fname: Any, *, transparent: bool | None = None, **options: Any) -> None:
        """Write the file's own bytes, whatever the options; see ``Figure.savefig``."""
        if hasattr(fname, "write"):
            fname.write(self.png)
        else:
            Path(fname).write_bytes(self.png)


def picture(path: Path) -> Picture:
    """Return a figure that shows a PNG file at its own size."""
    png = path.read_bytes()
    with Image.open(BytesIO(png)) as image:
        return Picture(lambda: png, image.size)


def packed(pixels: Pixels, dpi: float, most: float = math.inf) -> bytes:
    """Compress RGB or RGBA pixels to a PNG file, without alpha if all are opaque; equal pixels give equal bytes.

    A picture whose file would have more than ``most`` bytes gets 256 colors.
    """
    image = Image.fromarray(pixels[..., :3].copy() if (pixels[..., 3:] == 255).all() else pixels)
    while True:
        buffer = BytesIO()
        # Run-length matches only: a third of the time of a full search; maps are no larger, curves by 20 kB.
        image.save(buffer, "png", dpi=(dpi, dpi), compress_type=zlib.Z_RLE)
        if buffer.tell() <= most or image.mode != "RGB":
            return buffer.getvalue()
        image = image.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)


def to_png(figure: Figure, *, dpi: float | None = None) -> bytes:
    """Draw the figure as a PNG file; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Any figure; it is left unchanged.
    dpi : float, optional
        Pixels per inch; the figure's own by default.

    Returns
    -------
    bytes
        PNG file, without a date or the name of the software.
    """
    if isinstance(figure, Picture) and dpi is None:
        return figure.png
    return packed(drawn(figure, dpi), dpi or figure.get_dpi())


def to_rgb(figure: Figure, *, dpi: float | None = None) -> Pixels:
    """Draw the figure as pixels, for trackers that take arrays.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Any figure; it is left unchanged.
    dpi : float, optional
        Pixels per inch; the figure's own by default.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
    """
    return drawn(figure, dpi)[..., :3].copy()


def drawn(figure: Figure, dpi: float | None = None) -> Pixels:
    """Draw the figure as RGBA pixels, shape (height, width, 4)."""
    if isinstance(figure, Picture) and dpi is None:
        return figure.pixels()
    before, shown_by = figure.get_dpi(), figure.canvas
    canvas: Any = FigureCanvasAgg(figure)  # its methods are untyped
    figure.set_dpi(dpi or before)
    try:
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())
    finally:
        figure.set_dpi(before)
        figure.set_canvas(shown_by)
