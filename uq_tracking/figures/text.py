"""Text in figures: numbers, units, and names that users chose."""

from __future__ import annotations

from functools import lru_cache

from matplotlib.font_manager import FontProperties, findfont, get_font

from uq_tracking.formatting import format_number, one_line, shorten, typographic

FAMILY = "DejaVu Sans"
"""Ships with matplotlib, so every machine has it."""


@lru_cache(maxsize=1)
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=FAMILY))).get_charmap())


def printable(text: str) -> str:
    """Put a box in place of every character that the font lacks (drawing one would warn)."""
    return "".join(letter if letter == "\n" or ord(letter) in _letters() else "□" for letter in text)


def readable(value: float, digits: int = 3, *, padded: bool = False, compact: bool = False) -> str:
    """Format a number for a figure; see `uq_tracking.formatting.format_number`.

    Examples
    --------
    >>> [readable(x) for x in (0.0123456, 0.7, 12.3456, 1234567.0, 0.0, 1.5e-7, 2e9)]
    ['0.0123', '0.7', '12.3', '1,234,567', '0', '1.5e−7', '2e9']
    >>> readable(0.7, padded=True)
    '0.700'
    """
    return typographic(format_number(value, digits, padded=padded, compact=compact))


def counted(value: float) -> str:
    """Format a count.

    Examples
    --------
    >>> counted(20000.0)
    '20,000'
    """
    return f"{value:,.0f}"


def with_unit(label: str, unit: object) -> str:
    """Add the unit to an axis label, in brackets, if there is one."""
    return f"{label} [{shorten(one_line(unit), 16)}]" if unit not in (None, "") else label
