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
KEYS = (RANKED_BY, "ause_rmse", "spearman", "crps", "nll", "coverage_95", "rmse")
BEST, WORST, BOUND = "bold green", "red", "dim"

BOUNDS: dict[str, Mapping[str, float]] = {
    "oracle": {"n_merci": 0.0, "ause_rmse": 0.0, "spearman": 1.0},
    "constant": {"n_merci": 1.0},
}
"""Scores of an uncertainty equal to the error, and of one that is the same everywhere, for any prediction."""


def comparison_table(reports: Mapping[str, Report]) -> Table:
    """Lay the reports out as one row each, the best by n-MeRCI first, with the oracle and the constant as bounds."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("\n\nmethod", no_wrap=True)
    for key in KEYS:
        table.add_column(_heading(registry()[key], reports), justify="right", no_wrap=True)
    marks = {key: _marks(registry()[key], reports) for key in KEYS}
    rows = BOUNDS | {name: report.scores for name, report in reports.items()}
    for name in ranking(rows):
        cells = (Text(_shown(rows[name], key), style=marks[key].get(name, "")) for key in KEYS)
        table.add_row(name, *cells, style=BOUND if name in BOUNDS else "")
    return table


def ranking(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Names of the rows, the best by n-MeRCI first; those without it last."""
    loss = registry()[RANKED_BY].loss
    return sorted(rows, key=lambda name: loss(rows[name].get(RANKED_BY, float("inf"))))


def _heading(metric: Metric, reports: Mapping[str, Report]) -> str:
    """The key, its unit, and which values are better, one below the other."""
    target = next((report.settings.get("unit") for report in reports.values()), None)
    return "\n".join((metric.key, unit_text(metric.unit, target), better_text(metric)))


def _marks(metric: Metric, reports: Mapping[str, Report]) -> dict[str, str]:
    """Styles of the best and of the worst report; none where all are alike."""
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


def _shown(scores: Mapping[str, float], key: str) -> str:
    return f"{scores[key]:.3g}" if key in scores else "-"
