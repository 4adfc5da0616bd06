"""Scores of vectors predicted as a whole, by a covariance or by joint draws."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from uq_tracking.metrics.forms import places
from uq_tracking.metrics.registry import Undefined, metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.covariance import DISTANCE, distance_shares
from uq_tracking.statistics.statistics import Statistics

TAKES = "it needs vectors: Predictions.from_covariance, or Predictions.from_samples(..., joint=True)"


def has_vectors(statistics: Statistics, settings: Settings) -> bool:
    """Whether samples are components of vectors."""
    return bool(statistics.facts.get("vector_length"))


def has_distances(statistics: Statistics, settings: Settings) -> bool:
    """Whether the vectors have a covariance."""
    return DISTANCE in statistics.orders


def vector_mean(statistics: Statistics, key: str) -> float:
    """Mean of a score over whole vectors."""
    if not has_vectors(statistics, Settings()):
        raise Undefined(TAKES)
    whole, total = statistics.sums["whole"], statistics.sums[key]
    if math.isnan(total):
        raise Undefined("draws have no density; energy_score scores them")
    if not whole > 0:
        raise Undefined("every vector lacks a component, because of missing truth or the mask")
    return total / whole


def require_distances(statistics: Statistics) -> None:
    """Raise ``Undefined`` if vectors have no covariance or all are incomplete."""
    if not has_distances(statistics, Settings()):
        raise Undefined("it needs the covariance of vectors: Predictions.from_covariance")
    vector_mean(statistics, "joint_nll")


@metric(
    "energy_score",
    family="scoring",
    direction="lower",
    unit="target",
    summary="Energy score of whole vectors",
    formula="mean of E |X - y| - E |X - X'| / 2",
    source="Gneiting and Raftery 2007 eq. 22",
    when=has_vectors,
)
def energy_score(statistics: Statistics, settings: Settings) -> float:
    """Mean energy score, the CRPS of vectors; for M draws, the fair estimator, whose expectation is independent of M.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("energy_score")
    0.365038
    """
    return vector_mean(statistics, "energy_score")


@metric(
    "variogram_score",
    family="scoring",
    direction="lower",
    unit="target",
    summary="Variogram score of order 1/2 of whole vectors",
    formula="mean of sum over i, j of (|y_i - y_j|^(1/2) - E |X_i - X_j|^(1/2))^2",
    source="Scheuerer and Hamill 2015 eq. 3",
    when=has_vectors,
)
def variogram_score(statistics: Statistics, settings: Settings) -> float:
    """Mean variogram score, sensitive to correlations the energy score barely detects; for draws, the fair estimator.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("variogram_score")
    0.129281
    """
    return vector_mean(statistics, "variogram_score")


@metric(
    "joint_nll",
    family="scoring",
    direction="lower",
    unit="nats",
    summary="Negative log likelihood of whole vectors",
    formula="mean of (D log 2 pi + log det S + (y - m)' S^-1 (y - m)) / 2",
    source="Gneiting and Raftery 2007",
    when=has_distances,
)
def joint_nll(statistics: Statistics, settings: Settings) -> float:
    """Mean negative log density of the vectors.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("joint_nll")
    0.757856
    """
    return vector_mean(statistics, "joint_nll")


@metric(
    "joint_ks",
    family="calibration",
    direction="lower",
    summary="Kolmogorov-Smirnov distance of the Mahalanobis distances from chi-square",
    formula="sup over p of |share of chi2_D(d^2) <= p - p|",
    bounds=(0, 1),
    when=has_distances,
)
def joint_ks(statistics: Statistics, settings: Settings) -> float:
    """Largest gap between the shares of vectors inside ellipsoids and their probabilities.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("joint_ks")
    0.397069
    """
    require_distances(statistics)
    scores = places(statistics.orders[DISTANCE])
    u = special.ndtr(scores)
    gaps = [np.abs(distance_shares(statistics, scores, closed=closed) - u) for closed in (True, False)]
    return float(np.max(gaps, initial=0.0))


def joint_coverage(statistics: Statistics, settings: Settings, level: float) -> float:
    """Share of the vectors inside the ellipsoid of that probability around their mean.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score(f"joint_coverage_{percent}") for percent in (50, 90, 95)]
    [0.333333, 0.833333, 1.0]
    """
    require_distances(statistics)
    return float(distance_shares(statistics, special.ndtri([level]))[0])


for percent in (50, 90, 95):
    metric(
        f"joint_coverage_{percent}",
        family="calibration",
        direction=percent / 100,
        summary=f"Share of the vectors inside the {percent} % ellipsoid",
        formula=f"share of chi2_D((y - m)' S^-1 (y - m)) <= {percent / 100:g}",
        bounds=(0, 1),
        when=has_distances,
        arguments={"level": percent / 100},
    )(joint_coverage)
