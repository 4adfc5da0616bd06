"""Certainty of a report: noise floors, intervals, comparisons, and the verdict in words.

`limits` is arithmetic, and says when data suffice. `noise` and `intervals` judge scores and curves,
`regression` and `classification` hold the tests behind a `verdict`, which `words` puts into sentences, and `paired`
compares methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uq_tracking import plugins
from uq_tracking.inference.class_samples import ClassSamples, counted
from uq_tracking.inference.even_samples import EvenSamples, codes_of
from uq_tracking.inference.noise import NoiseFloor, noise_floors
from uq_tracking.inference.samples import Samples, halvings_for, members_of
from uq_tracking.inference.verdict import Estimate, Verdict, no_verdict
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings

__all__ = [
    "ClassSamples",
    "Estimate",
    "Judgement",
    "NoiseFloor",
    "Samples",
    "Verdict",
    "judge",
    "no_verdict",
    "samples_of",
]


def samples_of(data: Any, statistics: Any, kept: Mapping[str, Any] | None) -> Samples | ClassSamples | None:
    """Return the samples that a verdict looks at, of predictions whose rows are ``kept`` or are copied.

    Of many that are only counted, some are taken, evenly spread.
    """
    if data.task == "classification":
        return ClassSamples.of(data)
    if statistics.kind == "exact" or not halvings_for(data.n):
        return Samples.of(data, statistics, kept)
    some = EvenSamples()
    some.add(data, codes_of(data))
    found = some.samples()
    if not isinstance(found, Samples):
        return found
    # of some samples, blocks tell the order in time
    return replace(found, members=members_of(data), clock=None if data.clock is None else found.group)


@dataclass(frozen=True)
class Judgement:
    """Noise floors by metric key, and the verdict."""

    noise: Mapping[str, NoiseFloor]
    verdict: Verdict


def judge(
    statistics: Any,
    task: str,
    settings: Settings,
    scores: Mapping[str, float],
    samples: Samples | ClassSamples | None = None,
    among: int = 1,
    names: Sequence[str] | None = None,
) -> Judgement:
    """Compute noise floors and the verdict; without statistics there is no verdict.

    ``samples`` are those behind the statistics, if they are in memory: they show where standard deviations are wrong,
    and which samples belong together. ``among`` is the number of reports that are judged together, ``names`` are
    those of classes.
    """
    if statistics is None:
        return Judgement({}, no_verdict("the report holds scores without their statistics"))
    statistics.complete()
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        samples = None if samples is None else samples.in_season()
        if isinstance(samples, ClassSamples):
            samples, known = samples.different(), statistics.groups
            if samples.repeated or (statistics.classes is None and not samples.total):
                made = counted(samples.data)
                own = made.groups and known and replace(made.groups, labels=known.labels)
                statistics = replace(made, groups=own)
        dependence = None if samples is None or statistics.groups is not None else samples.dependence()
        if samples is not None and dependence is not None and dependence.group is not None:
            statistics = samples.grouped(statistics, dependence.group)
        noise = noise_floors(statistics, task, settings, scores)
        made_of = plugins.tasks()[task].tests
        tests = made_of(statistics, settings, samples, dependence, among=among, names=names)
        try:
            verdict = tests.verdict()
        except Undefined as reason:
            verdict = no_verdict(str(reason))
    distant = None if dependence is None else dependence.distant
    if isinstance(samples, ClassSamples) and samples.repeated:
        distant = float(len(samples.data.truth))
    return Judgement(noise, replace(verdict, distant=distant))
