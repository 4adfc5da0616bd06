"""The contract of a form: in which shape a forecast comes, and what it says about each sample."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from uq_tracking.errors import EmptyInputError, InvalidValueError, SettingsError
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray, Source
from uq_tracking.inputs.validation import BLOCK, Defect, Scan
from uq_tracking.typed import Self

if TYPE_CHECKING:
    from uq_tracking.inputs.predictions import Predictions

Rows = Mapping[str, AnyArray]
"""Columns of samples, each of shape (n,)."""
Place = tuple[Any, ...]
"""An index of slices and integers that selects a piece of an array of the samples' shape."""

PIECE = 1 << 17
"""Numbers of a form read at a time, where it is read in pieces."""


class Form(ABC):
    """What was predicted for each sample: arrays only, without truth, weights or labels.

    A plugin brings a form with the hook ``uq_forms``; `Predictions.of` joins it to a truth, and the keyword arguments
    that it ``takes`` are arguments of `evaluate`, `log` and ``Accumulator.update``.

    Attributes
    ----------
    name : str
        Name of the form in files and, unless it is a mean and a std, in reports.
    task : str
        Name of the task that scores it.
    takes : tuple of str
        Names of the keyword arguments that hold its arrays.
    options : tuple of str
        Names of the options of the input that only such forms have.
    truth_name : str
        Name of the truth in files.
    std_caveat : str
        Why its standard deviation, if it has one, is not exact; empty if it is.
    """

    name: ClassVar[str]
    task: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[tuple[str, ...]] = ()
    truth_name: ClassVar[str] = "target"
    truth_is: ClassVar[str] = "y_true is"
    """How messages begin that say what the truth is."""
    without_truth: ClassVar[tuple[str, str]] = ("n_missing", "missing (non-finite target)")
    """Count of samples without truth, and what messages call these."""
    made_by: ClassVar[str] = "Predictions"
    """Name of the constructor in error messages."""
    splits: ClassVar[tuple[str, ...]] = ()
    """Arguments of its constructor that may be dask arrays; those with more axes than the truth hold members."""
    member: ClassVar[str] = "member"
    """What messages call a member, such as a draw."""
    in_unit: ClassVar[bool] = False
    """Whether truth and forecast have a unit."""
    std_caveat: ClassVar[str] = ""
    noisy_std: ClassVar[bool] = False
    """Whether its standard deviation varies from sample to sample by chance."""
    is_interval: ClassVar[bool] = False
    """Whether it states a few quantiles only, which do not determine the variance or other quantiles."""
    own_scores: ClassVar[tuple[str, ...]] = ()
    """Scores that only such forms have."""

    @classmethod
    @abstractmethod
    def read(cls, y_true: Any, *args: Any, **arrays: Any) -> tuple[Form, Sequence[Source]]:
        """Read the truth, and by name the arrays that it ``takes`` and its ``options``.

        Return the form, or a simpler one of the same; and the truth, followed by the other arrays whose masks and
        labelled axes count.
        """

    @abstractmethod
    def arrays(self) -> dict[str, AnyArray]:
        """Arrays to store, by name; by default each has the truth's shape, or that and more axes at the end."""

    @property
    def stored_facts(self) -> dict[str, Any]:
        """What ``from_stored`` needs besides the arrays: plain values."""
        return {}

    @classmethod
    def from_stored(cls, arrays: Mapping[str, AnyArray], about: Mapping[str, Any]) -> Self:
        """Make the form of the arrays that ``arrays`` and the ``stored_facts``."""
        return cls(**arrays)

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that must agree for statistics of two sets to be merged."""
        return {}

    @property
    def about(self) -> dict[str, Any]:
        """Further facts about the input, for the settings of a report; plain values."""
        return {}

    def absent(self, truth: AnyArray) -> BoolArray:
        """Return which samples of a piece of the truth, shape (n,), have none; by default those not finite."""
        return ~np.isfinite(truth)

    def invalid(self, truth: AnyArray, place: Place) -> Mapping[Defect, BoolArray]:
        """Return which of a piece's samples are bad, shape (n,), by what is bad and how: ("y_std", "negative")."""
        return {}

    def complaint(self, found: Scan) -> str:
        """Return the message that names bad samples and a cure."""
        parts = [
            f"{name} has {hit.count} {how} value{'s' * (hit.count > 1)} (first at index {hit.index})"
            for (name, how), hit in found.defects.items()
        ]
        return "; ".join([*parts, *self.cures(found)])

    def cures(self, found: Scan) -> list[str]:
        """Return what helps against bad samples."""
        return ["leave such samples out with mask= or on_invalid='drop'"]

    def checked(
        self, truth: AnyArray, left_out: BoolArray | None, on_invalid: str
    ) -> tuple[Self, BoolArray | None, dict[str, int]]:
        """Return the form, which samples count (None if all do), and the counts of a report, ``n`` first.

        Raises
        ------
        InvalidValueError
            Samples that count have bad values, under ``on_invalid="raise"``.
        EmptyInputError
            No sample is left.
        """
        found, offset, pieces = Scan(truth.shape), 0, list(self.places(truth.shape))
        for place in pieces if len(pieces) > 1 else places(truth.shape, BLOCK):
            piece = truth[place].reshape(-1)
            masked = None if left_out is None else left_out[place].reshape(-1)
            found.add(offset, masked, self.absent(piece), self.invalid(piece, place))
            offset += piece.size
        if on_invalid == "raise" and found.defects:
            raise InvalidValueError(self.complaint(found))
        counts = {"n": found.n, self.without_truth[0]: found.n_absent}
        counts |= {"n_masked": found.n_masked, "n_invalid": found.n_invalid}
        if not found.n:
            raise EmptyInputError(self._nothing_left(found), counts)
        return self, found.valid, counts

    def _nothing_left(self, found: Scan) -> str:
        size = math.prod(found.shape)
        if size == 0:
            return f"{self.truth_is} empty (shape {found.shape}); there is nothing to score"
        parts = {self.without_truth[1]: found.n_absent, "masked": found.n_masked, "invalid": found.n_invalid}
        listed = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
        cure = "; mask=True leaves a sample out: pass ~mask if yours marks what to keep" * bool(
            found.n_masked
        )
        return f"none of {size} samples is left: {listed}{cure}"

    @abstractmethod
    def rows(self, truth: AnyArray, place: Place, keep: BoolArray | None) -> dict[str, AnyArray]:
        """Columns of a piece's samples, as the task's statistics expect them; ``keep`` selects those that count."""

    def row_types(self, n: int) -> dict[str, type[np.floating[Any]]]:
        """Types in which to hold the columns of n samples, where they are narrower than those of ``rows``."""
        return {}

    def places(self, shape: tuple[int, ...]) -> Iterator[Place]:
        """Pieces in which the samples are read, in C order; by default one piece."""
        yield (...,)

    def losses(self, rows: Rows) -> tuple[AnyArray, ...]:
        """Losses of samples, by which a series is tested for correlation; by default none."""
        return ()

    def case(self, truth: AnyArray, valid: BoolArray | None, place: Place) -> tuple[Rows, Rows]:
        """Arrays of a 2-D case in the order that map panels expect, and parts of the uncertainty."""
        target = truth[place].astype(np.float64)
        if valid is not None:
            target = np.where(valid[place], target, np.nan)
        return {self.truth_name: target, **{name: array[place] for name, array in self.arrays().items()}}, {}

    def digested(self, weights: Sequence[AnyArray]) -> tuple[list[AnyArray], str]:
        """Arrays that tell two forecasts apart, in the truth's shape with further axes at the end, and a text."""
        return [*self.arrays().values(), *weights], ""

    digested_rows: ClassVar[tuple[str, ...]] = ()
    """Columns of ``rows``, in the order of ``digested``, where these are all that it gives."""

    def output(self, k: int) -> Form:
        """Return the form of entry k along the last axis of the truth, as arrays that it ``takes`` would give it."""
        raise NotImplementedError(f"{self.name} have no outputs")

    @property
    def members(self) -> tuple[int, int] | None:
        """Number of members of an ensemble, and the fewest that can be scored; None if there are none."""
        return None

    def of_members(self, data: Predictions, chosen: Sequence[int]) -> Predictions:
        """The same truth predicted by some of the members."""
        raise NotImplementedError(f"{self.name} has no members")

    @property
    def input_options(self) -> dict[str, Any]:
        """Options that read another set with arrays of the same form."""
        return {}

    def strata(self, name: str, truth: AnyArray) -> AnyArray:
        """Return the labels of strata that ``by=`` names, in the shape of the truth."""
        raise SettingsError(f"by={name!r} is no label of each sample; pass an array of them")

    def narrowed(self) -> Self:
        """Return the form with rows that hold only what metrics ``of_top`` need, if there is any such."""
        return self

    @classmethod
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        """Say why a form with these facts, and with at least ``size`` draws or levels, does not determine a score."""
        return f"{cls.name} does not determine it"


