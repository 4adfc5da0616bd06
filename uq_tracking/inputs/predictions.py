"""Predictions: truth, predictive mean and standard deviation, checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from uq_tracking.checks import path_of
from uq_tracking.inputs import class_storage, storage
from uq_tracking.inputs.assemble import assemble, read_only
from uq_tracking.inputs.base import Case, PredictionsBase, Rows
from uq_tracking.inputs.classification import ClassOptions, ClassPredictions
from uq_tracking.inputs.constructors import Constructors, Options, read_equal
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray, read_floats
from uq_tracking.inputs.fingerprint import Fingerprint
from uq_tracking.inputs.forms.scored import Scored
from uq_tracking.inputs.validation import BLOCK, Wording, blocks
from uq_tracking.npz import read_arrays
from uq_tracking.typed import override

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

PIT = ("pit_low", "pit_high", "joint_pit")
DIGESTED = ("target", "mean", "std", "weight", *PIT)
"""The columns of the rows that the digest covers, in this order."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Predictions(Constructors, PredictionsBase):
    """The truth, the predictions, and how uncertain they were.

    Arrays may be numpy arrays (masked ones too), lists, torch tensors (any device, with or without gradient), xarray
    or pandas objects, or anything with ``__array__``. Their shapes must be equal: nothing is broadcast, and labelled
    arrays (xarray, pandas) must have equal labels. float32 and float64 are kept, float16 and bfloat16 become float32,
    integers float64. Attributes are read-only views of the input wherever possible.

    Parameters
    ----------
    y_true : array of any shape, in the target's unit
        Truth. Samples with a non-finite value have no ground truth: they are left out and counted in ``n_missing``.
    y_pred : array of the same shape, in the target's unit
        Predictive mean.
    y_std : array of the same shape, in the target's unit, or one number for all samples
        Predictive standard deviation, >= 0. Zeros are counted in ``n_zero_std``.
    mask : bool array of the same shape, optional
        True leaves a sample out, as in ``numpy.ma``; the masks of masked arrays are added to it.
    weights : array, optional
        How much each sample counts, such as the area of its grid cell: 0, which excludes a sample like a mask, or
        1e-100 to 1e100. One per sample, one per entry of the first axes, or with axes of length 1 along which
        weights repeat; an xarray DataArray with some of the target's dimensions also works. A common factor changes
        nothing.
    on_invalid : {"raise", "drop"}
        What to do with samples that have a non-finite mean or std, or a negative std, although the truth is present
        and not masked. "drop" leaves them out and counts them in ``n_invalid``.
    std_floor : float, optional
        Smaller standard deviations are raised to this value, after zeros are counted.
    groups : labels, optional
        Image, scene or block of each sample, for confidence intervals: an array of the target's shape, or one
        label per entry of its first axis (one per image).
    by : labels, optional
        Strata to score separately; shapes as for ``groups``, or one label per entry of the last axes (one per lead
        time or output), or with axes of length 1, along which labels repeat.
    unit : str, optional
        Unit of the target, for axis labels; by default the ``units`` attribute of an xarray target. If arrays in the
        target's unit state different ``units``, this accepts them as they are.

    Raises
    ------
    InputTypeError
        An argument is not an array of real numbers.
    ShapeError, AlignmentError
        Shapes, axis labels or units differ.
    InvalidValueError
        There are bad values under ``on_invalid="raise"``.
    EmptyInputError
        No sample is left.
    SettingsError
        An option is out of range.

    Examples
    --------
    >>> data = Predictions([1.0, float("nan"), 3.0], [1.5, 2.0, 2.0], [0.5, 1.0, 0.0])
    >>> data.n, data.counts["n_missing"], data.counts["n_zero_std"]
    (2, 1, 1)
    >>> target, mean, std = data.flat()
    >>> std
    array([0.5, 0. ])
    """

    task: ClassVar[str] = "regression"
    arguments: ClassVar[tuple[str, ...]] = ("y_true", "y_pred", "y_std")
    made_by: ClassVar[str] = "Predictions"

    target: FloatArray
    """Truth, in the input's shape."""
    mean: FloatArray
    """Predictive mean."""
    std: FloatArray
    """Predictive standard deviation, raised to ``std_floor`` if that was given."""
    valid: BoolArray | None
    """Which samples count; None when all do."""
    weights: FloatArray | None
    """How much each sample counts, in the input's shape; None when all count the same."""
    counts: dict[str, int]
    """``n`` samples count; ``n_missing``, ``n_masked``, ``n_invalid`` do not; ``n_zero_std`` of the ``n``."""
    groups: AnyArray | None
    """Labels of the target's shape, one per entry of the first axis, or with axes of length 1."""
    by: AnyArray | None
    """Labels like ``groups``."""
    aleatoric: FloatArray | None
    """Standard deviation due to noise in the data, if the constructor can separate it."""
    epistemic: FloatArray | None
    """Standard deviation due to the model's ignorance, if the constructor can separate it."""
    samples: FloatArray | None
    """(M, ...) draws from the predictive distribution; the members' means if ``member_std`` is set."""
    member_std: FloatArray | None
    """(M, ...) standard deviations of the members."""
    scored: Scored | None
    """What a distribution in another form says about each sample, such as its PIT and CRPS."""
    std_floor: float | None
    """The floor that was applied."""
    unit: str | None
    """Unit of the target."""

    def __init__(
        self,
        y_true: Any,
        y_pred: Any,
        y_std: Any,
        *,
        mask: Any = None,
        weights: Any = None,
        on_invalid: Literal["raise", "drop"] = "raise",
        std_floor: float | None = None,
        groups: Any = None,
        by: Any = None,
        unit: str | None = None,
    ) -> None:
        if isinstance(y_std, Real) and not isinstance(y_std, bool):
            like = read_floats(y_pred, "y_pred").values
            y_std = np.full(like.shape, y_std, dtype=like.dtype)
        sources = read_equal(y_true=y_true, y_pred=y_pred, y_std=y_std)
        options = Options(
            mask=mask,
            weights=weights,
            on_invalid=on_invalid,
            std_floor=std_floor,
            groups=groups,
            by=by,
            unit=unit,
        )
        self._fill(assemble(sources, sources[1].values, sources[2].values, Wording(), **options))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the input."""
        return self.target.shape

    @property
    @override
    def facts(self) -> dict[str, Any]:
        weighted = {} if self.weights is None else {"weighted": True}
        scored = {} if self.scored is None else self.scored.settings
        return {"std_floor": self.std_floor, **weighted, **scored}

    @property
    @override
    def about(self) -> dict[str, Any]:
        return self.facts

    @property
    @override
    def nbytes(self) -> int:
        columns = {} if self.scored is None else self.scored.columns
        values = (*vars(self).values(), *columns.values())
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))

    def __repr__(self) -> str:
        return f"Predictions(n={self.n}, shape={self.shape}, dtype={self.std.dtype}{self._left_out()})"

    @override
    def rows(self) -> Rows:
        rows = dict(zip(("target", "mean", "std"), self.flat(), strict=True))
        if self.weights is not None:
            rows["weight"] = self.select(self.weights).astype(np.float64)
        if self.scored is not None:
            rows |= {
                name: self.select(column)
                for name, column in self.scored.columns.items()
                if name not in ("mean", "std")
            }
        return rows

    @override
    def row_blocks(self, share: int = 0, of: int = 1, codes: AnyArray | None = None) -> Iterator[Rows]:
        rows = dict(self.rows())
        if codes is not None:
            rows["codes"] = self.select(codes)
        part = slice(self.n * share // of, self.n * (share + 1) // of)
        yield {name: column[part] for name, column in rows.items()}

    @override
    def fingerprint(self) -> Fingerprint:
        columns = self.flat()
        return Fingerprint.of(*columns if self.weights is None else (*columns, self.select(self.weights)))

    @override
    def part(self, keep: BoolArray) -> Predictions:
        valid = keep if self.valid is None else keep & self.valid
        counts = {
            **self.counts,
            "n": int(np.count_nonzero(valid)),
            "n_zero_std": int(np.count_nonzero(self.std[valid] == 0)),
        }
        return self._new({**vars(self), "valid": read_only(valid), "counts": counts})

    @override
    def case(self, place: tuple[Any, ...], image: Any = None) -> Case:
        target = self.target[place]
        if self.valid is not None:
            target = np.where(self.valid[place], target, np.nan)
        known = {"epistemic": self.epistemic, "aleatoric": self.aleatoric}
        parts = {name: part[place] for name, part in known.items() if part is not None}
        return Case({"target": target, "mean": self.mean[place], "std": self.std[place]}, image, parts)

    def flat(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(target, mean, std) of the samples that count, 1-D; views if all count and memory is in C order."""
        return self.select(self.target), self.select(self.mean), self.select(self.std)

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """(target, mean, std) of the samples that count, in 1-D blocks of at most ``size`` samples.

        Reads any memory layout without copying the whole. Blocks that are views are read-only, and each is valid only
        until the next one is requested.
        """
        if self.valid is None:
            yield from blocks(self.target, self.mean, self.std, size=size)
            return
        for target, mean, std, valid in blocks(self.target, self.mean, self.std, self.valid, size=size):
            if valid.any():
                yield target[valid], mean[valid], std[valid]

    def replace(
        self,
        *,
        mean: Any = None,
        std: Any = None,
        std_floor: float | None = None,
        groups: Any = None,
        by: Any = None,
        unit: str | None = None,
    ) -> Predictions:
        """The same truth and samples with the given arguments replaced, such as a recalibrated std.

        The parts and samples behind mean and std are kept only if neither is replaced.
        """
        new = Predictions(
            self.target,
            self.mean if mean is None else mean,
            self.std if std is None else std,
            mask=None if self.valid is None else ~self.valid,
            weights=self.weights,
            std_floor=self.std_floor if std_floor is None else std_floor,
            groups=self.groups if groups is None else groups,
            by=self.by if by is None else by,
            unit=self.unit if unit is None else unit,
        )
        zeros = self.counts["n_zero_std"] if std is None else new.counts["n_zero_std"]
        changes = {"counts": {**self.counts, "n_zero_std": zeros}}
        kept = vars(self) if mean is None and std is None else {}
        parts = {
            name: kept.get(name) for name in ("aleatoric", "epistemic", "samples", "member_std", "scored")
        }
        return new._fill({**vars(new), **parts, **changes})

    def target_digest(self) -> str:
        """Sixteen hexadecimal digits, equal for two runs scored on the same truth.

        The digest covers the targets that count, in C order, as float64: so it is independent of the dtype (a float32
        array and its float64 copy agree), the array library and the shape, but depends on the order of the samples
        and on which of them count.
        """
        return storage.digest([self.target], self.valid)

    def digest(self) -> str:
        """Sixteen hexadecimal digits of targets, means, stds, weights and PIT values, like `target_digest`."""
        weights = [] if self.weights is None else [self.weights]
        return storage.digest([self.target, self.mean, self.std, *weights, *self._pit], self.valid)

    @override
    def digest_of(self, rows: Rows) -> Callable[[], str]:
        columns = [rows[name] for name in DIGESTED if name in rows]
        return lambda: storage.digest(columns, None)

    @property
    def _pit(self) -> list[FloatArray]:
        columns = {} if self.scored is None else self.scored.columns
        return [columns[name] for name in PIT if name in columns]

    def save(self, path: str | Path) -> Path:
        """Write an npz file, without pickles, that `load` reads back with equal values, dtypes and shapes."""
        storage.write(path_of(path), {item.name: getattr(self, item.name) for item in fields(self)})
        return Path(path)

    @classmethod
    def from_probs(cls, labels: Any, probs: Any, **options: Unpack[ClassOptions]) -> Self:
        """Class probabilities, or logits, of samples or pixels; see `ClassPredictions`."""
        made: Any = ClassPredictions(labels, probs, **options)
        return made  # type: ignore[no-any-return]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file written by `save`.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FileFormatError
            The file is damaged, foreign or too new.
        """
        arrays_ = read_arrays(path_of(path))
        if class_storage.is_own(arrays_):
            loaded: Any = ClassPredictions.load(path)
            return loaded  # type: ignore[no-any-return]
        values = storage.read(path_of(path))
        arrays = (*storage.REQUIRED, *storage.OPTIONAL)
        return cls._new(
            {name: read_only(value) if name in arrays else value for name, value in values.items()}
        )
