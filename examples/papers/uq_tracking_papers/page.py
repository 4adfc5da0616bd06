"""The page: a section per paper, with each table and figure beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uq_tracking.tables.html import templates
from uq_tracking_papers.papers import PAPERS, Paper
from uq_tracking_papers.results import Drawing, Item, Section
from uq_tracking_papers.tables import Grid, grid


@dataclass(frozen=True)
class Shown:
    """An item with its table and drawings."""

    item: Item
    paragraphs: tuple[str, ...]
    grid: Grid | None
    drawings: tuple[Drawing, ...]


@dataclass(frozen=True)
class Chapter:
    """A paper and what was found."""

    key: str
    paper: Paper
    section: Section
    shown: tuple[Shown, ...]


def chapter(section: Section) -> Chapter:
    """A section as shown on the page."""
    shown = tuple(
        Shown(
            item,
            tuple(part for part in item.text.split("\n\n") if part.strip()),
            grid(item, section.rows),
            tuple(drawing for drawing in section.drawings if drawing.item == item.name),
        )
        for item in section.items
    )
    return Chapter(section.paper, PAPERS[section.paper], section, shown)


def page(sections: Sequence[Section]) -> str:
    """The page of all sections; it loads only the figures beside it."""
    environment = templates("uq_tracking_papers")
    return environment.get_template("page.html").render(chapters=[chapter(one) for one in sections])
