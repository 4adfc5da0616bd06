"""Sums of losses over blocks of consecutive samples: what a paired comparison needs of a run, in some 30 KB.

There are 64 to 127 blocks of equal, dyadic length, or one per sample if there are fewer. When they become too many,
neighbors merge, so the length depends on the number of samples only, and a stream needs no number in advance. Sums of
many samples are made of sums of halves, so that they do not depend on how a stream is cut into batches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs.fingerprint import hashes
from uq_tracking.npz import Arrays, prefixed, under
from uq_tracking.parallel import BLOCK, map_threads
from uq_tracking.settings import Settings
from uq_tracking.statistics.layout import Layout, Rows, joined_rows, row_count
from uq_tracking.statistics.weights import WEIGHT

MOST = 127
"""Blocks of a run; more are merged two by two."""

FIRST = 256
"""Samples that are summed first; their sums, two by two. No block of a whole piece of samples is shorter."""

FloatArray = npt.NDArray[np.float64]


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
    """

    length: int
    names: tuple[str, ...]
    sums: FloatArray
    targets: npt.NDArray[np.uint64]

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
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Blocks:
        """Inverse of ``to_dict``; ValueError, TypeError or KeyError for anything else."""
        *names, weight = values["sums"]
        sums = np.asarray(list(values["sums"].values()), dtype=np.float64)
        targets = np.asarray([int(target, 16) for target in values["targets"]], dtype=np.uint64)
        if weight != WEIGHT or sums.shape != (len(names) + 1, targets.size):
            raise ValueError("the sums of losses do not fit together")
        return cls(int(values["length"]), tuple(names), sums, targets)


Column = tuple[FloatArray, npt.NDArray[np.uint64]]
"""Sums and target hashes of blocks, shapes (losses + 1, blocks) and (blocks,)."""


