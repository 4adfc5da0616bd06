"""Noise floors and verdict of a report, computed from its statistics on first access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uq_tracking.inference.noise import NoiseFloor, noise_floors
from uq_tracking.inference.verdict import Verdict, no_verdict, verdict_of
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.typed import record


@dataclass(frozen=True)
class Judgement:
    """Noise floors by metric key, and the verdict."""

    noise: Mapping[str, NoiseFloor]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "noise": {key: floor.to_dict() for key, floor in self.noise.items()},
            "verdict": self.verdict.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Judgement:
        """Inverse of ``to_dict``; KeyError or TypeError for anything else."""
        noise = {key: record(NoiseFloor, floor) for key, floor in values["noise"].items()}
        return cls(noise, Verdict.from_dict(values["verdict"]))


def judge(statistics: Any, task: str, settings: Settings, scores: Mapping[str, float]) -> Judgement:
    """Noise floors of the scores, and the verdict, from statistics of any kind; without statistics, no verdict."""
    if statistics is None:
        return Judgement({}, no_verdict("the report was read without its statistics"))
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        noise = noise_floors(statistics, task, settings, scores)
        try:
            verdict = verdict_of(statistics, task, settings, noise)
        except Undefined as reason:
            verdict = no_verdict(str(reason))
    return Judgement(noise, verdict)
