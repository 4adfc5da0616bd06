"""Scores of ordered classes, and the curve of their cumulative probabilities."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from uq_tracking.curves import curve
from uq_tracking.metrics.registry import Undefined, metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics

of_classes = partial(metric, task="ordered", direction="lower", headline=True, in_curves=True)


@of_classes(
    "rps",
    family="scoring",
    summary="Ranked probability score",
    formula="mean of sum_k (P(Y <= k) - 1[y <= k])^2 / (K - 1)",
    source="Epstein 1969",
    bounds=(0.0, 1.0),
)
def rps(statistics: Statistics, settings: Settings) -> float:
    """Mean squared distance of the cumulative probabilities from the truth: 0 is perfect, 1 the opposite end.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> report = uq.evaluate([0, 2], ordered_probs=[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> report.scores["rps"]
    0.0625
    """
    return statistics.sums["rps"] / statistics.n


@of_classes(
    "class_error",
    family="accuracy",
    summary="Mean absolute error of the median class",
    formula="mean |median class - y|, the smallest k with P(Y <= k) >= 1/2",
    source="Standard definition",
    bounds=(0.0, float("inf")),
)
def class_error(statistics: Statistics, settings: Settings) -> float:
    """Classes between the median of the forecast and the truth, on average.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> report = uq.evaluate([0, 2], ordered_probs=[[0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])
    >>> report.scores["class_error"]
    0.5
    """
    return statistics.sums["class_error"] / statistics.n


@of_classes(
    "cumulative_ece",
    family="calibration",
    summary="Mean gap between stated and observed cumulative probabilities, in equal-count bins",
    formula="mean over thresholds and bins of |share of y <= k - mean P(Y <= k)|",
    source="An example; bins as for the expected calibration error",
    bounds=(0.0, 1.0),
)
def cumulative_ece(statistics: Statistics, settings: Settings) -> float:
    """Mean absolute gap of the points of the reliability curve, before those of all thresholds are joined.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> report = uq.evaluate([0, 2], ordered_probs=[[0.4, 0.6, 0.0], [0.0, 0.0, 1.0]], n_bins=1)
    >>> round(report.scores["cumulative_ece"], 6)
    0.15
    """
    stated, observed = binned(statistics, settings.n_bins)
    return float(np.abs(observed - stated).mean())


def binned(statistics: Statistics, n_bins: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return mean ``P(Y <= k)`` and the share of ``y <= k`` in bins of equal count, each of shape (K - 1, bins)."""
    if statistics.n < n_bins:
        raise Undefined(f"{statistics.n:g} samples cannot fill {n_bins} bins; lower n_bins")
    edges = np.linspace(0, statistics.n, n_bins + 1)
    stated, observed = [], []
    for k in range(statistics.facts["n_classes"] - 1):
        order = statistics.orders[f"stated_{k}"]
        stated.append(order.between(f"stated_{k}", edges) / np.diff(edges))
        observed.append(order.between(f"event_{k}", edges) / np.diff(edges))
    return np.asarray(stated), np.asarray(observed)


@curve(
    "reliability",
    task="ordered",
    x="stated",
    y="observed",
    x_label="Stated P(Y \N{LESS-THAN OR EQUAL TO} k), mean of the bin",
    y_label="Share of the samples with y \N{LESS-THAN OR EQUAL TO} k",
    title="Cumulative reliability",
    score="cumulative_ece",
    reference="diagonal",
    ceiling=1.0,
    recalibrated=True,
    settings=("n_bins",),
    header={"rps": "RPS", "cumulative_ece": "calibration error"},
    figure="reliability",
)
def reliability(statistics: Statistics, settings: Settings) -> dict[str, npt.NDArray[np.float64]]:
    """Observed against stated cumulative probabilities, those of all thresholds joined, in bins of equal count."""
    stated, observed = (each.ravel() for each in binned(statistics, settings.n_bins))
    order = np.argsort(stated, kind="stable")
    columns = {"stated": stated[order], "observed": observed[order]}
    per_point = len(order) // settings.n_bins
    return {name: column.reshape(-1, per_point).mean(axis=1) for name, column in columns.items()}
