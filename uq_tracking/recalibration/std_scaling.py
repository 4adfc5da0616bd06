"""One factor for every standard deviation: the maximum-likelihood scale of the standardized errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from uq_tracking.errors import RecalibrationError
from uq_tracking.families import SQRT2, SQRT3, family_of
from uq_tracking.recalibration.base import FittedOn, FloatArray, Recalibrator, RegressionRecalibration
from uq_tracking.recalibration.checks import check_positive, require_positive_std, require_samples
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import Block, Order
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import override

SEARCH_ROWS = 200_000
"""Above this many samples, the numerical search for the Student t uses a sketch."""


@dataclass(frozen=True, kw_only=True)
class StdScaling(RegressionRecalibration):
    """``s -> factor * s``; the mean is unchanged.

    The factor maximises the likelihood of the fit set. It preserves the order of the samples, so every ranking score
    (``ause_*``, ``spearman``, ``n_merci``) and ``cv`` are unchanged.
    """

    method: ClassVar[str] = "std_scaling"

    factor: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("factor", [self.factor])

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        return self.factor * std

    @override
    def scalars(self) -> dict[str, float]:
        return {"std_scale": self.factor}


def fit_std_scaling(statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> StdScaling:
    """Maximum-likelihood factor under the settings' family.

    ====================  ==============================================================
    gaussian              ``sqrt(mean z^2)``, the minimum of Levi et al. 2019 eq. 12
    laplace               ``sqrt 2 mean |z|``
    uniform               ``max |z| / sqrt 3``: the narrowest that contains every target
    logistic, student_t   found numerically
    ====================  ==============================================================

    Raises
    ------
    RecalibrationError
        There are fewer than two samples, a standard deviation is zero, or every error is zero.
    """
    require_samples(statistics, 2, "std_scaling")
    require_positive_std(statistics, "std_scaling")
    factor = _factor(statistics, settings)
    if factor == 0:
        raise RecalibrationError(
            "std_scaling cannot be fitted: every error is 0, so the factor would be 0; fit on held-out data"
        )
    return StdScaling(factor=factor, family=settings.family, dof=settings.dof, fitted_on=fitted_on)


def _factor(statistics: Statistics, settings: Settings) -> float:
    z = statistics.moments["z"]
    if settings.family == "gaussian":
        return math.sqrt(z.variance() + z.mean * z.mean)
    if settings.family == "laplace":
        return SQRT2 * mean_of_z(statistics.orders["z"], np.abs)
    if settings.family == "uniform":
        return (
            max(abs(z.low), abs(z.high)) / SQRT3 * (1 + 1e-12)
        )  # rounding must not exclude the farthest target
    return _searched_factor(statistics, settings)


def _searched_factor(statistics: Statistics, settings: Settings) -> float:
    """Minimize ``log f - mean log pdf(z / f)`` over log f, from far below the spread, which one z may dominate."""
    from scipy.optimize import minimize_scalar

    z = statistics.moments["z"]
    spread = math.sqrt(z.variance() + z.mean * z.mean)
    if spread == 0:
        return 0.0
    order = (statistics if statistics.counts["n"] <= SEARCH_ROWS else statistics.sketched()).orders["z"]
    log_pdf = family_of(settings).log_pdf

    def loss(log_factor: float) -> float:
        factor = spread * math.exp(log_factor)
        return log_factor - mean_of_z(order, lambda z: log_pdf(z / factor))

    found = minimize_scalar(
        loss, bounds=(-math.log(1e60), math.log(1e3)), method="bounded", options={"xatol": 1e-9}
    )
    return spread * math.exp(found.x)


def mean_of_z(order: Order, function: Callable[[FloatArray], FloatArray]) -> float:
    """Mean over the samples of a function of z, evaluated at each bucket's mean z."""

    def sum_of(block: Block) -> float:
        return float(np.dot(block.count, function(block.sums["z"] / block.count)))

    return math.fsum(order.map_blocks(sum_of, ("z",), "free")) / order.total


STD_SCALING = Recalibrator(
    "std_scaling",
    StdScaling,
    fit_std_scaling,
    "One factor for every standard deviation, by maximum likelihood",
    "Levi 2019 eq. 12, in closed form",
)
