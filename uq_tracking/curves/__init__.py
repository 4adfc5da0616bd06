"""The numbers behind every plot: pure functions of the statistics; figures and trackers only draw them."""

from uq_tracking.curves.curve import Curve, FloatArray
from uq_tracking.curves.regression import BUILDERS, regression_curves, wilson_band

__all__ = ["BUILDERS", "Curve", "FloatArray", "regression_curves", "wilson_band"]
