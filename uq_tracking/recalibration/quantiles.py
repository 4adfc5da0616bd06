"""Methods that correct quantiles: isotonic correction of distribution functions, and split conformal prediction."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import RecalibrationError, SettingsError, warn
from uq_tracking.families import Standard
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.convert import read_floats
from uq_tracking.metrics.other_forms import Undetermined
from uq_tracking.metrics.ranking import order_of
from uq_tracking.recalibration.base import FittedOn, FloatArray, RegressionRecalibration, recalibrator
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import statistics_of_rows
from uq_tracking.statistics.groups import plain_labels
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import WEIGHT
from uq_tracking.typed import Self, cached_property, override

Labels = npt.NDArray[Any]

FEWEST_FOR_TABLE, FEWEST_FOR_INTERVALS = 10, 9
MIDDLE_KNOTS = 1001
"""Knots of a table at evenly spaced ranks."""
TAIL_KNOTS = 128
"""Further knots in each tail, at ranks that double every few knots, so that the extremes keep their position."""
LEVELS = 1000
"""Number of evenly spaced levels; of a large set, the order statistics of these are kept."""
NEEDS_GROUPS = "conformal_by needs the group of each prediction; pass by="
OWN_SHAPES = (
    "after it every group has its own distribution; see the scores of mean and std, and its intervals"
)


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
        """Return NaN: a table with jumps has no density."""
        return np.full(np.shape(z), np.nan)

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """Integrate ``F^2`` up to z and ``(1 - F)^2`` from there; F is linear between the knots."""
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
        """Integrals of ``F^2`` up to each knot, and of ``(1 - F)^2`` from it on."""
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
        """Return the share strictly below z."""
        values, levels = np.asarray(self.values), np.asarray(self.levels)
        mirrored = np.interp(-z, -values[::-1], -levels[::-1], right=0.0)  # a jump counts to its left
        return np.asarray(-mirrored)


def _squares(width: FloatArray, one: FloatArray, other: FloatArray) -> FloatArray:
    """Integrate the square of a line from ``one`` to ``other`` over a width."""
    return width * (one * one + one * other + other * other) / 3


@recalibrator
@dataclass(frozen=True, kw_only=True)
class CdfIsotonic(RegressionRecalibration):
    """Quantile levels replaced by the shares observed below them (Kuleshov et al. 2018; Levi 2019 section 2).

    With the predicted distribution function F, the corrected one is ``R(F((y - mu) / s))``, where R maps each
    predicted level to the share of the fit set at or below it. F and R are both functions of ``z``, so their
    composition is one table for all samples, whatever the family, and moments and quantiles need no integration:

    - quantiles: ``mu + s Q(q)``, Q the inverse of the table;
    - mean: ``mu + s * z_mean``; standard deviation: ``s * z_scale``, the mean and the standard deviation of z on
      the fit set.

    Attributes
    ----------
    z : tuple of float
        Standardized errors, non-decreasing. A repeated value carries a share of the samples.
    levels : tuple of float
        Share of the fit set at or below each, from 0 to 1; linear in between, with nothing outside.
    z_mean, z_scale : float
        Mean and population standard deviation of z.
    """

    method = "cdf_isotonic"

    z: tuple[float, ...]
    levels: tuple[float, ...]
    z_mean: float
    z_scale: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_finite("z_mean", [self.z_mean])
        self._check_positive("z_scale", [self.z_scale])
        self._check_increasing("z", self.z)
        self._check_increasing("levels", self.levels)
        if len(self.z) != len(self.levels) or len(self.z) < 2 or (self.levels[0], self.levels[-1]) != (0, 1):
            raise RecalibrationError("z and levels must be two columns of one table, with levels from 0 to 1")

    @classmethod
    def fit(cls, statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> Self:
        """Tabulate the shares observed below each standardized error, with at most about 1300 knots.

        The points (F(z), share) rise together, so isotonic regression passes through every one of them.

        Raises
        ------
        RecalibrationError
            There are fewer than ten samples, a standard deviation is zero, or all standardized errors are equal.
        """
        cls._require_samples(statistics, FEWEST_FOR_TABLE)
        cls._require_positive_std(statistics)
        moments = statistics.moments["z"]
        if not moments.high > moments.low:
            raise RecalibrationError(
                f"cdf_isotonic needs errors that vary, but every standardized error is {moments.low:g}; pass a "
                "larger set"
            )
        ranks = knot_ranks(statistics.n)
        # a sketch's order statistics lie inside its buckets, which may reach past the smallest and largest value
        z = np.clip(statistics.orders["z"].value(ranks), moments.low, moments.high)
        return cls.fitted(
            settings,
            fitted_on,
            z=np.concatenate([[moments.low], z, [moments.high]]),
            levels=np.concatenate([[0.0], (ranks - 0.5) / statistics.n, [1.0]]),
            z_mean=moments.mean,
            z_scale=math.sqrt(moments.variance()),
        )

    @override
    def new_mean(self, mean: FloatArray, std: FloatArray) -> FloatArray:
        return mean + self.z_mean * std

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        return self.z_scale * std

    @cached_property
    def shape(self) -> Standard:
        """The table, standardized to mean 0 and standard deviation 1."""
        values = (np.asarray(self.z) - self.z_mean) / self.z_scale
        return Tabulated(tuple(values.tolist()), self.levels)

    @override
    def scalars(self) -> dict[str, float]:
        return {"cdf_shift": self.z_mean, "cdf_scale": self.z_scale}


def knot_ranks(n: float) -> npt.NDArray[np.float64]:
    """Return ranks 1 ... n to tabulate: all of a small set, else evenly spaced, with more towards both ends."""
    if n <= MIDDLE_KNOTS:
        return np.arange(1.0, n + 1)
    tail = np.geomspace(1, n / MIDDLE_KNOTS, TAIL_KNOTS)
    ranks = np.concatenate([tail, np.linspace(1, n, MIDDLE_KNOTS), n + 1 - tail])
    return np.unique(np.rint(ranks)) if isinstance(n, int) else np.unique(ranks)


@recalibrator
@dataclass(frozen=True, kw_only=True)
class Conformal(RegressionRecalibration):
    """Intervals that contain the stated share of new targets (Vovk 2005; Lei 2018).

    They are ``mu +- q s``, with q an order statistic of the normalized residuals ``|y - mu| / s`` of the fit set.
    For level p, q is the ``ceil((n + 1) p)``-th smallest of n residuals, so that a new target exchangeable with
    those of the fit set lies inside with a probability of at least p, and, without ties, of at most ``p + 1 /
    (n + 1)`` [1]_. If there are more than 1001 residuals, those of the levels .001, .002 ... .999 are kept, and
    more near the largest; for levels in between the next larger kept one stands in, so the guarantee holds. The
    guarantee is marginal: it covers all new samples together, not each one, nor groups of them.

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

    method = "conformal"

    ranks: tuple[int, ...]
    radii: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_increasing("radii", self.radii)
        self._check_increasing("ranks", self.ranks)
        if (
            len(self.ranks) != len(self.radii)
            or self.ranks[0] != 1
            or self.radii[0] < 0
            or self.radii[-1] <= 0
        ):
            raise RecalibrationError("ranks and radii must be two columns of one table, from rank 1 on")

    @classmethod
    def fit(cls, statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> Self:
        """Keep order statistics of the normalized residuals, at most about 1130 of them.

        Raises
        ------
        RecalibrationError
            There are fewer than nine samples, a standard deviation is zero, or every error is zero.
        """
        cls._require_samples(statistics, FEWEST_FOR_INTERVALS)
        cls._require_positive_std(statistics)
        if statistics.weighted:
            raise RecalibrationError(
                "conformal cannot be fitted to weighted samples: its guarantee would also need the weight of each "
                "new sample; fit without weights, or use cdf_isotonic"
            )
        ranks = _ranks(statistics.counts["n"])
        radii = np.maximum.accumulate(np.maximum(statistics.orders["z"].absolute_value(ranks), 0.0))
        if not radii[-1] > 0:
            raise RecalibrationError("conformal cannot be fitted: every error is 0; fit on held-out data")
        return cls.fitted(settings, fitted_on, ranks=ranks, radii=radii)

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
        place = int(np.searchsorted(self.ranks, order_of(level, self.n + 1)))
        return self.radii[place] if place < len(self.ranks) else math.inf

    def interval(self, mean: Any, std: Any, level: float = 0.95) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return lower and upper ends of the intervals of predictions before recalibration, in float64.

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
        return math.sqrt(float(_squares(np.diff(shares), radii[:-1], radii[1:]).sum()))

    @property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """Shares of the intervals and their radii; anything beyond the last radius is placed at it."""
        shares = np.asarray(self.ranks) / (self.n + 1)
        radii = np.asarray(self.radii)
        return np.concatenate([[0.0], shares, [1.0]]), np.concatenate([[0.0], radii, radii[-1:]])

    @cached_property
    def shape(self) -> Standard:
        """The symmetric distribution whose central intervals `radius` gives, to within ``1 / (n + 1)``."""
        shares, radii = self._table
        values = np.concatenate([-radii[:0:-1], radii]) / self._factor
        levels = np.concatenate([(1 - shares[:0:-1]) / 2, (1 + shares) / 2])
        return Tabulated(tuple(values.tolist()), tuple(levels.tolist()))

    @override
    def scalars(self) -> dict[str, float]:
        found = {f"conformal_radius_{level}": self.radius(level / 100) for level in (50, 90, 95)}
        return {name: radius for name, radius in found.items() if math.isfinite(radius)}


def _ranks(n: int) -> npt.NDArray[np.int64]:
    """Return the ranks to keep: all of a small set, else those of evenly spaced levels and more near the largest."""
    if n <= MIDDLE_KNOTS:
        return np.arange(1, n + 1)
    of_levels = [-(-(n + 1) * k // LEVELS) for k in range(1, LEVELS)]  # rounded up, in whole numbers
    tail = np.rint(np.geomspace(1, n / LEVELS, TAIL_KNOTS)).astype(np.int64)
    return np.unique(np.concatenate([[1], of_levels, n + 1 - tail]))


@recalibrator
@dataclass(frozen=True, kw_only=True)
class ConformalBy(RegressionRecalibration):
    """A `Conformal` for every group, whose guarantee holds within each group (Mondrian; Vovk et al. 2005, 4.5).

    Attributes
    ----------
    labels : tuple
        The groups.
    ranks : tuple of tuples of int
    radii : tuple of tuples of float
        As in `Conformal`, for each group.
    """

    method = "conformal_by"
    of_samples = True

    labels: tuple[Any, ...]
    ranks: tuple[tuple[int, ...], ...]
    radii: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.labels or len({len(self.labels), len(self.ranks), len(self.radii)}) != 1:
            raise RecalibrationError("labels, ranks and radii must be columns of one table")
        if len(set(self.rules)) != len(self.labels):
            raise RecalibrationError("labels must be distinct")

    @classmethod
    @override
    def fit_to(cls, data: Predictions, settings: Settings, fitted_on: FittedOn) -> Self:
        """Fit a rule for each group of samples.

        Raises
        ------
        RecalibrationError
            A group has fewer than nine samples, a standard deviation of zero, or only zero errors; the message names
            it.
        """
        if data.by is None:
            raise RecalibrationError("conformal_by needs the group of each sample; pass by=")
        rows = data.rows()
        rules: dict[Any, Conformal] = {}
        for label, place in _parts(data.flat_labels("by")):
            own = {name: rows[name][place] for name in ("target", "mean", "std", WEIGHT) if name in rows}
            made = statistics_of_rows(REGRESSION, own, {}, "exact")
            try:
                rules[label] = Conformal.fit(made, settings, fitted_on)
            except RecalibrationError as refusal:
                raise RecalibrationError(f"group {label!r}: {refusal}") from refusal
        return cls.fitted(
            settings,
            fitted_on,
            labels=tuple(rules),
            ranks=tuple(rule.ranks for rule in rules.values()),
            radii=tuple(rule.radii for rule in rules.values()),
        )

    @cached_property
    def rules(self) -> dict[Any, Conformal]:
        """The rule of each group by its label."""
        made: dict[Any, Conformal] = {}
        for label, ranks, radii in zip(self.labels, self.ranks, self.radii, strict=True):
            fitted_on = FittedOn(ranks[-1], self.fitted_on.source)
            made[label] = Conformal(
                ranks=ranks, radii=radii, family=self.family, dof=self.dof, fitted_on=fitted_on
            )
        return made

    def radius(self, level: float, by: Any) -> float:
        """Half-width of a level's interval in one group, in units of s; as `Conformal.radius`."""
        return self._rule(by).radius(level)

    def interval(
        self, mean: Any, std: Any, level: float = 0.95, *, by: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return lower and upper ends of the intervals of predictions before recalibration.

        Parameters
        ----------
        mean, std, by : arrays of one shape
            ``by`` holds the group of each prediction.
        level : float
            Share of each group's new targets that the intervals contain.

        Raises
        ------
        RecalibrationError
            A group was not in the fit set.
        ShapeError
            The shapes differ.

        Examples
        --------
        >>> from uq_tracking.recalibration import recalibrate
        >>> errors, zeros, ones = [*range(1, 10), *range(2, 20, 2)], [0.0] * 18, [1.0] * 18
        >>> rule = recalibrate((errors, zeros, ones), "conformal_by", by=["a"] * 9 + ["b"] * 9)
        >>> rule.interval([0.0, 0.0], [1.0, 1.0], level=0.8, by=["a", "b"])[1]
        array([ 8., 16.])
        """
        mean, std = read_floats(mean, "mean"), read_floats(std, "std")
        center, scale = mean.values, self.floored(std.values.astype(np.float64))
        low, high = np.empty_like(scale), np.empty_like(scale)
        for rule, place in self.rules_for(self._labels(mean, std, by)):
            low[place], high[place] = rule.interval(center[place], scale[place], level)
        return low, high

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        raise RecalibrationError(NEEDS_GROUPS)

    @property
    def shape(self) -> Standard:
        """An unknown distribution: every group has its own."""
        return Undetermined(OWN_SHAPES)

    def scalars(self) -> dict[str, float]:
        """Return the smallest and the largest radius of the groups."""
        found = [rule.radius(0.95) for rule in self.rules.values()]
        finite = [radius for radius in found if math.isfinite(radius)]
        ends = {"min": min(finite), "max": max(finite)} if finite else {}
        return {f"conformal_radius_95_{end}": radius for end, radius in ends.items()}

    def _rule(self, label: Any) -> Conformal:
        if label not in self.rules:
            raise RecalibrationError(
                f"{label!r} was not in the fit set, which has {', '.join(map(repr, self.labels[:5]))}"
                f"{' ...' if len(self.labels) > 5 else ''}; fit on data that contain every group"
            )
        return self.rules[label]

    @override
    def rules_for(self, labels: Labels | None) -> Iterator[tuple[Conformal, Any]]:
        if labels is None:
            raise RecalibrationError(NEEDS_GROUPS)
        for label, place in _parts(labels):
            yield self._rule(label), (place,)


def _parts(labels: Labels) -> Iterator[tuple[Any, npt.NDArray[np.bool_]]]:
    """Yield every group and a mask of its samples."""
    distinct = np.unique(labels)
    for label, plain in zip(distinct, plain_labels(distinct), strict=True):
        yield plain, labels == label
