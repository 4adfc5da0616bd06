"""The numbers behind every plot of a classification."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from uq_tracking.curves.curve import Curve, FloatArray
from uq_tracking.metrics.classification import equal_width_bins, sparsification_brier
from uq_tracking.metrics.ranking import FRACTIONS
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics

COVERAGES = np.arange(1, 101) / 100
"""Share of the samples that are decided, the most confident first."""

PER_CENT = np.arange(100, dtype=np.int64)


def _reliability(statistics: Statistics, settings: Settings) -> list[Curve]:
    bins = equal_width_bins(statistics, settings.n_bins)
    filled = np.flatnonzero(bins.count > 0)
    columns: dict[str, FloatArray] = {
        name: getattr(bins, name)[filled] for name in ("low", "high", "confidence", "accuracy", "count")
    }
    labels = ("Confidence: mean top probability of the bin", "Accuracy of the bin")
    return [Curve("reliability", columns, "confidence", "accuracy", *labels, "Reliability", "ece", filled)]


def _sparsification(statistics: Statistics, settings: Settings) -> list[Curve]:
    numbers = sparsification_brier(statistics)
    label = "Fraction of samples of highest entropy removed"
    columns = {
        "fraction": FRACTIONS,
        "model": numbers.model,
        "oracle": numbers.oracle,
        "random": np.ones_like(FRACTIONS),
    }
    gap = {"fraction": FRACTIONS, "error": numbers.model - numbers.oracle}
    ratio, key = "Brier score of the rest / of all", "ause_brier"
    return [
        Curve(
            "sparsification_brier",
            columns,
            "fraction",
            "model",
            label,
            ratio,
            "Sparsification",
            key,
            PER_CENT,
        ),
        Curve(
            "sparsification_error_brier",
            gap,
            "fraction",
            "error",
            label,
            "Sparsification error (Brier)",
            "Sparsification error",
            key,
            PER_CENT,
        ),
    ]


def _risk_coverage(statistics: Statistics, settings: Settings) -> list[Curve]:
    n = statistics.n
    kept = np.asarray([max(1, n * percent // 100) for percent in range(1, 101)], dtype=float)
    right = statistics.orders["one_minus_confidence"].cumulative("correct", kept) / kept
    columns = {"coverage": COVERAGES, "risk": np.maximum(1 - right, 0.0)}
    labels = ("Coverage: share of samples decided, most confident first", "Risk: error rate of the decided")
    return [
        Curve(
            "risk_coverage", columns, "coverage", "risk", *labels, "Risk and coverage", "aurc", PER_CENT + 1
        )
    ]


BUILDERS: tuple[Callable[[Statistics, Settings], list[Curve]], ...] = (
    _reliability,
    _sparsification,
    _risk_coverage,
)


def classification_curves(statistics: Statistics, settings: Settings) -> dict[str, Curve]:
    """Every curve of the statistics that is defined, by name."""
    made: dict[str, Curve] = {}
    for build in BUILDERS:
        try:
            made.update({curve.name: curve for curve in build(statistics, settings)})
        except Undefined:
            continue  # the score that summarises the curve is undefined too and carries the reason
    return made
