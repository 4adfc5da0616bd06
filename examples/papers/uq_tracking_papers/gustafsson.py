"""Gustafsson et al. (2020): ensembling and MC-dropout against the number of samples, on toys and under a shift."""

from __future__ import annotations

from uq_tracking_papers import gustafsson_shift, gustafsson_toys
from uq_tracking_papers.study import Study


def reproduce(study: Study) -> None:
    """Figures 3 to 6 and 8; figures 1, 2, 7 and 9 contain no further numbers."""
    gustafsson_toys.reproduce(study)
    gustafsson_shift.reproduce(study)
