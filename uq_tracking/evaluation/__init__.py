"""From predictions to a report: scores, curves, intervals, and what recalibration would change; no tracker."""
