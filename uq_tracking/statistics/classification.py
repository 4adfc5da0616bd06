"""The statistics of a classification: samples by confidence, predictive entropy and Brier score; sums by class.

The sums of the probability of every class, in bins of it, are what classes are judged by, one by one. They are small
for any number of samples, merge by adding, and are counted in one pass over the probabilities.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs.forms.form import PIECE, picked
from uq_tracking.inputs.forms.probabilities import Known, Probabilities, logarithms_of
from uq_tracking.npz import Arrays
from uq_tracking.parallel import BLOCK, keep_memory, map_threads, worker_count
from uq_tracking.settings import Settings
from uq_tracking.statistics.exact import Column, Derived, SortedRows, sort_columns
from uq_tracking.statistics.groups import MOST_GROUPS, Label, plain_labels
from uq_tracking.statistics.layout import Layout, Parts, Places, Rows
from uq_tracking.statistics.orders import FloatArray, IntArray, run_starts
from uq_tracking.statistics.sketch import CellCounts, Confusion, compact
from uq_tracking.typed import override

if TYPE_CHECKING:
    from uq_tracking.inputs.predictions import Predictions
    from uq_tracking.statistics.statistics import Statistics

STORED = ("one_minus_confidence", "correct", "entropy", "brier")
"""The columns that exact statistics hold; those of the confusion matrix and the log score are only summed."""
PREDICTED = ("predicted", "predicted_doubt", "predicted_doubt2", "predicted_correct")
"""Count and payloads of the samples that are predicted to be the event, of two classes."""


class ClassificationLayout(Layout):
    """Orders by one minus the top probability, by predictive entropy and by Brier score.

    One minus the confidence, because a sketch resolves values near zero, and confidences crowd near one. Rows are
    those columns, ``correct``, ``pair`` (true class times the number of classes, plus predicted class) and
    ``log_chosen`` (log probability of the true class).
    """

    task = "classification"
    orders: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "one_minus_confidence": ("one_minus_confidence", "one_minus_confidence2", "correct"),
        "entropy": ("entropy", "brier"),
        "brier": ("brier",),
    }
    sums = ("log_loss", "impossible")
    moments = ()
    tables: ClassVar[Mapping[str, type[CellCounts]]] = {"confusion": Confusion}
    counts = ("n", "n_ignored", "n_masked", "n_invalid")
    kept: ClassVar[tuple[str, ...]] = STORED
    forgotten = ("log_loss", "impossible")
    alike: ClassVar[Mapping[str, str]] = {"n_classes": "the number of classes"}

    @override
    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        made = Derived({name: np.asarray(rows[name], dtype=np.float64) for name in self.kept})
        if "pair" in rows:
            made["pair"] = rows["pair"]
            possible = np.isfinite(rows["log_chosen"])
            made["log_loss"] = np.where(possible, -rows["log_chosen"], 0.0)
            made["impossible"] = (~possible).astype(np.float64)
        return {**made, **{name: made[name] for payloads in self.orders.values() for name in payloads}}

    @override
    def truth(self, rows: Rows, facts: Mapping[str, Any]) -> npt.NDArray[Any]:
        return np.asarray(rows["pair"] // facts["n_classes"])

    @override
    def losses(self, rows: Rows, settings: Settings) -> dict[str, npt.NDArray[Any]]:
        if "pair" not in rows:
            return {}
        known = {name: rows[name] for name in ("brier", "correct") if name in rows}
        return {"log_loss": -rows["log_chosen"], **known}

    @override
    def places(self, columns: Rows, facts: Mapping[str, Any], bits: int) -> dict[str, Places]:
        if "pair" not in columns:
            return {}
        n_classes = facts["n_classes"]
        pair, place, _ = compact(columns["pair"], n_classes**2)
        return {"confusion": (pair, place, n_classes)}

    @override
    def sort(self, rows: Rows, facts: Mapping[str, Any]) -> Parts:
        held = {name: rows[name] for name in self.kept}
        pair = {name: column for name, column in held.items() if name in ("entropy", "brier")}
        ways: dict[str, Callable[[], Mapping[str, Column]]] = {
            "one_minus_confidence": lambda: _by_confidence(held),
            "entropy": lambda: sort_columns("entropy", pair),
            "brier": lambda: {"brier": np.sort(held["brier"])},
        }
        orders = {name: SortedRows(name, unsorted=lambda: held, sort=ways[name]) for name in self.orders}
        sums = {}
        if "log_chosen" in rows:
            possible = np.isfinite(rows["log_chosen"])
            sums = {"log_loss": -_sum(rows["log_chosen"][possible]), "impossible": float(np.sum(~possible))}
        return Parts(orders, sums, {}, self.tables_of(rows, facts), counts={"n": len(held["correct"])})


class TopLabelLayout(ClassificationLayout):
    """Of more than two classes, the top label only: all that most scores of its calibration and its errors need."""

    orders: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "one_minus_confidence": ClassificationLayout.orders["one_minus_confidence"]
    }
    kept: ClassVar[tuple[str, ...]] = ("one_minus_confidence", "correct")
    alike: ClassVar[Mapping[str, str]] = {
        **ClassificationLayout.alike,
        "top_label_only": "whether more than the top label is counted",
    }


class BinaryLayout(ClassificationLayout):
    """Of two classes, also which samples are predicted to be the event, so that its probability is known.

    The probability of the event is the doubt of samples predicted to be the other class, and one minus the doubt of
    those predicted to be the event: both in the order by doubt, without another sort.
    """

    orders: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **ClassificationLayout.orders,
        "one_minus_confidence": (*ClassificationLayout.orders["one_minus_confidence"], *PREDICTED),
    }
    kept: ClassVar[tuple[str, ...]] = (*STORED, "predicted")
    alike: ClassVar[Mapping[str, str]] = {**ClassificationLayout.alike, "event": "the event"}


CLASSIFICATION = ClassificationLayout()
TOP_LABEL = TopLabelLayout()
BINARY = BinaryLayout()


def _sum(values: Column) -> float:
    return math.fsum(float(values[at : at + BLOCK].sum()) for at in range(0, len(values), BLOCK))


def _by_confidence(rows: Rows) -> Mapping[str, Column]:
    """Values in [0, 1) leave their two highest bits free: shifted left, they also carry what is true or false."""
    flags = [name for name in ("correct", "predicted") if name in rows]
    keys = np.asarray(rows["one_minus_confidence"], dtype=np.float64).view(np.uint64) << np.uint64(len(flags))
    for bit, name in enumerate(flags):
        keys |= rows[name].astype(np.uint64) << np.uint64(bit)
    keys.sort()
    found = {name: (keys & np.uint64(1 << bit)).astype(bool) for bit, name in enumerate(flags)}
    keys >>= np.uint64(len(flags))
    return {"one_minus_confidence": keys.view(np.float64), **found}


def samples_by_class(statistics: Statistics) -> tuple[npt.NDArray[Any], ...]:
    """Return the samples, or their weight, labelled, predicted, and both labelled and predicted as each class."""
    table = statistics.tables["confusion"]
    return pairs_by_class(table.key, table.count, table.size)


def pairs_by_class(pair: IntArray, count: npt.NDArray[Any], classes: int) -> tuple[npt.NDArray[Any], ...]:
    """Return the same of counts of pairs ``true * classes + predicted``."""
    true, predicted = np.divmod(pair, classes)
    alike = true == predicted
    return (
        np.bincount(true, count, classes),
        np.bincount(predicted, count, classes),
        np.bincount(true[alike], count[alike], classes),
    )


THOUSANDTHS = np.asarray([1, 3, 10, 30, 100, 200, 300, 400, 500, 600, 700, 800, 900, 970, 990, 997, 999])
"""Edges of the bins, finer at both ends, with tenths between; a probability at an edge belongs to the bin above."""
BINS = len(THOUSANDTHS) + 1
BIN_OF = np.searchsorted(THOUSANDTHS, np.arange(1001), side="right")
ON_EDGE = 1e-10
"""A probability within this relative distance of a bin's edge lies on it: the rest is rounding."""
BY_WEIGHT = [0, 3, 4, 5]
"""Rows of `ClassSums.bins` that are those of `sums_by_weight`."""
MOST_BINNED = 1024
"""With more classes, each has a single bin."""
LEAST_LOG = np.log(1e-7)
"""A label of a lower probability counts as if it had this one."""
STORED_NUMBERS = 1 << 19
"""Sums by group and class are stored up to this many."""


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums over samples, by class.

    Attributes
    ----------
    bins : array, shape (6, C, bins)
        Weight of the samples, sums of their probability p of the class and of p^2, and weight of those that are of
        the class, in bins of p; squares of both weights.
    sharp : array, shape (3,)
        Sums of the log probability of the label plus the entropy, which is 0 on average if calibrated, of its
        variance, and of the squares of the weighted first.
    top : array, shape (4, bins)
        Weight of the samples and of those whose top label is right, in bins of its probability; squares of both.
        Without weights all are 0.
    labels : tuple
        Names of the groups; empty without groups.
    of_groups : array, shape (groups, 2 + 2 C)
        For each group its weight, the first of the sums ``sharp``, and for each class the sum of its probability and
        the weight of its samples.
    """

    bins: FloatArray
    sharp: FloatArray
    top: FloatArray
    labels: tuple[Label, ...]
    of_groups: FloatArray

    def __len__(self) -> int:
        return int(self.bins.shape[1])

    @property
    def total(self) -> float:
        """Weight of all samples."""
        return float(self.bins[0, 0].sum())

    @property
    def stated(self) -> FloatArray:
        """Mean probability of each class."""
        return np.asarray(self.bins[1].sum(axis=1) / self.total)

    @property
    def observed(self) -> FloatArray:
        """Share of the samples of each class."""
        return np.asarray(self.bins[3].sum(axis=1) / self.total)

    def joined(self, n_bins: int) -> FloatArray | None:
        """Return the sums in bins of equal width, shape (6, C, n_bins); None if these are not kept."""
        if self.bins.shape[2] == 1 or 10 % n_bins:
            return None
        first = np.searchsorted(THOUSANDTHS, np.arange(n_bins) * 1000 // n_bins, side="right")
        return np.asarray(np.add.reduceat(self.bins, first, axis=2))

    def __add__(self, other: ClassSums) -> ClassSums:
        both = bool(self.labels) and bool(other.labels)
        sums = (self.bins + other.bins, self.sharp + other.sharp, self.top + other.top)
        made = ClassSums(*sums, (), self.of_groups[:0])
        if not both:
            return made
        if self.labels == other.labels:
            return replace(made, labels=self.labels, of_groups=self.of_groups + other.of_groups)
        labels, place = _pools((*self.labels, *other.labels))
        of_groups = np.zeros((len(labels), self.of_groups.shape[1]))
        np.add.at(of_groups, place, np.concatenate([self.of_groups, other.of_groups]))
        return replace(made, labels=labels, of_groups=of_groups)

    def add(self, known: Known, weight: Any, group: IntArray | None) -> None:
        """Count samples, in place."""
        labels, probs = known.labels, known.probs.astype(np.float64, copy=False)
        if not len(labels):
            return
        n, (_, classes, width) = len(labels), self.bins.shape
        size, bins = classes * width, self.bins.reshape(6, -1)
        w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        heavy = probs if weight is None else probs * w[:, None]
        logs = logarithms_of(probs)
        terms = probs * logs
        entropy = -np.einsum("ij->i", terms)
        variance = np.einsum("ij,ij->i", terms, logs) - np.square(entropy)
        surprise = w * (np.maximum(known.log_chosen, LEAST_LOG) + entropy)
        self.sharp[:] += [surprise.sum(), w @ variance, surprise @ surprise]
        cell = bin_of(probs) if width > 1 else np.zeros(probs.shape, dtype=np.int64)
        cell += np.arange(classes) * width
        chosen = cell[np.arange(n), labels]

        def summed(values: FloatArray) -> FloatArray:
            """Sum over the samples in each bin of each class."""
            values = np.broadcast_to(values, probs.shape)
            if width == 1:
                return np.asarray(values.sum(axis=0))
            return np.asarray(np.bincount(cell.reshape(-1), values.reshape(-1), size), dtype=np.float64)

        events = np.bincount(chosen, weight, size)
        bins[:4] += np.stack([summed(w[:, None]), summed(heavy), summed(heavy * probs), events])
        if weight is None:
            bins[4:] = bins[[0, 3]]
        else:
            square = np.square(w)
            bins[4:] += np.stack([summed(square[:, None]), np.bincount(chosen, square, size)])
            top = probs.argmax(axis=1)
            self.top[:] += sums_by_weight(probs[np.arange(n), top], w, top == labels)
        if group is None:
            return
        order = np.argsort(group, kind="stable")
        first = run_starts(group[order])
        occurs = np.bincount(group * classes + labels, weight, len(self.labels) * classes)
        self.of_groups[:, 2 + classes :] += occurs.reshape(-1, classes)
        self.of_groups[group[order][first], : 2 + classes] += np.concatenate(
            [
                np.add.reduceat(np.stack([w, surprise], axis=1)[order], first),
                np.add.reduceat(heavy[order], first, axis=0),
            ],
            axis=1,
        )

    def to_arrays(self) -> Arrays:
        """Plain arrays that ``from_arrays`` reads; without groups if they are too many to keep."""
        arrays: Arrays = {"bins": self.bins, "sharp": self.sharp, "top": self.top}
        if self.labels and self.of_groups.size <= STORED_NUMBERS:
            arrays |= {"labels": np.asarray(json.dumps(self.labels)), "of_groups": self.of_groups}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> ClassSums:
        """Inverse of ``to_arrays``; KeyError or ValueError for anything else."""
        bins, sharp, top = arrays["bins"], arrays["sharp"], arrays["top"]
        shapes = (len(bins), sharp.shape, top.shape)
        if bins.ndim != 3 or shapes != (6, (3,), (4, BINS)) or bins.shape[2] not in (1, BINS):
            raise ValueError("the sums of classes have another shape")
        width = 2 + 2 * bins.shape[1]
        labels = tuple(json.loads(str(arrays["labels"]))) if "labels" in arrays else ()
        of_groups = arrays.get("of_groups", np.zeros((0, width)))
        if of_groups.shape != (len(labels), width):
            raise ValueError("the sums of classes by group have another shape")
        return cls(bins, sharp, top, labels, of_groups)


def class_sums(data: Predictions) -> ClassSums | None:
    """Count predictions; None if they hold no probabilities of classes, or only the top label counts."""
    form = data.form
    if not isinstance(form, Probabilities) or form.top_label_only:
        return None
    labels: tuple[Label, ...] = ()
    codes = place = None
    if data.groups is not None:
        names, codes = data.label_codes("groups")
        used = np.unique(data.select(codes))
        labels, pools = _pools(plain_labels(names[used]))
        place = np.zeros(len(names), dtype=np.int64)
        place[used] = pools
    keep_memory(8 * PIECE)
    pieces = list(data.pieces())
    workers = max(min(worker_count(), len(pieces)), 1)

    def counted(share: int) -> ClassSums:
        classes = form.n_classes
        bins = np.zeros((6, classes, BINS if classes <= MOST_BINNED else 1))
        of_groups = np.zeros((len(labels), 2 + 2 * classes))
        made = ClassSums(bins, np.zeros(3), np.zeros((4, BINS)), labels, of_groups)
        for piece, keep in pieces[share::workers]:
            ndim = data.truth.ndim
            own = picked(data.truth, piece, keep, ndim).astype(np.int64)
            weight = None if data.weights is None else picked(data.weights, piece, keep, ndim)
            group = None if codes is None or place is None else place[picked(codes, piece, keep, ndim)]
            made.add(form.known(own, piece, keep), weight, group)
        return made

    return reduce(ClassSums.__add__, map_threads(counted, range(workers)))


def _pools(labels: Sequence[Label]) -> tuple[tuple[Label, ...], IntArray]:
    """Return distinct labels and the place of each among them; too many are pooled by their text."""
    if len(set(labels)) > MOST_GROUPS:
        labels = [crc32(repr(label).encode()) % MOST_GROUPS for label in labels]
    known = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return tuple(known), np.asarray([known[label] for label in labels], dtype=np.int64)


def bin_of(probability: FloatArray) -> IntArray:
    """Bin of each probability."""
    return BIN_OF.take((probability * (1000 + 1000 * ON_EDGE)).astype(np.int64), mode="clip")


def sums_by_weight(probability: FloatArray, weight: FloatArray, event: npt.NDArray[np.bool_]) -> FloatArray:
    """Sums of the weights of all samples and of the events, and of their squares, in bins of the probability."""
    place, square = bin_of(probability), np.square(weight)
    columns = (weight, weight * event, square, square * event)
    return np.stack([np.bincount(place, column, BINS) for column in columns])
