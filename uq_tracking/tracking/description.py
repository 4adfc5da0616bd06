"""What a run's page tells its reader: the verdict, and the headline scores in a small table."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace

from uq_tracking import plugins
from uq_tracking.metrics.registry import headline_or_all
from uq_tracking.report import Report
from uq_tracking.tables.markup import markdown_escaped, table_markdown
from uq_tracking.tables.report import report_table
from uq_tracking.tracking.names import figure_name

COLUMNS = ("value", "unit", "better", "interval", "by chance")


@dataclass(frozen=True)
class Description:
    """Text for the page of a run.

    Attributes
    ----------
    lead : str
        The verdict, in Markdown.
    body : str
        The headline scores, in Markdown.
    verdict : str
        The verdict, as plain text.
    split : str or None
        The split it describes; each has its own part.
    figures : dict of str
        Figures that belong to it, if the run holds them: titles by name, without suffix.
    """

    lead: str
    body: str
    verdict: str
    split: str | None = None
    figures: dict[str, str] | None = None

    @property
    def text(self) -> str:
        """All of it except the figures."""
        return f"{self.lead}\n\n{self.body}"


def description(report: Report, split: str | None = None) -> Description:
    """Describe a report, verdict first: trackers show three lines until asked for more."""
    table = report_table(report, headline_or_all(report.task, report.scores))
    named = {column.key: column for column in table.columns}
    shown = tuple(named[key] for key in COLUMNS if key in named)
    plain = replace(table, columns=shown, lead=(), notes=(), remarks=report.verdict.caveats)
    of_split = f"**{markdown_escaped(split)}:** " if split else ""
    title = f"{table.title}; *by chance*: what a calibrated forecast would score on the same amount of data."
    figures = {
        figure_name(spec.name, split): spec.name.replace("_", " ")
        for spec in plugins.figures(report.task).values()
        if spec.default and spec.has_curves(report.curves)
    }
    lead = f"{of_split}{markdown_escaped(report.verdict.text)}"
    return Description(lead, f"{table_markdown(plain)}\n{title}", report.verdict.text, split, figures)


@dataclass(frozen=True)
class Dataset:
    """The truth that was scored; runs with the same digest are comparable."""

    name: str
    digest: str
    n: int


def dataset(report: Report, split: str | None = None) -> Dataset:
    """The truth of a report: equal for equal truth, whatever its order or batching."""
    targets = {name: f"{value:.6g}" for name, value in report.provenance.get("targets", {}).items()}
    text = json.dumps([report.counts["n"], targets], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Dataset(split or "truth", digest, report.counts["n"])
