"""Texts of the figures: numbers for a person, units, and a user's own words."""

from __future__ import annotations

import math
from functools import lru_cache

from matplotlib.font_manager import FontProperties, findfont, get_font

FAMILY = "DejaVu Sans"
"""Ships with matplotlib, so every machine has it."""
MINUS = "\N{MINUS SIGN}"


def clipped(text: str, letters: int) -> str:
    """Cut the text with an ellipsis to at most so many letters."""
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


@lru_cache(maxsize=1)
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=FAMILY))).get_charmap())


def printable(text: str) -> str:
    """Put a box in place of every letter that the font lacks (drawing one would warn)."""
    return "".join(letter if letter == "\n" or ord(letter) in _letters() else "□" for letter in text)


def one_line(text: object) -> str:
    """Put a user's text on one line."""
    return " ".join(str(text).split())


def readable(value: float, digits: int = 3, *, padded: bool = False, compact: bool = False) -> str:
    """Format a number for a person.

    ``padded`` keeps trailing zeros; ``compact`` writes large round numbers with an exponent.

    Examples
    --------
    >>> [readable(x) for x in (0.0123456, 0.7, 12.3456, 1234567.0, 0.0, 1.5e-7, 2e9)]
    ['0.0123', '0.7', '12.3', '1,234,567', '0', '1.5e−7', '2e9']
    >>> readable(0.7, padded=True)
    '0.700'
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    size = abs(value)
    if compact and size >= 1e5:
        text = f"{value:.{digits - 1}e}"
        mantissa, _, exponent = text.partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}e{int(exponent)}".replace("-", MINUS)
    if 10.0 ** (digits - 1) <= size < 1e8:
        return f"{value:,.0f}".replace("-", MINUS)
    text = f"{value:{'#' * padded},.{digits}g}"
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}".replace("-", MINUS) if exponent else text.replace("-", MINUS)


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
    return f"{label} [{clipped(one_line(unit), 16)}]" if unit not in (None, "") else label
