"""Check the arguments of the logging functions other than arrays, before anything is scored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uq_tracking.errors import SettingsError, closest
from uq_tracking.tracking.dispatch import checked_step
from uq_tracking.tracking.redaction import printable

LONGEST_METHOD = 250
"""Characters that every tracker accepts in a name."""


def checked_about(
    scores: Any, step: Any, method: Any, tags: Any, figures: Any, keep_predictions: Any
) -> dict[str, Any]:
    """Return the arguments in the form trackers accept: text without control characters or lone surrogates.

    Raises
    ------
    SettingsError
        An argument has the wrong type or is out of range.
    """
    check_scores(scores)
    if method is not None and not isinstance(method, str):
        raise SettingsError(f"method is {method!r}; pass the name of the uncertainty method as text")
    if method is not None and len(method) > LONGEST_METHOD:
        raise SettingsError(f"method has {len(method)} characters; a name has at most {LONGEST_METHOD}")
    if tags is not None and not isinstance(tags, Mapping):
        raise SettingsError(f"tags is a {type(tags).__name__}; pass a mapping of names to text")
    if not isinstance(figures, bool | np.bool_):
        raise SettingsError(f"figures is {figures!r}; pass True or False")
    if not isinstance(keep_predictions, bool | np.bool_) and keep_predictions != "auto":
        raise SettingsError(f"predictions is {keep_predictions!r}; pass 'auto', True or False")
    return {
        "scores": scores,
        "step": checked_step(step),
        "method": None if method is None else printable(method),
        "tags": {printable(str(name)): printable(str(value)) for name, value in (tags or {}).items()},
        "figures": bool(figures),
        "keep_predictions": keep_predictions,
    }


def check_scores(scores: Any) -> None:
    """Raise SettingsError unless ``scores`` is a valid choice."""
    if not isinstance(scores, str) or scores not in ("headline", "all"):
        near = closest(scores, ["headline", "all"]) if isinstance(scores, str) else ""
        raise SettingsError(f"scores is {scores!r}; choose 'headline' or 'all'{near}")
