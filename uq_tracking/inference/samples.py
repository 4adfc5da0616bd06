r"""The samples that a verdict looks at, in their order, and which of them belong together.

They are all, or of a stream some that are evenly spread, in some 2 MB: runs of eight neighbors, which show whether
these are alike. Of 2^k consecutive runs one is kept; which one is decided by hashes of their places alone: on the way
down a binary tree, at each node one child. So what is kept depends neither on how a stream is cut into batches nor on
the width of its images, and when k grows, half of what is kept goes.

Maps and series have neighbors with errors alike. So where nobody said which belong together, without ``groups=`` or
``order=``:

* twelve or more cases (all axes but the two of a map; else the first axis): consecutive cases are put together, into
  at most 64 groups, or, if each case is like the one before, as frames of a video and forecasts from overlapping
  origins are, into long blocks, or, if these are too few, into boxes, as slices of a volume are;
* two axes, as stations and dates: rows or columns that are alike in themselves, but not like the next ones, are the
  groups, or long blocks of them, where each is like the one before;
* fewer maps: each is cut into tiles whose side is at least three times the distance over which errors are alike; if
  that leaves fewer than nine tiles, nothing can be tested;
* one-dimensional data: if neighbors in the given order, or blocks of it, are alike by more than chance, blocks of
  consecutive samples become the groups; so they do if every S-th sample is alike, as where the rows of S stations
  take turns. If twelve or more of these stay alike over the whole series, they are the groups.

Rows that repeat others count as one sample, cases that all are rated equally often as one group; maps that share
pixels are not judged. The channels of twelve or more images belong together.

Groups are worth :math:`n / F` independent samples, with F the mean square between groups over that within.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import fft, special

from uq_tracking.inference.limits import means_of
from uq_tracking.inference.places import some_of
from uq_tracking.inputs.forms.mean_std import MeanStd
from uq_tracking.inputs.labels import sets_of, without_change, without_trend
from uq_tracking.inputs.predictions import looks_spatial
from uq_tracking.parallel import inner
from uq_tracking.statistics.blocks import block_length
from uq_tracking.statistics.groups import GroupTally, count_groups, plain_labels
from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.sketch import dense
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import Self, cached_property, override

OFTEN = 20
"""Changes of the label for each label, from which labels are not stretches of the samples."""
MOST_GROUPS = 64
FEWEST_CASES = 12
"""With fewer cases, maps are cut into tiles."""
FEWEST_ROWS = 30
"""With fewer columns, a table that is no map is one of cases."""
FEWEST_TILES = 9
MOST_TILES = 40
SIDE = 3.0
"""Least side of a tile, in distances over which errors are alike."""
ALIKE = 0.1
"""Below this autocorrelation, errors are no longer alike."""
CLIPPED = 5.0
"""Absolute errors are clipped at this many medians, so that single ones do not hide the others."""
MOST_BLOCKS, FEWEST_BLOCKS, BLOCKS_RATE = 20, 8, 0.2
MOST_FINER, FEWEST_OF_FINER = 256, 32
"""Shorter blocks, and their least samples, by which neighbors that are hardly alike, but many, are found."""
DRIFTS = 10
"""Samples per block that a series must be worth without its trend, for all to be due to a drift."""
OF_PERIODS, LEAST_PERIODS, PERSISTS = 5.5, 4, 0.5
"""Standard errors by which samples one to four periods apart must be more alike than others, how many periods half of
the series must hold, and the share of that which must be left over its second half for it to persist."""
OF_OTHERS, MAD = 4.0, 1.4826
"""The same beside what other periods show, and the standard deviation of normal values over their median absolute."""
LAGS = 60
"""Distances at which successive values of a label are compared, up to the length of the order."""
NO_PERIOD = 5
"""Blocks and breaks look like a period of up to this length, once what neighbors share is taken out."""
SLOW = 0.5
"""Autocorrelation from which on a series changes slowly, so that its places in turn are no stations."""
MULTIPLES = 0.7
"""A period's multiples are about as much alike: the first that is so by this share of the largest is the period."""
MOST_IN_ORDER, MOST_PERIOD, MOST_LOOKED = 16_384, 1000, 1 << 16
"""Consecutive times of which periods are looked for, the longest one, and samples looked at."""
OF_NOISE, WIDE, NEAR = 20.0, 24, (2, 6)
"""How many times as strong as others a frequency must be for errors to recur with it: as the median of so many on
both sides, and as the mean of those at these distances."""
EQUAL = 1e-9
"""Range of errors, in the largest, from which on they are not all the same."""
USUAL, SURELY = (7, 12, 24), 1e-6
"""Periods of days, months and hours, that are also looked for by the means of their places; p-value of these."""
MOST_PLACES, PER_PLACE = 48, 30
"""Places of a period that are told apart, and fewest samples at each."""
LASTS, SMOOTH, AS_MUCH, ALL = 0.5, 0.6, 0.8, 0.95
"""Correlations between what the places show in both halves of a series, and between neighboring places, from which on
errors recur, and shares of what the best period explains from which on a divisor of it is the period: one of as many
places as stations may be, or of fewer."""
BANDS, LEAST_SIDE, MOST_AXIS = 5, 15, 32
"""Bands of rows, and of columns, into which maps are cut, least side of such maps, and longest of other axes whose
places are looked at one by one."""
SORTED = 0.99
"""Data of which this share of the steps goes one way are sorted, which is no order in time."""
SWITCH = 0.0005
"""p-value below which blocks of one-dimensional data are alike by more than chance."""
SAID = 0.01
"""p-value below which a verdict says that samples are alike."""
CROSSED, FEWEST_CROSSED = 1e-6, 8
"""p-value below which samples at equal places of different groups are alike, and fewest groups and places to tell."""
AT_ANY_RATE, MOST_ACROSS = 1e-3, 1000
"""The same where neighbors within a group may be alike, as pixels are, and most groups and places looked at."""
FOLLOWING, FEWEST_FOLLOWING = 4.5, 24
"""Correlation of the means of consecutive groups, in its standard error, from which on they follow each other, and
fewest groups to tell."""
PROBES = 64
"""Rows of which copies are looked for first."""
COPIES, MOST_COPIES, CERTAIN_COPIES = 0.05, 0.9, 0.95
"""Least and largest share of the samples, and least share of those with equal truths, that copies must be; those of
one row are fewer than the least."""
FEWEST_COPIED = 100
"""Different truths, each as often as any other, from which on they are those of copies."""
NEARLY, BY_CHANCE = 0.2, 0.5
"""Largest difference of the predictions of copies in their std, and share of other neighbors that may be as near."""

