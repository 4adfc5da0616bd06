"""The same predictions with every standard deviation multiplied by a factor, without revisiting any sample."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from uq_tracking.errors import SettingsError
from uq_tracking.statistics.exact import SortedRows
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.orders import Buckets, FloatArray, Order
from uq_tracking.statistics.sketch import bucket_edges, bucket_of, coarse_keys
from uq_tracking.statistics.statistics import Statistics

POWERS = {
    "std": {"std": 1.0, "std2": 2.0, "abs_error": 0.0, "sq_error": 0.0, "error": 0.0},
    "z": {"z": -1.0, "z2": -2.0, "std": 1.0, "error": 0.0, "inv_std": -1.0, "inv_sqrt_std": -0.5},
}
"""Power of the factor by which each payload is multiplied, in the orders that change."""


def scaled(statistics: Statistics, factor: float) -> Statistics:
    """Statistics of the same samples with ``factor * std``: no order changes, z is divided by the factor.

    Parameters
    ----------
    statistics : Statistics
    factor : float
        Above 0.

    Raises
    ------
    SettingsError
        The factor is not positive and finite.
    """
    if not 0 < factor < math.inf:
        raise SettingsError(f"factor is {factor}; pass a finite number above 0")
    moments = {**statistics.moments}
    moments["std"] = _scaled_moments(moments["std"], factor)
    moments["z"] = _scaled_moments(moments["z"], 1 / factor)
    orders = dict(statistics.orders)
    orders |= {name: _scaled(orders[name], name, factor) for name in POWERS}
    return replace(
        statistics,
        orders=orders,
        moments=moments,
        sums={"log_std": statistics.sums["log_std"] + statistics.n * math.log(factor)},
        groups=None,
    )


def _scaled(order: Order, by: str, factor: float) -> Order:
    powers = POWERS[by]
    if isinstance(order, SortedRows):
        columns = {
            name: column if powers[name] == 0 else column.astype(np.float64) * factor ** powers[name]
            for name, column in order.columns.items()
        }
        return SortedRows(by, columns)
    if not isinstance(order, Buckets):
        raise TypeError(f"{type(order).__name__} cannot be scaled")
    unit = factor ** powers[by]
    sums = {name: column * factor ** powers[name] for name, column in order.sums.items()}
    return Buckets(by, order.key * unit, order.width * unit, order.count, sums)


def _scaled_moments(moments: Moments, factor: float) -> Moments:
    return Moments(
        moments.count,
        moments.mean * factor,
        moments.m2 * factor * factor,
        moments.low * factor,
        moments.high * factor,
    )


def coarsened(statistics: Statistics, bits: int) -> Statistics:
    """A sketch with wider buckets, so fewer of them to compute from; unchanged if it has no more than ``bits``."""
    if statistics.kind == "exact":
        return statistics.sketched(bits)
    if statistics.bits is None or statistics.bits <= bits:
        return statistics
    orders: dict[str, Order] = {
        name: _coarse(order, statistics.bits, bits) if isinstance(order, Buckets) else order
        for name, order in statistics.orders.items()
    }
    return replace(statistics, orders=orders, bits=bits, groups=None)


def _coarse(order: Buckets, bits: int, fewer: int) -> Buckets:
    key, place = np.unique(coarse_keys(order.key, bits, fewer), return_inverse=True)
    width = bucket_edges(bucket_of(key, fewer), fewer)[1]
    count = np.zeros(len(key), dtype=order.count.dtype)
    np.add.at(count, place, order.count)

    def added(column: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(place, column, len(key)), dtype=float)

    return Buckets(order.by, key, width, count, {name: added(column) for name, column in order.sums.items()})
