"""Whether the widest given interval contains as many of the targets as it states.

A target that equals an end is neither clearly inside nor outside: a quantile q of counts, say, is valid if
P(y < q) <= p <= P(y <= q). So intervals contain too few if they do with their ends, and too many only if they do
without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from uq_tracking.inference import read
from uq_tracking.inference.intervals import effective_share_limits
from uq_tracking.inference.limits import Influence, Range, share_limits
from uq_tracking.metrics.forms import interval_coverage
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.distribution import HIGH, LOW
from uq_tracking.statistics.orders import FloatArray


@dataclass(frozen=True)
class Inside:
    """The share of the targets inside the widest interval, with its limits, and the share it states."""

    share: float
    low: float
    high: float
    least: float
    """Lower limit of the share between the ends."""
    stated: float

    @property
    def misses(self) -> Literal["overconfident", "underconfident"] | None:
        """What a share that differs from the stated one by more than chance says of the intervals."""
        if self.high < self.stated:
            return "overconfident"
        return "underconfident" if self.least > self.stated else None


def inside_widest(statistics: Any, settings: Settings, level: float) -> Inside | None:
    """The share inside the widest central interval of quantiles; None where predictions have none."""
    try:
        share = interval_coverage(statistics, settings)
    except Undefined:
        return None
    levels = sorted(statistics.facts["levels"])
    within, between = _counts(statistics, levels)
    least = _limits(statistics, between, level)[0]
    return Inside(share, *_limits(statistics, within, level), least, levels[-1] - levels[0])


def _counts(statistics: Any, levels: list[float]) -> tuple[FloatArray, FloatArray]:
    """Targets of each group (or all) inside the interval, with its ends and without.

    The PIT of a target between two quantiles is spread over their levels, that of a target equal to a quantile over
    the levels around it.
    """
    total = statistics.n if statistics.groups is None else statistics.groups.sizes_by_weight
    below, most = _up_to(statistics, HIGH, [(levels[0] + levels[1]) / 2, (levels[-1] + 1) / 2])
    low, inner = _up_to(statistics, LOW, [levels[0] / 2, (levels[-2] + levels[-1]) / 2])
    return inner - below, np.clip(most - low, 0, total)


def _up_to(statistics: Any, order: str, places: list[float]) -> FloatArray:
    """Targets with an end of the PIT up to each place: of each group, or all; shape (places, groups)."""
    score = special.ndtri(places)
    if statistics.groups is None:
        return np.asarray(statistics.orders[order].position(score), dtype=np.float64)[:, None]
    table, groups = statistics.groups.orders[order], statistics.groups
    at = read.whole(table, order, groups.bits).position(score)
    return read.sums_below(table, "count", len(groups), at).T


def _limits(statistics: Any, inside: FloatArray, level: float) -> Range:
    if statistics.groups is None:
        count = statistics.n_effective
        return share_limits(float(inside[0]) / statistics.n * count, count, level)
    sizes = statistics.groups.sizes_by_weight
    left = (inside.sum() - inside) / (sizes.sum() - sizes)
    influence = Influence.left_out(left, read.group_freedom(statistics))
    return effective_share_limits(inside.sum() / sizes.sum(), influence, len(sizes), level)
