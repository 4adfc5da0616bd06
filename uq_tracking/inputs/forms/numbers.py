"""Forecasts of numbers by a mean and a standard deviation, and what forms that have more share with them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from uq_tracking.checks import value_text
from uq_tracking.errors import EmptyInputError, InvalidValueError, SettingsError
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray, Source, read_floats
from uq_tracking.inputs.fingerprint import Fingerprint
from uq_tracking.inputs.forms.form import Form, Place, Rows, Scored, picked
from uq_tracking.inputs.validation import BLOCK, Finding, blocks, check_shapes
from uq_tracking.typed import override

if TYPE_CHECKING:
    from typing_extensions import Self

    from uq_tracking.inputs.predictions import Predictions

SCORED = "scored/"
"""Prefix of the names of stored columns."""
OPTIONAL = ("aleatoric", "epistemic", "samples", "member_std")


class Wording(NamedTuple):
    """How error messages refer to the mean and std derived from the arguments, and the cure for bad ones."""

    target: str = "y_true"
    mean: str = "y_pred"
    std: str = "y_std"
    negative_cure: str = "pass standard deviations, or use Predictions.from_variance / from_log_variance"
    non_finite_cure: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers(Form):
    """A mean and a standard deviation, and whatever else the form says about each sample.

    Attributes
    ----------
    mean, std : arrays of the truth's shape
        Predictive mean and standard deviation; the std is raised to ``std_floor``, if that was given.
    columns : dict of arrays of the truth's shape
        What a distribution in another form says about each sample, as in `Scored`, without mean and std.
    known : dict
        Facts of the form, as in `Scored`, and ``vector_length`` if samples are components of vectors scored as a
        whole.
    aleatoric, epistemic : arrays or None
        Standard deviations due to noise in the data and to the model's ignorance, if they can be separated.
    samples : array, shape (M, ...), or None
        Draws from the predictive distribution; the members' means if ``member_std`` is set.
    member_std : array, shape (M, ...), or None
        Standard deviations of the members.
    std_floor : float or None
        The floor that was applied.
    wording : Wording
        How error messages refer to mean and std.
    """

    task: ClassVar[str] = "regression"
    options: ClassVar[tuple[str, ...]] = ("std_floor",)
    digested_rows: ClassVar[tuple[str, ...]] = (
        "target", "mean", "std", "weight", "pit_low", "pit_high", "joint_pit",
    )  # fmt: skip
    in_unit: ClassVar[bool] = True
    scored_as: ClassVar[str | None]
    """What reports call the form; None for a mean and a std."""

    mean: FloatArray
    std: FloatArray
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    aleatoric: FloatArray | None = None
    epistemic: FloatArray | None = None
    samples: FloatArray | None = None
    member_std: FloatArray | None = None
    std_floor: float | None = None
    wording: Wording = field(default_factory=Wording)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "scored_as" not in vars(cls):
            cls.scored_as = cls.name

    @classmethod
    def of(cls, scored: Scored, wording: Wording, dtype: np.dtype[Any], **more: Any) -> Self:
        """Make the form of what it says about each sample; an unknown PIT is as bad as an unknown mean."""
        columns = dict(scored.columns)
        mean, std = columns.pop("mean"), columns.pop("std")
        mean = np.where(np.isfinite(columns["pit_low"]), mean, np.nan).astype(dtype)
        return cls(
            mean=mean, std=std.astype(dtype), columns=columns, known=scored.facts, wording=wording, **more
        )

    @classmethod
    @override
    def read(cls, truth: Source, *args: Any, **arrays: Any) -> tuple[Self, Sequence[Source]]:
        raise SettingsError(f"{cls.name} are made by a constructor of Predictions")

    def with_vectors(self, columns: Mapping[str, FloatArray], length: int) -> Self:
        """Add what is known of samples as components of vectors."""
        for column in columns.values():
            column.flags.writeable = False
        return replace(
            self, columns={**self.columns, **columns}, known={**self.known, "vector_length": length}
        )

    @property
    @override
    def facts(self) -> dict[str, Any]:
        form = {} if self.scored_as is None else {"distribution": self.scored_as}
        return {"std_floor": self.std_floor, **form, **self.known}

    @override
    def arrays(self) -> dict[str, AnyArray]:
        optional = {name: getattr(self, name) for name in OPTIONAL}
        return {
            "mean": self.mean,
            "std": self.std,
            **{name: array for name, array in optional.items() if array is not None},
            **{SCORED + name: column for name, column in self.columns.items()},
        }

    @property
    @override
    def stored_facts(self) -> dict[str, Any]:
        return {"std_floor": self.std_floor, "known": dict(self.known)}

    @classmethod
    @override
    def from_stored(cls, arrays: Mapping[str, AnyArray], about: Mapping[str, Any]) -> Self:
        columns = {
            name.removeprefix(SCORED): array for name, array in arrays.items() if name.startswith(SCORED)
        }
        own = {name: array for name, array in arrays.items() if not name.startswith(SCORED)}
        if any(own[name].dtype not in (np.float32, np.float64) for name in ("mean", "std")):
            raise ValueError("mean and std must be float32 or float64")
        named: dict[str, Any] = own
        return cls(**named, columns=columns, known=about["known"], std_floor=about["std_floor"])

    @override
    def checked(
        self, truth: AnyArray, left_out: BoolArray | None, on_invalid: str
    ) -> tuple[Self, BoolArray | None, dict[str, int]]:
        check_floor(self.std_floor)
        check_shapes(("target", truth.shape), ("mean", self.mean.shape), ("std", self.std.shape))
        found = scan(truth, self.mean, self.std, left_out)
        check_scan(found, self.wording, on_invalid)
        std = self.std
        if self.std_floor is not None:
            std = _raised(std, self.std_floor)
        elif found.n_zero_std and np.signbit(std).any():  # -0.0 would flip the sign of quotients
            std = std + std.dtype.type(0)
        return replace(self, std=std), found.valid, found.counts

    @override
    def rows(self, truth: AnyArray, place: Place, keep: BoolArray | None) -> dict[str, AnyArray]:
        columns = {"target": truth, "mean": self.mean, "std": self.std, **self.columns}
        return {name: picked(column, place, keep, truth.ndim) for name, column in columns.items()}

    @override
    def losses(self, rows: Rows) -> tuple[AnyArray, ...]:
        error = (rows["target"] - rows["mean"]).astype(np.float64)
        return error, np.abs(error)

    @override
    def case(self, truth: AnyArray, valid: BoolArray | None, place: Place) -> tuple[Rows, Rows]:
        target = truth[place] if valid is None else np.where(valid[place], truth[place], np.nan)
        known = {"epistemic": self.epistemic, "aleatoric": self.aleatoric}
        parts = {name: part[place] for name, part in known.items() if part is not None}
        return {"target": target, "mean": self.mean[place], "std": self.std[place]}, parts

    @override
    def digested(self, weights: Sequence[AnyArray]) -> tuple[list[AnyArray], str]:
        names = ("pit_low", "pit_high", "joint_pit")
        pit = [self.columns[name] for name in names if name in self.columns]
        return [self.mean, self.std, *weights, *pit], ""

    @override
    def fingerprint(
        self, truth: AnyArray, place: Place, keep: BoolArray | None, weight: AnyArray | None
    ) -> Fingerprint:
        columns = [picked(array, place, keep, truth.ndim) for array in (truth, self.mean, self.std)]
        return Fingerprint.of(*columns, *([] if weight is None else [weight]))

    @property
    @override
    def members(self) -> tuple[int, int] | None:
        if self.samples is None:
            return None
        return len(self.samples), 2 if self.member_std is None else 1

    @override
    def of_members(self, data: Predictions, chosen: Sequence[int]) -> Predictions:
        if self.samples is None:
            raise SettingsError("these predictions have no members")
        return self.combined(data, list(chosen))

    def combined(self, data: Predictions, chosen: list[int], **options: Any) -> Predictions:
        """Combine some of the members anew."""
        samples = None if self.samples is None else self.samples[chosen]
        noise = None if self.member_std is None else self.member_std[chosen]
        return type(data).from_ensemble(data.truth, samples, noise, axis=0, **data.input_options, **options)


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanStd(Numbers):
    """A mean and a standard deviation; of an ensemble, those of the equally weighted mixture of its members."""

    name: ClassVar[str] = "mean_std"
    takes: ClassVar[tuple[str, ...]] = ("y_pred", "y_std")
    scored_as: ClassVar[str | None] = None

    @classmethod
    @override
    def read(
        cls, truth: Source, *, y_pred: Any = None, y_std: Any = None, std_floor: float | None = None
    ) -> tuple[Self, Sequence[Source]]:
        mean = read_floats(y_pred, "y_pred")
        if isinstance(y_std, Real) and not isinstance(y_std, bool):
            y_std = np.full(mean.values.shape, y_std, dtype=mean.values.dtype)
        std = read_floats(y_std, "y_std")
        check_shapes(*((source.name, source.values.shape) for source in (truth, mean, std)))
        return cls(mean=mean.values, std=std.values, std_floor=std_floor), (mean, std)


@dataclass(frozen=True, eq=False, kw_only=True)
class Density(Numbers):
    """Any distribution, by its values at each sample."""

    name: ClassVar[str] = "density"
    takes: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        given = "log_density" if key == "nll" else key
        return f"it was not given; pass it to Predictions.from_density ({given}=)"


def of_distribution(key: str) -> str:
    """Say why a distribution object or a mixture does not determine a score."""
    if key in ("pinball", "interval_score", "interval_width_95"):
        return "its quantiles are not known; pass quantile_scores=True if the distribution can provide them"
    return f"the distribution does not provide it ({key} has no closed form here, or quadrature did not reach 1e-6)"


def check_floor(std_floor: float | None) -> None:
    """Raise SettingsError unless ``std_floor`` is a positive number or None."""
    if std_floor is not None and not (isinstance(std_floor, Real) and 0 < std_floor <= sys.float_info.max):
        raise SettingsError(
            f"std_floor is {value_text(std_floor)}; pass a positive number in the target's unit"
        )


def _raised(std: FloatArray, floor: float) -> FloatArray:
    """Raise ``std`` to the floor, copying only if some values are below it."""
    info = np.finfo(std.dtype)
    if not float(info.tiny) <= floor <= float(info.max):
        raise SettingsError(f"std_floor={floor!r} is outside the range of {std.dtype}; pass y_std as float64")
    limit = std.dtype.type(floor)
    with np.errstate(invalid="ignore"):  # NaN where the target is missing
        return np.maximum(std, limit) if np.any(std < limit) else std


@dataclass
class Scan:
    """What one pass over the arrays found."""

    shape: tuple[int, ...]
    valid: BoolArray | None = None
    n_masked: int = 0
    n_missing: int = 0
    n_invalid: int = 0
    n_zero_std: int = 0
    bad_mean: Finding = field(default_factory=Finding)
    bad_std: Finding = field(default_factory=Finding)
    negative_std: Finding = field(default_factory=Finding)

    @property
    def size(self) -> int:
        """Number of samples, including those left out."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def counts(self) -> dict[str, int]:
        """The counts of a report."""
        n = self.size - self.n_masked - self.n_missing - self.n_invalid
        return {
            "n": n,
            "n_missing": self.n_missing,
            "n_masked": self.n_masked,
            "n_invalid": self.n_invalid,
            "n_zero_std": self.n_zero_std,
        }


