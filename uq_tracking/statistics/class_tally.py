"""From class probabilities to statistics: each sample's doubt, entropy and Brier score, counted piece by piece."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.inputs.probabilities import Floats, Place, Rows, ascending, chosen
from uq_tracking.settings import Method
from uq_tracking.statistics.class_groups import ClassGroupTally
from uq_tracking.statistics.class_orders import add_columns, bucket_sums, exact_orders, finished
from uq_tracking.statistics.classification import Arrays, ClassificationStatistics
from uq_tracking.statistics.grouped import IntArray
from uq_tracking.statistics.labelled import plain_labels
from uq_tracking.statistics.parallel import map_threads, worker_count
from uq_tracking.statistics.pools import Pooling

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

    Attributes
    ----------
    groups : ClassGroupTally
        Counts the samples that came with a group.
    """

    def __init__(self, n_classes: int, *, exact: bool, dtype: npt.DTypeLike = np.float64) -> None:
        self.confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
        self.dtype = np.dtype(dtype)
        self._kept: list[Arrays] | None = [] if exact else None
        self._sums = bucket_sums()
        self._losses: list[float] = []
        self._impossible = 0
        self.groups = ClassGroupTally(n_classes)

    def add(self, rows: Rows, codes: IntArray | None = None) -> None:
        """Count a piece of samples; ``codes`` are the numbers of their groups."""
        if not len(rows.labels):
            return
        predicted = rows.probs.argmax(axis=1)
        np.add.at(self.confusion, (rows.labels, predicted), 1)
        possible = np.isfinite(rows.log_chosen)
        self._losses.append(-float(rows.log_chosen[possible].sum()))
        self._impossible += len(possible) - int(np.count_nonzero(possible))
        columns = sample_columns(rows, predicted)
        if codes is not None:
            pair = rows.labels * len(self.confusion) + predicted
            self.groups.add(codes, columns, pair, rows.log_chosen)
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
            first.groups.together(other.groups)
            if first._kept is not None:
                first._kept += other._kept or []
            else:
                for name, sums in other._sums.items():
                    first._sums[name].absorb(sums.grouped())
        return first


def tally(data: ClassPredictions, *, exact: bool, grouped: bool = False) -> ClassificationStatistics:
    """Statistics of class predictions, each core counting its share of the pieces.

    With ``grouped`` they hold those of the groups too; where there are none, each sample is a group.
    """
    places = list(data.places())
    workers = max(min(worker_count(), len(places)), 1)
    edges = np.linspace(0, len(places), workers + 1).astype(int)
    halved = data.n >= HALVED_ABOVE and data.scores.values.dtype == np.float32
    pooling, pool_of = _pools(data) if grouped else (None, None)

    def count(start: int, end: int) -> ClassTally:
        made = ClassTally(data.n_classes, exact=exact, dtype=np.float32 if halved else np.float64)
        for place in places[start:end]:
            made.add(data.rows(place), None if pool_of is None else pool_of(place))
        return made

    tallies = map_threads(lambda span: count(*span), itertools.pairwise(edges.tolist()))
    joined = ClassTally.together(tallies)
    made = joined.statistics(data.counts)
    if pooling is None:
        return made
    tables = joined.groups.tables(range(int(pooling.place.max()) + 1))
    return replace(made, groups=tables.named(pooling))


def _pools(data: ClassPredictions) -> tuple[Pooling, Callable[[Place], IntArray]]:
    """Pools of the groups that have samples, and the function that gives the pool of each sample of a piece."""
    if data.groups is None:
        codes, members = np.arange(data.labels.size).reshape(data.shape), data.target_digest()
        labels: npt.NDArray[Any] = codes.reshape(-1)
    else:
        (labels, codes), members = data.group_codes(), None
    present = np.zeros(len(labels), dtype=bool)
    for place in data.places():
        present[data.pick(codes, place)] = True
    pooling = Pooling.of(plain_labels(labels[present]), members)
    pool = np.full(len(labels), -1, dtype=np.int64)
    pool[present] = pooling.place
    return pooling, lambda place: pool[data.pick(codes, place)]


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
