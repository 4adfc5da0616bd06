"""Estimates on the small crop, made once."""

from functools import cache

from uq_tracking.demo.methods import FAST, Estimate, predict
from uq_tracking.demo.terrain import Terrain, load_terrain


@cache
def fast_terrain(seed: int = 0) -> Terrain:
    return load_terrain(seed, fast=True)


@cache
def _fast(name: str) -> tuple[Estimate, tuple[float, ...]]:
    told: list[float] = []
    return predict(name, fast_terrain(), effort=FAST, advance=told.append), tuple(told)


def fast_estimate(name: str) -> Estimate:
    return _fast(name)[0]


def fast_progress(name: str) -> list[float]:
    """What the method told while it predicted."""
    return list(_fast(name)[1])
