"""Score a stream: batches in, one report out, in constant memory; one accumulator per task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

from uq_tracking.checks import as_names
from uq_tracking.inputs import Predictions
from uq_tracking.settings import Family, Settings
from uq_tracking.statistics.sketch import SKETCH_BITS
from uq_tracking.streams.batches import BatchAccumulator
from uq_tracking.streams.map_samples import WantedMaps
from uq_tracking.tasks import CLASSIFICATION, REGRESSION, Task


class Accumulator(BatchAccumulator):
    """Counts predictions batch by batch and scores them as `evaluate` would score them all at once.

    Only statistics of constant size are kept, about 5 MB: a sketch (buckets of relative width ``2 ** -11``), whose
    accuracy the report states. Splitting the same stream into different batches changes nothing; merging in another
    order changes nothing beyond rounding.

    Parameters
    ----------
    metrics, alpha, n_bins, family, dof, unit
        As for `evaluate`.
    std_floor, on_invalid
        As for `Predictions`, which checks every batch. A rejected batch is not counted at all. A batch without any
        ground truth is counted as missing and does not stop the stream.
    statistics : {"sketch", "exact"}
        "exact" keeps every sample, for sets that fit in memory; the report then equals `evaluate`'s exact one.
    maps : "auto", bool, int or list of int
        Spatial cases, shape (..., height, width), to keep for drawing. "auto": the first four of batches that look
        like pictures; an int: the first that many; a list: these numbers, counted over all batches.
    bits : int
        Mantissa bits of a bucket, 4 to 14; memory doubles with each bit.
    on_device : bool, optional
        Count torch tensors on the device where they live, without copying them to the host or waiting for the
        device. None: CUDA tensors; True: also CPU tensors; False: none. Bad values are then reported by ``compute``,
        not by ``update``; batches with ``groups`` or ``by``, and all batches with ``statistics="exact"``, are still
        copied to the host.

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

    kind: ClassVar[Task] = REGRESSION
    input_options: ClassVar[tuple[str, ...]] = ("std_floor", "on_invalid", "unit")

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
        statistics: Literal["sketch", "exact"] = "sketch",
        maps: WantedMaps = "auto",
        bits: int = SKETCH_BITS,
        on_device: bool | None = None,
    ) -> None:
        chosen = Settings(alpha=alpha, n_bins=n_bins, family=family, dof=dof, unit=unit)
        Predictions([0.0], [0.0], [1.0], on_invalid=on_invalid, std_floor=std_floor)  # checks these two
        options = {
            **chosen.to_dict(),
            "std_floor": std_floor,
            "on_invalid": on_invalid,
            "statistics": statistics,
            "bits": bits,
            "on_device": on_device,
        }
        super().__init__(options, metrics, maps)

    def update(
        self,
        y_true: Any,
        y_pred: Any = None,
        y_std: Any = None,
        *,
        mask: Any = None,
        weights: Any = None,
        groups: Any = None,
        by: Any = None,
        images: Any = None,
    ) -> None:
        """Count a batch.

        Parameters
        ----------
        y_true, y_pred, y_std : arrays of equal shape
            Truth, predictive mean and std, as for `Predictions`; or a `Predictions` instead of all three.
        mask : bool array of that shape, optional
            True excludes a sample.
        weights : array, optional
            How much each sample counts, as for `Predictions`. If given for one batch, they must be given for all.
        groups, by : labels, optional
            As for `Predictions`: the image or block of each sample, and its stratum. If given for one batch, they
            must be given for all.
        images : array, shape (cases, h, w) or (cases, h, w, channels), optional
            Input images of spatial batches; those of the kept cases are kept.

        Raises
        ------
        InputError
            The batch cannot be scored; it is not counted.
        """
        self._count_batch(
            (y_true, y_pred, y_std), mask=mask, weights=weights, groups=groups, by=by, images=images
        )


class ClassificationAccumulator(BatchAccumulator):
    """Counts class probabilities batch by batch and scores them as `evaluate_classification` would all at once.

    Parameters
    ----------
    logits, class_axis, members_axis, ignore_label, on_invalid, class_names
        As for `ClassPredictions`, which checks every batch. A rejected batch is not counted at all. A batch without
        any label is counted as left out and does not stop the stream.
    metrics, n_bins
        As for `evaluate_classification`.
    statistics, maps, bits
        As for `Accumulator`; "exact" keeps six numbers per sample.

    Examples
    --------
    >>> acc = ClassificationAccumulator(ignore_label=255)
    >>> acc.update([0, 1, 255], [[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]])
    >>> acc.update([1], [[0.7, 0.3]])
    >>> report = acc.compute()
    >>> report.counts["n"], report.counts["n_ignored"], round(report.scores["accuracy"], 3)
    (3, 1, 0.667)
    """

    kind: ClassVar[Task] = CLASSIFICATION
    input_options: ClassVar[tuple[str, ...]] = (
        "logits", "class_axis", "members_axis", "ignore_label", "on_invalid", "class_names",
    )  # fmt: skip

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
        statistics: Literal["sketch", "exact"] = "sketch",
        maps: WantedMaps = "auto",
        bits: int = SKETCH_BITS,
    ) -> None:
        options = {
            "logits": logits,
            "class_axis": class_axis,
            "members_axis": members_axis,
            "ignore_label": ignore_label,
            "on_invalid": on_invalid,
            "class_names": None if class_names is None else list(as_names("class_names", class_names)),
            "n_bins": Settings(n_bins=n_bins).n_bins,
            "statistics": statistics,
            "bits": bits,
        }
        super().__init__(options, metrics, maps)

    def update(
        self,
        labels: Any,
        probs: Any = None,
        *,
        mask: Any = None,
        weights: Any = None,
        groups: Any = None,
        by: Any = None,
        images: Any = None,
    ) -> None:
        """Count a batch.

        Parameters
        ----------
        labels, probs
            As for `evaluate_classification`; or a `ClassPredictions` instead of both.
        mask, weights, groups, by, images
            As for ``Accumulator.update``.

        Raises
        ------
        InputError
            The batch cannot be scored; it is not counted.
        IncompatibleStatisticsError
            Its number of classes differs from that of earlier batches.
        """
        self._count_batch((labels, probs), mask=mask, weights=weights, groups=groups, by=by, images=images)


ACCUMULATORS: dict[str, type[BatchAccumulator]] = {
    kind.kind.name: kind for kind in (Accumulator, ClassificationAccumulator)
}


def accumulator_of(task: Task) -> type[BatchAccumulator]:
    """The accumulator of a task."""
    return ACCUMULATORS[task.name]
