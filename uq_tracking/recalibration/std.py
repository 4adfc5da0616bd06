"""Methods that replace standard deviations and leave means alone: one factor, an increasing function, bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from uq_tracking.errors import RecalibrationError
from uq_tracking.families import SQRT2, SQRT3, family_of
from uq_tracking.metrics.groups import mean_of_z
from uq_tracking.metrics.isotonic import isotonic_variance
from uq_tracking.recalibration.base import FittedOn, FloatArray, RegressionRecalibration, recalibrator
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import equal_edges
from uq_tracking.typed import Self, override

SEARCH_ROWS = 200_000
"""Above this many samples, the numerical search for the Student t uses a sketch."""
END_BLOCK = 20
"""Minimum number of samples behind the lowest and the highest level of an isotonic fit."""
FEWEST_PER_BIN = 4
"""Of fewer samples, the RMSE of a bin is a worse standard deviation than the one stated, even where that is 1.6 times
too small."""
MOST_KNOTS = 1000


@recalibrator
@dataclass(frozen=True, kw_only=True)
class StdScaling(RegressionRecalibration):
    """One factor for every standard deviation, by maximum likelihood (Levi 2019 eq. 12, in closed form).

    ``s -> factor * s``; the mean is unchanged. It preserves the order of the samples, so every ranking score
    (``ause_*``, ``spearman``, ``n_merci``) and ``cv`` are unchanged.
    """

    method = "std_scaling"

    factor: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_positive("factor", [self.factor])

    @classmethod
    def fit(cls, statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> Self:
        """Find the maximum-likelihood factor under the settings' family.

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
        cls._require_samples(statistics, 2)
        cls._require_positive_std(statistics)
        factor = _factor(statistics, settings)
        if factor == 0:
            raise RecalibrationError(
                "std_scaling cannot be fitted: every error is 0, so the factor would be 0; fit on held-out data"
            )
        return cls.fitted(settings, fitted_on, factor=factor)

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        return self.factor * std

    @override
    def scalars(self) -> dict[str, float]:
        return {"std_scale": self.factor}


def _factor(statistics: Statistics, settings: Settings) -> float:
    """Maximum-likelihood factor.

    Without a closed form it minimizes ``log f - mean log pdf(z / f)`` over log f, from far below the spread, which
    one z may dominate.
    """
    z = statistics.moments["z"]
    spread = math.sqrt(z.variance() + z.mean * z.mean)
    if settings.family == "gaussian":
        return spread
    if settings.family == "laplace":
        return SQRT2 * mean_of_z(statistics, np.abs)
    if settings.family == "uniform":  # rounding must not exclude the farthest target
        return max(abs(z.low), abs(z.high)) / SQRT3 * (1 + 1e-12)
    if spread == 0:
        return 0.0
    from scipy.optimize import minimize_scalar

    some = statistics if statistics.counts["n"] <= SEARCH_ROWS else statistics.sketched()
    log_pdf = family_of(settings).log_pdf

    def loss(log_factor: float) -> float:
        factor = spread * math.exp(log_factor)
        return log_factor - mean_of_z(some, lambda z: log_pdf(z / factor))

    bounds = (-math.log(1e60), math.log(1e3))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return spread * math.exp(found.x)


