"""A metric from another distribution: whether the largest errors are as large as the predictions say."""

from __future__ import annotations

from uq_tracking.families import family_of
from uq_tracking.hookspecs import hookimpl
from uq_tracking.metrics.registry import Metric, Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.regression import RegressionStatistics

LEVEL = 0.99
FEWEST = 100


def tail_ratio(statistics: RegressionStatistics, settings: Settings) -> float:
    """The 99th percentile of |z| over the one that the predictive distribution has.

    ``Q_.99(|z|) / q((1 + .99) / 2)``: 1 is calibrated, 2 means tails that are twice as wide as claimed.

    Examples
    --------
    >>> import numpy as np
    >>> import uq_tracking as uq
    >>> error = np.random.default_rng(0).standard_t(3, size=5000)
    >>> round(uq.evaluate(error, 0 * error, np.full(5000, 3**0.5)).scores["tail_ratio"], 2)
    1.29
    """
    if statistics.n < FEWEST:
        raise Undefined(f"{statistics.n} samples have no 99th percentile; it takes {FEWEST}")
    if statistics.counts["n_zero_std"] and statistics.moments["std"].low <= 0:
        raise Undefined("a standard deviation of 0 makes z infinite; set std_floor")
    rank = -(-99 * statistics.n // 100)
    observed = float(statistics.by_z.folded().value([rank])[0])
    return observed / float(family_of(settings).central(LEVEL))


@hookimpl
def uq_metrics() -> list[Metric]:
    """The metric of this distribution."""
    return [
        Metric(
            "tail_ratio",
            tail_ratio,
            direction=1.0,
            unit="",
            summary="How much wider the tails are than claimed",
            formula="Q_.99(|z|) / Q((1 + .99) / 2)",
            source="An example",
            bounds=(0, float("inf")),
        )
    ]
