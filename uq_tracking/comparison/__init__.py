"""Uncertainty methods side by side: ranks, bounds, differences, agreement of metrics, curves and maps."""

from uq_tracking.comparison.result import Comparison
from uq_tracking.comparison.verb import compare

__all__ = ["Comparison", "compare"]
