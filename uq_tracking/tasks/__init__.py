"""What distinguishes one task from another; everything else is written once for all of them."""

from __future__ import annotations

from typing import Any

from uq_tracking.checks import check_choice
from uq_tracking.inputs.base import PredictionsBase
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks.classification import CLASSIFICATION
from uq_tracking.tasks.regression import REGRESSION
from uq_tracking.tasks.task import Samples, Task

TASKS: dict[str, Task] = {task.name: task for task in (REGRESSION, CLASSIFICATION)}

__all__ = ["CLASSIFICATION", "REGRESSION", "TASKS", "Samples", "Task", "task_of"]


def task_of(source: PredictionsBase | Statistics | Any) -> Task:
    """The task of predictions, statistics or a report, or the task with this name."""
    name: Any = getattr(source, "task", source)
    check_choice("task", name, tuple(TASKS))
    return TASKS[name]
