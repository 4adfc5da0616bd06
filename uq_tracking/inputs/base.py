"""What predictions of every task have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray
from uq_tracking.inputs.fingerprint import Fingerprint
from uq_tracking.inputs.labels import spread

if TYPE_CHECKING:
    from typing_extensions import Self

Rows = Mapping[str, AnyArray]
"""Columns of samples, each of shape (n,)."""


@dataclass(frozen=True, eq=False)
class Case:
    """One 2-D case of spatial predictions.

    Attributes
    ----------
    arrays : dict of arrays, shape (height, width, ...)
        In the order that map panels expect: ``target`` (NaN for samples that do not count), ``mean``, ``std``; or
        ``labels`` (-1 for samples that do not count) and ``probs``.
    image : array or None
        The input image.
    parts : dict of arrays, shape (height, width)
        ``epistemic`` and ``aleatoric`` std, if known.
    """

    arrays: Mapping[str, Any]
    image: Any = None
    parts: Mapping[str, Any] = field(default_factory=dict)

    def copy(self) -> Case:
        """A copy of the case in its own memory."""
        arrays, parts = (
            {name: np.array(array) for name, array in each.items()} for each in (self.arrays, self.parts)
        )
        return Case(arrays, self.image, parts)


def case_count(shape: tuple[int, ...]) -> int:
    """Number of 2-D cases in spatial predictions of this shape."""
    return math.prod(shape[:-2])


def case_place(number: int, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Index of a numbered case into all axes but the last two."""
    return np.unravel_index(number, shape[:-2]) if len(shape) > 2 else ()


class PredictionsBase(ABC):
    """Truth and predictions of samples, checked once, with the labels that came with them."""

    task: ClassVar[str]
    arguments: ClassVar[tuple[str, ...]]
    """Names of the arrays a caller passes, truth first."""
    made_by: ClassVar[str]
    """Name of the constructor, for error messages."""
    valid: BoolArray | None
    weights: FloatArray | None
    counts: dict[str, int]
    groups: AnyArray | None
    by: AnyArray | None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the truth."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What must agree for statistics of two sets to be merged."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Facts about the input, for the settings of a report."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Size in bytes of the arrays that ``save`` writes."""

    @abstractmethod
    def rows(self) -> Rows:
        """Columns of all samples that count, in C order, as the task's statistics expect them."""

    @abstractmethod
    def row_blocks(self, share: int = 0, of: int = 1, codes: AnyArray | None = None) -> Iterator[Rows]:
        """``rows`` block by block, for one of several nearly equal shares.

        With ``codes``, in the shape of the predictions, each block gets its samples' codes as the column ``codes``.
        """

    @abstractmethod
    def fingerprint(self) -> Fingerprint:
        """Digest that is independent of order, batches and dtype."""

    @abstractmethod
    def digest(self) -> str:
        """Sixteen hexadecimal digits of truth and predictions."""

    def digest_of(self, rows: Rows) -> Callable[[], str]:
        """Return a function that gives the digest, if possible from ``rows`` of these predictions when called."""
        digest = self.digest()
        return lambda: digest

    @abstractmethod
    def target_digest(self) -> str:
        """Sixteen hexadecimal digits of the truth."""

    @abstractmethod
    def part(self, keep: BoolArray) -> Self:
        """The same predictions with only the samples in ``keep``, an array of the truth's shape."""

    @abstractmethod
    def case(self, place: tuple[Any, ...], image: Any = None) -> Case:
        """The 2-D case at an index into all axes but the last two."""

    @abstractmethod
    def save(self, path: str | Path) -> Path:
        """Write an npz file, without pickles, that ``load`` reads back with equal values, dtypes and shapes."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file written by ``save``; raises FileNotFoundError or FileFormatError."""

    @property
    def n(self) -> int:
        """Number of samples that count."""
        return self.counts["n"]

    def _left_out(self) -> str:
        """Counts of samples left out, for a repr."""
        return "".join(f", {name}={count}" for name, count in self.counts.items() if count and name != "n")

    def select(self, array: AnyArray) -> AnyArray:
        """Pick the samples that count from an array of the truth's shape: 1-D, in C order."""
        if array.shape != self.shape:
            raise ShapeError(f"the array has shape {array.shape}, but the predictions have {self.shape}")
        return array.reshape(-1) if self.valid is None else array[self.valid]

    def flat_labels(self, name: Literal["groups", "by"]) -> AnyArray:
        """Label of each sample that counts, 1-D.

        Raises
        ------
        SettingsError
            There are no such labels.
        """
        return self.select(spread(self._labels(name), self.shape))

    def label_codes(self, name: Literal["groups", "by"]) -> tuple[AnyArray, AnyArray]:
        """Distinct labels, sorted, and the position of each sample's label among them, in the shape of the truth.

        Uses less memory than `flat_labels` if the labels are text. The distinct labels include those of left-out
        samples.
        """
        labels = self._labels(name)
        distinct, codes = np.unique(labels, return_inverse=True)
        return distinct, spread(codes.reshape(labels.shape), self.shape)

    def _labels(self, name: Literal["groups", "by"]) -> AnyArray:
        labels = {"groups": self.groups, "by": self.by}[name]
        if labels is None:
            raise SettingsError(f"these predictions have no {name}; pass {name}= when making them")
        return labels
