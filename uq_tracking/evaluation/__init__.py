"""From predictions to a report: scores, curves, intervals, and what recalibration would change; no tracker."""

from uq_tracking.evaluation.classification import evaluate_classification
from uq_tracking.evaluation.regression import evaluate

__all__ = ["evaluate", "evaluate_classification"]
