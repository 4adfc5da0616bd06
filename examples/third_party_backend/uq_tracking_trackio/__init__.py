"""trackio as a tracker for uq_tracking: log to the active run, read runs back, rescore and compare them.

Importing this package does not import ``trackio``; that happens when a run or a store is used.
"""

from __future__ import annotations

from uq_tracking.hookspecs import hookimpl
from uq_tracking.tracking.backend import Backend


@hookimpl
def uq_backends() -> list[Backend]:
    """Return the trackio backend."""
    from uq_tracking_trackio.backend import TrackioBackend

    return [TrackioBackend()]
