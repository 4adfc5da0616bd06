"""Small pieces of HTML; every text that comes from a user or a run is escaped here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

NOTHING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
SHADES = 10
"""Steps from the best rank's colour to the worst's; the style sheet has a class for each."""
COLORS = 8
"""Colours of the style sheet; further methods repeat them with other dashes."""


def text(value: object) -> str:
    """A text on one line, escaped."""
    return escape(" ".join(str(value).split()))


def tag(name: str, content: str, **attributes: object) -> str:
    """An element; ``content`` is HTML already, attributes are escaped, those that are None or False left out.

    Trailing underscores are dropped and the others become hyphens: ``class_``, ``data_key``.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is True:
            parts.append(_attribute(key))
        elif value is not None and value is not False:
            parts.append(f'{_attribute(key)}="{escape(str(value))}"')
    return f"<{' '.join(parts)}>{content}</{name}>"


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def joined(parts: Iterable[str]) -> str:
    """Pieces of HTML behind one another."""
    return "".join(parts)


def table(head: Iterable[str], bodies: Iterable[Iterable[str]], **attributes: object) -> str:
    """A table of header rows and bodies of rows."""
    inner = tag("thead", joined(head)) + joined(tag("tbody", joined(rows)) for rows in bodies)
    return tag("table", inner, **attributes)


def shade(place: float | None) -> str | None:
    """The class of a rank's colour."""
    return None if place is None else f"s{round(SHADES * place)}"


def swatch(index: int) -> str:
    """The small square in a method's colour."""
    return f'<span class="swatch c{index % COLORS} d{min(index // COLORS, 3)}" aria-hidden="true"></span>'
