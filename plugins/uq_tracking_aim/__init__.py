"""Aim: scores, curves, figures and tags in the repository that Aim shows, everything else in a folder inside it."""

from __future__ import annotations

from uq_tracking.hookspecs import hookimpl
from uq_tracking.tracking.backend import Backend


@hookimpl
def uq_backends() -> list[Backend]:
    """Return the Aim backend."""
    from uq_tracking_aim.backend import AimBackend

    return [AimBackend()]
