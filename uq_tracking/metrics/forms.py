"""Scores of distributions given as draws, mixtures, quantiles, intervals, objects or densities."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np
from scipy import special

from uq_tracking.families import FloatArray, Standard
from uq_tracking.formatting import format_levels
from uq_tracking.inputs.forms.draws import FEWEST_DRAWS
from uq_tracking.metrics.registry import Infinite, Undefined, metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.distribution import HIGH, LOW, expected_at, expected_below, is_distribution
from uq_tracking.statistics.exact import SortedRows
from uq_tracking.statistics.orders import Buckets, Order
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import override

SEARCHED = "pinball", "interval_score", "interval_width_95"
TAKES = {
    "crps_ensemble": ("it needs draws of the predictive distribution (Predictions.from_samples)", ("draws",)),
    "wis": ("it needs quantiles (Predictions.from_quantiles)", ("quantiles", "interval")),
    "inside_widest": (
        "it needs quantiles or an interval (Predictions.from_quantiles)",
        ("quantiles", "interval"),
    ),
    "width_widest": (
        "it needs quantiles or an interval (Predictions.from_quantiles)",
        ("quantiles", "interval"),
    ),
}
"""Scores defined for some forms only: why other forms lack them, and which forms have them."""

AT_ONCE = 1 << 14
"""How many positions of the PIT are examined together."""


def form_score(statistics: Statistics, key: str) -> float:
    """Mean of a score over the samples of a distribution; Undefined, with the reason, if it has none."""
    impossible = statistics.sums["impossible"]
    if key == "nll" and impossible > 0:
        raise Infinite(f"{impossible / statistics.n:.3g} of the targets have density 0 in their distribution")
    total = statistics.sums[key]
    if math.isnan(total):
        raise Undefined(reason(statistics, key))
    return total / statistics.n


def has_score(statistics: Statistics, key: str) -> bool:
    """Whether statistics describe distributions whose form determines a score."""
    return is_distribution(statistics) and not math.isnan(statistics.sums[key])


def reason(statistics: Statistics, key: str) -> str:
    """Why a form does not determine a score."""
    form, size = str(statistics.facts["distribution"]), statistics.moments["size"].low
    if key in TAKES and form not in TAKES[key][1]:
        return TAKES[key][0]
    if form == "draws":
        if key in FEWEST_DRAWS:
            return (
                f"{key} needs {FEWEST_DRAWS[key]} draws per sample, to contain its outermost quantiles; "
                f"the fewest here are {size:.0f}"
            )
        return "draws have no density; crps scores them"
    if form == "interval" and key == "crps":
        return "an interval alone does not determine it; pass quantiles at more levels"
    if form in ("quantiles", "interval"):
        levels = format_levels(statistics.facts["levels"] or ())
        if key in TAKES:
            return f"quantiles at {levels} are not those of central intervals and a median"
        if key.startswith(("inside_", "interval_width")):
            inner = int(key.rsplit("_", 1)[1]) / 100
            low, high = (1 - inner) / 2, (1 + inner) / 2
            return f"it needs quantiles at {low:g} and {high:g}, but those given are at {levels}"
        if key == "interval_score":
            return f"quantiles at {levels} do not determine it; pinball is the mean over these levels"
        return f"quantiles at {levels} have no density"
    if key in SEARCHED:
        return "its quantiles are not known; pass quantile_scores=True if the distribution can provide them"
    if form == "density":
        return f"it was not given; pass it to Predictions.from_density ({'log_density' if key == 'nll' else key}=)"
    return f"the distribution does not provide it ({key} has no closed form here, or quadrature did not reach 1e-6)"


def central_share(statistics: Statistics, levels: FloatArray) -> FloatArray:
    """Expected share of the PIT inside the central interval of each level, ends included."""
    upper = expected_below(statistics, (1 + levels) / 2)
    return (upper - expected_below(statistics, (1 - levels) / 2, closed=False)) / statistics.n


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
    if isinstance(order, Buckets):
        return np.unique(np.concatenate([order.key, order.key + order.width]))
    return np.zeros(0)


class Undetermined(Standard):
    """Stands for an unknown distribution: any use of it raises the reason."""

    name = "undetermined"
    pdf_square_integral = 0.0

    def __init__(self, why: str) -> None:
        self.why = why

    def _refuse(self) -> NoReturn:
        raise Undefined(self.why)

    @override
    def cdf(self, z: FloatArray) -> FloatArray:
        self._refuse()

    @override
    def quantile(self, p: FloatArray) -> FloatArray:
        self._refuse()

    @override
    def pdf(self, z: FloatArray) -> FloatArray:
        self._refuse()

    @override
    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        self._refuse()


@metric(
    "crps_ensemble",
    family="scoring",
    direction="lower",
    unit="target",
    summary="Continuous ranked probability score of the draws' empirical distribution",
    formula="mean over i of |x_i - y| - 1/(2 M^2) sum over i, j of |x_i - x_j|, averaged",
    source="Hersbach 2000; Zamo and Naveau 2018",
    bounds=(0, math.inf),
    when=lambda statistics, settings: has_score(statistics, "crps_ensemble"),
)
def crps_ensemble(statistics: Statistics, settings: Settings) -> float:
    """Mean CRPS of the empirical distribution of M draws; ``crps`` is the fair version, independent of M.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("crps_ensemble")
    0.218133
    """
    if not is_distribution(statistics):
        raise Undefined(TAKES["crps_ensemble"][0])
    return form_score(statistics, "crps_ensemble")


@metric(
    "wis",
    family="scoring",
    direction="lower",
    unit="target",
    summary="Weighted interval score of the given quantiles",
    formula="mean of (|y - median|/2 + sum over intervals of alpha/2 width + distance outside) / (K + 1/2)",
    source="Bracher 2021 eq. 2",
    bounds=(0, math.inf),
    when=lambda statistics, settings: has_score(statistics, "wis"),
    of_levels=True,
)
def wis(statistics: Statistics, settings: Settings) -> float:
    """Weighted interval score: twice the pinball loss over levels symmetric about the median.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("wis")
    0.136222
    """
    if not is_distribution(statistics):
        raise Undefined(TAKES["wis"][0])
    return form_score(statistics, "wis")


@metric(
    "interval_coverage",
    family="calibration",
    direction=None,
    summary="Share of the targets inside the widest given central interval; its level is in the settings",
    formula="share of l <= y <= u",
    bounds=(0, 1),
    when=lambda statistics, settings: has_score(statistics, "inside_widest"),
)
def interval_coverage(statistics: Statistics, settings: Settings) -> float:
    """Share of the targets inside the widest central interval of the given quantiles, ends included.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("interval_coverage")
    0.75
    """
    if not is_distribution(statistics):
        raise Undefined(TAKES["inside_widest"][0])
    return form_score(statistics, "inside_widest")


@metric(
    "interval_width",
    family="calibration",
    direction=None,
    unit="target",
    summary="Mean width of the widest given central interval; its level is in the settings",
    formula="mean u - l",
    bounds=(0, math.inf),
    when=lambda statistics, settings: has_score(statistics, "width_widest"),
)
def interval_width(statistics: Statistics, settings: Settings) -> float:
    """Mean width of the widest central interval of the given quantiles.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("interval_width")
    0.84
    """
    if not is_distribution(statistics):
        raise Undefined(TAKES["inside_widest"][0])
    return form_score(statistics, "width_widest")
