"""Hooks that a plugin may implement, and their return values.

A plugin is a module named by an entry point of the group ``uq_tracking``. It marks the hooks it implements with
``hookimpl``; metrics, curves and recalibrations declared in the module itself (``@metric``, ``@curve``,
``@recalibrator``) need no hook.
"""

# A specification has no body.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable

    from uq_tracking.curves.spec import CurveSpec
    from uq_tracking.drawings import FigureSpec, MapSpec
    from uq_tracking.inputs.forms.form import Form
    from uq_tracking.metrics.registry import Metric
    from uq_tracking.recalibration import Recalibration
    from uq_tracking.tasks.task import Task
    from uq_tracking.tracking.backend import Backend

GROUP = "uq_tracking"

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)
"""Mark a function of a plugin module as a hook implementation."""


@hookspec
def uq_metrics() -> list[Metric]:
    """Metrics to compute, besides those the plugin's module declares with ``@metric``."""


@hookspec
def uq_curves() -> list[CurveSpec]:
    """Curves to build, besides those the plugin's module declares with ``@curve``."""


@hookspec
def uq_forms() -> list[type[Form]]:
    """Forms in which a forecast may come."""


@hookspec
def uq_tasks() -> list[Task]:
    """Tasks by which forms are scored."""


@hookspec
def uq_recalibrators() -> list[type[Recalibration]]:
    """Recalibration methods, besides those the plugin's module declares with ``@recalibrator``."""


@hookspec
def uq_figures() -> list[FigureSpec]:
    """Figures drawn from a report, besides those named in curve declarations."""


@hookspec
def uq_maps() -> list[MapSpec]:
    """Panels drawn for single cases of spatial predictions."""


@hookspec
def uq_backends() -> list[Backend]:
    """Trackers to log to and read from."""


@hookspec
def uq_commands() -> list[Callable[..., Any]]:
    """Commands of the command line: functions with the annotations of typer, each under its own name."""
