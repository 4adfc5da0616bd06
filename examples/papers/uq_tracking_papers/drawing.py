"""Panels, maps, and a color and dashes per method, for the papers' figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from uq_tracking.figures.style import SMALL, TEXT, new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = (
    ("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#CC79A7", ":"), ("#56B4E9", "-"), ("#E69F00", "--"),
    ("#000000", ":"),
)  # fmt: skip
"""Colors of Okabe and Ito, and dashes: two methods differ in both."""


UNKNOWN = "#6E7B8B"
"""Slate: no color of a map's scale."""


def panels(rows: int, columns: int, *, width: float = 3.3, height: float = 2.9) -> tuple[Figure, list[Axes]]:
    """A figure of equal panels, row by row; sizes in inches of one panel."""
    figure = new_figure((width * columns, height * rows))
    return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(rows * columns)]


def panel(ax: Axes, title: str, x_label: str, y_label: str) -> Axes:
    """Label a panel."""
    style_axes(ax, x_label, y_label)
    ax.set_title(title, fontsize=TEXT, color="black", fontweight="normal", pad=5)
    return ax


def picture(
    figure: Figure,
    ax: Axes,
    title: str,
    values: npt.ArrayLike,
    low: float | None = None,
    high: float | None = None,
    colors: str = "viridis",
    *,
    bar: bool = True,
) -> None:
    """A map with its scale, or an image (rows, columns, 3); places without a value are slate."""
    ax.set(xticks=[], yticks=[], facecolor=UNKNOWN)
    ax.set_title(title, fontsize=SMALL)
    drawn = ax.imshow(values, cmap=colors, vmin=low, vmax=high, interpolation="nearest")
    if bar and np.ndim(values) == 2:
        figure.colorbar(drawn, ax=ax, fraction=0.04, pad=0.02).ax.tick_params(labelsize=SMALL - 2)
