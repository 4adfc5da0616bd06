"""From statistics to a report: the pure function behind evaluation, rescoring and pooling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from uq_tracking import plugins
from uq_tracking._version import __version__
from uq_tracking.curves.spec import Curve, build_curves
from uq_tracking.inference import ClassSamples, Judgement, Samples
from uq_tracking.inference.noise import with_chance
from uq_tracking.metrics.registry import LaterScores, Metric, MetricInputs, select
from uq_tracking.report import SCHEMA, Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.blocks import Blocks
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import task_of


class Curves(dict[str, Curve]):
    """Curves by name, which are many numbers to print."""

    def __repr__(self) -> str:
        return f"<curves {', '.join(self)}>"


def narrowed(data: Any, chosen: Iterable[Metric]) -> Any:
    """Return predictions without what the chosen metrics do not need, where reading less is much faster."""
    if data.by is None and all(metric.of_top for metric in chosen):
        return data.with_form(data.form.narrowed())
    return data


def score(
    statistics: Statistics,
    settings: Settings | None = None,
    metrics: Iterable[Metric] | None = None,
    *,
    digest: Any = None,
    extra: MetricInputs | None = None,
    about: Mapping[str, Any] | None = None,
    asked: Sequence[str] | None = None,
    samples: Samples | ClassSamples | None = None,
    blocks: Blocks | None = None,
    judgement: Judgement | None = None,
    later: bool = False,
    among: int = 1,
) -> Report:
    """Return every score and curve of statistics, by default of the task's whole suite.

    The ``digest`` of the predictions may be what computes it when first asked for; ``extra`` is for metrics that need
    more than statistics, ``about`` for the report's settings. Keys ``asked`` for by name are shown by trackers. The
    verdict looks at ``samples`` in their order and groups; their ``blocks`` are counted unless given; ``among`` is
    the number of reports judged together; a ``judgement`` that is given replaces it. Curves, and with ``later`` also
    scores, wait for the first access.
    """
    task, settings = task_of(statistics), settings or Settings()
    chosen = select(task.name) if metrics is None else list(metrics)
    inputs = None if extra is None else replace(extra, statistics=statistics)
    scores = LaterScores(statistics, settings, chosen, inputs)
    needy = any(spec.needs and spec.default for spec in plugins.curves(task.name).values())
    held = inputs if needy else None  # they hold the predictions

    @cache
    def curves() -> Curves:  # the scores of a step need none
        statistics.complete()
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            built = build_curves(statistics, settings, task.name, inputs=held)
        return Curves(with_chance(built, statistics, task.name, settings))

    def provenance() -> dict[str, Any]:
        return {
            "package": "uq_tracking",
            "version": __version__,
            "schema": SCHEMA,
            "statistics": statistics.kind,
            "accuracy": task.accuracy[statistics.kind],
            "digest": digest() if callable(digest) else digest,
            "targets": task.targets(statistics),
            **({"asked": list(asked)} if asked else {}),
        }

    return Report(
        task=task.name,
        scores=scores if later else scores(),
        undefined=scores.undefined if later else scores.undefined(),
        curves=curves,
        counts=statistics.counts,
        settings={
            **{name: getattr(settings, name) for name in task.settings},
            **(statistics.facts if about is None else about),
        },
        provenance=provenance,
        statistics=statistics,
        judgement=judgement,
        samples=samples,
        among=among,
        counted_blocks=blocks,
    )
