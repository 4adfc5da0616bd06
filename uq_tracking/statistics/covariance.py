"""The statistics of a regression whose predictions are a mean and a covariance of vectors.

Samples are the vectors' components. Besides everything a regression counts of them, there are sums of their vectors'
scores, and an order by the probability integral transform of their vectors' Mahalanobis distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.errors import IncompatibleStatisticsError
from uq_tracking.inputs.forms.scored import JOINT
from uq_tracking.statistics.exact import Column, SortedRows, sorted_columns
from uq_tracking.statistics.layout import OnDemand, Parts, Rows
from uq_tracking.statistics.orders import FloatArray, Order
from uq_tracking.statistics.regression import REGRESSION, RegressionLayout
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import override

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
    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        none = np.zeros(len(rows["std"]))
        scores = {name: np.asarray(rows.get(name, none), dtype=np.float64) for name in JOINT}
        return {**super().columns(rows), **scores, DISTANCE: np.asarray(special.ndtri(rows["joint_pit"]))}

    @override
    def sort(self, rows: Rows, facts: Mapping[str, Any], known: Parts | None = None) -> Parts:
        made = super().sort(rows, facts, known)
        own = {name: rows[name] for name in ("joint_pit", "whole")}

        def columns() -> dict[str, Column]:
            return {DISTANCE: special.ndtri(own["joint_pit"]), **own}

        sums = (
            {name: float(rows[name].sum()) for name in JOINT}
            if known is None
            else {name: known.sums[name] for name in JOINT}
        )
        by_distance = SortedRows(DISTANCE, unsorted=columns, sort=lambda: sorted_columns(DISTANCE, columns()))
        orders = {**made.orders, DISTANCE: by_distance}
        return replace(made, orders=orders, sums=OnDemand.joined(made.sums, sums))

    @override
    def rows_of(self, orders: Mapping[str, Order]) -> Rows:
        by_distance = orders[DISTANCE]
        if not isinstance(by_distance, SortedRows):
            raise IncompatibleStatisticsError("these orders hold buckets, not samples")
        own = {name: by_distance.columns[name] for name in ("joint_pit", "whole")}
        return {**super().rows_of(orders), **own}


COVARIANCE = CovarianceLayout()


def distance_shares(statistics: Statistics, scores: FloatArray, *, closed: bool = True) -> FloatArray:
    """Share of the vectors inside the ellipsoids of given probabilities, passed as normal scores.

    The surfaces are included if ``closed``.
    """
    order = statistics.orders[DISTANCE]
    at = order.position(scores, side="right" if closed else "left")
    return np.asarray(order.cumulative("whole", at) / statistics.sums["whole"])
