"""Curves as tables with a line plot: runs with the same key are overlaid in one chart on the web page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.curves import Curve
from uq_tracking.tracking.backend import Image

if TYPE_CHECKING:
    import wandb
    from matplotlib.figure import Figure
    from wandb.plot.custom_chart import CustomChart


MAX_POINTS = 200
"""Maximum points per line. The page loads the tables of all visible runs at once."""

SERIES_LINES = "wandb/area-under-curve/v0"
"""Chart preset that draws one line per run and series from a long-format table."""

SERIES = "series"

_NOT_LINES = ("count", "low", "high")
"""Suffixes of columns that are not lines: sample counts and the ends of bands and bins."""

Rows = list[list[Any]]


def chart(curve: Curve) -> CustomChart | wandb.Table:
    """Chart of a curve.

    A single line is drawn from a table with every column of the curve, several from a long-format table with the
    columns ``x``, ``y`` and ``series``. A curve without ``steps`` is not a line (a two-dimensional histogram) and is
    stored only as a table.
    """
    import wandb

    columns = [curve.x, *_others(curve)]
    if curve.steps is None:
        return wandb.Table(columns=[*columns], data=rows(curve, columns))
    lines = line_columns(curve)
    if len(lines) == 1:
        table = wandb.Table(columns=[*columns], data=rows(curve, columns, MAX_POINTS))
        return wandb.plot.line(table, curve.x, curve.main, title=curve.title)
    long: Rows = [[*row, name] for name in lines for row in rows(curve, [curve.x, name], MAX_POINTS)]
    return wandb.plot_table(
        SERIES_LINES,
        wandb.Table(columns=["x", "y", SERIES], data=long),
        {"x": "x", "y": "y", "class": SERIES},
        {"title": curve.title, "x-axis-title": curve.x_label, "y-axis-title": curve.y_label},
    )


def line_columns(curve: Curve) -> list[str]:
    """Columns drawn as lines, ``main`` first."""
    return [name for name in _others(curve) if name == curve.main or name.split("_")[-1] not in _NOT_LINES]


def rows(curve: Curve, columns: list[str], most: int | None = None) -> Rows:
    """Rows whose first two columns are finite, evenly thinned to ``most``, keeping both ends.

    Non-finite values in the other columns become None.
    """
    values = np.stack([np.asarray(curve.columns[name], dtype=np.float64) for name in columns], axis=1)
    values = values[np.isfinite(values[:, :2]).all(axis=1)]
    if most is not None and len(values) > most:
        values = values[np.rint(np.linspace(0, len(values) - 1, most)).astype(np.intp)]
    return [[float(value) if np.isfinite(value) else None for value in row] for row in values]


def _others(curve: Curve) -> list[str]:
    """Columns besides x, ``main`` first."""
    return [curve.main, *(name for name in curve.columns if name not in (curve.x, curve.main))]


def rgb(figure: Figure) -> Image:
    """Draw a figure off screen and return it as uint8 of shape (height, width, 3), on white."""
    from uq_tracking.figures.picture import drawn

    rgba = drawn(figure)
    if (rgba[..., 3] == 255).all():
        return np.ascontiguousarray(rgba[..., :3])
    alpha = rgba[..., 3:].astype(np.float64) / 255.0
    return np.rint(rgba[..., :3] * alpha + 255.0 * (1.0 - alpha)).astype(np.uint8)
