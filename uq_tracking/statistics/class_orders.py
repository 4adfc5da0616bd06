"""The three orderings of a classification's samples: by doubt, by predictive entropy, by Brier score."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.exact import PAYLOADS, Column, SortedRows
from uq_tracking.statistics.grouped import Groups
from uq_tracking.statistics.parallel import THREAD_BLOCK as BLOCK
from uq_tracking.statistics.parallel import map_threads
from uq_tracking.statistics.sketch import SKETCH_BITS, BucketSums

ORDERS = ("doubt", "entropy", "brier")


class Orders(NamedTuple):
    """Samples in three orders, all exact or all sketched."""

    by_doubt: Groups
    by_entropy: Groups
    by_brier: Groups


def exact_orders(columns: Mapping[str, npt.NDArray[Any]]) -> Orders:
    """Sort samples; columns ``doubt`` and ``correct``, ``entropy`` and ``brier`` belong together."""
    ways = (_by_doubt, _by_entropy, _by_brier)
    return Orders(*map_threads(lambda way: way(columns), ways))


def _by_doubt(columns: Mapping[str, Column]) -> SortedRows:
    """Doubts lie in [0, 1), so their highest bits are free: shifted left, they carry along who was right."""
    keys = np.asarray(columns["doubt"], dtype=np.float64).view(np.uint64) << np.uint64(1)
    keys |= columns["correct"].astype(np.uint64)
    keys.sort()
    correct = (keys & np.uint64(1)).astype(bool)
    keys >>= np.uint64(1)
    return SortedRows("doubt", {"doubt": keys.view(np.float64), "correct": correct})


def _by_entropy(columns: Mapping[str, Column]) -> SortedRows:
    entropy, brier = columns["entropy"], columns["brier"]
    if entropy.dtype != np.float32 or sys.byteorder != "little":
        order = np.argsort(entropy, kind="stable")
        return SortedRows("entropy", {"entropy": entropy[order], "brier": brier[order]})
    keys = np.empty(len(entropy), dtype=np.uint64)  # not negative, so their bits sort as they do
    halves = keys.view(np.uint32).reshape(-1, 2)
    halves[:, 0], halves[:, 1] = brier.view(np.uint32), entropy.view(np.uint32)
    keys.sort()
    parts = {
        name: np.ascontiguousarray(halves[:, k]).view(np.float32)
        for k, name in enumerate(("brier", "entropy"))
    }
    return SortedRows("entropy", parts)


def _by_brier(columns: Mapping[str, Column]) -> SortedRows:
    return SortedRows("brier", {"brier": np.sort(columns["brier"])})


def bucket_sums() -> dict[str, BucketSums]:
    """Empty buckets of every order."""
    return {name: BucketSums(name, PAYLOADS[name], SKETCH_BITS) for name in ORDERS}


def add_columns(sums: Mapping[str, BucketSums], columns: Mapping[str, Column]) -> None:
    """Count samples into buckets of some of the orders; columns need no common order between the orders."""
    values = {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}
    values["doubt2"] = np.square(values["doubt"])
    for name, buckets in sums.items():
        buckets.add(values[name], values)


def finished(sums: Mapping[str, BucketSums]) -> Orders:
    """The buckets as orders."""
    return Orders(*(sums[name].grouped() for name in ORDERS))


def sketch_orders(columns: Mapping[str, npt.NDArray[Any]]) -> Orders:
    """Count samples into buckets."""
    sums = bucket_sums()
    for start in range(0, len(columns["doubt"]), BLOCK):
        add_columns(sums, {name: column[start : start + BLOCK] for name, column in columns.items()})
    return finished(sums)
