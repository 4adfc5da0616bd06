"""What a reproduction of a paper found: rows, findings and drawings, item by item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Row:
    """One number of ours beside the paper's.

    Attributes
    ----------
    item : str
        Table or figure of the paper, such as "table 1".
    method, quantity : str
    ours : float or None
        None if the quantity is undefined.
    paper_value : float or None
        None if the paper prints no number.
    low, high : float or None
        Range over repeats.
    """

    item: str
    method: str
    quantity: str
    ours: float | None
    paper_value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, whether it held here, and the evidence."""

    claim: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    Attributes
    ----------
    name : str
        "table 1".
    title : str
    text : str
        What was done, and where and why it differs from the paper; paragraphs are separated by an empty line.
    better : dict of {"lower", "higher"}
        Quantities that rank the methods.
    bounds : tuple of str
        Methods that are bounds, which are not ranked.
    """

    name: str
    title: str
    text: str = ""
    better: Mapping[str, Better] = field(default_factory=dict)
    bounds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """A figure as a PNG file beside the page."""

    item: str
    file: str
    caption: str


@dataclass(frozen=True)
class Section:
    """All results for one paper.

    Attributes
    ----------
    paper : str
        Key of the paper.
    about : dict
        Size, seed, date, versions and seconds.
    """

    paper: str
    about: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()
    drawings: tuple[Drawing, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Section:
        """Inverse of ``to_dict``."""
        return cls(
            values["paper"],
            dict(values["about"]),
            tuple(Item(**{**item, "bounds": tuple(item["bounds"])}) for item in values["items"]),
            tuple(Row(**row) for row in values["rows"]),
            tuple(Finding(**finding) for finding in values["findings"]),
            tuple(Drawing(**drawing) for drawing in values["drawings"]),
        )
