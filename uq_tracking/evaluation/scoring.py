"""From statistics to a report: the pure function behind evaluation, rescoring and pooling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from uq_tracking._version import __version__
from uq_tracking.curves.spec import build_curves
from uq_tracking.inference.consistency import with_chance
from uq_tracking.metrics.registry import Metric, MetricInputs, compute, select
from uq_tracking.report import SCHEMA, Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import task_of


def score(
    statistics: Statistics,
    settings: Settings | None = None,
    metrics: Iterable[Metric] | None = None,
    *,
    digest: Any = None,
    extra: MetricInputs | None = None,
    about: Mapping[str, Any] | None = None,
    asked: Sequence[str] | None = None,
) -> Report:
    """Every score and curve of statistics.

    Parameters
    ----------
    statistics : Statistics
    settings : Settings, optional
    metrics : iterable of Metric, optional
        By default the whole suite of the task.
    digest : str, optional
        Of the predictions.
    extra : MetricInputs, optional
        For metrics that need more than statistics.
    about : dict, optional
        What the input was like; goes into the report's settings.
    asked : sequence of str, optional
        Keys that a user asked for by name; trackers show them.
    """
    task, settings = task_of(statistics), settings or Settings()
    chosen = select(task.name) if metrics is None else list(metrics)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # a score beyond float64 is undefined
        inputs = None if extra is None else replace(extra, statistics=statistics)
        scores, undefined = compute(statistics, settings, chosen, inputs)
        curves = build_curves(statistics, settings, task.name, inputs=inputs)
    curves = with_chance(curves, statistics, task.name, settings)
    values = settings.to_dict()
    return Report(
        task=task.name,
        scores=scores,
        undefined=undefined,
        curves=curves,
        counts=statistics.counts,
        settings={
            **{name: values[name] for name in task.settings},
            **(statistics.facts if about is None else about),
        },
        provenance={
            "package": "uq_tracking",
            "version": __version__,
            "schema": SCHEMA,
            "statistics": statistics.kind,
            "accuracy": task.accuracy[statistics.kind],
            "digest": digest,
            "targets": task.targets(statistics),
            **({"asked": list(asked)} if asked else {}),
        },
        statistics=statistics,
    )
