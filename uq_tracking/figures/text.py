"""Text in figures: numbers, units, and names chosen by users."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from matplotlib.font_manager import FontProperties, findfont, get_font

from uq_tracking.formatting import format_number, shorten, shorten_middle, typographic

FAMILY = "DejaVu Sans"
"""Ships with matplotlib, so every machine has it."""


@lru_cache(maxsize=1)
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=FAMILY))).get_charmap())


def printable(text: str) -> str:
    """Replace every character that the font lacks with a box (drawing it would warn)."""
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


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Width in points of a line of text, ignoring kerning."""
    return size * sum(_advance(letter, weight) for letter in printable(text))


@lru_cache(maxsize=4096)
def _advance(letter: str, weight: str) -> float:
    """Advance width of a letter, in font sizes."""
    font = get_font(findfont(FontProperties(family=FAMILY, weight=weight)))
    font.set_size(1000, 72)
    return float(font.load_char(ord(letter)).linearHoriAdvance) / 65536 / 1000


def wrapped(text: str, size: float, width: float, weight: str = "normal") -> list[str]:
    """Break a sentence into lines of at most this many points."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, weight) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def cut(text: str, size: float, width: float, weight: str = "normal") -> str:
    """Cut a line of text to this many points, with an ellipsis for what is left out."""
    return _fitting(shorten, text, size, width, weight)


def cut_middle(text: str, size: float, width: float, weight: str = "normal") -> str:
    """Cut a line of text likewise, but keep both ends."""
    return _fitting(shorten_middle, text, size, width, weight)


def _fitting(shorter: Callable[[str, int], str], text: str, size: float, width: float, weight: str) -> str:
    letters = len(text)
    while letters > 1 and text_width(shorter(text, letters), size, weight) > width:
        letters -= 1 + letters // 64
    return shorter(text, letters)
