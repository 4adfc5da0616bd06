"""Read what a step of a training framework returned as the arguments of an accumulator's ``update``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from uq_tracking.errors import InputTypeError
from uq_tracking.inputs.base import PredictionsBase
from uq_tracking.streams.batches import BatchAccumulator


def by_keys(outputs: Any, keys: Sequence[str], step: str) -> tuple[Any, ...]:
    """The entries of a step's dict.

    Raises
    ------
    InputTypeError
        It is not a dict, or lacks an entry.
    """
    if isinstance(outputs, Mapping) and all(key in outputs for key in keys):
        return tuple(outputs[key] for key in keys)
    found = (
        f"a dict of {sorted(map(str, outputs))}" if isinstance(outputs, Mapping) else type(outputs).__name__
    )
    raise InputTypeError(
        f"{step} returned {found}, which lacks {', '.join(map(repr, keys))}; "
        "return a dict with them, name its entries with keys=, or pass read="
    )


def arguments(found: Any, accumulator: BatchAccumulator) -> dict[str, Any]:
    """Arguments of ``update``, from a tuple, predictions or a dict of them.

    Raises
    ------
    InputTypeError
        It is something else, or the names in the dict are not those of the arguments.
    """
    names = accumulator.kind.predictions.arguments
    if isinstance(found, PredictionsBase):
        return {names[0]: found}
    if isinstance(found, Mapping):
        return _checked(found, accumulator)
    if isinstance(found, tuple | list) and len(found) == len(names):
        return dict(zip(names, found, strict=True))
    raise InputTypeError(
        f"read returned {type(found).__name__}; return ({', '.join(names)}), predictions, or a dict of arguments of "
        "the accumulator's update"
    )


def _checked(found: Mapping[Any, Any], accumulator: BatchAccumulator) -> dict[str, Any]:
    known = list(inspect.signature(accumulator.update).parameters)
    if found.keys() - set(known) or known[0] not in found:
        raise InputTypeError(
            f"read returned a dict of {sorted(map(str, found))}; use the names of the arguments of "
            f"{type(accumulator).__name__}.update: {', '.join(known)}"
        )
    return dict(found)
