"""Rerun the experiments of five papers: our tables and figures beside the papers' numbers.

One module per paper, each with a function ``reproduce(study)`` that reports its results to the study.
"""

from __future__ import annotations

from collections.abc import Callable

from uq_tracking.hookspecs import hookimpl

__all__ = ["uq_commands"]


@hookimpl
def uq_commands() -> list[Callable[..., None]]:
    """Bring `uq-tracking reproduce`."""
    from uq_tracking_papers.command import reproduce

    return [reproduce]
