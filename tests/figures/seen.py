"""What can be read off a plain_texts figure."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from uq_tracking.figures import to_rgb

THUMBNAIL = 300


def texts(figure: Figure) -> str:
    """Every visible text of the figure, laid out once so that ticks have their labels."""
    figure.draw_without_rendering()
    return "\n".join(text.get_text() for text in figure.findobj(Text) if text.get_visible())


def curve(ax: Axes, label: str) -> np.ndarray:
    """The points of the line with this label, shape (2, points)."""
    (line,) = [line for line in ax.lines if line.get_label() == label]
    return np.asarray(line.get_data())


def holds_line(ax: Axes, x: np.ndarray, y: np.ndarray) -> bool:
    """Whether some line of the axes has exactly these points."""
    return any(np.array_equal(line.get_data(), (x, y)) for line in ax.lines)


def thumbnail(figure: Figure) -> np.ndarray:
    """The figure as grey values at 300 pixels width."""
    return np.asarray(Image.fromarray(to_rgb(figure, dpi=THUMBNAIL / figure.get_figwidth())).convert("L"))


def text_heights(figure: Figure) -> list[float]:
    """Height in pixels of a line of each text at thumbnail size, for a figure that has been drawn."""
    scale = THUMBNAIL / (figure.get_figwidth() * 72)
    return [
        text.get_fontsize() * scale for text in figure.findobj(Text) if text.get_visible() and text.get_text()
    ]
