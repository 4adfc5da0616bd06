"""Estimates on the small crop, made once."""

from functools import cache

from uq_tracking.demo.methods import FAST, Estimate, predict
from uq_tracking.demo.terrain import Terrain, load_terrain


@cache
def fast_terrain(seed: int = 0) -> Terrain:
    return load_terrain(seed, fast=True)


@cache
def fast_estimate(name: str) -> Estimate:
    return predict(name, fast_terrain(), effort=FAST)
