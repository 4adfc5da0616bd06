"""The one place where arrays from any library are converted to predictions and checked."""

from uq_tracking.inputs.constructors import Options
from uq_tracking.inputs.predictions import Predictions

__all__ = ["Options", "Predictions"]
