"""The numbers behind every plot: pure functions of the statistics; figures and trackers only draw them."""

from uq_tracking.curves.spec import Curve, CurveSpec, FloatArray, build_curves, curve

__all__ = ["Curve", "CurveSpec", "FloatArray", "build_curves", "curve"]
