"""The table of scores on the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from uq_tracking.comparison import columns, wording
from uq_tracking.comparison.page.markup import NOTHING, joined, shade, swatch, table, tag, text
from uq_tracking.comparison.ranks import Cell, mean_loss
from uq_tracking.comparison.rows import ScoredRun
from uq_tracking.metrics.registry import Metric

if TYPE_CHECKING:
    from uq_tracking.comparison.result import Comparison

ARROWS = {"lower": "↓", "higher": "↑", "": ""}
NO_RANK = '<span class="rank"></span>'
"""Keeps a number without a rank in line with those that have one."""
MARKS = {
    wording.BEST: ("★", "best"),
    wording.WORST: ("▾", "worst"),
    wording.TIED: ("≈", "not told apart from the best"),
}


def families(comparison: Comparison) -> str:
    """Buttons that choose which metrics are shown."""
    found = [name for name, _ in columns.by_family(comparison.metrics).items()]
    if len(comparison.headline) == len(comparison.metrics):
        return ""
    single = [(name, name) for name in found] if len(found) > 1 else []
    names = [("headline", "Headline"), *single, ("all", "All metrics")]
    return joined(
        tag("button", text(label), type="button", data_family=value, aria_pressed=str(not k).lower())
        for k, (value, label) in enumerate(names)
    )


def score_table(comparison: Comparison) -> str:
    """Methods by metrics; bounds above, single runs (hidden at first) below their method."""
    head = joined([_corner(), *(_heading(comparison, metric) for metric in comparison.ordered_metrics)])
    methods = (joined(_method_rows(comparison, k, name)) for k, name in enumerate(comparison.groups))
    bodies = [_bound_rows(comparison), methods]
    return table([tag("tr", head)], bodies, id="scores-table", class_="scores")


def _corner() -> str:
    return tag("th", tag("button", "method", type="button", class_="sort"), scope="col", class_="name")


def direction_mark(metric: Metric) -> str:
    """An arrow, the target value, or nothing."""
    if metric.direction is None:
        return ""
    return ARROWS.get(str(metric.direction), f"→ {metric.direction}")


def _heading(comparison: Comparison, metric: Metric) -> str:
    key, unit, _ = wording.heading(metric, comparison.unit)
    label = tag("span", text(key), class_="key") + tag(
        "span", text(f"{direction_mark(metric)} {unit}"), class_="unit"
    )
    button = tag("button", label, type="button", class_="sort", data_metric=metric.key)
    return tag("th", button, scope="col", **_column(comparison, metric))


def _column(comparison: Comparison, metric: Metric) -> dict[str, object]:
    """Attributes by which a column is chosen."""
    shown = metric.key in comparison.headline
    return {
        "data_key": metric.key,
        "data_family": columns.family(metric),
        "data_headline": shown,
        "hidden": not shown,
    }


def _bound_rows(comparison: Comparison) -> Iterator[str]:
    for name, bounds in comparison.bounds.items():
        cells = [tag("th", tag("span", text(name)), scope="row", class_="name")]
        for metric in comparison.ordered_metrics:
            bound = bounds.get(metric.key)
            shown = "" if bound is None else wording.bound_text(bound).replace("..", NOTHING)
            cells.append(tag("td", text(shown) + NO_RANK, **_column(comparison, metric)))
        yield tag("tr", joined(cells), class_="bound")


def _method_rows(comparison: Comparison, index: int, name: str) -> Iterator[str]:
    runs = comparison.groups[name]
    cells = [_name(comparison, index, name)]
    cells += [_cell(comparison, name, metric) for metric in comparison.ordered_metrics]
    yield tag("tr", joined(cells), class_="method", data_method=index, data_name=name)
    if len(runs) > 1:
        for run in runs:
            yield _run_row(comparison, index, run)


def _name(comparison: Comparison, index: int, name: str) -> str:
    runs = len(comparison.groups[name])
    notes = ["baseline"] * (name == comparison.baseline) + [f"{runs} runs"] * (runs > 1)
    note = joined(tag("span", text(note), class_="note") for note in notes)
    box = f'<input type="checkbox" checked data-toggle="{index}">'
    label = tag("label", box + swatch(index) + tag("span", text(name), class_="label") + note)
    return tag("th", label, scope="row", class_="name")


def _run_row(comparison: Comparison, index: int, run: ScoredRun) -> str:
    box = '<input type="checkbox" checked data-toggle-run>'
    label = tag("label", box + tag("span", text(run.label), class_="label"))
    cells = [tag("th", label, scope="row", class_="name")]
    for metric in comparison.ordered_metrics:
        value = run.report.scores.get(metric.key)
        shown = wording.NO_VALUE if value is None else wording.number(value)
        cells.append(tag("td", text(shown) + NO_RANK, **_column(comparison, metric)))
    return tag("tr", joined(cells), class_="run", data_parent=index, data_run=run.label, hidden=True)


def _cell(comparison: Comparison, method: str, metric: Metric) -> str:
    cell = comparison.table[method][metric.key]
    sign, meaning = MARKS.get(wording.mark(comparison, method, metric.key), ("", ""))
    rank = tag("span", f"{cell.rank}{sign}", class_="rank") if cell.ranked else NO_RANK
    classes = ["worst" if cell.worst else shade(cell.place), "best" if cell.best else None]
    return tag(
        "td",
        _value(cell) + rank,
        class_=" ".join(name for name in classes if name) or None,
        data_sort=_sort_key(comparison, cell, method, metric),
        title=_title(cell, meaning),
        **_column(comparison, metric),
    )


def _value(cell: Cell) -> str:
    if cell.value is None:
        return tag("span", NOTHING, class_="none")
    parts = [tag("span", text(wording.number(cell.value)), class_="value")]
    if cell.spread is not None:
        parts.append(tag("span", f"± {text(wording.number(cell.spread, 2))}", class_="spread"))
    if cell.interval is not None:
        parts.append(tag("span", text(wording.interval_text(cell.interval)), class_="interval"))
    return joined(parts)


def _sort_key(comparison: Comparison, cell: Cell, method: str, metric: Metric) -> str | None:
    """The rank's loss where the metric judges, else the value; None sorts last."""
    if cell.value is None:
        return None
    loss = mean_loss(comparison.groups[method], metric) if metric.direction is not None else cell.value
    return repr(loss)


def _title(cell: Cell, meaning: str) -> str:
    """All digits, and everything else there is to say of a cell."""
    if cell.value is None:
        return f"no value: {cell.reason}"
    parts = [repr(cell.value)]
    if cell.spread is not None:
        parts.append(f"mean of {cell.runs} runs, standard deviation {cell.spread!r}")
    elif cell.runs < cell.of:
        parts.append(f"{cell.runs} of {cell.of} runs have it")
    if cell.interval is not None:
        parts.append(f"interval {cell.interval[0]!r} to {cell.interval[1]!r}")
    if cell.ranked:
        parts.append(f"rank {cell.rank} of {cell.worst_rank}" + (f", {meaning}" if meaning else ""))
    return "; ".join(parts)
