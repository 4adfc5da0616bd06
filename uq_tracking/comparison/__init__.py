"""Uncertainty methods beside each other: ranks, bounds, differences, agreement of the metrics, curves and maps."""

from uq_tracking.comparison.result import Comparison
from uq_tracking.comparison.verb import compare

__all__ = ["Comparison", "compare"]
