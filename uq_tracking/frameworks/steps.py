"""Read what a step of a training framework returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uq_tracking.errors import InputTypeError


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
