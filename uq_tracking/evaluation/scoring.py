"""From statistics to a report: the pure function behind evaluation, rescoring and pooling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from uq_tracking import plugins
from uq_tracking._version import __version__
from uq_tracking.curves.spec import Curve, build_curves
from uq_tracking.inference import ClassSamples, Samples
from uq_tracking.inference.noise import with_chance
from uq_tracking.metrics.registry import LaterScores, Metric, MetricInputs, select
from uq_tracking.report import SCHEMA, Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.blocks import Blocks
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import task_of


@dataclass(frozen=True, eq=False, repr=False)
class LaterCurves(Mapping[str, Curve]):
    """The default curves of statistics, built on first access: the scores of a step need none."""

    statistics: Statistics
    settings: Settings
    task: str
    inputs: MetricInputs | None = None
    """Needs of curves besides statistics; set only if some have any, because it holds the predictions."""

    def __getitem__(self, name: str) -> Curve:
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._built)

    def __len__(self) -> int:
        return len(self._built)

    def __repr__(self) -> str:
        return f"<curves {', '.join(self)}>"

    @cached_property
    def _built(self) -> dict[str, Curve]:
        self.statistics.complete()
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            curves = build_curves(self.statistics, self.settings, self.task, inputs=self.inputs)
        return with_chance(curves, self.statistics, self.task, self.settings)


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
    later: bool = False,
    among: int = 1,
) -> Report:
    """Return every score and curve of statistics, by default of the task's whole suite.

    The ``digest`` of the predictions may be what computes it when first asked for; ``extra`` is for metrics that need
    more than statistics, ``about`` for the report's settings. Keys ``asked`` for by name are shown by trackers. The
    verdict looks at ``samples`` in their order and groups; their ``blocks`` are counted unless given; ``among`` is
    the number of reports judged together. With ``later``, scores wait for the first access.
    """
    task, settings = task_of(statistics), settings or Settings()
    chosen = select(task.name) if metrics is None else list(metrics)
    inputs = None if extra is None else replace(extra, statistics=statistics)
    scores = LaterScores(statistics, settings, chosen, inputs)
    needy = any(spec.needs and spec.default for spec in plugins.curves(task.name).values())
    curves = LaterCurves(statistics, settings, task.name, inputs if needy else None)

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
        samples=samples,
        among=among,
        counted_blocks=blocks,
    )
