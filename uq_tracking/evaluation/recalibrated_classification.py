"""Scores of a classification before and after temperature scaling, fitted on samples that are not scored."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from uq_tracking.errors import RecalibrationError, SettingsError, TrackingWarning
from uq_tracking.evaluation.crossfit import Outcome
from uq_tracking.evaluation.recalibrated import FITTED_OBJECT, SCHEMA, SECOND_SET, curves_after, method_entry
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.recalibration.base import FittedOn
from uq_tracking.recalibration.temperature import Temperature, fit_temperature
from uq_tracking.report import Report


def add_temperature(
    report: Report,
    data: ClassPredictions,
    calibration: Any,
    *,
    score: Callable[[ClassPredictions], Report],
) -> Report:
    """The report with scores and curves after temperature scaling.

    Parameters
    ----------
    report, data
        Before it, and what was scored.
    calibration : tuple (labels, probs), ClassPredictions or Temperature
        What to fit on, or what was fitted.
    score : callable
        Makes a report of class predictions.

    Raises
    ------
    SettingsError
        ``calibration`` is nothing of these, or has another number of classes.

    Warns
    -----
    TrackingWarning
        There is no best temperature, or none for probabilities of 0; the report says why.
    """
    fitted: Temperature | None
    if isinstance(calibration, Temperature):
        how, fitted, refusal = FITTED_OBJECT, calibration, ""
    else:
        how, (fitted, refusal) = SECOND_SET, _fit(_second_set(calibration, data))
    if fitted is None:
        warnings.warn(f"temperature has no scores after it: {refusal}", TrackingWarning, stacklevel=3)
        entry: dict[str, Any] = {"how": how, "refused": refusal}
        return replace(report, recalibration={"schema": SCHEMA, "methods": {"temperature": entry}})
    if fitted.n_logits != n_logits(data):
        raise SettingsError(
            f"the temperature was fitted to {fitted.n_logits} logits per sample, these predictions have "
            f"{n_logits(data)}; fit it on predictions of the same model"
        )
    after = score(data.at_temperature(fitted.temperature))
    entry = method_entry(how, Outcome(fitted, after))
    return replace(
        report,
        recalibration={"schema": SCHEMA, "methods": {"temperature": entry}},
        curves={**report.curves, **curves_after(after)},
    )


def n_logits(data: ClassPredictions) -> int:
    """Logits per sample; 1 of a binary classifier that gives one number."""
    return 1 if data.scores.binary else data.n_classes


def _second_set(calibration: Any, data: ClassPredictions) -> ClassPredictions:
    if isinstance(calibration, ClassPredictions):
        return calibration
    if isinstance(calibration, tuple) and len(calibration) == 2:
        return data.like(*calibration)
    raise SettingsError(
        f"calibration is a {type(calibration).__name__}; pass a second set (labels, probs), ClassPredictions, or "
        "a fitted Temperature"
    )


def _fit(data: ClassPredictions) -> tuple[Temperature | None, str]:
    """The temperature of a second set, or why there is none."""
    labels, logits = data.logarithms()
    try:
        return fit_temperature(labels, logits, FittedOn(n=data.n, source="arrays", digest=data.digest())), ""
    except RecalibrationError as error:
        return None, str(error)
