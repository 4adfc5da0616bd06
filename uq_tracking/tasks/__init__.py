"""What distinguishes one task from another; everything else is written once for all of them."""

from __future__ import annotations

from typing import Any

from uq_tracking import plugins
from uq_tracking.checks import check_choice
from uq_tracking.hookspecs import hookimpl
from uq_tracking.tasks.task import CLASSIFICATION, REGRESSION, Task

__all__ = ["CLASSIFICATION", "REGRESSION", "Task", "task_of"]


@hookimpl
def uq_tasks() -> list[Task]:
    """Tasks of this package."""
    return [REGRESSION, CLASSIFICATION]


def task_of(source: Any) -> Task:
    """Return the task of predictions, a form, statistics or a report, or the task with this name."""
    name = getattr(source, "task", source)
    check_choice("task", name, tuple(plugins.tasks()))
    return plugins.tasks()[name]
