"""What an accumulator has counted: batches are added to it, and it is merged, stored, sent and read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.errors import IncompatibleStatisticsError, SettingsError
from uq_tracking.evaluation.scoring import narrowed
from uq_tracking.inference.even_samples import LABELS, EvenSamples, codes_of
from uq_tracking.inputs.fingerprint import MODULUS
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.metrics.registry import select
from uq_tracking.npz import Arrays, prefixed, under
from uq_tracking.settings import Settings
from uq_tracking.statistics.blocks import BlockCounter, block_length
from uq_tracking.statistics.classification import ClassSums, class_sums
from uq_tracking.statistics.groups import STRATUM_BITS, STRATUM_TABLE_BITS, GroupTables, GroupTally
from uq_tracking.statistics.statistics import RowCollector, SketchCollector
from uq_tracking.streams.map_samples import MapSamples, case_image, check_image_count
from uq_tracking.tasks import Task

if TYPE_CHECKING:
    from uq_tracking.streams.device import TorchSketch


class State:
    """Everything counted so far, on the host and, until ``drain``, on devices.

    Parameters
    ----------
    kind : Task
        The task being counted.
    settings : dict
        The accumulator's.
    start : tuple, optional
        Where the first sample is among all, as for `EvenSamples`.
    """

    def __init__(self, kind: Task, settings: Mapping[str, Any], start: Sequence[Any] = ()) -> None:
        self.kind, self.settings = kind, settings
        self.even = EvenSamples(*start)
        """Some of the samples; of others, such as those counted on a device, nothing is known."""
        self.is_union = False
        """Whether these are the samples of all processes."""
        self.collector: SketchCollector | RowCollector | None = None
        self.tallies: dict[str, GroupTally] = {}
        self.counts = dict.fromkeys(kind.layout.counts, 0)
        self.hashes = 0
        """Sum of the samples' hashes."""
        self.blocks: BlockCounter | None = None
        """None before the first batch, and once samples were counted on a device, where their order is lost."""
        self.classes: ClassSums | None = None
        self._place = (block_length(start[0]), start[1]) if start else None
        self.maps = MapSamples(settings["maps"])
        self.about: dict[str, Any] = {}
        self.unit: str | None = settings.get("unit")
        self.batches = 0
        self.devices: dict[Any, TorchSketch] = {}
        self.defect = ""
        """What was bad in samples that were left out, and in which batch first; empty if nothing was."""

    def _open(self, facts: Mapping[str, Any]) -> SketchCollector | RowCollector:
        """The collector, with the tallies of labels; IncompatibleStatisticsError if earlier batches differ."""
        layout, bits = self.kind.layout_for(facts), self.settings["bits"]
        if self.collector is None:
            exact = self.settings["statistics"] == "exact"
            self.collector = RowCollector(layout, facts) if exact else SketchCollector(layout, facts, bits)
            scored = {name: self.settings[name] for name in self.kind.settings if name != "unit"}
            self.blocks = BlockCounter(layout, facts, Settings(**scored), self._place)
            self.tallies = {
                "groups": GroupTally(layout, facts),
                "by": GroupTally(layout, facts, STRATUM_BITS, STRATUM_TABLE_BITS),
            }
        for name in {**facts, **self.collector.facts}:
            value, known = facts.get(name), self.collector.facts.get(name)
            if known != value:
                raise IncompatibleStatisticsError(
                    f"{layout.alike.get(name, name)} differs ({known} before, {value} in this "
                    "batch); every batch needs the same"
                )
        return self.collector

    def add(self, data: Any, images: Any) -> None:
        """Count predictions; if this raises, nothing of them is counted."""
        self._check_labels(data)
        whole, metrics = data, self.settings["metrics"]
        data = data if metrics is None else narrowed(data, select(self.kind.name, metrics))
        unit = self._unit_with(getattr(data, "unit", None))
        if images is not None:
            check_image_count(data.shape, images)
        chosen = self.maps.choose(data.shape)
        collector = self._open(data.facts)
        codes = codes_of(data)
        self.even.add(whole, codes)
        for rows in data.row_blocks():
            collector.add(rows)
            if self.blocks is not None:
                self.blocks.add(rows)
        for name, (labels, code) in codes.items():
            for rows in data.row_blocks(codes=code):
                self.tallies[name].add(labels, rows)
        self._add_classes(class_sums(data))
        self.unit, self.about = unit, data.about
        self.hashes += data.sum_of_hashes()
        self._count(data.counts)
        self.maps.add(
            data.shape,
            chosen,
            lambda place: data.case(place, _own(case_image(images, place, data.shape))).copy(),
        )

    def _add_classes(self, sums: ClassSums | None) -> None:
        if sums is not None:
            self.classes = sums if self.classes is None else self.classes + sums

    def add_nothing(self, counts: Mapping[str, int], truth: Any) -> None:
        """Count a batch without remaining samples: its cases, and the samples left out."""
        shape = truth.shape if hasattr(truth, "shape") else np.shape(truth)
        self._count(counts)
        self.maps.skip(tuple(shape))

    def add_on_device(self, arrays: Sequence[Any], mask: Any, images: Any) -> None:
        """Count torch tensors of a regression on the device where they are."""
        from uq_tracking.streams.device import NAMES, TorchSketch, cutter, tensor_mask

        if any(self.tallies.values()):
            raise SettingsError("groups or by was given for earlier batches; pass it for all or for none")
        truth, mean, std = arrays
        shape = tuple(truth.shape)
        if images is not None:
            check_image_count(shape, images)
        chosen = self.maps.choose(shape)
        floor = self.settings["std_floor"]
        self._open({"std_floor": floor})
        self.blocks = None
        check_shapes(*((name, tuple(each.shape)) for name, each in zip(NAMES, arrays, strict=True)))
        mask, device = tensor_mask(mask, truth), truth.device
        if device not in self.devices:
            self.devices[device] = TorchSketch(device, self.settings["bits"], floor)
        self.devices[device].add(truth, mean, std, mask, self.batches)
        self.batches += 1
        self.maps.add(shape, chosen, cutter(truth, mean, std, mask, images))

    def drain(self) -> None:
        """Bring what the devices counted to the host."""
        if not isinstance(self.collector, SketchCollector):
            return
        for statistics, hashes, defect in [sketch.drain() for sketch in self.devices.values()]:
            self.collector.absorb(statistics)
            self.hashes += hashes
            self._count(statistics.counts, 0)  # batches were counted as they came
            self.defect = self.defect or defect
        self.maps.to_host()

    def _check_labels(self, data: Any) -> None:
        for name in LABELS:
            given, known = getattr(data, name) is not None, bool(self.tallies.get(name))
            if given != known and (known or self.counts["n"] or self.devices):
                raise SettingsError(
                    f"{name} was {'' if known else 'not '}given for earlier batches; pass it for all or for none"
                )

    def _unit_with(self, new: str | None) -> str | None:
        """The target's unit; one among the settings takes precedence over those that arrays carry."""
        if self.settings.get("unit") is not None or new is None or self.unit == new:
            return self.unit
        if self.unit is None:
            return new
        raise IncompatibleStatisticsError(
            f"unit differs ({self.unit} and {new}); convert to one unit, or pass unit= to accept both"
        )

    def _count(self, counts: Mapping[str, int], batches: int = 1) -> None:
        for name in self.counts:
            self.counts[name] += counts.get(name, 0)
        self.batches += batches

    def tables(self, name: str) -> GroupTables | None:
        """Coarse statistics per label of ``groups`` or ``by``; None without such labels."""
        tally = self.tallies.get(name)
        return None if tally is None else tally.tables()

    def merge(self, other: State) -> None:
        """Add what was counted with equal settings."""
        self.drain()
        other.drain()
        for name in LABELS:
            mine, theirs = (bool(state.tallies.get(name)) for state in (self, other))
            if mine != theirs and self.counts["n"] and other.counts["n"]:
                raise IncompatibleStatisticsError(
                    f"{name} was given to only one accumulator; pass it to both"
                )
        self.unit = self._unit_with(other.unit)
        if other.collector is not None:
            # Of the same class, because the settings agree.
            collector: Any = self._open(other.collector.facts)
            collector.merge(other.collector)
            for name in LABELS:
                if (tables := other.tables(name)) is not None:
                    self.tallies[name].absorb(tables)
            if self.blocks is not None and other.blocks is not None:
                self.blocks.merge(other.blocks)
            else:
                self.blocks = None
        self._count(other.counts, other.batches)
        self.hashes += other.hashes
        self._add_classes(other.classes)
        self.even.merge(other.even)
        self.maps.merge(other.maps)
        self.about = other.about or self.about
        self.defect = self.defect or other.defect

    def to_arrays(self) -> Arrays:
        """Plain arrays that ``load`` reads."""
        self.drain()
        about = {
            "about": self.about,
            "unit": self.unit,
            "defect": self.defect,
            "batches": self.batches,
            "facts": None if self.collector is None else self.collector.facts,
        }
        arrays = {
            "is_union": np.asarray(self.is_union),
            "state": np.asarray(json.dumps(about)),
            "counts": np.asarray(list(self.counts.values()), dtype=np.int64),
            "hashes": np.asarray(self.hashes % MODULUS, dtype=np.uint64),
        }
        parts: dict[str, Any] = {"maps": self.maps, "collector": self.collector, "even": self.even}
        for name, part in {**parts, "blocks": self.blocks, "classes": self.classes}.items():
            if part is not None:
                arrays |= prefixed(name, part.to_arrays())
        for name in LABELS:
            if (tables := self.tables(name)) is not None:
                arrays |= prefixed(name, tables.to_arrays(full=True))
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Restore what ``to_arrays`` returned."""
        state = json.loads(str(arrays["state"]))
        self.is_union = bool(arrays["is_union"])
        self.counts = dict(zip(self.counts, (int(c) for c in arrays["counts"]), strict=True))
        self.hashes = int(arrays["hashes"])
        self.batches, self.unit = int(state["batches"]), state["unit"]
        self.defect, self.about = str(state["defect"]), dict(state["about"])
        self.maps.load(under("maps", arrays))
        if (facts := state["facts"]) is not None:
            self._open(facts).load(under("collector", arrays))
            self.even.load(under("even", arrays))
            blocks, sums = under("blocks", arrays), under("classes", arrays)
            self.classes = ClassSums.from_arrays(sums) if sums else None
            if self.blocks is not None and blocks:
                self.blocks.load(blocks)
            else:
                self.blocks = None
            for name in LABELS:
                if stored := under(name, arrays):
                    layout = self.kind.layout_for(facts)
                    self.tallies[name].absorb(GroupTables.from_arrays(layout, stored))


def _own(image: Any) -> Any:
    """A copy of an image: the batch is gone by the time it is drawn."""
    return None if image is None else np.array(image.cpu() if hasattr(image, "cpu") else image)
