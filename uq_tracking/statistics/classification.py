"""The statistics of a classification: samples by confidence, predictive entropy and Brier score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.parallel import BLOCK
from uq_tracking.settings import Settings
from uq_tracking.statistics.exact import Column, Derived, SortedRows, sort_columns
from uq_tracking.statistics.layout import Layout, Parts, Rows
from uq_tracking.statistics.sketch import CellCounts, Confusion, tallied
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import WEIGHT
from uq_tracking.typed import override

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
    forgotten = ("log_loss", "impossible", "pair")
    alike: ClassVar[Mapping[str, str]] = {"n_classes": "the number of classes"}

    @override
    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        made = {name: np.asarray(rows[name], dtype=np.float64) for name in self.kept}
        made["one_minus_confidence2"] = np.square(made["one_minus_confidence"])
        if "pair" in rows:
            made["pair"] = rows["pair"]
            possible = np.isfinite(rows["log_chosen"])
            made["log_loss"] = np.where(possible, -rows["log_chosen"], 0.0)
            made["impossible"] = (~possible).astype(np.float64)
        return made

    @override
    def truth(self, rows: Rows, facts: Mapping[str, Any]) -> npt.NDArray[Any]:
        labels: npt.NDArray[Any] = rows["pair"] // facts["n_classes"]
        return labels

    @override
    def losses(self, rows: Rows, settings: Settings) -> dict[str, npt.NDArray[Any]]:
        if "pair" not in rows:
            return {}
        known = {name: rows[name] for name in ("brier", "correct") if name in rows}
        return {"log_loss": -rows["log_chosen"], **known}

    @override
    def cells(
        self, columns: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]
    ) -> dict[str, CellCounts]:
        if "pair" not in columns:
            return {}
        n_classes = facts["n_classes"]
        return {
            "confusion": Confusion(*tallied(columns["pair"], n_classes**2, columns.get(WEIGHT)), n_classes)
        }

    @override
    def places(
        self, columns: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any], bits: int
    ) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any], int]]:
        if "pair" not in columns:
            return {}
        pair, index = np.unique(columns["pair"], return_inverse=True)
        return {"confusion": (pair.astype(np.int64), index, facts["n_classes"])}

    @override
    def empty_tables(self, facts: Mapping[str, Any]) -> dict[str, CellCounts]:
        return {"confusion": Confusion.empty(facts["n_classes"])}

    @override
    def sort(self, rows: Rows, facts: Mapping[str, Any], known: Parts | None = None) -> Parts:
        held = {name: rows[name] for name in self.kept}
        pair = {name: column for name, column in held.items() if name in ("entropy", "brier")}
        ways: dict[str, Callable[[], Mapping[str, Column]]] = {
            "one_minus_confidence": lambda: _by_confidence(held),
            "entropy": lambda: sort_columns("entropy", pair),
            "brier": lambda: {"brier": np.sort(held["brier"])},
        }
        orders = {name: SortedRows(name, unsorted=lambda: held, sort=ways[name]) for name in self.orders}
        counts = {"n": len(held["correct"])}
        if known is not None:
            return Parts(orders, known.sums, {}, known.tables, counts=counts)
        possible = np.isfinite(rows["log_chosen"])
        sums = {"log_loss": -_sum(rows["log_chosen"][possible]), "impossible": float(np.sum(~possible))}
        return Parts(orders, sums, {}, self.cells(rows, facts), counts=counts)


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

    @override
    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        made = Derived(super().columns(rows))
        return {**made, **{name: made[name] for name in PREDICTED}}


CLASSIFICATION = ClassificationLayout()
TOP_LABEL = TopLabelLayout()
BINARY = BinaryLayout()


def layout_for(facts: Mapping[str, Any]) -> Layout:
    """Return the layout of statistics of a classification with these facts."""
    if facts.get("top_label_only"):
        return TOP_LABEL
    return CLASSIFICATION if facts.get("event") is None else BINARY


def has_event(statistics: Any) -> bool:
    """Return whether the statistics are those of two classes, with the probability of the event."""
    return statistics.layout is BINARY


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


def samples_by_class(
    statistics: Statistics,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the samples, or their weight, labelled, predicted, and both labelled and predicted as each class."""
    table = statistics.tables["confusion"]
    if not isinstance(table, Confusion):
        raise TypeError(f"the confusion table is a {type(table).__name__}")
    return table.by_class()
