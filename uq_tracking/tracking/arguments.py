"""The arguments of the logging functions other than arrays, checked before anything is scored."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from uq_tracking.checks import check_choice, check_flag, check_text, value_text
from uq_tracking.errors import SettingsError, printable
from uq_tracking.streams.map_samples import checked_maps
from uq_tracking.tracking.cases import Maps
from uq_tracking.tracking.content import SCORES, Scores
from uq_tracking.tracking.names import check_split

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
            check_flag(name, getattr(self, name))


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
        check_text("method", method, "'deep ensemble'")
        if method is not None and len(method) > LONGEST_METHOD:
            raise SettingsError(f"method has {len(method)} characters; a name has at most {LONGEST_METHOD}")
        if tags is not None and not isinstance(tags, Mapping):
            raise SettingsError(f"tags is a {type(tags).__name__}; pass a mapping of names to text")
        check_flag("figures", figures)
        if not isinstance(predictions, bool | np.bool_) and not (
            isinstance(predictions, str) and predictions == "auto"
        ):
            raise SettingsError(f"predictions is {value_text(predictions)}; pass 'auto', True or False")
        maps = cast(Maps, checked_maps(self.maps))
        step = _checked_step(self.step)
        check_split(self.split)
        method = None if method is None else printable(method)
        tags = {printable(str(name)): printable(str(value)) for name, value in (tags or {}).items()}
        return replace(self, step=step, method=method, tags=tags, figures=bool(figures), maps=maps)


def check_scores(scores: Any) -> None:
    """Raise SettingsError unless ``scores`` is a valid choice."""
    check_choice("scores", scores, SCORES)


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
