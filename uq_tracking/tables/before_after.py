"""Scores before and after recalibration, for several outputs or methods, as in table 1 of Levi et al. (2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uq_tracking.metrics.registry import find
from uq_tracking.tables.model import Cell, Column, Row, Table, better_text, unit_text

if TYPE_CHECKING:
    from uq_tracking.report import Report

BEFORE = "before"
KEYS = ("ence", "cv")


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
        from uq_tracking.tables.terminal import tables_text

        return tables_text([self.table], width=1000)

    def to_markdown(self) -> str:
        """The table in Markdown."""
        from uq_tracking.tables.markup import table_markdown

        return table_markdown(self.table)

    def _repr_html_(self) -> str:
        from uq_tracking.tables.html import tables_html

        return tables_html([self.table])


def before_after(
    reports: Mapping[str, Report], metrics: str | Sequence[str] = KEYS, corner: str = "output"
) -> BeforeAfter:
    """One row per report: the metrics before, then after each recalibration that any report has.

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
    known = find(metrics, "classification" if task == "classification" else "regression")
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
    """One score, or why there is none."""
    if stage == BEFORE:  # of the same samples as after: those that a cross-fit scores
        scored: Mapping[str, Any] = next(iter(report.scored_methods().values()), {})
        lacking = "the half that a cross-fit scores is known by mean and std alone"
        return Cell(scored.get("before", report.scores).get(key), reason=report.undefined.get(key, lacking))
    entry = report.scored_methods().get(stage)
    if entry is None:
        return Cell(reason="the report has no such recalibration")
    return Cell(entry["scores"].get(key), reason=entry["undefined"].get(key))
