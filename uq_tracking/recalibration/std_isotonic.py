"""Variances replaced by an increasing function of themselves: isotonic regression of squared errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from uq_tracking.errors import RecalibrationError
from uq_tracking.recalibration.base import FittedOn, FloatArray, Recalibrator, RegressionRecalibration
from uq_tracking.recalibration.checks import (
    check_increasing,
    check_positive,
    require_samples,
    require_variance,
)
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import override

END_BLOCK = 20
"""Minimum number of samples behind the lowest and the highest level."""
MOST_KNOTS = 1000


@dataclass(frozen=True, kw_only=True)
class StdIsotonic(RegressionRecalibration):
    """``s -> sqrt(fit(s^2))`` with an increasing fit; the mean is unchanged.

    Attributes
    ----------
    variance : tuple of float
        Predicted variances, non-decreasing.
    observed : tuple of float
        The fit at each: non-decreasing, linear in between, constant outside.
    """

    method: ClassVar[str] = "std_isotonic"

    variance: tuple[float, ...]
    observed: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_increasing("variance", self.variance)
        check_increasing("observed", self.observed)
        check_positive("observed", self.observed)
        if len(self.variance) != len(self.observed) or not self.variance:
            raise RecalibrationError("variance and observed must be two columns of one table")

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        return np.sqrt(np.interp(np.square(std), self.variance, self.observed))

    @override
    def scalars(self) -> dict[str, float]:
        return {
            "isotonic_std_min": math.sqrt(self.observed[0]),
            "isotonic_std_max": math.sqrt(self.observed[-1]),
        }


class Levels(NamedTuple):
    """Levels of an increasing step function: ranges of the predicted variance, their fit, their samples."""

    low: FloatArray
    high: FloatArray
    value: FloatArray
    samples: FloatArray


def fit_std_isotonic(
    statistics: Statistics,
    settings: Settings,
    fitted_on: FittedOn,
    *,
    end_block: int = END_BLOCK,
) -> StdIsotonic:
    """Isotonic regression of squared error on variance, by pooling adjacent violators.

    Isotonic regression follows single samples at its two ends: one lucky small error among the smallest standard
    deviations would claim near certainty for all similar samples. So the lowest and highest levels are pooled with
    their neighbours until they contain ``end_block`` samples.

    Raises
    ------
    RecalibrationError
        There are fewer than ``2 end_block`` samples, all standard deviations are equal, or a level has zero error.
    """
    require_samples(statistics, max(2, 2 * end_block), "std_isotonic")
    require_variance(settings, "std_isotonic")
    spread = statistics.moments["std"]
    if not spread.high > spread.low:
        raise RecalibrationError(
            f"std_isotonic needs standard deviations that differ, but all are {spread.low:g}; use std_scaling"
        )
    mean_weight = statistics.n / statistics.counts["n"]
    levels = _pooled_ends(isotonic_levels(statistics), end_block * mean_weight)
    if levels.value[0] <= 0:
        raise RecalibrationError(
            f"std_isotonic cannot be fitted: the {levels.samples[0]:.0f} samples of smallest std have zero error, "
            "which would make their std 0; fit on held-out data, or use std_scaling"
        )
    variance, observed = _knots(levels)
    return StdIsotonic(
        variance=tuple(variance.tolist()),
        observed=tuple(observed.tolist()),
        family=settings.family,
        dof=settings.dof,
        fitted_on=fitted_on,
    )


def isotonic_levels(statistics: Statistics) -> Levels:
    """Levels of the isotonic least-squares fit of e^2 on s^2, with sample weights."""
    from scipy.optimize import isotonic_regression

    blocks = list(statistics.orders["std"].blocks(("sq_error",)))
    low, high, count = (
        np.concatenate([getattr(b, name) for b in blocks]) for name in ("low", "high", "count")
    )
    squares = np.concatenate([block.sums["sq_error"] for block in blocks])
    found = isotonic_regression(squares / count, weights=count)
    first, last = found.blocks[:-1], found.blocks[1:] - 1
    return Levels(np.square(low[first]), np.square(high[last]), found.x[first], np.add.reduceat(count, first))


def _pooled_ends(levels: Levels, fewest: float) -> Levels:
    """Pool levels at both ends until the outer ones contain ``fewest`` samples, by weight."""
    head = int(np.searchsorted(np.cumsum(levels.samples), fewest))
    tail = len(levels.samples) - 1 - int(np.searchsorted(np.cumsum(levels.samples[::-1]), fewest))
    first = np.concatenate([[0], np.arange(head + 1, tail + 1)])
    count = np.add.reduceat(levels.samples, first)
    value = np.maximum.accumulate(np.add.reduceat(levels.value * levels.samples, first) / count)
    return Levels(levels.low[first], levels.high[np.append(first[1:], len(levels.high)) - 1], value, count)


def _knots(levels: Levels) -> tuple[FloatArray, FloatArray]:
    """Both ends of every level, or of levels at evenly spaced counts if there are very many."""
    keep = np.arange(len(levels.value))
    if len(keep) > MOST_KNOTS // 2:
        middles = np.cumsum(levels.samples) - levels.samples / 2
        wanted = np.linspace(middles[0], middles[-1], MOST_KNOTS // 2)
        keep = np.unique(np.searchsorted(middles, wanted).clip(0, len(keep) - 1))
    variance = np.stack([levels.low[keep], levels.high[keep]], axis=1).ravel()
    return variance, np.repeat(levels.value[keep], 2)


STD_ISOTONIC = Recalibrator(
    "std_isotonic",
    StdIsotonic,
    fit_std_isotonic,
    "Variance replaced by an increasing function of itself, fitted to the squared errors",
    "Zadrozny and Elkan 2002 (isotonic regression), on squared errors",
)
