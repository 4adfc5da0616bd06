"""Scores of a stream of class probabilities: batches in, one report out, in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.bootstrap import RESAMPLES, check_level, with_intervals
from uq_tracking.errors import EmptyInputError, IncompatibleStatisticsError, SettingsError
from uq_tracking.evaluation.classification import as_class_predictions, score_classification
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.inputs.probabilities import Place
from uq_tracking.metrics.registry import select
from uq_tracking.report import Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.class_groups import ClassGroupTables
from uq_tracking.statistics.class_tally import ClassTally
from uq_tracking.statistics.classification import COUNTS, ClassificationStatistics
from uq_tracking.statistics.labelled import plain_labels
from uq_tracking.statistics.pools import MOST_GROUPS, Label
from uq_tracking.streams.base import Arrays, Streaming, beneath, under

INPUT = ("logits", "class_axis", "members_axis", "ignore_label", "on_invalid", "class_names")
MODULUS = 1 << 64
MULTIPLIER = 0x9E3779B97F4A7C15
"""Odd constant of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""


class ClassificationAccumulator(Streaming):
    """Counts class probabilities batch by batch and scores them as `evaluate_classification` would all at once.

    What is kept are statistics of constant size: a sketch, whose accuracy the report states. Cutting the same stream
    into other batches, and merging in another order, change nothing beyond rounding.

    Parameters
    ----------
    logits, class_axis, members_axis, ignore_label, on_invalid, class_names
        As for `ClassPredictions`, which checks every batch. A batch that is refused is not counted at all. A batch
        without any label is counted as left out and does not stop the stream.
    metrics, n_bins
        As for `evaluate_classification`.
    method : {"sketch", "exact"}
        "exact" keeps four numbers of every sample, for sets that fit into memory.

    Examples
    --------
    >>> acc = ClassificationAccumulator(ignore_label=255)
    >>> acc.update([0, 1, 255], [[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]])
    >>> acc.update([1], [[0.7, 0.3]])
    >>> report = acc.compute()
    >>> report.counts["n"], report.counts["n_ignored"], round(report.scores["accuracy"], 3)
    (3, 1, 0.667)
    """

    task: ClassVar[str] = "classification"
    free: ClassVar[tuple[str, ...]] = ("class_names",)

    def __init__(
        self,
        *,
        logits: bool = False,
        class_axis: int = -1,
        members_axis: int | None = None,
        ignore_label: int | None = None,
        on_invalid: Literal["raise", "drop"] = "raise",
        class_names: Sequence[str] | None = None,
        metrics: Iterable[str] | None = None,
        n_bins: int = 10,
        method: Literal["sketch", "exact"] = "sketch",
    ) -> None:
        if method not in ("sketch", "exact"):
            raise SettingsError(f"method is {method!r}; choose sketch or exact")
        if on_invalid not in ("raise", "drop"):
            raise SettingsError(f"on_invalid={on_invalid!r}; pass 'raise' or 'drop'")
        self._metrics = select("classification", metrics)
        self._n_bins = Settings(n_bins=n_bins).n_bins
        settings = {
            "logits": logits,
            "class_axis": class_axis,
            "members_axis": members_axis,
            "ignore_label": ignore_label,
            "on_invalid": on_invalid,
            "class_names": None if class_names is None else list(class_names),
            "metrics": None if metrics is None else [metric.key for metric in self._metrics],
            "n_bins": n_bins,
            "method": method,
        }
        super().__init__(settings)

    def _start(self) -> None:
        self._tally: ClassTally | None = None
        self._counts = dict.fromkeys(COUNTS, 0)
        self._hash = 0
        self._members = 1
        self._groups: dict[Label, int] = {}
        """Number of each group, by its label."""

    def update(self, labels: Any, probs: Any = None, *, mask: Any = None, groups: Any = None) -> None:
        """Count a batch.

        Parameters
        ----------
        labels, probs
            As for `evaluate_classification`; or one `ClassPredictions`, for both.
        mask : bool array of the labels' shape, optional
            True leaves a sample out.
        groups : labels, optional
            Image, scene or block of each sample, as for `ClassPredictions`. Given for one batch, they have to be
            given for all.

        Raises
        ------
        InputError
            The batch cannot be scored; it is not counted.
        IncompatibleStatisticsError
            It has another number of classes than earlier ones.
        """
        self._check_open()
        try:
            data = self._read(labels, probs, mask, groups)
        except EmptyInputError as error:
            self._count(error.counts)
            return
        self._check_groups(data)
        tally = self._tally_of(data.n_classes)
        named = None if data.groups is None else data.group_codes()
        hashes = []
        for place in data.places():
            tally.add(
                data.rows(place),
                None if named is None else self._numbers(named[0], data.pick(named[1], place)),
            )
            hashes.append(_hash(data, place))
        self._hash = (self._hash + sum(hashes)) % MODULUS
        self._members = data.n_members
        self._count(data.counts)

    def _read(self, labels: Any, probs: Any, mask: Any, groups: Any) -> ClassPredictions:
        if isinstance(labels, ClassPredictions):
            return as_class_predictions(labels, probs, mask=mask, groups=groups)
        options = {name: self.settings[name] for name in INPUT}
        return ClassPredictions(labels, probs, mask=mask, groups=groups, **options)

    def _check_groups(self, data: ClassPredictions) -> None:
        known = bool(self._groups)
        if self.n and known != (data.groups is not None):
            raise SettingsError(
                f"groups was {'' if known else 'not '}given for earlier batches; give it for all or for none"
            )

    def _numbers(self, labels: npt.NDArray[Any], codes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Number of each sample's group; a label that is new gets the next one."""
        used, index = np.unique(codes, return_inverse=True)
        return self._places(plain_labels(labels[used]))[index]

    def _places(self, labels: Iterable[Label]) -> npt.NDArray[np.int64]:
        return np.asarray([self._groups.setdefault(label, len(self._groups)) for label in labels], np.int64)

    def _tally_of(self, n_classes: int) -> ClassTally:
        if self._tally is None:
            self._tally = ClassTally(n_classes, exact=self.settings["method"] == "exact")
        known = len(self._tally.confusion)
        if known != n_classes:
            raise IncompatibleStatisticsError(
                f"the number of classes differs ({known} before, {n_classes} in this batch); every batch has "
                "all classes on its class axis"
            )
        return self._tally

    def _count(self, counts: Mapping[str, int]) -> None:
        for name in COUNTS:
            self._counts[name] += counts.get(name, 0)

    @property
    def n(self) -> int:
        """Number of samples that count so far."""
        return self._counts["n"]

    @property
    def statistics(self) -> ClassificationStatistics:
        """Statistics of everything counted so far; EmptyInputError if no sample was."""
        if self._tally is None:
            raise EmptyInputError(f"no sample was counted: {self._counts}", self._counts)
        return self._tally.statistics(self._counts)

    @property
    def group_statistics(self) -> ClassGroupTables | None:
        """Coarse statistics of the groups, which resampling them turns into confidence intervals; None without."""
        if self._tally is None or not self._groups:
            return None
        return self._tally.groups.tables(list(self._groups)).in_order()

    @property
    def cases(self) -> dict[int, Any]:
        """Spatial cases kept for maps: none."""
        return {}

    def __repr__(self) -> str:
        return f"ClassificationAccumulator(n={self.n}, method={self.settings['method']!r})"

    def compute(
        self,
        *,
        intervals: bool | None = None,
        level: float = 0.95,
        n_boot: int = RESAMPLES,
        seed: int = 0,
    ) -> Report:
        """The report of everything counted so far; counting can go on.

        Parameters
        ----------
        intervals, level, n_boot, seed
            As for `evaluate_classification`: intervals are made where batches came with ``groups``, unless this is
            False.

        Raises
        ------
        EmptyInputError
            No sample was counted.
        SettingsError
            Intervals are asked for, but no batch came with ``groups``.
        """
        statistics, tables = self.statistics, self.group_statistics
        check_level(level, n_boot)
        if intervals and tables is None:
            raise SettingsError("a stream has intervals over groups only; pass groups= to update")
        facts = {
            "n_classes": statistics.n_classes,
            "n_members": self._members,
            **{name: self.settings[name] for name in ("logits", "ignore_label", "class_names")},
        }
        digest, settings = f"sum64:{self._hash:016x}", Settings(n_bins=self._n_bins)
        report = score_classification(statistics, settings, self._metrics, digest=digest, facts=facts)
        if tables is None or intervals is False:
            return report
        options = {"level": level, "n_boot": n_boot, "seed": seed}
        return with_intervals(report, tables.pooled_to(MOST_GROUPS), settings, self._metrics, **options)

    def _absorb(self, other: ClassificationAccumulator) -> None:
        if self.n and other.n and bool(self._groups) != bool(other._groups):
            raise IncompatibleStatisticsError("groups was given to one accumulator only; give it to both")
        if other._tally is not None:
            tally = self._tally_of(len(other._tally.confusion))
            tally.absorb(other.statistics)
            tables = other.group_statistics
            if tables is not None:
                tally.groups.absorb(tables, self._places(tables.labels))
            self._members = other._members
        self._hash = (self._hash + other._hash) % MODULUS
        self._count(other._counts)

    def _to_arrays(self) -> Arrays:
        arrays: Arrays = {
            "counts": np.asarray([self._counts[name] for name in COUNTS], dtype=np.int64),
            "hash": np.asarray(self._hash, dtype=np.uint64),
            "members": np.asarray(self._members),
        }
        if self._tally is None:
            return arrays
        tables = self.group_statistics
        if tables is not None:
            arrays |= beneath("groups", tables.to_arrays(full=True))
        return arrays | beneath("tally", self.statistics.to_arrays())

    def _load(self, arrays: Arrays) -> None:
        self._counts = dict(zip(COUNTS, (int(c) for c in arrays["counts"]), strict=True))
        self._hash, self._members = int(arrays["hash"]), int(arrays["members"])
        stored = under(arrays, "tally")
        if stored:
            statistics = ClassificationStatistics.from_arrays(stored)
            tally = self._tally_of(statistics.n_classes)
            tally.absorb(statistics)
            groups = under(arrays, "groups")
            if groups:
                tables = ClassGroupTables.from_arrays(groups)
                tally.groups.absorb(tables, self._places(tables.labels))


def _hash(data: ClassPredictions, place: Place) -> int:
    """Sum of the samples' 64-bit hashes modulo 2 ** 64: it does not depend on their order, batches or dtype."""
    labels = data.labels[place].reshape(-1)
    keep = np.ones(len(labels), dtype=bool) if data.valid is None else data.valid[place].reshape(-1)
    state = labels[keep].astype(np.uint64)
    for member in data.scores.members(place):
        values = member[keep] if member.ndim == 2 else member[keep][:, None]
        state = _mixed(state) + _weighted(values)
    return int(_mixed(state).sum(dtype=np.uint64))


def _weighted(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """A number per row that depends on each value and its place."""
    weights = (2 * np.arange(values.shape[1], dtype=np.uint64) + np.uint64(1)) * np.uint64(MULTIPLIER)
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # adding zero gives both zeros one sign
    return np.asarray((_mixed(bits) * weights).sum(axis=1, dtype=np.uint64))


def _mixed(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    state = state * np.uint64(MULTIPLIER)
    state ^= state >> np.uint64(32)
    return state * np.uint64(MULTIPLIER)
