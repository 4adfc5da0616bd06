"""The plugin manager and what it finds: every metric, curve, figure, recalibration, tracker and command.

pluggy discovers; typed classes do the work. Plugins are queried once per process, never per log call. Built-ins are
plugins too, registered by dotted name: nothing here imports what it looks up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module, metadata
from itertools import chain
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from uq_tracking import hookspecs
from uq_tracking.errors import PluginError, closest, warn
from uq_tracking.hookspecs import GROUP

if TYPE_CHECKING:
    from uq_tracking.curves.spec import CurveSpec
    from uq_tracking.drawings import FigureSpec, MapSpec
    from uq_tracking.inputs.forms.form import Form
    from uq_tracking.metrics.registry import Metric
    from uq_tracking.recalibration import Recalibration
    from uq_tracking.tasks.task import Task
    from uq_tracking.tracking.backend import Backend

PIN_VARIABLE = "UQ_TRACKING_PLUGINS"

BUILT_IN = (
    "uq_tracking.inputs.forms",
    "uq_tracking.tasks",
    "uq_tracking.metrics.accuracy",
    "uq_tracking.metrics.proper_scores",
    "uq_tracking.metrics.calibration",
    "uq_tracking.metrics.ranking",
    "uq_tracking.metrics.classification",
    "uq_tracking.metrics.events",
    "uq_tracking.metrics.other_forms",
    "uq_tracking.metrics.reference",
    "uq_tracking.curves.regression",
    "uq_tracking.curves.classification",
    "uq_tracking.recalibration.std",
    "uq_tracking.recalibration.quantiles",
    "uq_tracking.recalibration.classification",
    "uq_tracking.drawings",
    "uq_tracking.tracking.folder",
)
"""Plugins of this package; metrics of a family, and curves, are reported in this order."""

HOOKS = tuple(name for name in vars(hookspecs) if name.startswith("uq_"))
F = TypeVar("F", bound=Callable[..., Any])  # a function or a class
T = TypeVar("T")


@lru_cache(maxsize=1)
def manager() -> pluggy.PluginManager:
    """The plugin manager, built on first use; ``reload`` rebuilds it."""
    found = pluggy.PluginManager(GROUP)
    found.add_hookspecs(hookspecs)
    for name in BUILT_IN:
        found.register(import_module(name), name)
    for point in _entry_points():
        try:
            module = point.load()
            found.register(module, point.name)
        except Exception as error:  # another package's module may raise anything
            _warn_skipped(point.name, error)
            continue
        if not any(_declared(module, hook) or hasattr(module, hook) for hook in HOOKS):
            warn(
                f"plugin {point.name!r} offers nothing: {point.value} holds nothing under @metric, @curve or "
                f"@recalibrator and no hook; import them there, or name the module that has them as the entry point"
            )
    return found


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


def _warn_skipped(name: str, error: Exception) -> None:
    warn(f"plugin {name!r} was skipped: {type(error).__name__}: {error}")


def declare(hook: str, item: Any, function: F) -> F:
    """Attach an item to its function or class; a plugin whose module holds that offers the item.

    ``@metric``, ``@curve`` and ``@recalibrator`` use this, much as pluggy marks hook implementations.
    """
    setattr(function, hook, [*vars(function).get(hook, ()), item])
    return function


def collect(hook: str, name_of: Callable[[Any], str]) -> dict[str, Any]:
    """Everything plugins declare or return for one hook, by name.

    A plugin that raises, or claims a name that an earlier one has, is skipped with a warning.
    """
    found: dict[str, Any] = {}
    owner: dict[str, str] = {}
    for plugin_name, plugin in manager().list_name_plugin():
        own: dict[str, Any] = {}
        try:
            for item in chain(_declared(plugin, hook), (getattr(plugin, hook, None) or list)()):
                name = name_of(item)
                if found.get(name, own.setdefault(name, item)) is not item:
                    raise PluginError(f"{name!r} is taken by {owner.get(name, plugin_name)!r}; rename it")
        except Exception as error:
            _warn_skipped(plugin_name, error)
        else:
            found, owner = found | own, dict.fromkeys(own, plugin_name) | owner
    return found


def _declared(plugin: Any, hook: str) -> list[Any]:
    declared = (value for value in vars(plugin).values() if isinstance(value, FunctionType | type))
    return [item for value in declared for item in vars(value).get(hook, ())]


def _of_task(hook: str, task: str, name: str = "name") -> dict[str, Any]:
    """Items of one task by name; a name is unique within its task."""

    def place(item: Any) -> str:
        if item.task not in tasks():
            raise PluginError(f"no plugin brings the task {item.task!r}{closest(item.task, tasks())}")
        return f"{item.task}/{getattr(item, name)}"

    found = collect(hook, place)
    return {getattr(item, name): item for item in found.values() if item.task == task}


def named(function: Callable[..., T] | str) -> Callable[..., T]:
    """Import a function by its dotted name; a function itself is returned unchanged.

    >>> named("math.hypot")(3, 4)
    5.0
    """
    if not isinstance(function, str):
        return function
    module, _, name = function.rpartition(".")
    found: Callable[..., T] = getattr(import_module(module), name)
    return found


@lru_cache
def metrics(task: str = "regression") -> dict[str, Metric]:
    """Metrics of a task by key, family by family, headline first: the order of all tables and pages."""
    found: dict[str, Metric] = _of_task("uq_metrics", task, "key")
    return dict(sorted(found.items(), key=lambda item: item[1].place))


@lru_cache
def curves(task: str = "regression") -> dict[str, CurveSpec]:
    """Curves of a task by name; comparisons show them in this order."""
    return _of_task("uq_curves", task)


@lru_cache
def figures(task: str = "regression") -> dict[str, FigureSpec]:
    """Report figures of a task, by name."""
    return _of_task("uq_figures", task)


@lru_cache
def maps(task: str = "regression") -> dict[str, MapSpec]:
    """Map panels for spatial predictions of a task, by name."""
    return _of_task("uq_maps", task)


@lru_cache
def forms() -> dict[str, type[Form]]:
    """Forms of a forecast, by name."""
    return collect("uq_forms", lambda form: form.name)


@lru_cache
def tasks() -> dict[str, Task]:
    """Tasks by name."""
    return collect("uq_tasks", lambda task: task.name)


@lru_cache
def recalibrators() -> dict[str, type[Recalibration]]:
    """Recalibration methods by name."""
    return collect("uq_recalibrators", lambda method: method.method)


@lru_cache
def backends() -> dict[str, Backend]:
    """Trackers by name."""
    return collect("uq_backends", lambda backend: backend.name)


@lru_cache
def commands() -> dict[str, Callable[..., Any]]:
    """Commands that other distributions bring to the command line, by name."""
    return collect("uq_commands", lambda command: command.__name__.replace("_", "-"))


LOOKUPS = (forms, tasks, metrics, curves, figures, maps, recalibrators, backends, commands)


def forget() -> None:
    """Drop what the registered plugins returned; the next lookup queries them again."""
    for lookup in LOOKUPS:
        lookup.cache_clear()


def register(name: str) -> None:
    """Use the plugin in a module, such as ``"__main__"`` in a notebook, as if an entry point named it.

    A module that is registered again replaces itself. A warning says so if it is skipped.
    """
    if manager().has_plugin(name):
        manager().unregister(name=name)
    manager().register(import_module(name), name)
    forget()
    for lookup in LOOKUPS:
        lookup()


def reload() -> None:
    """Forget the plugins found so far, so that the next use looks for installed ones again."""
    manager.cache_clear()
    forget()
