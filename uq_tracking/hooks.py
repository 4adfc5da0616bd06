"""The plugin hooks and the manager that collects what they return.

pluggy discovers; typed classes do the work. Hooks are pure returns and are asked once per process, never per
log call. The built-in metrics, figures and backends use the same hooks as everybody else's.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from uq_tracking.errors import PluginError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.metrics.registry import Metric, Task
    from uq_tracking.recalibration import Recalibrator
    from uq_tracking.report import Report
    from uq_tracking.tracking.backend import Backend

GROUP = "uq_tracking"
PIN_VARIABLE = "UQ_TRACKING_PLUGINS"

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)
"""Mark a function of a plugin module as a hook implementation."""

T = TypeVar("T")


@dataclass(frozen=True)
class FigureSpec:
    """A figure drawn from a report of a task: stored as ``uq_<name>.png`` when it has every curve in ``needs``.

    A need that ends in ``*`` is met by any curve whose name starts so.
    """

    name: str
    draw: Callable[[Report], Figure]
    needs: tuple[str, ...] = ()
    task: Task = "regression"

    def has_curves(self, names: Collection[str]) -> bool:
        """Whether curves of these names are all that the figure needs."""
        return all(
            need in names or (need.endswith("*") and any(name.startswith(need[:-1]) for name in names))
            for need in self.needs
        )


@dataclass(frozen=True)
class MapSpec:
    """A panel drawn for one case of spatial predictions, stored as ``uq_map/<case>``.

    ``draw(target, mean, std, *, scale, unit, image=None, title=None)`` gets 2-D arrays of equal shape, the target
    being NaN where there is no ground truth; ``scale`` brings std onto the error's colour scale (MeRCI's lambda).
    Panels of a name other than ``uncertainty`` are stored as ``uq_map/<case>_<name>``.

    For ``task="classification"`` it is ``draw(labels, probs, *, class_names=None, image=None, title=None)``, with
    labels of shape (height, width), -1 where there is none, and probabilities of shape (height, width, C).
    """

    name: str
    draw: Callable[..., Figure]
    task: Task = "regression"


class Hooks:
    """What a plugin may return."""

    @hookspec
    def uq_backends(self) -> list[Backend]:  # type: ignore[empty-body]
        """Trackers to log to and read from."""

    @hookspec
    def uq_metrics(self) -> list[Metric]:  # type: ignore[empty-body]
        """Metrics to compute; each is a pure function of the statistics."""

    @hookspec
    def uq_recalibrators(self) -> list[Recalibrator]:  # type: ignore[empty-body]
        """Recalibration methods."""

    @hookspec
    def uq_figures(self) -> list[FigureSpec]:  # type: ignore[empty-body]
        """Figures drawn from a report."""

    @hookspec
    def uq_maps(self) -> list[MapSpec]:  # type: ignore[empty-body]
        """Panels drawn for single cases of spatial predictions."""


def _entry_points() -> Iterable[metadata.EntryPoint]:
    """Installed plugins, or those that ``UQ_TRACKING_PLUGINS`` (comma-separated names) pins."""
    found = {point.name: point for point in metadata.entry_points(group=GROUP)}
    pinned = os.environ.get(PIN_VARIABLE)
    if pinned is None:
        return [found[name] for name in sorted(found)]
    wanted = [name.strip() for name in pinned.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in found]
    if unknown:
        raise PluginError(
            f"{PIN_VARIABLE} names {', '.join(unknown)}, but the installed plugins are {', '.join(sorted(found))}"
        )
    return [found[name] for name in wanted]


@lru_cache(maxsize=1)
def manager() -> pluggy.PluginManager:
    """The plugin manager, built on first use; ``manager.cache_clear()`` makes it look again."""
    from uq_tracking import builtin

    plugins = pluggy.PluginManager(GROUP)
    plugins.add_hookspecs(Hooks)
    plugins.register(builtin, "built-in")
    for point in _entry_points():
        try:
            plugins.register(point.load(), point.name)
        except Exception as error:  # a stranger's module may raise anything
            _broken(point.name, error)
    return plugins


def _broken(name: str, error: Exception) -> None:
    warnings.warn(
        f"plugin {name!r} is skipped: {type(error).__name__}: {error}",
        category=_plugin_warning(),
        stacklevel=3,
    )


def _plugin_warning() -> type[Warning]:
    from uq_tracking.errors import TrackingWarning

    return TrackingWarning


def collect(hook: str, name_of: Callable[[T], str]) -> dict[str, T]:
    """Everything the plugins return from one hook, by name; a name claimed twice is refused naming both."""
    found: dict[str, T] = {}
    owner: dict[str, str] = {}
    for plugin_name, plugin in manager().list_name_plugin():
        function: Any = getattr(plugin, hook, None)
        if function is None:
            continue
        try:
            items: list[T] = list(function())
        except Exception as error:
            _broken(plugin_name, error)
            continue
        for item in items:
            name = name_of(item)
            if name in found:
                raise PluginError(
                    f"{hook}: {name!r} is claimed by plugins {owner[name]!r} and {plugin_name!r}"
                )
            found[name], owner[name] = item, plugin_name
    return found


@lru_cache(maxsize=2)
def figures(task: str = "regression") -> dict[str, FigureSpec]:
    """Registered figures of a task by name; a name is unique within its task."""
    found: dict[str, FigureSpec] = collect("uq_figures", lambda spec: f"{spec.task}/{spec.name}")
    return {spec.name: spec for spec in found.values() if spec.task == task}


@lru_cache(maxsize=2)
def maps(task: str = "regression") -> dict[str, MapSpec]:
    """Registered map panels of a task by name; a name is unique within its task."""
    found: dict[str, MapSpec] = collect("uq_maps", lambda spec: f"{spec.task}/{spec.name}")
    return {spec.name: spec for spec in found.values() if spec.task == task}


@lru_cache(maxsize=1)
def backends() -> dict[str, Backend]:
    """Registered backends by name."""
    return collect("uq_backends", lambda backend: backend.name)


def reload() -> None:
    """Forget the plugins found so far, so that the next use looks again."""
    from uq_tracking.metrics import registry
    from uq_tracking.recalibration import base

    for cached in (manager, figures, maps, backends, registry.every_metric, base.recalibrators):
        cached.cache_clear()
