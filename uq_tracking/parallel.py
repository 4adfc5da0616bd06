"""Threads for work that releases the GIL: numpy's sorts, ufuncs and counting."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, lru_cache
from itertools import starmap
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
R = TypeVar("R")

MOST_WORKERS = 8
"""Beyond this, memory bandwidth is the limit."""

BLOCK = 1 << 14
"""Samples one thread processes at a time: temporary arrays stay in cache, and need no fresh memory."""

THREAD_BLOCK = 1 << 17
"""Samples each of several threads processes at a time: more, because every hand-over costs."""

TABLE_BLOCK = 1 << 18
"""Samples counted at a time if a large table of buckets is traversed once per block."""

SIDE_BY_SIDE = 1 << 15
"""From this many samples, two whole tasks, such as sorts, run in parallel."""

WORTH_THREADS = 1 << 21
"""From this many samples, pointwise work is shared between threads."""

ROW = 1 << 12
"""Numbers that BLAS multiplies in one thread."""

MOST_KEPT = 32 * 10**6
"""Largest array, in bytes, that glibc can be made to keep."""


def worker_count() -> int:
    """Cores this process may use, up to a limit."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST_WORKERS)


def map_threads(function: Callable[[T], R], items: Iterable[T], *, least: int = 2) -> list[R]:
    """``[function(item) for item in items]`` on all usable cores, in order; fewer than ``least`` in this thread."""
    items = list(items)
    workers = min(worker_count(), len(items)) if len(items) >= least else 1
    if workers < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:  # a copied context carries numpy's error state into the thread
        try:
            waiting = [pool.submit(copy_context().run, function, item) for item in items]
        except RuntimeError:  # the system allows no more threads, or Python exits
            return [function(item) for item in items]
        return [each.result() for each in waiting]


def begin(function: Callable[[], R]) -> Callable[[], R]:
    """Start a call in the background; the returned function waits for it and returns its value."""
    pool = ThreadPoolExecutor(1)
    try:
        waiting = pool.submit(copy_context().run, function)
    except RuntimeError:  # as in `map_threads`
        return cache(function)
    pool.shutdown(wait=False)
    return waiting.result


def block_size(n: int) -> int:
    """How many of n samples to work on at a time."""
    return THREAD_BLOCK if n >= WORTH_THREADS else BLOCK


def spans(n: int, size: int | None = None) -> list[tuple[int, int]]:
    """Consecutive ranges of n samples, ``(start, end)`` each, by default of `block_size`."""
    step = block_size(n) if size is None else size
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def map_spans(function: Callable[[int, int], R], stretches: Sequence[tuple[int, int]]) -> list[R]:
    """``function(start, end)`` of consecutive ranges, in order; on all cores if there are many samples."""
    if not stretches or stretches[-1][1] < WORTH_THREADS:
        return list(starmap(function, stretches))
    return map_threads(lambda stretch: function(*stretch), stretches)


@lru_cache(maxsize=128)
def keep_memory(size: int) -> None:
    """Make the allocator keep freed arrays of up to ``size`` bytes for reuse.

    glibc returns arrays above a threshold to the system at once, and fresh pages cost more than sorting their
    content; freeing one large array raises the threshold, and once is enough. Elsewhere this does nothing.
    """
    np.empty(min(size, MOST_KEPT), dtype=np.uint8)


def sum_of_squares(values: npt.NDArray[Any]) -> float:
    """Sum the squares of floats, in rows too short for BLAS to start threads, which would compete with ours."""
    whole = len(values) // ROW * ROW
    rows = values[:whole].reshape(-1, ROW)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.matmul(rows[:, None, :], rows[:, :, None]).sum() + np.square(values[whole:]).sum())


def inner(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Inner product without BLAS, whose threads would compete with ours."""
    return float(np.einsum("i,i->", one, other))
