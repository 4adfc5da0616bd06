"""The part of the statistics that ranking scores read, for those who want only them.

>>> import numpy as np
>>> from uq_tracking.metrics.ranking import ause_rmse
>>> from uq_tracking.settings import Settings
>>> target, mean, std = np.array([1.5, 3.0, 2.0]), np.array([1.0, 2.0, 3.0]), np.array([0.1, 1.0, 0.5])
>>> round(ause_rmse(ranking_statistics(target, mean, std), Settings()), 4)
0.0
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.grouped import Grouped
from uq_tracking.statistics.parallel import TABLE_BLOCK, map_threads, worker_count
from uq_tracking.statistics.sketch import SKETCH_BITS, BucketSums

PAYLOADS = {"std": ("std", "std2", "abs_error", "sq_error"), "abs_error": ("abs_error", "sq_error")}


@dataclass(frozen=True, eq=False)
class RankingStatistics:
    """Samples grouped by std and by absolute error: all that ``ause_*`` and ``aurg_rmse`` read."""

    n: int
    by_std: Grouped
    by_abs_error: Grouped
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Results shared between metrics."""

    def __add__(self, other: RankingStatistics) -> RankingStatistics:
        by_std, by_abs_error = self.by_std.merge(other.by_std), self.by_abs_error.merge(other.by_abs_error)
        return RankingStatistics(self.n + other.n, by_std, by_abs_error)


def ranking_statistics(
    target: npt.NDArray[Any], mean: npt.NDArray[Any], std: npt.NDArray[Any], *, bits: int = SKETCH_BITS
) -> RankingStatistics:
    """Sketch of validated samples, each of shape (N,), for ranking scores alone.

    Takes about a third of the time of the whole sketch; the same buckets, so the same numbers.
    """
    workers = worker_count() if len(std) > 4 * TABLE_BLOCK else 1
    edges = np.linspace(0, len(std), workers + 1).astype(int).tolist()

    def count(worker: int) -> RankingStatistics:
        sums = {name: BucketSums(name, payloads, bits) for name, payloads in PAYLOADS.items()}
        for start in range(edges[worker], edges[worker + 1], TABLE_BLOCK):
            part = slice(start, min(start + TABLE_BLOCK, edges[worker + 1]))
            error = np.abs(np.subtract(target[part], mean[part], dtype=np.float64))
            s = std[part].astype(np.float64)
            columns = {"std": s, "std2": s * s, "abs_error": error, "sq_error": error * error}
            for name, by in sums.items():
                by.add(columns[name], columns)
        n = edges[worker + 1] - edges[worker]
        return RankingStatistics(n, sums["std"].grouped(), sums["abs_error"].grouped())

    return reduce(RankingStatistics.__add__, map_threads(count, range(workers)))
