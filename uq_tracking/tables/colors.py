"""Colours of ranks: from yellow for the best to red, as in MeRCI (2018), table 1; the worst is grey."""

from __future__ import annotations

from uq_tracking.tables.model import Cell

BEST, WORST = (255, 221, 64), (222, 84, 60)
GREY = "#a8a8a8"
UNMARKED = 0.55
"""How far towards white the colour of a method that ties with the best is faded."""


def rank_color(cell: Cell) -> str | None:
    """The colour of a cell as ``#rrggbb``; None if nothing is ranked."""
    if cell.place is None:
        return None
    if cell.mark == "worst":
        return GREY
    mixed = [a + (b - a) * cell.place for a, b in zip(BEST, WORST, strict=True)]
    if cell.mark == "tied":
        mixed = [part + (255 - part) * UNMARKED for part in mixed]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def rank_style(cell: Cell) -> str:
    """The style of a cell in a terminal."""
    color = rank_color(cell)
    return "" if color is None else f"{'bold ' if cell.best else ''}black on {color}"
