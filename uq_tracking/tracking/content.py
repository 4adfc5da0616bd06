"""What one call may log, and which of its numbers a tracker shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from uq_tracking import plugins
from uq_tracking.inputs.predictions import Case, Predictions
from uq_tracking.report import Report
from uq_tracking.tracking.cases import Limits
from uq_tracking.tracking.names import parameter_name, recalibrated_name, scalar_name

Scores = Literal["headline", "all"]
SCORES: tuple[Scores, ...] = get_args(Scores)


@dataclass(frozen=True)
class Content:
    """Everything one call may log.

    ``scores`` says which scores the tracker shows, ``shown`` names those the run already shows. ``figures``,
    ``curves`` and ``files`` may name those to write, if the run already holds the others; ``seal`` holds tags that
    are set last, along with the scores' tag, once everything else has arrived.
    """

    report: Report
    predictions: Predictions | None = None
    scores: Scores = "headline"
    shown: Collection[str] = ()
    split: str | None = None
    step: int | None = None
    method: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    figures: bool | Collection[str] = True
    cases: Sequence[int] = ()
    images: Any = None
    keep_predictions: Literal["auto"] | bool = "auto"
    curves: Collection[str] | None = None
    files: Collection[str] | None = None
    seal: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[int, Case] = field(default_factory=dict)
    """Cases of a stream, whose predictions are gone, by number."""
    notes: Mapping[int, str] = field(default_factory=dict)
    """Reason for each case, by number."""
    limits: Limits | None = None
    """Color limits of the maps; by default those of these cases."""
    also: Sequence[Content] = ()
    """Further content for the same runs, such as other outputs."""


def chosen_scores(
    report: Report, scores: Mapping[str, float], choice: Scores = "headline", shown: Collection[str] = ()
) -> dict[str, float]:
    """The scores that a tracker shows: the headline and those requested by name, or all.

    Also all when the headline is empty, as for a plugin's task that declares none.
    """
    requested = _shown(report, shown)
    found = {key: value for key, value in scores.items() if choice == "all" or key in requested}
    return found or dict(scores)


def _shown(report: Report, shown: Collection[str]) -> set[str]:
    """Keys of the headline, of scores requested by name, and of those the run already shows."""
    known = plugins.metrics(report.task)
    asked = (key for key, metric in known.items() if metric.headline or metric.needs or not metric.default)
    return {*asked, *report.provenance.get("asked", ()), *shown}


def logged_scores(
    report: Report, split: str | None = None, choice: Scores = "headline", shown: Collection[str] = ()
) -> dict[str, float]:
    """The scores that a tracker shows, by their names in a run."""
    chosen = (choice != "all" and report.scores_of(_shown(report, shown))) or report.scores
    return {scalar_name(key, split, report.task): value for key, value in chosen.items()}


def recalibrated_scores(content: Content) -> dict[str, float]:
    """Parameters and scores after recalibration; those of the first method have the short names."""
    found: dict[str, float] = {}
    for place, (method, entry) in enumerate(content.report.recalibrations.items()):
        for name, value in entry.get("scalars", {}).items():
            found[parameter_name(name, content.split)] = value
        scores = entry.get("scores", {})
        for key, value in chosen_scores(content.report, scores, content.scores, content.shown).items():
            found[recalibrated_name(key, content.split, method if place else None)] = value
    return found


def scores_digest(report: Report) -> str:
    """Sixteen hexadecimal digits of a report's scores and settings."""
    values = [report.scores, report.settings, report.recalibrations or None]
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]
