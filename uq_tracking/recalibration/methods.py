"""The recalibration methods of this package."""

from __future__ import annotations

from uq_tracking.hookspecs import hookimpl
from uq_tracking.recalibration.base import Recalibrator
from uq_tracking.recalibration.cdf_isotonic import CDF_ISOTONIC
from uq_tracking.recalibration.conformal import CONFORMAL
from uq_tracking.recalibration.conformal_by import CONFORMAL_BY
from uq_tracking.recalibration.std_binning import STD_BINNING
from uq_tracking.recalibration.std_isotonic import STD_ISOTONIC
from uq_tracking.recalibration.std_scaling import STD_SCALING
from uq_tracking.recalibration.temperature import TEMPERATURE


@hookimpl
def uq_recalibrators() -> list[Recalibrator]:
    """Methods for mean and std, and temperature scaling for probabilities."""
    return [STD_SCALING, CDF_ISOTONIC, STD_ISOTONIC, STD_BINNING, CONFORMAL, CONFORMAL_BY, TEMPERATURE]