def scan(target: FloatArray, mean: FloatArray, std: FloatArray, left_out: BoolArray | None) -> Scan:
    """Read every sample once and count what is missing, bad or zero."""
    result = Scan(target.shape)
    valid: BoolArray | None = None
    offset = 0
    arrays = (target, mean, std) if left_out is None else (target, mean, std, left_out)
    for block in blocks(*arrays):
        stop = offset + block[0].size
        if not _all_fine(result, *block):
            if valid is None:
                valid = np.ones(target.size, dtype=bool)
            valid[offset:stop] = _sort_out(result, offset, *block)
        offset = stop
    result.valid = None if valid is None else valid.reshape(target.shape)
    return result


def _all_fine(
    result: Scan, target: FloatArray, mean: FloatArray, std: FloatArray, left_out: Any = None
) -> bool:
    if left_out is not None and left_out.any():
        return False
    if not (np.isfinite(target).all() and np.isfinite(mean).all() and np.isfinite(std).all()):
        return False
    smallest = std.min()
    if smallest == 0:
        result.n_zero_std += std.size - int(np.count_nonzero(std))
    return bool(smallest >= 0)


def _sort_out(
    result: Scan, offset: int, target: FloatArray, mean: FloatArray, std: FloatArray, left_out: Any = None
) -> BoolArray:
    """Count the defects in one block; return which of its samples count."""
    here = np.ones(target.size, dtype=bool) if left_out is None else ~left_out
    result.n_masked += here.size - int(np.count_nonzero(here))
    keep: BoolArray = here & np.isfinite(target)
    result.n_missing += int(np.count_nonzero(here)) - int(np.count_nonzero(keep))
    finite_mean, finite_std = np.isfinite(mean), np.isfinite(std)
    with np.errstate(invalid="ignore"):
        negative = finite_std & (std < 0)
    result.bad_mean.add(keep & ~finite_mean, offset)
    result.bad_std.add(keep & ~finite_std, offset)
    result.negative_std.add(keep & negative, offset)
    good: BoolArray = keep & finite_mean & finite_std & ~negative
    result.n_invalid += int(np.count_nonzero(keep)) - int(np.count_nonzero(good))
    result.n_zero_std += int(np.count_nonzero(good & (std == 0)))
    return good


