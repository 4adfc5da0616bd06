"""How similarly two metrics rank the methods: Kendall's tau-b, MeRCI (2018) table 2's disagreement as a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

FEWEST = 3
"""Minimum number of methods: two are ranked either alike or oppositely, which says nothing."""


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau-b between the rankings of the methods by any two judging metrics.

    Attributes
    ----------
    keys : tuple of str
        Metrics that rank at least three methods, and not all equally.
    tau : tuple of tuple
        Symmetric, 1 on the diagonal; None if the two metrics have fewer than three methods in common or one of them
        ranks these all equally.
    """

    keys: tuple[str, ...]
    tau: tuple[tuple[float | None, ...], ...]

    def between(self, one: str, other: str) -> float | None:
        """The tau of two metrics, or None."""
        if one not in self.keys or other not in self.keys:
            return None
        return self.tau[self.keys.index(one)][self.keys.index(other)]

    def pairs(self, keys: Sequence[str]) -> list[tuple[str, str, float]]:
        """Pairs of these metrics with their tau, most discordant first."""
        found = [(a, b, self.between(a, b)) for a, b in combinations(keys, 2)]
        return sorted(((a, b, tau) for a, b, tau in found if tau is not None), key=lambda pair: pair[2])


def agreement(ranks: Mapping[str, Mapping[str, int]]) -> Agreement:
    """Agreement of metrics, given each metric's rank of each method."""
    keys = tuple(
        key for key, places in ranks.items() if len(places) >= FEWEST and len(set(places.values())) > 1
    )
    known = {(a, b): _tau(ranks[a], ranks[b]) for a, b in combinations(keys, 2)}

    def tau(one: str, other: str) -> float | None:
        if one == other:
            return 1.0
        return known[one, other] if (one, other) in known else known[other, one]

    return Agreement(keys, tuple(tuple(tau(a, b) for b in keys) for a in keys))


def _tau(one: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    from scipy.stats import kendalltau

    common = [name for name in one if name in other]
    first, second = [one[name] for name in common], [other[name] for name in common]
    if len(common) < FEWEST or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return float(kendalltau(first, second, variant="b").statistic)
