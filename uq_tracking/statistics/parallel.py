"""Threads for work that releases the interpreter lock: numpy's sorts, ufuncs and counting."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
R = TypeVar("R")

MOST_WORKERS = 8
"""Beyond this, memory bandwidth is what counts."""


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
        waiting = [pool.submit(copy_context().run, function, item) for item in items]
        return [each.result() for each in waiting]


def inner(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Inner product without BLAS, whose own threads would fight with ours."""
    return float(np.einsum("i,i->", one, other))
