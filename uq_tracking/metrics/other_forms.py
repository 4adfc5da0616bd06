"""Scores of distributions given as draws, mixtures, quantiles, intervals, objects, densities or vectors."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NoReturn

import numpy as np
from scipy import special

from uq_tracking.families import FloatArray, Standard
from uq_tracking.inputs.forms import form_of
from uq_tracking.metrics.registry import Infinite, Undefined, metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.exact import SortedRows
from uq_tracking.statistics.orders import SHORT, Order, bucketed
from uq_tracking.statistics.regression import (
    DISTANCE,
    HIGH,
    LOW,
    distance_shares,
    expected_at,
    is_distribution,
)
from uq_tracking.statistics.statistics import Statistics

_NEEDS_LEVELS = "it needs quantiles or an interval (Predictions.from_quantiles)"
NEEDS = {
    "crps_ensemble": "it needs draws of the predictive distribution (Predictions.from_samples)",
    "wis": "it needs quantiles (Predictions.from_quantiles)",
    "inside_widest": _NEEDS_LEVELS,
    "width_widest": _NEEDS_LEVELS,
}
"""Why forms without these scores lack them."""

AT_ONCE = 1 << 14
"""Number of positions of the PIT that are examined together."""


def form_score(statistics: Statistics, key: str) -> float:
    """Mean of a score over the samples of a distribution; Undefined, with the reason, if it has none."""
    if not is_distribution(statistics):
        raise Undefined(NEEDS[key])
    impossible = statistics.sums["impossible"]
    if key == "nll" and impossible > 0:
        raise Infinite(f"{impossible / statistics.n:.3g} of the targets have density 0 in their distribution")
    total = statistics.sums[key]
    if math.isnan(total):
        form, size = form_of(statistics.facts), statistics.moments["size"].low
        lacks = key in NEEDS and key not in form.own_scores
        raise Undefined(NEEDS[key] if lacks else form.why_not(key, statistics.facts, size))
    return total / statistics.n


def has_score(statistics: Statistics, settings: Settings, key: str) -> bool:
    """Check whether statistics describe distributions whose form determines a score."""
    return is_distribution(statistics) and not math.isnan(statistics.sums[key])


def largest_pit_gap(statistics: Statistics) -> float:
    """Largest distance of the PIT's expected distribution from uniform; both bend only at its ends."""
    found = 0.0
    for found_at in (places(statistics.orders[name]) for name in (LOW, HIGH)):
        for start in range(0, len(found_at), AT_ONCE):
            score = found_at[start : start + AT_ONCE]
            u = special.ndtr(score)
            for closed in (True, False):
                share = expected_at(statistics, score, u, closed=closed) / statistics.n
                found = max(found, float(np.abs(share - u).max()))
    return found


def places(order: Order) -> FloatArray:
    """Distinct values of an order, or the edges of its buckets."""
    if isinstance(order, SortedRows):
        return np.unique(order.values).astype(np.float64)
    held = bucketed(order)
    return np.unique(np.concatenate([held.key, held.key + held.width]))


class Undetermined(Standard):
    """Stands for an unknown distribution: any use of it raises the reason."""

    name = "undetermined"
    pdf_square_integral = 0.0

    def __init__(self, why: str) -> None:
        self.why = why

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        raise Undefined(self.why)

    cdf = quantile = pdf = crps = _refuse


in_unit = partial(metric, family="scoring", direction="lower", unit="target", bounds=(0, math.inf))
"""Declares a score in the target's unit."""


@in_unit(
    formula="mean over i of |x_i - y| - 1/(2 M^2) sum over i, j of |x_i - x_j|, averaged",
    source="Hersbach 2000; Zamo and Naveau 2018",
    when=partial(has_score, key="crps_ensemble"),
)
def crps_ensemble(statistics: Statistics, settings: Settings) -> float:
    """Continuous ranked probability score of the draws' empirical distribution.

    ``crps`` is the fair version, independent of the number M of draws.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("crps_ensemble")
    0.218133
    """
    return form_score(statistics, "crps_ensemble")


@in_unit(
    formula="mean of (|y - median|/2 + sum over intervals of alpha/2 width + distance outside) / (K + 1/2)",
    source="Bracher 2021 eq. 2",
    when=partial(has_score, key="wis"),
    of_levels=True,
    means=("wis",),
)
def wis(statistics: Statistics, settings: Settings) -> float:
    """Weighted interval score of the given quantiles.

    Twice the pinball loss over levels symmetric about the median.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("wis")
    0.136222
    """
    return form_score(statistics, "wis")


@metric(
    family="calibration",
    direction=None,
    formula="share of l <= y <= u",
    bounds=(0, 1),
    when=partial(has_score, key="inside_widest"),
)
def interval_coverage(statistics: Statistics, settings: Settings) -> float:
    """Share of the targets inside the widest given central interval; its level is in the settings.

    The ends are included.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("interval_coverage")
    0.75
    """
    return form_score(statistics, "inside_widest")


@metric(
    family="calibration",
    direction=None,
    unit="target",
    formula="mean u - l",
    bounds=(0, math.inf),
    when=partial(has_score, key="width_widest"),
)
def interval_width(statistics: Statistics, settings: Settings) -> float:
    """Mean width of the widest given central interval; its level is in the settings.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("interval_width")
    0.84
    """
    return form_score(statistics, "width_widest")


