"""What a form of predictive distribution boils down to: one value per sample of everything it determines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uq_tracking.inputs.convert import FloatArray
from uq_tracking.inputs.validation import BLOCK

Columns = dict[str, FloatArray]

JOINT = ("whole", "joint_nll", "energy_score", "variogram_score")
"""What is summed over vectors: how many samples are components of whole vectors, and the vectors' scores."""

SCORES = (
    "nll",
    "crps",
    "crps_ensemble",
    "pinball",
    "interval_score",
    "interval_width_95",
    "quadratic_score",
    "spherical_score",
    "wis",
    "inside_50",
    "inside_90",
    "inside_95",
    "inside_widest",
    "width_widest",
    *JOINT,
)
"""What is summed over the samples; a form omits what it does not determine."""

LEVELS = np.arange(1, 100) / 100
"""Levels of ``pinball``, and of the central intervals of ``interval_score``."""

EVERY_LEVEL = np.arange(1, 200) / 200
"""Quantile levels that these two need together."""


QUARTILES_PER_STD = 1.3489795003921634
"""Interquartile range of the standard normal distribution."""


@dataclass(frozen=True, eq=False)
class Scored:
    """A predictive distribution evaluated at the truth.

    Attributes
    ----------
    form : str or None
        What was scored: ``draws``, ``mixture``, ``quantiles``, ``interval``, ``distribution``, ``density``; None
        for a mean and a std accompanied by a covariance.
    columns : dict of arrays, each of the target's shape
        ``mean``, ``std``; ``pit_low`` and ``pit_high``, the ends of the interval over which the probability integral
        transform is spread (equal if the distribution is continuous); ``size``, the number of draws or levels;
        ``crossed``, above 0 where quantiles crossed; and any of `SCORES`.
    facts : dict
        What must agree, besides the form, for statistics to be merged: ``levels`` of quantiles;
        ``spread="interquartile"`` if location and scale stand in for a mean and a std that do not exist;
        ``vector_length`` if samples are components of vectors scored as a whole.
    """

    form: str | None
    columns: Mapping[str, FloatArray]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def with_columns(self, **columns: FloatArray) -> Scored:
        """The same with some columns replaced."""
        return replace(self, columns={**self.columns, **columns})

    def finite_moments(self, median: FloatArray, quartiles: tuple[FloatArray, FloatArray]) -> Scored:
        """The same with location and scale from quantiles, for distributions without a variance."""
        scale = (quartiles[1] - quartiles[0]) / QUARTILES_PER_STD
        return replace(
            self,
            columns={**self.columns, "mean": median, "std": scale},
            facts={**self.facts, "spread": "interquartile"},
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What a report says about it."""
        return {**({} if self.form is None else {"distribution": self.form}), **self.facts}


def in_blocks(
    function: Callable[..., Columns], target: FloatArray, *members: FloatArray, cost: int = 1
) -> Columns:
    """Apply a function of 1-D float64 blocks of the target and (M, block) blocks of its members.

    Parameters
    ----------
    function : callable
        ``function(target, *members) -> columns``.
    target : array, any shape
    *members : arrays, shape (M, ...)
        Their other axes are the target's.
    cost : int
        Numbers in memory per sample at once; blocks hold about half a million.
    """
    flat = target.reshape(-1)
    rows = [array.reshape(len(array), -1) for array in members]
    step = max(1, 8 * BLOCK // max(cost, 1))
    made: Columns = {}
    with np.errstate(all="ignore"):  # validation finds and names non-finite values
        for start in range(0, max(len(flat), 1), step):
            part = slice(start, start + step)
            found = function(
                flat[part].astype(np.float64), *(row[:, part].astype(np.float64) for row in rows)
            )
            if not made:
                made = {name: np.empty(len(flat)) for name in found}
            for name, column in found.items():
                made[name][part] = column
    return {name: column.reshape(target.shape) for name, column in made.items()}


def quantile_scores(target: FloatArray, quantiles: FloatArray) -> Columns:
    """``pinball``, ``interval_score`` and ``interval_width_95`` from the quantiles at `EVERY_LEVEL`.

    Parameters
    ----------
    target : array, shape (n,)
    quantiles : array, shape (n, 199)
    """
    gap = target[:, None] - quantiles
    loss = np.maximum(EVERY_LEVEL * gap, (EVERY_LEVEL - 1) * gap)
    # The Winkler score of level p is 2 / (1 - p) times the pinball losses at (1 - p)/2 and (1 + p)/2.
    lower, upper = loss[:, :99][:, ::-1], loss[:, 100:]
    winkler = (lower + upper) * (2 / (1 - LEVELS))
    return {
        "pinball": loss[:, 1::2].mean(axis=1),
        "interval_score": winkler.mean(axis=1),
        "interval_width_95": quantiles[:, 194] - quantiles[:, 4],
    }
