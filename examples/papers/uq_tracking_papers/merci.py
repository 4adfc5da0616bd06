"""MeRCI (Moukari et al. 2018): the cubic with biased outliers, and six uncertainties of one map."""

from __future__ import annotations

from uq_tracking_papers import merci_terrain, merci_toy
from uq_tracking_papers.study import Study


def reproduce(study: Study) -> None:
    """Every figure and table of the paper except its further example images."""
    merci_toy.reproduce(study)
    merci_terrain.reproduce(study)
