"""Tables of reports: every score, a summary, several outputs, before and after recalibration."""

from __future__ import annotations

import math
import textwrap
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from uq_tracking import plugins
from uq_tracking.formatting import encodable, format_interval, format_number, format_score, one_line
from uq_tracking.metrics.registry import Metric, find, headline_or_all
from uq_tracking.tables import Cell, Column, Row, Table, better_text, unit_text
from uq_tracking.tables.formats import table_markdown, tables_html, templates
from uq_tracking.tables.terminal import tables_text

if TYPE_CHECKING:
    from uq_tracking.inference.classes import ClassTable
    from uq_tracking.report import Report

WIDTH = 100
MOST_LINES = 40
MOST_CLASSES = 10
"""Rows of the table of classes."""
CLASS_COLUMNS = {
    "support": "samples",
    "dice": "Dice",
    "observed": "occurs",
    "stated": "stated",
    "slope": "slope",
    "level_p": "p",
}
"""Headings of the columns of the table of classes."""
PROBABILITY = "its probability is"
"""Heading of the words on a class."""
UNSEEN = 1.005
"""Factors below this are not mentioned."""
BEFORE = "before"
UNKNOWN = 1e100
"""Limits beyond this are unknown."""
VERDICTS = {
    "underconfident": "#1f6b97",
    "calibrated": "#00734f",
    "consistent with calibrated": "#00734f",
    "not enough data": "#555555",
}
"""Colors of the verdict, as in the figures; readable on white and dark backgrounds."""
BY_CHANCE = (
    "by chance: a calibrated forecast scores up to this value in 95 % of samples like this one; p is the share of "
    "calibrated forecasts that score at least as high as this one"
)
COLUMNS = (
    Column("value"),
    Column("interval"),
    Column("by chance"),
    Column("unit", numeric=False),
    Column("better", numeric=False),
    Column("meaning", numeric=False),
)


def score_rows(report: Report) -> list[dict[str, Any]]:
    """Return a row per score: key, value, interval, score by chance alone, unit, direction, family, meaning.

    Of a metric whose plugin is not installed here, only the value is known.
    """
    known, unit, rows = plugins.metrics(report.task), report.settings.get("unit"), []
    for key, value in report.scores.items():
        low, high = report.intervals.get(key, (None, None))
        floor, metric = report.noise.get(key), known.get(key)
        rows.append(
            {
                "score": key,
                "value": value,
                "low": low,
                "high": high,
                "by_chance": None if floor is None else floor.high,
                "p": None if floor is None else floor.p,
                "unit": "" if metric is None else unit_text(metric.unit, unit),
                "better": "" if metric is None else better_text(metric),
                "judges": "" if metric is None else metric.family,
                "meaning": "" if metric is None else metric.summary,
            }
        )
    return rows


def report_table(report: Report, keys: Collection[str] | None = None) -> Table:
    """Return one row per score, in the registry's order; only those of ``keys`` if given."""
    known = plugins.metrics(report.task)
    rows = tuple(_row(report, row) for row in score_rows(report) if keys is None or row["score"] in keys)
    empty = {"interval": not report.intervals, "by chance": not report.noise}
    columns = tuple(column for column in COLUMNS if not empty.get(column.key))
    return Table(
        corner="score",
        columns=columns,
        rows=rows,
        title=_title(report),
        lead=(report.verdict.text,),
        notes=(BY_CHANCE,) if report.noise else (),
        remarks=(
            *_recalibrated(report),
            *report.verdict.caveats,
            *(
                f"{key}: {remark}"
                for key, value in report.scores.items()
                if (metric := known.get(key)) and metric.remark and (remark := metric.remark(value))
            ),
            *(
                f"{key}: undefined, {why}"
                for key, why in report.undefined.items()
                if keys is None or key in keys
            ),
            *(f"{key}: {verdict}" for key, verdict in report.verdicts.items()),
            *filter(None, [report.provenance.get("not_stored")]),
        ),
    )