@recalibrator
@dataclass(frozen=True, kw_only=True)
class StdIsotonic(RegressionRecalibration):
    """Variance replaced by an increasing function of itself, fitted to the squared errors (Zadrozny and Elkan 2002).

    ``s -> sqrt(fit(s^2))``; the mean is unchanged.

    Attributes
    ----------
    variance : tuple of float
        Predicted variances, non-decreasing.
    observed : tuple of float
        The fit at each: non-decreasing, linear in between, constant outside.
    """

    method = "std_isotonic"

    variance: tuple[float, ...]
    observed: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_line("variance", self.variance, self.observed)

    @classmethod
    def fit(cls, statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> Self:
        """Regress squared errors on variances isotonically, by pooling adjacent violators.

        Isotonic regression follows single samples at its two ends: one lucky small error among the smallest standard
        deviations would claim near certainty for all similar samples. So the lowest and highest levels are pooled
        with their neighbors until they contain 20 samples.

        Raises
        ------
        RecalibrationError
            There are fewer than 40 samples, all standard deviations are equal, or a level has no error.
        """
        cls._require_samples(statistics, 2 * END_BLOCK)
        cls._require_variance(settings)
        spread = statistics.moments["std"]
        if not spread.high > spread.low:
            raise RecalibrationError(
                f"std_isotonic needs standard deviations that differ, but all are {spread.low:g}; use std_scaling"
            )
        mean_weight = statistics.n / statistics.counts["n"]
        levels = _isotonic_levels(statistics, END_BLOCK * mean_weight)
        if levels.value[0] <= 0:
            raise RecalibrationError(
                f"std_isotonic cannot be fitted: the {levels.samples[0]:.0f} samples of smallest std have zero "
                "error, which would make their std 0; fit on held-out data, or use std_scaling"
            )
        variance, observed = _knots(levels)
        return cls.fitted(settings, fitted_on, variance=variance, observed=observed)

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        return np.sqrt(np.interp(np.square(std), self.variance, self.observed))

    @override
    def scalars(self) -> dict[str, float]:
        return {
            "isotonic_std_min": math.sqrt(self.observed[0]),
            "isotonic_std_max": math.sqrt(self.observed[-1]),
        }


class _Levels(NamedTuple):
    """Levels of an increasing step function: ranges of the predicted variance, their fit, their samples."""

    low: FloatArray
    high: FloatArray
    value: FloatArray
    samples: FloatArray


def _isotonic_levels(statistics: Statistics, fewest: float) -> _Levels:
    """Return the levels of the isotonic least-squares fit of e^2 on s^2, with sample weights.

    Levels at both ends are pooled until the outer ones contain ``fewest`` samples, by weight.
    """
    fit = isotonic_variance(statistics)
    first = np.flatnonzero(np.diff(fit.fitted, prepend=-np.inf))
    count = np.add.reduceat(fit.count, first)
    head = int(np.searchsorted(np.cumsum(count), fewest))
    tail = len(count) - 1 - int(np.searchsorted(np.cumsum(count[::-1]), fewest))
    first = np.append(first[:1], first[head + 1 : tail + 1])
    last = np.append(first[1:], len(fit.fitted)) - 1
    count = np.add.reduceat(fit.count, first)
    value = np.maximum.accumulate(np.add.reduceat(fit.fitted * fit.count, first) / count)
    return _Levels(fit.forecast[first], fit.forecast[last], value, count)


def _knots(levels: _Levels) -> tuple[FloatArray, FloatArray]:
    """Return both ends of every level, or of levels at evenly spaced counts if there are very many."""
    keep = np.arange(len(levels.value))
    if len(keep) > MOST_KNOTS // 2:
        middles = np.cumsum(levels.samples) - levels.samples / 2
        wanted = np.linspace(middles[0], middles[-1], MOST_KNOTS // 2)
        keep = np.unique(np.searchsorted(middles, wanted).clip(0, len(keep) - 1))
    variance = np.stack([levels.low[keep], levels.high[keep]], axis=1).ravel()
    return variance, np.repeat(levels.value[keep], 2)


@recalibrator
@dataclass(frozen=True, kw_only=True)
class StdBinning(RegressionRecalibration):
    """Standard deviation replaced by the RMSE of its equal-count bin; the mean is unchanged.

    Histogram binning (Zadrozny and Elkan 2001), on the bins of Levi 2019.

    Attributes
    ----------
    edges : tuple of float, length K - 1
        Largest standard deviation in each bin except the last, inclusive.
    values : tuple of float, length K
        Root mean squared error of each bin of the fit set.
    """

    method = "std_binning"

    edges: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_increasing("edges", self.edges)
        self._check_positive("values", self.values)
        if len(self.values) != len(self.edges) + 1:
            raise RecalibrationError(
                f"{len(self.edges)} edges separate {len(self.edges) + 1} bins, not {len(self.values)}"
            )

    @classmethod
    def fit(cls, statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> Self:
        """Take the RMSE of each of ``n_bins`` equal-count bins by std; bins spanned by a tie are merged.

        Raises
        ------
        RecalibrationError
            There are fewer than four samples for each bin, or a bin has zero error.
        """
        cls._require_variance(settings)
        n, n_bins = statistics.n, settings.n_bins
        if n < (needed := FEWEST_PER_BIN * n_bins):
            raise RecalibrationError(
                f"std_binning needs {needed} samples for {n_bins} bins, but there are {n:g}; lower n_bins"
            )
        order = statistics.orders["std"]
        tops = np.unique(order.value(equal_edges(n, n_bins)[1:]))
        positions = np.concatenate([[0.0], order.position(tops[:-1]), [float(n)]])
        squares = np.diff(order.cumulative("sq_error", positions)) / np.diff(positions)
        if np.any(squares <= 0):
            raise RecalibrationError(
                f"std_binning cannot be fitted: bin {int(np.argmin(squares)) + 1} of {len(squares)} has zero error, "
                "which would make its std 0; lower n_bins, or fit on held-out data"
            )
        return cls.fitted(settings, fitted_on, edges=tops[:-1], values=np.sqrt(squares))

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        bins = np.searchsorted(np.asarray(self.edges), std, side="left")
        return np.where(np.isnan(std), np.nan, np.asarray(self.values)[bins])

    @override
    def scalars(self) -> dict[str, float]:
        return {
            "binning_std_min": min(self.values),
            "binning_std_max": max(self.values),
            "binning_bins": float(len(self.values)),
        }
