"""Sufficient statistics of a classification: what every score and curve of the suite reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError, IncompatibleStatisticsError
from uq_tracking.statistics.class_groups import ClassGroupTables
from uq_tracking.statistics.class_orders import (
    ORDERS,
    Orders,
    bucket_sums,
    exact_orders,
    finished,
    sketch_orders,
)
from uq_tracking.statistics.exact import PAYLOADS, SortedRows
from uq_tracking.statistics.grouped import Grouped, Groups, IntArray
from uq_tracking.statistics.sketch import SKETCH_BITS

Kind = Literal["exact", "sketch"]
Arrays = dict[str, npt.NDArray[Any]]
COUNTS = ("n", "n_ignored", "n_masked", "n_invalid")

STORED_ROWS = 50_000
"""Exact statistics up to this many samples are stored as they are, larger ones as a sketch."""


@dataclass(frozen=True, eq=False)
class ClassificationStatistics:
    """Samples grouped by doubt (1 - top probability), predictive entropy and Brier score.

    Doubt rather than confidence, because a sketch resolves values near zero and confidences crowd near one.

    Attributes
    ----------
    kind : {"exact", "sketch"}
    by_doubt, by_entropy, by_brier : Groups
        With sums of the samples classified right, of the Brier score, and of nothing else.
    confusion : int array, shape (C, C)
        Samples by true (row) and predicted (column) class.
    log_loss : float
        Sum of ``-log p(label)`` over samples where it is finite.
    n_impossible : int
        Samples whose label got probability 0.
    counts : dict of int
        Samples that count, and that were left out, and why.
    bits : int or None
        Resolution of a sketch.
    groups : ClassGroupTables or None
        Coarse statistics of each group (image, scene), which are resampled for confidence intervals.
    """

    kind: Kind
    by_doubt: Groups
    by_entropy: Groups
    by_brier: Groups
    confusion: IntArray
    log_loss: float
    n_impossible: int
    counts: Mapping[str, int]
    bits: int | None = None
    groups: ClassGroupTables | None = None
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Results shared between metrics; derived, never stored."""

    @classmethod
    def zero(cls, n_classes: int) -> ClassificationStatistics:
        """The sketch of no samples."""
        confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
        return cls.of_orders(finished(bucket_sums()), confusion, 0.0, 0, {})

    @classmethod
    def of_orders(
        cls,
        orders: Orders,
        confusion: IntArray,
        log_loss: float,
        n_impossible: int,
        counts: Mapping[str, int],
        groups: ClassGroupTables | None = None,
    ) -> ClassificationStatistics:
        """Statistics of samples that are sorted, or counted into buckets, already."""
        exact = isinstance(orders.by_doubt, SortedRows)
        return cls(
            "exact" if exact else "sketch",
            *orders,
            confusion=confusion,
            log_loss=log_loss,
            n_impossible=n_impossible,
            counts={**dict.fromkeys(COUNTS, 0), "n": int(confusion.sum()), **counts},
            bits=None if exact else SKETCH_BITS,
            groups=groups,
        )

    @property
    def n(self) -> int:
        """Number of samples that count."""
        return self.counts["n"]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.confusion)

    def columns(self) -> Arrays:
        """Columns of the samples, in no common order; exact statistics only."""
        if not (isinstance(self.by_doubt, SortedRows) and isinstance(self.by_entropy, SortedRows)):
            raise IncompatibleStatisticsError(
                "a sketch has no samples; evaluate with method='exact' to keep them"
            )
        return {**self.by_doubt.columns, **self.by_entropy.columns}

    def sketched(self) -> ClassificationStatistics:
        """The same samples as a sketch."""
        if self.kind == "sketch":
            return self
        return self._with(sketch_orders(self.columns()))

    def _with(self, orders: Orders, **changes: Any) -> ClassificationStatistics:
        names = ("confusion", "log_loss", "n_impossible", "counts", "groups")
        sums = {name: getattr(self, name) for name in names}
        return self.of_orders(orders, **{**sums, **changes})

    def with_counts(self, counts: Mapping[str, int]) -> ClassificationStatistics:
        """The same samples, with what the validation counted."""
        return replace(self, counts={**self.counts, **counts}, memo={})

    def stored(self) -> ClassificationStatistics:
        """The form that is kept with a run: a few megabytes at any size."""
        made = self.sketched() if self.n > STORED_ROWS else self
        return made if self.groups is None else replace(made, groups=self.groups.stored(), memo={})

    def __add__(self, other: ClassificationStatistics) -> ClassificationStatistics:
        return merge(self, other)

    def to_arrays(self) -> Arrays:
        """Plain arrays that ``from_arrays`` reads back."""
        arrays: Arrays = {
            "task": np.asarray("classification"),
            "kind": np.asarray(self.kind),
            "counts": np.asarray([self.counts[name] for name in COUNTS], dtype=np.int64),
            "confusion": self.confusion,
            "log_loss": np.asarray(self.log_loss),
            "n_impossible": np.asarray(self.n_impossible),
        }
        if self.groups is not None:
            arrays |= {f"groups/{name}": values for name, values in self.groups.to_arrays().items()}
        if self.kind == "exact":
            return arrays | {f"row/{name}": column for name, column in self.columns().items()}
        arrays["bits"] = np.asarray(self.bits)
        for name in ORDERS:
            groups: Grouped = getattr(self, f"by_{name}")
            columns = {"key": groups.key, "width": groups.width, "count": groups.count}
            columns |= {f"sum/{payload}": column for payload, column in groups.sums.items()}
            arrays |= {f"{name}/{part}": column for part, column in columns.items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> ClassificationStatistics:
        """Statistics from the arrays that ``to_arrays`` made; FileFormatError for anything else."""
        own = {name.removeprefix("groups/"): arrays[name] for name in arrays if name.startswith("groups/")}
        try:
            made = _from_arrays(arrays)
            return replace(made, groups=ClassGroupTables.from_arrays(own)) if own else made
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise FileFormatError(f"these arrays are not classification statistics ({error!r})") from error


def merge(one: ClassificationStatistics, other: ClassificationStatistics) -> ClassificationStatistics:
    """Statistics of both sets of samples; IncompatibleStatisticsError names what differs."""
    if one.n_classes != other.n_classes:
        raise IncompatibleStatisticsError(
            f"the number of classes differs ({one.n_classes} and {other.n_classes}); merge runs of one data set"
        )
    if one.kind == other.kind == "exact":
        mine, theirs = one.columns(), other.columns()
        orders = exact_orders({name: np.concatenate([mine[name], theirs[name]]) for name in mine})
    else:
        orders = _merged_sketch(one.sketched(), other.sketched())
    return one._with(
        orders,
        confusion=one.confusion + other.confusion,
        log_loss=one.log_loss + other.log_loss,
        n_impossible=one.n_impossible + other.n_impossible,
        counts={name: one.counts[name] + other.counts[name] for name in COUNTS},
        groups=None if one.groups is None or other.groups is None else one.groups.merge(other.groups),
    )


def _merged_sketch(one: ClassificationStatistics, other: ClassificationStatistics) -> Orders:
    if one.bits != other.bits:
        raise IncompatibleStatisticsError(
            f"bits differs ({one.bits} and {other.bits}); sketch both with the same resolution"
        )
    names = [f"by_{name}" for name in ORDERS]
    return Orders(*(getattr(one, name).merge(getattr(other, name)) for name in names))


def _from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> ClassificationStatistics:
    counts = dict(zip(COUNTS, (int(c) for c in arrays["counts"]), strict=True))
    if str(arrays["kind"]) == "exact":
        names = ("doubt", "correct", "entropy", "brier")
        orders = exact_orders({name: arrays[f"row/{name}"] for name in names})
    else:
        orders = Orders(*(_read_groups(name, arrays) for name in ORDERS))
    confusion = arrays["confusion"]
    if {groups.total for groups in orders} != {counts["n"]} or confusion.sum() != counts["n"]:
        raise ValueError("counts disagree")
    made = ClassificationStatistics.of_orders(
        orders, confusion, float(arrays["log_loss"]), int(arrays["n_impossible"]), counts
    )
    return made if made.kind == "exact" else replace(made, bits=int(arrays["bits"]))


def _read_groups(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Grouped:
    sums = {payload: arrays[f"{name}/sum/{payload}"] for payload in PAYLOADS[name]}
    columns = (arrays[f"{name}/key"], arrays[f"{name}/width"], arrays[f"{name}/count"])
    if len({len(column) for column in (*columns, *sums.values())}) != 1:
        raise ValueError(f"columns of {name} differ in length")
    return Grouped(name, *columns, sums)
