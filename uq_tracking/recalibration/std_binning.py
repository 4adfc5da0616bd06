"""Standard deviations replaced by the error observed among similar ones: one value per bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from uq_tracking.errors import RecalibrationError
from uq_tracking.recalibration.base import FittedOn, FloatArray, Recalibrator, RegressionRecalibration
from uq_tracking.recalibration.checks import check_increasing, check_positive, require_variance
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import equal_edges
from uq_tracking.typed import override


@dataclass(frozen=True, kw_only=True)
class StdBinning(RegressionRecalibration):
    """``s -> RMSE of its bin``; the mean is unchanged.

    Attributes
    ----------
    edges : tuple of float, length K - 1
        Largest standard deviation in each bin except the last, inclusive.
    values : tuple of float, length K
        Root mean squared error of each bin of the fit set.
    """

    method: ClassVar[str] = "std_binning"

    edges: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_increasing("edges", self.edges)
        check_positive("values", self.values)
        if len(self.values) != len(self.edges) + 1:
            raise RecalibrationError(
                f"{len(self.edges)} edges separate {len(self.edges) + 1} bins, not {len(self.values)}"
            )

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        bins = (
            np.searchsorted(self.edges, std, side="left")
            if self.edges
            else np.zeros(std.shape, dtype=np.int64)
        )
        return np.where(np.isnan(std), np.nan, np.asarray(self.values)[bins])

    @override
    def scalars(self) -> dict[str, float]:
        return {
            "binning_std_min": min(self.values),
            "binning_std_max": max(self.values),
            "binning_bins": float(len(self.values)),
        }


def fit_std_binning(statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> StdBinning:
    """RMSE of each of ``n_bins`` equal-count bins by std; bins spanned by a tie are merged.

    Raises
    ------
    RecalibrationError
        There are fewer samples than bins, or a bin has zero error.
    """
    require_variance(settings, "std_binning")
    n, n_bins = statistics.n, settings.n_bins
    if n < n_bins:
        raise RecalibrationError(f"std_binning cannot fill {n_bins} bins with {n:g} samples; lower n_bins")
    ends = equal_edges(n, n_bins)[1:]
    order = statistics.orders["std"]
    tops = np.unique(order.value(ends))
    positions = np.concatenate([[0.0], order.position(tops[:-1]), [float(n)]])
    squares = np.diff(order.cumulative("sq_error", positions)) / np.diff(positions)
    if np.any(squares <= 0):
        raise RecalibrationError(
            f"std_binning cannot be fitted: bin {int(np.argmin(squares)) + 1} of {len(squares)} has zero error, "
            "which would make its std 0; lower n_bins, or fit on held-out data"
        )
    return StdBinning(
        edges=tuple(tops[:-1].tolist()),
        values=tuple(np.sqrt(squares).tolist()),
        family=settings.family,
        dof=settings.dof,
        fitted_on=fitted_on,
    )


STD_BINNING = Recalibrator(
    "std_binning",
    StdBinning,
    fit_std_binning,
    "Standard deviation replaced by the RMSE of its equal-count bin",
    "Zadrozny and Elkan 2001 (histogram binning), on the bins of Levi 2019",
)
