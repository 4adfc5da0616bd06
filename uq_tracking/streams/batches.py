"""Accumulators of any task: batches are counted, merged, stored and scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from uq_tracking.checks import check_choice, path_of
from uq_tracking.errors import (
    EmptyInputError,
    FileFormatError,
    IncompatibleStatisticsError,
    InvalidValueError,
    SettingsError,
)
from uq_tracking.evaluation.on_demand import Extras
from uq_tracking.evaluation.plan import Plan
from uq_tracking.evaluation.scoring import score
from uq_tracking.evaluation.strata import by_group
from uq_tracking.inference.intervals import with_intervals
from uq_tracking.inputs.base import Case
from uq_tracking.metrics.registry import find, select
from uq_tracking.npz import Arrays, read_arrays, write_arrays
from uq_tracking.report import Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_pooling import MOST_GROUPS, Label
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.group_tally import GROUP_BITS
from uq_tracking.statistics.sketch import SKETCH_BITS
from uq_tracking.statistics.statistics import Statistics, by_label
from uq_tracking.streams.files import from_bytes, packed, settings_of, to_bytes
from uq_tracking.streams.map_samples import WantedMaps, checked_maps
from uq_tracking.streams.state import State
from uq_tracking.tasks import Task

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_BITS = 14
MAY_DIFFER = ("maps", "on_device", "class_names")
"""Settings that accumulators may be merged across, because they do not affect any number."""


class BatchAccumulator(ABC):
    """What the accumulators of all tasks share: counting, merging, files, and the report.

    A task's own class names its options, gives ``update`` its arguments, and lists in ``input_options`` the options
    that its predictions accept.
    """

    kind: ClassVar[Task]
    """The task being counted."""
    input_options: ClassVar[tuple[str, ...]]

    def __init__(self, settings: Mapping[str, Any], metrics: Iterable[str] | None, maps: WantedMaps) -> None:
        statistics, bits = settings["statistics"], settings["bits"]
        check_choice("statistics", statistics, ("sketch", "exact"))
        if not isinstance(bits, int) or not GROUP_BITS - 1 <= bits <= MAX_BITS:
            raise SettingsError(f"bits is {bits!r}; choose {GROUP_BITS - 1} to {MAX_BITS}")
        check_choice("on_invalid", settings["on_invalid"], ("raise", "drop"))
        self._metrics = select(self.kind.name, metrics)
        self.settings: dict[str, Any] = {
            **settings,
            "metrics": None if metrics is None else [metric.key for metric in self._metrics],
            "maps": checked_maps(maps),
        }
        """The given options by name: plain values, ready for JSON."""
        self.reset()

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.kind.name

    def reset(self) -> None:
        """Forget every sample; the settings stay."""
        self._state = State(self.kind, self.settings)

    @abstractmethod
    def update(self, *arrays: Any, **options: Any) -> None:
        """Count a batch."""

    def _count_batch(
        self, arrays: Sequence[Any], *, mask: Any, weights: Any, groups: Any, by: Any, images: Any
    ) -> None:
        """Count a batch; if this raises, nothing of it is counted."""
        self._check_open()
        labelled = groups is not None or by is not None
        if weights is None and not labelled and self._goes_to_device(arrays):
            self._state.add_on_device(arrays, mask, images)
            return
        options = {"mask": mask, "weights": weights, "groups": groups, "by": by}
        try:
            data = self._read(arrays, **options)
        except EmptyInputError as error:
            counts = error.counts
            self._state.add_nothing(counts, arrays[0])
        else:
            counts = data.counts
            self._state.add(data, images)
        if counts.get("n_invalid") and not self._state.defect:
            self._note_defect(arrays, options)

    def _goes_to_device(self, arrays: Sequence[Any]) -> bool:
        """Whether these are torch tensors of a regression, to be counted where they are."""
        if self.settings["statistics"] == "exact":
            return False
        from uq_tracking.streams.device import countable

        return countable(tuple(arrays), on_device=self.settings.get("on_device", False))

    def _read(self, arrays: Sequence[Any], **options: Any) -> Any:
        own = {name: self.settings[name] for name in self.input_options}
        if not isinstance(arrays[0], self.kind.predictions):
            return self.kind.read(*arrays, **{**own, **options})
        data = self.kind.read(*arrays, **options)
        floor = self.settings.get("std_floor")
        if getattr(data, "std_floor", None) != floor:
            raise SettingsError(
                f"std_floor is {data.std_floor} for the Predictions but {floor} for the Accumulator; use the same"
            )
        return data

    def _note_defect(self, arrays: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Read a batch that lost samples again, without leaving them out, to say what is bad."""
        if isinstance(arrays[0], self.kind.predictions):
            return
        try:
            self._read(arrays, **options, on_invalid="raise")
        except InvalidValueError as error:
            self._state.defect = f"in batch {self._state.batches - 1}, {error}"

    def count_nothing(self, counts: Mapping[str, int], truth: Any) -> None:
        """Count a batch without remaining samples: its cases, and the samples left out."""
        self._state.add_nothing(counts, truth)

    def merge(self, other: Self) -> Self:
        """Add the samples of another accumulator in place; the other one is left unchanged.

        The order of merging changes nothing beyond rounding (1e-12), and a fresh accumulator adds nothing.

        Raises
        ------
        IncompatibleStatisticsError
            The settings differ; the message names which.
        """
        self._check_open()
        self._check_settings(other)
        self._state.merge(other._state)
        return self

    def _check_settings(self, other: BatchAccumulator) -> None:
        if not isinstance(other, BatchAccumulator):
            raise IncompatibleStatisticsError(
                f"{type(other).__name__} is not an accumulator; merge accumulators, or pool reports with uq.pool"
            )
        if other.task != self.task:
            raise IncompatibleStatisticsError(f"task differs ({self.task} and {other.task})")
        for name, value in self.settings.items():
            if name not in MAY_DIFFER and other.settings[name] != value:
                raise IncompatibleStatisticsError(
                    f"{name} differs ({value} and {other.settings[name]}); count both with the same settings"
                )

    def _check_open(self) -> None:
        if self._state.is_union:
            raise SettingsError(
                "this accumulator has held the samples of all processes since all_reduce(); reset() it before "
                "counting on, or samples would count once per process"
            )

    def all_reduce(self, group: Any = None) -> Self:
        """Replace this process's samples with those of all processes, with torch.distributed (gloo or nccl).

        Every process must call it, and afterwards holds the same samples, merged in rank order. A few megabytes are
        exchanged, whatever the number of samples. Nothing more can be counted until ``reset``.

        Parameters
        ----------
        group : torch.distributed.ProcessGroup, optional
            By default all processes.

        Raises
        ------
        SettingsError
            There is no process group.
        IncompatibleStatisticsError
            The processes have different settings; this one keeps its own samples.
        """
        from uq_tracking.streams.ranks import gather

        self._check_open()
        parts = [type(self)._from_bytes(data) for data in gather(to_bytes(self._packed()), group)]
        union = State(self.kind, self.settings)
        for part in parts:
            self._check_settings(part)
            union.merge(part._state)
        union.is_union = True
        self._state = union  # only now, so that nothing is lost if the others' samples do not fit
        return self

    def save(self, path: str | Path) -> None:
        """Write everything counted so far, to continue later or elsewhere; the file appears whole or not at all."""
        path = path_of(path)
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}; create it before saving {path.name}")
        write_arrays(path, self._packed(), compressed=True)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote; continuing from it gives the report of an uninterrupted run.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FileFormatError
            The file is damaged, foreign, too new, or for another task.
        """
        return cls._unpacked(read_arrays(path_of(path)), str(path))

    def _packed(self) -> Arrays:
        return packed(self.task, self.settings, self._state.to_arrays())

    @classmethod
    def _unpacked(cls, arrays: Arrays, source: str) -> Self:
        settings = settings_of(arrays, cls.kind.name, source)
        try:
            made = cls(**settings)
            made._state.load(arrays)
        except Exception as error:  # damaged values fail wherever they are first used
            raise FileFormatError(f"{source} is a damaged accumulator ({error!r})") from error
        return made

    @classmethod
    def _from_bytes(cls, data: bytes) -> Self:
        return cls._unpacked(from_bytes(data), "what another process sent")

    def __reduce__(self) -> tuple[Any, ...]:  # pickled in the compact form
        return type(self)._from_bytes, (to_bytes(self._packed()),)

    @property
    def statistics(self) -> Statistics:
        """Statistics of everything counted so far; EmptyInputError if the task has none for an empty stream."""
        self._state.drain()
        if self._state.collector is None:
            if "n_classes" in self.kind.layout.alike:
                raise EmptyInputError(f"no samples were counted: {self._state.counts}", self._state.counts)
            facts: dict[str, Any] = {name: self.settings.get(name) for name in self.kind.layout.alike}
            return Statistics.zero(self.kind.layout, SKETCH_BITS, **facts).with_counts(self._state.counts)
        return self._state.collector.statistics().with_counts(self._state.counts)

    @property
    def group_tables(self) -> GroupTables | None:
        """Coarse statistics of the groups, from which resampling makes confidence intervals; None without groups."""
        return self._state.tables("groups")

    @property
    def stratum_statistics(self) -> dict[Label, Statistics]:
        """Statistics per label of ``by``."""
        return by_label(self._state.tables("by"))

    @property
    def cases(self) -> dict[int, Case]:
        """The spatial cases kept for maps, by number in the stream."""
        self._state.drain()
        return dict(self._state.maps.cases)

    def keep(self, number: int, case: Case) -> None:
        """Keep a case for maps that does not come from a batch."""
        self._state.maps.cases[number] = case

    @property
    def n(self) -> int:
        """Number of samples that count so far."""
        self._state.drain()
        return self._state.counts["n"]

    @property
    def defect(self) -> str:
        """What is bad in the first batch with bad values that were left out; empty if none were."""
        self._state.drain()
        return self._state.defect

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batches={self._state.batches}, statistics={self.settings['statistics']!r})"

    def compute(
        self,
        *,
        on_invalid: Literal["raise", "drop"] | None = None,
        calibration: Any = None,
        recalibration: str | Iterable[str] | None = None,
        intervals: bool | None = None,
        level: float = 0.95,
        seed: int = 0,
    ) -> Report:
        """Return the report of everything counted so far; counting can continue.

        Parameters
        ----------
        on_invalid : {"raise", "drop"}, optional
            "drop" accepts bad values that a device counted; they are left out of the statistics either way.
        calibration, recalibration
            As for `evaluate`, for a regression with ``statistics="exact"``. Otherwise the report says why there are
            no scores after recalibration (``refused``), and you get a warning.
        intervals, level, seed
            As for `evaluate`: intervals are made if batches came with ``groups``, unless this is False.

        Raises
        ------
        EmptyInputError
            No samples were counted.
        InvalidValueError
            Batches counted on a device held bad values.
        SettingsError
            An option is out of range, or intervals are requested but no batch came with ``groups``.
        """
        if on_invalid is not None:
            check_choice("on_invalid", on_invalid, ("raise", "drop"))
        names = {name: self.settings[name] for name in self.kind.settings}
        plan = Plan.of(
            self.kind,
            Settings(**{**names, "unit": self._state.unit}),
            calibration=calibration,
            recalibration=recalibration,
            intervals=intervals,
            level=level,
            seed=seed,
        )
        return self.report(plan, on_invalid)

    def report(self, plan: Plan, on_invalid: Literal["raise", "drop"] | None = None) -> Report:
        """The report of everything counted so far, as planned."""
        self._state.drain()
        self._check_defects(on_invalid or self.settings["on_invalid"])
        if not self._state.counts["n"]:
            raise EmptyInputError(
                f"no samples were counted in {self._state.batches} batches: {self._state.counts}"
                f"{f'; {self._state.defect}' if self._state.defect else ''}",
                self._state.counts,
            )
        statistics, tables, settings = self.statistics, self.group_tables, plan.settings
        if settings.unit is None:
            settings = replace(settings, unit=self.settings.get("unit"))
        if plan.intervals and tables is None:
            raise SettingsError("a stream has intervals only over groups; pass groups= to update")
        about = {**statistics.facts, **self._state.about}
        digest = self._state.fingerprint.digest
        asked = self.settings["metrics"]
        report = score(statistics, settings, self._metrics, digest=digest, about=about, asked=asked)
        if tables is not None and plan.intervals is not False:
            tables = tables.pooled_to(MOST_GROUPS)
            report = with_intervals(report, tables, settings, self._metrics, plan.level)
        strata = self.stratum_statistics
        if strata:
            made = Extras()
            made.add(by_group(strata, settings, find(plan.wanted.metrics, self.task)))
            report = replace(report, curves={**report.curves, **made.curves})
        return plan.recalibrated(report, settings, self._metrics)

    def _check_defects(self, on_invalid: str) -> None:
        if on_invalid == "raise" and self._state.counts["n_invalid"]:
            raise InvalidValueError(
                f"{self._state.defect or 'bad values'}; noticed only now because devices count asynchronously. "
                "They are left out of the statistics; to accept that, use compute(on_invalid='drop') or "
                "Accumulator(on_invalid='drop')"
            )
