"""Noise floors: what a perfectly calibrated forecast scores merely because data are finite.

A score that is 0 at perfect calibration and never below is above 0 in every finite sample. Its floor is its
distribution when the truth is drawn from the forecasts themselves, with these standard deviations or confidences,
this number of samples, and these groups (Broecker 2012; Vaicenavicius et al. 2019; Widmann et al. 2019);
`metrics.gaps` says how gaps vary then. With fewer than twenty groups their covariance is poorly known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import special

from uq_tracking import plugins
from uq_tracking.inference.enough import FEWEST_GROUPS, too_few_errors
from uq_tracking.metrics import groups
from uq_tracking.metrics.gaps import Gap, Law
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import FloatArray

TRUSTED_GROUPS = 20
"""From this number of groups on, p-values match simulations; below, they are a rough guide."""


@dataclass(frozen=True)
class NoiseFloor:
    """Scores of a calibrated forecast on the same amount of data.

    Attributes
    ----------
    mean : float
        Its mean score.
    high : float
        The score that it exceeds in 5 % of cases.
    p : float
        Share of calibrated forecasts that score at least as high as observed.
    note : str
        What limits confidence in these numbers; empty if nothing does.
    """

    mean: float
    high: float
    p: float
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def noise_floors(
    statistics: Any, task: str, settings: Settings, scores: Mapping[str, float]
) -> dict[str, NoiseFloor]:
    """Compute the floor of every score that has one, by key; scores without enough groups or bins have none."""
    n_groups = groups.count(statistics)
    if n_groups is not None and (n_groups < FEWEST_GROUPS or too_few_errors(statistics.groups)):
        return {}
    note = (
        "" if n_groups is None or n_groups >= TRUSTED_GROUPS else f"p from {n_groups} groups is a rough guide"
    )
    floors: dict[str, NoiseFloor] = {}
    laws: dict[Gap, Law] = {}
    for key, metric in plugins.metrics(task).items():
        gap, reduction = metric.gap, metric.reduction
        if key not in scores or gap is None or reduction is None:
            continue
        if reduction.norm == "supremum" and n_groups is None:
            floors[key] = kolmogorov_floor(round(statistics.n_effective), scores[key])
            continue
        if gap.why_no_law(statistics):
            continue
        try:
            if gap not in laws:
                law = gap.law if n_groups is None else gap.law_of_groups
                laws[gap] = law(statistics, settings)
            floors[key] = floor_of(laws[gap](reduction), scores[key], note)
        except Undefined:
            continue
    return floors


def floor_of(drawn: FloatArray, observed: float, note: str = "") -> NoiseFloor:
    """The floor of a score from its simulated values, ascending; the observed value counts among them."""
    if not math.isfinite(drawn[-1]):
        raise Undefined("simulated scores overflow 64-bit numbers")
    beyond = len(drawn) - int(np.searchsorted(drawn, observed * (1 - 1e-12)))
    high = float(drawn[math.ceil(0.95 * len(drawn)) - 1])
    return NoiseFloor(float(drawn.mean()), high, (1 + beyond) / (1 + len(drawn)), note)


def kolmogorov_floor(n: int, observed: float, note: str = "") -> NoiseFloor:
    """The floor of ``pit_ks``, by Stephens' (1970) form of Kolmogorov's law for finite samples."""
    root = math.sqrt(n)
    stretch = root + 0.12 + 0.11 / root
    mean = math.sqrt(math.pi / 2) * math.log(2)
    return NoiseFloor(
        mean / stretch,
        float(special.kolmogi(0.05)) / stretch,
        float(special.kolmogorov(stretch * observed)),
        note,
    )
