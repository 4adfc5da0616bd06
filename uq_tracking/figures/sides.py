"""Words "overconfident" and "underconfident" on the two sides of a diagonal, where nothing else is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection

from uq_tracking.figures import style
from uq_tracking.figures.style import FloatArray, text_width

STEPS = 80
"""Number of points that represent a line, or an outline."""
SIDE, ROOM = 200.0, 3.0
"""Size of the smallest figure's axes, and padding around a word, in points."""
LEFT, RIGHT, BOTTOM, TOP = 0.02, 0.98, 0.02, 0.97
"""Where a word may be placed, as shares of the axes."""


def name_side(ax: Axes, x: float, y: float, text: str, *, over: bool, **place: Any) -> None:
    """Name one side of a diagonal, at axes coordinates."""
    color = style.OVERCONFIDENT_TEXT if over else style.UNDERCONFIDENT_TEXT
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1.0}
    look: dict[str, Any] = {"fontsize": style.TICKS, "zorder": 4, "in_layout": False}  # it is inside the axes
    ax.text(x, y, text, color=color, bbox=ground, transform=ax.transAxes, **look, **place)


def name_sides(ax: Axes) -> None:
    """Label the sides of the diagonal of square axes, each where the drawing leaves most room, if any.

    A word goes over bars or bands if there is no other place, and is left out if only lines are left.
    """
    bars = [each for each in ax.collections if isinstance(each, LineCollection)]
    seen = _points(ax, [*(line for line in ax.lines if line.get_linestyle() != "None"), *bars])
    faint = [each for each in ax.collections if each not in bars]
    everything = np.concatenate([seen, _points(ax, [*faint, *ax.patches])])
    for over, word in ((True, "overconfident"), (False, "underconfident")):
        bare = np.asarray([text_width(word, style.TICKS), style.TICKS])
        for room, avoided in ((ROOM, everything), (0.0, everything), (0.0, seen)):
            size = (bare + 2 * room) / SIDE
            width, height = size
            usual = (LEFT, TOP) if over else (RIGHT - width, 0.55)
            grid = np.meshgrid(np.linspace(LEFT, RIGHT - width, 16), np.linspace(BOTTOM + height, TOP, 28))
            left, top = (side.ravel() for side in grid)
            own_side = top - height > left + width if over else top < left
            places = np.concatenate([[usual], np.stack([left, top], axis=1)[own_side]])
            middle = places + size * [1, -1] / 2
            apart = (np.abs(middle[:, None, k] - avoided[:, k]) - size[k] / 2 for k in (0, 1))
            clear = np.maximum(*apart).min(axis=1)  # < 0 on a point
            if clear.max() >= 0:
                x, y = places[0 if clear[0] >= 0 else int(np.argmax(clear))].tolist()
                name_side(ax, x + room / SIDE, y - room / SIDE, word, over=over, va="top", ha="left")
                break


def _points(ax: Axes, artists: Iterable[Any]) -> FloatArray:
    """Return points along lines or outlines as shares of the axes, equally many on each segment of one."""
    found = [np.empty((0, 2))]
    for artist in artists:
        for path in artist.get_paths() if isinstance(artist, Collection) else [artist.get_path()]:
            at = np.clip((artist.get_transform() - ax.transAxes).transform(path.vertices), 0, 1)
            where = np.linspace(0, len(at) - 1, STEPS)
            found.append(np.stack([np.interp(where, np.arange(len(at)), side) for side in at.T], axis=1))
    return np.concatenate(found)
