"""Scores of a classification before and after temperature scaling, fitted on samples that are not scored."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import RecalibrationError, SettingsError, TrackingWarning
from uq_tracking.evaluation.crossfit import ONE_GROUP, Outcome, two_halves
from uq_tracking.evaluation.recalibrated import (
    AT_RANDOM,
    BY_GROUPS,
    FITTED_OBJECT,
    SCHEMA,
    SECOND_SET,
    curves_after,
    method_entry,
)
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.recalibration.base import FittedOn
from uq_tracking.recalibration.temperature import Temperature, fit_temperature
from uq_tracking.report import Report

Score = Callable[[Sequence[ClassPredictions]], Report]


def add_temperature(
    report: Report, data: ClassPredictions, calibration: Any, *, score: Score, seed: int = 0
) -> Report:
    """The report with scores and curves after temperature scaling.

    Parameters
    ----------
    report, data
        Before it, and what was scored.
    calibration : tuple (labels, probs), ClassPredictions, Temperature, True or "temperature"
        What to fit on, or what was fitted; the last two cross-fit the two halves of ``data``.
    score : callable
        Makes one report of several parts of class predictions.
    seed : int
        Of the halves.

    Raises
    ------
    SettingsError
        ``calibration`` is nothing of these, or has another number of classes.

    Warns
    -----
    TrackingWarning
        There is no best temperature, or none for probabilities of 0; the report says why.
    """
    how, make = _plan(data, calibration, score, seed)
    try:
        outcome = make()
    except RecalibrationError as refusal:
        warnings.warn(f"temperature has no scores after it: {refusal}", TrackingWarning, stacklevel=3)
        entry: dict[str, Any] = {"how": how, "refused": str(refusal)}
        return replace(report, recalibration={"schema": SCHEMA, "methods": {"temperature": entry}})
    entry = method_entry(how, outcome)
    return replace(
        report,
        recalibration={"schema": SCHEMA, "methods": {"temperature": entry}},
        curves={**report.curves, **curves_after(outcome.after)},
    )


def _plan(
    data: ClassPredictions, calibration: Any, score: Score, seed: int
) -> tuple[str, Callable[[], Outcome]]:
    """How the temperature comes about, and the function that makes its outcome."""
    if isinstance(calibration, Temperature):
        return FITTED_OBJECT, lambda: _applied(calibration, data, score)
    if calibration is True or (isinstance(calibration, str) and calibration == Temperature.method):
        how = AT_RANDOM if data.groups is None else BY_GROUPS
        return how, lambda: _cross_fitted(data, score, seed)
    second = _second_set(calibration, data)
    return SECOND_SET, lambda: _applied(_fit(second), data, score)


def _applied(fitted: Temperature, data: ClassPredictions, score: Score) -> Outcome:
    if fitted.n_logits != n_logits(data):
        raise SettingsError(
            f"the temperature was fitted to {fitted.n_logits} logits per sample, these predictions have "
            f"{n_logits(data)}; fit it on predictions of the same model"
        )
    return Outcome(fitted, score([data.at_temperature(fitted.temperature)]))


def _cross_fitted(data: ClassPredictions, score: Score, seed: int) -> Outcome:
    """Score each half at the temperature fitted on the other, and all of it together."""
    side = _halves(data, seed)
    parts = [data.part(side == half) for half in (0, 1)]
    if not all(part.n for part in parts):
        raise RecalibrationError(ONE_GROUP)
    fits = [_fit(part) for part in parts]
    unseen = [part.at_temperature(fitted.temperature) for part, fitted in zip(parts, fits[::-1], strict=True)]
    return Outcome(_fit(data), score(unseen), fits)


def _halves(data: ClassPredictions, seed: int) -> npt.NDArray[np.int8]:
    """Half (0 or 1) of each sample, in the shape of the labels; whole groups where there are any."""
    if data.groups is not None:
        labels, codes = data.group_codes()
        return np.asarray(two_halves(len(labels), seed)[codes])
    drawn = two_halves(data.n, seed)
    if data.valid is None:
        return drawn.reshape(data.shape)
    side = np.zeros(data.shape, dtype=np.int8)
    side[data.valid] = drawn
    return side


def n_logits(data: ClassPredictions) -> int:
    """Logits per sample; 1 of a binary classifier that gives one number."""
    return 1 if data.scores.binary else data.n_classes


def _second_set(calibration: Any, data: ClassPredictions) -> ClassPredictions:
    if isinstance(calibration, ClassPredictions):
        return calibration
    if isinstance(calibration, tuple) and len(calibration) == 2:
        return data.like(*calibration)
    given = repr(calibration) if isinstance(calibration, str) else f"a {type(calibration).__name__}"
    raise SettingsError(
        f"calibration is {given}; pass a second set (labels, probs), ClassPredictions, a fitted Temperature, or True "
        "to fit each half of the samples on the other"
    )


def _fit(data: ClassPredictions) -> Temperature:
    """The temperature of a set; RecalibrationError says why there is none."""
    labels, logits = data.logarithms()
    return fit_temperature(labels, logits, FittedOn(n=data.n, source="arrays", digest=data.digest()))
