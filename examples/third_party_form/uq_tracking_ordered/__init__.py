"""Ordered classes (grades, stages, severities) for uq_tracking: a form, a task, and all that belongs to them."""

from __future__ import annotations

from uq_tracking.drawings import MapSpec
from uq_tracking.hookspecs import hookimpl
from uq_tracking.inputs.forms.form import Form
from uq_tracking.tasks import Task
from uq_tracking_ordered.form import OrderedProbabilities
from uq_tracking_ordered.scores import class_error, cumulative_ece, reliability, rps
from uq_tracking_ordered.task import Ordered

__all__ = ["OrderedProbabilities", "class_error", "cumulative_ece", "reliability", "rps"]


@hookimpl
def uq_forms() -> list[type[Form]]:
    """Return the form: ``ordered_probs=`` of every verb."""
    return [OrderedProbabilities]


@hookimpl
def uq_tasks() -> list[Task]:
    """Return the task that scores it."""
    return [Ordered()]


@hookimpl
def uq_maps() -> list[MapSpec]:
    """Return the panel of a 2-D case."""
    return [
        MapSpec(
            "uncertainty",
            "uq_tracking_ordered.figures.class_map",
            "ordered",
            compared="uq_tracking_ordered.figures.compared_classes",
            note="Distances to the mean class and standard deviations of the class share one color scale: a useful "
            "uncertainty is bright where the distance above it is.",
        )
    ]
