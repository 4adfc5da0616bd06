"""Scores of a stream: batches in, one report out, in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from uq_tracking.bootstrap import RESAMPLES, with_intervals
from uq_tracking.curves.extra import METRICS, Extras
from uq_tracking.curves.strata import by_group
from uq_tracking.errors import (
    EmptyInputError,
    IncompatibleStatisticsError,
    InvalidValueError,
    SettingsError,
)
from uq_tracking.evaluation.regression import as_predictions, score
from uq_tracking.inputs import Predictions
from uq_tracking.metrics.registry import find, select
from uq_tracking.report import Report
from uq_tracking.settings import Family, Settings
from uq_tracking.statistics.accumulate import Collector, RowCollector, SketchCollector, with_counts
from uq_tracking.statistics.fingerprint import Fingerprint
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.labelled import (
    GROUP_BITS,
    GROUP_JOINT_BITS,
    STRATUM_BITS,
    STRATUM_JOINT_BITS,
    Label,
    LabelledSketches,
)
from uq_tracking.statistics.regression import COUNTS, RegressionStatistics
from uq_tracking.statistics.sketch import SKETCH_BITS
from uq_tracking.streams.base import Arrays, Streaming, beneath, under
from uq_tracking.streams.kept import KeptCase, KeptCases, Wanted, case_number, check_image_count

if TYPE_CHECKING:
    from uq_tracking.streams.device import DeviceCounts

LABELS: tuple[Literal["groups"], Literal["by"]] = ("groups", "by")
FLAT = ("alpha", "n_bins", "family", "dof", "unit")
MAX_BITS = 14


class Accumulator(Streaming):
    """Counts predictions batch by batch and scores them as `evaluate` would score them all at once.

    What is kept are statistics of constant size, about 5 MB: a sketch (buckets of relative width ``2 ** -11``), whose
    accuracy the report states. Cutting the same stream into other batches changes nothing; merging in another order
    changes nothing beyond rounding.

    Parameters
    ----------
    metrics, alpha, n_bins, family, dof, unit
        As for `evaluate`.
    std_floor, on_invalid
        As for `Predictions`, which checks every batch. A batch that is refused is not counted at all. A batch
        without any ground truth is counted as missing and does not stop the stream.
    method : {"sketch", "exact"}
        "exact" keeps every sample, for sets that fit into memory; the report then equals `evaluate`'s exact one.
    maps : "auto", bool, int or list of int
        Spatial cases, shape (..., height, width), that are kept to be drawn: "auto" the first four of batches that
        look like pictures; an int: the first so many; a list: these numbers, counted over all batches.
    bits : int
        Mantissa bits of a bucket, 4 to 14; memory doubles with each.
    on_device : bool, optional
        Count torch tensors on the device where they live, without copying them to the host and without waiting for
        the device: None means CUDA tensors, True CPU tensors too, False none. There, bad values are noticed by
        ``compute``, not by ``update``; batches with ``groups`` or ``by`` are copied to the host, and
        ``method="exact"`` is too.

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
    """

    task: ClassVar[str] = "regression"
    free: ClassVar[tuple[str, ...]] = ("maps", "on_device")

    def __init__(
        self,
        *,
        metrics: Iterable[str] | None = None,
        alpha: float = 0.95,
        n_bins: int = 10,
        family: Family = "gaussian",
        dof: float = 5.0,
        unit: str | None = None,
        std_floor: float | None = None,
        on_invalid: Literal["raise", "drop"] = "raise",
        method: Literal["sketch", "exact"] = "sketch",
        maps: Wanted = "auto",
        bits: int = SKETCH_BITS,
        on_device: bool | None = None,
    ) -> None:
        if method not in ("sketch", "exact"):
            raise SettingsError(f"method is {method!r}; choose sketch or exact")
        if not isinstance(bits, int) or not GROUP_BITS - 1 <= bits <= MAX_BITS:
            raise SettingsError(f"bits is {bits!r}; choose {GROUP_BITS - 1} to {MAX_BITS}")
        chosen = Settings(alpha=alpha, n_bins=n_bins, family=family, dof=dof, unit=unit)
        self._metrics = select("regression", metrics)
        Predictions([0.0], [0.0], [1.0], on_invalid=on_invalid, std_floor=std_floor)  # checks these two
        settings = {
            **chosen.to_dict(),
            "metrics": None if metrics is None else [metric.key for metric in self._metrics],
            "std_floor": std_floor,
            "on_invalid": on_invalid,
            "method": method,
            "maps": list(maps) if isinstance(maps, list | tuple | range) else maps,
            "bits": bits,
            "on_device": on_device,
        }
        super().__init__(settings)

    def _start(self) -> None:
        bits = self.settings["bits"]
        exact = self.settings["method"] == "exact"
        self._collector: Collector = RowCollector() if exact else SketchCollector(bits)
        self._counts = dict.fromkeys(COUNTS, 0)
        self._fingerprint = Fingerprint()
        self._labelled = {
            "groups": LabelledSketches(GROUP_BITS, GROUP_JOINT_BITS),
            "by": LabelledSketches(STRATUM_BITS, STRATUM_JOINT_BITS),
        }
        self._kept = KeptCases(self.settings["maps"])
        self._unit: str | None = self.settings["unit"]
        self._batches = 0
        self._devices: DeviceCounts | None = None
        self._defect = ""

    def update(
        self,
        y_true: Any,
        y_pred: Any = None,
        y_std: Any = None,
        *,
        mask: Any = None,
        groups: Any = None,
        by: Any = None,
        images: Any = None,
    ) -> None:
        """Count a batch.

        Parameters
        ----------
        y_true, y_pred, y_std : arrays of equal shape
            Truth, predictive mean and std, as for `Predictions`; or one `Predictions`, for the first three.
        mask : bool array of that shape, optional
            True leaves a sample out.
        groups, by : labels, optional
            As for `Predictions`: the image or block of each sample, and its stratum. Given for one batch, they have
            to be given for all.
        images : array, shape (cases, h, w) or (cases, h, w, channels), optional
            Input images of spatial batches; those of the cases kept are kept too.

        Raises
        ------
        InputError
            The batch cannot be scored; it is not counted.
        """
        self._check_open()
        if self._counted_on_device(y_true, y_pred, y_std, mask, groups, by, images):
            return
        try:
            predictions = self._read(y_true, y_pred, y_std, mask=mask, groups=groups, by=by)
        except EmptyInputError as error:
            self._count_nothing(error.counts, y_true)
            return
        self._check_labels(predictions)
        self._check_unit(predictions)
        check_image_count(predictions.shape, images)
        chosen = self._kept.choose(predictions.shape)
        rows = predictions.flat()
        codes = {
            name: predictions.label_codes(name) for name in LABELS if getattr(predictions, name) is not None
        }
        self._collector.add(*rows)
        for name, (labels, code) in codes.items():
            self._labelled[name].add(labels, code, *rows)
        self._fingerprint += Fingerprint.of(*rows)
        self._count(predictions.counts)
        self._kept.add(predictions.shape, chosen, lambda place: _cut(predictions, place, images))

    def _read(self, y_true: Any, y_pred: Any, y_std: Any, **options: Any) -> Predictions:
        own = {name: self.settings[name] for name in ("std_floor", "on_invalid")}
        if not isinstance(y_true, Predictions):
            return as_predictions(y_true, y_pred, y_std, **options, **own)
        predictions = as_predictions(y_true, y_pred, y_std, **options)
        if predictions.std_floor != own["std_floor"]:
            raise SettingsError(
                f"std_floor of the Predictions is {predictions.std_floor}, of the Accumulator {own['std_floor']}; "
                "give both the same"
            )
        return predictions

    def _count(self, counts: Mapping[str, int]) -> None:
        for name in COUNTS:
            self._counts[name] += counts.get(name, 0)
        self._batches += 1

    def _count_nothing(self, counts: Mapping[str, int], y_true: Any) -> None:
        """Count a batch of which no sample is left: it has cases, and samples that were left out."""
        shape = y_true.shape if hasattr(y_true, "shape") else np.shape(y_true)
        self._count(counts)
        self._kept.add(tuple(shape), [], _no_case)

    def _check_labels(self, predictions: Predictions) -> None:
        for name in LABELS:
            given, known = getattr(predictions, name) is not None, bool(self._labelled[name].statistics)
            if given != known and (known or self._counts["n"] or self._devices):
                raise SettingsError(
                    f"{name} was {'' if known else 'not '}given for earlier batches; give it for all or for none"
                )

    def _check_unit(self, predictions: Predictions) -> None:
        self._unit = _one_unit(self._unit, predictions.unit, given=self.settings["unit"] is not None)

    def _counted_on_device(self, *arguments: Any) -> bool:
        """Count torch tensors where they live, if they are such."""
        y_true, y_pred, y_std, mask, groups, by, images = arguments
        if groups is not None or by is not None or self.settings["method"] == "exact":
            return False
        from uq_tracking.streams.device import DeviceCounts, countable, cutter

        if not countable((y_true, y_pred, y_std), on_device=self.settings["on_device"]):
            return False
        if any(self._labelled[name].statistics for name in LABELS):
            raise SettingsError("groups or by was given for earlier batches; give it for all or for none")
        check_image_count(tuple(y_true.shape), images)
        chosen = self._kept.choose(tuple(y_true.shape))
        self._devices = self._devices or DeviceCounts(self.settings["bits"], self.settings["std_floor"])
        self._devices.add(y_true, y_pred, y_std, mask, self._batches)
        self._batches += 1
        self._kept.add(tuple(y_true.shape), chosen, cutter(y_true, y_pred, y_std, mask, images))
        return True

    def _drain(self) -> None:
        """Bring what devices counted to the host."""
        if self._devices is None or not isinstance(self._collector, SketchCollector):
            return
        for part in self._devices.drain():
            self._collector.absorb_statistics(part.statistics)
            self._fingerprint += part.fingerprint
            for name in COUNTS:
                self._counts[name] += part.flags[name]
            self._defect = self._defect or part.defect
        self._kept.to_host()

    @property
    def statistics(self) -> RegressionStatistics:
        """Statistics of everything counted so far."""
        self._drain()
        return with_counts(self._collector.statistics(), self._counts, self.settings["std_floor"])

    @property
    def group_statistics(self) -> dict[Label, RegressionStatistics]:
        """Coarse statistics per label of ``groups``, which resampling them turns into confidence intervals."""
        return dict(self._labelled["groups"].statistics)

    @property
    def stratum_statistics(self) -> dict[Label, RegressionStatistics]:
        """Statistics per label of ``by``."""
        return dict(self._labelled["by"].statistics)

    @property
    def cases(self) -> dict[int, KeptCase]:
        """The spatial cases kept for maps, by their number in the stream."""
        self._drain()
        return dict(self._kept.cases)

    def keep(self, number: int, case: KeptCase) -> None:
        """Keep a case for maps that does not come out of a batch."""
        self._kept.cases[number] = case

    @property
    def n(self) -> int:
        """Number of samples that count so far."""
        self._drain()
        return self._counts["n"]

    def __repr__(self) -> str:
        return f"Accumulator(batches={self._batches}, method={self.settings['method']!r})"

    def compute(
        self,
        *,
        on_invalid: Literal["raise", "drop"] | None = None,
        calibration: Any = None,
        recalibration: str | Iterable[str] | None = None,
        intervals: bool | None = None,
        level: float = 0.95,
        n_boot: int = RESAMPLES,
        seed: int = 0,
    ) -> Report:
        """The report of everything counted so far; counting can go on.

        Parameters
        ----------
        on_invalid : {"raise", "drop"}, optional
            "drop" accepts bad values that a device counted; they are left out of the statistics either way.
        calibration, recalibration
            As for `evaluate`; ``method="exact"`` only.
        intervals, level, n_boot, seed
            As for `evaluate`: intervals are made where batches came with ``groups``, unless this is False.

        Raises
        ------
        EmptyInputError
            No sample was counted.
        InvalidValueError
            Batches counted on a device held bad values.
        """
        statistics = self.statistics
        self._check_defects(on_invalid or self.settings["on_invalid"])
        if not statistics.n:
            raise EmptyInputError(
                f"no sample was counted in {self._batches} batches: {self._counts}", self._counts
            )
        settings = Settings(**{**{name: self.settings[name] for name in FLAT}, "unit": self._unit})
        report = score(statistics, settings, self._metrics, digest=self._fingerprint.digest)
        if self.group_statistics and intervals is not False:
            tables, options = GroupTables.of(self.group_statistics), {"level": level, "n_boot": n_boot}
            report = with_intervals(report, tables, settings, self._metrics, **options, seed=seed)
        if self.stratum_statistics:
            made = Extras()
            made.add(by_group(self.stratum_statistics, settings, find(METRICS)))
            report = replace(report, curves={**report.curves, **made.curves})
        if calibration is None or calibration is False:
            return report
        from uq_tracking.evaluation.recalibrated import add_recalibration

        return add_recalibration(
            report,
            calibration,
            recalibration,
            score=lambda statistics, settings: score(statistics, settings, self._metrics),
            settings=settings,
        )

    def _check_defects(self, on_invalid: str) -> None:
        if on_invalid == "raise" and self._counts["n_invalid"]:
            raise InvalidValueError(
                f"{self._defect or 'bad values'}; noticed only now because a device counts without being waited "
                "for. They are left out of the statistics: compute(on_invalid='drop') or "
                "Accumulator(on_invalid='drop') accepts that"
            )

    def _absorb(self, other: Accumulator) -> None:
        self._drain()
        other._drain()
        for name in LABELS:
            mine, theirs = (bool(acc._labelled[name].statistics) for acc in (self, other))
            if mine != theirs and self._counts["n"] and other._counts["n"]:
                raise IncompatibleStatisticsError(
                    f"{name} was given to one accumulator only; give it to both"
                )
        self._unit = _one_unit(self._unit, other._unit, given=self.settings["unit"] is not None)
        self._collector.absorb(other._collector)
        for name in LABELS:
            self._labelled[name].merge(other._labelled[name])
        for count in COUNTS:
            self._counts[count] += other._counts[count]
        self._fingerprint += other._fingerprint
        self._kept.merge(other._kept)
        self._batches += other._batches
        self._defect = self._defect or other._defect

    def _to_arrays(self) -> Arrays:
        self._drain()
        arrays = {
            "counts": np.asarray([self._counts[name] for name in COUNTS], dtype=np.int64),
            "fingerprint": self._fingerprint.to_array(),
            "batches": np.asarray(self._batches),
            "unit": np.asarray(self._unit or ""),
            "defect": np.asarray(self._defect),
            **beneath("collector", self._collector.to_arrays()),
            **beneath("kept", self._kept.to_arrays()),
        }
        for name in LABELS:
            arrays |= beneath(name, self._labelled[name].to_arrays())
        return arrays

    def _load(self, arrays: Arrays) -> None:
        self._counts = dict(zip(COUNTS, (int(c) for c in arrays["counts"]), strict=True))
        self._fingerprint = Fingerprint.from_array(arrays["fingerprint"])
        self._batches = int(arrays["batches"])
        self._unit = str(arrays["unit"]) or None
        self._defect = str(arrays["defect"])
        self._collector.load(under(arrays, "collector"))
        self._kept.load(under(arrays, "kept"))
        for name in LABELS:
            self._labelled[name].load(under(arrays, name))


def _one_unit(known: str | None, new: str | None, *, given: bool) -> str | None:
    """The target's unit; one that was given stands above those that arrays carry."""
    if given or new is None or known == new:
        return known
    if known is None:
        return new
    raise IncompatibleStatisticsError(
        f"unit differs ({known} and {new}); convert to one, or give unit= to accept"
    )


def _cut(predictions: Predictions, place: Any, images: Any) -> KeptCase:
    target = predictions.target[place]
    if predictions.valid is not None:
        target = np.where(predictions.valid[place], target, np.nan)
    image = None if images is None else np.array(images[case_number(place, predictions.shape)])
    return KeptCase(
        np.array(target), np.array(predictions.mean[place]), np.array(predictions.std[place]), image
    )


def _no_case(place: Any) -> KeptCase:
    raise SettingsError(f"a batch without samples has no case {place}")
