"""A new report from what a run holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import fields, replace
from typing import Any

from uq_tracking.errors import RecalibrationError, SettingsError
from uq_tracking.evaluation.recalibrated import FITTED_OBJECT, SECOND_SET
from uq_tracking.metrics.registry import Metric, MetricInputs, registry
from uq_tracking.recalibration import Recalibration
from uq_tracking.report import Report
from uq_tracking.rescoring.request import Request
from uq_tracking.rescoring.source import Source, methods_of
from uq_tracking.settings import Settings
from uq_tracking.statistics.classification import ClassificationStatistics
from uq_tracking.statistics.regression import RegressionStatistics


def scored(source: Source, settings: Settings, request: Request, old: Report | None) -> Report:
    """Score the source; recalibrations are not among it."""
    if source.predictions is not None:
        report = _of_predictions(source.predictions, settings, request, old)
    else:
        report = _of_statistics(source.statistics, settings, request, old)
    digest = report.provenance.get("digest") or (None if old is None else old.provenance.get("digest"))
    return replace(report, provenance={**report.provenance, "digest": digest})


def wanted(task: str, request: Request, old: Report | None, given: Set[str]) -> list[Metric]:
    """The default suite, what the run has and what is asked for.

    A metric whose needs are not given is among them only if it is asked for and the run has no value of it: then the
    report says why there is none.
    """
    known = registry(task)
    had = {} if old is None else {**old.scores, **old.undefined}
    keys = {key for key, metric in known.items() if metric.default or key in had}
    asked = set(request.metrics) - had.keys()
    return [
        metric
        for key, metric in known.items()
        if key in asked or ((key in keys or key in request.metrics) and given >= set(metric.needs))
    ]


def _of_statistics(statistics: Any, settings: Settings, request: Request, old: Report | None) -> Report:
    digest = None if old is None else old.provenance.get("digest")
    if isinstance(statistics, RegressionStatistics):
        from uq_tracking.evaluation.regression import score

        chosen = wanted("regression", request, old, frozenset())
        report = score(statistics, settings, chosen, digest=digest)
        return _with_intervals(report, settings, chosen, old)
    from uq_tracking.evaluation.classification import score_classification

    own = {item.name for item in fields(Settings)}
    facts = {} if old is None else {name: value for name, value in old.settings.items() if name not in own}
    chosen = wanted("classification", request, old, frozenset())
    report = score_classification(statistics, settings, chosen, digest=digest, facts=facts)
    return _with_intervals(report, settings, chosen, old)


def _with_intervals(report: Report, settings: Settings, chosen: list[Metric], old: Report | None) -> Report:
    """Intervals from the statistics of the groups, where they are stored, and more coarsely than they were counted.

    A score that is what it was keeps its interval.
    """
    tables = getattr(report.statistics, "groups", None)
    if tables is None or old is None or not old.intervals:
        return report
    from uq_tracking.bootstrap import with_intervals

    made = with_intervals(report, tables, settings, chosen, **_of_intervals(old))
    as_before = {
        key: interval
        for key, interval in old.intervals.items()
        if key in made.scores and math.isclose(made.scores[key], old.scores.get(key, math.nan), rel_tol=1e-12)
    }
    return replace(made, intervals={**made.intervals, **as_before})


def _of_intervals(old: Report | None) -> dict[str, Any]:
    """How the intervals of a report were made."""
    about = {} if old is None else old.provenance.get("intervals")
    return {name: about[name] for name in ("level", "n_boot", "seed") if about and name in about}


def _of_predictions(predictions: Any, settings: Settings, request: Request, old: Report | None) -> Report:
    from uq_tracking.evaluation.classification import evaluate_classification
    from uq_tracking.evaluation.regression import evaluate
    from uq_tracking.inputs import Predictions

    kind = None if old is None else old.provenance.get("statistics")
    method: Any = kind if kind in ("exact", "sketch") else "auto"
    options: dict[str, Any] = {
        "method": method,
        "intervals": True if old is not None and old.intervals else None,
        **_of_intervals(old),
    }
    if not isinstance(predictions, Predictions):
        keys = [metric.key for metric in wanted("classification", request, old, frozenset())]
        return evaluate_classification(predictions, metrics=keys, n_bins=settings.n_bins, **options)
    chosen = wanted("regression", request, old, MetricInputs(None, predictions).given)
    options |= settings.to_dict()
    report: Report = evaluate(predictions, metrics=[metric.key for metric in chosen], **options)
    return report


def recalibrated_as_before(report: Report, source: Source, settings: Settings, old: Report) -> Report:
    """Scores after the run's recalibrations, under the new settings.

    Raises
    ------
    RecalibrationError
        The source does not hold what that takes.
    """
    entries = methods_of(old)
    if all(entry.get("how") in (FITTED_OBJECT, SECOND_SET) for entry in entries.values()):
        fits = [
            Recalibration.from_dict(e["recalibration"]) for e in entries.values() if e.get("recalibration")
        ]
        if not fits:
            return report
        new = _recalibrated(report, source, settings, fits, None)
    else:
        if source.predictions is None:
            raise RecalibrationError(
                "the halves of a cross-fit are made of predictions, and only statistics are read"
            )
        new = _recalibrated(report, source, settings, True, list(entries))
    redone = {name: {**entry, "how": entries[name]["how"]} for name, entry in methods_of(new).items()}
    return _with_methods(new, {**entries, **redone})


def recalibrated_anew(
    report: Report, source: Source, settings: Settings, request: Request, calibration: Any
) -> Report:
    """The report with the recalibrations that are asked for beside those it has."""
    before = methods_of(report)
    new = _recalibrated(report, source, settings, calibration, request.recalibration or None)
    return _with_methods(new, {**before, **methods_of(new)})


def _with_methods(report: Report, methods: Mapping[str, Any]) -> Report:
    return replace(report, recalibration={**(report.recalibration or {}), "methods": dict(methods)})


def _recalibrated(report: Report, source: Source, settings: Settings, calibration: Any, names: Any) -> Report:
    if isinstance(report.statistics, ClassificationStatistics):
        return _at_temperature(report, source, settings, calibration)
    from uq_tracking.evaluation.recalibrated import add_recalibration
    from uq_tracking.evaluation.regression import score

    chosen = [registry()[key] for key in (*report.scores, *report.undefined) if key in registry()]
    chosen = [metric for metric in chosen if not metric.needs]
    return add_recalibration(
        report,
        calibration,
        names,
        score=lambda statistics, settings: score(statistics, settings, chosen),
        settings=settings,
        predictions=source.predictions,
    )


def _at_temperature(report: Report, source: Source, settings: Settings, calibration: Any) -> Report:
    from uq_tracking.evaluation.classification import evaluate_classification

    if source.predictions is None:
        raise RecalibrationError("temperature scaling changes probabilities; statistics do not hold them")
    fitted = calibration[0] if isinstance(calibration, list) and len(calibration) == 1 else calibration
    if not (isinstance(fitted, Recalibration) or fitted is True or fitted == "temperature"):
        raise SettingsError(
            "for classifications pass a fitted temperature, or its file, as calibration; or True to cross-fit one"
        )
    new = evaluate_classification(
        source.predictions, n_bins=settings.n_bins, calibration=fitted, intervals=False
    )
    curves = {name: curve for name, curve in new.curves.items() if name not in report.curves}
    return replace(report, recalibration=new.recalibration, curves={**report.curves, **curves})
