"""Calibration scores as functions of gaps: observed minus stated values, in every bin or at every level.

All functions take gaps of shape (..., bins or levels), so that thousands of simulated ones cost one call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from uq_tracking.metrics.calibration import PROPORTIONS
from uq_tracking.metrics.scoring import LEVELS
from uq_tracking.statistics.orders import FloatArray

Kind = Literal["coverage", "proportions", "quantiles", "variance", "confidence", "confidence_equal"]
Score = Callable[[FloatArray, FloatArray], FloatArray]
"""``score(gaps, weights)``; the weights of bins sum to one, and are not used for levels."""


def area(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """Trapezoid of the absolute gap over the levels .01 ... .99."""
    return np.asarray(np.trapezoid(np.abs(gaps), LEVELS, axis=-1))


def area_below(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """The same, where intervals cover too little."""
    return np.asarray(np.trapezoid(np.maximum(-gaps, 0), LEVELS, axis=-1))


def area_above(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """The same, where intervals cover too much."""
    return np.asarray(np.trapezoid(np.maximum(gaps, 0), LEVELS, axis=-1))


def mean_square(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """Mean squared gap."""
    return np.asarray(np.square(gaps).mean(axis=-1))


def mean_absolute(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """Mean absolute gap."""
    return np.asarray(np.abs(gaps).mean(axis=-1))


def root_mean_square(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """Root of the mean squared gap."""
    return np.sqrt(mean_square(gaps, weights))


def polygon_area(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """Area between the polygon of gaps over ``linspace(0, 1, 100)`` and zero, split exactly at crossings."""
    one, other = np.abs(gaps[..., :-1]), np.abs(gaps[..., 1:])
    crossing, total = gaps[..., :-1] * gaps[..., 1:] < 0, one + other
    height = np.where(crossing, (one**2 + other**2) / np.where(total > 0, 2 * total, 1), total / 2)
    return np.asarray(height @ np.diff(PROPORTIONS))


def largest(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """Largest absolute gap."""
    return np.asarray(np.abs(gaps).max(axis=-1))


def weighted_absolute(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """Absolute gaps, weighted by bin."""
    return np.asarray(np.abs(gaps) @ weights)


def mean_root(gaps: FloatArray, weights: FloatArray) -> FloatArray:
    """Mean of ``|sqrt(1 + gap) - 1|``: turns gaps of MSE over mean variance into gaps of RMSE over RMV."""
    return np.asarray(np.abs(np.sqrt(np.maximum(1 + gaps, 0)) - 1).mean(axis=-1))


@dataclass(frozen=True)
class GapScore:
    """A score as a function of gaps.

    Attributes
    ----------
    kind : str
        The quantity the gaps refer to.
    score : callable
    norm : {"absolute", "square", "root", "largest"}
        A mean of absolute gaps, a mean square, its root, or the largest gap.
    side : {-1, 0, 1}
        Which gaps count: negative ones, all, or positive ones.
    """

    kind: Kind
    score: Score
    norm: Literal["absolute", "square", "root", "largest"] = "absolute"
    side: Literal[-1, 0, 1] = 0

    @property
    def degree(self) -> int:
        """Degree of homogeneity: the power with which a common factor on all gaps enters the score."""
        return 2 if self.norm == "square" else 1

    def counted(self, gaps: FloatArray) -> FloatArray:
        """The gaps that count, with 0 for the others."""
        return gaps if self.side == 0 else np.asarray(self.side * np.maximum(self.side * gaps, 0))

    def weights(self, of_bins: FloatArray, size: int) -> FloatArray:
        """Weight of each gap in the mean; ``of_bins`` if bins have their own weights."""
        if self.score is weighted_absolute:
            return of_bins
        if self.kind == "coverage":
            return _trapezoid(LEVELS)
        return _trapezoid(PROPORTIONS) if self.score is polygon_area else np.full(size, 1 / size)


def _trapezoid(grid: FloatArray) -> FloatArray:
    steps = np.diff(grid)
    return np.asarray((np.concatenate([[0.0], steps]) + np.concatenate([steps, [0.0]])) / 2)


SCORES: dict[str, dict[str, GapScore]] = {
    "regression": {
        "auce": GapScore("coverage", area),
        "auce_over": GapScore("coverage", area_below, side=-1),
        "auce_under": GapScore("coverage", area_above, side=1),
        "calibration_error": GapScore("quantiles", mean_square, "square"),
        "mace": GapScore("proportions", mean_absolute),
        "rmsce": GapScore("proportions", root_mean_square, "root"),
        "miscalibration_area": GapScore("proportions", polygon_area),
        "pit_ks": GapScore("quantiles", largest, "largest"),
        "ence": GapScore("variance", mean_root),
        "uce": GapScore("variance", weighted_absolute),
    },
    "classification": {
        "ece": GapScore("confidence", weighted_absolute),
        "mce": GapScore("confidence", largest, "largest"),
        "ace": GapScore("confidence_equal", mean_absolute),
    },
}
"""Scores inflated by finite data, by task and key."""

GRIDS: dict[Kind, FloatArray] = {"coverage": LEVELS, "quantiles": LEVELS, "proportions": PROPORTIONS}
"""Levels of the gaps of coverage and of quantiles."""
