"""The function `compare`, and what it returns: uncertainty methods side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from uq_tracking.checks import check_callable, check_text, named_options, read_json, whole_number, written
from uq_tracking.comparison import comparability
from uq_tracking.comparison.differences import (
    ONLY_COMPONENTS,
    ONLY_PREDICTIONS,
    ORDER,
    SKILLS,
    Pairs,
    answer,
    paired_by,
    skill_sentences,
)
from uq_tracking.comparison.facts import (
    Facts,
    MetricKeys,
    headline_keys,
    metric_from_dict,
    metric_to_dict,
    metrics_of,
)
from uq_tracking.comparison.maps import map_cases
from uq_tracking.comparison.page import comparison_page
from uq_tracking.comparison.runs import (
    RunSource,
    SkippedRun,
    by_method,
    by_order,
    by_part,
    collect,
    data_of,
)
from uq_tracking.comparison.table import difference_table, disagreement, score_table, without_value
from uq_tracking.errors import BackendError, FileFormatError, SettingsError, closest
from uq_tracking.formatting import encodable, listed, one_line, shorten
from uq_tracking.runs.read import LoggedRun
from uq_tracking.settings import check_level
from uq_tracking.streams.map_samples import checked_maps
from uq_tracking.tables import Table
from uq_tracking.tables.formats import table_csv, table_latex, table_markdown, tables_html
from uq_tracking.tables.terminal import View, tables_text
from uq_tracking.tracking.cases import Maps
from uq_tracking.tracking.names import COMPARISON_NAME, PAGE_FILE, check_split
from uq_tracking.tracking.places import scratch_folder
from uq_tracking.tracking.resolve import targets_of
from uq_tracking.tracking.writer import RunWriter
from uq_tracking.typed import DAMAGE, cached_property, plain, record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, RenderResult

    from uq_tracking.report import Report

FORMAT = "uq_tracking.comparison"
SCHEMA = 1
"""Version of the file format; increased when older readers would misread new files."""
MOST_VERDICTS = 12
"""Maximum number of methods whose verdict is printed above a table."""


@dataclass(frozen=True)
class Comparison(Facts):
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
    answer : tuple of str
        Sentences: which methods are better by more than chance, and by how much, in the CRPS if it is shown, else in
        the score by which rows are sorted; which cannot be told apart; and what this rests on.
    maps : tuple of MapCase
        The same cases as predicted by every method.
    warnings : tuple of str
        Ways in which the runs were not scored alike.
    skipped : tuple of SkippedRun
        Runs that are not compared, with the reasons.
    sources : tuple of str
        What was compared, as the user named it.
    """

    @cached_property
    def table(self) -> Table:
        """Methods by metrics: ``table[method][key]`` is a cell; also has rows of bounds and single runs."""
        return score_table(self)

    @cached_property
    def difference_table(self) -> Table:
        """Every method minus the baseline; no rows without a baseline."""
        return difference_table(self)

    def tables(self, metrics: MetricKeys = None) -> list[Table]:
        """Return the tables to print: scores, and differences if there is a baseline."""
        shown, scores = self.shown(metrics), self._chosen(metrics)
        lines = [f"{shorten(name, 40)}: {verdict.text}" for name, verdict in self.verdicts.items()]
        if len(lines) > MOST_VERDICTS:
            lines[MOST_VERDICTS:] = [f"and {len(lines) - MOST_VERDICTS} more, see verdicts"]
        line = disagreement(self, shown)
        remarks = (*([line] if line else []), *scores.remarks)
        scores = replace(scores, title="", lead=(scores.title, *self.answer, *lines), remarks=())
        if not self.differences:
            return [replace(scores, remarks=remarks)]
        judged = [metric.key for metric in shown if metric.direction is not None]
        known = {column.key for column in self.difference_table.columns}
        skills = [SKILLS[key] for key in judged if SKILLS.get(key) in known]
        return [scores, replace(self.difference_table.select([*skills, *judged]), remarks=remarks)]

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
        from uq_tracking.figures.compared import draw

        check_text("curve", curve, "'reliability'")
        return draw(self.curves, self.looks, curve, ax)

    def to_text(self, metrics: MetricKeys = None, *, width: int = 100) -> str:
        """Aligned plain text; tables wider than ``width`` are split, and long names shortened."""
        if whole_number("width", width) < 1:
            raise SettingsError(f"width is {width}; pass a number of characters, 1 or above")
        return tables_text(self.tables(metrics), width)

    def to_rich(self, metrics: MetricKeys = None) -> View:
        """The text with rank colors, for ``rich``'s ``console.print``; as wide as the console."""
        return View(self.tables(metrics))

    def to_markdown(self, metrics: MetricKeys = None) -> str:
        """A Markdown table: bold is best, italic is worst, the rank in brackets."""
        return table_markdown(self._chosen(metrics))

    def to_latex(self, metrics: MetricKeys = None) -> str:
        r"""A LaTeX table for ``booktabs`` and ``\usepackage[table]{xcolor}``: colors from best to worst."""
        return table_latex(self._chosen(metrics))

    def to_csv(self, metrics: MetricKeys = "all") -> str:
        """One line per method and metric, with full digits."""
        return table_csv(self._chosen(metrics), self.difference_table, self.baseline)

    def _chosen(self, metrics: MetricKeys) -> Table:
        """Return bounds and methods, for the metrics to show."""
        keys = [metric.key for metric in self.shown(metrics)]
        rows = tuple(row for row in self.table.rows if row.kind in ("bound", "method"))
        found = replace(self.table, rows=rows).select(keys)
        missing = without_value(found).items()
        signs = (f"{sign}: {meaning}; to_csv() and the page say why" for sign, meaning in missing)
        return replace(found, notes=(*found.notes, *signs))

    def to_json(self, path: str | Path | None = None) -> str:
        """Return strict JSON that ``from_json`` reads back; also write it to ``path`` if given.

        The entry ``derived`` is for other programs; it is recomputed when read back.
        """
        values = {
            "format": FORMAT,
            "schema": SCHEMA,
            **{item.name: plain(getattr(self, item.name)) for item in fields(self) if item.name != "metrics"},
            "metrics": list(map(metric_to_dict, self.metrics)),
            "derived": {
                "methods": self.methods,
                "table": {name: plain(self.table[name].cells) for name in self.methods},
                "bounds": plain(self.bounds),
                "tied_with_best": {key: sorted(names) for key, names in self.tied_with_best.items()},
                "agreement": {"metrics": self.agreement.keys, "kendall_tau": self.agreement.tau},
                "verdicts": plain(self.verdicts),
            },
        }
        return written(json.dumps(values, allow_nan=False, indent=1), path)

    @classmethod
    def from_json(cls, source: str | Path) -> Comparison:
        """Read ``to_json``'s text, or the file at the path of one; FileFormatError for anything else."""
        values, name = read_json(source), "the text" if "{" in str(source) else str(source)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise FileFormatError(f"{name} is not a uq_tracking comparison")
        if not isinstance(values.get("schema"), int) or values["schema"] > SCHEMA:
            raise FileFormatError(
                f"{name} has schema {values.get('schema')}, but this version reads up to {SCHEMA}; "
                "upgrade uq-tracking"
            )
        try:
            known = {item.name: values[item.name] for item in fields(cls)}
            found = record(cls, {**known, "metrics": list(map(metric_from_dict, known["metrics"]))})
            found.to_json()
        except DAMAGE as error:  # what cannot be shown is inconsistent
            raise FileFormatError(f"{name} is a damaged comparison ({error!r})") from error
        return found

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one self-contained page that works offline; also write it to ``path`` if given."""
        return written(comparison_page(self, self.table, self.to_csv()), path)

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
        targets = targets_of(run, None, name=COMPARISON_NAME)
        if not targets:
            raise BackendError(
                "no tracker has an active run; pass run=, for example mlflow:EXPERIMENT, or write a file with to_html"
            )
        with scratch_folder() as folder:
            path = folder / PAGE_FILE
            self.to_html(path)
            writers = [RunWriter(target) for target in targets]
            for writer in writers:
                writer.begin([("the comparison", lambda run: run.log_file(path, PAGE_FILE))])
                writer.close()
        problems = [problem for writer in writers if (problem := writer.problem())]
        if problems:
            raise BackendError(" ".join(problems))

    def report(self, label: str) -> Report:
        """The report of the run with this label; KeyError if there is none."""
        return {run.label: run.report for run in self.runs}[label]

    def __str__(self) -> str:
        return encodable(self.to_text())

    def __repr__(self) -> str:
        return f"Comparison({len(self.groups)} methods, {len(self.runs)} runs, {len(self.metrics)} metrics)"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.to_rich()

    def _repr_html_(self) -> str:
        return tables_html(self.tables())


@named_options
def compare(
    *sources: RunSource,
    where: str | None = None,
    split: str | None = None,
    baseline: str | None = None,
    metrics: Iterable[str] | None = None,
    level: float = 0.95,
    maps: Maps = "auto",
    progress: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Compare uncertainty methods side by side: ranks, bounds, differences, agreement, curves and maps.

    Runs are grouped by their tag ``uq.method``; the runs of a method differ, say, by seed, and are shown as mean and
    spread. A run without the tag is a method of its own, called by its name. Runs with no report, or a damaged one,
    are listed in ``skipped``.

    Parameters
    ----------
    *sources : str, LoggedRun or mapping of str to Report
        Addresses (``mlflow:EXPERIMENT``, ``mlflow:EXPERIMENT/RUN_ID``, ``wandb:ENTITY/PROJECT``, ``dir:PATH``),
        logged runs, or reports by method; a list of reports stands for several runs of the method.
    where : str, optional
        Filter expression, in the tracker's own syntax.
    split : str, optional
        Which of the runs' splits or outputs to compare. By default what a run holds without a split; if it holds only
        splits or outputs, the only one, or each as its own method.
    baseline : str, optional
        The method to compare the others with, with intervals of the differences.
    metrics : iterable of str, optional
        Keys of the metrics to compare; by default all that the runs have. Rows are sorted by the first judging metric
        given, by default by the first scoring rule.
    level : float
        Confidence level of the intervals.
    maps : "auto", bool, int or list of int
        Which cases of spatial predictions to draw; "auto" draws up to two. This downloads the predictions of one run
        per method; False reads only reports.
    progress : callable, optional
        Called with the name of each run read, and the number read so far.

    Returns
    -------
    Comparison

    Raises
    ------
    BackendError
        There are no runs to compare, or no backend handles an address.
    SettingsError
        The baseline is not one of the methods, or an option is out of range.
    UnknownMetricError
        No run has one of the requested metrics.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> truth, mean = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6]
    >>> good, bad = uq.evaluate(truth, mean, [0.1, 0.2, 0.3, 0.4]), uq.evaluate(truth, mean, [1, 1, 1, 1])
    >>> comparison = uq.compare({"informed": good, "constant": bad}, metrics=["nll", "ause_rmse"])
    >>> comparison.methods, comparison.table["constant"]["nll"].rank
    (('informed', 'constant'), 2)
    """
    check_split(split)
    check_text("baseline", baseline, "the name of a method")
    check_callable("progress", progress)
    check_level(level)
    if not sources:
        raise SettingsError(
            "nothing to compare; pass addresses such as mlflow:EXPERIMENT, or reports by method"
        )
    runs, skipped = collect(sources, where, split, progress)
    if not runs:
        raise BackendError(_nothing(sources, skipped))
    task, groups = runs[0].report.task, by_method(runs)
    if baseline is not None and baseline not in groups:
        raise SettingsError(
            f"baseline {baseline!r} is not a method here; choose from {', '.join(groups)}{closest(baseline, groups)}"
        )
    chosen = comparability.judged(metrics_of(runs, task, metrics), runs)
    data = by_order(runs, data_of(runs))
    left, blocks, refused = paired_by(runs, data)
    pairs = Pairs(groups, left, blocks, level, data)
    parts = [replace(pairs, groups=part) for part in by_part(groups, data)]
    cases = cast(Maps, checked_maps(maps))
    drawn, problems = ((), []) if cases is False else map_cases(groups, cases)
    judging = [metric for metric in chosen if metric.direction is not None]
    found = Comparison(
        task=task,
        runs=tuple(runs),
        metrics=tuple(chosen),
        headline=headline_keys(chosen, runs) if metrics is None else tuple(metric.key for metric in chosen),
        level=level,
        baseline=baseline,
        differences=tuple(
            item for part in parts if baseline in part.groups for item in part.against(str(baseline), judging)
        ),
        ties=tuple(tie for metric in judging for part in parts for tie in part.ties(metric)),
        maps=drawn,
        warnings=(*comparability.warnings(runs), *problems),
        skipped=tuple(skipped),
        sources=tuple(_named(source) for source in sources),
    )
    shown = [metric for metric in found.shown() if metric.direction is not None]
    rules = [metric for metric in shown if metric.family == "scoring"]
    first = [metric for metric in rules if metric.unit == "target" or metric.key in SKILLS]
    ranked = [each for each in comparability.judged(metrics_of(runs, task, None), runs) if each.direction]
    proper = [each for each in ranked if each.family == "scoring" and each.means]
    not_ranked = any(metric.family == "scoring" and metric.direction is None for metric in chosen)
    said: list[str] = []
    for judge in dict.fromkeys(metric for metric in (*first, found.sorted_by, *shown) if metric is not None):
        others = [each for each in proper if judge in proper and each is not judge]
        said[:0] = [each for part in parts for each in answer(part, judge, found.unit, others)]
        if any(part.tells(judge) for part in parts):
            said += [ONLY_PREDICTIONS] * (judge.family == "accuracy" and not_ranked)
            vectors = judge.key in SKILLS and any("variogram_score" in run.report.scores for run in runs)
            said += [ONLY_COMPONENTS] * vectors
            break
    said.sort(key=lambda sentence: sentence.startswith(ORDER))
    apart = [why for part in parts if (why := part.untold([*chain.from_iterable(part.groups.values())]))]
    if len(groups) == 1:
        said = ["; ".join([f"Nothing to compare {runs[0].method} with", *found.table.remarks]) + "."]
    elif not said and not apart and blocks and not any(metric.means for metric in shown):
        keys = listed([metric.key for metric in shown])
        said = [f"No differences by {keys}: not means of losses, so they need groups=."]
    skills = skill_sentences(baseline, found.differences)
    return replace(found, answer=tuple(map(one_line, dict.fromkeys([*said, *apart, *skills, *refused]))))


def _nothing(sources: Sequence[RunSource], skipped: Sequence[SkippedRun]) -> str:
    names = ", ".join(_named(source) for source in sources)
    if not skipped:
        return f"{names}: there are no runs to compare"
    reasons = "; ".join(f"{run.label}: {run.reason}" for run in skipped[:3])
    more = f"; and {len(skipped) - 3} more" if len(skipped) > 3 else ""
    return f"{names}: none of {len(skipped)} runs can be compared. {reasons}{more}"


def _named(source: Any) -> str:
    if isinstance(source, LoggedRun):
        return source.stored.uri
    return source if isinstance(source, str) else "reports of this process"
