"""The curves of every classification report: pure functions of the statistics.

They appear in the order in which comparisons show them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from uq_tracking.curves.spec import Columns, curve, percent, row_number
from uq_tracking.metrics.classification import sparsification_brier
from uq_tracking.metrics.gaps import CONFIDENCE, confidence_bins
from uq_tracking.metrics.isotonic import isotonic_confidence
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics

REMOVED = "Fraction of highest entropy removed"


def bin_number(columns: Columns) -> npt.NDArray[np.float64]:
    """Index of each row's bin; empty bins have no row."""
    return np.rint(columns["confidence_low"] / (columns["confidence_high"] - columns["confidence_low"]))


of_classes = partial(curve, task="classification")
"""Declares a curve of class probabilities."""


@of_classes(
    x="confidence",
    y="accuracy",
    x_label="Stated probability: mean of the bin",
    y_label="Observed share of the bin",
    title="Reliability",
    score="ece",
    steps=bin_number,
    reference="diagonal",
    recalibrated=True,
    settings=("n_bins",),
    header={"ece": "ECE"},
    draw="uq_tracking.figures.calibration.class_reliability",
    figure="reliability",
    gap=CONFIDENCE,
)
def reliability(statistics: Statistics, settings: Settings) -> Columns:
    """Share that occurs against stated probability in the non-empty bins.

    Of two classes those of the event, of more those of the top label: accuracy against confidence.
    """
    bins = confidence_bins(statistics, settings.n_bins)
    filled = bins.count > 0
    columns = {
        "confidence_low": bins.low,
        "confidence_high": bins.high,
        "confidence": bins.confidence,
        "accuracy": bins.accuracy,
        "count": bins.count,
    }
    return {name: column[filled] for name, column in columns.items()}


@of_classes(
    x="predicted",
    y="observed",
    x_label="Stated probability",
    y_label="Isotonic observed share",
    title="Reliability without bins",
    score="ece",
    default=False,
    steps=row_number,
    reference="diagonal",
    gap="isotonic",
    header={"ece": "ECE"},
)
def reliability_isotonic(statistics: Statistics, settings: Settings) -> Columns:
    """Observed share as the best-fitting increasing step function of the stated probability (CORP)."""
    predicted, observed = isotonic_confidence(statistics).corners()
    return {"predicted": predicted, "observed": observed}


@of_classes(
    "sparsification_brier",
    x="fraction",
    y="model",
    x_label=REMOVED,
    y_label="Brier score of the rest / of all",
    title="Sparsification",
    score="ause_brier",
    steps=percent("fraction"),
    header={"ause_brier": "AUSE", "brier": "Brier score"},
    draw="uq_tracking.figures.ranking.sparsification",
    figure="sparsification",
)
def brier_of_the_rest(statistics: Statistics, settings: Settings) -> Columns:
    """Brier score of the remaining samples, for the entropy, the oracle and a random order."""
    return sparsification_brier(statistics).of_rest()


@of_classes(
    x="fraction",
    y="error",
    x_label=REMOVED,
    y_label="Sparsification error (Brier)",
    title="Sparsification error",
    score="ause_brier",
    steps=percent("fraction"),
    reference=(0.0,),
    header={"ause_brier": "AUSE"},
)
def sparsification_error_brier(statistics: Statistics, settings: Settings) -> Columns:
    """Distance of the Brier score of the samples of lowest entropy from the oracle's."""
    return sparsification_brier(statistics).gap()


@of_classes(
    x="coverage",
    y="risk",
    x_label="Coverage: most confident share decided",
    y_label="Risk: error rate of the decided",
    title="Risk and coverage",
    score="aurc",
    steps=percent("coverage"),
    header={"aurc": "AURC", "accuracy": "accuracy"},
    draw="uq_tracking.figures.ranking.risk_coverage",
    figure="risk_coverage",
)
def risk_coverage(statistics: Statistics, settings: Settings) -> Columns:
    """Error rate of the most confident samples, by the share of samples decided."""
    percents = np.arange(1, 101)
    decided = np.maximum(statistics.n * percents // 100, 1).astype(float)
    correct = statistics.orders["one_minus_confidence"].cumulative("correct", decided) / decided
    return {"coverage": percents / 100, "risk": np.maximum(1 - correct, 0.0)}
