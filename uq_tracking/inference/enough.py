r"""Enough data to say anything: groups, errors of a classification, and moments of the errors.

Squares of errors may have so heavy a tail that their mean is dominated by errors so rare that most samples lack them,
and no interval holds. Hill's (1975) estimate from the largest share f of the standardized errors is

.. math:: \hat\alpha^{-1} = \frac1k \sum_{i \le k} \log \frac{|z|_{(n+1-i)}}{|z|_{(n-k)}}, \quad k = f n.

A t distribution with four degrees of freedom, whose squares are the first to have no variance, gives 3.5 for
f = .04; a normal one 6.5, five degrees of freedom 4.1, three 2.7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uq_tracking.inputs.forms import form_of
from uq_tracking.metrics.groups import size_freedom, sums_of, whole
from uq_tracking.statistics.groups import GroupTables
from uq_tracking.statistics.orders import Order

FEWEST_GROUPS = 8
"""With fewer groups, their spread is too poorly known for an interval."""
FEWEST_ERRORS = 20
"""Misclassified samples below which groups do not show their spread: without any, they show none at all."""
FEWEST_CARRYING = 5
"""As many groups with equally many errors as the groups must be worth."""
TAIL_SHARE = 0.04
"""Share of the samples that count as the tail."""
FEWEST_IN_TAIL = 16
"""Minimum number of samples in a tail to show how heavy it is."""
PLACES = 400
"""Maximum number of positions looked up in the tail."""
HEAVY = 3.5
"""Below this tail index, squares are assumed to have no variance."""


def too_few(tables: GroupTables, what: str = "an interval") -> str | None:
    """Say why so few groups tell nothing about their spread, or None."""
    if len(tables) >= FEWEST_GROUPS:
        return None
    label = tables.labels[0]
    named = f" ({label})" if isinstance(label, str) else ""
    counted = f"1 group{named} is" if len(tables) == 1 else f"{len(tables)} groups are"
    return f"{counted} too few for {what}, which needs {FEWEST_GROUPS}"


def too_few_errors(groups: GroupTables) -> str | None:
    """Say why the groups of a classification do not show how its scores vary, or None.

    Of a model that is hardly ever right, the samples that it classifies right are what is rare.
    """
    if "one_minus_confidence" not in groups.orders:
        return None
    order = groups.orders["one_minus_confidence"]
    samples = float(np.sum(groups.sums["n"]) / np.sum(groups.sizes_by_weight))
    count, right = (samples * sums_of(order, name) for name in ("count", "correct"))
    for held, what in ((count - right, "misclassified"), (right, "classified right")):
        if reason := too_few_of(float(held.sum()), what):
            return reason
        worth = size_freedom(held) + 1
        if worth < FEWEST_CARRYING:
            return (
                f"too few errors: the samples that are {what} lie in groups worth {worth:.1f} equal ones, "
                f"it needs {FEWEST_CARRYING}"
            )
    return None


def too_few_of(samples: float, what: str = "misclassified") -> str | None:
    """Say why so few samples are too few, or None."""
    found = round(samples)
    if found >= FEWEST_ERRORS:
        return None
    counted = "1 sample is" if found == 1 else f"{found} samples are"
    return f"too few errors: {counted} {what}, it needs {FEWEST_ERRORS}"


def tail_index(z: Order) -> tuple[float, int] | None:
    """Hill's estimate for absolute values, and from how many; None if there are too few, or they have no width.

    Parameters
    ----------
    z : Order
        The order by standardized error.
    """
    n = z.total
    size = round(TAIL_SHARE * n)
    if size < FEWEST_IN_TAIL:
        return None
    ranks = n - size + (np.arange(min(size, PLACES)) + 0.5) * (size / min(size, PLACES)) + 0.5
    start, values = z.absolute_value([n - size])[0], z.absolute_value(ranks)
    if not (start > 0 and np.isfinite(values).all()):
        return None
    with np.errstate(over="ignore"):
        spread = float(np.log(values / start).mean())
    return (1 / spread, size) if spread > 0 else None


def heavy_tails(statistics: Any, *, cautious: bool = False) -> bool:
    """Return whether the squares of standardized errors have so heavy a tail that their mean has no known variance.

    ``cautious`` asks whether that cannot be excluded: the index minus its standard error. ``statistics`` may be those
    of groups alone. Draws are not judged: few of them make a noisy std, and so a heavy-tailed z.
    """
    groups = statistics.groups
    if groups is not None:
        if form_of(groups.facts).noisy_std or "z" not in groups.orders:
            return False
        order: Order = whole(groups.orders["z"], "z", groups.bits)
    else:
        if form_of(statistics.facts).noisy_std or "z" not in statistics.orders:
            return False
        order = statistics.orders["z"]
    found = tail_index(order)
    if found is None:
        return False
    index, size = found
    return index * (1 - cautious / math.sqrt(size)) < HEAVY
