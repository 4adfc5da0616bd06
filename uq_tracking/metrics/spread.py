"""How large and how varied the uncertainties are, regardless of the errors."""

from __future__ import annotations

import math

from uq_tracking.metrics.registry import NeedsGroups, Undefined, metric, require_squares
from uq_tracking.metrics.scoring import require_variance
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics


@metric(
    "sharpness",
    family="spread",
    direction=None,
    unit="target",
    summary="Root mean variance; smaller is sharper, which matters only among calibrated methods",
    formula="sqrt(mean s^2)",
    source="Gneiting 2007; uncertainty-toolbox",
    bounds=(0, math.inf),
)
def sharpness(statistics: Statistics, settings: Settings) -> float:
    """Root mean variance.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("sharpness")
    0.380789
    """
    require_variance(statistics, settings)
    std = statistics.moments["std"]
    require_squares(std.low, std.high, "standard deviations")
    return math.sqrt(statistics.orders["std"].sum("std2") / statistics.n)


@metric(
    "mean_std",
    family="spread",
    direction=None,
    unit="target",
    summary="Mean standard deviation",
    formula="mean s",
    bounds=(0, math.inf),
    stable="sums",
)
def mean_std(statistics: Statistics, settings: Settings) -> float:
    """Mean standard deviation.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("mean_std")
    0.35
    """
    require_variance(statistics, settings)
    return statistics.moments["std"].mean


@metric(
    "cv",
    family="spread",
    direction=None,
    summary="Dispersion of the uncertainties; higher means more varied, not better",
    formula="std(s, ddof=1) / mean(s)",
    source="Levi 2019 eq. 9",
    bounds=(0, math.inf),
    constant=0.0,
    needs_groups=NeedsGroups(even=0.6),
)
def cv(statistics: Statistics, settings: Settings) -> float:
    """Coefficient of variation of the standard deviations.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("cv")
    0.447628
    """
    std = statistics.moments["std"]
    require_squares(0, std.high - std.low, "differences between standard deviations")
    if std.count < 2:
        raise Undefined("one sample has no dispersion")
    if std.mean == 0:
        raise Undefined("all standard deviations are 0")
    return math.sqrt(std.variance(ddof=1)) / std.mean
