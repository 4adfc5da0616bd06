"""Quantiles corrected so that each level contains the share of targets it promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import RecalibrationError
from uq_tracking.families import Standard
from uq_tracking.recalibration.base import FittedOn, FloatArray, Recalibrator, RegressionRecalibration
from uq_tracking.recalibration.checks import (
    check_finite,
    check_increasing,
    check_positive,
    require_positive_std,
    require_samples,
)
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import override

FEWEST = 10
MIDDLE_KNOTS = 1001
"""Knots at evenly spaced ranks."""
TAIL_KNOTS = 128
"""Further knots in each tail, at ranks that double every few knots, so that the extremes keep their position."""


@dataclass(frozen=True)
class Tabulated(Standard):
    """A distribution given by a table of its distribution function, linear in between and bounded by its ends.

    A value that occurs twice is a jump: it carries a share of the distribution.
    """

    values: tuple[float, ...]
    levels: tuple[float, ...]
    name = "tabulated"
    pdf_square_integral = math.nan  # unbounded at jumps

    @override
    def cdf(self, z: FloatArray) -> FloatArray:
        return np.interp(z, self.values, self.levels, left=0.0)

    @override
    def quantile(self, p: FloatArray) -> FloatArray:
        return np.interp(p, self.levels, self.values)

    def pdf(self, z: FloatArray) -> FloatArray:
        """Slope of the distribution function to the right of z; 0 outside the table."""
        values, levels = np.asarray(self.values), np.asarray(self.levels)
        z = np.asarray(z, dtype=float)
        left = np.clip(np.searchsorted(values, z, side="right") - 1, 0, len(values) - 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (levels[left + 1] - levels[left]) / (values[left + 1] - values[left])
        return np.where((z >= values[0]) & (z < values[-1]), slope, 0.0)

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """Integral of ``F^2`` up to z and of ``(1 - F)^2`` from there; F is linear between the knots."""
        values, levels = np.asarray(self.values), np.asarray(self.levels)
        z = np.asarray(z, dtype=float)
        inside = np.clip(z, values[0], values[-1])
        left = np.clip(np.searchsorted(values, inside, side="right") - 1, 0, len(values) - 2)
        below, above = self._integrals
        share = self.cdf(inside)
        first = _squares(inside - values[left], levels[left], share)
        second = _squares(values[left + 1] - inside, 1 - share, 1 - levels[left + 1])
        return below[left] + first + second + above[left + 1] + np.abs(z - inside)

    @cached_property
    def _integrals(self) -> tuple[FloatArray, FloatArray]:
        """Integral of ``F^2`` up to each knot, and of ``(1 - F)^2`` from it on."""
        width, levels = np.diff(self.values), np.asarray(self.levels)
        below = _squares(width, levels[:-1], levels[1:])
        above = _squares(width, 1 - levels[:-1], 1 - levels[1:])
        start = np.zeros(1)
        return np.concatenate([start, below.cumsum()]), np.concatenate([above[::-1].cumsum()[::-1], start])

    def central(self, level: npt.ArrayLike) -> FloatArray:
        """Half-width of the interval around 0 that contains the share ``level``; the table need not be symmetric."""
        half, share = self._folded
        return np.asarray(np.interp(np.asarray(level, dtype=float), share, half))

    @cached_property
    def _folded(self) -> tuple[FloatArray, FloatArray]:
        half = np.unique(np.abs(np.concatenate([[0.0], self.values])))
        without_ends = self._below(half) - self.cdf(-half)
        with_ends = self.cdf(half) - self._below(-half)
        share = np.stack([without_ends, with_ends], axis=1).ravel()
        return np.repeat(half, 2), np.maximum.accumulate(np.clip(share, 0, 1))

    def _below(self, z: FloatArray) -> FloatArray:
        """Share strictly below z."""
        values, levels = np.asarray(self.values), np.asarray(self.levels)
        mirrored = np.interp(-z, -values[::-1], -levels[::-1], right=0.0)  # a jump counts to its left
        return np.asarray(-mirrored)


def _squares(width: FloatArray, one: FloatArray, other: FloatArray) -> FloatArray:
    """Integral of the square of a line from ``one`` to ``other`` over a width."""
    return width * (one * one + one * other + other * other) / 3


@dataclass(frozen=True, kw_only=True)
class CdfIsotonic(RegressionRecalibration):
    """Isotonic correction of the predicted distribution function (Kuleshov et al. 2018).

    With the predicted distribution function F, the corrected one is ``R(F((y - mu) / s))``, where R maps each
    predicted level to the share of the fit set at or below it. F and R are both functions of ``z``, so their
    composition is one table for all samples, whatever the family, and moments and quantiles need no integration:

    - quantiles: ``mu + s Q(q)``, Q the inverse of the table;
    - mean: ``mu + s * z_mean``; standard deviation: ``s * z_scale``, the mean and the standard deviation of z on
      the fit set.

    Attributes
    ----------
    z : tuple of float
        Standardised errors, non-decreasing. A repeated value carries a share of the samples.
    levels : tuple of float
        Share of the fit set at or below each, from 0 to 1; linear in between, with nothing outside.
    z_mean, z_scale : float
        Mean and population standard deviation of z.
    """

    method: ClassVar[str] = "cdf_isotonic"

    z: tuple[float, ...]
    levels: tuple[float, ...]
    z_mean: float
    z_scale: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_finite("z_mean", [self.z_mean])
        check_positive("z_scale", [self.z_scale])
        check_increasing("z", self.z)
        check_increasing("levels", self.levels)
        if len(self.z) != len(self.levels) or len(self.z) < 2 or (self.levels[0], self.levels[-1]) != (0, 1):
            raise RecalibrationError("z and levels must be two columns of one table, with levels from 0 to 1")

    @override
    def new_mean(self, mean: FloatArray, std: FloatArray) -> FloatArray:
        return mean + self.z_mean * std

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        return self.z_scale * std

    @cached_property
    def _standardised(self) -> Tabulated:
        values = (np.asarray(self.z) - self.z_mean) / self.z_scale
        return Tabulated(tuple(values.tolist()), self.levels)

    @property
    def shape(self) -> Standard:
        """The table, standardised to mean 0 and standard deviation 1."""
        return self._standardised

    @override
    def scalars(self) -> dict[str, float]:
        return {"cdf_shift": self.z_mean, "cdf_scale": self.z_scale}


def fit_cdf_isotonic(statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> CdfIsotonic:
    """Table of the shares observed below each standardised error, with at most about 1300 knots.

    The points (F(z), share) rise together, so isotonic regression passes through every one of them.

    Raises
    ------
    RecalibrationError
        There are fewer than ten samples, a standard deviation is zero, or all standardised errors are equal.
    """
    require_samples(statistics, FEWEST, "cdf_isotonic")
    require_positive_std(statistics, "cdf_isotonic")
    moments = statistics.moments["z"]
    if not moments.high > moments.low:
        raise RecalibrationError(
            f"cdf_isotonic needs errors that vary, but every standardised error is {moments.low:g}; pass a larger set"
        )
    ranks = knot_ranks(statistics.n)
    # a sketch's order statistics lie inside its buckets, which may reach past the smallest and largest value
    z = np.clip(statistics.orders["z"].value(ranks), moments.low, moments.high)
    return CdfIsotonic(
        z=_floats([moments.low, *z, moments.high]),
        levels=_floats([0.0, *((ranks - 0.5) / statistics.n), 1.0]),
        z_mean=moments.mean,
        z_scale=math.sqrt(moments.variance()),
        family=settings.family,
        dof=settings.dof,
        fitted_on=fitted_on,
    )


def knot_ranks(n: float) -> npt.NDArray[np.float64]:
    """Ranks 1 ... n to tabulate: all of a small set, else evenly spaced, with more towards both ends."""
    if n <= MIDDLE_KNOTS:
        return np.arange(1.0, n + 1)
    tail = np.geomspace(1, n / MIDDLE_KNOTS, TAIL_KNOTS)
    ranks = np.concatenate([tail, np.linspace(1, n, MIDDLE_KNOTS), n + 1 - tail])
    return np.unique(np.rint(ranks)) if isinstance(n, int) else np.unique(ranks)


def _floats(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


CDF_ISOTONIC = Recalibrator(
    "cdf_isotonic",
    CdfIsotonic,
    fit_cdf_isotonic,
    "Quantile levels replaced by the shares observed below them",
    "Kuleshov 2018; Levi 2019 section 2",
)
