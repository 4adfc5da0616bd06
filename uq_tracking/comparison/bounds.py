"""Scores of an uncertainty equal to the error, and of one that is the same everywhere: MeRCI (2018), table 1.

Both follow from numbers in the report, as the metrics declare, so no statistics are fetched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.metrics.registry import Metric


@dataclass(frozen=True)
class Bound:
    """A bound of one metric over the runs: lowest and highest, because it depends on each run's predictions."""

    low: float
    high: float

    @property
    def common(self) -> bool:
        """Whether all runs have the same bound, as they do if they share their predicted means."""
        return self.high - self.low <= 1e-9 * max(abs(self.low), abs(self.high))


def bounds(runs: Iterable[ScoredRun], metrics: Iterable[Metric]) -> dict[str, dict[str, Bound]]:
    """Bounds by name (``oracle``, ``constant``) and metric; those that no run determines are left out."""
    reports = [run.report for run in runs if run.report.task == "regression"]
    found: dict[str, dict[str, Bound]] = {}
    judged = list(metrics)
    for name in ("oracle", "constant"):
        for metric in judged:
            bound = metric.oracle if name == "oracle" else metric.constant
            values = [
                bound(report.scores) if callable(bound) else bound
                for report in reports
                if metric.key in report.scores
            ]
            known = [value for value in values if value is not None]
            if known:
                found.setdefault(name, {})[metric.key] = Bound(min(known), max(known))
    return found