def picked(array: AnyArray, place: Place, keep: BoolArray | None, ndim: int) -> AnyArray:
    """Values of a piece's samples that count, from an array with the truth's ``ndim`` axes, and maybe more."""
    spare = array.shape[ndim:]
    values = array[place].reshape(-1, *spare)
    return values if keep is None else values[keep]


def places(shape: Sequence[int], size: int) -> Iterator[Place]:
    """Indices that split an array of this shape into pieces of at most ``size`` samples, in C order.

    >>> list(places((2, 3, 4), 8))
    [(0, slice(0, 2, None)), (0, slice(2, 4, None)), (1, slice(0, 2, None)), (1, slice(2, 4, None))]
    """
    inner = math.prod(shape[1:])
    if inner <= size:
        step = size // max(inner, 1)
        yield from ((slice(start, start + step),) for start in range(0, shape[0], step))
        return
    for first in range(shape[0]):
        yield from ((first, *rest) for rest in places(shape[1:], size))


Columns = dict[str, FloatArray]
"""What a predictive distribution says about each sample, arrays of the target's shape.

``mean``, ``std``; ``pit_low`` and ``pit_high``, the ends of the interval over which the probability integral
transform is spread (equal if the distribution is continuous); ``size``, the number of draws or levels; ``crossed``,
at how many places quantiles cross; and any of `SCORES`.
"""

