"""A store of a tracker, and small seeded predictions to put there."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import uq_tracking as uq
from uq_tracking.runs.read import LoggedRun, logged_runs

QUIET = {"figures": False, "maps": False, "strict": True}


@dataclass(frozen=True)
class Place:
    uri: str

    def log(self, data, method="m", **options):
        return uq.log(data, run=self.uri, method=method, **{**QUIET, **options})

    def runs(self, split=None) -> list[LoggedRun]:
        return list(logged_runs(self.uri, split=split))

    def run(self, split=None) -> LoggedRun:
        (run,) = self.runs(split)
        return run

    def files(self, wanted: set[str]) -> set[str]:
        """The run's files once those wanted are there: wandb-core may still be writing after ``finish``."""
        end = time.monotonic() + 10
        while not wanted <= (found := set(self.run().files)) and time.monotonic() < end:
            time.sleep(0.05)
        return found


def predictions(n=300, seed=0, **options):
    """Predictions whose standard deviations say something about the errors."""
    return uq.Predictions(*arrays(n, seed), **options)


def arrays(n=300, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=n)
    std = rng.uniform(0.1, 1.0, size=n)
    return target, target + std * rng.standard_normal(n), std
