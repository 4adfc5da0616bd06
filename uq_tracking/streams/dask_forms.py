"""Lazy predictions in forms other than mean and std: draws, ensembles and quantiles as dask arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs.lazy import LazyPredictions
from uq_tracking.inputs.predictions import Predictions


@dataclass(frozen=True)
class Form:
    """The constructor that makes predictions from a block, with members, draws or levels along the last axis."""

    constructor: str
    arguments: Mapping[str, Any]

    def predictions(self, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Predictions:
        """Predictions of the arrays of a block."""
        made: Predictions = getattr(Predictions, self.constructor)(**arrays, **self.arguments, **options)
        return made


def read_form(lazy: LazyPredictions, given: Mapping[str, Any]) -> tuple[Form, dict[str, Any], dict[str, Any]]:
    """The constructor, the arrays with members last, and the options.

    Raises
    ------
    SettingsError
        ``given`` has options that belong to the constructor.
    ShapeError
        A member does not have the shape of the truth.
    """
    da: Any = import_module("dask.array")

    spare = [
        name for name, value in given.items() if value is not None and name not in ("unit", "on_invalid")
    ]
    if spare or given.get("on_invalid", "raise") != "raise":
        raise SettingsError(
            f"pass {', '.join(spare) or 'on_invalid'} to Predictions.{lazy.constructor} instead"
        )
    arrays: dict[str, Any] = {}
    for name, value in lazy.arrays.items():
        listed = da.stack(value) if isinstance(value, list | tuple) else value
        bare = listed.data if hasattr(listed, "dims") else listed
        array = bare if isinstance(bare, da.Array) else da.asarray(bare)
        arrays[name] = da.moveaxis(array, lazy.axes[name], -1) if name in lazy.axes else array
        if arrays[name].shape[: len(lazy.shape)] != lazy.shape:
            raise ShapeError(
                f"{name} has shape {tuple(array.shape)} and y_true {lazy.shape}: each member must have the shape of "
                "y_true; say which axis holds the members, for example axis=-1"
            )
    arguments = {**lazy.arguments, **({"axis": -1} if lazy.axes else {})}
    return Form(lazy.constructor, arguments), arrays, dict(lazy.options)
