"""The statistics of a regression whose predictions are distributions in a form other than mean and std.

Besides the orders of every regression there are two by the probability integral transform u of the truth. It is
spread evenly over an interval ``[low, high]``, or is a point, so the expected number of samples with ``u <= p`` is
the sum of

- 1 over points with ``u <= p``,
- ``(p - low) / (high - low)`` over intervals with ``low <= p``, less
- ``(p - high) / (high - low)`` over intervals with ``high <= p``.

That takes only sums over the samples in the order of ``low`` and in that of ``high``. Both are ordered by the normal
score ``Phi^-1``, whose buckets are fine in both tails. Proper scores are plain sums, NaN where the form does not
determine them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.errors import IncompatibleStatisticsError
from uq_tracking.inputs.forms.scored import SCORES
from uq_tracking.statistics.covariance import COVARIANCE
from uq_tracking.statistics.exact import Column, SortedRows, sorted_columns
from uq_tracking.statistics.layout import Layout, OnDemand, Parts, Rows
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.orders import FloatArray, Order
from uq_tracking.statistics.regression import REGRESSION, RegressionLayout
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import WEIGHT
from uq_tracking.typed import override

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
    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        made = super().columns(rows)
        made |= pit_columns(rows["pit_low"], rows["pit_high"])
        n = len(rows["std"])
        made |= _score_columns(rows, n)
        made["size"] = np.asarray(rows.get("size", np.ones(n)), dtype=np.float64)
        made["n_crossed"] = np.asarray(rows.get("crossed", np.zeros(n))) > 0
        return made

    @override
    def sort(self, rows: Rows, facts: Mapping[str, Any], known: Parts | None = None) -> Parts:
        made = super().sort(rows, facts, known)
        pit = {name: rows[name] for name in ("pit_low", "pit_high")}

        def columns(*payloads: str) -> dict[str, Column]:
            made = {**pit_columns(**pit), **pit}
            return {name: made[name] for name in payloads or made}

        def by(name: str, *payloads: str) -> SortedRows:
            return SortedRows(
                name, unsorted=columns, sort=lambda: sorted_columns(name, columns(name, *payloads))
            )

        counts, n = dict(made.counts), len(rows["std"])
        if known is None:
            sums = {name: float(column.sum()) for name, column in _score_columns(rows, n).items()}
            size = Moments.of(np.asarray(rows.get("size", np.ones(n)), dtype=np.float64))
            counts["n_crossed"] = int(np.count_nonzero(rows.get("crossed", np.zeros(n))))
        else:
            sums = {name: known.sums[name] for name in (*SCORES, "impossible")}
            size = known.moments["size"]
        orders = {
            LOW: by(LOW, "point", "rate", "rate_low", "pit_low", "pit_high"),
            HIGH: by(HIGH, "rate", "rate_high"),
        }
        return replace(
            made,
            orders={**made.orders, **orders},
            sums=OnDemand.joined(made.sums, sums),
            moments=OnDemand.joined(made.moments, {"size": size}),
            counts=counts,
        )

    @override
    def rows_of(self, orders: Mapping[str, Order]) -> Rows:
        low = orders[LOW]
        if not isinstance(low, SortedRows):
            raise IncompatibleStatisticsError("these orders hold buckets, not samples")
        return {
            **super().rows_of(orders),
            "pit_low": low.columns["pit_low"],
            "pit_high": low.columns["pit_high"],
        }


DISTRIBUTION = DistributionLayout()


def layout_for(facts: Mapping[str, Any]) -> Layout:
    """The layout of regression statistics with these facts."""
    if facts.get("distribution"):
        return DISTRIBUTION
    return COVARIANCE if facts.get("vector_length") else REGRESSION


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


def pit_columns(pit_low: npt.NDArray[Any], pit_high: npt.NDArray[Any]) -> dict[str, FloatArray]:
    """The values and payloads of the two orders, from the ends of each interval."""
    low, high = np.asarray(pit_low, dtype=np.float64), np.asarray(pit_high, dtype=np.float64)
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


def _score_columns(rows: Rows, n: int) -> dict[str, FloatArray]:
    """The summed columns, NaN where the form does not determine them; ``impossible`` marks truths of density 0."""
    made = {name: np.asarray(rows.get(name, np.full(n, np.nan)), dtype=np.float64) for name in SCORES}
    made["impossible"] = np.isposinf(made["nll"]).astype(np.float64)
    return made


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
