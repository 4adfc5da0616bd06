"""Convert class scores to probabilities, one piece of the samples at a time, so nothing large is copied to float64.

Sums over classes add their terms in ascending order, so renaming the classes does not change a bit of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs.convert import AnyArray
from uq_tracking.inputs.convert import FloatArray as AnyFloats

Floats = npt.NDArray[np.float64]
Place = tuple[Any, ...]
"""An index of slices and integers that selects a piece of an array of the samples' shape."""

Transform = Callable[[Floats], Floats]

PIECE = 1 << 18
"""Probabilities processed at a time: two megabytes of float64."""


class Rows(NamedTuple):
    """Probabilities of some samples."""

    labels: npt.NDArray[np.int64]
    """Shape (n,)."""
    probs: Floats
    """Shape (n, C)."""
    log_chosen: Floats
    """Log probability of the label; from logits it is finite even if the probability underflows."""


@dataclass(frozen=True, eq=False)
class ClassScores:
    """A classifier's output: probabilities or logits, from one model or several members.

    Attributes
    ----------
    values : float array, shape (M, ..., C)
        M is 1 for a single model. There is no axis C for a binary classifier with one number per sample.
    logits, binary : bool
    transform : callable, optional
        Transforms the log probabilities, shape (n, C), as a recalibration does.
    """

    values: AnyFloats
    logits: bool = False
    binary: bool = False
    transform: Transform | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the samples."""
        return self.values.shape[1:] if self.binary else self.values.shape[1:-1]

    @property
    def n_classes(self) -> int:
        """Number of classes, 2 for a binary classifier."""
        return 2 if self.binary else self.values.shape[-1]

    def places(self) -> Iterator[Place]:
        """Pieces of manageable size, in C order."""
        return places(self.shape, max(PIECE // self.n_classes, 1))

    def members(self, place: Place) -> Iterator[Floats]:
        """Each member's scores of a piece in turn, shape (n, C), or (n,) for a binary classifier."""
        for member in self.values:
            piece = np.asarray(member[place], dtype=np.float64)
            yield piece.reshape(-1) if self.binary else piece.reshape(-1, self.n_classes)

    def probabilities(self, place: Place) -> Floats:
        """Probabilities of a piece, shape (n, C)."""
        if not self.logits and self.transform is None:
            return self._mean_probabilities(place)
        return np.exp(self.logarithms(place))

    def rows(self, labels: npt.NDArray[np.int64], place: Place, keep: AnyArray | None) -> Rows:
        """Probabilities of a piece's samples selected by ``keep``; ``labels`` are theirs."""
        if not self.logits and self.transform is None:
            probs = _kept(self._mean_probabilities(place), keep)
            with np.errstate(divide="ignore"):
                return Rows(labels, probs, np.log(chosen(probs, labels)))
        logs = _kept(self.logarithms(place), keep)
        return Rows(labels, np.exp(logs), chosen(logs, labels))

    def _mean_probabilities(self, place: Place) -> Floats:
        parts = self.members(place)
        total = next(parts).copy()
        for part in parts:
            total += part
        total /= len(self.values)
        return np.stack([1 - total, total], axis=1) if self.binary else total

    def logarithms(self, place: Place) -> Floats:
        """Log probabilities; for ensembles, of the mean probability."""
        with np.errstate(divide="ignore", invalid="ignore"):  # left-out samples may hold anything
            if not self.logits:
                logs = np.log(self._mean_probabilities(place))
            else:
                parts = [log_softmax(self._pair(part)) for part in self.members(place)]
                logs = np.logaddexp.reduce(parts) - math.log(len(parts)) if len(parts) > 1 else parts[0]
            return logs if self.transform is None else self.transform(logs)

    def _pair(self, logits: Floats) -> Floats:
        """Logits of both classes of a binary classifier, with 0 for class 0."""
        return np.stack([np.zeros_like(logits), logits], axis=1) if self.binary else logits


def chosen(values: Floats, labels: npt.NDArray[np.int64]) -> Floats:
    """The value of each row, shape (n, C), at its label."""
    return np.asarray(values[np.arange(len(labels)), labels])


def log_softmax(logits: Floats) -> Floats:
    """Log of ``softmax(logits)`` over the last axis; a logit of minus infinity has probability 0."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(ascending(np.exp(shifted)).sum(axis=1, keepdims=True)))


def ascending(rows: Floats) -> Floats:
    """Each row sorted, in a fresh array."""
    if rows.shape[1] == 2:
        first, second = rows[:, 0], rows[:, 1]
        return np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1)
    return np.sort(rows, axis=1)


def places(shape: Sequence[int], size: int) -> Iterator[Place]:
    """Indices that split an array of this shape into pieces of at most ``size`` samples, in C order.

    >>> list(places((2, 3, 4), 8))
    [(0, slice(0, 2, None)), (0, slice(2, 4, None)), (1, slice(0, 2, None)), (1, slice(2, 4, None))]
    """
    inner = math.prod(shape[1:])
    if inner <= size:
        step = size // max(inner, 1)
        yield from ((slice(start, start + step),) for start in range(0, shape[0], step))
        return
    for first in range(shape[0]):
        yield from ((first, *rest) for rest in places(shape[1:], size))


def _kept(rows: Floats, keep: AnyArray | None) -> Floats:
    return rows if keep is None else rows[keep]


def sample_columns(rows: Rows) -> dict[str, npt.NDArray[Any]]:
    """One minus the confidence, correctness, entropy, Brier score, pair of classes and log score of each sample.

    Sums run over ascending terms, so rows with the same probabilities in another order tie exactly. The Brier score
    is summed as ``(1 - p_y)^2`` and the squares of the others, which keeps its precision when it is tiny.
    """
    predicted = rows.probs.argmax(axis=1)
    order = ascending(rows.probs)
    at_label = chosen(rows.probs, rows.labels)
    top = order[:, -1].copy()
    brier = np.square(1 - at_label) + _squares_without(order, at_label)
    with np.errstate(divide="ignore"):
        logs = np.log(order)
    logs[order == 0] = 0.0
    entropy = -np.einsum("ij,ij->i", order, logs)
    return {
        "one_minus_confidence": np.maximum(1 - top, 0.0),
        "correct": predicted == rows.labels,
        "entropy": np.maximum(entropy, 0.0),
        "brier": brier,
        "pair": rows.labels * rows.probs.shape[1] + predicted,
        "log_chosen": rows.log_chosen,
    }


def _squares_without(order: Floats, values: Floats) -> Floats:
    """Sum of squares of each row, except one entry with the given value."""
    others = order.copy()
    others[np.arange(len(others)), (others == values[:, None]).argmax(axis=1)] = 0.0
    return np.asarray(np.einsum("ij,ij->i", others, others))
