"""Tables of what a model does worst: drawn cases and strata, by their errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from uq_tracking import plugins
from uq_tracking.formatting import axis_label
from uq_tracking.inputs.base import Case
from uq_tracking.report import Report
from uq_tracking.tasks import task_of
from uq_tracking.tracking.backend import Cell
from uq_tracking.tracking.names import map_name

MOST_ROWS = 100


@dataclass(frozen=True)
class Worst:
    """A table, worst first."""

    columns: list[str]
    rows: list[list[Cell]]


def worst_cases(
    report: Report, cases: Mapping[int, Case], notes: Mapping[int, str], split: str | None
) -> Worst:
    """The drawn cases: number, why each was chosen, error, and the name of its map."""
    task = task_of(report)
    errors = {number: task.case_error(case) for number, case in cases.items()}
    known = {number: error for number, error in errors.items() if math.isfinite(error)}
    unit = axis_label(task.case_score, "target", report.settings.get("unit"))
    rows: list[list[Cell]] = [
        [float(number), notes.get(number, ""), known[number], map_name(str(number), split)]
        for number in sorted(known, key=lambda number: -known[number])
    ]
    return Worst(["case", "chosen as", unit, "map"], rows)


def worst_strata(report: Report) -> Worst | None:
    """The labels of ``by``, ranked by the first of their scores that has a direction; None if there is none."""
    strata = {label: scores for label, scores in report.strata.items() if scores}
    known = plugins.metrics(report.task)
    keys = [key for key in dict.fromkeys(key for own in strata.values() for key in own) if key in known]
    judging = next((known[key] for key in keys if known[key].direction is not None), None)
    if judging is None:
        return None

    def loss(label: str) -> float:
        value = strata[label].get(judging.key, math.nan)
        return judging.loss(value) if math.isfinite(value) else -math.inf

    ordered = sorted(strata, key=loss, reverse=True)[:MOST_ROWS]
    columns = ["count", judging.key, *(key for key in keys if key != judging.key)]
    rows: list[list[Cell]] = [
        [label, *(_finite(strata[label].get(key)) for key in columns)] for label in ordered
    ]
    return Worst(["stratum", *columns], rows)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
