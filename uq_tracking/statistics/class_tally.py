"""From class probabilities to statistics: each sample's doubt, entropy and Brier score, counted piece by piece."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.inputs.probabilities import Floats, Rows, ascending, chosen
from uq_tracking.settings import Method
from uq_tracking.statistics.class_orders import add_columns, bucket_sums, exact_orders, finished
from uq_tracking.statistics.classification import Arrays, ClassificationStatistics
from uq_tracking.statistics.parallel import map_threads, worker_count

HALVED_ABOVE = 1 << 17
"""From this many float32 samples on, exact statistics hold entropies and Brier scores in float32."""


class ClassTally:
    """Counts class probabilities; ``statistics`` are those of everything so far.

    Parameters
    ----------
    n_classes : int
    exact : bool
        Keep four numbers of every sample, or only buckets of constant size.
    dtype : numpy dtype
        Of the kept entropies and Brier scores.
    """

    def __init__(self, n_classes: int, *, exact: bool, dtype: npt.DTypeLike = np.float64) -> None:
        self.confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
        self.dtype = np.dtype(dtype)
        self._kept: list[Arrays] | None = [] if exact else None
        self._sums = bucket_sums()
        self._losses: list[float] = []
        self._impossible = 0

    def add(self, rows: Rows) -> None:
        """Count a piece of samples."""
        if not len(rows.labels):
            return
        predicted = rows.probs.argmax(axis=1)
        np.add.at(self.confusion, (rows.labels, predicted), 1)
        possible = np.isfinite(rows.log_chosen)
        self._losses.append(-float(rows.log_chosen[possible].sum()))
        self._impossible += len(possible) - int(np.count_nonzero(possible))
        columns = sample_columns(rows, predicted)
        if self._kept is None:
            add_columns(self._sums, columns)
        else:
            halved = {name: columns[name].astype(self.dtype) for name in ("entropy", "brier")}
            self._kept.append({**columns, **halved})

    def absorb(self, statistics: ClassificationStatistics) -> None:
        """Add samples counted elsewhere; exact ones to an exact tally, a sketch to a sketch."""
        self.confusion += statistics.confusion
        self._losses.append(statistics.log_loss)
        self._impossible += statistics.n_impossible
        if self._kept is not None:
            self._kept.append(statistics.columns())
            return
        for name, sums in self._sums.items():
            sums.absorb(getattr(statistics.sketched(), f"by_{name}"))

    def statistics(self, counts: Mapping[str, int] | None = None) -> ClassificationStatistics:
        """Statistics of everything counted; ``counts`` says what was left out before."""
        orders = finished(self._sums) if self._kept is None else exact_orders(self._joined())
        loss = math.fsum(self._losses)
        return ClassificationStatistics.of_orders(
            orders, self.confusion.copy(), loss, self._impossible, counts or {}
        )

    def _joined(self) -> Arrays:
        kept = self._kept or [empty_columns()]
        self._kept = [{name: np.concatenate([part[name] for part in kept]) for name in kept[0]}]
        return self._kept[0]

    @classmethod
    def together(cls, tallies: list[ClassTally]) -> ClassTally:
        """One tally of what several counted, in their order; the first is reused."""
        first = tallies[0]
        for other in tallies[1:]:
            first.confusion += other.confusion
            first._losses += other._losses
            first._impossible += other._impossible
            if first._kept is not None:
                first._kept += other._kept or []
            else:
                for name, sums in other._sums.items():
                    first._sums[name].absorb(sums.grouped())
        return first


def tally(data: ClassPredictions, *, exact: bool) -> ClassificationStatistics:
    """Statistics of class predictions, each core counting its share of the pieces."""
    places = list(data.places())
    workers = max(min(worker_count(), len(places)), 1)
    edges = np.linspace(0, len(places), workers + 1).astype(int)
    halved = data.n >= HALVED_ABOVE and data.scores.values.dtype == np.float32

    def count(start: int, end: int) -> ClassTally:
        made = ClassTally(data.n_classes, exact=exact, dtype=np.float32 if halved else np.float64)
        for place in places[start:end]:
            made.add(data.rows(place))
        return made

    tallies = map_threads(lambda span: count(*span), itertools.pairwise(edges.tolist()))
    return ClassTally.together(tallies).statistics(data.counts)


def classification_statistics(
    labels: npt.ArrayLike, probs: npt.ArrayLike, *, method: Method = "exact", **options: Any
) -> ClassificationStatistics:
    """Statistics of labels, shape (N,), and probabilities, shape (N, C); options as for ``ClassPredictions``."""
    return tally(ClassPredictions(labels, probs, **options), exact=method != "sketch")


def sample_columns(rows: Rows, predicted: npt.NDArray[Any]) -> Arrays:
    """Doubt, correctness, entropy and Brier score of each sample.

    Sums run over ascending terms, so rows that hold the same probabilities in another order tie exactly. The Brier
    score is summed as ``(1 - p_y)^2`` and the squares of the others, which keeps its digits where it is tiny.
    """
    order = ascending(rows.probs)
    at_label = chosen(rows.probs, rows.labels)
    top = order[:, -1].copy()
    brier = np.square(1 - at_label) + _squares_without(order, at_label)
    with np.errstate(divide="ignore"):
        logs = np.log(order)
    logs[order == 0] = 0.0
    entropy = -np.einsum("ij,ij->i", order, logs)
    return {
        "doubt": np.maximum(1 - top, 0.0),
        "correct": predicted == rows.labels,
        "entropy": np.maximum(entropy, 0.0),
        "brier": brier,
    }


def _squares_without(order: Floats, values: Floats) -> Floats:
    """Sum of squares of each row but for one entry of the given value."""
    others = order.copy()
    others[np.arange(len(others)), (others == values[:, None]).argmax(axis=1)] = 0.0
    return np.asarray(np.einsum("ij,ij->i", others, others))


def empty_columns() -> Arrays:
    """Columns of no samples."""
    columns: Arrays = {name: np.empty(0) for name in ("doubt", "entropy", "brier")}
    return {**columns, "correct": np.empty(0, dtype=bool)}
