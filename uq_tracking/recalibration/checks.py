"""Checks shared by several methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from uq_tracking.errors import RecalibrationError
from uq_tracking.families import family_of
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics


def require_samples(statistics: Statistics, needed: int, method: str) -> None:
    """Raise RecalibrationError unless there are enough samples."""
    n = statistics.counts["n"]
    if n < needed:
        raise RecalibrationError(
            f"{method} needs at least {needed} samples, but there are {n}; pass a larger set"
        )


def require_positive_std(statistics: Statistics, method: str) -> None:
    """Raise RecalibrationError if a standard deviation of zero leaves no standardised error."""
    if statistics.moments["std"].low <= 0:
        raise RecalibrationError(
            f"{method} divides by std, which is 0 for {statistics.counts['n_zero_std']} samples; set std_floor="
        )


def require_variance(settings: Settings, method: str) -> None:
    """Raise RecalibrationError if the declared family has no variance to compare squared errors with."""
    if not family_of(settings).has_variance:
        raise RecalibrationError(
            f"{method} compares squared errors with variances, which a Student t with dof={settings.dof:g} lacks; "
            "use std_scaling, which uses the scale"
        )


def check_finite(name: str, values: Sequence[float]) -> None:
    """Raise RecalibrationError if a parameter is not a finite number."""
    if not all(isinstance(value, float | int) and math.isfinite(value) for value in values):
        raise RecalibrationError(
            f"{name} must hold finite numbers; the input overflows, or the file is damaged"
        )


def check_positive(name: str, values: Sequence[float]) -> None:
    """Raise RecalibrationError if a parameter is not a finite number above zero."""
    check_finite(name, values)
    if not all(value > 0 for value in values):
        raise RecalibrationError(f"{name} must be above 0")


def check_increasing(name: str, values: Sequence[float]) -> None:
    """Raise RecalibrationError if a table decreases."""
    check_finite(name, values)
    if any(b < a for a, b in pairwise(values)):
        raise RecalibrationError(f"{name} must not decrease from one entry to the next")
