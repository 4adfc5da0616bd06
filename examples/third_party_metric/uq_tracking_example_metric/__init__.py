"""Two metrics and a curve in a separate distribution: whether the largest errors are as large as predicted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from uq_tracking.curves import curve
from uq_tracking.families import family_of
from uq_tracking.metrics.gaps import LevelGap, Reduction
from uq_tracking.metrics.registry import Undefined, metric
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics

LEVELS = np.arange(50, 100) / 100
FEWEST = 100


def observed_quantiles(statistics: Statistics) -> npt.NDArray[np.float64]:
    """Order statistics of |z| at the shares .50 ... .99 of the samples."""
    if statistics.n < FEWEST:
        raise Undefined(f"{statistics.n} samples have no 99th percentile; it needs {FEWEST}")
    if statistics.counts["n_zero_std"] and statistics.moments["std"].low <= 0:
        raise Undefined("a standard deviation of 0 makes z infinite; set std_floor")
    ranks = [-(-percent * statistics.n // 100) for percent in range(50, 100)]
    return statistics.orders["z"].absolute_value(ranks)


@metric(
    "tail_ratio",
    family="calibration",
    direction=1.0,
    summary="How much wider the tails are than claimed",
    formula="Q_.99(|z|) / Q((1 + .99) / 2)",
    source="An example",
    bounds=(0, float("inf")),
)
def tail_ratio(statistics: Statistics, settings: Settings) -> float:
    """The 99th percentile of |z|, divided by that of the predictive distribution.

    ``Q_.99(|z|) / q((1 + .99) / 2)``: 1 is calibrated, 2 means that tails are twice as wide as claimed.

    Examples
    --------
    >>> import numpy as np
    >>> import uq_tracking as uq
    >>> error = np.random.default_rng(0).standard_t(3, size=5000)
    >>> round(uq.evaluate(error, 0 * error, np.full(5000, 3**0.5)).scores["tail_ratio"], 2)
    1.29
    """
    return float(observed_quantiles(statistics)[-1] / family_of(settings).central(LEVELS[-1]))


@metric(
    "tail_coverage_error",
    family="calibration",
    direction="lower",
    summary="Coverage error of the widest intervals",
    formula="mean over p = .90 ... .99 of |coverage(p) - p|",
    source="An example",
    bounds=(0, 1),
    gap=LevelGap(np.arange(90, 100) / 100),
    reduction=Reduction("absolute"),
    default=False,
)
def tail_coverage_error() -> None:
    """Mean absolute gap of coverage at the levels .90 ... .99; its gap gives it a noise floor and an interval, too.

    Examples
    --------
    >>> import numpy as np
    >>> import uq_tracking as uq
    >>> error = np.random.default_rng(0).standard_t(3, size=5000)
    >>> report = uq.evaluate(error, 0 * error, np.full(5000, 3**0.5), metrics="tail_coverage_error")
    >>> round(report.scores["tail_coverage_error"], 4), round(report.noise["tail_coverage_error"].high, 4)
    (0.0149, 0.005)
    """


@curve(
    "tails",
    x="claimed",
    y="observed",
    x_label="Claimed quantile of |z|",
    y_label="Observed quantile of |z|",
    title="Tails",
    score="tail_ratio",
    reference="diagonal",
    ceiling=float("inf"),
    recalibrated=True,
    settings=("family",),
    figure="tails",
)
def tails(statistics: Statistics, settings: Settings) -> dict[str, npt.NDArray[np.float64]]:
    """Observed against claimed quantiles of |z|; calibrated predictions lie on the diagonal."""
    return {"claimed": family_of(settings).central(LEVELS), "observed": observed_quantiles(statistics)}
