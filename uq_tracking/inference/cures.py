"""Which recalibration removes what is wrong with standard deviations: said only where a cross-fit confirms it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uq_tracking.errors import RecalibrationError
from uq_tracking.inference.places import SIZE_LEVEL, find_places, grade_of_factor, mean_limits
from uq_tracking.metrics.gaps import ERROR, Reduction
from uq_tracking.recalibration.base import FittedOn
from uq_tracking.recalibration.std import StdIsotonic, StdScaling
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.statistics import Statistics

FEWEST = 200
"""With fewer samples, halves tell little of a recalibration."""
MOST = 100_000
"""Of more samples, so many that are evenly spread decide."""
GAIN = 0.8
"""The scores of a cure: at most this share of what they were."""


@dataclass(frozen=True)
class Cure:
    """A recalibration that leaves no error of scale, and ENCE before and after it, both of samples it did not see."""

    method: str
    before: float
    after: float


def find_cure(rows: Mapping[str, Any], group: IntArray | None, settings: Settings) -> Cure | None:
    """Return the simplest recalibration after which neither size nor places of the standard deviations are wrong.

    Each half of the samples (or of the groups) gets the parameters that were fitted to the other.

    Parameters
    ----------
    rows : mapping of array, shape (n,)
        ``target``, ``mean``, ``std``, and ``weight`` if there are weights.
    group : array of int, shape (n,), or None
    settings : Settings
    """
    every = slice(None, None, math.ceil(len(rows["std"]) / MOST))
    needed = [name for name in ("target", "mean", "std", "weight") if name in rows]
    kept = {name: np.asarray(rows[name], np.float64)[every] for name in needed}
    unit = np.arange(len(kept["std"])) if group is None else np.unique(group[every], return_inverse=True)[1]
    if len(unit) < FEWEST:
        return None
    side = np.random.default_rng(0).permutation(int(unit.max()) + 1)[unit] % 2
    before = _ence(kept, settings)
    for method in (StdScaling, StdIsotonic):
        made = kept["std"].copy()
        try:
            for half in (side == 0, side == 1):
                known = Statistics.exact(REGRESSION, {name: column[~half] for name, column in kept.items()})
                made[half] = method.fit(known, settings, FittedOn(len(unit), "exact")).new_std(made[half])
        except RecalibrationError:
            continue
        cured = {**kept, "std": made}
        if np.all(made > 0) and _is_right(cured, None if group is None else unit):
            after = _ence(cured, settings)
            return Cure(method.method, before, after) if after <= GAIN * before else None
    return None


def _is_right(rows: Mapping[str, FloatArray], group: IntArray | None) -> bool:
    """Check that neither the size nor places of standard deviations are wrong."""
    error, std, weight = rows["target"] - rows["mean"], rows["std"], rows.get("weight")
    square = mean_limits(np.square(error / std), weight, group, SIZE_LEVEL, log=True)
    places = find_places(error, std, rows["mean"], weight=weight, group=group)
    wrong = any(each.quantity == "scale" for each in places.found())
    return grade_of_factor(*(math.sqrt(each) for each in square)) in ("fine", "unclear") and not wrong


def _ence(rows: Mapping[str, FloatArray], settings: Settings) -> float:
    return ERROR.score(Statistics.exact(REGRESSION, rows), settings, Reduction("absolute"))
