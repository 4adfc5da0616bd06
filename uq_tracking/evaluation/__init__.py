"""From predictions to a report: scores, curves, intervals, and what recalibration would change; no tracker."""

from uq_tracking.evaluation.evaluate import evaluate, evaluate_classification

__all__ = ["evaluate", "evaluate_classification"]
