"""TensorBoard: scores, curves and images in event files, everything else in a folder ``uq`` beside them.

Importing this package does not import ``tensorboard``; that happens when a run or a store is used.
"""

from __future__ import annotations

from uq_tracking.hookspecs import hookimpl
from uq_tracking.tracking.backend import Backend


@hookimpl
def uq_backends() -> list[Backend]:
    """Return the TensorBoard backend."""
    from uq_tracking_tensorboard.backend import TensorBoardBackend

    return [TensorBoardBackend()]
