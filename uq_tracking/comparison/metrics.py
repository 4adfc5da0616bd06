"""The metrics of a comparison: which there are, their families, and which are shown by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from uq_tracking import plugins
from uq_tracking.checks import as_names
from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.errors import FileFormatError, UnknownMetricError, closest
from uq_tracking.metrics.registry import FAMILIES, Metric

ACCURACY, SCORING = FAMILIES["accuracy"], FAMILIES["scoring"]
OTHER = "Other"


def metrics_of(runs: Iterable[ScoredRun], task: str, wanted: Iterable[str] | None = None) -> list[Metric]:
    """Metrics that at least one run has, in the registry's order, or those wanted, in the order given.

    Raises
    ------
    UnknownMetricError
        No run has one of the wanted metrics.
    """
    known = plugins.metrics(task)
    present = {key for run in runs for key in (*run.report.scores, *run.report.undefined)}
    keys = [key for key in known if key in present] + sorted(present - set(known))
    if wanted is not None:
        keys = list(dict.fromkeys(as_names("metrics", wanted)))
    lacking = [key for key in keys if key not in present]
    if lacking:
        raise UnknownMetricError(
            f"no run has a metric called {', '.join(lacking)}{closest(lacking[0], sorted(present))}; "
            f"the runs have {', '.join(sorted(present))}"
        )
    return [known[key] if key in known else _not_installed_here(key, task) for key in keys]


def headline(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Keys of the metrics shown by default; all if none is declared a headline."""
    metrics = list(metrics)
    return tuple(m.key for m in metrics if m.headline) or tuple(m.key for m in metrics)


def sorted_by(metrics: Sequence[Metric], shown: Sequence[Metric]) -> Metric | None:
    """The metric to sort rows by: the first judging one of those chosen, else the first scoring rule.

    A scoring rule judges predictions and uncertainties together, so no method comes first by only one of the two.
    """
    judging = [metric for metric in shown if metric.direction is not None]
    rules = [metric for metric in judging if family(metric) == SCORING]
    nobody_chose = tuple(metric.key for metric in shown) == headline(metrics)
    return next(iter(rules if nobody_chose and rules else judging), None)


def family(metric: Metric) -> str:
    """What a metric judges, in a word or two."""
    return FAMILIES.get(metric.family, OTHER)


def by_family(metrics: Iterable[Metric]) -> dict[str, list[Metric]]:
    """The metrics of each family that occurs."""
    groups: dict[str, list[Metric]] = {name: [] for name in (*FAMILIES.values(), OTHER)}
    for metric in metrics:
        groups[family(metric)].append(metric)
    return {name: group for name, group in groups.items() if group}


def metric_to_dict(metric: Metric) -> dict[str, Any]:
    """What a reader needs to know about a metric, as plain values."""
    texts = ("key", "task", "direction", "unit", "summary", "formula", "source")
    return {name: getattr(metric, name) for name in texts} | {"family": family(metric)}


def metric_from_dict(values: Mapping[str, Any]) -> Metric:
    """The metric as installed here, else as the file describes it; unranked if it is unranked in the file."""
    installed = plugins.metrics(values["task"]).get(values["key"])
    direction = values["direction"]
    if installed is not None and installed.direction == direction:
        return installed
    if installed is not None and direction is None:
        return replace(installed, direction=None, summary=str(values["summary"]))
    if not (direction in ("lower", "higher", None) or isinstance(direction, int | float)):
        raise FileFormatError(f"metric {values['key']!r} has the direction {direction!r}")
    texts = {name: str(values[name]) for name in ("key", "task", "unit", "summary", "formula", "source")}
    judged = float(direction) if isinstance(direction, int | float) else direction
    families = {heading: name for name, heading in FAMILIES.items()}
    judges = families.get(str(values.get("family")), "")
    return Metric(function=_not_installed, direction=judged, family=judges, **texts)  # type: ignore[arg-type]


def _not_installed_here(key: str, task: str) -> Metric:
    """A metric whose plugin is not installed here: shown but not judged."""
    summary = "From a plugin that is not installed here, so nothing is known about it"
    return Metric(
        key,
        family="",  # type: ignore[arg-type]
        direction=None,
        summary=summary,
        formula="",
        source="",
        task=task,
        function=_not_installed,
    )


def _not_installed(statistics: Any, settings: Any) -> float:
    raise UnknownMetricError("the plugin that defines this metric is not installed here")
