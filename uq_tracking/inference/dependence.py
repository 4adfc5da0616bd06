r"""How many independent samples there really are, where nobody said which belong together.

Maps and series have neighbors with errors alike. So without ``groups=`` or ``order=``:

* twelve or more cases (all axes but the two of a map; else the first axis): consecutive cases are put together, into
  at most 64 groups;
* fewer maps: each is cut into tiles whose side is at least three times the distance over which errors are alike; if
  that leaves fewer than nine tiles, nothing can be tested;
* one-dimensional data: if neighbors in the given order, or blocks of it, are alike by more than chance, blocks of
  consecutive samples become the groups.

Rows that are exact copies of others count as one sample.

Groups are worth :math:`n / F` independent samples, with F the mean square between groups over that within.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from uq_tracking.statistics.orders import FloatArray, IntArray

MOST_GROUPS = 64
FEWEST_CASES = 12
"""With fewer cases, maps are cut into tiles."""
FEWEST_TILES = 9
FEWEST_TILES_OF_MORE = 20
"""With fewer tiles, only scale and bias are tested: shape and places would claim too much."""
MOST_TILES = 40
SIDE = 3.0
"""Least side of a tile, in distances over which errors are alike."""
ALIKE = 0.1
"""Below this autocorrelation, errors are no longer alike."""
CLIPPED = 5.0
"""Absolute errors are clipped at this many medians, so that single ones do not hide the others."""
MOST_BLOCKS, FEWEST_BLOCKS, BLOCKS_RATE = 20, 8, 0.2
SORTED = 0.99
"""Data of which this share of the steps goes one way are sorted, which is no order in time."""
SWITCH = 0.0005
"""p-value below which blocks of one-dimensional data are alike by more than chance."""
SAID = 0.01
"""p-value below which a verdict says that samples are alike."""
PROBES = 64
"""Rows of which copies are looked for first."""
COPIES, MOST_COPIES, CERTAIN_COPIES = 0.05, 0.9, 0.95
"""Least and largest share of the samples, and least share of the equal predictions, that copies must be."""

Kind = Literal["independent", "sorted", "cases", "tiles", "blocks", "too few", "few maps", "copies"]


@dataclass(frozen=True, eq=False)
class Dependence:
    """Which samples are tested together.

    Attributes
    ----------
    kind : {"independent", "sorted", "cases", "tiles", "blocks", "too few", "few maps", "copies"}
        "sorted" data have no order in time; "too few" independent areas or blocks leave nothing to test, nor do "few
        maps" of which a stream has kept some samples only. "copies" of rows are one sample each.
    group : array of int, shape (n,), or None
        Number of the group of each sample that counts; None for independent samples.
    worth : float
        Number of independent samples that these are worth, at most n.
    alike : bool
        Whether samples are alike by more than chance.
    reach : int or None
        Distance in pixels over which errors of a map are alike.
    """

    kind: Kind
    group: IntArray | None
    worth: float
    alike: bool = False
    reach: int | None = None


def find_dependence(
    z: FloatArray,
    shape: tuple[int, ...],
    valid: FloatArray | None,
    also: Sequence[FloatArray],
    *,
    spatial: bool,
    case: IntArray | None = None,
) -> Dependence:
    """Find out which samples belong together from the order and the shape in which they were given.

    Parameters
    ----------
    z : array, shape (n,)
        Standardized errors of the samples that count, in C order.
    shape : tuple of int
        Shape of the input.
    valid : bool array of this shape, or None
        Which samples count.
    also : sequence of array, shape (n,)
        What one-dimensional data may be sorted by: truth, prediction and standard deviation.
    spatial : bool
        Whether the last two axes are those of a map.
    case : array of int, shape (n,), optional
        Number of each sample's case, where there are some samples of each.
    """
    lead = shape[:-2] if spatial else shape[:1]
    cases = math.prod(lead) if case is None else int(case.max()) + 1
    if (len(shape) > 1 or case is not None) and cases >= FEWEST_CASES:
        halvings = max(0, math.ceil(math.log2(cases / MOST_GROUPS)))
        if case is None:
            case = np.repeat(np.arange(cases), math.prod(shape) // cases)
        return _of_groups("cases", z, _counted(case >> halvings, valid))
    if spatial and case is not None:
        return Dependence("few maps", None, float(cases), True)
    if spatial:
        return _of_maps(z, (cases, shape[-2], shape[-1]), valid)
    return _of_series(z, also)


def find_copies(columns: Sequence[FloatArray]) -> Dependence | None:
    """Find out whether rows are exact copies of others, as those of overlapping tiles or of repeated passes are.

    Equal predictions alone do not make copies: their truth and standard deviation must be equal too, as good as
    always. Only if one of a few rows has a copy are all compared.
    """
    n = len(columns[0])
    probes = np.linspace(0, n - 1, min(n, PROBES)).astype(np.int64)
    if not any(
        np.count_nonzero(np.all([column == column[probe] for column in columns], axis=0)) > 1
        for probe in probes
    ):
        return None
    place = np.lexsort(columns)
    same = [column[place][1:] == column[place][:-1] for column in columns]
    copies = int(np.count_nonzero(np.all(same, axis=0)))
    if not COPIES * n <= copies <= MOST_COPIES * n or copies < CERTAIN_COPIES * np.count_nonzero(same[-1]):
        return None
    group = np.empty(n, dtype=np.int64)
    group[place] = np.concatenate([[0], np.cumsum(~np.all(same, axis=0))])
    return Dependence("copies", group, float(n - copies), True)


def worth_of(scores: Sequence[FloatArray], group: IntArray) -> tuple[float, float]:
    """Return how many independent samples groups are worth, and the p-value of their being alike."""
    n = len(group)
    size = np.bincount(group)
    known = size > 0
    groups = int(known.sum())
    if groups < 2 or n <= groups:
        return float(n), 1.0
    worth, p = float(n), 1.0
    for score in scores:
        centred = score - score.mean()
        sums = np.bincount(group, centred)[known]
        between = float(np.square(sums) @ (1 / size[known]))
        within = float(centred @ centred) - between
        if between <= 0 or within <= 0:
            continue
        ratio = between / (groups - 1) / (within / (n - groups))
        worth = min(worth, n / ratio)
        p = min(p, float(special.fdtrc(groups - 1, n - groups, ratio)))
    return worth, p


def clipped(z: FloatArray) -> FloatArray:
    """Return absolute values, clipped so that single ones do not hide the others."""
    size = np.abs(z)
    return np.asarray(np.minimum(size, CLIPPED * np.median(size)))


def correlation_reach(maps: FloatArray) -> int:
    """Return the first lag, in pixels, at which neighbors along rows and columns are no longer alike.

    Parameters
    ----------
    maps : array, shape (cases, height, width)
        NaN where there is no sample.
    """
    known = np.isfinite(maps)
    centred = np.where(known, maps - np.mean(maps, where=known), 0.0)
    variance = float(np.mean(np.square(centred), where=known))
    most = int(max(min(maps.shape[-2:]) // 2, 1))
    for lag in range(1, most):
        found = []
        for one, other in (
            ((..., slice(lag, None), slice(None)), (..., slice(None, -lag), slice(None))),
            ((..., slice(lag, None)), (..., slice(None, -lag))),
        ):
            pairs = np.count_nonzero(known[one] & known[other])
            if pairs:
                found.append(float(np.vdot(centred[one], centred[other])) / pairs / variance)
        if not found or sum(found) / len(found) < ALIKE:
            return lag
    return most


def _counted(label: IntArray, valid: FloatArray | None) -> IntArray:
    """Return consecutive numbers of the groups of the samples that count."""
    chosen = label if valid is None else label[valid.reshape(-1)]
    return np.unique(chosen, return_inverse=True)[1]


def _of_groups(kind: Kind, z: FloatArray, group: IntArray, reach: int | None = None) -> Dependence:
    worth, p = worth_of((z, clipped(z)), group)
    return Dependence(kind, group, worth, p < SAID, reach)


def _of_maps(z: FloatArray, shape: tuple[int, int, int], valid: FloatArray | None) -> Dependence:
    cases, height, width = shape
    if valid is None:
        maps = z.reshape(shape)
    else:
        maps = np.full(shape, np.nan)
        maps[valid.reshape(shape)] = z
    reach = correlation_reach(maps)
    tiles = min(int(math.sqrt(MOST_TILES / cases)), int(min(height, width) // (SIDE * reach)))
    if tiles < 1 or cases * tiles * tiles < FEWEST_TILES:
        return Dependence("too few", None, min(len(z), len(z) / (1.3 * reach**2)), True, reach)
    row, column = np.arange(height) * tiles // height, np.arange(width) * tiles // width
    tile = row[:, None] * tiles + column[None]
    label = np.arange(cases)[:, None, None] * tiles * tiles + tile
    return _of_groups("tiles", z, _counted(label.reshape(-1), valid), reach)


def _of_series(z: FloatArray, also: Sequence[FloatArray]) -> Dependence:
    n = len(z)
    for values in also:
        steps = np.diff(values)
        rising, falling = np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)
        if rising + falling > n / 2 and max(rising, falling) > SORTED * (rising + falling):
            return Dependence("sorted", None, float(n))
    blocks = min(max(round(BLOCKS_RATE * n ** (2 / 3)), FEWEST_BLOCKS), MOST_BLOCKS)
    if n < 2 * blocks:
        return Dependence("independent", None, float(n))
    scores = (z, clipped(z))
    block = np.minimum(np.arange(n) * blocks // n, blocks - 1)
    worth, p = worth_of(scores, block)
    correlation = max(_lag_one(score) for score in scores)
    if correlation <= max(ALIKE, 3.5 / math.sqrt(n)) and p >= SWITCH:
        return Dependence("independent", None, float(n))
    if worth < blocks:
        return Dependence("too few", None, worth, True)
    return Dependence("blocks", block, worth, p < SAID)


def _lag_one(values: FloatArray) -> float:
    centred = values - values.mean()
    square = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / square if square else 0.0
