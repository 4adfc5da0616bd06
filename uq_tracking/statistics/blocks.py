"""Sums of losses over blocks of consecutive samples: what a paired comparison needs of a run, in some 30 KB.

There are 64 to 127 blocks of equal, dyadic length, or one per sample if there are fewer. When they become too many,
neighbors merge, so the length depends on the number of samples only, and a stream needs no number in advance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs.fingerprint import hashes, with_column
from uq_tracking.npz import Arrays, prefixed, under
from uq_tracking.parallel import BLOCK, map_threads
from uq_tracking.settings import Settings
from uq_tracking.statistics.layout import Layout, Rows, joined_rows, row_count
from uq_tracking.statistics.weights import WEIGHT

MOST = 127
"""Blocks of a run; more are merged two by two."""

FIRST = 256
"""Samples that are summed first; their sums, two by two."""

LOWEST = 64
"""Hashes of targets, and of samples, that show which of them runs have in common."""

FloatArray = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]


def block_length(samples: int) -> int:
    """Return the dyadic length of the blocks of so many samples.

    >>> [block_length(n) for n in (100, 127, 128, 1_000_000)]
    [1, 1, 2, 8192]
    """
    return 1 << max(math.ceil(samples / MOST) - 1, 0).bit_length()


@dataclass(frozen=True, eq=False)
class Blocks:
    """Sums of losses over blocks of consecutive samples.

    Attributes
    ----------
    length : int
        Samples in every block but the last; of several processes, the most in any.
    names : tuple of str
        Names of the losses.
    sums : array, shape (losses + 1, blocks)
        Sum of each loss, and of the weights.
    targets : array of uint64, shape (blocks,)
        Sum of the hashes of the targets: equal for two runs on the same targets.
    lowest : array of uint64, shape (2, hashes)
        The lowest hashes of targets, and of targets with their losses, each as often as it occurs.
    """

    length: int
    names: tuple[str, ...]
    sums: FloatArray
    targets: Hashes
    lowest: Hashes

    def loss(self, name: str) -> FloatArray | None:
        """Sum of a loss in every block; None without it."""
        return self.sums[self.names.index(name)] if name in self.names else None

    def has_targets_of(self, other: Blocks) -> bool:
        """Whether both are of the same targets in the same order, and cut alike."""
        return np.array_equal(self.targets, other.targets)

    def has_weights_of(self, other: Blocks) -> bool:
        """Whether the blocks of both weigh alike, as shares of all."""
        mine, theirs = (each.sums[-1] / each.sums[-1].sum() for each in (self, other))
        return np.allclose(mine, theirs, rtol=1e-9, atol=0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; hashes as text, since JSON has no integers of 64 bits."""
        return {
            "length": self.length,
            "targets": [f"{target:016x}" for target in self.targets.tolist()],
            "sums": dict(zip((*self.names, WEIGHT), self.sums.tolist(), strict=True)),
            "lowest": [[f"{value:016x}" for value in part] for part in self.lowest.tolist()],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Blocks:
        """Inverse of ``to_dict``; ValueError, TypeError or KeyError for anything else."""
        *names, weight = values["sums"]
        sums = np.asarray(list(values["sums"].values()), dtype=np.float64)
        targets = np.asarray([int(target, 16) for target in values["targets"]], dtype=np.uint64)
        lowest = [[int(value, 16) for value in part] for part in values.get("lowest", ((), ()))]
        if weight != WEIGHT or sums.shape != (len(names) + 1, targets.size) or len(lowest) != len(NO_HASHES):
            raise ValueError("the sums of losses do not fit together")
        return cls(int(values["length"]), tuple(names), sums, targets, np.asarray(lowest, dtype=np.uint64))


NO_HASHES = np.zeros((2, 0), dtype=np.uint64)


def _lowest(*parts: Hashes) -> Hashes:
    """Return the lowest hashes of each row of these arrays."""
    joined = np.concatenate(parts, axis=1)
    if joined.shape[1] > LOWEST:
        joined = np.partition(joined, LOWEST - 1, axis=1)[:, :LOWEST]
    return np.sort(joined, axis=1)


class BlockCounter:
    """Counts samples, in their order, into blocks.

    Parameters
    ----------
    layout, facts
        What the samples are.
    settings : Settings
        How their losses are computed.
    place : (int, int), optional
        Length of the blocks and position of the first sample, if parts are counted apart and then merged.
    """

    def __init__(
        self,
        layout: Layout,
        facts: Mapping[str, Any],
        settings: Settings,
        place: tuple[int, int] | None = None,
    ) -> None:
        self._layout, self._facts, self._settings = layout, facts, settings
        self._is_placed = place is not None
        self.length, self._end = place or (1, 0)
        """Samples in a block, and the position of the next sample."""
        self._first = self._end // self.length
        self._names: tuple[str, ...] | None = None
        self._sums, self._targets = np.zeros((1, 0)), np.zeros(0, dtype=np.uint64)
        """As of `Blocks`, from block ``_first`` on; the last one may still grow."""
        self._lowest = NO_HASHES
        self._waiting: list[Rows] = []

    def add(self, rows: Rows) -> None:
        """Add validated samples; the last of them wait, as copies, until there are enough."""
        size, at = row_count(rows), 0
        if not size:
            return
        if self._names is None:
            first = {name: column[:1] for name, column in rows.items()}
            self._names = tuple(self._layout.losses(first, self._settings))
            self._sums = np.zeros((len(self._names) + 1, 0))
        pieces: list[tuple[int, list[Rows]]] = []
        start = self._end - sum(map(row_count, self._waiting))
        while at < size:
            room = min(BLOCK - self._end % BLOCK, size - at)
            self._waiting.append({name: column[at : at + room] for name, column in rows.items()})
            at, self._end = at + room, self._end + room
            if self._end % BLOCK == 0:
                pieces.append((start, self._waiting))
                self._waiting, start = [], self._end
        if self._waiting:
            self._waiting[-1] = {name: column.copy() for name, column in self._waiting[-1].items()}
        self._count(pieces)

    def _count(self, pieces: Sequence[tuple[int, list[Rows]]]) -> None:
        """Count stretches of samples that begin at these positions."""
        while not self._is_placed and math.ceil(self._end / self.length) > MOST:
            self._double()
        with np.errstate(all="ignore"):  # what is not finite is not compared
            found = map_threads(lambda piece: self._summed(piece[0], joined_rows(piece[1])), pieces)
        for (start, _), (sums, targets, lowest) in zip(pieces, found, strict=True):
            self._put(start // self.length, sums, targets)
            self._lowest = _lowest(self._lowest, lowest)

    def _summed(self, start: int, rows: Rows) -> tuple[FloatArray, Hashes, Hashes]:
        """Sum losses, weights and hashes over blocks, or over all samples if a block is longer; the lowest hashes."""
        width, n, names = min(self.length, BLOCK), row_count(rows), self._names or ()
        at = slice(start % width, start % width + n)
        size = math.ceil(at.stop / width) * width
        losses, weight = self._layout.losses(rows, self._settings), rows.get(WEIGHT)
        sums, targets = np.zeros((len(names) + 1, size)), np.zeros(size, dtype=np.uint64)
        for place, name in enumerate(names):
            sums[place, at] = losses.get(name, np.nan)
        sums[-1, at] = 1.0
        if weight is not None:
            sums[:, at] *= weight
        lowest = NO_HASHES
        if names:
            targets[at] = own = hashes(self._layout.truth(rows, self._facts))
            known = (losses[name] for name in names[:2] if name in losses)
            lowest = _lowest(np.stack([own, reduce(with_column, known, own)]))
        base = min(width, FIRST)
        sums = sums.reshape(len(sums), -1, base).sum(axis=2)
        while sums.shape[1] > size // width:
            sums = sums[:, ::2] + sums[:, 1::2]
        return sums, targets.reshape(-1, width).sum(axis=1, dtype=np.uint64), lowest

    def _put(self, place: int, sums: FloatArray, targets: npt.NDArray[np.uint64]) -> None:
        """Add blocks, the first of which has this place among all, to those that are there."""
        first = min(self._first, place)
        size = max(self._first + self._targets.size, place + targets.size) - first

        def widened(values: npt.NDArray[Any], start: int) -> npt.NDArray[Any]:
            before = start - first
            return np.pad(values, ((0, 0), (before, size - before - values.shape[1])))

        self._sums = widened(self._sums, self._first) + widened(sums, place)
        self._targets = (widened(self._targets[None], self._first) + widened(targets[None], place))[0]
        self._first = first

    def _double(self) -> None:
        """Merge neighbors; a last one without may still grow."""
        odd = self._targets.size % 2
        sums, targets = np.pad(self._sums, ((0, 0), (0, odd))), np.pad(self._targets, (0, odd))
        self._sums, self._targets = sums[:, ::2] + sums[:, 1::2], targets[::2] + targets[1::2]
        self.length *= 2

    def _closed(self) -> BlockCounter:
        """Return a copy in which all samples are in blocks."""
        made = copy(self)
        if self._waiting:
            made._waiting = []
            made._count([(self._end - sum(map(row_count, self._waiting)), self._waiting)])
        return made

    def merge(self, other: BlockCounter) -> None:
        """Add those of another process behind these, or at their place if they have one."""
        if other._names is None:
            return
        if self._names is None:
            vars(self).update(vars(copy(other)), _waiting=list(other._waiting))
            return
        mine, added = self._closed(), other._closed()
        mine._lowest = _lowest(mine._lowest, added._lowest)
        known = added._names or ()
        missing = np.full(added._targets.size, np.nan)
        rows = [added._sums[known.index(name)] if name in known else missing for name in self._names]
        added._sums = np.stack([*rows, added._sums[-1]])
        if self._is_placed:
            mine._put(added._first, added._sums, added._targets)
            mine._end = max(mine._end, added._end)
        else:
            for shorter, longer in ((mine, added), (added, mine)):
                while shorter.length < longer.length:
                    shorter._double()
            mine._put(mine._targets.size, added._sums, added._targets)
            mine._end = mine._targets.size * mine.length
            mine._count([])
        vars(self).update(vars(mine))

    def finished(self) -> Blocks | None:
        """Return blocks of the losses that are finite everywhere; None if there are none."""
        made = self._closed()
        sums, targets = made._sums, made._targets
        names, filled = self._names or (), sums[-1] > 0
        finite = [place for place in range(len(names)) if np.isfinite(sums[place]).all()]
        if not finite or not np.isfinite(sums[-1]).all():
            return None
        kept = tuple(names[place] for place in finite)
        return Blocks(made.length, kept, sums[[*finite, -1]][:, filled], targets[filled], made._lowest)

    def to_arrays(self) -> Arrays:
        """Return plain arrays from which ``load`` continues."""
        place = (self.length, self._end, self._first, self._is_placed)
        return {
            "names": np.asarray(self._names or (), dtype=np.str_),
            "place": np.asarray(place, dtype=np.int64),
            "sums": self._sums,
            "targets": self._targets,
            "lowest": self._lowest,
            **prefixed("waiting", joined_rows(self._waiting)),
        }

    def load(self, arrays: Arrays) -> None:
        """Continue from what ``to_arrays`` returned, bit for bit as if never interrupted."""
        self.length, self._end, self._first = (int(value) for value in arrays["place"][:3])
        self._is_placed = bool(arrays["place"][3])
        self._sums, self._targets = arrays["sums"], arrays["targets"]
        self._lowest = arrays.get("lowest", NO_HASHES)
        self._names = tuple(arrays["names"].tolist()) if len(self._sums) > 1 else None
        waiting = under("waiting", arrays)
        self._waiting = [waiting] if waiting else []
