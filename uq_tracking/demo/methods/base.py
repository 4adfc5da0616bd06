"""What the methods share: their output, their computing effort, and how an ensemble becomes a prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from uq_tracking.demo.network import Schedule
from uq_tracking.demo.terrain import Terrain

Map = npt.NDArray[np.float64]

Advance = Callable[[float], None]
"""Called with the share of a method's work done, from 0 to 1."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Predictive mean and standard deviation of every cell, in metres; float64 (rows, columns)."""

    mean: Map
    std: Map


@dataclass(frozen=True)
class Effort:
    """How much a method may compute: training of each network, ensemble members, dropout passes."""

    schedule: Schedule = field(default_factory=Schedule)
    members: int = 12
    passes: int = 30


FAST = Effort(Schedule(epochs=60, batch=32), members=6, passes=15)
"""For the small crop of the terrain."""

MethodFunction = Callable[[Terrain, Effort, int, Advance], Estimate]
"""A method's function: from terrain, effort, seed and progress to an estimate for every cell."""


def spread(terrain: Terrain, members: list[Map]) -> Estimate:
    """Mean and standard deviation over the members of an ensemble, each with a value (n,) for every cell."""
    heights = np.stack(members)
    return Estimate(heights.mean(0).reshape(terrain.shape), heights.std(0).reshape(terrain.shape))


def seeds(seed: int, method: str, count: int) -> list[int]:
    """``count`` seeds that depend only on the demo's seed and the method's name."""
    sequence = np.random.SeedSequence([seed, *method.encode()])
    return [int(word) for word in sequence.generate_state(count)]
