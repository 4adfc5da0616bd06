"""Several outputs of one model along the last axis of a truth, each as predictions of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uq_tracking.checks import value_text
from uq_tracking.errors import InputError, SettingsError, ShapeError
from uq_tracking.inputs.constructors import PER_SAMPLE
from uq_tracking.inputs.convert import check_alignment, read
from uq_tracking.inputs.labels import read_weights, zero_where_left_out
from uq_tracking.inputs.predictions import Forecast, Predictions


def outputs_of(forecast: Forecast, outputs: Sequence[str], options: dict[str, Any]) -> dict[str, Predictions]:
    """Read arrays of a form as a whole, and make predictions of each entry of the truth's last axis."""
    check_names(outputs)
    kind = forecast.kind
    own = {name: options.pop(name) for name in kind.options if name in options}
    form, sources = kind.read(forecast.y_true, **forecast.arrays, **own)
    check_alignment([(source.name, source.axes) for source in sources])
    truth, shape = sources[0], sources[0].values.shape
    if shape[-1] != len(outputs):
        raise ShapeError(
            f"the last axis of shape {shape} has {shape[-1]} entries for {len(outputs)} outputs: {outputs}"
        )
    if options.get("weights") is not None:
        options["weights"] = zero_where_left_out(read_weights(options["weights"], truth))
    found, whole = {}, [source._replace(values=truth.values) for source in sources]
    for k, name in enumerate(outputs):
        beside = {key: _of_output(value, key, k, len(shape)) for key, value in options.items()}
        try:
            found[name] = Predictions.made([each.output(k) for each in whole], form.output(k), **beside)
        except InputError as error:
            raise type(error)(f"output {name!r}: {error}") from error
    return found


def check_names(outputs: Sequence[str]) -> None:
    """Raise SettingsError unless these are distinct names."""
    named = isinstance(outputs, Sequence) and not isinstance(outputs, str) and len(outputs) > 0
    if not named or not all(isinstance(name, str) and name for name in outputs):
        raise SettingsError(
            f"outputs is {value_text(outputs)}; pass a list of names, one per entry of the last axis"
        )
    if len(set(outputs)) < len(outputs) or any("/" in name for name in outputs):
        raise SettingsError(f"outputs={outputs!r}; names must be distinct and contain no slash")


def entry_of(given: Any, option: str, output: str) -> Any:
    """What an option says about one output: its entry in a mapping, or else the option itself."""
    if not isinstance(given, Mapping):
        return given
    if output not in given:
        raise SettingsError(f"{option} has no entry for output {output!r}; it has {', '.join(given)}")
    return given[output]


def _of_output(value: Any, name: str, k: int, ndim: int) -> Any:
    """Return what an option says about output k: its entry along the last axis, if it has the truth's axes."""
    if value is None or name not in PER_SAMPLE:
        return value
    if isinstance(value, Mapping):
        return {key: _of_output(labels, name, k, ndim) for key, labels in value.items()}
    source = read(value, name)
    if source.values.ndim < ndim:
        return value
    one = source.output(k)
    return one.values if one.left_out is None else np.ma.MaskedArray(one.values, one.left_out)
