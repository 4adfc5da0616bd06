"""Whether the widest given interval contains as many of the targets as it states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from uq_tracking.inference import read
from uq_tracking.inference.intervals import effective_share_limits
from uq_tracking.inference.limits import Influence, share_limits
from uq_tracking.metrics.forms import interval_coverage
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings


@dataclass(frozen=True)
class Inside:
    """The share of the targets inside the widest interval, with its limits, and the share it states."""

    share: float
    low: float
    high: float
    stated: float

    @property
    def misses(self) -> Literal["overconfident", "underconfident"] | None:
        """What a share that differs from the stated one by more than chance says of the intervals."""
        if self.high < self.stated:
            return "overconfident"
        return "underconfident" if self.low > self.stated else None


def inside_widest(statistics: Any, settings: Settings, level: float) -> Inside | None:
    """The share inside the widest central interval of quantiles; None where predictions have none."""
    try:
        share = interval_coverage(statistics, settings)
    except Undefined:
        return None
    levels = statistics.facts["levels"]
    stated = max(levels) - min(levels)
    if read.group_count(statistics) is None:
        count = statistics.n_effective
        return Inside(share, *share_limits(share * count, count, level), stated)
    sizes = statistics.groups.sizes_by_weight
    within = read.covered(statistics, read.family(settings), np.asarray([stated]))[:, 0]
    left = (within.sum() - within) / (sizes.sum() - sizes)
    influence = Influence.left_out(left, read.group_freedom(statistics))
    return Inside(share, *effective_share_limits(share, influence, len(sizes), level), stated)
