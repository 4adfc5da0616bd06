"""The options of `log` other than those of `evaluate`, checked before anything is scored."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from uq_tracking.checks import check_choice, check_flag, check_text, value_text
from uq_tracking.errors import SettingsError, printable
from uq_tracking.streams.map_samples import checked_maps
from uq_tracking.tracking.cases import Maps
from uq_tracking.tracking.content import SCORES, Scores
from uq_tracking.tracking.deadline import checked_deadline
from uq_tracking.tracking.names import check_split

LONGEST_METHOD = 250
"""Characters that every tracker accepts in a name."""
LARGEST_STEP = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Choose what to log, under which names, where, and what to do if a tracker fails or is slow.

    Text is kept in the form that trackers accept, without control characters or lone surrogates. Images and maps are
    checked later, against the shape of the predictions.

    Parameters
    ----------
    scores : "headline" or "all"
        Which scores the tracker shows. "headline": the few that answer whether the model is accurate, honest and
        knows where it errs (``uq/<key>``), plus those requested with ``metrics=``; "all": all others too, by what
        they judge (``uq_accuracy/<key>``, ``uq_scoring/``, ``uq_calibration/``, ``uq_ranking/``, ``uq_spread/``).
        Either way all are in the report stored with the run, where `compare` and `rescore` find them.
    run : optional
        A tracker's run object or run id, a Lightning logger, a `Run`, an address (``mlflow:EXPERIMENT``, which
        creates a run there, ``mlflow:EXPERIMENT/RUN_ID``, ``dir:PATH``), or a list of these. Active runs belong to a
        thread: pass the run when calling from another one.
    to : str or list of str, optional
        Names of the trackers to log to, when several have an active run.
    method : str, optional
        Name of the uncertainty method, stored in the tag ``uq.method`` by which runs are compared.
    split : str, optional
        Name of the split, made part of every logged name, e.g. ``uq/test/nll``.
    step : int, optional
        Log only the scores, as one point of a series, e.g. per epoch; make the final call without a step. The
        report's other scores are computed when first accessed.
    images : array, shape (cases, h, w), (cases, h, w, channels) or (cases, channels, h, w), optional
        Input images with 1, 3 or 4 channels, shown beside the maps.
    figures : bool
        Whether to draw figures.
    maps : "auto", bool, int, list of int, "extremes" or an address
        Which cases of spatial predictions, shape (..., height, width), to draw: up to four, evenly spaced ("auto",
        True); this many (int); these (list); the worst, median and best by RMSE, or by the share of wrong labels
        ("extremes"); or the cases that another run drew, with its colors (``mlflow:EXPERIMENT/RUN_ID``,
        ``dir:PATH``).
    predictions : "auto" or bool
        Whether to store the predictions; "auto" stores up to 256 MB.
    tags : mapping, optional
        Further tags.
    strict : bool
        Raise instead of warning if a tracker fails, after trying everything.
    every_rank : bool
        Log from every process of a distributed job as if it were rank zero, each on its own.
    deadline : float, optional
        Seconds the call may wait for all its trackers together; by default ``UQ_TRACKING_DEADLINE``, else 10.

    Raises
    ------
    SettingsError
        An option has the wrong type or is out of range.
    """

    scores: Scores = "headline"
    run: Any = None
    to: str | Sequence[str] | None = None
    method: str | None = None
    split: str | None = None
    step: int | None = None
    images: Any = None
    figures: bool = True
    maps: Maps = "auto"
    predictions: Literal["auto"] | bool = "auto"
    tags: Mapping[str, str] | None = None
    strict: bool = False
    every_rank: bool = False
    deadline: float | None = None

    def __post_init__(self) -> None:
        check_scores(self.scores)
        check_text("method", self.method, "'deep ensemble'")
        if self.method is not None and len(self.method) > LONGEST_METHOD:
            raise SettingsError(
                f"method has {len(self.method)} characters; a name has at most {LONGEST_METHOD}"
            )
        if self.tags is not None and not isinstance(self.tags, Mapping):
            raise SettingsError(f"tags is a {type(self.tags).__name__}; pass a mapping of names to text")
        for name in ("figures", "strict", "every_rank"):
            check_flag(name, getattr(self, name))
        if not isinstance(self.predictions, bool | np.bool_) and not (
            isinstance(self.predictions, str) and self.predictions == "auto"
        ):
            raise SettingsError(f"predictions is {value_text(self.predictions)}; pass 'auto', True or False")
        check_split(self.split)
        checked_deadline(self.deadline)
        plain = {
            "method": None if self.method is None else printable(self.method),
            "tags": {
                printable(str(name)): printable(str(value)) for name, value in (self.tags or {}).items()
            },
            "step": _checked_step(self.step),
            "figures": bool(self.figures),
            "maps": checked_maps(self.maps),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)


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