def _recalibrated(report: Report) -> Iterator[str]:
    """Say how each recalibration changes the headline scores of the samples that are scored after it."""
    for name, entry in report.scored_methods().items():
        if "settings" in entry:  # scored under other ones than the report
            continue
        before, after = entry.get("before", report.scores), entry["scores"]
        keys = [key for key in headline_or_all(report.task, after) if key in before]
        shown = {key: [format_number(scores[key]) for scores in (before, after)] for key in keys}
        changes = [f"{key} {was} -> {now}" for key, (was, now) in shown.items() if was != now]
        yield f"after {name} ({entry['how']}): {', '.join(changes) or 'the same scores'}"


def strata_table(report: Report) -> Table | None:
    """Return one row per label of ``by=``, set by set, with what the verdict found of it, the most certain first."""
    places = report.verdict.places
    if places is None or not places.strata:
        return None
    rows = [
        Row(
            one_line(part.name),
            {
                "n": Cell(words=f"{part.n:,}"),
                "factor": Cell(words=_with_limits(f"{part.factor:.2f}", part.factor_low, part.factor_high)),
                "bias [std]": Cell(words=_with_limits(f"{-part.bias:.2f}", -part.bias_high, -part.bias_low)),
                "p": Cell(words="< 0.001" if part.p < 0.001 else format_number(part.p, 2)),
                "found": Cell(words=part.word),
            },
            "score",
        )
        for part in sorted(places.strata, key=lambda part: (part.of, part.p))
    ]
    numbers = (Column("n"), Column("factor"), Column("bias [std]"), Column("p"))
    note = "limits and p hold for all labels together: one calibrated model in a hundred has a label that differs"
    return Table("stratum", (*numbers, Column("found", numeric=False)), tuple(rows), notes=(note,))


def part_tables(report: Report) -> list[Table]:
    """Return the tables of classes and of strata, if the report has any."""
    return [table for table in (classes_table(report), strata_table(report)) if table is not None]


def classes_table(report: Report, most: int = MOST_CLASSES) -> Table | None:
    """Return one row per class, the worst first, at most this many; None if the report holds no classes."""
    table = report.class_table
    if table is None:
        return None
    names = [name for name in CLASS_COLUMNS if name in table.values]
    rows = []
    for place in table.worst_first()[:most].tolist():
        cells = {CLASS_COLUMNS[name]: _class_cell(table, name, place) for name in names}
        if "gap" in table.values:
            cells[PROBABILITY] = Cell(words=_stated_how(table, place))
        rows.append(Row(one_line(table.labels[place]), cells, "score"))
    notes = ["limits at 95 %, from the spread of the groups"] if table.limits else []
    if "level_p" in table.values:
        notes.append("slope below 1: too extreme; p: of the difference between stated and occurs")
    if len(table) > most:
        notes.append(f"the {most} worst of {len(table)} classes; report.classes holds all")
    columns = tuple(Column(CLASS_COLUMNS[name]) for name in names)
    if "gap" in table.values:
        columns += (Column(PROBABILITY, numeric=False),)
    return Table("class, worst first", columns, tuple(rows), notes=tuple(notes))


def _stated_how(table: ClassTable, place: int) -> str:
    """Say by what factor a class is stated more often than it occurs, or less; nothing within chance."""
    low, high = table.limits["gap"][place] if "gap" in table.limits else (math.nan, math.nan)
    if not (low > 0 or high < 0):
        return ""
    less, more = sorted(float(table.values[name][place]) for name in ("stated", "observed"))
    if more < UNSEEN * less:
        return ""
    times = f"{more / less:.2f} times " if less else ""
    return f"{times}too {'high' if low > 0 else 'low'}"


def _class_cell(table: ClassTable, name: str, place: int) -> Cell:
    """Return one number of a class, with its limits where there is room for them."""
    value = float(table.values[name][place])
    if not math.isfinite(value):
        return Cell()
    if name == "support":
        return Cell(words=f"{value:,.0f}")
    if name == "level_p":
        return Cell(words="< 0.001" if value < 0.001 else format_number(value, 2))
    low, high = table.limits[name][place] if name == "dice" and name in table.limits else (math.nan,) * 2
    return Cell(words=_with_limits(f"{value:.3f}", low, high))


