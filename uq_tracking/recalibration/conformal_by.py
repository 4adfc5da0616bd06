"""Split conformal prediction within groups: the stated share of new targets in every group."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import RecalibrationError, ShapeError
from uq_tracking.families import Standard
from uq_tracking.metrics.forms import Undetermined
from uq_tracking.recalibration.base import FittedOn, FloatArray, Recalibrator, RegressionRecalibration
from uq_tracking.recalibration.conformal import Conformal, fit_conformal
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import statistics_of_rows
from uq_tracking.statistics.group_tally import plain_labels
from uq_tracking.statistics.layout import Rows
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.weights import WEIGHT
from uq_tracking.typed import override

Labels = npt.NDArray[Any]

COLUMNS = ("target", "mean", "std")
OWN_SHAPES = (
    "after it every group has its own distribution; see the scores of mean and std, and its intervals"
)


@dataclass(frozen=True, kw_only=True)
class ConformalBy(RegressionRecalibration):
    """A `Conformal` for every group, whose guarantee holds within each group (Mondrian; Vovk et al. 2005, 4.5).

    Attributes
    ----------
    labels : tuple
        The groups.
    sizes : tuple of int
        Number of samples of each.
    ranks : tuple of tuples of int
    radii : tuple of tuples of float
        As in `Conformal`, for each group.
    """

    method: ClassVar[str] = "conformal_by"

    labels: tuple[Any, ...]
    sizes: tuple[int, ...]
    ranks: tuple[tuple[int, ...], ...]
    radii: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("ranks", "radii"):  # lists if they come from JSON
            object.__setattr__(self, name, tuple(tuple(row) for row in getattr(self, name)))
        columns = (self.labels, self.sizes, self.ranks, self.radii)
        if not self.labels or len({len(column) for column in columns}) != 1:
            raise RecalibrationError("labels, sizes, ranks and radii must be columns of one table")
        if len(set(self.rules)) != len(self.labels):
            raise RecalibrationError("labels must be distinct")

    @cached_property
    def rules(self) -> dict[Any, Conformal]:
        """The rule of each group by its label."""
        rows = zip(self.labels, self.sizes, self.ranks, self.radii, strict=True)
        return {
            label: Conformal(
                ranks=ranks,
                radii=radii,
                family=self.family,
                dof=self.dof,
                fitted_on=FittedOn(size, self.fitted_on.source),
            )
            for label, size, ranks, radii in rows
        }

    def radius(self, level: float, by: Any) -> float:
        """Half-width of a level's interval in one group, in units of s; as `Conformal.radius`."""
        return self._rule(by).radius(level)

    def interval(
        self, mean: Any, std: Any, level: float = 0.95, *, by: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Lower and upper ends of the intervals of predictions before recalibration.

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
        center, scale, labels = self._aligned(mean, std, by)
        low, high = np.empty_like(center), np.empty_like(center)
        for label, place in _parts(labels):
            low[place], high[place] = self._rule(label).interval(center[place], scale[place], level)
        return low, high

    def new_std_by(self, std: FloatArray, labels: Labels | None) -> FloatArray:
        """Recalibrated standard deviations of samples of these groups."""
        if labels is None:
            raise RecalibrationError("conformal_by needs the group of each prediction; pass by=")
        made = np.empty_like(std)
        for label, place in _parts(labels):
            made[place] = self._rule(label).new_std(std[place])
        return made

    @override
    def new_std(self, std: FloatArray) -> FloatArray:
        return self.new_std_by(std, None)

    @override
    def quantile(self, mean: Any, std: Any, q: npt.ArrayLike, by: Any = None) -> npt.NDArray[Any]:
        center, scale, labels = self._aligned(mean, std, by)
        levels = np.asarray(q, dtype=np.float64)
        made = np.empty(levels.shape + center.shape)
        for label, place in _parts(labels):
            made[..., place] = self._rule(label).quantile(center[place], scale[place], levels)
        return made

    @property
    def shape(self) -> Standard:
        """Unknown as a whole: every group has its own."""
        return Undetermined(OWN_SHAPES)

    def scalars(self) -> dict[str, float]:
        """Smallest and largest radius of the groups."""
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

    def _aligned(self, mean: Any, std: Any, by: Any) -> tuple[FloatArray, FloatArray, Labels]:
        if by is None:
            raise RecalibrationError("conformal_by needs the group of each prediction; pass by=")
        center, scale = (np.asarray(part, dtype=np.float64) for part in (mean, std))
        labels = np.asarray(by)
        if not center.shape == scale.shape == labels.shape:
            raise ShapeError(
                f"mean has shape {center.shape}, std {scale.shape}, by {labels.shape}; pass equal shapes"
            )
        return center, self.floored(scale), labels


def _parts(labels: Labels) -> Iterator[tuple[Any, npt.NDArray[np.bool_]]]:
    """Every group and a mask of its samples."""
    distinct = np.unique(labels)
    for label, plain in zip(distinct, plain_labels(distinct), strict=True):
        yield plain, labels == label


def fit_conformal_by(rows: Rows, labels: Labels, settings: Settings, fitted_on: FittedOn) -> ConformalBy:
    """A rule for each group of samples.

    Raises
    ------
    RecalibrationError
        A group has fewer than nine samples, a standard deviation of zero, or only zero errors; the message names it.
    """
    rules: dict[Any, Conformal] = {}
    for label, place in _parts(labels):
        own = {name: rows[name][place] for name in (*COLUMNS, WEIGHT) if name in rows}
        made = statistics_of_rows(REGRESSION, own, {}, "exact")
        try:
            rules[label] = fit_conformal(made, settings, FittedOn(made.counts["n"], "exact"))
        except RecalibrationError as refusal:
            raise RecalibrationError(f"group {label!r}: {refusal}") from refusal
    return ConformalBy(
        labels=tuple(rules),
        sizes=tuple(rule.fitted_on.n for rule in rules.values()),
        ranks=tuple(rule.ranks for rule in rules.values()),
        radii=tuple(rule.radii for rule in rules.values()),
        family=settings.family,
        dof=settings.dof,
        fitted_on=fitted_on,
    )


def _without_labels(statistics: Any, settings: Settings, fitted_on: FittedOn) -> ConformalBy:
    raise RecalibrationError(
        "conformal_by is fitted to samples and the group of each; pass arrays or Predictions with by="
    )


CONFORMAL_BY = Recalibrator(
    "conformal_by",
    ConformalBy,
    _without_labels,
    "Intervals that contain the stated share of new targets in every group",
    "Vovk 2005, section 4.5",
    fit_conformal_by,
)
