"""The numbers behind every plot: pure functions of the statistics; figures and trackers only draw them."""

from uq_tracking.curves.curve import Curve, FloatArray
from uq_tracking.curves.spec import CurveSpec, build_curves, curve

__all__ = ["Curve", "CurveSpec", "FloatArray", "build_curves", "curve"]
