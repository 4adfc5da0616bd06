"""Labels of groups, and the pools that large numbers of groups are put into."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from uq_tracking.statistics.orders import IntArray

Label: TypeAlias = str | int | float | bool

MOST_GROUPS = 1000
"""More groups than this are pooled at random into this many pools of nearly equal numbers of groups."""


@dataclass(frozen=True, eq=False)
class Pooling:
    """Where groups go before they are counted.

    Attributes
    ----------
    labels : tuple
        Distinct labels, in an order that depends on them alone.
    place : int array
        Pool of each label, in the order the labels were given.
    members : str
        Digest of the labels.
    """

    labels: tuple[Label, ...]
    place: IntArray
    members: str

    @classmethod
    def of(cls, names: Sequence[Label], members: str | None = None, most: int = MOST_GROUPS) -> Pooling:
        """Pools of distinct labels; ``members``, if given, is their digest."""
        order = sorted(range(len(names)), key=lambda i: label_order(names[i]))
        place = np.empty(len(names), dtype=np.int64)
        place[order] = pool_chain(len(names), most)
        labels = tuple(names[i] for i in order)
        return cls(labels, place, digest_of(labels) if members is None else members)


def pool_chain(groups: int, size: int) -> IntArray:
    """Which pool each group falls into when pools are halved until there are at most ``size``.

    Halved rather than cut to size, so that equal groups share pools whatever size they were reduced to before.
    """
    pool = np.arange(groups)
    while groups > size:
        order = np.random.default_rng(groups).permutation(groups)
        groups = (groups + 1) // 2
        half = np.empty(len(order), dtype=np.int64)
        half[order] = np.arange(len(order)) % groups
        pool = half[pool]
    return pool


def digest_of(labels: Sequence[Label]) -> str:
    """Sixteen hexadecimal digits of labels."""
    return hashlib.sha256(json.dumps(list(labels)).encode()).hexdigest()[:16]


def label_order(label: Label) -> tuple[str, Any]:
    """Sort key of labels, which may be of several types."""
    return type(label).__name__, label
