"""Several outputs of one model, along the last axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.checks import value_text
from uq_tracking.errors import InputError, SettingsError, ShapeError
from uq_tracking.inputs.constructors import Options
from uq_tracking.inputs.convert import Source, check_alignment, read
from uq_tracking.inputs.forms.form import Form
from uq_tracking.inputs.forms.mean_std import MeanStd
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
    own: dict[str, Any] = dict(options)
    return outputs_of(MeanStd, y_true, {"y_pred": y_pred, "y_std": y_std}, outputs, own)


def outputs_of(
    kind: type[Form],
    y_true: Any,
    arrays: Mapping[str, Any],
    outputs: Sequence[str],
    options: dict[str, Any],
) -> dict[str, Predictions]:
    """Read arrays of a form as a whole, and make predictions of each entry of the truth's last axis."""
    check_names(outputs)
    own = {name: options.pop(name) for name in kind.options if name in options}
    truth = kind.read_truth(y_true, **own)
    form, sources = kind.read(truth, **arrays, **own)
    check_alignment([(source.name, source.axes) for source in (truth, *sources)])
    shape = truth.values.shape
    if shape[-1] != len(outputs):
        raise ShapeError(
            f"the last axis of shape {shape} has {shape[-1]} entries for {len(outputs)} outputs: {outputs}"
        )
    if options.get("weights") is not None:
        options["weights"] = zero_where_left_out(read_weights(options["weights"], truth))
    found = {}
    for k, name in enumerate(outputs):
        given = [_cut(truth, k), *(_cut(source._replace(values=truth.values), k) for source in sources)]
        beside = {key: _of_output(value, key, k, len(shape)) for key, value in options.items()}
        try:
            found[name] = Predictions.made(given, form.output(k), **beside)
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
    if value is None or name not in ("mask", "weights", "groups", "by"):
        return value
    if isinstance(value, Mapping):
        return {key: _of_output(labels, name, k, ndim) for key, labels in value.items()}
    source = read(value, name)
    if source.values.ndim < ndim:
        return value
    one = _cut(source, k)
    return one.values if one.left_out is None else np.ma.MaskedArray(one.values, one.left_out)


def _cut(source: Source, k: int) -> Source:
    left_out = None if source.left_out is None else source.left_out[..., k]
    return source._replace(values=source.values[..., k], left_out=left_out, axes=source.axes[:-1])
