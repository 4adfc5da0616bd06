"""Refusals that several methods share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from uq_tracking.errors import RecalibrationError
from uq_tracking.families import family_of
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics


def require_samples(statistics: Statistics, needed: int, method: str) -> None:
    """RecalibrationError unless there are enough samples."""
    n = statistics.counts["n"]
    if n < needed:
        raise RecalibrationError(
            f"{method} needs at least {needed} samples, these are {n}; pass a larger set"
        )


def require_positive_std(statistics: Statistics, method: str) -> None:
    """RecalibrationError where a standard deviation of zero leaves no standardised error."""
    if statistics.moments["std"].low <= 0:
        raise RecalibrationError(
            f"{method} divides by std, which is 0 for {statistics.counts['n_zero_std']} samples; set std_floor="
        )


def require_variance(settings: Settings, method: str) -> None:
    """RecalibrationError where the declared family has no variance that squared errors could be compared with."""
    if not family_of(settings).has_variance:
        raise RecalibrationError(
            f"{method} compares squared errors with variances, which a Student t with dof={settings.dof:g} has not; "
            "use std_scaling, which reads the scale"
        )


def check_finite(name: str, values: Sequence[float]) -> None:
    """RecalibrationError where a parameter is no finite number."""
    if not all(isinstance(value, float | int) and math.isfinite(value) for value in values):
        raise RecalibrationError(
            f"{name} must hold finite numbers; the input overflows, or the file is damaged"
        )


def check_positive(name: str, values: Sequence[float]) -> None:
    """RecalibrationError where a parameter is not a finite number above zero."""
    check_finite(name, values)
    if not all(value > 0 for value in values):
        raise RecalibrationError(f"{name} must be above 0")


def check_increasing(name: str, values: Sequence[float]) -> None:
    """RecalibrationError where a table falls."""
    check_finite(name, values)
    if any(b < a for a, b in pairwise(values)):
        raise RecalibrationError(f"{name} must not fall from one entry to the next")
