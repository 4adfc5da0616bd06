"""Class predictions: true classes and class probabilities or logits, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from uq_tracking.checks import check_choice, check_flag, path_of
from uq_tracking.errors import SettingsError
from uq_tracking.inputs import class_storage, storage
from uq_tracking.inputs.alignment import check_alignment
from uq_tracking.inputs.assemble import read_only
from uq_tracking.inputs.base import Case, PredictionsBase
from uq_tracking.inputs.base import Rows as Columns
from uq_tracking.inputs.class_arrays import (
    arranged,
    left_out_of,
    names_of,
    read_class_labels,
    read_strata,
    refuse_one_hot,
    tolerance_of,
)
from uq_tracking.inputs.class_validation import check_class_scan, scan_classes
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray, read_floats, read_mask
from uq_tracking.inputs.fingerprint import Fingerprint
from uq_tracking.inputs.labels import spread
from uq_tracking.inputs.probabilities import ClassScores, Place, Rows, Transform, sample_columns
from uq_tracking.inputs.time_blocks import Series
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.inputs.weights import check_weights, read_weights
from uq_tracking.parallel import map_threads, worker_count
from uq_tracking.typed import override

if TYPE_CHECKING:
    from typing_extensions import Self


NO_LABEL = -1
"""Label of samples that do not count, in cases."""

HALVED_ABOVE = 1 << 17
"""From this many float32 samples on, exact statistics hold entropies and Brier scores in float32."""


class ClassOptions(TypedDict, total=False):
    """Options of predictions of classes, explained in `ClassPredictions`."""

    logits: bool
    class_axis: int
    members_axis: int | None
    ignore_label: int | None
    mask: Any
    weights: Any
    on_invalid: Literal["raise", "drop"]
    groups: Any
    by: Any
    class_names: Sequence[str] | None


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ClassPredictions(PredictionsBase):
    """The true class of each sample, and the predicted probability of each class.

    Arrays may be numpy arrays (masked ones too), lists, torch tensors (any device, with or without gradient), xarray
    or pandas objects, or anything with ``__array__``. float32 and float64 are kept as they are, float16 and bfloat16
    become float32; samples are read piece by piece, never copied to float64 as a whole.

    Parameters
    ----------
    labels : integer array of any shape
        True classes 0 ... C - 1.
    probs : array of the labels' shape with an added axis of C classes
        Class probabilities, summing to 1, or logits. An array of exactly the labels' shape is a binary
        classifier's probability (or logit) of class 1. With ``members_axis`` the array has one more axis.
    logits : bool
        Whether ``probs`` holds logits; their softmax (a binary classifier's sigmoid) is then scored.
    class_axis : int
        Axis of the classes in ``probs``; 1 for (N, C, H, W), 2 for a list of such members.
    members_axis : int, optional
        Axis of the ensemble members, or Monte Carlo passes, in ``probs``; their probabilities are averaged with equal
        weights. A list of M arrays has its members on axis 0.
    ignore_label : int, optional
        Label of samples without a class; they are left out and counted in ``n_ignored``.
    mask : bool array of the labels' shape, optional
        True excludes a sample, as in ``numpy.ma``; the masks of masked arrays are added to it.
    weights : array, optional
        How much each sample counts, as for `Predictions`.
    on_invalid : {"raise", "drop"}
        What to do with samples that count whose probabilities are non-finite, negative or do not sum to 1. "drop"
        leaves them out and counts them in ``n_invalid``.
    groups : labels, optional
        Image, scene or block of each sample, for confidence intervals: an array of the labels' shape, or one label
        per entry of its first axis.
    by : labels, optional
        Strata to score separately; shapes as for ``groups``.
    class_names : sequence of str, optional
        Names of the classes, for figures.

    Raises
    ------
    InputTypeError
        Labels are not integers, or probabilities are not real numbers.
    ShapeError, AlignmentError
        Shapes or axis labels do not match.
    InvalidValueError
        Some labels are not a class, or probabilities are bad under ``on_invalid="raise"``.
    EmptyInputError
        No sample is left.
    SettingsError
        An option is out of range.

    Examples
    --------
    >>> data = ClassPredictions([0, 2, 255], [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]], ignore_label=255)
    >>> data.n, data.n_classes, data.counts["n_ignored"]
    (2, 3, 1)
    """

    task: ClassVar[str] = "classification"
    arguments: ClassVar[tuple[str, ...]] = ("y_true", "probs")
    made_by: ClassVar[str] = "Predictions.from_probs"

    labels: AnyArray
    """True classes, in the input's shape and dtype."""
    scores: ClassScores
    """Probabilities or logits, members first and classes last."""
    valid: BoolArray | None
    """Which samples count; None if all do."""
    weights: FloatArray | None
    """How much each sample counts, in the shape of the labels; None if all count the same."""
    counts: dict[str, int]
    """``n`` samples count; ``n_ignored``, ``n_masked`` and ``n_invalid`` do not."""
    ignore_label: int | None
    """The label that was ignored."""
    class_names: tuple[str, ...] | None
    """Names of the classes."""
    groups: AnyArray | None
    """Label of each sample's image, scene or block, or of each entry of the first axis."""
    by: AnyArray | None
    """Labels like ``groups``."""
    axes: tuple[int, int | None]
    """``class_axis`` and ``members_axis``, as given."""

    def __init__(
        self,
        labels: Any,
        probs: Any,
        *,
        logits: bool = False,
        class_axis: int = -1,
        members_axis: int | None = None,
        ignore_label: int | None = None,
        mask: Any = None,
        weights: Any = None,
        on_invalid: Literal["raise", "drop"] = "raise",
        groups: Any = None,
        by: Any = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        check_choice("on_invalid", on_invalid, ("raise", "drop"))
        if ignore_label is not None and not isinstance(ignore_label, int | np.integer):
            raise SettingsError(f"ignore_label={ignore_label!r}; pass the label, a whole number")
        check_flag("logits", logits)
        truth = read_class_labels(labels)
        given = read_floats(probs, "probs")
        scores, found = arranged(truth, given, class_axis, members_axis, bool(logits))
        refuse_one_hot(truth.values, scores, class_axis)
        masks = [] if mask is None else [read_mask(mask, "mask")]
        for source in masks:
            check_shapes(("labels", truth.values.shape), ("mask", source.values.shape))
        check_alignment([(source.name, source.axes) for source in (truth, found, *masks)])
        weighted = None if weights is None else read_weights(weights, truth)
        scan = scan_classes(
            truth.values,
            scores,
            left_out=left_out_of(truth, found, *masks, *([] if weighted is None else [weighted])),
            ignore_label=ignore_label,
            tolerance=tolerance_of(probs, given.values),
        )
        check_class_scan(scan, scores, truth.values, on_invalid)
        if weighted is not None:
            check_weights(weighted.values, scan.valid)
        self._fill(
            labels=read_only(truth.values),
            scores=scores,
            valid=read_only(scan.valid),
            weights=None if weighted is None else read_only(weighted.values),
            counts=scan.counts,
            ignore_label=ignore_label,
            class_names=names_of(class_names, scores.n_classes),
            groups=read_only(read_strata(groups, "groups", truth, scan.valid)),
            by=read_only(read_strata(by, "by", truth, scan.valid)),
            axes=(class_axis, members_axis),
        )
        if isinstance(groups, Series):
            blocks = list(self.row_blocks(codes=spread(groups.times, self.shape)))
            times, *losses = (
                np.concatenate([block[name] for block in blocks]) for name in ("codes", "correct", "brier")
            )
            self._fill(groups=read_only(groups.labels(times, losses)))

    def _fill(self, **values: Any) -> Self:
        """Set the attributes of a new object, bypassing the frozen dataclass."""
        for name, value in values.items():
            object.__setattr__(self, name, value)
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the labels."""
        return self.labels.shape

    @property
    @override
    def facts(self) -> dict[str, Any]:
        return {"n_classes": self.n_classes, **({} if self.weights is None else {"weighted": True})}

    @property
    @override
    def about(self) -> dict[str, Any]:
        return {
            **self.facts,
            "n_members": self.n_members,
            "logits": self.scores.logits,
            "ignore_label": self.ignore_label,
            "class_names": None if self.class_names is None else list(self.class_names),
        }

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.scores.n_classes

    @property
    def n_members(self) -> int:
        """Number of averaged members; 1 for a single model."""
        return len(self.scores.values)

    @property
    def nbytes(self) -> int:
        """Size in bytes of the arrays that ``save`` writes."""
        parts = (self.labels, self.scores.values, self.valid, self.weights, self.groups, self.by)
        return sum(part.nbytes for part in parts if part is not None)

    def __repr__(self) -> str:
        members = f", members={self.n_members}" if self.n_members > 1 else ""
        sizes = f"n={self.n}, classes={self.n_classes}, shape={self.shape}"
        return f"Predictions({sizes}{members}{self._left_out()})"

    def places(self) -> Iterator[Place]:
        """Indices of pieces of manageable size, in C order."""
        return self.scores.places()

    @override
    def rows(self) -> Columns:
        places = list(self.places())
        workers = max(min(worker_count(), len(places)), 1)
        parts = map_threads(lambda share: list(self.row_blocks(share, workers)), range(workers))
        blocks = [block for part in parts for block in part]
        halved = self.n >= HALVED_ABOVE and self.scores.values.dtype == np.float32
        types = {"entropy": np.float32, "brier": np.float32} if halved else {}
        return {
            name: np.concatenate([block[name] for block in blocks], dtype=types.get(name))
            for name in blocks[0]
        }

    @override
    def row_blocks(self, share: int = 0, of: int = 1, codes: AnyArray | None = None) -> Iterator[Columns]:
        places = list(self.places())
        for place in places[len(places) * share // of : len(places) * (share + 1) // of]:
            columns = sample_columns(self.probabilities(place))
            if self.weights is not None:
                columns["weight"] = self.pick(self.weights, place).astype(np.float64)
            yield columns if codes is None else {**columns, "codes": self.pick(codes, place)}

    def probabilities(self, place: Place) -> Rows:
        """Labels and probabilities of a piece's samples that count."""
        keep = None if self.valid is None else self.valid[place].reshape(-1)
        return self.scores.rows(self.pick(self.labels, place).astype(np.int64), place, keep)

    @override
    def fingerprint(self) -> Fingerprint:
        found = Fingerprint()
        for place in self.places():
            labels = self.pick(self.labels, place)
            keep = np.ones(labels.shape, dtype=bool) if self.valid is None else self.valid[place].reshape(-1)
            members = [part[keep] for part in self.scores.members(place)]
            if self.weights is not None:
                members.append(self.pick(self.weights, place).astype(np.float64))
            found += Fingerprint.of_classes(labels, members)
        return found

    @override
    def case(self, place: tuple[Any, ...], image: Any = None) -> Case:
        labels = self.labels[place].astype(np.int64)
        if self.valid is not None:
            labels[~self.valid[place]] = NO_LABEL
        height, width = self.shape[-2:]
        probs = np.empty((height, width, self.n_classes), dtype=np.float32)
        step = max(1, (1 << 18) // (width * self.n_classes))
        for start in range(0, height, step):
            part = slice(start, start + step)
            found = self.scores.probabilities((*place, part))
            probs[part] = found.reshape(-1, width, self.n_classes)
        return Case({"labels": labels, "probs": probs}, image)

    def pick(self, array: AnyArray, place: Place) -> AnyArray:
        """Values of a piece's samples that count, 1-D, from an array of the labels' shape."""
        values = array[place].reshape(-1)
        return values if self.valid is None else values[self.valid[place].reshape(-1)]

    @override
    def part(self, keep: BoolArray) -> ClassPredictions:
        valid = keep if self.valid is None else keep & self.valid
        fresh = object.__new__(ClassPredictions)
        counts = {**self.counts, "n": int(np.count_nonzero(valid))}
        return fresh._fill(**{**vars(self), "valid": read_only(valid), "counts": counts})

    def target_digest(self) -> str:
        """Sixteen hexadecimal digits, equal for two runs scored on the same labels in the same order."""
        return storage.digest([self.labels], self.valid)

    def logarithms(self) -> tuple[npt.NDArray[np.int64], AnyArray]:
        """Labels (n,) of the samples that count, and their log probabilities (n, C) in the dtype of the input.

        For a binary classifier with one number per sample, the logit of class 1, shape (n,), instead.
        """
        labels, logs = [], []
        for place in self.places():
            keep = None if self.valid is None else self.valid[place].reshape(-1)
            piece = self.scores.logarithms(place)
            piece = piece if keep is None else piece[keep]
            labels.append(self.pick(self.labels, place).astype(np.int64))
            values = piece[:, 1] - piece[:, 0] if self.scores.binary else piece
            logs.append(values.astype(self.scores.values.dtype))
        return np.concatenate(labels), np.concatenate(logs)

    def of_members(self, chosen: Sequence[int]) -> ClassPredictions:
        """The same truth, predicted by some of the members."""
        fresh = object.__new__(ClassPredictions)
        values = self.scores.values[list(chosen)]
        return fresh._fill(**{**vars(self), "scores": replace(self.scores, values=values)})

    def like(self, labels: Any, probs: Any, mask: Any = None) -> ClassPredictions:
        """Class predictions of another set with arrays of the same form."""
        class_axis, members_axis = self.axes
        return ClassPredictions(
            labels,
            probs,
            logits=self.scores.logits,
            class_axis=class_axis,
            members_axis=members_axis,
            ignore_label=self.ignore_label,
            mask=mask,
        )

    def transformed(self, transform: Transform) -> ClassPredictions:
        """The same predictions with transformed log probabilities, such as recalibrated ones."""
        fresh = object.__new__(ClassPredictions)
        return fresh._fill(**{**vars(self), "scores": replace(self.scores, transform=transform)})

    def digest(self) -> str:
        """Sixteen hexadecimal digits, independent of the dtype and the array library."""
        return class_storage.digest(self)

    def save(self, path: str | Path) -> Path:
        """Write an npz file, without pickles, that ``load`` reads back with equal values, dtypes and shapes."""
        class_storage.write(Path(path), self)
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file written by ``save``.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FileFormatError
            The file is damaged, foreign or too new.
        """
        return object.__new__(cls)._fill(**class_storage.read(path_of(path)))
