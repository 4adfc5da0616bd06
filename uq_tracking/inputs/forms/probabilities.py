"""Class probabilities and logits: read, checked, and turned into columns one piece of the samples at a time.

Nothing large is copied to float64. Sums over classes add their terms in ascending order, so renaming the classes does
not change a bit of the result. A boolean array is made only when a sample is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from uq_tracking.checks import as_names, check_flag, whole_number
from uq_tracking.errors import EmptyInputError, InputTypeError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.inputs.convert import AnyArray, BoolArray, Source, is_a, located, read, read_floats
from uq_tracking.inputs.convert import FloatArray as AnyFloats
from uq_tracking.inputs.forms.form import PIECE, Form, Place, Rows, picked, places
from uq_tracking.inputs.validation import Defect, Scan, check_shapes
from uq_tracking.parallel import keep_memory
from uq_tracking.typed import Self, override

if TYPE_CHECKING:
    from uq_tracking.inputs.predictions import Predictions

NO_LABEL, UNKNOWN = -1, -2
"""Labels of samples that do not count, and of names that no class has."""

OFF = "off"
"""Defect of probabilities that do not sum to 1, or exceed 1."""

HALVED_ABOVE = 1 << 17
"""From this many float32 samples on, exact statistics hold entropies and Brier scores in float32."""

NEAR = 2
"""Pixels from another class within which a pixel is at the boundary."""

FEW_CLASSES = 24
"""Up to this many, comparing columns finds the top label faster than looking through the rows."""

Floats = npt.NDArray[np.float64]
SomeFloats = TypeVar("SomeFloats", bound=AnyFloats)
Transform = Callable[[Floats], Floats]


class Known(NamedTuple):
    """Probabilities of some samples."""

    labels: npt.NDArray[np.int64]
    """Shape (n,)."""
    probs: AnyFloats
    """Shape (n, C), of a single model in the dtype of the input."""
    log_chosen: Floats
    """Log probability of the label; from logits it is finite even if the probability underflows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Probabilities(Form):
    """A classifier's output: probabilities or logits, from one model or several members.

    Attributes
    ----------
    values : float array, shape (M, ..., C)
        M is 1 for a single model. C is 1 for a binary classifier with one number per sample.
    logits : bool
    axes : (int, int or None)
        ``class_axis`` and ``members_axis`` of the arrays they were read from.
    ignore_label : int, optional
        Label of samples without a class.
    classes : tuple of str, optional
    event : int
        Of two classes, the one whose probability is judged.
    as_given : mapping
        Options as they were passed, if whole numbers name the classes: ``classes``, ``ignore_label`` and ``event``.
    transform : callable, optional
        Transforms the log probabilities, shape (n, C), as a recalibration does.
    tolerance : float
        How far from 1 probabilities may sum.
    top_label_only : bool
        Whether rows hold only what the top label and the true one say.
    """

    name: ClassVar[str] = "probs"
    task: ClassVar[str] = "classification"
    takes: ClassVar[tuple[str, ...]] = ("probs",)
    options: ClassVar[tuple[str, ...]] = (
        "logits", "class_axis", "members_axis", "ignore_label", "classes", "event",
    )  # fmt: skip
    truth_name: ClassVar[str] = "labels"
    truth_is: ClassVar[str] = "labels are"
    without_truth: ClassVar[tuple[str, str]] = ("n_ignored", "ignored")
    made_by: ClassVar[str] = "Predictions.from_probs"

    values: AnyFloats
    logits: bool = False
    axes: tuple[int, int | None] = (-1, None)
    ignore_label: int | None = None
    classes: tuple[str, ...] | None = None
    event: int = 1
    as_given: Mapping[str, Any] = field(default_factory=dict)
    transform: Transform | None = None
    tolerance: float = 1e-5
    top_label_only: bool = False

    @classmethod
    @override
    def read(
        cls,
        y_true: Any,
        *,
        probs: Any = None,
        logits: bool = False,
        class_axis: int | None = None,
        members_axis: int | None = None,
        ignore_label: int | None = None,
        classes: Sequence[str | int] | None = None,
        event: int | str | None = None,
    ) -> tuple[Self, Sequence[Source]]:
        is_plain = class_axis is None and members_axis is None and len(getattr(probs, "shape", ())) == 2
        if classes is None:
            classes = stated_names(y_true, probs if members_axis is None else None)
        elif is_plain and np.ndim(y_true) == 1:
            names_of(classes, probs.shape[-1])  # before labels are looked up among the names
        if ignore_label is not None and not isinstance(ignore_label, int | np.integer):
            raise SettingsError(f"ignore_label={ignore_label!r}; pass the label, a whole number")
        truth = read_class_labels(y_true, classes, ignore_label)
        asked = {"classes": classes, "ignore_label": ignore_label, "event": event}
        if as_given := asked if are_numbers(classes) else {}:
            ignore_label, event = NO_LABEL, None if event is None else str(event)
        check_flag("logits", logits)
        given = read_floats(probs, "probs")
        if class_axis is None:
            class_axis = class_axis_of(
                truth.values.shape, given.values.shape, members_axis, None if logits else given.values
            )
        values, found = arranged(truth, given, class_axis, members_axis)
        n_classes = max(values.shape[-1], 2)
        names = names_of(classes, n_classes)
        made = cls(
            values=values,
            logits=bool(logits),
            axes=(class_axis, members_axis),
            ignore_label=ignore_label,
            classes=names,
            event=event_of(event, names, n_classes),
            as_given=as_given,
            tolerance=tolerance_of(probs, given.values),
        )
        refuse_one_hot(truth.values, made, class_axis)
        refuse_probabilities(made)
        return made, (truth, found)

    @override
    def arrays(self) -> dict[str, AnyArray]:
        return {"scores": self.values[..., 0] if self.binary else self.values}

    @property
    @override
    def stored_facts(self) -> dict[str, Any]:
        names = ("logits", "binary", "axes", "ignore_label", "classes", "event")
        return {name: getattr(self, name) for name in names}

    @classmethod
    @override
    def from_stored(cls, arrays: Mapping[str, AnyArray], about: Mapping[str, Any]) -> Self:
        if arrays["scores"].dtype not in (np.float32, np.float64):
            raise ValueError("scores must be float32 or float64")
        names = about["classes"]
        return cls(
            values=arrays["scores"][..., None] if about["binary"] else arrays["scores"],
            logits=bool(about["logits"]),
            axes=(int(about["axes"][0]), about["axes"][1]),
            ignore_label=about["ignore_label"],
            classes=None if names is None else tuple(names),
            event=int(about.get("event", 1)),
            tolerance=max(TOLERANCES.values()),
        )

    @property
    @override
    def facts(self) -> dict[str, Any]:
        top = {"top_label_only": True} if self.top_label_only else {}
        return {"n_classes": self.n_classes, **({"event": self.event} if self.n_classes == 2 else top)}

    @property
    @override
    def about(self) -> dict[str, Any]:
        return {
            "n_members": self.n_members,
            "logits": self.logits,
            "ignore_label": self.input_options["ignore_label"],
            "classes": None if self.classes is None else list(self.classes),
        }

    @override
    def strata(self, name: str, truth: AnyArray) -> AnyArray:
        from scipy import ndimage

        if name != "boundary":
            raise SettingsError(
                f"by={name!r} is no label of each sample; pass an array of them, or 'boundary'"
            )
        if truth.ndim < 2:
            raise SettingsError(f"by='boundary' needs maps, shape (..., height, width), got {truth.shape}")
        window, absent = (1,) * (truth.ndim - 2) + (2 * NEAR + 1,) * 2, self.absent(truth)
        highest = ndimage.maximum_filter(np.where(absent, truth.dtype.type(0), truth), window, mode="nearest")
        lowest = ndimage.minimum_filter(
            np.where(absent, np.iinfo(truth.dtype).max, truth), window, mode="nearest"
        )
        return np.where(highest > lowest, "boundary", "interior")

    @override
    def narrowed(self) -> Self:
        return self if self.n_classes == 2 else replace(self, top_label_only=True)

    @property
    @override
    def input_options(self) -> dict[str, Any]:
        class_axis, members_axis = self.axes
        return {
            "logits": self.logits,
            "class_axis": class_axis,
            "members_axis": members_axis,
            "ignore_label": self.ignore_label,
            "event": self.event if self.n_classes == 2 else None,
            "classes": self.classes,
            **self.as_given,
        }

    @property
    def n_logits(self) -> int:
        """Numbers per sample: 1 of a binary classifier with one."""
        return int(self.values.shape[-1])

    @property
    def n_members(self) -> int:
        """Number of averaged members; 1 for a single model."""
        return len(self.values)

    @override
    def checked(
        self, truth: AnyArray, left_out: BoolArray | None, on_invalid: str
    ) -> tuple[Self, BoolArray | None, dict[str, int]]:
        if truth.dtype.kind not in "iu" or truth.shape != self.shape:
            raise ValueError(f"labels of shape {self.shape} must be integers")
        outside = ((truth < 0) | (truth >= self.n_classes)) & ~self.absent(truth)
        if left_out is not None:
            outside &= ~left_out
        if outside.any():
            raise InvalidValueError(self._outside(truth, outside))
        return super().checked(truth, left_out, on_invalid)

    def _outside(self, labels: AnyArray, outside: BoolArray) -> str:
        count, index = located(outside)
        value = int(labels[index])
        cure = f"pass ignore_label={value} if that means 'no label here', or mask="
        if value == self.n_classes and labels.min() == 1:
            cure = f"subtract 1 if classes start at 1; {cure}"
        elif value == -1 and np.all(np.abs(labels) == 1):
            cure = f"pass (labels + 1) // 2 if classes are -1 and 1; {cure}"
        elif self.binary:
            cure = (
                "probs of the labels' shape are read as the probability of class 1 of the two classes 0 and 1; "
                f"{cure}"
            )
        return (
            f"labels have {count} value{'s' * (count != 1)} outside 0 ... "
            f"{self.n_classes - 1} (first: {value} at index {index}); {cure}"
        )

    @override
    def absent(self, truth: AnyArray) -> BoolArray:
        return np.zeros(truth.shape, bool) if self.ignore_label is None else truth == self.ignore_label

    @override
    def invalid(self, truth: AnyArray, place: Place) -> Mapping[Defect, BoolArray]:
        found = [_defects(member, self) for member in self.of_each(place)]
        not_finite, negative, off = (np.logical_or.reduce(hits) for hits in zip(*found, strict=True))
        name = "logits" if self.logits else "probs"
        return {
            (name, "non-finite"): not_finite,
            (name, "negative"): negative & ~not_finite,
            (name, OFF): off & ~not_finite & ~negative,
        }

    @override
    def complaint(self, found: Scan) -> str:
        parts, cures = [], []
        hits = {how: hit for (_, how), hit in found.defects.items()}
        for how, hit in hits.items():
            place: Place = (slice(None), *hit.index)
            values = self.values[place].astype(np.float64)
            where, samples = f"first at index {hit.index}", f"{hit.count} sample{'s' * (hit.count != 1)}"
            if how != OFF:
                parts.append(f"{'logits' if self.logits else 'probs'} of {samples} are {how} ({where})")
            elif self.binary:
                parts.append(f"probs of {samples} exceed 1 ({where}: {values.max():.4g})")
            else:
                sums = values.sum(axis=-1)
                worst = sums[np.argmax(np.abs(sums - 1))]
                parts.append(f"probs of {samples} do not sum to 1 ({where}: {worst:.6g})")
        if "negative" in hits or OFF in hits:
            cures.append("pass logits=True if these are logits")
        if OFF in hits:
            sums_off = "divide by their sum if they were rounded, or are weights"
            cures.append("divide by 100 if these are percentages" if self.binary else sums_off)
        cures.append("exclude such samples with mask= or on_invalid='drop'")
        return "; ".join([*parts, *cures])

    @override
    def _nothing_left(self, found: Scan) -> str:
        return super()._nothing_left(found) + "; pass logits=True if these are logits" * bool(found.n_invalid)

    @override
    def rows(self, truth: AnyArray, place: Place, keep: BoolArray | None) -> dict[str, AnyArray]:
        keep_memory(8 * PIECE)
        labels = picked(truth, place, keep, truth.ndim).astype(np.int64)
        known = self.known(labels, place, keep)
        columns = top_columns(known)
        return columns if self.top_label_only else {**columns, **whole_columns(known, columns, self.event)}

    @override
    def row_types(self, n: int) -> dict[str, type[np.floating[Any]]]:
        halved = n >= HALVED_ABOVE and self.values.dtype == np.float32
        return {"entropy": np.float32, "brier": np.float32} if halved else {}

    def logits_of(self, data: Predictions) -> tuple[npt.NDArray[np.int64], AnyArray]:
        """Labels (n,) of the samples that count, and their logits (n, C), as given or else log probabilities.

        For a binary classifier with one number per sample, the logit of class 1, shape (n,), instead.
        """
        labels, logits = [], []
        as_given = self.logits and self.n_members == 1 and self.transform is None
        for place, keep in data.pieces():
            labels.append(picked(data.truth, place, keep, data.truth.ndim).astype(np.int64))
            piece = _kept(next(self.of_each(place)) if as_given else self.logarithms(place), keep)
            if self.binary:
                piece = piece[:, 0] if as_given else piece[:, 1] - piece[:, 0]
            logits.append(piece.astype(self.values.dtype))
        return np.concatenate(labels), np.concatenate(logits)

    @override
    def losses(self, rows: Rows) -> tuple[AnyArray, ...]:
        return rows["correct"], rows["brier"]

    @override
    def case(self, truth: AnyArray, valid: BoolArray | None, place: Place) -> tuple[Rows, Rows]:
        labels = truth[place].astype(np.int64)
        if valid is not None:
            labels[~valid[place]] = NO_LABEL
        probs = np.empty((*labels.shape, self.n_classes), dtype=np.float32)
        for part in self.places(labels.shape):
            probs[part] = self.probabilities((*place, *part)).reshape(probs[part].shape)
        return {"labels": labels, "probs": probs}, {}

    @override
    def digested(self, weights: Sequence[AnyArray]) -> tuple[list[AnyArray], str]:
        return [*self.arrays()["scores"], *weights], repr([self.logits, self.binary])

    @property
    @override
    def members(self) -> tuple[int, int] | None:
        return (self.n_members, 1) if self.n_members > 1 else None

    @override
    def of_members(self, data: Predictions, chosen: Sequence[int]) -> Predictions:
        return data.with_form(replace(self, values=self.values[list(chosen)]))

    @override
    def output(self, k: int) -> Probabilities:
        ndim = self.values.ndim - (self.axes[1] is None) - self.binary  # of what they were read from
        taken = {axis % ndim for axis in self.axes[self.binary :] if axis is not None}
        last = max({*range(ndim)} - taken)
        moved = [axis % ndim - (axis % ndim > last) for axis in self.axes if axis is not None]
        axes = (moved[0], None if self.axes[1] is None else moved[1])
        return replace(self, values=self.values[..., k, :], axes=axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the samples."""
        return self.values.shape[1:-1]

    @property
    def binary(self) -> bool:
        """Whether there is one number per sample, that of class 1 of two."""
        return bool(self.values.shape[-1] == 1)

    @property
    def n_classes(self) -> int:
        """Number of classes, 2 for a binary classifier."""
        return max(int(self.values.shape[-1]), 2)

    @override
    def places(self, shape: tuple[int, ...]) -> Iterator[Place]:
        return places(shape, max(PIECE // self.n_classes, 1))

    def of_each(self, place: Place) -> Iterator[AnyFloats]:
        """Each member's scores of a piece in turn, shape (n, C), or (n, 1) for a binary classifier."""
        for member in self.values:
            yield np.ascontiguousarray(member[place]).reshape(-1, self.values.shape[-1])

    def probabilities(self, place: Place) -> AnyFloats:
        """Probabilities of a piece, shape (n, C)."""
        if not self.logits and self.transform is None:
            return self._mean_probabilities(place)
        return np.exp(self.logarithms(place))

    def known(self, labels: npt.NDArray[np.int64], place: Place, keep: AnyArray | None) -> Known:
        """Probabilities of a piece's samples selected by ``keep``; ``labels`` are theirs."""
        if not self.logits and self.transform is None:
            probs = _kept(self._mean_probabilities(place), keep)
            with np.errstate(divide="ignore"):
                return Known(labels, probs, np.log(chosen(probs, labels), dtype=np.float64))
        logs = _kept(self.logarithms(place), keep)
        return Known(labels, np.exp(logs), chosen(logs, labels))

    def _mean_probabilities(self, place: Place) -> AnyFloats:
        if len(self.values) == 1 and not self.binary:
            return next(self.of_each(place))
        parts = self.of_each(place)
        total = next(parts).astype(np.float64)
        for part in parts:
            total += part
        total /= len(self.values)
        return np.concatenate([1 - total, total], axis=1) if self.binary else total

    def logarithms(self, place: Place) -> Floats:
        """Log probabilities; for ensembles, of the mean probability."""
        with np.errstate(divide="ignore", invalid="ignore"):  # left-out samples may hold anything
            if not self.logits:
                logs = np.log(self._mean_probabilities(place), dtype=np.float64)
            else:
                scores = self.of_each(place)
                if self.binary:  # the logit of class 0 is 0
                    scores = (np.concatenate([np.zeros_like(part), part], axis=1) for part in scores)
                parts = [log_softmax(part.astype(np.float64)) for part in scores]
                logs = np.logaddexp.reduce(parts) - math.log(len(parts)) if len(parts) > 1 else parts[0]
            return logs if self.transform is None else self.transform(logs)


def chosen(values: SomeFloats, labels: npt.NDArray[np.int64]) -> SomeFloats:
    """The value of each row, shape (n, C), at its label."""
    first = np.arange(0, values.size, values.shape[1])
    return cast(SomeFloats, values.reshape(-1).take(first + labels))


def log_softmax(logits: Floats) -> Floats:
    """Log of ``softmax(logits)`` over the last axis; a logit of minus infinity has probability 0."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(ascending(np.exp(shifted)).sum(axis=1, keepdims=True)))


def ascending(rows: AnyFloats) -> AnyFloats:
    """Each row sorted, in a fresh array."""
    if rows.shape[1] == 2:
        first, second = rows[:, 0], rows[:, 1]
        return np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1)
    return np.sort(rows, axis=1)


def _kept(rows: SomeFloats, keep: AnyArray | None) -> SomeFloats:
    return rows if keep is None else cast(SomeFloats, rows[keep])


def top_of(probs: AnyFloats) -> tuple[npt.NDArray[np.int64], AnyFloats]:
    """First class of the highest probability of each row, shape (n, C), and that probability."""
    if probs.shape[1] > FEW_CLASSES:
        predicted = probs.argmax(axis=1)
        return predicted, chosen(probs, predicted)
    columns = np.ascontiguousarray(probs.T)  # numpy looks for the maximum of short rows one by one
    top, place = columns[0].copy(), np.zeros(len(probs), dtype=np.int32)
    for k in range(1, len(columns)):
        np.maximum(place, (columns[k] > top) * np.int32(k), out=place)
        np.maximum(top, columns[k], out=top)
    return place.astype(np.int64), top


def top_columns(rows: Known) -> dict[str, npt.NDArray[Any]]:
    """One minus the confidence, correctness, pair of classes and log score of each sample."""
    predicted, top = top_of(rows.probs)
    return {
        "one_minus_confidence": np.maximum(1 - top.astype(np.float64), 0.0),
        "correct": predicted == rows.labels,
        "pair": rows.labels * rows.probs.shape[1] + predicted,
        "log_chosen": rows.log_chosen,
    }


def whole_columns(rows: Known, columns: Rows, event: int) -> dict[str, npt.NDArray[Any]]:
    """Entropy and Brier score of each sample; of two classes, also whether the event is predicted.

    Sums run over ascending terms, so rows with the same probabilities in another order tie exactly. The Brier score
    is summed as ``(1 - p_y)^2`` and the squares of all but the top, which keeps its precision when it is tiny; those
    of the top and of p_y differ only where it is not.
    """
    order = ascending(rows.probs).astype(np.float64, copy=False)
    at_label = chosen(rows.probs, rows.labels).astype(np.float64)
    top, rest = order[:, -1], order[:, :-1]
    brier = (
        np.square(1 - at_label) + np.einsum("ij,ij->i", rest, rest) + (np.square(top) - np.square(at_label))
    )
    entropy = -np.einsum("ij,ij->i", order, logarithms_of(order))
    is_event = {"predicted": columns["pair"] % 2 == event} if rows.probs.shape[1] == 2 else {}
    return {"entropy": np.maximum(entropy, 0.0), "brier": brier, **is_event}


def logarithms_of(probs: Floats) -> Floats:
    """Logarithms of probabilities to multiply with these: of 0 it is finite."""
    with np.errstate(divide="ignore"):
        logs = np.log(probs)
    if logs.min(initial=0.0) == -np.inf:
        logs[probs == 0] = 0.0
    return logs


TOLERANCES = {"float64": 1e-5, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""How far from 1 a sample's probabilities may sum, by the dtype they were given in."""


def _defects(member: AnyFloats, scores: Probabilities) -> tuple[Any, Any, Any]:
    """Where scores are non-finite, where negative, and where they do not sum to 1."""
    fine = np.zeros(len(member), dtype=bool)
    if scores.logits:
        # minus infinity only rules out a class, as long as another class is left
        return ~np.isfinite(member.max(axis=1)), fine, fine
    with np.errstate(invalid="ignore"):
        total = np.einsum("ij->i", member)
        off = total > 1 + scores.tolerance if scores.binary else np.abs(total - 1) > scores.tolerance / 2
        if not scores.binary and off.any():  # a sum in float32 may be off by rounding
            off[off] = np.abs(np.einsum("ij->i", member[off], dtype=np.float64) - 1) > scores.tolerance
        least = member.min(initial=0)  # NaN if any value is
    if least >= 0 and np.isfinite(total).all():
        return fine, fine, off
    return ~np.isfinite(member).all(axis=1), (member < 0).any(axis=1), off


def are_numbers(names: Any) -> bool:
    """Whether classes are named by numbers other than 0 ... C - 1, so that labels are looked up among them."""
    values = np.asarray(names)
    return values.dtype.kind in "iuf" and values.tolist() != list(range(values.size))


def read_class_labels(value: Any, names: Sequence[str | int] | None, ignore_label: int | None) -> Source:
    """Labels as whole numbers, or the place among ``names``; an InputError says what is wrong."""
    source = read(value, "labels")
    kind = source.values.dtype.kind
    if kind == "b":
        return source._replace(values=source.values.view(np.uint8))
    if kind in "iu" and not are_numbers(names):
        return source
    if source.values.size == 0:
        raise EmptyInputError(f"labels are empty (shape {source.values.shape}); there is nothing to score")
    if names is not None and kind in "UTOSiuf":
        return _numbered(source, names, ignore_label)
    if kind == "f" and source.values.ndim > 1:
        cure = "labels come first, then probs; for one-hot rows pass labels.argmax(axis=-1)"
    elif kind == "f":
        cure = "convert them with .astype(int); give samples without a class a number, and pass it as ignore_label"
    else:
        cure = "pass classes=, all names in the order of probs; if alphabetical: classes=numpy.unique(labels)"
    raise InputTypeError(f"labels have dtype {source.values.dtype}, not integers; {cure}")


def stated_names(labels: Any, probs: Any) -> tuple[str | int, ...] | None:
    """Names of the classes in the order of ``probs``, where labels or the columns of ``probs`` leave no doubt.

    Names are the columns' if labels are text, or both are whole numbers; those of a `datasets.ClassLabel`; and the
    categories of a pandas categorical if they are in alphabetical order, because both their codes and scikit-learn
    then number them alike.
    """
    features = getattr(getattr(labels, "features", None), "names", None)
    if is_a(labels, "datasets", "Column") and features is not None:
        return tuple(features)
    categories = getattr(getattr(labels, "cat", labels), "categories", None)
    columns = list(probs.columns) if is_a(probs, "pandas", "DataFrame") else []
    is_named = np.asarray(labels).dtype.kind not in "biuf" or (np.ndim(labels) == 1 and are_numbers(columns))
    has_columns = len(columns) > 1 and is_named
    names = columns if has_columns else [] if categories is None else list(categories)
    if not (all(isinstance(name, str) for name in names) or are_numbers(names)) or not names:
        return None
    if not has_columns and names != sorted(names):
        raise InputTypeError(
            f"labels have the categories {', '.join(names)}, which are not in alphabetical order; pass classes=, all "
            "names in the order of the classes in probs, or probs as a DataFrame with these columns"
        )
    return tuple(names)


def _numbered(source: Source, names: Sequence[str | int], ignore_label: int | None) -> Source:
    """Labels given by name as the places of the names; those to ignore as `NO_LABEL`, those left out as 0."""
    values, texts = source.values, as_names("classes", names)
    is_text = values.dtype.kind not in "iuf"
    if is_text:
        values = np.char.decode(values) if values.dtype.kind == "S" else values.astype(str)
    known = {name: number for number, name in enumerate(texts if is_text else np.asarray(names).tolist())}
    found, place = np.unique(values, return_inverse=True)
    number = [known.get(label, NO_LABEL if label == ignore_label else UNKNOWN) for label in found.tolist()]
    labels = np.asarray(number)[place].reshape(values.shape)
    if source.left_out is not None:
        labels[source.left_out] = 0
    unknown = labels == UNKNOWN
    if unknown.any():
        cure = (
            "leave them out by a masked array" if is_text else "pass classes as text if labels count from 0"
        )
        raise InvalidValueError(
            f"labels have {np.count_nonzero(unknown)} values that are not among the classes (first: "
            f"{values[unknown].tolist()[0]!r}); the classes are {', '.join(texts)}; {cure}"
        )
    return source._replace(values=labels)


def arranged(
    truth: Source, given: Source, class_axis: int, members_axis: int | None
) -> tuple[AnyFloats, Source]:
    """Return scores, shape (members, ..., classes), both maybe 1, and their mask and axes per sample."""
    shape = truth.values.shape
    check_shapes(("labels", shape), ("labels", shape))  # rejects single numbers
    members, rest, classes = axes_of(shape, given.values.shape, class_axis, members_axis)
    values = given.values.transpose(*members, *rest, *classes)
    values = values if classes else values[..., None]
    taken = (*members, *classes)
    left_out = None if given.left_out is None else np.asarray(given.left_out.any(axis=taken))
    axes = tuple(given.axes[axis] for axis in rest) if given.axes else ()
    return values if members else values[None], given._replace(left_out=left_out, axes=axes)


def axes_of(
    labels: tuple[int, ...], probs: tuple[int, ...], class_axis: int, members_axis: int | None
) -> tuple[list[int], list[int], list[int]]:
    """Return the axes of the members, of the samples, and of the classes, by shapes; empty where there are none."""
    ndim = len(probs)
    extra = ndim - len(labels) - (members_axis is not None)
    if extra not in (0, 1):
        raise ShapeError(_shape_message(labels, probs, members_axis))
    given = (
        ("members_axis", members_axis, "members"),
        ("class_axis", class_axis if extra else None, "classes"),
    )
    found = []
    for option, axis, what in given:
        if axis is not None and not -ndim <= whole_number(option, axis) < ndim:
            raise ShapeError(f"probs have shape {probs}, so there is no axis {axis} for {what}")
        found.append([] if axis is None else [axis % ndim])
    members, classes = found
    if members and members == classes:
        raise SettingsError(f"class_axis and members_axis are both axis {members[0]} of probs {probs}")
    rest = [axis for axis in range(ndim) if axis not in (*members, *classes)]
    if tuple(probs[axis] for axis in rest) != labels:
        raise ShapeError(_shape_message(labels, probs, members_axis))
    if classes and probs[classes[0]] < 2:
        raise ShapeError(
            f"probs {probs} hold a single class; for a binary classifier, drop that axis: "
            f"{_without('probs', ndim, classes[0])}"
        )
    return members, rest, classes


def class_axis_of(
    shape: tuple[int, ...], given: tuple[int, ...], members_axis: int | None, probs: AnyArray | None = None
) -> int:
    """Return the axis of the classes, from the shapes; where several fit, the one along which ``probs`` sum to 1."""
    ndim = len(given)
    members = None if members_axis is None else whole_number("members_axis", members_axis) % max(ndim, 1)
    rest = [axis for axis in range(ndim) if axis != members]
    if len(rest) != len(shape) + 1:
        return -1
    fits = [axis for axis in rest if tuple(given[k] for k in rest if k != axis) == shape]
    is_clear = len(fits) == 1 and (fits != [0] or members is not None)
    summing = [] if probs is None or is_clear else [axis for axis in fits if _sum_to_one(probs, axis)]
    if len(fits) > 1 and len(summing) == 1:
        return summing[0]
    if len(fits) > 1 and (probs is None or (summing and not _same_readings(probs, fits))):
        raise ShapeError(
            f"labels have shape {shape} and probs {given}, where axis {' or '.join(map(str, fits))} may hold "
            f"the classes; say which: class_axis={fits[-1] - ndim}"
        )
    if fits == [0] and members is None and not summing:
        raise ShapeError(
            f"labels have shape {shape} and probs {given}; pass class_axis=0 if the first axis holds the "
            "classes, members_axis=0 if it holds the members of a binary classifier"
        )
    return fits[-1] if fits else -1


def probabilities_of(data: Predictions) -> Probabilities:
    """Return the form of class probabilities; SettingsError for other forms."""
    if not isinstance(data.form, Probabilities):
        raise SettingsError(f"{data.form.name} hold no class probabilities")
    return data.form


def _same_readings(probs: AnyArray, axes: Sequence[int]) -> bool:
    """Return True if it makes no difference which of these axes holds the classes."""
    first = np.moveaxis(probs, axes[0], -1)
    return all(np.array_equal(first, np.moveaxis(probs, axis, -1), equal_nan=True) for axis in axes[1:])


def look_like_probabilities(values: AnyArray) -> bool:
    """Return True for shares that sum to 1 along the last axis, which has several entries."""
    if values.ndim < 2 or values.shape[-1] < 2 or values.dtype.kind != "f":
        return False
    return bool(np.all((values >= 0) & (values <= 1))) and _sum_to_one(values, -1)


def _sum_to_one(probs: AnyArray, axis: int) -> bool:
    total = probs.sum(axis=axis)
    return bool(np.allclose(total[np.isfinite(total)], 1, rtol=0, atol=1e-2))


def _shape_message(shape: tuple[int, ...], other: tuple[int, ...], members_axis: int | None) -> str:
    message = (
        f"labels have shape {shape} and probs {other}; probs need the labels' shape and an axis of classes, or the "
        "labels' shape for a binary classifier"
    )
    members = None if members_axis is None else members_axis % len(other)
    rest = [axis for axis in range(len(other)) if axis != members]
    counted = "" if members is None else ", which counts the axis of the members too"
    for axis in rest:
        if tuple(other[each] for each in rest if each != axis) == shape:
            return f"{message}; if axis {axis} holds the classes, pass class_axis={axis}{counted}"
    if members is None and len(other) == len(shape) + 2:
        return f"{message}; if an axis holds the members of an ensemble, pass members_axis="
    spare = [axis for axis, length in enumerate(shape) if length == 1]
    for dropped, classes in product(spare, [*rest, None]):
        if tuple(other[each] for each in rest if each != classes) == shape[:dropped] + shape[dropped + 1 :]:
            cure = _without("labels", len(shape), dropped)
            told = "" if classes in (None, len(other) - 1) else f" and pass class_axis={classes}"
            return f"{message}; drop axis {dropped} of labels: {cure}{told}"
    return message


def _without(name: str, ndim: int, axis: int) -> str:
    """How to drop an axis of length 1."""
    return f"{name}[..., 0]" if axis == ndim - 1 else f"{name}[{':, ' * axis}0]"


def refuse_one_hot(labels: AnyArray, scores: Probabilities, class_axis: int) -> None:
    """Labels and probabilities of equal shape belong to a binary classifier, unless the labels are one-hot rows."""
    if not scores.binary or labels.ndim < 2 or not -labels.ndim <= class_axis < labels.ndim:
        return
    rows = np.moveaxis(labels, class_axis, -1).reshape(-1, labels.shape[class_axis])[:1000]
    if rows.shape[1] < 2 or not ((rows >= 0).all() and (rows.sum(axis=1) == 1).all()):
        return
    values = np.moveaxis(scores.values[0, ..., 0], class_axis, -1).reshape(-1, rows.shape[1])[:1000]
    if scores.logits or np.allclose(values.sum(axis=1), 1, rtol=0, atol=1e-2):
        raise InvalidValueError(
            f"labels {labels.shape} look one-hot; pass class indices: labels.argmax(axis={class_axis})"
        )


def refuse_probabilities(scores: Probabilities) -> None:
    """Raise InvalidValueError if what was given as logits are probabilities: no logits of many samples sum to 1."""
    if not scores.logits or scores.binary:
        return
    corner: Place = (0, *[slice(100)] * (scores.values.ndim - 2))
    rows = np.asarray(scores.values[corner], np.float64).reshape(-1, scores.n_classes)
    if len(rows) >= 10 and are_probabilities(rows):
        raise InvalidValueError(
            f"probs are probabilities already: the first {len(rows)} samples sum to 1; leave out logits=True"
        )


def are_probabilities(values: AnyArray) -> bool:
    """Return whether values, shape (..., C), or (..., 1) of an event, lie in [0, 1] and sum to 1, but for NaN."""
    total = values.sum(axis=-1)
    off = total > 1 if values.shape[-1] == 1 else np.abs(total - 1) > max(TOLERANCES.values())
    return not ((values < 0).any() or off.any())


def tolerance_of(probs: Any, values: AnyArray) -> float:
    """The tolerance for the dtype in which the probabilities were given."""
    first = probs[0] if isinstance(probs, list | tuple) and len(probs) else probs
    given = str(getattr(first, "dtype", values.dtype)).rpartition(".")[2]
    return TOLERANCES.get(given, TOLERANCES[str(values.dtype)])


def names_of(names: Sequence[str | int] | None, n_classes: int) -> tuple[str, ...] | None:
    """Names of the classes as a tuple; SettingsError if their number is wrong."""
    if names is None:
        return None
    texts = as_names("classes", names)
    if len(texts) != n_classes:
        raise SettingsError(f"classes holds {len(texts)} names for {n_classes} classes")
    return texts


def event_of(event: int | str | None, names: tuple[str, ...] | None, n_classes: int) -> int:
    """The number of the event, given by number or name; class 1 by default."""
    if event is None:
        return 1
    if n_classes != 2:
        raise SettingsError(f"event={event!r} chooses one of two classes, but these probs hold {n_classes}")
    known: tuple[int | str, ...] = (0, 1, *(names or ()))
    if event not in known or isinstance(event, bool):
        raise SettingsError(f"event={event!r} is not a class; choose from {', '.join(map(repr, known))}")
    return known.index(event) % 2