def _with_limits(value: str, low: float, high: float) -> str:
    return f"{value} ({low:.2f} to {high:.2f})" if high < UNKNOWN else value


def _row(report: Report, score: Mapping[str, Any]) -> Row:
    cell = _shown(report, score["score"])
    words = {name: score[name] for name in ("unit", "better", "meaning")}
    words["interval"], words["by chance"] = cell.interval_text, ""
    if score["by_chance"] is not None:
        p = "p < 0.001" if score["p"] < 0.001 else f"p = {format_number(score['p'], 2)}"
        words["by chance"] = f"to {format_number(score['by_chance'])}, {p}"
    return Row(
        score["score"], {"value": cell, **{name: Cell(words=text) for name, text in words.items()}}, "score"
    )


def _title(report: Report) -> str:
    """Say in one line what was scored."""
    left_out = [
        f"{count:,} {key.removeprefix('n_')}" for key, count in report.counts.items() if key != "n" and count
    ]
    rest = f" ({', '.join(left_out).replace('_', ' ')})" if left_out else ""
    return f"{report.counts['n']:,} samples{rest}; {report.provenance.get('statistics')} statistics"


def outputs_table(reports: Mapping[str, Report], text: str) -> Table:
    """Return one row per score and one column per report, below a sentence on all and the verdict on each."""
    keys = dict.fromkeys(key for report in reports.values() for key in report.scores)
    rows = (
        Row(key, {name: _shown(report, key) for name, report in reports.items()}, "score") for key in keys
    )
    lead = (text, *(f"{name}: {report.verdict.text}" for name, report in reports.items()))
    return Table("output", tuple(Column(name) for name in reports), tuple(rows), lead=lead)


def _shown(report: Report, key: str) -> Cell:
    if key not in report.scores:
        return Cell(reason=report.undefined.get(key))
    value, interval = report.shown(key)
    return Cell(value, interval=interval)


def report_summary(report: Report) -> str:
    """Print verdict, recalibrations, and the scores by what they judge: headline scores first, one line each."""
    told = (report.verdict.text, *_recalibrated(report))
    lines = [line for text in told for line in textwrap.wrap(one_line(text), WIDTH)] + [scored_title(report)]
    for family, metrics in _families(report):
        lines += ["", family, *_family(report, metrics)]
    last = "print(report) explains every score, report.plot() draws it, report.to_frame() is a table"
    kept = lines if len(lines) <= MOST_LINES - 2 else [*lines[: MOST_LINES - 3], "..."]
    return "\n".join([*kept, "", last])


def scored_title(report: Report) -> str:
    """Say what was scored: method, split and samples."""
    known = [report.provenance.get(name) for name in ("method", "split")]
    return one_line(", ".join([*(str(part) for part in known if part), _title(report)]))


def _families(report: Report) -> Iterator[tuple[str, list[Metric]]]:
    """Yield metrics with a score in the report, by what they judge."""
    known = plugins.metrics(report.task)
    found = [known[key] for key in report.scores if key in known]
    for family, metrics in groupby(sorted(found, key=lambda m: m.place), key=lambda m: m.family):
        yield family, list(metrics)


def _family(report: Report, metrics: list[Metric]) -> Iterator[str]:
    """Yield one line per headline score; the others follow in running text."""
    first = headline_or_all(report.task, report.scores)
    for metric in metrics:
        if metric.key in first:
            unit = unit_text(metric.unit, report.settings.get("unit"))
            value, interval = report.shown(metric.key)
            floor = report.noise.get(metric.key)
            by_chance = "" if floor is None else f"by chance to {format_number(floor.high)}"
            certainty = by_chance if interval is None else format_interval(interval)
            yield f"  {metric.key:<18}{format_score(value):>12} {unit:<8}{certainty}".rstrip()
    others = [m.key for m in metrics if m.key not in first]
    text = ", ".join(f"{key} {format_number(report.shown(key)[0])}" for key in others)
    yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def grouped_tables(report: Report, *, headline: bool = False) -> list[tuple[str, Table]]:
    """Return one table per family of scores, with all scores or only the headline."""
    first = headline_or_all(report.task, report.scores) if headline else list(report.scores)
    found = [
        (name, [each.key for each in metrics if each.key in first]) for name, metrics in _families(report)
    ]
    return [(name, report_table(report, keys)) for name, keys in found if keys]


