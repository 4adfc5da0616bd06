"""How large and how varied the uncertainties are, whatever the errors."""

from __future__ import annotations

import math

from uq_tracking.metrics.registry import Metric, Undefined, require_squares
from uq_tracking.metrics.scoring import require_variance
from uq_tracking.settings import Settings
from uq_tracking.statistics.regression import RegressionStatistics


def sharpness(statistics: RegressionStatistics, settings: Settings) -> float:
    """Root mean variance.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("sharpness")
    0.380789
    """
    require_variance(settings)
    std = statistics.moments["std"]
    require_squares(std.low, std.high, "standard deviations")
    return math.sqrt(statistics.by_std.sum("std2") / statistics.n)


def mean_std(statistics: RegressionStatistics, settings: Settings) -> float:
    """Mean standard deviation.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("mean_std")
    0.35
    """
    require_variance(settings)
    return statistics.moments["std"].mean


def cv(statistics: RegressionStatistics, settings: Settings) -> float:
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


METRICS = [
    Metric(
        "sharpness",
        sharpness,
        None,
        "target",
        "Root mean variance; smaller is sharper, which counts only among calibrated methods",
        "sqrt(mean s^2)",
        "Gneiting 2007; uncertainty-toolbox",
        bounds=(0, math.inf),
    ),
    Metric(
        "mean_std",
        mean_std,
        None,
        "target",
        "Mean standard deviation",
        "mean s",
        "Standard definition",
        bounds=(0, math.inf),
    ),
    Metric(
        "cv",
        cv,
        None,
        "",
        "Dispersion of the uncertainties; higher means more varied, not better",
        "std(s, ddof=1) / mean(s)",
        "Levi 2019 eq. 9",
        bounds=(0, math.inf),
    ),
]
