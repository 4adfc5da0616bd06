"""Copies of runs: send what trackers missed, and copy runs to another tracker."""

from uq_tracking.rescoring.copying import sync

__all__ = ["sync"]
