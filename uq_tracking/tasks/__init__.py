"""What distinguishes one task from another; everything else is written once for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from uq_tracking.checks import check_choice
from uq_tracking.errors import InputTypeError, SettingsError
from uq_tracking.inputs.base import PredictionsBase
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks.classification import CLASSIFICATION
from uq_tracking.tasks.regression import REGRESSION
from uq_tracking.tasks.task import Samples, Task

TASKS: dict[str, Task] = {task.name: task for task in (REGRESSION, CLASSIFICATION)}

__all__ = ["CLASSIFICATION", "REGRESSION", "TASKS", "Samples", "Task", "task_of", "task_of_arrays"]


def task_of(source: PredictionsBase | Statistics | Any) -> Task:
    """The task of predictions, statistics or a report, or the task with this name."""
    name: Any = getattr(source, "task", source)
    check_choice("task", name, tuple(TASKS))
    return TASKS[name]


def task_of_arrays(y_true: Any, y_pred: Any, y_std: Any, probs: Any) -> Task:
    """Return the task that the form of a forecast belongs to.

    Raises
    ------
    SettingsError
        Two forms are given, or arrays look like labels and class probabilities without being named so.
    InputTypeError
        Names of columns are given instead of arrays.
    """
    if isinstance(y_true, PredictionsBase):
        return task_of(y_true)
    if probs is not None:
        spare = [name for name, array in (("y_pred", y_pred), ("y_std", y_std)) if array is not None]
        if spare:
            raise SettingsError(f"{' and '.join(spare)} and probs= are two forecasts; pass one")
        return CLASSIFICATION
    if isinstance(y_true, str) or isinstance(y_pred, str) or isinstance(y_std, str):
        raise InputTypeError(
            "y_true, y_pred and y_std are arrays; for columns of a table, pass "
            "Predictions.from_frame(table, y_true='y', y_pred='mu', y_std='sigma')"
        )
    if y_std is None and y_pred is not None and _look_like_classes(y_true, y_pred):
        raise SettingsError(
            "y_std is missing, and these look like labels and class probabilities; pass those as probs=, "
            "for example uq.evaluate(labels, probs=probs)"
        )
    return REGRESSION


def _look_like_classes(labels: Any, probs: Any) -> bool:
    """Return True for whole numbers and an array with an added axis, or of shares in the same shape."""
    try:
        shape, spread = np.shape(labels), np.shape(probs)
        if np.asarray(labels).dtype.kind not in "biu" or not shape:
            return False
        if len(spread) > len(shape):
            return True
        values = np.asarray(probs, dtype=float)
        return spread == shape and bool(np.all((values >= 0) & (values <= 1)))
    except (
        TypeError,
        ValueError,
        RuntimeError,
    ):  # not arrays that numpy reads; the constructor says what is wrong
        return False
