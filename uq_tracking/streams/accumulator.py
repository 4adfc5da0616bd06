"""Score a stream: batches in, one report out, in constant memory."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from uq_tracking import plugins
from uq_tracking.checks import as_names, check_choice, listing, named_options, path_of, usual_errors
from uq_tracking.errors import (
    EmptyInputError,
    FileFormatError,
    IncompatibleStatisticsError,
    InvalidValueError,
    SettingsError,
    UnknownMetricError,
    UnknownOptionError,
)
from uq_tracking.evaluation.parts import with_strata
from uq_tracking.evaluation.plan import Plan
from uq_tracking.evaluation.scoring import score
from uq_tracking.inference.intervals import with_intervals
from uq_tracking.inputs.constructors import OF_CLASSES, OfClasses
from uq_tracking.inputs.fingerprint import digest_of_sum
from uq_tracking.inputs.forms.mean_std import Numbers, check_floor
from uq_tracking.inputs.forms.probabilities import Probabilities, are_numbers
from uq_tracking.inputs.labels import sets_of
from uq_tracking.inputs.predictions import Case, Forecast, Predictions
from uq_tracking.metrics.registry import select
from uq_tracking.npz import ABOUT, VERSION, Arrays, read_about, read_arrays, write_arrays
from uq_tracking.report import Report
from uq_tracking.settings import Family, ScoreOptions, Settings
from uq_tracking.statistics.groups import GROUP_BITS, MOST_GROUPS, GroupTables, Label
from uq_tracking.statistics.sketch import SKETCH_BITS
from uq_tracking.statistics.statistics import Statistics, by_label
from uq_tracking.streams.map_samples import WantedMaps, checked_maps
from uq_tracking.streams.state import State
from uq_tracking.tasks import Task, task_of
from uq_tracking.typed import Self, Unpack

FORMAT = "uq_tracking.streams.accumulator"
MAX_BITS = 14
OTHER = "what another process sent"
MAY_DIFFER = ("maps", "on_device", "classes")
"""Settings that accumulators may be merged across, because they do not affect any number."""


class AccumulatorOptions(OfClasses, total=False):
    """Options of `Accumulator` that are also those of `evaluate`, for type checkers."""

    metrics: Iterable[str] | None
    alpha: float
    n_bins: int
    family: Family
    dof: float
    unit: str | None
    std_floor: float | None
    on_invalid: Literal["raise", "drop"]


class Accumulator:
    """Counts predictions batch by batch and scores them as `evaluate` would score them all at once.

    Only statistics of constant size are kept, about 5 MB: a sketch (buckets of relative width ``2 ** -11``), whose
    accuracy the report states. Splitting the same stream into different batches changes nothing; merging in another
    order changes nothing beyond rounding. The first batch decides what is counted: means and standard deviations, or
    class probabilities; an accumulator without a batch merges with any other.

    Parameters
    ----------
    statistics : {"sketch", "exact"}
        "exact" keeps every sample, or six numbers per sample of class probabilities, for sets that fit in memory; the
        report then equals `evaluate`'s exact one.
    maps : "auto", bool, int or list of int
        Spatial cases, shape (..., height, width), to keep for drawing. "auto": the first four of batches that look
        like pictures; an int: the first that many; a list: these numbers, counted over all batches.
    bits : int
        Mantissa bits of a bucket, 4 to 14; memory doubles with each bit.
    on_device : bool, optional
        Count torch tensors on the device where they live, without copying them to the host or waiting for the
        device. None: CUDA tensors; True: also CPU tensors; False: none. Bad values are then reported by ``compute``,
        not by ``update``; batches with ``groups`` or ``by``, class probabilities, and all batches with
        ``statistics="exact"``, are still copied to the host.
    metrics, alpha, n_bins, family, dof, unit
        As for `evaluate`.
    std_floor, on_invalid, logits, class_axis, members_axis, ignore_label, classes, event
        As for `Predictions` and `Predictions.from_probs`, which check every batch. A rejected batch is not counted at
        all. A batch without any ground truth is counted as missing and does not stop the stream.

    Examples
    --------
    >>> import numpy as np
    >>> acc = Accumulator()
    >>> for seed in range(3):
    ...     rng = np.random.default_rng(seed)
    ...     mean = rng.normal(size=1000)
    ...     acc.update(mean + rng.normal(size=1000), mean, np.ones(1000))
    >>> report = acc.compute()
    >>> report.counts["n"], round(report.scores["nll"], 1)
    (3000, 1.4)
    >>> acc = Accumulator(ignore_label=255)
    >>> acc.update([0, 1, 255], probs=[[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]])
    >>> acc.update([1], probs=[[0.7, 0.3]])
    >>> report = acc.compute()
    >>> report.counts["n"], report.counts["n_ignored"], round(report.scores["accuracy"], 3)
    (3, 1, 0.667)
    """

    @named_options
    @listing(Settings, **OF_CLASSES, metrics=None, std_floor=None, on_invalid="raise")
    def __init__(
        self,
        *,
        statistics: Literal["sketch", "exact"] = "sketch",
        maps: WantedMaps = "auto",
        bits: int = SKETCH_BITS,
        on_device: bool | None = None,
        **options: Unpack[AccumulatorOptions],
    ) -> None:
        known = {name: item.default for name, item in inspect.signature(type(self)).parameters.items()}
        check_choice("statistics", statistics, ("sketch", "exact"))
        if not isinstance(bits, int) or not GROUP_BITS - 1 <= bits <= MAX_BITS:
            raise SettingsError(f"bits is {bits!r}; choose {GROUP_BITS - 1} to {MAX_BITS}")
        given: dict[str, Any] = dict(options)
        given |= {name: value for name, value in Settings.from_dict(given).to_dict().items() if name in given}
        for name in ("metrics", "classes"):
            if given.get(name) is not None:
                names = as_names(name, given[name])
                given[name] = np.asarray(given[name]).tolist() if are_numbers(given[name]) else list(names)
        check_choice("on_invalid", given.get("on_invalid", "raise"), ("raise", "drop"))
        check_floor(given.get("std_floor"))
        self._given = given
        """Options that were passed by name: plain values, ready for JSON."""
        self.settings: dict[str, Any] = {
            **known,
            **given,
            "statistics": statistics,
            "maps": checked_maps(maps),
            "bits": bits,
            "on_device": on_device,
        }
        """All options by name: plain values, ready for JSON."""
        self._axes: dict[str, int] = {}
        """Axis of the classes, as the first batch had it."""
        self._state: State | None = None
        """What was counted; None until the first batch, which decides the task."""
        self._start: tuple[Any, ...] = ()
        """What `place` says of the first sample."""
        self._check_fits(list(plugins.tasks().values()))

    def _check_fits(self, tasks: Sequence[Task]) -> None:
        """Raise SettingsError if no task has all given options and metrics."""
        problems = [problem for task in tasks if (problem := self.problem_with(task)) is not None]
        if len(problems) == len(tasks):
            raise problems[0]

    def problem_with(self, task: Task) -> SettingsError | None:
        """Return which of the options and metrics given by name the task lacks, as an error; None if it has all."""
        if strange := [name for name in self._given if name not in task.options]:
            return SettingsError(f"{', '.join(strange)} cannot be used with {task.forecast}; omit it")
        try:
            select(task.name, self._given.get("metrics"))
        except UnknownMetricError as error:
            return error
        return None

    @property
    def task(self) -> str | None:
        """Name of the task; None before the first batch."""
        return None if self._state is None else self._state.kind.name

    def reset(self) -> None:
        """Forget every sample; the settings stay."""
        self._state = None

    @usual_errors()
    def update(
        self,
        y_true: Any,
        y_pred: Any = None,
        y_std: Any = None,
        *,
        probs: Any = None,
        mask: Any = None,
        weights: Any = None,
        groups: Any = None,
        by: Any = None,
        images: Any = None,
        **arrays: Any,
    ) -> None:
        """Count a batch; if this raises, nothing of it is counted.

        Parameters
        ----------
        y_true, y_pred, y_std : arrays of equal shape
            Truth, predictive mean and std, as for `Predictions`; or a `Predictions` instead of all three.
        probs : array
            Class probabilities, as for `Predictions.from_probs`; ``y_true`` then holds the labels.
        mask : bool array of the truth's shape, optional
            True excludes a sample.
        weights : array, optional
            How much each sample counts, as for `Predictions`. If given for one batch, they must be given for all.
        groups, by : labels, optional
            As for `Predictions`: the image or block of each sample, and its stratum. If given for one batch, they
            must be given for all.
        images : array, shape (cases, h, w) or (cases, h, w, channels), optional
            Input images of spatial batches; those of the kept cases are kept.
        **arrays
            Arrays of a plugin's form, by the names that it takes.

        Raises
        ------
        InputError
            The batch cannot be scored.
        IncompatibleStatisticsError
            Earlier batches were of another task, or had another number of classes.
        """
        taken = {name for kind in plugins.forms().values() for name in kind.takes}
        if unknown := arrays.keys() - taken:
            own = inspect.signature(self.update).parameters.keys() - {"arrays"}
            raise UnknownOptionError("update", unknown, own | taken)
        forecast = Forecast.of(y_true, {"y_pred": y_pred, "y_std": y_std, "probs": probs, **arrays})
        state = self._opened(task_of(forecast.kind))
        if weights is None and groups is None and by is None and self._goes_to_device(y_true, y_pred, y_std):
            state.add_on_device((y_true, y_pred, y_std), mask, images)
            self._state = state
            return
        options = {"mask": mask, "weights": weights, "groups": groups, "by": by}
        try:
            data = self._read(forecast, **options)
        except EmptyInputError as error:
            counts = error.counts
            state.add_nothing(counts, y_true)
        else:
            counts = data.counts
            state.add(data, images)
        self._state = state
        if counts.get("n_invalid") and not state.defect and not isinstance(y_true, Predictions):
            try:  # read again, without leaving samples out, to say what is bad
                self._read(forecast, **options, on_invalid="raise")
            except InvalidValueError as error:
                state.defect = f"in batch {state.batches - 1}, {error}"

    def _opened(self, task: Task) -> State:
        """Return the state to add to; IncompatibleStatisticsError if earlier batches were of another task."""
        if self._state is None:
            self._check_fits([task])
            return State(task, self.settings, self._start)
        if self._state.is_union:
            raise SettingsError(
                "this accumulator has held the samples of all processes since all_reduce(); reset() it before "
                "counting on, or samples would count once per process"
            )
        if self._state.kind is not task:
            raise IncompatibleStatisticsError(
                f"earlier batches held {self._state.kind.forecast}, this one {task.forecast}; use two accumulators"
            )
        return self._state

    def _goes_to_device(self, *tensors: Any) -> bool:
        """Return True for a truth, means and stds that are tensors on one device, to be counted there.

        By default only on CUDA devices: numpy can view CPU tensors anyway.
        """
        on_device, torch = self.settings["on_device"], sys.modules.get("torch")
        if self.settings["statistics"] == "exact" or on_device is False or torch is None:
            return False
        if not all(isinstance(tensor, torch.Tensor) and not tensor.is_complex() for tensor in tensors):
            return False
        kinds = {"cuda", "cpu"} if on_device else {"cuda"}
        return len({tensor.device for tensor in tensors}) == 1 and tensors[0].device.type in kinds

    def _read(self, forecast: Forecast, **options: Any) -> Predictions:
        if not isinstance(forecast.y_true, Predictions):
            wanted = {"on_invalid", *forecast.kind.options} | ({"unit"} if forecast.kind.in_unit else set())
            own = {name: value for name, value in self.settings.items() if name in wanted}
            data = forecast.predictions(**{**own, **self._axes, **options})
            if isinstance(data.form, Probabilities):  # a later batch may be as long as there are classes
                self._axes = {"class_axis": data.form.axes[0]}
            return data
        data = forecast.predictions(**options)
        floor = self.settings["std_floor"]
        if isinstance(data.form, Numbers) and data.form.std_floor != floor:
            raise SettingsError(
                f"std_floor is {data.form.std_floor} for the Predictions but {floor} for the Accumulator; "
                "use the same"
            )
        return data

    def place(self, start: int, samples: int, origin: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Say where the samples that follow begin among so many of an array, of which others count the rest."""
        self._start = samples, start, origin, shape

    def count_nothing(self, task: Task, counts: Mapping[str, int]) -> None:
        """Count a batch without remaining samples, which keeps no maps: the samples left out."""
        self._state = self._opened(task)
        self._state.add_nothing(counts, ())

    def merge(self, other: Self) -> Self:
        """Add the samples of another accumulator in place; the other one is left unchanged.

        The order of merging changes nothing beyond rounding (1e-12), and a fresh accumulator adds nothing.

        Raises
        ------
        IncompatibleStatisticsError
            The settings or the tasks differ; the message names which.
        """
        if not isinstance(other, Accumulator):
            raise IncompatibleStatisticsError(
                f"{type(other).__name__} is not an accumulator; merge accumulators, or pool reports with uq.pool"
            )
        for name, value in self.settings.items():
            if name not in MAY_DIFFER and other.settings[name] != value:
                raise IncompatibleStatisticsError(
                    f"{name} differs ({value} and {other.settings[name]}); count both with the same settings"
                )
        if other._state is not None:
            state = self._opened(other._state.kind)
            state.merge(other._state)
            self._state = state
        return self

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
        from uq_tracking.streams.device import gather

        if self._state is not None:
            self._opened(self._state.kind)  # refuses the samples of all processes
        union = type(self)._unpacked(self._packed(counted=False), "this process")
        for part in gather(self, group):
            union.merge(part)
        if union._state is not None:
            union._state.is_union = True
        self._state = union._state  # only now, so that nothing is lost if the others' samples do not fit
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
            The file is damaged, foreign or too new.
        """
        return cls._unpacked(read_arrays(path_of(path)), str(path))

    def _packed(self, *, counted: bool = True) -> Arrays:
        own = {name: self.settings[name] for name in ("statistics", "maps", "bits", "on_device")}
        about = {"format": FORMAT, "version": VERSION, "task": None, "settings": {**self._given, **own}}
        arrays: Arrays = {}
        if counted and self._state is not None:
            about["task"], arrays = self._state.kind.name, self._state.to_arrays()
        return {ABOUT: np.asarray(json.dumps(about)), **arrays}

    @classmethod
    def _unpacked(cls, arrays: Arrays, source: str) -> Self:
        about = read_about(arrays, source, FORMAT, "Accumulator.save")
        try:
            made = cls(**about["settings"])
            if about["task"] is not None:
                made._state = State(task_of(about["task"]), made.settings)
                made._state.load(arrays)
        except Exception as error:  # damaged values fail wherever they are first used
            raise FileFormatError(f"{source} is a damaged accumulator ({error!r})") from error
        return made

    def __reduce__(self) -> tuple[Any, ...]:  # pickled in the compact form
        return type(self)._unpacked, (self._packed(), OTHER)

    def _counted(self) -> State:
        """Return what was counted, on the host; EmptyInputError before the first batch."""
        if self._state is None:
            raise EmptyInputError("no samples were counted in 0 batches", {})
        self._state.drain()
        return self._state

    @property
    def statistics(self) -> Statistics:
        """Statistics of everything counted so far; EmptyInputError if there are none yet."""
        state = self._counted()
        if state.collector is None:
            raise EmptyInputError(f"no samples were counted: {state.counts}", state.counts)
        return replace(state.collector.statistics(), classes=state.classes).with_counts(state.counts)

    @property
    def group_tables(self) -> GroupTables | None:
        """Coarse statistics of the groups, from which resampling makes confidence intervals; None without groups."""
        return None if self._state is None else self._state.tables("groups")

    @property
    def stratum_statistics(self) -> dict[Label, Statistics]:
        """Statistics per label of ``by``."""
        found = by_label(None if self._state is None else self._state.tables("by"))
        strata: dict[Label, Statistics] = {}
        for names, place in sets_of(list(found)):
            for number, part in zip(place.tolist(), found.values(), strict=True):
                name = names[number]
                strata[name] = strata[name] + part if name in strata else part
        return strata

    @property
    def cases(self) -> dict[int, Case]:
        """The spatial cases kept for maps, by number in the stream."""
        return {} if self._state is None else dict(self._counted().maps.cases)

    def keep(self, number: int, case: Case) -> None:
        """Keep a case for maps that does not come from a batch."""
        self._counted().maps.cases[number] = case

    @property
    def n(self) -> int:
        """Number of samples that count so far."""
        return 0 if self._state is None else self._counted().counts["n"]

    @property
    def defect(self) -> str:
        """What is bad in the first batch with bad values that were left out; empty if none were."""
        return "" if self._state is None else self._counted().defect

    def __repr__(self) -> str:
        batches = 0 if self._state is None else self._state.batches
        return f"Accumulator(batches={batches}, statistics={self.settings['statistics']!r})"

    def compute(
        self,
        *,
        on_invalid: Literal["raise", "drop"] | None = None,
        calibration: Any = None,
        recalibration: Iterable[str] | None = None,
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
        state = self._counted()
        options = ScoreOptions(
            **{name: self.settings[name] for name in state.kind.settings},
            metrics=self.settings["metrics"],
            calibration=calibration,
            recalibration=recalibration,
            intervals=intervals,
            level=level,
            seed=seed,
        )
        return self.report(Plan(state.kind, options), on_invalid)

    def report(self, plan: Plan, on_invalid: Literal["raise", "drop"] | None = None) -> Report:
        """Score everything counted so far, as planned."""
        state = self._counted()
        if (on_invalid or self.settings["on_invalid"]) == "raise" and state.counts["n_invalid"]:
            raise InvalidValueError(
                f"{state.defect or 'bad values'}; noticed only now because devices count asynchronously. "
                "They are left out of the statistics; to accept that, use compute(on_invalid='drop') or "
                "Accumulator(on_invalid='drop')"
            )
        if not state.counts["n"]:
            raise EmptyInputError(
                f"no samples were counted in {state.batches} batches: {state.counts}"
                f"{f'; {state.defect}' if state.defect else ''}",
                state.counts,
            )
        statistics, tables, settings = self.statistics, self.group_tables, plan.options.settings
        if settings.unit is None:
            settings = replace(settings, unit=state.unit)
        if plan.options.intervals and tables is None:
            raise SettingsError("a stream has intervals only over groups; pass groups= to update")
        asked = self.settings["metrics"]
        chosen = select(state.kind.name, asked)
        about = {**statistics.facts, **state.about}
        report = score(
            statistics,
            settings,
            chosen,
            digest=digest_of_sum(state.hashes),
            about=about,
            asked=asked,
            samples=None if state.blocks is None else state.even.samples(),
            blocks=None if state.blocks is None else state.blocks.finished(),
        )
        if tables is not None and plan.options.intervals is not False:
            tables = tables.pooled_to(MOST_GROUPS)
            report = with_intervals(report, tables, settings, chosen, plan.options.level)
        if strata := self.stratum_statistics:
            report = with_strata(report, strata, settings, plan.curve_metrics, chosen, tables)
        return plan.recalibrated(report, settings, chosen)
