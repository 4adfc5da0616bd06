"""Make a new report from what a run holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import fields, replace
from typing import Any

from uq_tracking import plugins
from uq_tracking.errors import RecalibrationError
from uq_tracking.evaluation.plan import Plan, check_family
from uq_tracking.evaluation.recalibrated import AT_RANDOM, BY_GROUPS, add_recalibration
from uq_tracking.evaluation.scoring import score
from uq_tracking.inference.intervals import with_intervals
from uq_tracking.metrics.registry import Metric, MetricInputs, select
from uq_tracking.recalibration import Recalibration
from uq_tracking.report import Report
from uq_tracking.rescoring.request import Request
from uq_tracking.rescoring.source import Source
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import task_of


def scored(
    source: Source, settings: Settings, request: Request, old: Report | None, *, later: bool = False
) -> Report:
    """Score the source, now or on first access; without recalibrations."""
    if source.predictions is not None:
        report = _of_predictions(source.predictions, settings, request, old, later=later)
    elif source.statistics is not None:
        report = _of_statistics(source.statistics, settings, request, old, later=later)
    if old is None or report.provenance.get("digest"):
        return report
    return replace(report, provenance={**report.provenance, "digest": old.provenance.get("digest")})


def wanted(task: str, request: Request, old: Report | None, given: Set[str]) -> list[Metric]:
    """The default suite, what the run has, and what is requested.

    A metric whose needs are not met is included only if it is requested and the run has no value for it: then the
    report says why there is none.
    """
    known = plugins.metrics(task)
    had = {} if old is None else {**old.scores, **old.undefined}
    keys = {key for key, metric in known.items() if metric.default or key in had}
    asked = set(request.metrics) - had.keys()
    return [
        replace(metric, when=None) if key in request.metrics else metric
        for key, metric in known.items()
        if key in asked or ((key in keys or key in request.metrics) and given >= set(metric.needs))
    ]


def about_input(statistics: Statistics, old: Report | None) -> dict[str, Any]:
    """What the report says about the input, besides its settings."""
    own = {item.name for item in fields(Settings)}
    known = {} if old is None else {name: value for name, value in old.settings.items() if name not in own}
    return {**statistics.facts, **known}


def _of_statistics(
    statistics: Statistics, settings: Settings, request: Request, old: Report | None, *, later: bool
) -> Report:
    digest = None if old is None else old.provenance.get("digest")
    chosen = wanted(statistics.task, request, old, frozenset())
    about = about_input(statistics, old)
    check_family(settings, statistics.facts)
    report = score(statistics, settings, chosen, digest=digest, about=about, later=later)
    return _with_intervals(report, settings, chosen, old)


def _with_intervals(report: Report, settings: Settings, chosen: list[Metric], old: Report | None) -> Report:
    """Intervals from the stored statistics of the groups, if any, which are coarser than when counted.

    An unchanged score keeps its interval.
    """
    tables = None if report.statistics is None else report.statistics.groups
    if tables is None or old is None or not old.intervals:
        return report
    made = with_intervals(report, tables, settings, chosen, level_of(old))
    as_before = {
        key: interval
        for key, interval in old.intervals.items()
        if key in made.scores and math.isclose(made.scores[key], old.scores.get(key, math.nan), rel_tol=1e-12)
    }
    return replace(made, intervals={**made.intervals, **as_before})


def level_of(old: Report) -> float:
    """Confidence level of a report's intervals."""
    return float((old.provenance.get("intervals") or {}).get("level", 0.95))


def _of_predictions(
    predictions: Any, settings: Settings, request: Request, old: Report | None, *, later: bool
) -> Report:
    task = task_of(predictions)
    kind = None if old is None else old.provenance.get("statistics")
    given = MetricInputs(None, predictions).given
    chosen = wanted(task.name, request, old, given)
    known = set() if old is None else {*old.scores, *old.undefined}
    named = [metric.key for metric in chosen if metric.when is None or metric.key in known]
    whole_suite = {metric.key for metric in chosen} == {
        metric.key for metric in select(task.name, given=given)
    }
    plan = Plan.of(
        task,
        settings,
        metrics=None if whole_suite else named,
        statistics=kind if kind in ("exact", "sketch") else "auto",
        intervals=True if old is not None and old.intervals else None,
        level=0.95 if old is None else level_of(old),
    )
    return plan.report(predictions, later=later)


def recalibrated_as_before(report: Report, source: Source, settings: Settings, old: Report) -> Report:
    """Scores after the run's recalibrations, under the new settings.

    Raises
    ------
    RecalibrationError
        The source does not hold what that requires.
    """
    entries = old.recalibrations
    if not any(entry.get("how") in (AT_RANDOM, BY_GROUPS) for entry in entries.values()):
        fits = [
            Recalibration.from_dict(e["recalibration"]) for e in entries.values() if e.get("recalibration")
        ]
        if not fits:
            return report
        new = _recalibrated(report, source, settings, fits, None)
    else:
        if source.predictions is None:
            raise RecalibrationError(
                "the halves of a cross-fit need predictions, and only statistics are read"
            )
        new = _recalibrated(report, source, settings, True, list(entries))
    redone = {name: {**entry, "how": entries[name]["how"]} for name, entry in new.recalibrations.items()}
    return _with_methods(new, {**entries, **redone})


def recalibrated_anew(
    report: Report, source: Source, settings: Settings, request: Request, calibration: Any
) -> Report:
    """The report with the requested recalibrations in addition to those it has."""
    before = report.recalibrations
    new = _recalibrated(report, source, settings, calibration, request.recalibration or None)
    return _with_methods(new, {**before, **new.recalibrations})


def _with_methods(report: Report, methods: Mapping[str, Any]) -> Report:
    return replace(report, recalibration={**(report.recalibration or {}), "methods": dict(methods)})


def _recalibrated(report: Report, source: Source, settings: Settings, calibration: Any, names: Any) -> Report:
    known = plugins.metrics(report.task)
    chosen = [known[key] for key in (*report.scores, *report.undefined) if key in known]
    return add_recalibration(
        report,
        calibration,
        names,
        metrics=[metric for metric in chosen if not metric.needs],
        settings=settings,
        data=source.predictions,
    )
