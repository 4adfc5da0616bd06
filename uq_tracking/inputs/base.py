"""What predictions of every task have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
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
        In the order that map panels take them: ``target`` (NaN where nothing counts), ``mean``, ``std``; or
        ``labels`` (-1 where nothing counts) and ``probs``.
    image : array or None
        Its input image.
    parts : dict of arrays, shape (height, width)
        ``epistemic`` and ``aleatoric`` std, where they are known.
    """

    arrays: Mapping[str, Any]
    image: Any = None
    parts: Mapping[str, Any] = field(default_factory=dict)

    def copy(self) -> Case:
        """The same case in memory of its own."""
        arrays, parts = (
            {name: np.array(array) for name, array in each.items()} for each in (self.arrays, self.parts)
        )
        return Case(arrays, self.image, parts)


class PredictionsBase(ABC):
    """Truth and predictions of samples, checked once, and the labels that came with them."""

    task: ClassVar[str]
    arguments: ClassVar[tuple[str, ...]]
    """Names of the arrays that a caller passes, the truth first."""
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
        """What has to agree before statistics of two sets are merged."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What the input was like, for the settings of a report."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the arrays that ``save`` writes."""

    @abstractmethod
    def rows(self) -> Rows:
        """Columns of all samples that count, in C order, as the statistics of the task take them."""

    @abstractmethod
    def row_blocks(self, share: int = 0, of: int = 1, codes: AnyArray | None = None) -> Iterator[Rows]:
        """``rows`` block by block, of one of several nearly equal shares.

        With ``codes``, of the shape of the predictions, each block has those of its samples as column ``codes``.
        """

    @abstractmethod
    def fingerprint(self) -> Fingerprint:
        """Digest that does not depend on order, batches or dtype."""

    @abstractmethod
    def digest(self) -> str:
        """Sixteen hexadecimal digits of truth and predictions."""

    @abstractmethod
    def target_digest(self) -> str:
        """Sixteen hexadecimal digits of the truth."""

    @abstractmethod
    def part(self, keep: BoolArray) -> Self:
        """The same predictions with only some of the samples that count; ``keep`` has the shape of the truth."""

    @abstractmethod
    def case(self, place: tuple[Any, ...], image: Any = None) -> Case:
        """The 2-D case at an index of all axes but the last two."""

    @abstractmethod
    def save(self, path: str | Path) -> Path:
        """Write an npz file that ``load`` reads back with equal values, dtypes and shapes; no pickles in it."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that ``save`` wrote; FileNotFoundError, FileFormatError."""

    @property
    def n(self) -> int:
        """Number of samples that count."""
        return self.counts["n"]

    def _left_out(self) -> str:
        """Counts of samples that do not count, for a repr."""
        return "".join(f", {name}={count}" for name, count in self.counts.items() if count and name != "n")

    def select(self, array: AnyArray) -> AnyArray:
        """Pick the samples that count from an array of the shape of the truth: 1-D, in C order."""
        if array.shape != self.shape:
            raise ShapeError(f"the array has shape {array.shape}, the predictions have {self.shape}")
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

        Leaner than `flat_labels` where the labels are text. Labels of left-out samples are among the distinct ones
        too.
        """
        labels = self._labels(name)
        distinct, codes = np.unique(labels, return_inverse=True)
        return distinct, spread(codes.reshape(labels.shape), self.shape)

    def _labels(self, name: Literal["groups", "by"]) -> AnyArray:
        labels = {"groups": self.groups, "by": self.by}[name]
        if labels is None:
            raise SettingsError(f"these predictions have no {name}; pass {name}= when making them")
        return labels
