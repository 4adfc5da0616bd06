"""What is sent to a run in one request, and what this process has sent to it before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Points = dict[int, float]
"""Value by step."""


@dataclass
class Batch:
    """What is waiting to be sent in one request."""

    scalars: dict[tuple[int | None, str], float] = field(default_factory=dict)
    curves: dict[str, Points] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


class Series:
    """What this process has sent to a run step by step, so that the run need not be read at every step."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self.tags: dict[str, str] = {}

    def goes_on(self, batch: Batch) -> bool:
        """Whether a batch holds only scalars that were sent before, now at later steps."""
        return not batch.curves and all(
            step is not None and step > self._last.get(key, step) for step, key in batch.scalars
        )

    def sent(self, batch: Batch, stored: Collection[Any]) -> None:
        """Note what has arrived, and the last points the run had before, as far as it was read."""
        known = {metric.key: metric.step for metric in stored}
        for step, key in batch.scalars:
            if step is not None:
                self._last[key] = max(step, known.get(key, step), self._last.get(key, step))
        self.tags.update(batch.tags)


@lru_cache(maxsize=16)
def series_of(tracking_uri: str, run_id: str) -> Series:
    """The series of a run, for as long as it is among those written last."""
    return Series()
