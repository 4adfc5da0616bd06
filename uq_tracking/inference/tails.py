r"""Whether errors have tails so heavy that the mean of their squares cannot be known from these data.

If the squares have no variance, a mean of squares is dominated by errors so rare that most samples lack them, and no
interval holds. Hill's (1975) estimate from the largest share f of the standardized errors is

.. math:: \hat\alpha^{-1} = \frac1k \sum_{i \le k} \log \frac{|z|_{(n+1-i)}}{|z|_{(n-k)}}, \quad k = f n.

A t distribution with four degrees of freedom, whose squares are the first to have no variance, gives 3.5 for
f = .04; a normal one 6.5, five degrees of freedom 4.1, three 2.7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uq_tracking.inference import read
from uq_tracking.statistics.orders import Order

SHARE = 0.04
"""Share of the samples that count as the tail."""
FEWEST = 16
"""Minimum number of samples in a tail to show how heavy it is."""
PLACES = 400
"""Maximum number of positions looked up in the tail."""
HEAVY = 3.5
"""Below this tail index, squares are assumed to have no variance."""


def tail_index(z: Order) -> tuple[float, int] | None:
    """Hill's estimate for absolute values, and from how many; None if there are too few, or they have no width.

    Parameters
    ----------
    z : Order
        The order by standardized error.
    """
    n = z.total
    size = round(SHARE * n)
    if size < FEWEST:
        return None
    ranks = n - size + (np.arange(min(size, PLACES)) + 0.5) * (size / min(size, PLACES)) + 0.5
    start, values = z.absolute_value([n - size])[0], z.absolute_value(ranks)
    if not (start > 0 and np.isfinite(values).all()):
        return None
    with np.errstate(over="ignore"):
        spread = float(np.log(values / start).mean())
    return (1 / spread, size) if spread > 0 else None


def heavy_tails(statistics: Any, *, cautious: bool = False) -> bool:
    """Whether the squares of standardized errors have so heavy a tail that their mean has no known variance.

    ``cautious`` asks whether that cannot be excluded: the index minus its standard error. ``statistics`` may be those
    of groups alone. Draws are not judged: few of them make a noisy std, and so a heavy-tailed z.
    """
    groups = statistics.groups
    if groups is not None:
        if groups.facts.get("distribution") == "draws" or "z" not in groups.orders:
            return False
        order: Order = read.whole(groups.orders["z"], "z", groups.bits)
    else:
        if statistics.facts.get("distribution") == "draws" or "z" not in statistics.orders:
            return False
        order = statistics.orders["z"]
    found = tail_index(order)
    if found is None:
        return False
    index, size = found
    return index * (1 - cautious / math.sqrt(size)) < HEAVY
