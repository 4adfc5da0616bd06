"""The comparison itself: its facts, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uq_tracking.checks import as_names, check_text, path_of, whole_number
from uq_tracking.comparison.agreement import Agreement, agreement
from uq_tracking.comparison.bounds import Bound, bounds
from uq_tracking.comparison.differences import Difference
from uq_tracking.comparison.metrics import sorted_by
from uq_tracking.comparison.overlays import Overlay, overlays
from uq_tracking.comparison.runs import ScoredRun, SkippedRun, by_method
from uq_tracking.comparison.table import difference_table, disagreement, mean_loss, score_table, without_value
from uq_tracking.comparison.verdicts import MethodVerdict, method_verdicts
from uq_tracking.errors import FileFormatError, SettingsError, UnknownMetricError, closest
from uq_tracking.formatting import shorten
from uq_tracking.metrics.registry import Metric
from uq_tracking.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, RenderResult

    from uq_tracking.comparison.maps import MapCase
    from uq_tracking.report import Report
    from uq_tracking.tables.terminal import View

MOST_VERDICTS = 12
"""Maximum number of methods whose verdict is printed above a table."""

MetricKeys = Iterable[str] | Literal["all"] | None


@dataclass(frozen=True)
class Comparison:
    """Uncertainty methods side by side.

    Everything shown is derived from the attributes below: ``table``, ``bounds``, ``agreement`` and ``curves`` are
    computed on first access.

    Attributes
    ----------
    task : {"regression", "classification"}
    runs : tuple of ScoredRun
        The runs with their reports.
    metrics : tuple of Metric
        Columns of the table.
    headline : tuple of str
        Keys of those shown by default.
    level : float
        Confidence level of the intervals of differences.
    baseline : str or None
        The method that all others are compared with.
    differences : tuple of Difference
        Differences of every method to the baseline.
    ties : tuple of Difference
        Differences of every method to the best one, per metric.
    maps : tuple of MapCase
        The same cases as predicted by every method.
    warnings : tuple of str
        Ways in which the runs were not scored alike.
    skipped : tuple of SkippedRun
        Runs that are not compared, with the reasons.
    sources : tuple of str
        What was compared, as the user named it.
    """

    task: str
    runs: tuple[ScoredRun, ...]
    metrics: tuple[Metric, ...]
    headline: tuple[str, ...]
    level: float = 0.95
    baseline: str | None = None
    differences: tuple[Difference, ...] = ()
    ties: tuple[Difference, ...] = ()
    maps: tuple[MapCase, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped: tuple[SkippedRun, ...] = ()
    sources: tuple[str, ...] = ()

    @cached_property
    def sorted_by(self) -> Metric | None:
        """The metric that rows are sorted by; None if none judges."""
        return sorted_by(self.metrics, self.shown())

    @cached_property
    def groups(self) -> dict[str, list[ScoredRun]]:
        """The runs of each method; the best method by ``sorted_by`` comes first."""
        groups = by_method(self.runs)
        first = self.sorted_by
        if first is None:
            return groups
        losses = {name: mean_loss(runs, first) for name, runs in groups.items()}
        order = sorted(groups, key=lambda name: (losses[name] is None, losses[name] or 0.0))
        return {name: groups[name] for name in order}

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, the best by ``sorted_by`` first."""
        return tuple(self.groups)

    def shown(self, keys: MetricKeys = None) -> list[Metric]:
        """The metrics to show: the headline, those named, or ``"all"``; UnknownMetricError for others."""
        known = {metric.key: metric for metric in self.metrics}
        wanted = self.headline if keys is None else as_names("metrics", keys)
        if wanted == ("all",):
            return list(self.metrics)
        lacking = [key for key in wanted if key not in known]
        if lacking:
            raise UnknownMetricError(
                f"the comparison has no metric called {', '.join(lacking)}{closest(lacking[0], known)}; "
                f"it has {', '.join(known)}"
            )
        return [known[key] for key in wanted]

    @cached_property
    def ordered_metrics(self) -> tuple[Metric, ...]:
        """All metrics, those of the headline first."""
        first = self.shown()
        return (*first, *(metric for metric in self.metrics if metric not in first))

    @cached_property
    def table(self) -> Table:
        """Methods by metrics: ``table[method][key]`` is a cell; also has rows of bounds and single runs."""
        return score_table(self)

    @cached_property
    def difference_table(self) -> Table:
        """Every method minus the baseline; no rows without a baseline."""
        return difference_table(self)

    def tables(self, metrics: MetricKeys = None) -> list[Table]:
        """The tables to print: scores, and differences if there is a baseline."""
        shown = self.shown(metrics)
        scores = self._chosen(metrics)
        scores = replace(scores, title="", lead=(scores.title, *self._short_verdicts()))
        line = disagreement(self, shown)
        remarks = ([line] if line else []) + list(scores.remarks)
        if not self.differences:
            return [replace(scores, remarks=tuple(remarks))]
        judged = [metric.key for metric in shown if metric.direction is not None]
        differences = replace(self.difference_table.select(judged), remarks=tuple(remarks))
        return [replace(scores, remarks=()), differences]

    @cached_property
    def bounds(self) -> dict[str, dict[str, Bound]]:
        """Scores of an oracle and of a constant uncertainty, by metric."""
        return bounds(self.runs, self.metrics)

    @cached_property
    def verdicts(self) -> dict[str, MethodVerdict]:
        """Whether each method is over- or underconfident, and whether it knows where it errs."""
        return method_verdicts(self.groups)

    @cached_property
    def agreement(self) -> Agreement:
        """How similarly the metrics rank the methods."""
        ranks = {
            metric.key: {
                name: rank for name in self.methods if (rank := self.table[name][metric.key].rank) is not None
            }
            for metric in self.ordered_metrics
        }
        return agreement(ranks)

    @cached_property
    def curves(self) -> dict[str, Overlay]:
        """Curves of all runs by name, ready to be overlaid."""
        return overlays(self.runs)

    def plot(self, curve: str = "overview", *, ax: Axes | None = None) -> Figure:
        """Overlay a curve of all runs, with methods in the colors of the page.

        Parameters
        ----------
        curve : str, optional
            One of ``comparison.curves``, such as ``"reliability"``; ``"overview"`` shows four of them on one sheet.
        ax : matplotlib.axes.Axes, optional
            Axes to draw a single curve on; by default a new figure, not registered with pyplot.

        Returns
        -------
        matplotlib.figure.Figure
            Shown inline in notebooks; save it with ``savefig``.

        Raises
        ------
        SettingsError
            The runs have no such curve, or ``ax`` is given for the overview.
        """
        from uq_tracking.figures.compared_curves import draw

        check_text("curve", curve, "'reliability'")
        return draw(self, curve, ax)

    @cached_property
    def tied_with_best(self) -> Mapping[str, frozenset[str]]:
        """Methods not distinguishable from the best one, which is included, by metric.

        Equally good methods are all included in a share ``level`` of cases, however many there are.
        """
        found: dict[str, set[str]] = {}
        for tie in self.ties:
            if tie.verdict != "unknown":
                found.setdefault(tie.metric, set()).add(tie.reference)
            if tie.verdict == "indistinguishable":
                found[tie.metric].add(tie.method)
        return {key: frozenset(names) for key, names in found.items()}

    def difference(self, method: str, key: str) -> Difference | None:
        """The difference of a method to the baseline in one metric, or None."""
        return self._differences.get((method, key))

    @cached_property
    def _differences(self) -> dict[tuple[str, str], Difference]:
        return {(found.method, found.metric): found for found in self.differences}

    @property
    def unit(self) -> str | None:
        """Unit of the target, or None."""
        units = {run.report.settings.get("unit") for run in self.runs}
        unit = units.pop() if len(units) == 1 else None
        return None if unit is None else str(unit)

    def _short_verdicts(self) -> list[str]:
        """One line for each of the first methods, with names shortened."""
        lines = [f"{shorten(name, 40)}: {verdict.text}" for name, verdict in self.verdicts.items()]
        rest = len(lines) - MOST_VERDICTS
        return lines if rest <= 0 else [*lines[:MOST_VERDICTS], f"and {rest} more, see verdicts"]

    def to_text(self, metrics: MetricKeys = None, *, width: int = 100) -> str:
        """Aligned plain text; tables wider than ``width`` are split, and long names shortened."""
        from uq_tracking.tables.terminal import tables_text

        if whole_number("width", width) < 1:
            raise SettingsError(f"width is {width}; pass a number of characters, 1 or above")
        return tables_text(self.tables(metrics), width)

    def to_rich(self, metrics: MetricKeys = None) -> View:
        """The text with rank colors, for ``rich``'s ``console.print``; as wide as the console."""
        from uq_tracking.tables.terminal import View

        return View(self.tables(metrics))

    def to_markdown(self, metrics: MetricKeys = None) -> str:
        """A Markdown table: bold is best, italic is worst, the rank in brackets."""
        from uq_tracking.tables.markup import table_markdown

        return table_markdown(self._chosen(metrics))

    def to_latex(self, metrics: MetricKeys = None) -> str:
        r"""A LaTeX table for ``booktabs`` and ``\usepackage[table]{xcolor}``: colors from best to worst."""
        from uq_tracking.tables.markup import table_latex

        return table_latex(self._chosen(metrics))

    def to_csv(self, metrics: MetricKeys = "all") -> str:
        """One line per method and metric, with full digits."""
        from uq_tracking.tables.markup import table_csv

        return table_csv(self._chosen(metrics), self.difference_table, self.baseline)

    def _chosen(self, metrics: MetricKeys) -> Table:
        """Bounds and methods, for the metrics to show."""
        keys = [metric.key for metric in self.shown(metrics)]
        found = self.table.of_kinds("bound", "method").select(keys)
        missing = without_value(found).items()
        signs = (f"{sign}: {meaning}; to_csv() and the page say why" for sign, meaning in missing)
        return replace(found, notes=(*found.notes, *signs))

    def to_json(self, path: str | Path | None = None) -> str:
        """Return strict JSON that ``from_json`` reads back; also write it to ``path`` if given."""
        from uq_tracking.comparison.files import comparison_json

        text = comparison_json(self)
        if path is not None:
            path_of(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> Comparison:
        """Read ``to_json``'s text, or the file at the path of one; FileFormatError for anything else."""
        from uq_tracking.comparison.files import comparison_dict, comparison_fields

        found = cls(**comparison_fields(source))
        try:
            json.dumps(comparison_dict(found), allow_nan=False)
        except Exception as error:  # what cannot be shown is inconsistent
            raise FileFormatError(f"this is a damaged comparison ({error!r})") from error
        return found

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one self-contained page that works offline; also write it to ``path`` if given."""
        from uq_tracking.comparison.page import comparison_page

        page = comparison_page(self)
        if path is not None:
            path_of(path).write_text(page, encoding="utf-8")
        return page

    def log(self, run: Any = None) -> None:
        """Store the page in a tracker, as the file ``uq_comparison.html`` at the root of a run.

        Parameters
        ----------
        run : optional
            As for `uq_tracking.log`: a tracker's run object or id, an address (``mlflow:EXPERIMENT`` creates a run
            there), or a list of these; by default the active runs.

        Raises
        ------
        BackendError
            No run is given or active, or a tracker did not take the page.
        """
        from uq_tracking.comparison.page import log_page

        log_page(self, run)

    def report(self, label: str) -> Report:
        """The report of the run with this label; KeyError if there is none."""
        return {run.label: run.report for run in self.runs}[label]

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"Comparison({len(self.groups)} methods, {len(self.runs)} runs, {len(self.metrics)} metrics)"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.to_rich()

    def _repr_html_(self) -> str:
        from uq_tracking.tables.html import tables_html

        return tables_html(self.tables())
