"""Metrics against the number of members of an ensemble."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from uq_tracking.curves.curve import Curve
from uq_tracking.curves.spread import Repeats
from uq_tracking.errors import InputError, SettingsError
from uq_tracking.inputs import Predictions
from uq_tracking.metrics.registry import Metric, compute
from uq_tracking.settings import Method, Settings
from uq_tracking.statistics.make import make_statistics

SUBSETS = 10
"""Random subsets of each size, or all where there are fewer."""


def by_members(
    predictions: Predictions,
    settings: Settings,
    metrics: Sequence[Metric],
    *,
    seed: int = 0,
    subsets: int = SUBSETS,
    method: Method = "auto",
) -> list[Curve]:
    """One curve per metric against the number M of members, over random subsets of the ensemble.

    M runs over 1, 2, 4 ... and the size of the whole; without standard deviations of the members it starts at 2.

    Parameters
    ----------
    predictions : Predictions
        Made by ``from_samples``.
    settings, metrics
        How, and what, to score.
    seed : int
        Of the choice of subsets.
    subsets : int
        At most so many of each size.

    Raises
    ------
    SettingsError
        The predictions hold no members.

    References
    ----------
    .. [1] Gustafsson et al., 2020, fig. 6 and 8.
    """
    if predictions.samples is None:
        raise SettingsError(
            "by_members needs the members; make the predictions with Predictions.from_samples"
        )
    members = len(predictions.samples)
    rng = np.random.default_rng(seed)
    scores = {}
    for size in member_counts(members, first=1 if predictions.member_std is not None else 2):
        with np.errstate(all="ignore"):
            scores[float(size)] = [
                compute(make_statistics(_subset(predictions, chosen), method), settings, metrics)[0]
                for chosen in subsets_of(members, size, subsets, rng)
            ]
    return Repeats(scores).curves("by_members", "members", "Members", metrics)


def member_counts(members: int, first: int) -> list[int]:
    """Powers of two up to the number of members, and this itself."""
    powers = [2**k for k in range(members.bit_length()) if first <= 2**k < members]
    return [*powers, members]


def subsets_of(members: int, size: int, most: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """All subsets of a size if there are at most ``most``, else so many random ones, all different."""
    if math.comb(members, size) <= most:
        yield from (list(chosen) for chosen in itertools.combinations(range(members), size))
        return
    seen: set[tuple[int, ...]] = set()
    while len(seen) < most:
        chosen = tuple(sorted(rng.choice(members, size, replace=False).tolist()))
        if chosen not in seen:
            seen.add(chosen)
            yield list(chosen)


def _subset(predictions: Predictions, chosen: list[int]) -> Predictions:
    """The same truth predicted by some of the members."""
    if predictions.samples is None:
        raise InputError("there are no members")
    noise = None if predictions.member_std is None else predictions.member_std[chosen]
    mask = None if predictions.valid is None else ~predictions.valid
    floor = predictions.std_floor
    return Predictions.from_samples(
        predictions.target, predictions.samples[chosen], noise, mask=mask, std_floor=floor
    )
