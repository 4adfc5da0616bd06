"""Drawings of a report's numbers and of 2-D predictions; the only subpackage that imports matplotlib.

Every function takes numbers and returns a ``matplotlib.figure.Figure`` made with the object interface: pyplot
is never imported and the global settings (``rcParams``) never change, so drawing in a thread is safe.
"""

from uq_tracking.figures.class_maps import class_map
from uq_tracking.figures.classification import (
    class_before_after,
    class_reliability,
    class_sparsification,
    risk_coverage,
)
from uq_tracking.figures.density import error_vs_std
from uq_tracking.figures.maps import uncertainty_map
from uq_tracking.figures.ranking import merci_by_alpha, n_merci_by_alpha, sparsification
from uq_tracking.figures.recalibration import before_after
from uq_tracking.figures.regression import calibration, coverage, pit_histogram, reliability
from uq_tracking.figures.small_multiples import by_group, by_members, by_target, scale_sweep, stability
from uq_tracking.figures.style import to_png, to_rgb

__all__ = [
    "before_after",
    "by_group",
    "by_members",
    "by_target",
    "calibration",
    "class_before_after",
    "class_map",
    "class_reliability",
    "class_sparsification",
    "coverage",
    "error_vs_std",
    "merci_by_alpha",
    "n_merci_by_alpha",
    "pit_histogram",
    "reliability",
    "risk_coverage",
    "scale_sweep",
    "sparsification",
    "stability",
    "to_png",
    "to_rgb",
    "uncertainty_map",
]
