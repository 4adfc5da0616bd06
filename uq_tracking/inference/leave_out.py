"""Scores of the data without some of its groups: the jackknife over at most twenty sets of groups.

For any score, the spread over groups follows from its values without each of them. Groups are randomly put into at
most twenty sets (always the same ones), so that 300 groups cost as many evaluations as 20; with twenty sets the
spread is known to about one sixth, which Student's t accounts for. Two runs scored on the same groups have the same
sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uq_tracking.inference.few_errors import too_few_errors
from uq_tracking.inference.limits import Influence, size_freedom
from uq_tracking.metrics.registry import Metric, Undefined, compute
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.statistics import resampled

SETS = 20
"""Maximum number of sets of groups to leave out in turn."""
FEWEST_GROUPS = 8
"""With fewer groups, their spread is too poorly known for an interval."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Scores without each set of groups.

    Attributes
    ----------
    whole : dict of float
        Scores of all groups together, from the same coarse statistics.
    without : dict of array, shape (sets,)
        Scores without each set; NaN if a metric is undefined.
    n_groups : int
        Number of groups.
    freedom : float
        Degrees of freedom that the group sizes allow.
    few_errors : str or None
        Why a classification has too few errors for the groups to show their spread.
    """

    whole: Mapping[str, float]
    without: Mapping[str, FloatArray]
    n_groups: int
    freedom: float = math.inf
    few_errors: str | None = None

    def hidden(self, metric: Metric) -> str | None:
        """Why the groups do not show the spread of a metric, or None; shares have limits of their own."""
        return None if metric.family == "spread" else self.few_errors

    def estimates(self, key: str, exact: float | None = None) -> FloatArray:
        """Scores without each set, shifted to match the exact score; Undefined if one is missing."""
        values = self.without[key]
        if key not in self.whole or not np.isfinite(values).all():
            raise Undefined(f"{key} is undefined without some of the groups")
        return values if exact is None else values - self.whole[key] + exact

    def influence(self, key: str) -> Influence:
        """Contributions of the sets to a score."""
        return Influence.left_out(self.estimates(key), self.freedom)


def sets_of(groups: int) -> IntArray:
    """The set of each group: random, but always the same."""
    made = np.empty(groups, dtype=np.int64)
    made[np.random.default_rng(groups).permutation(groups)] = np.arange(groups) % min(groups, SETS)
    return made


def set_weights(groups: int) -> FloatArray:
    """Weight of every group when each set is left out, shape (sets, groups)."""
    place = sets_of(groups)
    return np.asarray(place[None, :] != np.arange(place.max() + 1)[:, None], dtype=np.float64)


def leave_out(tables: GroupTables, settings: Settings, metrics: Sequence[Metric]) -> LeftOut:
    """Scores of the groups' statistics without each set of groups, and with all."""
    weights = np.concatenate([np.ones((1, len(tables))), set_weights(len(tables))])
    with np.errstate(all="ignore"):
        rows = [compute(one, settings, metrics)[0] for one in resampled(tables, weights)]
    without = {m.key: np.asarray([row.get(m.key, math.nan) for row in rows[1:]]) for m in metrics}
    squares = (1 - weights[1:]) @ np.square(tables.sizes_by_weight.astype(float))
    few = too_few_errors(tables) if tables.layout.task == "classification" else None
    return LeftOut(rows[0], without, tables.n_groups, size_freedom(squares), few)


def too_few(tables: GroupTables, what: str = "an interval") -> str | None:
    """Why so few groups say nothing about their spread, or None."""
    if len(tables) >= FEWEST_GROUPS:
        return None
    label = tables.labels[0]
    named = f" ({label})" if isinstance(label, str) else ""
    counted = f"1 group{named} is" if len(tables) == 1 else f"{len(tables)} groups are"
    return f"{counted} too few for {what}, which needs {FEWEST_GROUPS}"
