"""Uncertainty methods side by side: ranks, bounds, differences, agreement of metrics, curves and maps."""

from uq_tracking.comparison.compare import Comparison, compare

__all__ = ["Comparison", "compare"]
