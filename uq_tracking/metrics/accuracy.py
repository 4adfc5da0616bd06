"""Accuracy of the predicted means, and size and spread of the uncertainties regardless of the errors."""

from __future__ import annotations

import math
import operator
from functools import partial

from uq_tracking.metrics.proper_scores import require_variance
from uq_tracking.metrics.registry import SMALLEST, NeedsGroups, Undefined, metric, require_squares
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import middle_ranks

of_errors = partial(metric, family="accuracy", direction="lower", unit="target", bounds=(0, math.inf))
"""Declares a score of absolute or squared errors."""


@of_errors(
    formula="mean |y - mu|",
    means=("abs_error",),
)
def mae(statistics: Statistics, settings: Settings) -> float:
    """Mean absolute error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("mae")
    0.341667
    """
    return statistics.orders["abs_error"].sum("abs_error") / statistics.n


@of_errors(
    formula="sqrt(mean (y - mu)^2)",
    headline=True,
    squares=True,
    in_curves=True,
    means=("sq_error",),
    of_means=math.sqrt,
)
def rmse(statistics: Statistics, settings: Settings) -> float:
    """Root mean squared error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("rmse")
    0.409268
    """
    mean = statistics.orders["abs_error"].sum("sq_error") / statistics.n
    if mean < SMALLEST:  # squares that are 0 in float64 are among these
        errors = statistics.moments["error"]
        require_squares(errors.low, errors.high, "errors")
    return math.sqrt(mean)


@of_errors(
    formula="median |y - mu|",
)
def medae(statistics: Statistics, settings: Settings) -> float:
    """Median absolute error.

    For an even count, the mean of the two middle values.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("medae")
    0.25
    """
    middle = statistics.orders["abs_error"].value(middle_ranks(statistics.n))
    return float(middle.mean())


@metric(
    family="accuracy",
    direction=0.0,
    unit="target",
    formula="mean(mu - y)",
    means=("error",),
    of_means=operator.neg,
)
def bias(statistics: Statistics, settings: Settings) -> float:
    """Mean of prediction minus target.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("bias")
    -0.0416667
    """
    return -statistics.moments["error"].mean


@metric(
    family="accuracy",
    direction="higher",
    formula="1 - sum (y - mu)^2 / sum (y - mean y)^2",
    bounds=(-math.inf, 1),
    squares=True,
)
def r2(statistics: Statistics, settings: Settings) -> float:
    """Share of the target's variance explained.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("r2")
    0.875284
    """
    targets = statistics.moments["target"]
    require_squares(0, targets.high - targets.low, "differences between targets")
    total = targets.m2
    if total == 0:
        raise Undefined("all targets are equal, so there is no variance to explain")
    if not math.isfinite(total):
        raise Undefined("squared differences between targets overflow 64-bit numbers; choose a larger unit")
    return 1 - statistics.orders["abs_error"].sum("sq_error") / total


of_spread = partial(metric, family="spread", direction=None, bounds=(0, math.inf))
"""Declares a description of the uncertainties, which does not judge them."""


@of_spread(
    unit="target",
    formula="sqrt(mean s^2)",
    source="Gneiting 2007; uncertainty-toolbox",
)
def sharpness(statistics: Statistics, settings: Settings) -> float:
    """Root mean variance; smaller is sharper, which matters only among calibrated methods.

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


@of_spread(
    unit="target",
    formula="mean s",
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


@of_spread(
    formula="std(s, ddof=1) / mean(s)",
    source="Levi 2019 eq. 9",
    constant=0.0,
    needs_groups=NeedsGroups(even=0.6),
)
def cv(statistics: Statistics, settings: Settings) -> float:
    """Dispersion of the uncertainties; higher means more varied, not better.

    Their coefficient of variation.

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
