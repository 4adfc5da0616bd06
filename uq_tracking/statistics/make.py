"""Statistics of predictions, by the method asked for."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from uq_tracking.errors import SettingsError
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.settings import EXACT_LIMIT, Method
from uq_tracking.statistics.class_tally import tally
from uq_tracking.statistics.classification import ClassificationStatistics
from uq_tracking.statistics.regression import RegressionStatistics, exact_statistics, sketch_statistics


def make_statistics(predictions: Predictions, method: Method = "auto") -> RegressionStatistics:
    """Statistics of predictions: exact, or sketched above the limit of ``method="auto"``."""
    make = exact_statistics if wants_exact(predictions.n, method) else sketch_statistics
    return make(*predictions.flat(), counts=predictions.counts, std_floor=predictions.std_floor)


def samples_statistics(
    target: npt.NDArray[Any],
    mean: npt.NDArray[Any],
    std: npt.NDArray[Any],
    *,
    method: Method = "auto",
    std_floor: float | None = None,
) -> RegressionStatistics:
    """Statistics of validated samples, shape (N,), made like ``make_statistics``; of none, an empty sketch."""
    if not len(std):
        return RegressionStatistics.zero(std_floor=std_floor)
    make = exact_statistics if wants_exact(len(std), method) else sketch_statistics
    return make(target, mean, std, std_floor=std_floor)


def make_class_statistics(
    predictions: ClassPredictions, method: Method = "auto", *, grouped: bool = False
) -> ClassificationStatistics:
    """Statistics of class predictions, made like ``make_statistics``; with ``grouped`` also those of their groups."""
    return tally(predictions, exact=wants_exact(predictions.n, method), grouped=grouped)


def wants_exact(n: int, method: Method) -> bool:
    """Whether n samples are to have exact statistics; SettingsError for an unknown method."""
    if method not in ("auto", "exact", "sketch"):
        raise SettingsError(f"method is {method!r}; choose auto, exact or sketch")
    return method == "exact" or (method == "auto" and n <= EXACT_LIMIT)
