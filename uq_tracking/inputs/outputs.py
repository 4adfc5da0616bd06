"""Several outputs of one model, along the last axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.checks import value_text
from uq_tracking.errors import InputError, SettingsError, ShapeError
from uq_tracking.inputs.axes import read_equal
from uq_tracking.inputs.constructors import Options
from uq_tracking.inputs.convert import Source, check_alignment, check_units, read, read_mask
from uq_tracking.inputs.labels import read_weights, zero_where_left_out
from uq_tracking.inputs.predictions import Predictions

if TYPE_CHECKING:
    from typing_extensions import Unpack


def split_outputs(
    y_true: Any, y_pred: Any, y_std: Any, outputs: Sequence[str], **options: Unpack[Options]
) -> dict[str, Predictions]:
    """Split arrays whose last axis is the output into one `Predictions` per output.

    Parameters
    ----------
    y_true, y_pred, y_std : arrays of shape (..., K)
    outputs : K names
        For example ``["tx", "ty", "tw", "th"]``.
    **options
        As for `Predictions`. ``mask``, weights and labels may have shape (..., K), or (...) if shared by all outputs.

    Returns
    -------
    dict
        Views of the input by name, in the order of ``outputs``.

    Raises
    ------
    SettingsError
        Names are empty or repeated, or contain a slash.
    ShapeError
        The last axis does not have one entry per name.

    Examples
    --------
    >>> boxes = split_outputs([[0.0, 5.0]], [[0.1, 4.0]], [[0.1, 1.0]], outputs=["x", "y"])
    >>> boxes["y"].flat()[1]
    array([4.])
    """
    check_names(outputs)
    sources = read_equal(y_true=y_true, y_pred=y_pred, y_std=y_std)
    check_alignment([(source.name, source.axes) for source in sources])
    shape = sources[0].values.shape
    if shape[-1] != len(outputs):
        raise ShapeError(
            f"the last axis of shape {shape} has {shape[-1]} entries for {len(outputs)} outputs: {outputs}"
        )
    if options.get("weights") is not None:
        options["weights"] = zero_where_left_out(read_weights(options["weights"], sources[0]))
    if options.get("unit") is None:
        check_units((source.name, source.unit) for source in sources)
        options["unit"] = sources[0].unit
    return {name: _one(name, k, sources, options) for k, name in enumerate(outputs)}


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
    """What an option says about one output: its entry in a mapping, or else the option itself.

    Raises
    ------
    SettingsError
        The mapping has no such entry.
    """
    if not isinstance(given, Mapping):
        return given
    if output not in given:
        raise SettingsError(f"{option} has no entry for output {output!r}; it has {', '.join(given)}")
    return given[output]


def _one(name: str, k: int, sources: Sequence[Source], options: Options) -> Predictions:
    target, mean, std = (_cut(source, k) for source in sources)
    own = options.copy()
    ndim = sources[0].values.ndim
    if own.get("mask") is not None:
        mask = read_mask(own["mask"], "mask")
        own["mask"] = _cut(mask, k) if mask.values.ndim == ndim else mask.values
    for labels in ("weights", "groups", "by"):
        if own.get(labels) is not None:
            values = read(own[labels], labels).values
            own[labels] = values[..., k] if values.ndim == ndim else own[labels]
    try:
        return Predictions(target, mean, std, **own)
    except InputError as error:
        raise type(error)(f"output {name!r}: {error}") from error


def _cut(source: Source, k: int) -> Any:
    """One output of an array; masked arrays stay masked."""
    values = source.values[..., k]
    return values if source.left_out is None else np.ma.MaskedArray(values, source.left_out[..., k])
