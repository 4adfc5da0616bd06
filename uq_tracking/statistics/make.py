"""Statistics of predictions, by the method asked for."""

from __future__ import annotations

from uq_tracking.errors import SettingsError
from uq_tracking.inputs import Predictions
from uq_tracking.settings import EXACT_LIMIT, Method
from uq_tracking.statistics.regression import RegressionStatistics, exact_statistics, sketch_statistics


def make_statistics(predictions: Predictions, method: Method = "auto") -> RegressionStatistics:
    """Statistics of predictions: exact, or sketched above the limit of ``method="auto"``."""
    if method not in ("auto", "exact", "sketch"):
        raise SettingsError(f"method is {method!r}; choose auto, exact or sketch")
    exact = method == "exact" or (method == "auto" and predictions.n <= EXACT_LIMIT)
    make = exact_statistics if exact else sketch_statistics
    return make(*predictions.flat(), counts=predictions.counts, std_floor=predictions.std_floor)
