"""Parts of the statistics of a resample, from weighted sums."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from uq_tracking.statistics.cells import weighted_sums
from uq_tracking.statistics.exact import PAYLOADS
from uq_tracking.statistics.grouped import FloatArray, Grouped, IntArray
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.sketch import bucket_edges, bucket_of

Edges = tuple[FloatArray, FloatArray]


def edges_of(bucket: FloatArray, bits: int) -> Edges:
    """Lower edge and width of each bucket."""
    return bucket, bucket_edges(bucket_of(bucket, bits), bits)[1]


def resampled_groups(name: str, edges: Edges, sums: Mapping[str, FloatArray], i: int) -> Grouped:
    """The buckets of one resample that hold samples."""
    used = np.flatnonzero(sums["count"][i])
    payloads = {payload: sums[payload][i][used] for payload in PAYLOADS[name]}
    count = np.rint(sums["count"][i][used]).astype(np.int64)
    return Grouped(name, edges[0][used], edges[1][used], count, payloads)


def weighted_moments(weights: FloatArray, count: IntArray, rows: FloatArray) -> list[Moments]:
    """Moments of every resample, from mean, m2, low and high of the groups, shape (4, groups)."""
    mean, m2, low, high = rows
    with np.errstate(invalid="ignore", over="ignore"):
        origin = float(np.mean(mean[np.isfinite(mean)])) if np.isfinite(mean).any() else 0.0
        gap = mean - origin
        sums = weighted_sums(weights, np.stack([count, count * gap, m2 + count * gap * gap], axis=1))
        n, first, second = sums.T
        centre, spread = origin + first / n, second - first * first / n
    drawn = weights > 0
    least = np.where(drawn, low, np.inf).min(axis=1)
    greatest = np.where(drawn, high, -np.inf).max(axis=1)
    spread = np.where(least == greatest, 0.0, np.maximum(spread, 0.0))
    columns = zip(
        n.tolist(), centre.tolist(), spread.tolist(), least.tolist(), greatest.tolist(), strict=True
    )
    return [Moments(round(size), *rest) for size, *rest in columns]


class RankCorrelation:
    """Spearman's correlation of the counts of fixed cells, as ``Joint.rank_correlation``."""

    def __init__(self, key: IntArray) -> None:
        self._axes = [np.unique(part, return_inverse=True)[1] for part in (key >> 32, key & ((1 << 32) - 1))]

    def __call__(self, count: FloatArray) -> float | None:
        """The correlation of the counts of all cells; None when one variable is constant."""
        ranks, spreads = [], []
        for index in self._axes:
            size = np.bincount(index, count)
            ends = np.cumsum(size)
            rank = ends - (size - 1) / 2 - (ends[-1] + 1) / 2
            ranks.append(rank[index])
            spreads.append(float(np.einsum("i,i->", size, rank**2)))
        if min(spreads) <= 0:
            return None
        return float(np.einsum("i,i,i->", count, *ranks) / np.sqrt(spreads[0] * spreads[1]))
