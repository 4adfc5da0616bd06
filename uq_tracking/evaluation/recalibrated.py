"""Scores before and after: what a recalibration does to predictions that its fit has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from uq_tracking.curves import Curve
from uq_tracking.errors import RecalibrationError, SettingsError, TrackingWarning
from uq_tracking.evaluation.crossfit import Bench, Outcome, Score, regression, rows_of
from uq_tracking.inputs import Predictions
from uq_tracking.recalibration.base import Recalibration, Recalibrator
from uq_tracking.recalibration.fitting import find_recalibrator, statistics_of
from uq_tracking.settings import Settings

if TYPE_CHECKING:
    from uq_tracking.report import Report

SCHEMA = 1
CURVES = ("reliability", "calibration")
SUFFIX = "_recalibrated"
"""Ending of the curves after recalibration in a report."""

SECOND_SET = "second set"
FITTED_OBJECT = "fitted object"
BY_GROUPS = "cross-fitted in two halves by groups"
AT_RANDOM = "cross-fitted in two random halves"


def add_recalibration(
    report: Report,
    calibration: Any,
    recalibration: str | Iterable[str] | None = None,
    *,
    score: Score,
    settings: Settings,
    predictions: Predictions | None = None,
    seed: int = 0,
) -> Report:
    """The report with scores and curves after recalibration; arguments as for ``evaluate``.

    ``score`` makes a report of statistics. Without ``predictions``, exact statistics in the report are enough; the
    halves of a cross-fit are then random.

    Raises
    ------
    SettingsError
        An unknown method, one for classification, or methods named twice.
    RecalibrationError
        Neither predictions nor exact statistics are there. What a method cannot be fitted to becomes an entry with
        the reason instead, and a warning.
    """
    bench = Bench(rows_of(report, predictions), score, settings, report.provenance.get("digest"), seed)
    how, outcomes = _plan(bench, calibration, recalibration)
    entries: dict[str, Any] = {}
    curves: dict[str, Curve] = {}
    for name, make in outcomes:
        try:
            outcome = make()
        except RecalibrationError as refusal:
            entries[name] = {"how": how, "refused": str(refusal)}
            warnings.warn(f"{name} has no scores after it: {refusal}", TrackingWarning, stacklevel=3)
            continue
        entries[name] = method_entry(how, outcome)
        curves = curves or curves_after(outcome.after)
    return replace(
        report,
        recalibration={"schema": SCHEMA, "methods": entries},
        curves={**report.curves, **curves},
    )


def _plan(
    bench: Bench, calibration: Any, recalibration: str | Iterable[str] | None
) -> tuple[str, list[tuple[str, Callable[[], Outcome]]]]:
    """How the parameters come about, and for each method the function that makes its outcome."""
    given, names = _all_of(calibration, Recalibration), _all_of(calibration, str)
    if (given or names) and recalibration is not None:
        raise SettingsError("calibration names the methods already; leave recalibration= out")
    if given:
        return FITTED_OBJECT, [(item.method, partial(bench.applied, regression(item))) for item in given]
    methods = _regression_methods(names or recalibration or "std_scaling")
    if calibration is True or names:
        how = AT_RANDOM if bench.data.codes is None else BY_GROUPS
        return how, [(method.name, partial(bench.cross_fitted, method)) for method in methods]
    statistics, about = statistics_of(calibration)
    digest = about.get("digest")
    return SECOND_SET, [
        (method.name, partial(bench.fitted, method, statistics, digest)) for method in methods
    ]


def _all_of(value: Any, kind: type[Any]) -> list[Any]:
    """The values as a list if they are all of a kind; empty otherwise."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, tuple | list) and value and all(isinstance(item, kind) for item in value):
        return list(value)
    return []


def _regression_methods(names: str | Iterable[str]) -> list[Recalibrator]:
    methods = [find_recalibrator(name) for name in ([names] if isinstance(names, str) else names)]
    for method in methods:
        if method.task != "regression":
            raise SettingsError(
                f"{method.name} recalibrates a {method.task}; choose a method for mean and std"
            )
    return methods


def method_entry(how: str, outcome: Outcome) -> dict[str, Any]:
    """One method of ``Report.recalibration``, as plain values."""
    after = outcome.after
    entry: dict[str, Any] = {
        "how": how,
        "scalars": outcome.fitted.scalars(),
        "scores": dict(after.scores),
        "undefined": dict(after.undefined),
        "curves": {name: after.curves[name].to_dict() for name in CURVES if name in after.curves},
        "recalibration": outcome.fitted.to_dict(),
    }
    if outcome.halves:
        entry["halves"] = [{"n": half.fitted_on.n, "scalars": half.scalars()} for half in outcome.halves]
    return entry


def curves_after(after: Report) -> dict[str, Curve]:
    """The curves after recalibration, under the names that a report has them by."""
    found = {name: after.curves[name] for name in CURVES if name in after.curves}
    return {
        name + SUFFIX: replace(
            curve, name=name + SUFFIX, title=f"{curve.title} after recalibration", score=None
        )
        for name, curve in found.items()
    }


def scored_methods(report: Report) -> dict[str, Any]:
    """Entries of the methods that the report has scores after, in order."""
    entries: Mapping[str, Any] = (report.recalibration or {}).get("methods", {})
    return {name: entry for name, entry in entries.items() if "scores" in entry}


def after_report(report: Report, method: str | None = None) -> Report:
    """The report as it is after recalibration, for drawings and comparisons; the first method by default.

    Raises
    ------
    RecalibrationError
        The report has no such scores.
    """
    done = scored_methods(report)
    if not done or (method is not None and method not in done):
        raise RecalibrationError(
            f"the report has scores after {', '.join(done) or 'no recalibration'}; evaluate with calibration="
        )
    entry = done[method or next(iter(done))]
    return replace(
        report,
        scores=dict(entry["scores"]),
        undefined=dict(entry["undefined"]),
        curves={name: Curve.from_dict(curve) for name, curve in entry["curves"].items()},
        recalibration=None,
        statistics=None,
        intervals={},
    )