def _joined(*columns: Column) -> Column:
    """One after the other."""
    sums, targets = zip(*columns, strict=True)
    return np.concatenate(sums, axis=1), np.concatenate(targets)


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
        self._done: Column = np.zeros((1, 0)), np.zeros(0, dtype=np.uint64)
        self._open: dict[int, Column] = {}
        """Sums of stretches of the open block, by the logarithm of their length."""
        self._waiting: list[Rows] = []

    def add(self, rows: Rows) -> None:
        """Add validated samples; the last of them wait, as copies, until there are enough."""
        size, at = row_count(rows), 0
        if not size:
            return
        if self._names is None:
            self._begin(rows)
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

    def _begin(self, rows: Rows) -> None:
        """Note which losses there are, and skip the part of the first block that others count."""
        first = {name: column[:1] for name, column in rows.items()}
        self._names = tuple(self._layout.losses(first, self._settings))
        nothing = np.zeros((len(self._names) + 1, 1)), np.zeros(1, dtype=np.uint64)
        self._done = nothing[0][:, :0], nothing[1][:0]
        for _ in range(self._end % self.length // BLOCK):
            self._push(nothing)

    def _count(self, pieces: Sequence[tuple[int, list[Rows]]]) -> None:
        """Count stretches of samples that begin at these positions."""
        while not self._is_placed and math.ceil(self._end / self.length) > MOST:
            self._double()
        with np.errstate(all="ignore"):  # what is not finite is not compared
            found = map_threads(lambda piece: self._summed(piece[0], joined_rows(piece[1])), pieces)
        if self.length <= BLOCK and found:
            self._done = _joined(self._done, *found)
            return
        for column in found:
            self._push(column)

    def _summed(self, start: int, rows: Rows) -> Column:
        """Sum losses, weights and hashes over blocks, or over all samples if a block is longer."""
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
        if names:
            targets[at] = hashes(self._layout.truth(rows, self._facts))
        base = min(width, FIRST)
        sums = sums.reshape(len(sums), -1, base).sum(axis=2)
        while sums.shape[1] > size // width:
            sums = sums[:, ::2] + sums[:, 1::2]
        return sums, targets.reshape(-1, width).sum(axis=1, dtype=np.uint64)

    def _push(self, column: Column, level: int = BLOCK.bit_length() - 1) -> None:
        """Add the sum of a stretch, and of longer ones that it completes."""
        while level in self._open:
            before = self._open.pop(level)
            column, level = (before[0] + column[0], before[1] + column[1]), level + 1
        if 1 << level < self.length:
            self._open[level] = column
            return
        self._done = _joined(self._done, column)

    def _double(self) -> None:
        """Merge neighbors; a last one without is open again."""
        sums, targets = self._done
        if targets.size % 2:
            self._open[self.length.bit_length() - 1] = sums[:, -1:], targets[-1:]
            sums, targets = sums[:, :-1], targets[:-1]
        self._done = sums[:, ::2] + sums[:, 1::2], targets.reshape(-1, 2).sum(axis=1, dtype=np.uint64)
        self.length *= 2

    def _closed(self) -> BlockCounter:
        """Return a copy in which all samples are in blocks."""
        made = copy(self)
        made._open = dict(self._open)
        start = self._end - sum(map(row_count, self._waiting))
        made._waiting = []
        made._count([(start, self._waiting)] if self._waiting else [])
        if made._open:
            rest: Column = made._open.pop(min(made._open))
            for level in sorted(made._open):
                before = made._open[level]
                rest = before[0] + rest[0], before[1] + rest[1]
            made._open = {}
            made._push(rest, made.length.bit_length() - 1)
        return made

    def merge(self, other: BlockCounter) -> None:
        """Add those of another process behind these, or at their place if they have one."""
        if other._names is None:
            return
        if self._names is None:
            vars(self).update(vars(copy(other)), _open=dict(other._open), _waiting=list(other._waiting))
            return
        mine, added = self._closed(), other._closed()
        known = added._names or ()
        missing = np.full(added._done[1].size, np.nan)
        rows = [added._done[0][known.index(name)] if name in known else missing for name in self._names]
        added._done = np.stack([*rows, added._done[0][-1]]), added._done[1]
        if self._is_placed:
            mine._place(added)
        else:
            for shorter, longer in ((mine, added), (added, mine)):
                while shorter.length < longer.length:
                    shorter._double()
            mine, added = mine._closed(), added._closed()
            mine._done = _joined(mine._done, added._done)
            mine._end = mine._done[1].size * mine.length
            mine._count([])
        vars(self).update(vars(mine))

    def _place(self, other: BlockCounter) -> None:
        """Add blocks at the places where they are among all."""
        first = min(self._first, other._first)
        size = max(part._first + part._done[1].size for part in (self, other)) - first
        sums, targets = np.zeros((len(self._done[0]), size)), np.zeros(size, dtype=np.uint64)
        for part in (self, other):
            at = slice(part._first - first, part._first - first + part._done[1].size)
            sums[:, at] += part._done[0]
            targets[at] += part._done[1]
        self._done, self._first, self._end = (sums, targets), first, max(self._end, other._end)

    def finished(self) -> Blocks | None:
        """Return blocks of the losses that are finite everywhere; None if there are none."""
        made = self._closed()
        sums, targets = made._done
        names, filled = self._names or (), sums[-1] > 0
        finite = [place for place in range(len(names)) if np.isfinite(sums[place]).all()]
        if not finite or not np.isfinite(sums[-1]).all():
            return None
        kept = tuple(names[place] for place in finite)
        return Blocks(made.length, kept, sums[[*finite, -1]][:, filled], targets[filled])

    def to_arrays(self) -> Arrays:
        """Return plain arrays from which ``load`` continues."""
        sums, targets = _joined(self._done, *self._open.values())
        place = (self.length, self._end, self._first, self._is_placed)
        return {
            "names": np.asarray(self._names or (), dtype=np.str_),
            "place": np.asarray(place, dtype=np.int64),
            "levels": np.asarray(list(self._open), dtype=np.int64),
            "sums": sums,
            "targets": targets,
            **prefixed("waiting", joined_rows(self._waiting)),
        }

    def load(self, arrays: Arrays) -> None:
        """Continue from what ``to_arrays`` returned, bit for bit as if never interrupted."""
        self.length, self._end, self._first = (int(value) for value in arrays["place"][:3])
        self._is_placed = bool(arrays["place"][3])
        names, sums, targets = (arrays[name] for name in ("names", "sums", "targets"))
        self._names = tuple(names.tolist()) if len(sums) > 1 else None
        levels = [int(level) for level in arrays["levels"]]
        done = targets.size - len(levels)
        self._done = sums[:, :done], targets[:done]
        for place, level in enumerate(levels, start=done):
            self._open[level] = sums[:, place : place + 1], targets[place : place + 1]
        waiting = under("waiting", arrays)
        self._waiting = [waiting] if waiting else []