def check_scan(result: Scan, wording: Wording, on_invalid: str) -> None:
    """Judge a scan by the user's policy.

    Raises
    ------
    InvalidValueError
        Samples that count have bad values, under ``on_invalid="raise"``.
    EmptyInputError
        No sample is left.
    """
    if result.n_invalid and on_invalid == "raise":
        raise InvalidValueError(_bad_values(result, wording))
    if result.counts["n"] == 0:
        raise EmptyInputError(_nothing_left(result, wording), result.counts)


def _bad_values(result: Scan, wording: Wording) -> str:
    defects = [
        (result.bad_mean, wording.mean, "non-finite"),
        (result.bad_std, wording.std, "non-finite"),
        (result.negative_std, wording.std, "negative"),
    ]
    parts = [finding.describe(name, what, result.shape) for finding, name, what in defects if finding.count]
    cures = [wording.negative_cure] if result.negative_std.count else []
    if result.bad_mean.count or result.bad_std.count:
        cures += [wording.non_finite_cure] if wording.non_finite_cure else []
        cures.append("leave such samples out with mask= or on_invalid='drop'")
    return "; ".join([*parts, *cures])


def _nothing_left(result: Scan, wording: Wording) -> str:
    if result.size == 0:
        return f"{wording.target} is empty (shape {result.shape}); there is nothing to score"
    parts = {
        "missing (non-finite target)": result.n_missing,
        "masked": result.n_masked,
        "invalid": result.n_invalid,
    }
    listed = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
    cure = (
        "; mask=True leaves a sample out: pass ~mask if yours marks what to keep" if result.n_masked else ""
    )
    return f"none of {result.size} samples is left: {listed}{cure}"