Scores = Sequence[FloatArray]
"""Standardized errors, and their clipped sizes."""
Kind = Literal[
    "independent", "sorted", "cases", "crossed", "tiles", "blocks", "too few", "few maps", "copies", "repeats"
]


@dataclass(frozen=True, eq=False)
class Dependence:
    """Which samples are tested together.

    Attributes
    ----------
    kind : {"independent", "sorted", "cases", "crossed", "tiles", "blocks", "too few", "few maps", "copies", ...}
        "sorted" data have no order in time; of "crossed" ones, rows and columns are alike; "too few" independent
        areas or blocks leave nothing to test, nor do "few maps" of which a stream has kept some samples only.
        "copies" of rows are one sample each; maps that share pixels, "repeats", are not judged.
    group : array of int, shape (n,), or None
        Number of the group of each sample that counts; None for independent samples.
    worth : float
        Number of independent samples that these are worth, at most n.
    alike : bool
        Whether samples are alike by more than chance.
    reach : int or None
        Distance in pixels over which errors of a map are alike.
    p : float
        p-value of blocks being alike.
    distant : float or None
        Number of independent samples at most, where rows far apart are alike: copies, or a date at many stations.
    """

    kind: Kind
    group: IntArray | None
    worth: float
    alike: bool = False
    reach: int | None = None
    p: float = 1.0
    distant: float | None = None


def find_copies(std: FloatArray, target: FloatArray, mean: FloatArray) -> Dependence | None:
    """Find out whether rows repeat others, as those of overlapping tiles or of several passes over a sample do.

    Wherever the truth is equal, the prediction must be nearly so, which it is not elsewhere. Rows without an error do
    not count, since all that are clipped to the same end are equal. Only if one of a few rows has a copy are all
    compared.
    """
    n = len(std)
    probes = np.linspace(0, n - 1, min(n, PROBES)).astype(np.int64)
    if not any(np.count_nonzero(target == target[probe]) > 1 for probe in probes):
        return None
    place = np.argsort(target, kind="stable")
    truth, predicted, unit = target[place], mean[place], std[place]
    equal, errs = truth[1:] == truth[:-1], truth[1:] != predicted[1:]
    near = np.abs(np.diff(predicted)) <= NEARLY * np.minimum(unit[1:], unit[:-1])
    found, alike = np.count_nonzero(equal & near & errs), np.count_nonzero(equal & errs)
    group = np.concatenate([[0], np.cumsum(~equal)])
    held = np.bincount(group)
    recur_alike = held.min() == held.max() and len(held) >= FEWEST_COPIED  # as in repeated splits
    if not recur_alike:
        if not COPIES * n <= found <= MOST_COPIES * n or found < CERTAIN_COPIES * alike:
            return None
        if np.mean(near[~equal]) > BY_CHANCE or held.max() > COPIES * n:
            return None
    of_row = np.empty(n, dtype=np.int64)
    of_row[place] = group
    different = float(group[-1] + 1)
    return Dependence("copies", of_row, different, True, distant=different)


def _of_repeats(scores: Scores, mean: FloatArray) -> Dependence | None:
    """Put rows with equal predictions together, if all occur equally often, as with two raters of each case."""
    probes = np.linspace(0, len(mean) - 1, min(len(mean), PROBES)).astype(np.int64)
    if not all(np.count_nonzero(mean == mean[probe]) > 1 for probe in probes):  # before all are sorted
        return None
    _, place, held = np.unique(mean, return_inverse=True, return_counts=True)
    alike = held.min() == held.max() and len(held) >= FEWEST_COPIED
    return _of_groups("cases", scores, place) if alike else None


def worth_of(scores: Scores, group: IntArray) -> tuple[float, float]:
    """Return how many independent samples groups are worth, and the p-value of their being alike."""
    n, size = len(group), np.bincount(group)
    groups = int(np.count_nonzero(size))
    if groups < 2 or n <= groups:
        return float(n), 1.0
    worth, p = float(n), 1.0
    for score in scores:
        centred = score - score.mean()
        between = float(np.square(means_of(centred, group)) @ size)
        within = inner(centred, centred) - between
        if between <= 0:
            continue
        if within <= 0:  # all of a group are equal
            worth, p = min(worth, float(groups)), 0.0
            continue
        ratio = between / (groups - 1) / (within / (n - groups))
        worth = min(worth, n / max(ratio, 1e-300))
        p = min(p, float(special.fdtrc(groups - 1, n - groups, ratio)))
    return worth, p


def is_slow(values: FloatArray, group: IntArray) -> bool:
    """Return whether values vary more between groups than within them."""
    return bool(2 * np.var(values - means_of(values, group)[group]) < np.var(values))


def are_intervals(label: IntArray, values: FloatArray) -> bool:
    """Return whether labels are intervals of these values, of which none overlap."""
    place = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[place], np.arange(int(label.max()) + 1))
    lowest, highest = (each.reduceat(values[place], starts) for each in (np.minimum, np.maximum))
    order = np.argsort(lowest)
    return len(starts) > 1 and bool(np.all(highest[order][:-1] <= lowest[order][1:]))


def without_labels(z: FloatArray, label: IntArray) -> FloatArray:
    """Return z without the mean and the size of each label."""
    z = z - means_of(z, label)[label]
    return np.asarray(z / np.sqrt(np.maximum(means_of(np.square(z), label), 1e-300))[label])


