"""The statistics of a regression: samples by std, absolute error and z.

Predictions that are a mean and a covariance of vectors add sums of the vectors' scores, and an order by the
probability integral transform of their Mahalanobis distance; samples are the vectors' components.

Predictions that are distributions in a form other than mean and std add two orders by the probability integral
transform u of the truth. It is spread evenly over an interval ``[low, high]``, or is a point, so the expected number
of samples with ``u <= p`` is the sum of

- 1 over points with ``u <= p``,
- ``(p - low) / (high - low)`` over intervals with ``low <= p``, less
- ``(p - high) / (high - low)`` over intervals with ``high <= p``.

That takes only sums over the samples in the order of ``low`` and in that of ``high``. Both are ordered by the normal
score ``Phi^-1``, whose buckets are fine in both tails. Proper scores are plain sums, NaN where the form does not
determine them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.families import Standard, family_of
from uq_tracking.inputs.forms.form import JOINT, LEVELS, SCORES
from uq_tracking.inputs.forms.form import PERCENT as PERCENT
from uq_tracking.parallel import SIDE_BY_SIDE, keep_memory, map_spans, map_threads, spans
from uq_tracking.settings import Settings
from uq_tracking.statistics import exact
from uq_tracking.statistics.exact import Column, Derived, SortedRows
from uq_tracking.statistics.layout import Layout, OnDemand, Parts, Places, Rows, weighted_correlation
from uq_tracking.statistics.orders import FloatArray
from uq_tracking.statistics.sketch import CellCounts, Joint
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import WEIGHT, Moments, in_units
from uq_tracking.typed import cached_property, override

OF_MEAN = ("error", "abs_error", "sq_error", "z", "z2")
"""Losses that a mean and a std determine, whatever the distribution."""


class RegressionLayout(Layout):
    """Orders by std, absolute error and z.

    Rows are ``target``, ``mean`` and ``std`` of validated samples (finite, std >= 0), float32 or float64; or, if the
    target is no longer known, ``std`` and ``error``.
    """

    task = "regression"
    orders: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "std": ("std", "std2", "abs_error", "sq_error"),
        "abs_error": ("abs_error", "sq_error"),
        "z": ("z", "z2", "std", "error", "inv_std", "inv_sqrt_std"),
    }
    sums: ClassVar[tuple[str, ...]] = ("log_std",)
    moments: ClassVar[tuple[str, ...]] = ("target", "std", "error", "z")
    tables: ClassVar[Mapping[str, type[CellCounts]]] = {"joint": Joint}
    counts: ClassVar[tuple[str, ...]] = ("n", "n_missing", "n_masked", "n_invalid", "n_zero_std")
    counted: ClassVar[tuple[str, ...]] = ("n_zero_std",)
    kept: ClassVar[tuple[str, ...]] = ("std", "error")
    forgotten: ClassVar[tuple[str, ...]] = ("target",)
    alike: ClassVar[Mapping[str, str]] = {"std_floor": "std_floor"}

    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Every payload in float64; for a point mass (std 0), z is 0 if the error is 0, else infinite."""
        std, made = rows["std"].astype(np.float64), Derived()
        if "target" in rows:
            made["target"] = rows["target"].astype(np.float64)
            made["error"] = made["target"] - rows["mean"]
        else:
            made["error"] = rows["error"].astype(np.float64)
        made |= {"std": std, "z": exact.z_column(made["error"], std)}
        with np.errstate(divide="ignore", over="ignore"):
            names = [payload for by in RegressionLayout.orders for payload in RegressionLayout.orders[by]]
            names += [*RegressionLayout.sums, *RegressionLayout.counted]
            known = {**made, **{name: made[name] for name in names}}
        return {**known, **self.ordered(rows), **self.summed(rows)}

    def ordered(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Return what a form is ordered by beyond mean and std, and its payloads, from the columns that are kept."""
        return {}

    def summed(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Return what of a form is summed, counted or has moments, beyond mean and std."""
        return {}

    @override
    def losses(self, rows: Rows, settings: Settings) -> dict[str, npt.NDArray[Any]]:
        """Those of the mean, and of the family that the settings name."""
        if "target" not in rows:
            return {}
        std, family = rows["std"].astype(np.float64), family_of(settings)
        error = rows["target"].astype(np.float64) - rows["mean"]
        z = exact.z_column(error, std)
        made = Derived({"error": error, "z": z})
        size = made["abs_error"]
        density = family.pdf(z)
        with np.errstate(all="ignore"):
            crps = np.where(std > 0, std * family.crps(z, density), size)
            nll = np.log(std) - family.log_pdf(z)
        reach = np.abs(z)
        halves, offset, slope = _intervals(family)
        outside = (np.minimum(2 * family.cdf(reach) - 1, LEVELS[-1]) * (len(LEVELS) + 1)).astype(np.int64)
        inside = {f"inside_{percent}": reach <= half for percent, half in halves}
        return {
            **{name: made[name] for name in OF_MEAN},
            "nll": nll,
            "crps": crps,
            "interval_score": std * offset[outside] + size * slope[outside],
            **inside,
        }

    @override
    def tables_of(
        self, columns: Rows, facts: Mapping[str, Any], counts: npt.NDArray[Any] | None = None
    ) -> dict[str, CellCounts]:
        if counts is None:  # numbers alone are sorted faster than with their places
            return {"joint": Joint.of(columns["std"], columns["error"])}
        return super().tables_of(columns, facts, counts)

    @override
    def places(self, columns: Rows, facts: Mapping[str, Any], bits: int) -> dict[str, Places]:
        return {"joint": (*Joint.places(columns["std"], columns["abs_error"], bits), bits)}

    @override
    def sort(self, rows: Rows, facts: Mapping[str, Any]) -> Parts:
        std, samples = rows["std"], _Samples(rows)
        orders = {
            name: SortedRows(name, unsorted=lambda: samples.unsorted, sort=sort)
            for name, sort in {
                "std": lambda: samples.by_std,
                "abs_error": lambda: samples.by_abs_error,
                "z": lambda: exact.sort_by_z(**samples.columns),
            }.items()
        }

        held = {name: rows[name] for name in self.kept[len(RegressionLayout.kept) :]}

        def further(names: Sequence[str]) -> dict[str, Column]:
            made = {**self.ordered(held), **held}
            return {name: made[name] for name in names}

        kept: Sequence[str] = tuple(held)
        for name in [name for name in self.orders if name not in orders]:
            orders[name] = SortedRows(name, unsorted=partial(further, (name, *self.orders[name], *kept)))
            kept = ()  # one order holds them

        def moments_of(name: str) -> Moments:
            if name == "target":
                return Moments.of(rows["target"])
            if name == "z":
                by_z = orders["z"]
                return Moments.of(by_z.values if by_z.is_sorted else exact.z_column(**samples.columns))
            return Moments.of(samples.columns[name])

        def log_sum() -> float:
            std = samples.columns["std"]
            with np.errstate(divide="ignore"):
                parts = map_spans(
                    lambda start, end: float(np.log(std[start:end].astype(np.float64)).sum()), spans(len(std))
                )
            return math.fsum(parts)

        moments = OnDemand({name: partial(moments_of, name) for name in ("target", "std", "error", "z")})
        summed = self.summed(rows)
        sums = {name: float(summed[name].sum()) for name in self.sums if name in summed}
        counts = {name: int(np.count_nonzero(summed[name])) for name in self.counted if name in summed}
        return Parts(
            orders,
            OnDemand.joined(OnDemand({"log_std": log_sum}), sums),
            OnDemand.joined(
                moments, {name: Moments.of(summed[name]) for name in self.moments if name in summed}
            ),
            derived=OnDemand({"rank_correlation": lambda: samples.ranked[1]}),
            counts={"n": len(std), "n_zero_std": len(std) - int(np.count_nonzero(std)), **counts},
        )

    @override
    def complete(self, parts: Parts) -> None:
        keep_memory(32 * parts.counts["n"])
        parts.orders["std"].value([1])

        def work(first: bool) -> object:
            if first:
                return dict(parts.derived)
            return parts.orders["z"].value([1]), dict(parts.moments), dict(parts.sums)

        map_threads(work, (True, False), least=2 if parts.counts["n"] >= SIDE_BY_SIDE else 3)
        for order in parts.orders.values():
            order.value([1])


REGRESSION = RegressionLayout()


@lru_cache(maxsize=8)
def _intervals(family: Standard) -> tuple[tuple[tuple[int, float], ...], FloatArray, FloatArray]:
    """Return half-widths of central intervals; and offset and slope of the mean interval score in absolute z.

    It is piecewise linear: entry k is where k of the intervals do not contain z.
    """
    halves = tuple((percent, float(family.central(percent / 100))) for percent in PERCENT)
    half, price = np.asarray(family.central(LEVELS)), 2 / (1 - LEVELS)
    slope = np.concatenate([[0.0], np.cumsum(price)])
    offset = 2 * half.sum() - np.concatenate([[0.0], np.cumsum(price * half)])
    return halves, offset / len(LEVELS), slope / len(LEVELS)


class _Samples:
    """Std and error of samples, sorted when first asked for; what is no longer needed is let go."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @property
    def unsorted(self) -> Mapping[str, Column]:
        """What std and error follow from, sample by sample."""
        return self.columns if "columns" in vars(self) else self._rows

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """In the order given, or by std once they are sorted."""
        rows, std = self._rows, self._rows["std"]
        if "target" not in rows:
            return {"std": std, "error": rows["error"]}
        return {
            "std": std,
            "error": exact.errors(rows["target"], rows["mean"], std, many=len(std) >= exact.LARGE),
        }

    @cached_property
    def by_std(self) -> Mapping[str, Column]:
        self.columns = exact.sort_columns("std", self.columns)
        self._rows = self.columns
        return self.columns

    @cached_property
    def ranked(self) -> tuple[Mapping[str, Column], float | None]:
        """By absolute error, and its rank correlation with the std."""
        return exact.sort_by_abs_error(**self.by_std)

    @cached_property
    def by_abs_error(self) -> Mapping[str, Column]:
        if "ranked" in vars(self):
            return self.ranked[0]
        return {"abs_error": np.sort(np.abs(self.columns["error"]))}


def joint_counts(statistics: Statistics) -> Joint:
    """Return coarse joint counts of std and absolute error; exact statistics compute them on demand."""
    table = statistics.tables.get("joint")
    if isinstance(table, Joint):
        return table
    rows = statistics.rows()
    return Joint.of(rows["std"], rows["error"])


def rank_correlation(statistics: Statistics) -> float | None:
    """Spearman correlation of std and absolute error; None if either is constant."""
    if statistics.kind == "exact" and not statistics.weighted:
        return statistics.derived["rank_correlation"]
    if statistics.kind == "exact":
        rows = statistics.rows()
        return weighted_correlation(
            rows["std"], np.abs(rows["error"]), in_units(rows[WEIGHT], statistics.unit)
        )
    joint = joint_counts(statistics)
    std, _, error, _ = joint.edges()
    return weighted_correlation(std, error, joint.count) if len(std) else None


DISTANCE = "normal_distance"


class CovarianceLayout(RegressionLayout):
    """Orders of a regression, plus one by the Mahalanobis distance of the vector a component belongs to.

    Rows are those of a regression, ``joint_pit``, ``whole`` (1 where all components of the vector count, else 0) and
    the vector's scores.
    """

    orders: ClassVar[Mapping[str, tuple[str, ...]]] = {**REGRESSION.orders, DISTANCE: ("whole",)}
    sums: ClassVar[tuple[str, ...]] = (*REGRESSION.sums, *JOINT)
    kept: ClassVar[tuple[str, ...]] = (*REGRESSION.kept, "joint_pit", "whole")
    forgotten: ClassVar[tuple[str, ...]] = (*REGRESSION.forgotten, *JOINT)
    alike: ClassVar[Mapping[str, str]] = {**REGRESSION.alike, "vector_length": "the length of the vectors"}

    @override
    def ordered(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        return {DISTANCE: np.asarray(special.ndtri(rows["joint_pit"]))}

    @override
    def summed(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        none = np.zeros(len(rows["std"]))
        return {name: np.asarray(rows.get(name, none), dtype=np.float64) for name in JOINT}


COVARIANCE = CovarianceLayout()


def distance_shares(statistics: Statistics, scores: FloatArray, *, closed: bool = True) -> FloatArray:
    """Share of the vectors inside the ellipsoids of given probabilities, passed as normal scores.

    The surfaces are included if ``closed``.
    """
    order = statistics.orders[DISTANCE]
    at = order.position(scores, side="right" if closed else "left")
    return np.asarray(order.cumulative("whole", at) / statistics.sums["whole"])


POINT = 1e-9
"""Intervals narrower than this count as points: positions are known more precisely than that."""

LOW, HIGH = "normal_low", "normal_high"


class DistributionLayout(RegressionLayout):
    """Orders of a regression, plus two by the ends of each probability integral transform's interval.

    Rows are those of a regression, plus ``pit_low``, ``pit_high``, ``size`` (draws, members or levels), ``crossed``
    and any of the scores.
    """

    orders: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **REGRESSION.orders,
        LOW: ("point", "rate", "rate_low"),
        HIGH: ("rate", "rate_high"),
    }
    sums: ClassVar[tuple[str, ...]] = (*REGRESSION.sums, *SCORES, "impossible")
    moments: ClassVar[tuple[str, ...]] = (*REGRESSION.moments, "size")
    counts: ClassVar[tuple[str, ...]] = (*REGRESSION.counts, "n_crossed")
    counted: ClassVar[tuple[str, ...]] = (*REGRESSION.counted, "n_crossed")
    kept: ClassVar[tuple[str, ...]] = (*REGRESSION.kept, "pit_low", "pit_high")
    forgotten: ClassVar[tuple[str, ...]] = (*REGRESSION.forgotten, *SCORES, "impossible", "size")
    alike: ClassVar[Mapping[str, str]] = {
        **REGRESSION.alike,
        "distribution": "distribution",
        "levels": "levels",
        "spread": "the scale (standard deviation or interquartile range)",
        "vector_length": "the length of the vectors",
    }

    @override
    def losses(self, rows: Rows, settings: Settings) -> dict[str, npt.NDArray[Any]]:
        of_mean = super().losses(rows, settings)
        return {
            **{name: of_mean[name] for name in OF_MEAN if name in of_mean},
            **{name: rows[name] for name in SCORES if name in rows},
        }

    @override
    def ordered(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Return the values and payloads of the two orders, from the ends of each interval."""
        low, high = (np.asarray(rows[name], dtype=np.float64) for name in ("pit_low", "pit_high"))
        width = high - low
        point = width <= POINT
        middle = np.where(point, 0.5 * (low + high), low)
        with np.errstate(divide="ignore"):
            rate = np.where(point, 0.0, 1 / np.where(point, 1.0, width))
        return {
            LOW: np.asarray(special.ndtri(middle)),
            HIGH: np.asarray(special.ndtri(high)),
            "point": point.astype(np.float64),
            "rate": rate,
            "rate_low": rate * low,
            "rate_high": rate * high,
        }

    @override
    def summed(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Return the scores, NaN where the form does not determine them; truths of density 0 are ``impossible``."""
        n = len(rows["std"])
        unknown = {**dict.fromkeys(SCORES, np.full(n, np.nan)), "size": np.ones(n)}
        made = {name: np.asarray(rows.get(name, unknown[name]), dtype=np.float64) for name in unknown}
        made["impossible"] = np.isposinf(made["nll"]).astype(np.float64)
        return {**made, "n_crossed": np.asarray(rows.get("crossed", np.zeros(n))) > 0}


DISTRIBUTION = DistributionLayout()


def is_distribution(statistics: Statistics) -> bool:
    """Whether statistics are those of distributions in a form other than mean and std."""
    return statistics.layout is DISTRIBUTION


def plain(statistics: Statistics) -> Statistics:
    """The part of regression statistics that concerns mean and std alone."""
    if statistics.layout not in (DISTRIBUTION, COVARIANCE):
        return statistics
    return replace(
        statistics,
        layout=REGRESSION,
        orders={name: statistics.orders[name] for name in REGRESSION.orders},
        sums={name: statistics.sums[name] for name in REGRESSION.sums},
        moments={
            name: moments
            for name, moments in statistics.moments.items()
            if name in (*REGRESSION.moments, WEIGHT)
        },
        counts={name: statistics.counts[name] for name in REGRESSION.counts},
        facts={name: statistics.facts.get(name) for name in REGRESSION.alike},
        groups=None,
    )


def expected_below(statistics: Statistics, levels: npt.ArrayLike, *, closed: bool = True) -> FloatArray:
    """Expected number of samples whose probability integral transform is at or below (or strictly below) each level.

    Parameters
    ----------
    statistics : Statistics
        Of distributions.
    levels : array, between 0 and 1
    closed : bool
        Whether a point exactly at a level counts.
    """
    p = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    return expected_at(statistics, np.asarray(special.ndtri(p)), p, closed=closed)


def expected_at(
    statistics: Statistics, score: FloatArray, p: FloatArray, *, closed: bool = True
) -> FloatArray:
    """The same at normal scores whose levels ``p`` are known; scores that occur are matched to the last digit."""
    low, high = statistics.orders[LOW], statistics.orders[HIGH]
    begun = low.position(score, side="right" if closed else "left")
    ended = high.position(score)
    points = low.cumulative("point", begun)
    rising = p * low.cumulative("rate", begun) - low.cumulative("rate_low", begun)
    risen = p * high.cumulative("rate", ended) - high.cumulative("rate_high", ended)
    return np.asarray(np.clip(points + rising - risen, 0, statistics.n))
