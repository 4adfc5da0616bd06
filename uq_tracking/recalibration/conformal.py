"""Split conformal prediction: intervals that contain the stated share of new targets, whatever their distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import RecalibrationError, SettingsError, warn
from uq_tracking.families import Standard
from uq_tracking.recalibration.base import FittedOn, FloatArray, Recalibrator, RegressionRecalibration
from uq_tracking.recalibration.cdf_isotonic import MIDDLE_KNOTS, TAIL_KNOTS, Tabulated
from uq_tracking.recalibration.checks import check_increasing, require_positive_std, require_samples
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import override

FEWEST = 9
LEVELS = 1000
"""Number of evenly spaced levels; of a large set, the order statistics of these are kept."""


@dataclass(frozen=True, kw_only=True)
class Conformal(RegressionRecalibration):
    """``mu +- q s``, with q an order statistic of the normalized residuals ``|y - mu| / s`` of the fit set.

    For level p, q is the ``ceil((n + 1) p)``-th smallest of n residuals, so that a new target exchangeable with those
    of the fit set lies inside with a probability of at least p, and, without ties, of at most ``p + 1 / (n + 1)``
    [1]_. If there are more than 1001 residuals, those of the levels .001, .002 ... .999 are kept, and more near the
    largest; for levels in between the next larger kept one stands in, so the guarantee holds. The guarantee is
    marginal: it covers all new samples together, not each one, nor groups of them.

    Attributes
    ----------
    ranks : tuple of int
        Ranks among the residuals, from 1 to n.
    radii : tuple of float
        The residuals at these ranks.

    References
    ----------
    .. [1] Vovk, Gammerman and Shafer 2005; Lei et al. 2018, Journal of the American Statistical Association 113.
    """

    method: ClassVar[str] = "conformal"

    ranks: tuple[int, ...]
    radii: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_increasing("radii", self.radii)
        check_increasing("ranks", self.ranks)
        if (
            len(self.ranks) != len(self.radii)
            or self.ranks[0] != 1
            or self.radii[0] < 0
            or self.radii[-1] <= 0
        ):
            raise RecalibrationError("ranks and radii must be two columns of one table, from rank 1 on")

    @property
    def n(self) -> int:
        """Number of residuals."""
        return self.ranks[-1]

    @property
    def widest_level(self) -> float:
        """Largest level whose interval is finite, ``n / (n + 1)``."""
        return self.n / (self.n + 1)

    def radius(self, level: float) -> float:
        """Half-width of a level's interval, in units of s; infinite above `widest_level`.

        Raises
        ------
        SettingsError
            The level is not between 0 and 1.
        """
        if not 0 < level < 1:
            raise SettingsError(f"level is {level}; pass a share between 0 and 1, such as 0.95")
        rank = math.ceil(Fraction(repr(float(level))) * (self.n + 1))
        place = int(np.searchsorted(self.ranks, rank))
        return self.radii[place] if place < len(self.ranks) else math.inf

    def interval(self, mean: Any, std: Any, level: float = 0.95) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Lower and upper ends of the intervals of predictions before recalibration, in float64.

        Parameters
        ----------
        mean, std : arrays of one shape
        level : float
            Share of new targets that the intervals contain.

        Warns
        -----
        TrackingWarning
            The fit set is too small for the level, so the intervals are infinite.

        Examples
        --------
        >>> from uq_tracking.recalibration import recalibrate
        >>> rule = recalibrate(([1.0, -2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.0, 9.0], [0.0] * 9, [1.0] * 9), "conformal")
        >>> rule.interval([10.0], [2.0], level=0.8)
        (array([-6.]), array([26.]))
        """
        radius = self.radius(level)
        if math.isinf(radius):
            warn(
                f"{self.n} residuals support intervals up to level {self.widest_level:.4g}; those at {level:g} are "
                "infinite"
            )
        center, scale = np.asarray(mean, dtype=np.float64), self.floored(np.asarray(std, dtype=np.float64))
        return center - radius * scale, center + radius * scale

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        return self._factor * std

    @cached_property
    def _factor(self) -> float:
        """Root mean square of the table's distribution, which is symmetric and linear between its levels."""
        shares, radii = self._table
        steps = np.diff(shares)
        squares = (radii[:-1] ** 2 + radii[:-1] * radii[1:] + radii[1:] ** 2) / 3
        return math.sqrt(float(steps @ squares))

    @property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """Shares of the intervals and their radii; anything beyond the last radius is placed at it."""
        shares = np.asarray(self.ranks) / (self.n + 1)
        radii = np.asarray(self.radii)
        return np.concatenate([[0.0], shares, [1.0]]), np.concatenate([[0.0], radii, radii[-1:]])

    @cached_property
    def _shape(self) -> Tabulated:
        shares, radii = self._table
        values = np.concatenate([-radii[:0:-1], radii]) / self._factor
        levels = np.concatenate([(1 - shares[:0:-1]) / 2, (1 + shares) / 2])
        return Tabulated(tuple(values.tolist()), tuple(levels.tolist()))

    @property
    def shape(self) -> Standard:
        """The symmetric distribution whose central intervals `radius` gives, to within ``1 / (n + 1)``."""
        return self._shape

    @override
    def scalars(self) -> dict[str, float]:
        found = {f"conformal_radius_{level}": self.radius(level / 100) for level in (50, 90, 95)}
        return {name: radius for name, radius in found.items() if math.isfinite(radius)}


def fit_conformal(statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> Conformal:
    """Order statistics of the normalized residuals, at most about 1130 of them.

    Raises
    ------
    RecalibrationError
        There are fewer than nine samples, a standard deviation is zero, or every error is zero.
    """
    require_samples(statistics, FEWEST, "conformal")
    require_positive_std(statistics, "conformal")
    if statistics.parts.weighted:
        raise RecalibrationError(
            "conformal cannot be fitted to weighted samples: its guarantee would also need the weight of each new "
            "sample; fit without weights, or use cdf_isotonic"
        )
    ranks = _ranks(statistics.counts["n"])
    radii = np.maximum.accumulate(np.maximum(statistics.orders["z"].absolute_value(ranks), 0.0))
    if not radii[-1] > 0:
        raise RecalibrationError("conformal cannot be fitted: every error is 0; fit on held-out data")
    return Conformal(
        ranks=tuple(int(rank) for rank in ranks),
        radii=tuple(radii.tolist()),
        family=settings.family,
        dof=settings.dof,
        fitted_on=fitted_on,
    )


def _ranks(n: int) -> npt.NDArray[np.int64]:
    """Ranks to keep: all of a small set, else those of evenly spaced levels and more near the largest."""
    if n <= MIDDLE_KNOTS:
        return np.arange(1, n + 1)
    of_levels = [-(-(n + 1) * k // LEVELS) for k in range(1, LEVELS)]  # rounded up, in whole numbers
    tail = np.rint(np.geomspace(1, n / LEVELS, TAIL_KNOTS)).astype(np.int64)
    return np.unique(np.concatenate([[1], of_levels, n + 1 - tail]))


CONFORMAL = Recalibrator(
    "conformal",
    Conformal,
    fit_conformal,
    "Intervals that contain the stated share of new targets: order statistics of the normalized residuals",
    "Vovk 2005; Lei 2018",
)
