"""DVCLive: scores, curves and figures in the files that DVC shows, everything else in a folder ``uq`` beside them.

DVCLive's formats are plain files, which are written here; ``dvclive`` itself is only needed by who trains.
"""

from __future__ import annotations

from uq_tracking.hookspecs import hookimpl
from uq_tracking.tracking.backend import Backend


@hookimpl
def uq_backends() -> list[Backend]:
    """Return the DVCLive backend."""
    from uq_tracking_dvclive.backend import DVCLiveBackend

    return [DVCLiveBackend()]