JOINT = ("whole", "joint_nll", "energy_score", "variogram_score")
"""What is summed over vectors: how many samples are components of whole vectors, and the vectors' scores."""

PERCENT = (50, 68, 80, 90, 95)
"""Levels of the central intervals whose coverage is a score."""

SCORES = (
    "nll",
    "crps",
    "crps_ensemble",
    "pinball",
    "interval_score",
    "interval_width_95",
    "quadratic_score",
    "spherical_score",
    "wis",
    *(f"inside_{percent}" for percent in PERCENT),
    "inside_widest",
    "width_widest",
    *JOINT,
)
"""What is summed over the samples; a form omits what it does not determine."""

LEVELS = np.arange(1, 100) / 100
"""Levels of ``pinball``, and of the central intervals of ``interval_score``."""

EVERY_LEVEL = np.arange(1, 200) / 200
"""Quantile levels that these two need together."""


def in_blocks(
    function: Callable[..., Columns], target: FloatArray, *members: FloatArray, cost: int = 1
) -> Columns:
    """Apply a function of 1-D float64 blocks of the target and (M, block) blocks of its members.

    Parameters
    ----------
    function : callable
        ``function(target, *members) -> columns``.
    target : array, any shape
    *members : arrays, shape (M, ...)
        Their other axes are the target's.
    cost : int
        Numbers in memory per sample at once; blocks hold about half a million.
    """
    flat = target.reshape(-1)
    rows = [array.reshape(len(array), -1) for array in members]
    step = max(1, 8 * BLOCK // max(cost, 1))
    made: Columns = {}
    with np.errstate(all="ignore"):  # validation finds and names non-finite values
        for start in range(0, max(len(flat), 1), step):
            part = slice(start, start + step)
            found = function(
                flat[part].astype(np.float64), *(row[:, part].astype(np.float64, order="C") for row in rows)
            )
            if not made:
                made = {name: np.empty(len(flat)) for name in found}
            for name, column in found.items():
                made[name][part] = column
    return {name: column.reshape(target.shape) for name, column in made.items()}


def quantile_scores(target: FloatArray, quantiles: FloatArray) -> Columns:
    """``pinball``, ``interval_score`` and ``interval_width_95`` from the quantiles at `EVERY_LEVEL`.

    Parameters
    ----------
    target : array, shape (n,)
    quantiles : array, shape (n, 199)
    """
    gap = target[:, None] - quantiles
    loss = np.maximum(EVERY_LEVEL * gap, (EVERY_LEVEL - 1) * gap)
    # The Winkler score of level p is 2 / (1 - p) times the pinball losses at (1 - p)/2 and (1 + p)/2.
    lower, upper = loss[:, :99][:, ::-1], loss[:, 100:]
    winkler = (lower + upper) * (2 / (1 - LEVELS))
    return {
        "pinball": loss[:, 1::2].mean(axis=1),
        "interval_score": winkler.mean(axis=1),
        "interval_width_95": quantiles[:, 194] - quantiles[:, 4],
    }
