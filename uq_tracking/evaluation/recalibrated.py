"""Scores before and after: what a recalibration does to predictions that its fit has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from uq_tracking import plugins
from uq_tracking.curves import Curve
from uq_tracking.curves.spec import RECALIBRATED
from uq_tracking.errors import RecalibrationError, SettingsError, TrackingWarning
from uq_tracking.evaluation.crossfit import Bench, Outcome, Score, regression, rows_of
from uq_tracking.inputs import Predictions
from uq_tracking.recalibration.base import Recalibration, Recalibrator
from uq_tracking.recalibration.fitting import find_recalibrator, statistics_of
from uq_tracking.settings import Settings

if TYPE_CHECKING:
    from uq_tracking.report import Report

SCHEMA = 1

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
        "curves": {name: curve.to_dict() for name, curve in _shown_again(after).items()},
        "recalibration": outcome.fitted.to_dict(),
    }
    if outcome.halves:
        entry["halves"] = [{"n": half.fitted_on.n, "scalars": half.scalars()} for half in outcome.halves]
    return entry


def curves_after(after: Report) -> dict[str, Curve]:
    """The curves after recalibration, under the names that a report has them by."""
    return {
        name + RECALIBRATED: replace(
            curve, name=name + RECALIBRATED, title=f"{curve.title} after recalibration", score=None
        )
        for name, curve in _shown_again(after).items()
    }


def _shown_again(after: Report) -> dict[str, Curve]:
    """Curves that are declared to be of interest after a recalibration too."""
    specs = plugins.curves(after.task)
    return {name: c for name, c in after.curves.items() if name in specs and specs[name].recalibrated}
