"""Probabilities of ordered classes: how they are read, checked, stored, and turned into columns of samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs.convert import Source, read_floats
from uq_tracking.inputs.forms.form import PIECE, Form, Place, picked, places
from uq_tracking.inputs.validation import Defect, Scan

if TYPE_CHECKING:
    from typing_extensions import Self

Array = npt.NDArray[Any]

TOLERANCE = 1e-3
"""How far from 1 the probabilities of a sample may sum."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OrderedProbabilities(Form):
    """Probabilities of the classes 0 < 1 < ... < K - 1 along the last axis.

    The truth holds the class of each sample, NaN where it is not known.

    Attributes
    ----------
    probs : float array, shape (..., K)
    classes : tuple of str, optional
    """

    name: ClassVar[str] = "ordered_probs"
    task: ClassVar[str] = "ordered"
    takes: ClassVar[tuple[str, ...]] = ("ordered_probs",)
    options: ClassVar[tuple[str, ...]] = ("classes",)
    truth_name: ClassVar[str] = "labels"
    made_by: ClassVar[str] = "Predictions.of(OrderedProbabilities, ...)"

    probs: Array
    classes: tuple[str, ...] | None = None

    @classmethod
    def read(
        cls, y_true: Any, *, ordered_probs: Any = None, classes: Sequence[str] | None = None
    ) -> tuple[Self, Sequence[Source]]:
        """Read the truth, and probabilities with the classes along the last axis."""
        truth, given = read_floats(y_true, "y_true"), read_floats(ordered_probs, "ordered_probs")
        shape, wanted = given.values.shape, truth.values.shape
        if shape[:-1] != wanted or len(shape) == 0 or shape[-1] < 2:
            raise ShapeError(
                f"y_true has shape {wanted} and ordered_probs {shape}; pass the truth's shape and a last axis with a "
                "probability for each of two or more classes"
            )
        if classes is not None and len(classes) != shape[-1]:
            raise SettingsError(f"classes holds {len(classes)} names for {shape[-1]} classes")
        left_out = None if given.left_out is None else np.any(given.left_out, axis=-1)
        source = given._replace(values=given.values[..., 0], left_out=left_out, axes=given.axes[:-1])
        return cls(probs=given.values, classes=None if classes is None else tuple(classes)), [truth, source]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.probs.shape[-1])

    def arrays(self) -> dict[str, Array]:
        """Return what is stored."""
        return {"probs": self.probs}

    @property
    def stored_facts(self) -> dict[str, Any]:
        """Names of the classes."""
        return {"classes": self.classes}

    @classmethod
    def from_stored(cls, arrays: Mapping[str, Array], about: Mapping[str, Any]) -> Self:
        """Make the form of what was stored."""
        names = about["classes"]
        return cls(probs=arrays["probs"], classes=None if names is None else tuple(names))

    @property
    def facts(self) -> dict[str, Any]:
        """Statistics of different numbers of classes cannot be merged."""
        return {"n_classes": self.n_classes}

    @property
    def about(self) -> dict[str, Any]:
        """Names of the classes, for the legend of maps."""
        return {"classes": None if self.classes is None else list(self.classes)}

    def invalid(self, truth: Array, place: Place) -> Mapping[Defect, Array]:
        """Return which samples have a class that does not exist, or numbers that are no probabilities."""
        probs = self.probs[place].reshape(-1, self.n_classes)
        known = np.isfinite(truth)
        with np.errstate(invalid="ignore"):
            strange = known & ((truth != np.floor(truth)) | (truth < 0) | (truth >= self.n_classes))
            fine = np.all(probs >= 0, axis=1) & (np.abs(probs.sum(axis=1) - 1) <= TOLERANCE)
        return {("y_true", "unknown"): strange, ("ordered_probs", "impossible"): ~fine}

    def cures(self, found: Scan) -> list[str]:
        """Return what helps against bad samples."""
        classes = f"pass classes 0 ... {self.n_classes - 1} (NaN where none is known) and probabilities that sum to 1"
        return [classes, *super().cures(found)]

    def places(self, shape: tuple[int, ...]) -> Iterator[Place]:
        """Read about as many numbers at a time as other forms do."""
        return places(shape, max(PIECE // self.n_classes, 1))

    def rows(self, truth: Array, place: Place, keep: Array | None) -> dict[str, Array]:
        """Return scores of samples, what their probabilities imply of them, and each event ``y <= k``."""
        labels = picked(truth, place, keep, truth.ndim).astype(np.int64)
        probs = picked(self.probs, place, keep, truth.ndim).astype(np.float64)
        return sample_columns(labels, probs)

    def output(self, k: int) -> Self:
        """Return the probabilities of one output along the last axis of the truth."""
        return replace(self, probs=self.probs[..., k, :])

    def losses(self, rows: Mapping[str, Array]) -> tuple[Array, ...]:
        """Return the score by which a series is tested for correlation."""
        return (rows["rps"],)


def cumulative(probs: Array) -> Array:
    """Return ``P(Y <= k)`` for k = 0 ... K - 2, shape (..., K - 1)."""
    return np.asarray(np.clip(np.cumsum(probs, axis=-1)[..., :-1], 0.0, 1.0))


def median_class(probs: Array) -> Array:
    """Return the smallest class k with ``P(Y <= k) >= 1/2``."""
    return np.asarray((cumulative(probs) < 0.5).sum(axis=-1))


def sample_columns(labels: Array, probs: Array) -> dict[str, Array]:
    """Return the columns of samples with these classes, shape (n,), and probabilities, shape (n, K)."""
    below = cumulative(probs)
    thresholds = np.arange(below.shape[1])
    events = (labels[:, None] <= thresholds).astype(np.float64)
    expected = (below * (1 - below)).mean(axis=1)
    second = np.zeros(len(labels))
    for outcome in range(probs.shape[1]):
        score = np.square(below - (outcome <= thresholds)).mean(axis=1)
        second += probs[:, outcome] * np.square(score)
    classes = np.arange(probs.shape[1])
    mean = probs @ classes
    columns = {
        "label": labels,
        "mean_class": mean,
        "class_variance": np.maximum(probs @ np.square(classes) - np.square(mean), 0.0),
        "class_error": np.abs(median_class(probs) - labels),
        "rps": np.square(below - events).mean(axis=1),
        "expected_rps": expected,
        "rps_variance": np.maximum(second - np.square(expected), 0.0),
    }
    for k in range(len(thresholds)):
        columns |= {f"stated_{k}": below[:, k], f"event_{k}": events[:, k]}
    return columns
