"""Every score of the regression suite, written out from its definition over raw y, mu and s.

Files have the names of those in uq_tracking/metrics. A function under ``@literal`` has the key of its score for a
name, takes (y, mu, s), and raises ``UndefinedScoreError`` where the formula has no value. Speed is no concern here:
sums are ``math.fsum`` over Python lists, and whatever lies below a threshold is counted one by one.
"""

from . import accuracy, calibration, ranking, scoring, spread

__all__ = ["accuracy", "calibration", "ranking", "scoring", "spread"]