Moments = Callable[..., tuple[FloatArray, ...]]


class Mixture(NamedTuple):
    """Moments of an equally weighted mixture; the two parts exist only if members have their own std."""

    mean: FloatArray
    std: FloatArray
    aleatoric: FloatArray | None
    epistemic: FloatArray | None


def pointwise(function: Moments, n_out: int, *inputs: FloatArray) -> tuple[FloatArray, ...]:
    """Apply a function of float64 blocks to arrays of equal shape; results have the inputs' common dtype."""
    dtype = np.result_type(*inputs)
    outputs = tuple(np.empty(inputs[0].shape, dtype) for _ in range(n_out))
    if inputs[0].size == 0:
        return outputs
    settings: Any = {
        "flags": ["external_loop", "buffered"],
        "op_flags": [["readonly"]] * len(inputs) + [["writeonly"]] * n_out,
        "op_dtypes": [np.float64] * (len(inputs) + n_out),  # numpy casts block by block, both ways
        "casting": "same_kind",
        "order": "C",
        "buffersize": BLOCK,
    }
    walk: Any = np.nditer([*inputs, *outputs], **settings)
    with walk, np.errstate(all="ignore"):  # validation finds, counts and names non-finite values
        for block in walk:
            for out, values in zip(block[len(inputs) :], function(*block[: len(inputs)]), strict=True):
                out[...] = values
    return outputs


