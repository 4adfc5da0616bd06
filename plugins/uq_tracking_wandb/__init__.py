"""Weights & Biases: log to the active run, read runs online and offline.

Importing this package does not import ``wandb``; that happens when a run or a store is used.
"""

from __future__ import annotations

from uq_tracking.hookspecs import hookimpl
from uq_tracking.tracking.backend import Backend


@hookimpl
def uq_backends() -> list[Backend]:
    """Return the Weights & Biases backend."""
    from uq_tracking_wandb.backend import WandbBackend

    return [WandbBackend()]