def clipped(z: FloatArray) -> FloatArray:
    """Return absolute values, clipped so that single ones do not hide the others."""
    size = np.abs(z)
    return np.asarray(np.minimum(size, CLIPPED * np.median(size)))


def correlation_reach(maps: FloatArray, axes: Sequence[int] = (1, 2)) -> int:
    """Return the first lag, in pixels, at which neighbors along some axes are no longer alike.

    Parameters
    ----------
    maps : array, shape (cases, height, width)
        NaN where there is no sample.
    axes : sequence of int
        By default rows and columns.
    """
    known = np.isfinite(maps)
    centred = np.where(known, maps - np.mean(maps, where=known), 0.0)
    variance = float(np.mean(np.square(centred), where=known))
    most = int(max(min(maps.shape[axis] for axis in axes) // 2, 1))
    for lag in range(1, most):
        found = []
        for axis in axes:
            before: Any = (slice(None),) * axis
            one, other = (*before, slice(lag, None)), (*before, slice(None, -lag))
            pairs = np.count_nonzero(known[one] & known[other])
            if pairs:
                found.append(float(np.einsum("ijk,ijk->", centred[one], centred[other])) / pairs / variance)
        if not found or sum(found) / len(found) < ALIKE:
            return lag
    return most


def _memory(score: FloatArray, label: IntArray) -> int:
    """Return a lag, nearly the first, at which successive values of a label are no longer alike."""
    centred = score - score.mean()
    for lag in np.unique(np.geomspace(1, len(label) - 1, LAGS).astype(int)).tolist():
        same = label[lag:] == label[:-lag]
        pairs = max(int(np.count_nonzero(same)), 1)
        found = inner(centred[lag:] * same, centred[:-lag]) / pairs / (inner(centred, centred) / len(label))
        if found < max(ALIKE, 3 / math.sqrt(pairs)):
            return int(lag)
    return len(label)


def _of_cases(scores: Scores, case: IntArray, cases: int) -> Dependence:
    """Put consecutive cases together, so that there are not too many."""
    return _of_groups("cases", scores, case >> max(0, math.ceil(math.log2(cases / MOST_GROUPS))))


def _of_groups(kind: Kind, scores: Scores, label: IntArray, reach: int | None = None) -> Dependence:
    group = dense(label)[1]
    worth, p = worth_of(scores, group)
    return Dependence(kind, group, max(worth, float(group.max() + 1)), p < SAID, reach)


def _of_table(scores: Scores, shape: tuple[int, ...], keep: Any, *, spatial: bool) -> Dependence | None:
    """Put together the rows of a table, or its columns, that are alike in themselves.

    If each is like the next, as dates are, long blocks of them; but in a map, neighbors are alike anyway. Samples of
    a column are far apart.
    """
    places = list(_along_axes(shape, keep))
    found: list[Dependence | None] = [None, None]
    for axis, fewest in enumerate((FEWEST_ROWS if spatial else FEWEST_CASES, FEWEST_ROWS)):
        if shape[axis] >= fewest and worth_of(scores, places[axis])[1] < SWITCH:
            of_lines = _of_lines(scores, places[axis], shape[axis])
            of_lines = of_lines if axis else replace(of_lines, distant=None)
            found[axis] = None if spatial and of_lines.kind != "cases" else of_lines
    rows, columns = found
    if rows is not None and columns is not None:
        times = [each is not None and each.kind != "cases" for each in found]
        if sum(times) == 1 and not _lasts(scores, places[times.index(False)], places[times.index(True)]):
            return found[times.index(True)]
        return replace(columns, kind="crossed")
    return rows or columns


def _of_apart(scores: Scores, shape: tuple[int, ...], keep: Any) -> Dependence | None:
    """Put together the rows of a table, or its columns, if none is like the next, as those of series are."""
    row, column = _along_axes(shape, keep)
    for lines, line, length, place in ((shape[0], row, shape[1], column), (shape[1], column, shape[0], row)):
        if lines >= FEWEST_CASES and not _cases_follow(
            scores, line, lines, line * length + place, math.prod(shape)
        ):
            return _of_cases(scores, line, lines)
    return None


def _along_axes(shape: tuple[int, ...], keep: Any) -> Iterator[IntArray]:
    """Yield the place of each sample that counts along each axis."""
    return (np.broadcast_to(each, shape).reshape(-1)[keep] for each in np.indices(shape, sparse=True))


def _of_lines(scores: Scores, line: IntArray, lines: int) -> Dependence:
    """Put lines of samples that are far apart together, or long blocks of them, where each is like the next."""
    follow = max(_lag_one(means_of(score, line, places=lines)) for score in scores) >= 3 / math.sqrt(lines)
    found = _in_blocks(scores, line, lines) if follow else _of_cases(scores, line, lines)
    return replace(found, distant=found.worth if follow else max(found.worth, float(lines)))


def _lasts(scores: Scores, line: IntArray, time: IntArray) -> bool:
    """Return whether what lines have in common early is also there late."""
    late, lines = time > time.max() // 2, int(line.max()) + 1
    halves = ([means_of(each[half], line[half], places=lines) for half in (late, ~late)] for each in scores)
    return any(np.asarray(np.corrcoef(both))[0, 1] > LASTS for both in halves)


def _of_maps(
    scores: Scores, shape: tuple[int, int, int], keep: Any, *, is_volume: bool = False
) -> Dependence:
    """Cut maps into tiles, a volume into boxes."""
    z, (cases, height, width) = scores[0], shape
    maps = np.full(shape, np.nan)
    maps.reshape(-1)[keep] = z
    reach = correlation_reach(maps)
    most = int(min(height, width) // (SIDE * reach))
    layers = cases
    if is_volume:
        layers = int(
            min(cases // (SIDE * correlation_reach(maps, (0,))), MOST_TILES // max(min(most, 3), 1) ** 2)
        )
    elif cases > 1 and _tiles_follow(maps, reach):
        layers = 1
    tiles = min(int(math.sqrt(MOST_TILES / max(layers, 1))), most)
    if layers * tiles * tiles < FEWEST_TILES:
        worth = min(len(z), len(z) / (1.3 * reach**2)) * layers / cases
        _, row, column = _along_axes(shape, keep)
        lasts = cases == 1 and _lasts(scores[:1], column, row)  # as dates do at all stations
        return Dependence("too few", None, worth, True, reach, distant=worth if lasts else None)
    layer, row, column = (
        np.arange(size) * parts // size for size, parts in zip(shape, (layers, tiles, tiles), strict=True)
    )
    label = (layer[:, None, None] * tiles + row[:, None]) * tiles + column
    return _of_groups("tiles", scores, label.reshape(-1)[keep], reach)


def _tiles_follow(maps: FloatArray, reach: int) -> bool:
    """Return whether each of a few maps is like the one before, as short videos are: by the products of blocks."""
    rows, columns = (np.arange(0, size, reach) for size in maps.shape[1:])
    for score in (maps, np.abs(maps)):
        known = np.isfinite(score)
        centred = np.where(known, score - np.mean(score, where=known), 0.0)
        sums = np.add.reduceat(np.add.reduceat(centred, rows, axis=1), columns, axis=2)
        if _are_positive((sums[1:] * sums[:-1]).sum(axis=0).reshape(-1)):
            return True
    return False


def _are_positive(products: FloatArray) -> bool:
    """Return whether the mean of products is above 0 by more than chance."""
    if len(products) < 2:
        return False
    error = float(products.std(ddof=1)) / math.sqrt(len(products))
    return error > 0 and bool(special.stdtr(len(products) - 1, -products.mean() / error) < SWITCH)


def _share_pixels(values: FloatArray, z: FloatArray, case: IntArray, cases: int) -> bool:
    """Return whether cases have samples in common: values that are the same, with errors that are nearly so.

    They are the same far more often than by chance, as within a case. Of many samples, an eighth of the values is
    looked at, wherever they occur.
    """
    hashed = np.asarray(values, np.float64).view(np.uint64) * MULTIPLIERS[0] >> np.uint64(61)
    some = np.flatnonzero((z != 0) & ((hashed == 0) | (len(values) <= MOST_LOOKED)))
    place = some[np.argsort(values[some], kind="stable")]
    equal = np.diff(values[place]) == 0
    one, other = place[:-1][equal], place[1:][equal]
    within = np.count_nonzero(case[one] == case[other])
    are_near = np.abs(z[one] - z[other]) <= NEARLY
    return bool(len(one) > COPIES * len(place) + 2 * cases * within and are_near.mean() > BY_CHANCE)


def _of_series(scores: Scores, also: Sequence[FloatArray] = ()) -> Dependence:
    n = len(scores[0])
    if any(map(are_sorted, also)):
        return Dependence("sorted", None, float(n))
    if n < 2 * FEWEST_BLOCKS:
        return Dependence("independent", None, float(n))
    at = np.arange(n)
    period, persists = _period(scores)
    if persists and period >= FEWEST_CASES:
        return _of_lines(scores, at % period, period)
    if period:
        found = _in_blocks(scores, at // period, -(-n // period))
        if found.worth < n and (found.kind != "too few" or found.p < SWITCH):
            return replace(found, distant=found.worth) if period > NO_PERIOD else found
    found = _in_blocks(scores, at, n)
    correlation = max(_lag_one(score) - _of_largest(score) for score in scores)
    finer = min(max(n // FEWEST_OF_FINER, 2), MOST_FINER)
    p = min(found.p, worth_of(scores, at * finer // n)[1])
    if correlation <= max(ALIKE, 3.5 / math.sqrt(n)) and p >= SWITCH:
        return Dependence("independent", None, float(n))
    return found


def _p_across(errors: FloatArray, group: IntArray, place: IntArray) -> float:
    """Return how likely groups are so alike, place by place, however errors depend on others of their own group.

    Inner products of two groups are 0 on average and uncorrelated; their spread tells how many places count.
    """
    some = (group < MOST_ACROSS) & (place < MOST_ACROSS)
    table = np.zeros((int(group[some].max()) + 1, int(place[some].max()) + 1))
    table[group[some], place[some]] = errors[some]
    pairs, size, total = len(table) * (len(table) - 1), np.square(table).sum(axis=1), table.sum(axis=0)
    gram = table @ table.T if len(table) < table.shape[1] else table.T @ table
    mean = (inner(total, total) - size.sum()) / pairs
    square = (np.square(gram).sum() - inner(size, size)) / pairs
    places = size.mean() ** 2 / square
    return float(special.chdtrc(places, max(places + mean * math.sqrt(pairs * places / square), 0.0)))


def are_sorted(values: FloatArray) -> bool:
    """Return whether most steps go one way, so that the order is none in time."""
    steps = np.diff(values)
    rising, falling = np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)
    return bool(rising + falling > len(values) / 2 and max(rising, falling) > SORTED * (rising + falling))


def _in_blocks(scores: Scores, at: IntArray, places: int) -> Dependence:
    """Cut a series into blocks; ``at`` is the place of each sample among so many, each of which may hold several."""
    blocks = min(max(round(BLOCKS_RATE * places ** (2 / 3)), FEWEST_BLOCKS), MOST_BLOCKS)
    block = at * blocks // places
    worth, p = worth_of(scores, block)
    few, of_rest, block_of = blocks, DRIFTS * blocks, block
    if len(at) > 2 * places:  # the means at all places are a series, too short for its worth to be well known
        size = np.bincount(at)
        scores = [np.bincount(at, score)[size > 0] / size[size > 0] for score in scores]
        few = of_rest = 2 * blocks
        block_of = np.flatnonzero(size) * blocks // places
    own = worth_of(scores, block_of)[0]
    if own < few:
        rest = without_change(scores[0])
        if worth_of((rest, without_change(clipped(rest))), block_of)[0] < of_rest:
            return Dependence("too few", None, max(min(worth, own), 1.0), True, p=p)
    return Dependence("blocks", block, worth, p < SAID, p=p)


def _cases_follow(scores: Scores, case: IntArray, cases: int, keep: Any, size: int) -> bool:
    """Return whether each case is like the one before: by its mean, or, of a whole array, sample by sample."""
    for score in scores:
        rest = without_trend(score, case)
        parts: list[FloatArray] = [np.asarray(np.bincount(case, rest, cases)[:, None])]
        if size:
            whole = np.zeros(size)
            whole[keep] = rest
            places = whole.reshape(cases, -1)
            parts.append(places - places.mean(axis=0))  # what all have in common at a place does not pass on
        if any(_are_positive(np.einsum("ij,ij->i", part[1:], part[:-1])) for part in parts):
            return True
    return False


def _period(scores: Scores) -> tuple[int, bool]:
    """Return after how many places samples are alike again, 0 if after none, and whether that persists."""
    for score in scores:
        smooth = score[:MOST_IN_ORDER] - score[:MOST_IN_ORDER].mean()
        slow = _lag_one(smooth)
        series = smooth[1:] - slow * smooth[:-1]  # else slow waves look like periods
        n, square = len(series), inner(series, series)
        periods = range(2, min(n // 2 // LEAST_PERIODS, MOST_PERIOD) + 1)
        if not square or not periods or _of_largest(series) > ALIKE:
            continue  # few large ones are as far apart as others by chance
        power = np.square(np.abs(fft.rfft(series, 2 * n)))
        alike = fft.irfft(power)[: n // 2 + 1] / square * n / np.arange(n, n - n // 2 - 1, -1)
        multiples = [np.arange(period, len(alike), period) for period in periods]
        peaks = [alike[place] - alike[place - place[0] // 2] for place in multiples]
        near = np.asarray([part[:LEAST_PERIODS].mean() for part in peaks])
        usual = MAD * float(np.median(np.abs(near)))
        if near.max() <= max(OF_PERIODS * math.sqrt(2 / LEAST_PERIODS / n), OF_OTHERS * usual):
            continue
        whole = np.asarray([alike[place[:LEAST_PERIODS]].mean() for place in multiples])
        whole[(near <= near.max() / 2) | (whole <= near / 2)] = 0.0  # divisors, and what is only less unlike
        if whole.max() > 0:
            first = int(np.flatnonzero(whole > MULTIPLES * whole.max())[0])
            far = multiples[first][len(multiples[first]) // 2 :]
            return periods[first], bool(slow < SLOW and alike[far].mean() > PERSISTS * whole[first])
    return 0, False


def find_season(scores: Sequence[FloatArray]) -> int:
    """Return after how many places errors recur for good, as those of an hour or a month do; 0 if after none.

    A single frequency must stand out from those around it, or the places of a usual period must differ. Twelve places
    or more, of which each is unlike the next, are as many stations in turn.
    """
    for score in scores:
        values, n = score - score.mean(), len(score)
        values /= np.abs(values).max() or 1.0
        if np.ptp(score) <= EQUAL * np.abs(score).max():
            continue
        differ = (each for each in USUAL if worth_of([values], np.arange(n) % each)[1] < SURELY)
        usual = [each for each in differ if n >= LEAST_PERIODS * each]
        stands_out = n >= 4 * WIDE and _stands_out(np.asarray(np.abs(fft.rfft(values)) ** 2)[1:])
        if not usual and not stands_out:
            continue
        periods = range(2, min(n // LEAST_PERIODS, MOST_PERIOD) + 1)
        explained = np.asarray([_explained(values, places_of(n, period)) for period in periods])
        best = int(explained.argmax())
        share = explained / explained[best]
        divisors = (round(periods[best] / parts) for parts in range(periods[best] // 2, 0, -1))
        period = next(
            each
            for each in divisors
            if share[each - 2] >= (AS_MUCH if each >= FEWEST_CASES or each in usual else ALL)
        )
        if not stands_out and period not in usual:
            continue
        if not _lasts([values], places_of(n, period), np.arange(n)):
            continue
        means = means_of(values, np.arange(n) % period * FEWEST_CASES // period)
        if period < FEWEST_CASES or np.asarray(np.corrcoef(means, np.roll(means, 1)))[0, 1] >= SMOOTH:
            return period
    return 0


def places_of(n: int, period: int) -> IntArray:
    """Return the place of each of n samples in a period; neighboring places are one where there are many."""
    width = max(math.ceil(period * PER_PLACE / n), math.ceil(period / MOST_PLACES))
    return np.asarray(np.arange(n) % period // width)


def _stands_out(power: FloatArray) -> bool:
    """Return whether one of these frequencies, not the lowest, is much stronger than those around it."""
    around: FloatArray = np.lib.stride_tricks.sliding_window_view(
        np.pad(power, WIDE, mode="symmetric"), 2 * WIDE + 1
    )
    apart = np.abs(np.arange(-WIDE, WIDE + 1))
    usual = np.median(around[:, apart >= NEAR[0]], axis=1) / math.log(2)
    near = around[:, (apart >= NEAR[0]) & (apart <= NEAR[1])].mean(axis=1)
    strongest = power / np.maximum(np.maximum(usual, near), 1e-300)
    return bool(strongest[LEAST_PERIODS - 1 :].max() > OF_NOISE)


def _explained(values: FloatArray, place: IntArray) -> float:
    """Return the squares that the means of places explain, beyond those that noise does, over its variance."""
    size = np.bincount(place)
    between = float(np.square(means_of(values, place)) @ size)
    noise = (inner(values, values) - between) / (len(values) - len(size))
    return between / max(noise, 1e-300) - len(size) + 1


def _lag_one(values: FloatArray) -> float:
    centred = values - values.mean()
    square = inner(centred, centred)
    return inner(centred[1:], centred[:-1]) / square if square else 0.0


def _of_largest(values: FloatArray) -> float:
    """Return the autocorrelation that a single pair makes where so few are large as vary as much."""
    centred = values - values.mean()
    square = inner(centred, centred)
    return float(np.square(centred * centred / square).sum()) if square else 0.0


PER_BLOCK, MOST_NUMBERS = 512, 1 << 20
"""Samples kept in each of at most 127 blocks, at most 65,024, and probabilities kept of all."""
RUN_BITS = 3
"""Log2 of the number of neighbors that are kept together."""
MULTIPLIERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


def halvings_for(samples: int, classes: int = 1) -> int:
    """Return k for so many samples, of which one in 2^k is kept; fewer where each holds many probabilities.

    >>> [halvings_for(n) for n in (1000, 127 * 512, 127 * 512 + 1, 1_000_000)]
    [0, 0, 1, 4]
    >>> halvings_for(1_000_000, classes=10), halvings_for(1_000_000, classes=1000)
    (4, 10)
    """
    of_numbers = math.ceil(samples * classes / MOST_NUMBERS) - 1
    return max(max(block_length(samples) // PER_BLOCK, 1).bit_length() - 1, max(of_numbers, 0).bit_length())


def chosen(first: int, count: int, halvings: int) -> IntArray:
    """Return the places that are kept among so many from the first on, in their order."""
    last = first + count - 1
    run = np.arange(first >> halvings + RUN_BITS, (last >> halvings + RUN_BITS) + 1)
    for level in range(halvings, 0, -1):
        run = 2 * run + child(run, level)
    place = ((run[:, None] << RUN_BITS) + np.arange(1 << RUN_BITS)).reshape(-1)
    return np.asarray(place[(first <= place) & (place <= last)])


def child(node: IntArray, level: int) -> IntArray:
    """Return which child of each node is kept, 0 or 1."""
    state = (node.astype(np.uint64) + np.uint64(level << 48)) * MULTIPLIERS[0]
    state = (state ^ (state >> np.uint64(31))) * MULTIPLIERS[1]
    return np.asarray(state >> np.uint64(63)).astype(np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class InOrder(ABC):
    """Samples that count, in the order in which they were given; copies, so that the caller may reuse its arrays.

    Attributes
    ----------
    group : array of int, shape (n,), or None
        Number of each sample's group, where groups were given.
    independent : bool
        Whether the caller decided that samples are independent.
    shape : tuple of int
        Shape of the input.
    valid : bool array of this shape, or None
        Which of its samples count.
    spatial : bool
        Whether the last two axes of the shape are those of a map.
    """

    group: IntArray | None
    independent: bool
    shape: tuple[int, ...]
    valid: Any
    spatial: bool
    by: tuple[tuple[str, ...], IntArray] | None = None
    """Names of the labels of ``by=``, and the place of each sample's label among them."""
    case: IntArray | None = None
    """Number of each sample's case, where the shape of the input is not known."""
    total: int | None = None
    """Number of all samples, if these are only some of them, evenly spread."""
    clock: IntArray | None = None
    """Time of each sample, in steps, if the groups given are blocks of a series, in the order of their numbers."""
    step: int = 1
    """The shape is that of every so many-th row and column of the maps given."""
    recur: str = ""
    """After how many samples errors recur, if their place in that period is what labels them; else ""."""

    @property
    def keep(self) -> Any:
        """Places of the samples that count in the input, in C order."""
        return slice(None) if self.valid is None else self.valid.reshape(-1)

    def units(self, dependence: Dependence | None) -> IntArray | None:
        """Return the number of each sample's group, given or found."""
        return self.group if dependence is None else dependence.group

    @property
    def ordered(self) -> bool:
        """Whether the groups given are blocks of a series."""
        return self.clock is not None

    def in_order(self, dependence: Dependence | None) -> bool:
        """Return whether groups, given or found, are blocks of a series."""
        return self.ordered if dependence is None else dependence.kind == "blocks"

    @property
    def is_series(self) -> bool:
        """Whether samples may be in an order in time."""
        return len(self.shape) == 1 and not self.total and (self.group is None or self.ordered)

    @property
    def recurring(self) -> IntArray | None:
        """Labels so few, or that come back so often, that what they share is not that of neighbors; else None."""
        if self.by is None:
            return None
        are_many = int(self.by[1].max()) + 1 >= FEWEST_CASES
        return None if self.in_stretches and not self.recur and are_many else self.by[1]

    @property
    def in_stretches(self) -> bool:
        """Whether labels are stretches of the samples."""
        if self.by is None:
            return False
        return bool(np.count_nonzero(np.diff(self.by[1])) < OFTEN * (self.by[1].max() + 1))

    @cached_property
    def sets(self) -> list[tuple[list[str], IntArray]]:
        """Names and place of each sample's label, of each set but those of the truth; without labels, areas."""
        if self.by is None:
            return self.areas()
        names, joint = self.by
        sets = ((own, place[joint]) for own, place in sets_of(names))
        return [(own, label) for own, label in sets if not self.are_of_truth(own, label)]

    def areas(self) -> list[tuple[list[str], IntArray]]:
        """Return bands of rows and of columns, and places along short axes, as labels of the samples of an array.

        There are none where its shape is not known.
        """
        if self.case is not None:
            return []
        of_maps, made = {len(self.shape) - 2: "rows", len(self.shape) - 1: "columns"}, []
        for axis, place in enumerate(_along_axes(self.shape, self.keep)):
            size, is_of_map = self.shape[axis], self.spatial and axis in of_maps
            if is_of_map and min(self.shape[-2:]) >= LEAST_SIDE:
                band, label = dense(place * BANDS // size)
                ends = [self.step * -(-k * size // BANDS) for k in range(BANDS + 1)]
                made.append(([f"{of_maps[axis]}: {ends[k]}:{ends[k + 1]}" for k in band], label))
            elif axis and not is_of_map and 1 < size <= MOST_AXIS:
                index, label = dense(place)
                made.append(([f"axis {axis}: index {k}" for k in index], label))
        return made

    @abstractmethod
    def are_of_truth(self, names: Sequence[str], label: IntArray) -> bool:
        """Return whether labels are made of the truth."""

    @property
    def of_truth(self) -> bool:
        """Whether a set of labels is left out, as it is made of the truth."""
        return self.by is not None and len(self.sets) < len(sets_of(self.by[0]))

    def is_crossed(self, dependence: Dependence | None, errors: FloatArray) -> bool:
        """Return whether samples at equal places of different groups are alike, as those of the same date are.

        What labels share is their own.
        """
        if dependence is not None:
            return dependence.kind == "crossed"
        if self.group is None or self.ordered or len(self.shape) != 1 or self.total:
            return False
        order, size = np.argsort(self.group, kind="stable"), np.bincount(self.group)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order)) - np.repeat(np.cumsum(size) - size, size)
        is_shared = np.bincount(place) >= FEWEST_CROSSED
        if np.mean(is_shared[place]) < SORTED or np.count_nonzero(is_shared) < FEWEST_CROSSED:
            return False
        errors = errors if self.by is None else without_labels(errors, self.by[1])
        within = errors - means_of(errors, self.group)[self.group]
        return worth_of([within], place)[1] < CROSSED and _p_across(within, self.group, place) < AT_ANY_RATE

    def in_sequence(self, errors: FloatArray, also: Sequence[FloatArray]) -> bool:
        """Return whether each group has errors like the one before, as dates have, unless a column sorts them."""
        if self.group is None or self.ordered or self.total:
            return False
        first = np.unique(self.group, return_index=True)[1]
        if len(first) < FEWEST_FOLLOWING:
            return False
        errors = errors if self.by is None else without_labels(errors, self.by[1])
        means = [means_of(each, self.group)[np.argsort(first)] for each in (errors, *also)]
        is_sorted = any(are_sorted(each) for each in means[1:])
        return not is_sorted and _lag_one(without_trend(means[0])) > FOLLOWING / math.sqrt(len(first))

    def with_season(self, *errors: FloatArray, sizes: bool = False) -> Self:
        """Label samples in which nobody labelled anything by their places in a period after which errors recur.

        With ``sizes``, those of the errors may recur too.
        """
        in_order = self.group is None or self.ordered
        if not in_order or self.by is not None or self.independent or self.case is not None or self.total:
            return self
        is_known = all(np.isfinite(inner(each, each)) for each in errors)
        for unit, at in self._times() if is_known else ():  # else beyond float64
            first = np.flatnonzero(at < MOST_IN_ORDER)
            first = first[some_of(len(first), MOST_LOOKED)]
            held, known = np.bincount(at[first]), [each[first] for each in errors]
            known += [clipped(each) for each in known] * sizes
            means = [np.where(held > 0, means_of(each, at[first]), each.mean()) for each in known]
            if period := find_season(means):
                place = places_of(int(at.max()) + 1, period)
                ends = np.append(np.unique(place, return_index=True)[1], period).tolist()
                used, own = np.unique(place[at], return_inverse=True)
                names = (f"{ends[k]}" + f":{ends[k + 1]}" * (ends[k + 1] > ends[k] + 1) for k in used)
                about = "about " * (period > MOST_PLACES)
                return replace(self, by=(tuple(names), own), recur=f"{about}every {period} {unit}")
        return self

    def _times(self) -> Iterator[tuple[str, IntArray]]:
        """Yield what may be the times of the samples: the clock, else the first axis, or the second of two."""
        if self.clock is not None:
            yield "steps", self.clock - self.clock.min()
            return
        units = ("rows", "columns")[: len(self.shape)] if len(self.shape) < 3 else ("cases",)
        yield from zip(units, _along_axes(self.shape, self.keep), strict=False)

    def alike(
        self, z: FloatArray, also: Sequence[FloatArray] = (), sizes: FloatArray | None = None
    ) -> Dependence:
        """Find out which samples belong together from the order and the shape in which they were given.

        Parameters
        ----------
        z : array, shape (n,)
            Standardized errors.
        also : sequence of array, shape (n,)
            What one-dimensional data may be sorted by: truth, prediction and standard deviation.
        sizes : array, shape (n,), optional
            Sizes of errors, alike where errors of any sign are large; by default clipped absolute values.
        """
        shape, case, keep = self.shape, self.case, self.keep
        lead = shape[:-2] if self.spatial else shape[:1]
        lead = lead[:1] if math.prod(lead[:1]) >= FEWEST_CASES else lead  # channels of an image are alike
        cases = math.prod(lead) if case is None else int(case.max()) + 1
        scores = (z, clipped(z) if sizes is None else sizes)
        if len(shape) == 2 and (found := _of_table(scores, shape, keep, spatial=self.spatial)) is not None:
            return found
        size = math.prod(shape) if case is None else 0
        own = (np.repeat(np.arange(cases), math.prod(shape[len(lead) :])) if case is None else case)[keep]
        if self.spatial and cases > 1 and also and _share_pixels(also[0], z, own, cases):
            return Dependence("repeats", None, float(cases), True)
        if (len(shape) > 1 or case is not None) and cases >= FEWEST_CASES:
            if not _cases_follow(scores, own, cases, keep, size):
                return _of_cases(scores, own, cases)
            found = _in_blocks(scores, own, cases)
            if found.kind == "too few" and self.spatial and size and len(shape) == 3:
                boxes = _of_maps(scores, (cases, shape[-2], shape[-1]), keep, is_volume=True)
                return found if boxes.group is None else boxes
            return found
        if self.spatial and case is not None:
            return Dependence("few maps", None, float(cases), True)
        if self.spatial:
            found = _of_maps(scores, (cases, shape[-2], shape[-1]), keep)
            return (found.group is None and len(shape) == 2 and _of_apart(scores, shape, keep)) or found
        return _of_series(scores, also)


@dataclass(frozen=True, eq=False)
class Samples(InOrder):
    """Samples of a regression.

    Attributes
    ----------
    rows : dict of array, shape (n,)
        ``target``, ``mean``, ``std`` and what else the statistics are made of.
    members : int or None
        Number of members, if the standard deviation is the spread of their means alone.
    """

    rows: Mapping[str, Any]
    members: int | None = None

    @classmethod
    def of(cls, data: Any, statistics: Any, kept: Mapping[str, Any] | None = None) -> Samples | None:
        """Take the ``kept`` rows of predictions, or copy them; None where they have no mean."""
        rows = data.rows() if kept is None else kept
        if statistics.task != "regression" or "mean" not in rows:
            return None
        copied = {name: np.array(column) for name, column in rows.items()} if kept is None else kept
        return cls(copied, members_of(data), shape=data.shape, valid=data.valid, **beside(data, data.select))

    def in_season(self) -> Samples:
        """Label samples by their places in a period after which errors, or their sizes, recur."""
        return self.with_season(self.z(), sizes=True)

    def quarters(self, dependence: Dependence | None) -> tuple[list[str], IntArray, IntArray] | None:
        """Return names of independent maps, and the map and the quarter of each sample.

        None unless sizes of errors are alike over less than a third of a quarter, and maps are not wrong as a whole.
        """
        is_whole = self.spatial and len(self.shape) == 3 and self.by is None
        if not is_whole or dependence is None or dependence.kind != "cases":
            return None
        case, row, column = _along_axes(self.shape, self.keep)
        maps, z = np.full(self.shape, np.nan), self.z()
        maps.reshape(-1)[self.keep] = without_labels(clipped(z), case)
        if is_slow(z, case) or min(maps.shape[1:]) < 2 * SIDE * correlation_reach(maps):
            return None
        quarter = 4 * case + 2 * (2 * row // maps.shape[1]) + 2 * column // maps.shape[2]
        index, place = dense(case)
        return [f"map {k}" for k in index], place, dense(quarter)[1]

    @override
    def are_of_truth(self, names: Sequence[str], label: IntArray) -> bool:
        return are_intervals(label, self.rows["target"]) and not are_intervals(label, self.rows["mean"])

    def z(self) -> FloatArray:
        """Return the errors in standard deviations, or, where some are 0, the errors."""
        target, mean, std = (self.rows[name] for name in ("target", "mean", "std"))
        error = target.astype(np.float64) - mean
        return np.asarray(error / std if np.all(std > 0) else error)

    def slow_in_spells(self) -> bool | None:
        """Return whether stds change slowly where large errors, of any sign, follow large ones; else None."""
        if not self.is_series or self.independent or self.recur:
            return None
        z = self.z() if self.by is None else without_labels(self.z(), self.by[1])
        time = slice(None) if self.clock is None else np.argsort(self.clock, kind="stable")
        by_size = _lag_one(without_trend(clipped(z[time])))
        are_alike = by_size > max(ALIKE, 3.5 / math.sqrt(len(z)), abs(_lag_one(z[time])))
        return _lag_one(self.rows["std"][time]) > SLOW if are_alike else None

    def dependence(self, *, within: IntArray | None = None) -> Dependence | None:
        """Find out which samples belong together; None where groups were given, or independence was decided.

        ``within`` labels, whose means and sizes may differ.
        """
        if self.group is not None or self.independent:
            return None
        within = self.recurring if within is None else within  # sites in turn are alike every so often
        target, mean, std = (self.rows[name] for name in ("target", "mean", "std"))
        z = self.z() if within is None else without_labels(self.z(), within)
        found = self.alike(z, (target, mean, std, np.abs(target - mean)))
        is_free, is_flat = found.kind in ("independent", "sorted"), len(self.shape) == 1
        copies = find_copies(std, target, mean) if is_free or is_flat else None
        if not is_free:  # unless neighbors are alike as copies only
            if copies is None or copies.group is None:
                return found
            first = z[np.sort(np.unique(copies.group, return_index=True)[1])]
            if _of_series((first, clipped(first))).kind != "independent":
                return found
        return copies or _of_repeats((z, clipped(z)), mean) or found

    def units_of_labels(self, label: IntArray) -> IntArray | None:
        """Return units to judge labels by: of an order, as many blocks as the memory of a label's errors leaves."""
        if self.ordered and self.total and not self.recur:
            return self.group
        if self.recur or self.total or not (self.ordered or self.in_stretches):
            return self.units(replace(self, group=None).dependence(within=label))
        time = np.arange(len(label)) if self.clock is None else dense(self.clock)[1]
        z, times = without_labels(self.z(), label), int(time.max()) + 1
        scores = (z, clipped(z))
        if len(label) > times and worth_of(scores, time)[1] < SWITCH:  # labels share what happens at a time
            return self.group
        order = np.lexsort((time, label))
        reach = max(_memory(score[order], label[order]) for score in scores)
        block = time * max(int(times / (SIDE * reach)), FEWEST_BLOCKS) // times
        return dense(label * len(label) + block)[1] if self.in_stretches else block

    def grouped(self, statistics: Statistics, group: IntArray) -> Statistics:
        """Return the statistics with these groups; those of the samples alone, where they are not all."""
        layout, facts = statistics.layout, statistics.facts
        if self.total is not None:  # of others, the group is not known
            statistics = Statistics.exact(layout, self.rows, facts=facts)
        orders = {**layout.orders, "std": ("std", "std2", "sq_error"), "z": ("z", "z2")}  # what is read
        del orders["abs_error"]
        tally, names = GroupTally(layout, facts, orders=orders), range(int(group.max()) + 1)
        return replace(statistics, groups=count_groups(tally, names, [{**self.rows, "codes": group}]))


def beside(data: Any, select: Callable[[Any], Any]) -> dict[str, Any]:
    """Return what predictions know of the samples selected: clock, groups, labels, and whether they are maps."""
    by = None if data.by is None else data.label_codes("by")
    return {
        "clock": None if data.clock is None else select(data.clock),
        "group": None if data.groups is None else select(data.label_codes("groups")[1]),
        "independent": data.independent,
        "spatial": looks_spatial(data.shape),
        "by": by and labels_of(plain_labels(by[0]), select(by[1])),
    }


def labels_of(names: Sequence[Any], place: IntArray) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the labels that samples have, and the place of each sample's label among them."""
    used, own = np.unique(place, return_inverse=True)
    return tuple(str(names[each]) for each in used), own


def members_of(data: Any) -> int | None:
    """Return the number of members, if standard deviations are the spread of their means alone."""
    alone = isinstance(data.form, MeanStd) and data.form.member_std is None
    return len(data.form.samples) if alone and data.form.samples is not None else None
