"""What the constructors of predictions share: their options, and the route from a form to checked predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from uq_tracking.checks import check_flag
from uq_tracking.errors import EmptyInputError, SettingsError, ShapeError
from uq_tracking.inputs.assemble import assemble
from uq_tracking.inputs.convert import FloatArray, Source, read_floats
from uq_tracking.inputs.forms.scored import Columns, Scored
from uq_tracking.inputs.lazy import LazyPredictions
from uq_tracking.inputs.validation import Wording, check_shapes

if TYPE_CHECKING:
    from typing_extensions import Self

QUANTILES_UP_TO = 5_000
"""The 199 quantiles that some scores need are computed by default for up to this many samples."""


class Options(TypedDict, total=False):
    """Options that every constructor of `Predictions` accepts, explained there."""

    mask: Any
    weights: Any
    on_invalid: Literal["raise", "drop"]
    std_floor: float | None
    groups: Any
    by: Any
    unit: str | None


class Makes:
    """Makes predictions from checked values."""

    def _fill(self, values: dict[str, Any]) -> Self:
        """Set the attributes of a new object; a frozen dataclass allows no other way."""
        for item in fields(self):  # type: ignore[arg-type]  # Predictions, a dataclass, by the time of the call
            object.__setattr__(self, item.name, values.get(item.name))
        return self

    @classmethod
    def _new(cls, values: dict[str, Any]) -> Self:
        return object.__new__(cls)._fill(values)

    @classmethod
    def _later(
        cls,
        constructor: str,
        arrays: Mapping[str, Any],
        axes: Mapping[str, int],
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> Self:
        """Stand-in for predictions of lazy arrays; `evaluate` and `log` make predictions from it block by block."""
        lazy: Any = LazyPredictions(constructor, arrays, axes, arguments, options)
        made: Self = lazy
        return made


def read_equal(**arrays: Any) -> tuple[Source, ...]:
    """Read arrays of real numbers by argument name, and reject unequal shapes."""
    sources = tuple(read_floats(value, name) for name, value in arrays.items())
    check_shapes(*((source.name, source.values.shape) for source in sources))
    return sources


def assembled(
    sources: Any, scored: Scored, wording: Wording, dtype: np.dtype[Any], options: Any
) -> dict[str, Any]:
    """The attributes of `Predictions`; a sample with an unknown PIT is as bad as one without a mean."""
    mean = np.where(np.isfinite(scored.columns["pit_low"]), scored.columns["mean"], np.nan).astype(dtype)
    values = assemble(tuple(sources), mean, scored.columns["std"].astype(dtype), wording, **options)
    kept: dict[str, FloatArray] = {}
    for name, column in scored.columns.items():
        if name not in ("mean", "std"):
            kept[name] = column.view()
            kept[name].flags.writeable = False
    return {**values, "scored": Scored(scored.form, kept, scored.facts)}


def with_vectors(
    values: dict[str, Any], function: Callable[..., Columns], arrays: tuple[FloatArray, ...], cost: int
) -> dict[str, Any]:
    """The attributes of `Predictions`, with what ``function`` says about vectors along the target's last axis."""
    from uq_tracking.inputs.forms.joint import spread_over_vectors

    target, valid = arrays[0], values["valid"]
    whole = np.ones(target.shape[:-1], dtype=bool) if valid is None else valid.all(axis=-1)
    columns = spread_over_vectors(function, np.asarray(whole), arrays, cost)
    for column in columns.values():
        column.flags.writeable = False
    scored = values.get("scored") or Scored(None, {})
    facts = {**scored.facts, "vector_length": target.shape[-1]}
    return {**values, "scored": Scored(scored.form, {**scored.columns, **columns}, facts)}


def wants_quantiles(size: int, asked: bool | None) -> bool:
    """Whether to compute the quantiles of a continuous distribution."""
    if asked is None:
        return size <= QUANTILES_UP_TO
    check_flag("quantile_scores", asked)
    return bool(asked)


def check_members(
    truth: Source, members: Source, noise: Source | None, name: str, *, fewest: int = 2
) -> None:
    """Reject members or quantiles if one does not have the target's shape, or if there are too few."""
    shape, expected = members.values.shape, truth.values.shape
    what = "quantile" if name == "quantiles" else "member"
    if shape[1:] != expected:
        raise ShapeError(
            f"with its {what}s first, {name} has shape {shape}, but y_true has {expected}: each {what} must "
            f"have the shape of y_true; say which axis holds the {what}s, for example axis=-1"
        )
    if noise is not None and noise.values.shape != shape:
        raise ShapeError(f"{name} has shape {shape} and stds {noise.values.shape}; they must be equal")
    if expected == ():
        raise ShapeError("y_true is a single number; pass arrays, for example [y_true]")
    if shape[0] == 0:
        raise EmptyInputError(f"{name} has no {what}s (M = 0 along the axis of {what}s)")
    if shape[0] < fewest and noise is None:
        raise SettingsError(
            f"{name} has a single {what} (M = 1), so its spread is zero and says nothing about uncertainty; "
            "pass more, their own stds (from_ensemble), or the right axis="
        )
