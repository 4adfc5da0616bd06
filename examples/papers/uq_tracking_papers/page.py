"""The page: a section per paper, with each table and figure beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uq_tracking.tables import Cell
from uq_tracking.tables.formats import templates
from uq_tracking_papers.study import (
    ABSENT,
    DEPENDS,
    FAILS,
    HOLDS,
    UNJUDGED,
    VARIES,
    Drawing,
    Finding,
    Item,
    Row,
    Section,
)


@dataclass(frozen=True)
class Paper:
    """A paper and the module that reproduces it by a function ``reproduce(study)``."""

    title: str
    citation: str
    module: str


_MERCI = "a new metric to evaluate the correlation between predictive uncertainty and true error"
PAPERS: dict[str, Paper] = {
    "merci": Paper(f"MeRCI: {_MERCI}", "Moukari, Picard, Simon, Jurie, 2018", "uq_tracking_papers.merci"),
    "n-merci": Paper(
        f"n-MeRCI: {_MERCI}", "Moukari, Simon, Picard, Jurie, IROS 2019", "uq_tracking_papers.n_merci"
    ),
    "gustafsson": Paper(
        "Evaluating Scalable Bayesian Deep Learning Methods for Robust Computer Vision",
        "Gustafsson, Danelljan, Schön, 2020",
        "uq_tracking_papers.gustafsson",
    ),
    "xiong": Paper(
        "Uncertainty Quantification Metrics for Deep Regression",
        "Xiong, Kristoffersson Lind, Forssén, Krüger, 2024",
        "uq_tracking_papers.xiong",
    ),
    "levi": Paper(
        "Evaluating and calibrating uncertainty prediction in regression tasks",
        "Levi, Gispan, Giladi, Fetaya, 2019",
        "uq_tracking_papers.levi",
    ),
}


@dataclass(frozen=True)
class Entry:
    """Our number as a ranked cell, and the paper's beside it."""

    cell: Cell
    paper: Cell

    @property
    def paper_text(self) -> str:
        """The paper's number with the digits printed there."""
        return "" if self.paper.value is None else f"{self.paper.value:.10g}"


@dataclass(frozen=True)
class Grid:
    """A table: ``entries[method][quantity]``, None if there is no row."""

    methods: tuple[str, ...]
    quantities: tuple[str, ...]
    entries: dict[str, dict[str, Entry | None]]


def grid(item: Item, rows: Sequence[Row]) -> Grid | None:
    """The table of an item, in the order in which its numbers were reported; None without any."""
    own = [row for row in rows if row.item == item.name]
    if not own:
        return None
    methods = tuple(dict.fromkeys(row.method for row in own))
    reported = dict.fromkeys(row.quantity for row in own)
    quantities = (
        *(key for key in item.better if key in reported),
        *(key for key in reported if key not in item.better),
    )
    entries: dict[str, dict[str, Entry | None]] = {method: dict.fromkeys(quantities) for method in methods}
    for quantity in quantities:
        column = [row for row in own if row.quantity == quantity]
        ours = _ranks(item, quantity, {row.method: row.ours for row in column})
        theirs = _ranks(item, quantity, {row.method: row.paper_value for row in column})
        for row in column:
            interval = None if row.low is None or row.high is None else (row.low, row.high)
            entries[row.method][quantity] = Entry(
                _cell(row.ours, ours, row.method, interval), _cell(row.paper_value, theirs, row.method)
            )
    return Grid(methods, quantities, entries)


def _cell(
    value: float | None, ranks: dict[str, int], method: str, interval: tuple[float, float] | None = None
) -> Cell:
    worst = max(ranks.values(), default=None)
    rank = ranks.get(method)
    last = rank is not None and rank == worst and rank > 1
    return Cell(value, interval=interval, rank=rank, worst_rank=worst, mark="worst" if last else None)


def _ranks(item: Item, quantity: str, values: dict[str, float | None]) -> dict[str, int]:
    """Rank of each method that is not a bound; equal values share the better rank."""
    direction = item.better.get(quantity)
    if direction is None:
        return {}
    sign = 1.0 if direction == "lower" else -1.0
    judged = {
        method: sign * value
        for method, value in values.items()
        if value is not None and method not in item.bounds
    }
    return {method: 1 + sum(other < value for other in judged.values()) for method, value in judged.items()}


@dataclass(frozen=True)
class Shown:
    """An item with its table and drawings."""

    item: Item
    paragraphs: tuple[str, ...]
    grid: Grid | None
    drawings: tuple[Drawing, ...]


@dataclass(frozen=True)
class Chapter:
    """A paper and its results, item by item."""

    key: str
    paper: Paper
    section: Section
    shown: tuple[Shown, ...]


def chapter(section: Section) -> Chapter:
    """A section as shown on the page."""
    shown = []
    for item in section.items:
        if item.status == ABSENT:
            continue
        drawings = tuple(drawing for drawing in section.drawings if drawing.item == item.name)
        paragraphs = tuple(filter(None, item.text.split("\n\n")))
        shown.append(Shown(item, paragraphs, grid(item, section.rows), drawings))
    return Chapter(section.paper, PAPERS[section.paper], section, tuple(shown))


VERDICTS = {
    HOLDS: "holds",
    DEPENDS: "depends",
    FAILS: "does not hold",
    UNJUDGED: "cannot be judged here",
    VARIES: "varies with the seeds",
}
"""What the page says of each class of claims."""


def counts(finding: Finding) -> list[str]:
    """In how many of the seeds a claim came out true, for each variant, such as "18 of 20"."""
    return [
        f"{round(share * finding.seeds)} of {finding.seeds}" + (f": {name}" if name else "")
        for name, share in finding.variants.items()
    ]


def page(sections: Sequence[Section]) -> str:
    """The page of all sections; it loads only the figures beside it."""
    template = templates("uq_tracking_papers").get_template("page.html")
    return template.render(
        chapters=[chapter(section) for section in sections], verdicts=VERDICTS, counts=counts
    )
