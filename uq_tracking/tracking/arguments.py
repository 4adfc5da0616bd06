"""The arguments of the logging functions other than arrays, checked before anything is scored."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from uq_tracking.errors import SettingsError, closest
from uq_tracking.tracking.cases import Maps
from uq_tracking.tracking.content import SCORES, Scores
from uq_tracking.tracking.names import check_split
from uq_tracking.tracking.redaction import printable

LONGEST_METHOD = 250
"""Characters that every tracker accepts in a name."""
LARGEST_STEP = 2**63 - 1


@dataclass(frozen=True)
class Destination:
    """Where to log, and what to do if a tracker fails or is slow; attributes as the options of `log`."""

    run: Any
    to: str | Sequence[str] | None
    strict: bool
    every_rank: bool
    deadline: float

    def __post_init__(self) -> None:
        for name in ("strict", "every_rank"):
            if not isinstance(value := getattr(self, name), bool | np.bool_):
                raise SettingsError(f"{name} is {value!r}; pass True or False")


@dataclass(frozen=True)
class LogOptions:
    """What to log, and under which names; attributes as the options of `log`."""

    scores: Scores
    method: str | None
    split: str | None
    step: int | None
    images: Any
    figures: bool
    maps: Maps
    predictions: Literal["auto"] | bool
    tags: Mapping[str, str] | None

    def checked(self) -> LogOptions:
        """The options in the form trackers accept: text without control characters or lone surrogates.

        Images and maps are checked later, against the shape of the predictions.

        Raises
        ------
        SettingsError
            An option has the wrong type or is out of range.
        """
        method, figures, predictions, tags = self.method, self.figures, self.predictions, self.tags
        check_scores(self.scores)
        if method is not None and not isinstance(method, str):
            raise SettingsError(f"method is {method!r}; pass the name of the uncertainty method as text")
        if method is not None and len(method) > LONGEST_METHOD:
            raise SettingsError(f"method has {len(method)} characters; a name has at most {LONGEST_METHOD}")
        if tags is not None and not isinstance(tags, Mapping):
            raise SettingsError(f"tags is a {type(tags).__name__}; pass a mapping of names to text")
        if not isinstance(figures, bool | np.bool_):
            raise SettingsError(f"figures is {figures!r}; pass True or False")
        if not isinstance(predictions, bool | np.bool_) and predictions != "auto":
            raise SettingsError(f"predictions is {predictions!r}; pass 'auto', True or False")
        step = _checked_step(self.step)
        check_split(self.split)
        method = None if method is None else printable(method)
        tags = {printable(str(name)): printable(str(value)) for name, value in (tags or {}).items()}
        return replace(self, step=step, method=method, tags=tags, figures=bool(figures))


def check_scores(scores: Any) -> None:
    """Raise SettingsError unless ``scores`` is a valid choice."""
    if not isinstance(scores, str) or scores not in SCORES:
        near = closest(scores, SCORES) if isinstance(scores, str) else ""
        raise SettingsError(f"scores is {scores!r}; choose {' or '.join(map(repr, SCORES))}{near}")


def _checked_step(step: Any) -> int | None:
    """Return the step as an int; SettingsError if it is not a whole number."""
    if step is None:
        return None
    try:
        if isinstance(step, bool):
            raise TypeError("a boolean is not a step")
        number = operator.index(step)
    except TypeError:
        raise SettingsError(f"step is {step!r}; pass a whole number, such as the epoch") from None
    if not -LARGEST_STEP <= number <= LARGEST_STEP:
        raise SettingsError(f"step is {number}; trackers store steps in 64 bits, up to {LARGEST_STEP}")
    return number