def root(variance: FloatArray) -> tuple[FloatArray]:
    """Convert a variance to a std; negative values stay negative, so that validation can count them."""
    return (np.copysign(np.sqrt(np.abs(variance)), variance),)


def root_of_log(log_variance: FloatArray) -> tuple[FloatArray]:
    """Convert the natural log of a variance to a std."""
    return (np.exp(0.5 * log_variance),)


def interval_moments(width_per_std: float) -> Moments:
    """Return the function from (low, high) to the mean and std of the Gaussian with that central interval."""

    def moments(low: FloatArray, high: FloatArray) -> tuple[FloatArray, ...]:
        return low + 0.5 * (high - low), (high - low) / width_per_std

    return moments


def evidential_moments(nu: FloatArray, alpha: FloatArray, beta: FloatArray) -> tuple[FloatArray, ...]:
    """Total, aleatoric and epistemic std of a normal-inverse-gamma; NaN if its variance is infinite."""
    proper = (nu > 0) & (alpha > 1) & (beta > 0)
    aleatoric = np.where(proper, beta / (alpha - 1), np.nan)
    epistemic = aleatoric / nu
    return np.sqrt(aleatoric + epistemic), np.sqrt(aleatoric), np.sqrt(epistemic)


def mixture(samples: FloatArray, member_std: FloatArray | None, ddof: int) -> Mixture:
    """Match the first two moments of the mixture of M members along the first axis.

    Parameters
    ----------
    samples : (M, ...) array
        Draws, or the members' means.
    member_std : (M, ...) array, optional
        The members' standard deviations.
    ddof
        Delta degrees of freedom of the variance of ``samples``.
    """
    members, shape = samples.shape[0], samples.shape[1:]
    if not 0 <= ddof < members:
        raise SettingsError(
            f"ddof={ddof} with {members} samples leaves no degrees of freedom; pass 0 <= ddof < M"
        )
    dtype = samples.dtype if member_std is None else np.result_type(samples, member_std)
    names = ("mean", "std") if member_std is None else ("mean", "std", "aleatoric", "epistemic")
    out = {name: np.empty(shape, dtype) for name in names}
    flat = {name: array.reshape(-1) for name, array in out.items()}
    draws = samples.reshape(members, -1) if samples.size else np.empty((members, 0))
    noise = None if member_std is None else member_std.reshape(members, -1)
    step = max(1, 8 * BLOCK // members)
    with np.errstate(all="ignore"):
        for start in range(0, draws.shape[1], step):
            part = slice(start, start + step)
            block = _mix(draws[:, part], None if noise is None else noise[:, part], ddof)
            for name in names:
                flat[name][part] = block[name]
    return Mixture(out["mean"], out["std"], out.get("aleatoric"), out.get("epistemic"))


def _mix(draws: FloatArray, noise: FloatArray | None, ddof: int) -> dict[str, FloatArray]:
    exact = draws.astype(np.float64, order="C")  # so that results do not depend on the memory layout
    mean = exact.mean(axis=0)
    exact -= mean
    between = np.einsum("mi,mi->i", exact, exact) / (draws.shape[0] - ddof)
    if noise is None:
        return {"mean": mean, "std": np.sqrt(between)}
    stds = noise.astype(np.float64, order="C")
    within = np.where((stds < 0).any(axis=0), np.nan, np.einsum("mi,mi->i", stds, stds) / draws.shape[0])
    return {
        "mean": mean,
        "std": np.sqrt(within + between),
        "aleatoric": np.sqrt(within),
        "epistemic": np.sqrt(between),
    }
