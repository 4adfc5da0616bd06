"""The methods beside each other, ranked, with the best and the worst marked: MeRCI (2018), table 1."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from uq_tracking.metrics.registry import Metric, registry
from uq_tracking.report import Report
from uq_tracking.tables import better_text, unit_text

RANKED_BY = "n_merci"
FORMATS = {
    RANKED_BY: ".3f",
    "ause_rmse": ".3f",
    "spearman": ".3f",
    "crps": ".1f",
    "nll": "#.3g",
    "coverage_95": ".3f",
    "rmse": ".1f",
}
"""The scores shown and how: the terrain's fit into 80 columns."""
BOUND = "dim"

Mark = tuple[str, str]
"""A sign behind the number, for terminals without colour and eyes without it, and a style."""

BEST, WORST, PLAIN = ("*", "bold green"), ("!", "red"), (" ", "")

BOUNDS: dict[str, Mapping[str, float]] = {
    "oracle": {"n_merci": 0.0, "ause_rmse": 0.0, "spearman": 1.0},
    "constant": {"n_merci": 1.0},
}
"""Scores of an uncertainty equal to the error, and of one that is the same everywhere, for any prediction."""


def comparison_table(reports: Mapping[str, Report]) -> Table:
    """Lay the reports out as one row each, the best by n-MeRCI first, with the oracle and the constant as bounds."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    table.caption, table.caption_justify = f"by {RANKED_BY}; * best, ! worst", "left"
    headings = {key: _heading(registry()[key], reports) for key in FORMATS}
    marks = {key: _marks(registry()[key], reports) for key in FORMATS}
    rows = BOUNDS | {name: report.scores for name, report in reports.items()}
    table.add_column("\n\nmethod", no_wrap=True)
    for heading in headings.values():
        table.add_column("\n".join(heading), no_wrap=True)
    for name in ranking(rows):
        cells = (
            _cell(rows[name].get(key), FORMATS[key], marks[key].get(name, PLAIN), width=len(headings[key][0]))
            for key in FORMATS
        )
        table.add_row(name, *cells, style=BOUND if name in BOUNDS else "")
    return table


def ranking(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Names of the rows, the best by n-MeRCI first; those without it last."""
    loss = registry()[RANKED_BY].loss
    return sorted(rows, key=lambda name: loss(rows[name].get(RANKED_BY, float("inf"))))


def _heading(metric: Metric, reports: Mapping[str, Report]) -> list[str]:
    """The key, its unit, and which values are better: three lines of one width."""
    target = next((report.settings.get("unit") for report in reports.values()), None)
    lines = (metric.key, unit_text(metric.unit, target), better_text(metric))
    width = max(len(line) for line in lines)
    return [line.rjust(width) for line in lines]


def _marks(metric: Metric, reports: Mapping[str, Report]) -> dict[str, Mark]:
    """Marks of the best and of the worst report; none where all are alike."""
    losses = {
        name: metric.loss(report.scores[metric.key])
        for name, report in reports.items()
        if metric.key in report.scores
    }
    if len(set(losses.values())) < 2:
        return {}
    return {
        max(losses, key=lambda name: losses[name]): WORST,
        min(losses, key=lambda name: losses[name]): BEST,
    }


def _cell(value: float | None, form: str, mark: Mark, width: int) -> Text:
    """The number and its mark, right-aligned by hand: rich strips the space that stands for no mark."""
    sign, style = mark
    text = "-" if value is None else format(value, form).rstrip(".")
    return Text(f"{text}{sign}".rjust(width), style=style)
