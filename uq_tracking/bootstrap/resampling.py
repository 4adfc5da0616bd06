"""Scores of resampled groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.errors import SettingsError
from uq_tracking.metrics.registry import Metric, Undefined, compute
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.statistics import resampled

FloatArray = npt.NDArray[np.float64]
Range = tuple[float, float]

FEWEST_GROUPS = 8
"""Below this the spread over groups is too badly known for an interval."""
DEFINED_SHARE = 0.9
"""Share of the resamples in which a metric must have a value."""
RESAMPLES = 400
AT_ONCE = 512
"""Resamples whose tables are held at a time, at most."""
MOST_NUMBERS = 1 << 25
"""Numbers of such tables, at most: classes by the thousand make wide ones."""


@dataclass(frozen=True, eq=False)
class Resamples:
    """Scores of bootstrap resamples.

    Attributes
    ----------
    coarse : dict of float
        Scores of the groups' own statistics, all counted once.
    scores : dict of array, shape (n_boot,)
        Scores of every resample; NaN where a metric is undefined.
    n_groups : int
        Number of groups (or pools of them) that were drawn.
    """

    coarse: Mapping[str, float]
    scores: Mapping[str, FloatArray]
    n_groups: int

    def deviations(self, key: str) -> FloatArray:
        """Resample minus coarse score where both are defined; Undefined where that is too rarely so."""
        values = self.scores[key][np.isfinite(self.scores[key])]
        if key not in self.coarse or len(values) < DEFINED_SHARE * len(self.scores[key]):
            raise Undefined(f"{key} is undefined in more than a tenth of the resamples")
        return values - self.coarse[key]


def check_level(level: float, n_boot: int) -> None:
    """SettingsError for a confidence level or a number of resamples that makes no interval."""
    if not 0 < level < 1:
        raise SettingsError(f"level is {level}; it is a confidence level between 0 and 1, such as 0.95")
    if n_boot < 20 or int(n_boot) != n_boot:
        raise SettingsError(f"n_boot is {n_boot}; it is a whole number of resamples, at least 20")


def resample(
    tables: GroupTables, settings: Settings, metrics: Sequence[Metric], n_boot: int, seed: int
) -> Resamples:
    """Scores of ``n_boot`` resamples of the groups; the same seed and groups give the same resamples."""
    size = len(tables)
    weights = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), n_boot).astype(float)
    coarse = _scores(tables, np.ones((1, size)), settings, metrics)[0]
    step = max(1, min(AT_ONCE, MOST_NUMBERS // max(tables.width(), 1)))
    rows = [
        row
        for start in range(0, n_boot, step)
        for row in _scores(tables, weights[start : start + step], settings, metrics)
    ]
    found = {m.key: np.asarray([row.get(m.key, math.nan) for row in rows]) for m in metrics}
    return Resamples(coarse, found, size)


def _scores(
    tables: GroupTables, weights: FloatArray, settings: Settings, metrics: Sequence[Metric]
) -> list[dict[str, float]]:
    with np.errstate(all="ignore"):
        return [compute(one, settings, metrics)[0] for one in resampled(tables, weights)]


def deviation_range(deviations: FloatArray, level: float, n_groups: int) -> Range:
    """Percentiles of deviations around their mean, widened for few groups."""
    tail = (1 - level) / 2
    wide = float(special.stdtrit(n_groups - 1, 1 - tail) / special.ndtri(1 - tail))
    wide *= math.sqrt(n_groups / (n_groups - 1))
    low, high = np.quantile(deviations - deviations.mean(), [tail, 1 - tail])
    return wide * float(low), wide * float(high)


def too_few(groups: int) -> str:
    """The reason why so few groups give no interval."""
    return f"{groups} groups are too few for an interval; it takes {FEWEST_GROUPS}"
