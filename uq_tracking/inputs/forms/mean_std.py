"""Forecasts of numbers by a mean and a standard deviation, and what forms that have more share with them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from uq_tracking.checks import value_text
from uq_tracking.errors import InvalidValueError, SettingsError
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray, Source, read_floats
from uq_tracking.inputs.forms.form import Columns, Form, Place, Rows, picked, places
from uq_tracking.inputs.validation import BLOCK, Defect, Scan, check_shapes, negative_hint, read_equal
from uq_tracking.npz import prefixed, under
from uq_tracking.typed import Self, override

if TYPE_CHECKING:
    from uq_tracking.inputs.predictions import Predictions

NON_FINITE, NEGATIVE = "non-finite", "negative"
SCORED = "scored"
"""Prefix of the names of stored columns."""
OPTIONAL = ("aleatoric", "epistemic", "samples", "member_std")


class Wording(NamedTuple):
    """How error messages refer to the mean and std derived from the arguments, and the cure for bad ones."""

    mean: str = "y_pred"
    std: str = "y_std"
    negative_cure: str = "pass standard deviations, or use Predictions.from_variance / from_log_variance"
    non_finite_cure: str = ""


AS_GIVEN = Wording()


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers(Form):
    """A mean and a standard deviation, and whatever else the form says about each sample.

    Attributes
    ----------
    mean, std : arrays of the truth's shape
        Predictive mean and standard deviation; the std is raised to ``std_floor``, if that was given.
    columns : dict of arrays of the truth's shape
        What a distribution in another form says about each sample, without mean and std.
    known : dict
        Facts of the form: ``levels`` of quantiles; ``spread="interquartile"`` if location and scale stand in for a
        mean and a std that do not exist; ``vector_length`` if samples are components of vectors scored as a whole.
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
    vectors : callable, optional
        Says what the samples as components of vectors say, given which vectors count; until they are checked.
    """

    task: ClassVar[str] = "regression"
    options: ClassVar[tuple[str, ...]] = ("std_floor",)
    digested_rows: ClassVar[tuple[str, ...]] = (
        "target", "mean", "std", "weight", "pit_low", "pit_high", "joint_pit",
    )  # fmt: skip
    in_unit: ClassVar[bool] = True

    mean: FloatArray
    std: FloatArray
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    aleatoric: FloatArray | None = None
    epistemic: FloatArray | None = None
    samples: FloatArray | None = None
    member_std: FloatArray | None = None
    std_floor: float | None = None
    wording: Wording = AS_GIVEN
    vectors: Callable[[BoolArray], Columns] | None = None

    @classmethod
    def of(cls, columns: Columns, dtype: np.dtype[Any], **more: Any) -> Self:
        """Make the form of what it says about each sample; an unknown PIT is as bad as an unknown mean."""
        mean = np.where(np.isfinite(columns["pit_low"]), columns["mean"], np.nan).astype(dtype)
        std = columns["std"].astype(dtype)
        others = {name: column for name, column in columns.items() if name not in ("mean", "std")}
        return cls(mean=mean, std=std, columns=others, **more)

    @property
    @override
    def facts(self) -> dict[str, Any]:
        # What derives from a mean and a std is scored as such.
        form = {} if isinstance(self, MeanStd) else {"distribution": self.name}
        return {"std_floor": self.std_floor, **form, **self.known}

    @override
    def arrays(self) -> dict[str, AnyArray]:
        optional = {name: getattr(self, name) for name in OPTIONAL}
        return {
            "mean": self.mean,
            "std": self.std,
            **{name: array for name, array in optional.items() if array is not None},
            **prefixed(SCORED, self.columns),
        }

    @property
    @override
    def stored_facts(self) -> dict[str, Any]:
        return {"std_floor": self.std_floor, "known": dict(self.known)}

    @classmethod
    @override
    def from_stored(cls, arrays: Mapping[str, AnyArray], about: Mapping[str, Any]) -> Self:
        columns = under(SCORED, arrays)
        own: dict[str, Any] = {name: arrays[name] for name in arrays if not name.startswith(f"{SCORED}/")}
        if any(own[name].dtype not in (np.float32, np.float64) for name in ("mean", "std")):
            raise ValueError("mean and std must be float32 or float64")
        return cls(**own, columns=columns, known=about["known"], std_floor=about["std_floor"])

    @override
    def checked(
        self, truth: AnyArray, left_out: BoolArray | None, on_invalid: str
    ) -> tuple[Self, BoolArray | None, dict[str, int]]:
        check_floor(self.std_floor)
        check_shapes(("target", truth.shape), ("mean", self.mean.shape), ("std", self.std.shape))
        try:
            _, valid, counts = super().checked(truth, left_out, on_invalid)
        except InvalidValueError as error:
            known = np.isfinite(truth) & np.isfinite(self.mean) & np.isfinite(self.std)
            known &= True if left_out is None else ~left_out
            hint = negative_hint(
                *(column[known].astype(np.float64) for column in (truth, self.mean, self.std))
            )
            if hint and self.wording == AS_GIVEN:
                raise InvalidValueError(f"{error}; {hint}") from None
            raise
        std, n_zero = self.std, self.zeros(valid)
        if self.std_floor is not None:
            std = _raised(std, self.std_floor)
        elif n_zero and np.signbit(std).any():  # -0.0 would flip the sign of quotients
            std = std + std.dtype.type(0)
        form = replace(self, std=std, vectors=None)
        if self.vectors is not None:
            whole = np.ones(truth.shape[:-1], dtype=bool) if valid is None else valid.all(axis=-1)
            columns = {**self.columns, **self.vectors(np.asarray(whole))}
            form = replace(form, columns=columns, known={**self.known, "vector_length": truth.shape[-1]})
        return form, valid, {**counts, "n_zero_std": n_zero}

    def zeros(self, valid: BoolArray | None) -> int:
        """Return how many of the samples that count have a std of 0."""
        found = 0
        for place in places(self.std.shape, BLOCK):
            std = self.std[place]
            found += int(np.count_nonzero((std if valid is None else std[valid[place]]) == 0))
        return found

    @override
    def invalid(self, truth: AnyArray, place: Place) -> Mapping[Defect, BoolArray]:
        mean, std, wording = self.mean[place].reshape(-1), self.std[place].reshape(-1), self.wording
        if std.size and std.min() >= 0 and std.max() < np.inf and np.isfinite(mean).all():
            return {}  # so the usual case reads each array as few times as it can
        return {
            (wording.mean, NON_FINITE): ~np.isfinite(mean),
            (wording.std, NON_FINITE): ~np.isfinite(std),
            (wording.std, NEGATIVE): (std < 0) & (std > -np.inf),
        }

    @override
    def cures(self, found: Scan) -> list[str]:
        hows = {how for _, how in found.defects}
        cures = [self.wording.negative_cure] if NEGATIVE in hows else []
        if NON_FINITE in hows:
            cures += [self.wording.non_finite_cure] if self.wording.non_finite_cure else []
            cures += super().cures(found)
        return cures

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

    @property
    @override
    def members(self) -> tuple[int, int] | None:
        if self.samples is None:
            return None
        return len(self.samples), 2 if self.member_std is None else 1

    @override
    def of_members(self, data: Predictions, chosen: Sequence[int], **options: Any) -> Predictions:
        means, noise = np.asarray(self.samples)[list(chosen)], self.member_std
        stds = None if noise is None else noise[list(chosen)]
        return type(data).from_ensemble(data.truth, means, stds, axis=0, **data.input_options, **options)


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanStd(Numbers):
    """A mean and a standard deviation; of an ensemble, those of the equally weighted mixture of its members."""

    name: ClassVar[str] = "mean_std"
    takes: ClassVar[tuple[str, ...]] = ("y_pred", "y_std")

    @classmethod
    @override
    def read(
        cls,
        y_true: Any,
        *,
        y_pred: Any = None,
        y_std: Any = None,
        beside: Sequence[Source] = (),
        **more: Any,
    ) -> tuple[Self, Sequence[Source]]:
        truth, mean = read_floats(y_true, "y_true"), read_floats(y_pred, "y_pred")
        if isinstance(y_std, Real) and not isinstance(y_std, bool):
            y_std = np.full(mean.values.shape, y_std, dtype=mean.values.dtype)
        std = read_floats(y_std, "y_std")
        check_shapes(*((source.name, source.values.shape) for source in (truth, mean, std)))
        return cls(mean=mean.values, std=std.values, **more), (truth, mean, std, *beside)

    @override
    def output(self, k: int) -> MeanStd:
        return replace(self, mean=self.mean[..., k], std=self.std[..., k])


@dataclass(frozen=True, eq=False, kw_only=True)
class Density(Numbers):
    """Any distribution, by its values at each sample."""

    name: ClassVar[str] = "density"

    wording: Wording = Wording(mean="y_pred or pit", non_finite_cure="pit must be between 0 and 1")

    @classmethod
    @override
    def read(
        cls, y_true: Any, *, pit: Any, y_pred: Any, y_std: Any, log_density: Any, crps: Any, **more: Any
    ) -> tuple[Self, Sequence[Source]]:
        low, high = pit if isinstance(pit, tuple | list) and len(pit) == 2 else (pit, pit)
        given = {"y_true": y_true, "y_pred": y_pred, "y_std": y_std, "pit": low, "upper pit": high}
        optional = {"log_density": log_density, "crps": crps}
        given |= {name: array for name, array in optional.items() if array is not None}
        sources = read_equal(**given)
        values = {source.name: source.values for source in sources}
        outside = (values["pit"] < 0) | (values["upper pit"] > 1) | (values["upper pit"] < values["pit"])
        if np.any(outside & np.isfinite(values["y_true"])):
            raise InvalidValueError(
                f"pit has {int(np.count_nonzero(outside))} values outside [0, 1], or decreasing pairs; pass F(y)"
            )
        columns = {
            "mean": values["y_pred"],
            "std": values["y_std"],
            "pit_low": values["pit"].astype(np.float64),
            "pit_high": values["upper pit"].astype(np.float64),
        }
        if log_density is not None:
            columns["nll"] = -values["log_density"].astype(np.float64)
        if crps is not None:
            columns["crps"] = values["crps"].astype(np.float64)
        dtype = np.result_type(values["y_pred"], values["y_std"])
        return cls.of(columns, dtype, **more), sources

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        given = "log_density" if key == "nll" else key
        return f"it was not given; pass it to Predictions.from_density ({given}=)"


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


def evidential_stds(nu: FloatArray, alpha: FloatArray, beta: FloatArray) -> Columns:
    """Return total, aleatoric and epistemic std of a normal-inverse-gamma; NaN if its variance is infinite."""
    dtype = np.result_type(nu, alpha, beta)
    nu, alpha, beta = (values.astype(np.float64) for values in (nu, alpha, beta))
    with np.errstate(all="ignore"):  # checks find and name non-finite values
        proper = (nu > 0) & (alpha > 1) & (beta > 0)
        aleatoric = np.where(proper, beta / (alpha - 1), np.nan)
        epistemic = aleatoric / nu
        variances = {"std": aleatoric + epistemic, "aleatoric": aleatoric, "epistemic": epistemic}
        return {name: np.sqrt(variance).astype(dtype) for name, variance in variances.items()}