def is_interval(statistics: Statistics, settings: Settings) -> bool:
    """Return whether predictions are single central intervals."""
    return is_distribution(statistics) and statistics.facts["distribution"] == "interval"


def _winkler(statistics: Statistics) -> tuple[float, float]:
    """Mean Winkler score, ``2 / (1 - level)`` times the pinball losses of both ends, and the level."""
    if not is_interval(statistics, Settings()):
        raise Undefined("it needs one central interval per sample (Predictions.from_interval)")
    low, high = statistics.facts["levels"]
    return 4 / (1 - (high - low)) * form_score(statistics, "pinball"), high - low


@in_unit(
    formula="mean u - l + 2/(1 - level) ((l - y)+ + (y - u)+)",
    source="Winkler 1972; Gneiting and Raftery 2007 eq. 43",
    when=is_interval,
    of_levels=True,
    instead_of="crps",
    means=("pinball",),
    of_means=None,
)
def winkler_score(statistics: Statistics, settings: Settings) -> float:
    """Winkler score of the given intervals; their level is in the settings.

    The width of the intervals, and how far targets are outside, at its price.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("winkler_score")
    1.34
    """
    return _winkler(statistics)[0]


@metric(
    family="scoring",
    direction="higher",
    formula="1 - Winkler score / that of y_pred -+ w, w the level quantile of |y - y_pred|",
    source="Skill score as in Gneiting and Raftery 2007",
    bounds=(-math.inf, 1),
    when=is_interval,
    of_levels=True,
)
def interval_gain(statistics: Statistics, settings: Settings) -> float:
    """Share by which the intervals lower the Winkler score against the best constant width.

    Against intervals of constant width around the same predictions, by default the midpoints.

    The level quantile of the absolute errors is the half-width that scores best.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("interval_gain")
    0.0945946
    """
    score, level = _winkler(statistics)
    errors, n = statistics.orders["abs_error"], statistics.n
    inside = min(math.ceil(level * n * SHORT) if isinstance(n, int) else level * n, n)
    width = float(errors.value([inside])[0])
    beyond = errors.sum("abs_error") - float(errors.cumulative("abs_error", [inside])[0])
    constant = 2 * width + 2 / (1 - level) * (beyond / n - width * (1 - inside / n))
    if constant <= 0:
        raise Undefined(
            "all errors are 0, so intervals of no width are perfect, and there is no share of them"
        )
    return 1 - score / constant


NEEDS_VECTORS = "it needs vectors: Predictions.from_covariance, or Predictions.from_samples(..., joint=True)"


def has_vectors(statistics: Statistics, settings: Settings) -> bool:
    """Return whether samples are components of vectors."""
    return bool(statistics.facts.get("vector_length"))


def has_distances(statistics: Statistics, settings: Settings) -> bool:
    """Return whether the vectors have a covariance."""
    return DISTANCE in statistics.orders


def vector_mean(statistics: Statistics, key: str) -> float:
    """Mean of a score over whole vectors."""
    if not has_vectors(statistics, Settings()):
        raise Undefined(NEEDS_VECTORS)
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


of_vectors = partial(metric, family="scoring", direction="lower", when=has_vectors)
"""Declares a score of whole vectors."""


@of_vectors(
    unit="target",
    formula="mean of E |X - y| - E |X - X'| / 2",
    source="Gneiting and Raftery 2007 eq. 22",
)
def energy_score(statistics: Statistics, settings: Settings) -> float:
    """Energy score of whole vectors.

    The CRPS of vectors; for M draws, the fair estimator, whose expectation is independent of M.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("energy_score")
    0.365038
    """
    return vector_mean(statistics, "energy_score")


@of_vectors(
    unit="target",
    formula="mean of sum over i, j of (|y_i - y_j|^(1/2) - E |X_i - X_j|^(1/2))^2",
    source="Scheuerer and Hamill 2015 eq. 3",
)
def variogram_score(statistics: Statistics, settings: Settings) -> float:
    """Variogram score of order 1/2 of whole vectors.

    Sensitive to correlations the energy score barely detects; for draws, the fair estimator.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("variogram_score")
    0.129281
    """
    return vector_mean(statistics, "variogram_score")


@of_vectors(
    unit="nats",
    formula="mean of (D log 2 pi + log det S + (y - m)' S^-1 (y - m)) / 2",
    source="Gneiting and Raftery 2007",
    when=has_distances,
)
def joint_nll(statistics: Statistics, settings: Settings) -> float:
    """Negative log likelihood of whole vectors.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("joint_nll")
    0.757856
    """
    return vector_mean(statistics, "joint_nll")


@metric(
    family="calibration",
    direction="lower",
    formula="sup over p of |share of chi2_D(d^2) <= p - p|",
    bounds=(0, 1),
    when=has_distances,
)
def joint_ks(statistics: Statistics, settings: Settings) -> float:
    """Kolmogorov-Smirnov distance of the Mahalanobis distances from chi-square.

    That is the largest gap between the shares of vectors inside ellipsoids and their probabilities.

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
