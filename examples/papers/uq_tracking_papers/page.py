"""The page: a section per paper, with each table and figure beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uq_tracking.tables import Cell, Mark
from uq_tracking.tables.formats import templates
from uq_tracking_papers.study import DEPENDS, FAILS, HOLDS, UNJUDGED, VARIES, Finding, Item, Row, Section


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
    quantities = tuple(dict.fromkeys([*(key for key in item.better if key in reported), *reported]))
    entries: dict[str, dict[str, Entry | None]] = {method: dict.fromkeys(quantities) for method in methods}
    for quantity in quantities:
        column = {row.method: row for row in own if row.quantity == quantity}
        theirs = _cells(item, quantity, {name: row.paper_value for name, row in column.items()})
        for name, cell in _cells(item, quantity, {name: row.ours for name, row in column.items()}).items():
            low, high = column[name].low, column[name].high
            interval = None if low is None or high is None else (low, high)
            entries[name][quantity] = Entry(replace(cell, interval=interval), theirs[name])
    return Grid(methods, quantities, entries)


def _cells(item: Item, quantity: str, values: dict[str, float | None]) -> dict[str, Cell]:
    """Cells with the ranks of the methods that are no bounds; equal values share the better rank."""
    direction = item.better.get(quantity)
    sign = -1.0 if direction == "higher" else 1.0
    judged = {
        method: sign * value
        for method, value in values.items()
        if direction and value is not None and method not in item.bounds
    }
    ranks = {method: 1 + sum(other < value for other in judged.values()) for method, value in judged.items()}
    worst = max(ranks.values(), default=None)
    found = {}
    for method, value in values.items():
        rank = ranks.get(method)
        mark: Mark | None = (
            None if worst == 1 else "best" if rank == 1 else "worst" if rank == worst else None
        )
        found[method] = Cell(value, rank=rank, worst_rank=worst, mark=None if rank is None else mark)
    return found


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
    return template.render(sections=sections, papers=PAPERS, verdicts=VERDICTS, counts=counts, grid=grid)
