"""How batches of any task are counted, merged, stored and scored."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from uq_tracking.errors import (
    EmptyInputError,
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
from uq_tracking.inputs.fingerprint import Fingerprint
from uq_tracking.metrics.registry import find, select
from uq_tracking.report import Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import Collector, RowCollector, SketchCollector
from uq_tracking.statistics.group_pooling import MOST_GROUPS, Label
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.group_tally import (
    GROUP_BITS,
    GROUP_TABLE_BITS,
    STRATUM_BITS,
    STRATUM_TABLE_BITS,
    GroupTally,
)
from uq_tracking.statistics.sketch import SKETCH_BITS
from uq_tracking.statistics.statistics import Statistics, by_label
from uq_tracking.streams.base import Arrays, Streaming, beneath, under
from uq_tracking.streams.map_samples import MapSamples, Wanted, case_image, check_image_count
from uq_tracking.tasks import Task

if TYPE_CHECKING:
    from uq_tracking.streams.device import DeviceCounts

LABELS: tuple[Literal["groups"], Literal["by"]] = ("groups", "by")
MAX_BITS = 14


class BatchAccumulator(Streaming):
    """What the accumulators of all tasks share: counting, merging, files, and the report.

    A task's own class names its options; ``input_options`` are those that its predictions accept.
    """

    kind: ClassVar[Task]
    input_options: ClassVar[tuple[str, ...]]
    free: ClassVar[tuple[str, ...]] = ("maps", "on_device", "class_names")

    def __init__(self, settings: Mapping[str, Any], metrics: Iterable[str] | None, maps: Wanted) -> None:
        statistics, bits = settings["statistics"], settings["bits"]
        if statistics not in ("sketch", "exact"):
            raise SettingsError(f"statistics is {statistics!r}; choose sketch or exact")
        if not isinstance(bits, int) or not GROUP_BITS - 1 <= bits <= MAX_BITS:
            raise SettingsError(f"bits is {bits!r}; choose {GROUP_BITS - 1} to {MAX_BITS}")
        if settings["on_invalid"] not in ("raise", "drop"):
            raise SettingsError(f"on_invalid={settings['on_invalid']!r}; pass 'raise' or 'drop'")
        self._metrics = select(self.kind.name, metrics)
        super().__init__(
            {
                **settings,
                "metrics": None if metrics is None else [metric.key for metric in self._metrics],
                "maps": list(maps) if isinstance(maps, list | tuple | range) else maps,
            }
        )

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.kind.name

    def _start(self) -> None:
        self._collector: Collector | None = None
        self._tallies: dict[str, GroupTally] = {}
        self._counts = dict.fromkeys(self.kind.layout.counts, 0)
        self._fingerprint = Fingerprint()
        self._maps = MapSamples(self.settings["maps"])
        self._about: dict[str, Any] = {}
        self._unit: str | None = self.settings.get("unit")
        self._batches = 0
        self._devices: DeviceCounts | None = None
        self._defect = ""

    def _open(self, facts: Mapping[str, Any]) -> Collector:
        """The collector and the tallies of labels; IncompatibleStatisticsError if earlier batches differ."""
        layout, bits = self.kind.layout_for(facts), self.settings["bits"]
        if self._collector is None:
            exact = self.settings["statistics"] == "exact"
            self._collector = RowCollector(layout, facts) if exact else SketchCollector(layout, facts, bits)
            self._tallies = {
                "groups": GroupTally(layout, facts, GROUP_BITS, GROUP_TABLE_BITS),
                "by": GroupTally(layout, facts, STRATUM_BITS, STRATUM_TABLE_BITS),
            }
        for name in {**facts, **self._collector.facts}:
            value, known = facts.get(name), self._collector.facts.get(name)
            if known != value:
                raise IncompatibleStatisticsError(
                    f"{layout.alike.get(name, name)} differs ({known} before, {value} in this "
                    "batch); every batch needs the same"
                )
        return self._collector

    @abstractmethod
    def update(self, *arrays: Any, **options: Any) -> None:
        """Count a batch."""

    def _count_batch(
        self, arrays: Sequence[Any], *, mask: Any, weights: Any, groups: Any, by: Any, images: Any
    ) -> None:
        """Count a batch; if this raises, nothing of it is counted."""
        self._check_open()
        if weights is None and self._counted_on_device(arrays, mask, groups, by, images):
            return
        try:
            data = self._read(arrays, mask=mask, weights=weights, groups=groups, by=by)
        except EmptyInputError as error:
            self.count_nothing(error.counts, arrays[0])
            return
        self._check_labels(data)
        unit = _one_unit(self._unit, getattr(data, "unit", None), given=self.settings.get("unit") is not None)
        check_image_count(data.shape, images)
        chosen = self._maps.choose(data.shape)
        collector = self._open(data.facts)
        codes = {name: data.label_codes(name) for name in LABELS if getattr(data, name) is not None}
        for rows in data.row_blocks():
            collector.add(rows)
        for name, (labels, code) in codes.items():
            for rows in data.row_blocks(codes=code):
                columns = dict(rows)
                own = columns.pop("codes")
                self._tallies[name].add(labels, own, columns)
        self._unit, self._about = unit, data.about
        self._fingerprint += data.fingerprint()
        self._count(data.counts)
        self._maps.add(
            data.shape,
            chosen,
            lambda place: data.case(place, _own(case_image(images, place, data.shape))).copy(),
        )

    def _read(self, arrays: Sequence[Any], **options: Any) -> Any:
        own = {name: self.settings[name] for name in self.input_options}
        if not isinstance(arrays[0], self.kind.predictions):
            return self.kind.read(*arrays, **options, **own)
        data = self.kind.read(*arrays, **options)
        floor = self.settings.get("std_floor")
        if getattr(data, "std_floor", None) != floor:
            raise SettingsError(
                f"std_floor is {data.std_floor} for the Predictions but {floor} for the Accumulator; use the same"
            )
        return data

    def _count(self, counts: Mapping[str, int]) -> None:
        for name in self._counts:
            self._counts[name] += counts.get(name, 0)
        self._batches += 1

    def count_nothing(self, counts: Mapping[str, int], truth: Any) -> None:
        """Count a batch without remaining samples: its cases, and the samples left out."""
        shape = truth.shape if hasattr(truth, "shape") else np.shape(truth)
        self._count(counts)
        self._maps.add(tuple(shape), [], _no_case)

    def _check_labels(self, data: Any) -> None:
        for name in LABELS:
            given, known = getattr(data, name) is not None, bool(self._tallies.get(name))
            if given != known and (known or self._counts["n"] or self._devices):
                raise SettingsError(
                    f"{name} was {'' if known else 'not '}given for earlier batches; pass it for all or for none"
                )

    def _counted_on_device(self, arrays: Sequence[Any], mask: Any, groups: Any, by: Any, images: Any) -> bool:
        """Count torch tensors of a regression where they live, if that is what they are."""
        on_device = self.settings.get("on_device", False)
        if groups is not None or by is not None or self.settings["statistics"] == "exact":
            return False
        from uq_tracking.streams.device import DeviceCounts, countable, cutter

        if not countable(tuple(arrays), on_device=on_device):
            return False
        if any(self._tallies.values()):
            raise SettingsError("groups or by was given for earlier batches; pass it for all or for none")
        shape = tuple(arrays[0].shape)
        check_image_count(shape, images)
        chosen = self._maps.choose(shape)
        self._open({"std_floor": self.settings["std_floor"]})
        self._devices = self._devices or DeviceCounts(self.settings["bits"], self.settings["std_floor"])
        truth, mean, std = arrays
        self._devices.add(truth, mean, std, mask, self._batches)
        self._batches += 1
        self._maps.add(shape, chosen, cutter(truth, mean, std, mask, images))
        return True

    def _drain(self) -> None:
        """Bring what the devices counted to the host."""
        if self._devices is None or not isinstance(self._collector, SketchCollector):
            return
        for part in self._devices.drain():
            self._collector.absorb_statistics(part.statistics)
            self._fingerprint += part.fingerprint
            for name in self._counts:
                self._counts[name] += part.flags[name]
            self._defect = self._defect or part.defect
        self._maps.to_host()

    @property
    def statistics(self) -> Statistics:
        """Statistics of everything counted so far; EmptyInputError if the task has none for an empty stream."""
        self._drain()
        if self._collector is None:
            if "n_classes" in self.kind.layout.alike:
                raise EmptyInputError(f"no samples were counted: {self._counts}", self._counts)
            facts: dict[str, Any] = {name: self.settings.get(name) for name in self.kind.layout.alike}
            return Statistics.zero(self.kind.layout, SKETCH_BITS, **facts).with_counts(self._counts)
        return self._collector.statistics().with_counts(self._counts)

    @property
    def group_tables(self) -> GroupTables | None:
        """Coarse statistics of the groups, from which resampling makes confidence intervals; None without groups."""
        return self._tallies["groups"].tables() if self._tallies.get("groups") else None

    @property
    def group_statistics(self) -> dict[Label, Statistics]:
        """Coarse statistics per label of ``groups``."""
        return by_label(self.group_tables)

    @property
    def stratum_statistics(self) -> dict[Label, Statistics]:
        """Statistics per label of ``by``."""
        return by_label(self._tallies["by"].tables()) if self._tallies.get("by") else {}

    @property
    def cases(self) -> dict[int, Case]:
        """The spatial cases kept for maps, by number in the stream."""
        self._drain()
        return dict(self._maps.cases)

    def keep(self, number: int, case: Case) -> None:
        """Keep a case for maps that does not come from a batch."""
        self._maps.cases[number] = case

    @property
    def n(self) -> int:
        """Number of samples that count so far."""
        self._drain()
        return self._counts["n"]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batches={self._batches}, statistics={self.settings['statistics']!r})"

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
        names = {name: self.settings[name] for name in self.kind.settings}
        plan = Plan.of(
            self.kind,
            Settings(**{**names, "unit": self._unit}),
            calibration=calibration,
            recalibration=recalibration,
            intervals=intervals,
            level=level,
            seed=seed,
        )
        return self.report(plan, on_invalid)

    def report(self, plan: Plan, on_invalid: Literal["raise", "drop"] | None = None) -> Report:
        """The report of everything counted so far, as planned."""
        self._drain()
        self._check_defects(on_invalid or self.settings["on_invalid"])
        if not self._counts["n"]:
            raise EmptyInputError(
                f"no samples were counted in {self._batches} batches: {self._counts}", self._counts
            )
        statistics, tables, settings = self.statistics, self.group_tables, plan.settings
        if plan.intervals and tables is None:
            raise SettingsError("a stream has intervals only over groups; pass groups= to update")
        about = {**statistics.facts, **self._about}
        digest = self._fingerprint.digest
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
        if on_invalid == "raise" and self._counts["n_invalid"]:
            raise InvalidValueError(
                f"{self._defect or 'bad values'}; noticed only now because devices count asynchronously. "
                "They are left out of the statistics; to accept that, use compute(on_invalid='drop') or "
                "Accumulator(on_invalid='drop')"
            )

    def _absorb(self, other: BatchAccumulator) -> None:
        self._drain()
        other._drain()
        for name in LABELS:
            mine, theirs = (bool(acc._tallies.get(name)) for acc in (self, other))
            if mine != theirs and self._counts["n"] and other._counts["n"]:
                raise IncompatibleStatisticsError(
                    f"{name} was given to only one accumulator; pass it to both"
                )
        self._unit = _one_unit(self._unit, other._unit, given=self.settings.get("unit") is not None)
        if other._collector is not None:
            self._open(other._collector.facts).absorb(other._collector)
            for name in LABELS:
                tables = other._tallies[name].tables()
                if tables is not None:
                    self._tallies[name].absorb(tables)
        for count in self._counts:
            self._counts[count] += other._counts[count]
        self._fingerprint += other._fingerprint
        self._maps.merge(other._maps)
        self._about = other._about or self._about
        self._batches += other._batches
        self._defect = self._defect or other._defect

    def _to_arrays(self) -> Arrays:
        self._drain()
        about = {
            "about": self._about,
            "unit": self._unit,
            "defect": self._defect,
            "batches": self._batches,
            "facts": None if self._collector is None else self._collector.facts,
        }
        arrays = {
            "state": np.asarray(json.dumps(about)),
            "counts": np.asarray(list(self._counts.values()), dtype=np.int64),
            "fingerprint": self._fingerprint.to_array(),
            **beneath("maps", self._maps.to_arrays()),
        }
        if self._collector is not None:
            arrays |= beneath("collector", self._collector.to_arrays())
        for name, tally in self._tallies.items():
            tables = tally.tables()
            arrays |= {} if tables is None else beneath(name, tables.to_arrays(full=True))
        return arrays

    def _load(self, arrays: Arrays) -> None:
        state = json.loads(str(arrays["state"]))
        self._counts = dict(zip(self._counts, (int(c) for c in arrays["counts"]), strict=True))
        self._fingerprint = Fingerprint.from_array(arrays["fingerprint"])
        self._batches, self._unit = int(state["batches"]), state["unit"]
        self._defect, self._about = str(state["defect"]), dict(state["about"])
        self._maps.load(under(arrays, "maps"))
        if state["facts"] is not None:
            self._open(state["facts"]).load(under(arrays, "collector"))
            for name in LABELS:
                stored = under(arrays, name)
                if stored:
                    self._tallies[name].absorb(
                        GroupTables.from_arrays(self.kind.layout_for(state["facts"]), stored)
                    )


def _one_unit(known: str | None, new: str | None, *, given: bool) -> str | None:
    """The target's unit; a given one takes precedence over those that arrays carry."""
    if given or new is None or known == new:
        return known
    if known is None:
        return new
    raise IncompatibleStatisticsError(
        f"unit differs ({known} and {new}); convert to one unit, or pass unit= to accept both"
    )


def _own(image: Any) -> Any:
    """A copy of an image: the batch is gone by the time it is drawn."""
    return None if image is None else np.array(image.cpu() if hasattr(image, "cpu") else image)


def _no_case(place: Any) -> Case:
    raise SettingsError(f"a batch without samples has no case {place}")
