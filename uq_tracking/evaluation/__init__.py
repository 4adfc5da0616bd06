"""From predictions to a report: scores, curves, intervals and the effect of recalibration; no trackers."""
