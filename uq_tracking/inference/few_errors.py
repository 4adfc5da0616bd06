"""Whether a classification's groups hold enough errors to show how much its scores differ between groups."""

from __future__ import annotations

import numpy as np

from uq_tracking.inference import read
from uq_tracking.inference.limits import size_freedom
from uq_tracking.statistics.group_tables import GroupTables

FEWEST_ERRORS = 20
"""Misclassified samples below which groups do not show their spread: without any, they show none at all."""
FEWEST_CARRYING = 5
"""As many groups with equally many errors as the groups must be worth."""


def too_few_errors(groups: GroupTables) -> str | None:
    """Why the groups of a classification do not show how its scores vary, or None.

    Of a model that is hardly ever right, the samples that it classifies right are what is rare.
    """
    order, size = groups.orders["one_minus_confidence"], len(groups)
    samples = float(np.sum(groups.sums["n"]) / np.sum(groups.sizes_by_weight))
    count, right = (samples * read.added(order.row, order.sums[name], size) for name in ("count", "correct"))
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
    """Why so few samples are too few, or None."""
    found = round(samples)
    if found >= FEWEST_ERRORS:
        return None
    counted = "1 sample is" if found == 1 else f"{found} samples are"
    return f"too few errors: {counted} {what}, it needs {FEWEST_ERRORS}"
