"""Parts of an old report that are still valid, so that a rescore never replaces a report with a less complete one.

Three things can make a new report poorer than the old one: its source knows less (a sketch of exact statistics),
something cannot be recomputed (a score that needs samples, intervals, scores after a recalibration), or a metric is
no longer installed. Whatever the new settings do not affect is kept; whatever they affect but cannot be recomputed is
kept too, and marked: ``provenance["exact"]`` names what is more exact than its source, ``provenance["kept"]`` what
could not be recomputed, with the settings behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from uq_tracking.curves import Curve
from uq_tracking.curves.spec import RECALIBRATED
from uq_tracking.metrics.registry import has_failed
from uq_tracking.report import Report

RELATIVE, ABSOLUTE = 1e-3, 5e-4
"""How far a score from a sketch may deviate from the exact one; good models have calibration errors near 0."""
Settings = Mapping[str, Any]
"""Settings of a report, by name."""


def carried_over(new: Report, old: Report, again: Callable[[], Report] | None) -> Report:
    """Complete the new report with what only the old one has.

    ``again`` scores the same source under the old settings: whatever is equal there and in the new report is
    unaffected by the change. None if nothing was changed.
    """
    if not _may_lack(new, old):
        return new
    then = new if again is None else again()
    scores, kept, exact = _scores(new, old, then)
    curves, kept_curves, exact_curves = _curves(new, old, then)
    marks = {"kept": {**kept, **(kept_curves if again is not None else {})}, "exact": exact + exact_curves}
    undefined = {key: reason for key, reason in new.undefined.items() if key not in scores}
    undefined |= {key: reason for key, reason in old.undefined.items() if key not in scores | undefined}
    return replace(
        new,
        scores=scores,
        undefined=undefined,
        curves=curves,
        verdicts={**old.verdicts, **new.verdicts},
        intervals=new.intervals or _intervals(scores, old, then),
        provenance={**new.provenance, **{name: mark for name, mark in marks.items() if mark}},
        recalibration=new.recalibration or _recalibration(old, changed=again is not None),
    )


def _may_lack(new: Report, old: Report) -> bool:
    """True if the old report may have something that the new one lacks; else nothing needs to be scored again."""
    names = (*old.scores, *(f"curve {name}" for name in old.curves))
    return bool(
        old.scores.keys() - new.scores.keys()
        or old.undefined.keys() - {*new.scores, *new.undefined}
        or old.curves.keys() - new.curves.keys()
        or old.recalibrations.keys() - new.recalibrations.keys()
        or (old.intervals and not new.intervals)
        or old.verdicts
        or any(_is_coarser(new, old, name) for name in names)
    )


def _is_coarser(new: Report, old: Report, name: str) -> bool:
    """True if the old score or curve was computed from the samples, but the new one from a sketch."""
    was_exact = old.provenance.get("statistics") == "exact" or name in old.provenance.get("exact", ())
    return was_exact and new.provenance.get("statistics") == "sketch"


def _scores(
    new: Report, old: Report, then: Report
) -> tuple[dict[str, float], dict[str, Settings], list[str]]:
    """Return scores in the old order, new ones last; also those kept, with their settings, and those still exact."""
    scores = {**{key: old.scores[key] for key in old.scores if key in new.scores}, **new.scores}
    kept, exact = {}, []
    for key, value in old.scores.items():
        is_coarser = _is_coarser(new, old, key)
        if key in new.undefined and not (
            has_failed(key, new.undefined[key]) or (is_coarser and key in then.undefined)
        ):
            continue  # it has no value under the new settings, or by a corrected definition
        if key not in new.scores:
            scores[key] = value
            kept[key] = _settings_behind(old, key)
        elif (
            is_coarser
            and then.scores.get(key) == new.scores[key]
            and math.isclose(value, new.scores[key], rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        ):
            scores[key] = value
            exact.append(key)
    return scores, kept, exact


def _settings_behind(old: Report, name: str) -> Settings:
    """Return the settings of the report from which a score or curve was first kept."""
    known: Mapping[str, Settings] = old.provenance.get("kept", {})
    return known.get(name) or {name: value for name, value in old.settings.items() if value is not None}


def _curves(
    new: Report, old: Report, then: Report
) -> tuple[dict[str, Curve], dict[str, Settings], list[str]]:
    """Return new curves, and old ones that cannot be rebuilt or are more exact; also those kept and still exact."""
    curves, kept, exact = dict(new.curves), {}, []
    for name, curve in old.curves.items():
        shown = f"curve {name}"
        if name not in curves:
            is_after = name.endswith(RECALIBRATED)
            if name not in then.curves and (not is_after or not new.recalibrations):
                curves[name] = curve
                kept[shown] = _settings_behind(old, shown)
        elif (
            _is_coarser(new, old, shown)
            and name in then.curves
            and same_curve(then.curves[name], curves[name])
        ):
            curves[name] = curve
            exact.append(shown)
    return curves, kept, exact


def same_curve(one: Curve, other: Curve) -> bool:
    """True if two curves hold the same numbers."""
    if one.columns.keys() != other.columns.keys():
        return False
    return all(np.array_equal(column, other.columns[name]) for name, column in one.columns.items())


def _intervals(scores: Mapping[str, float], old: Report, then: Report) -> dict[str, tuple[float, float]]:
    """Return the intervals of the unchanged scores."""
    return {
        key: interval
        for key, interval in old.intervals.items()
        if key in scores and (scores[key] == old.scores.get(key) or scores[key] == then.scores.get(key))
    }


def _recalibration(old: Report, *, changed: bool) -> Mapping[str, Any] | None:
    """Return the old recalibrations; if the settings changed, with the settings behind their scores."""
    if not old.recalibration or not changed:
        return old.recalibration
    settings = dict(old.settings)
    methods = {name: {"settings": settings, **entry} for name, entry in old.recalibrations.items()}
    return {**old.recalibration, "methods": methods}
