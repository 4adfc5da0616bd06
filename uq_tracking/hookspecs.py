"""What a plugin may offer: the hooks and their return values.

A plugin is a module that an entry point of the group ``uq_tracking`` names. It marks the hooks it implements with
``hookimpl``; metrics and curves that are declared in the module itself (``@metric``, ``@curve``) need no hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from uq_tracking.curves.spec import CurveSpec
    from uq_tracking.drawings import FigureSpec, MapSpec
    from uq_tracking.metrics.registry import Metric
    from uq_tracking.recalibration import Recalibrator
    from uq_tracking.tracking.backend import Backend

GROUP = "uq_tracking"

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)
"""Mark a function of a plugin module as a hook implementation."""


@hookspec
def uq_metrics() -> list[Metric]:  # type: ignore[empty-body]
    """Metrics to compute, besides those that the plugin's module declares with ``@metric``."""


@hookspec
def uq_curves() -> list[CurveSpec]:  # type: ignore[empty-body]
    """Curves to build, besides those that the plugin's module declares with ``@curve``."""


@hookspec
def uq_recalibrators() -> list[Recalibrator]:  # type: ignore[empty-body]
    """Recalibration methods."""


@hookspec
def uq_figures() -> list[FigureSpec]:  # type: ignore[empty-body]
    """Figures drawn from a report, besides those that a curve's declaration names."""


@hookspec
def uq_maps() -> list[MapSpec]:  # type: ignore[empty-body]
    """Panels drawn for single cases of spatial predictions."""


@hookspec
def uq_backends() -> list[Backend]:  # type: ignore[empty-body]
    """Trackers to log to and read from."""