def report_html(report: Report, picture: bytes) -> str:
    """Render a report for a notebook: the verdict, the headline scores, a PNG picture, and every score by family."""
    template = templates("uq_tracking.tables").get_template("report.html")
    return template.render(
        verdict=report.verdict.text,
        color=VERDICTS.get(report.verdict.calibration, "#b04a00"),
        title=scored_title(report),
        headline=grouped_tables(report, headline=True),
        families=grouped_tables(report),
        remarks=report_table(report).remarks,
        picture=b64encode(picture).decode(),
        parts=tables_html(tables) if (tables := part_tables(report)) else "",
    )


@dataclass(frozen=True, eq=False)
class BeforeAfter:
    """The table, which can be printed or shown in notebooks.

    Examples
    --------
    >>> import numpy as np, uq_tracking as uq
    >>> rng = np.random.default_rng(0)
    >>> std = rng.uniform(1, 2, (400, 2))
    >>> reports = uq.evaluate(rng.normal(0, 3 * std), 0 * std, std, outputs=["x", "y"], calibration=True)
    >>> found = reports.before_after("z_std")
    >>> [round(found.table["x"][f"{stage} z_std"].value, 2) for stage in ("before", "std_scaling")]
    [2.86, 1.0]
    """

    table: Table

    def __str__(self) -> str:
        return encodable(tables_text([self.table], width=1000))

    def to_markdown(self) -> str:
        """The table in Markdown."""
        return table_markdown(self.table)

    def _repr_html_(self) -> str:
        return tables_html([self.table])


def before_after(
    reports: Mapping[str, Report], metrics: str | Sequence[str] = ("ence", "cv"), corner: str = "output"
) -> BeforeAfter:
    """Return one row per report: the metrics before, then after each recalibration that any report has.

    Parameters
    ----------
    reports : mapping of str to Report
        Reports made with ``calibration=``, by output, method, or whatever the rows stand for.
    metrics : str or sequence of str
        Keys.
    corner : str
        Heading of the column of row names.

    Returns
    -------
    BeforeAfter
        With columns ``"before ence"``, ``"std_scaling ence"`` ...

    Raises
    ------
    UnknownMetricError
        There is no such metric.
    """
    task = next((report.task for report in reports.values()), "regression")
    known = find(metrics, task)
    after = (name for report in reports.values() for name in report.scored_methods())
    units = {report.settings.get("unit") for report in reports.values()}
    unit = units.pop() if len(units) == 1 else None
    columns: list[Column] = []
    rows: dict[str, dict[str, Cell]] = {name: {} for name in reports}
    for stage in dict.fromkeys([BEFORE, *after]):
        for metric in known:
            key = f"{stage} {metric.key}"
            columns.append(Column(key, unit_text(metric.unit, unit), better_text(metric)))
            for name, report in reports.items():
                rows[name][key] = _cell(report, stage, metric.key)
    return BeforeAfter(Table(corner, tuple(columns), tuple(Row(*row) for row in rows.items())))


def _cell(report: Report, stage: str, key: str) -> Cell:
    """Return one score, or why there is none."""
    if stage == BEFORE:  # of the same samples as after: those that a cross-fit scores
        scored: Mapping[str, Any] = next(iter(report.scored_methods().values()), {})
        lacking = "the half that a cross-fit scores is known by mean and std alone"
        return Cell(scored.get("before", report.scores).get(key), reason=report.undefined.get(key, lacking))
    entry = report.scored_methods().get(stage)
    if entry is None:
        return Cell(reason="the report has no such recalibration")
    return Cell(entry["scores"].get(key), reason=entry["undefined"].get(key))
