"""The result of an evaluation and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uq_tracking.curves import Curve
    from uq_tracking.statistics.regression import RegressionStatistics


@dataclass(frozen=True, eq=False)
class Report:
    """Scores, curves and where they came from; ``statistics`` is what they are functions of."""

    task: str
    scores: Mapping[str, float]
    undefined: Mapping[str, str]
    curves: Mapping[str, Curve]
    counts: Mapping[str, int]
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    statistics: RegressionStatistics | None = None
    recalibration: Mapping[str, Any] | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
