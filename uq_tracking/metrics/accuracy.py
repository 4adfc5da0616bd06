"""How good the predicted means are."""

from __future__ import annotations

import math

from uq_tracking.metrics.registry import SMALLEST, Undefined, metric, require_squares
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import middle_ranks


@metric(
    "mae",
    family="accuracy",
    direction="lower",
    unit="target",
    summary="Mean absolute error",
    formula="mean |y - mu|",
    bounds=(0, math.inf),
    stable="sums",
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


@metric(
    "rmse",
    family="accuracy",
    direction="lower",
    unit="target",
    summary="Root mean squared error",
    formula="sqrt(mean (y - mu)^2)",
    bounds=(0, math.inf),
    headline=True,
    stable="sums",
    squares=True,
    in_curves=True,
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


@metric(
    "medae",
    family="accuracy",
    direction="lower",
    unit="target",
    summary="Median absolute error",
    formula="median |y - mu|",
    bounds=(0, math.inf),
)
def medae(statistics: Statistics, settings: Settings) -> float:
    """Median absolute error; for an even count, the mean of the two middle values.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("medae")
    0.25
    """
    middle = statistics.orders["abs_error"].value(middle_ranks(statistics.n))
    return float(middle.mean())


@metric(
    "bias",
    family="accuracy",
    direction=0.0,
    unit="target",
    summary="Mean of prediction minus target",
    formula="mean(mu - y)",
    stable="sums",
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
    "r2",
    family="accuracy",
    direction="higher",
    summary="Share of the target's variance explained",
    formula="1 - sum (y - mu)^2 / sum (y - mean y)^2",
    bounds=(-math.inf, 1),
    squares=True,
)
def r2(statistics: Statistics, settings: Settings) -> float:
    """Share of the target's variance that the means explain.

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
    return 1 - statistics.orders["abs_error"].sum("sq_error") / total
