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
from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.curves import Curve
from uq_tracking.curves.spec import RECALIBRATED
from uq_tracking.inference import Judgement, no_verdict
from uq_tracking.inference.sentences import UNORDERED
from uq_tracking.metrics.registry import has_failed
from uq_tracking.report import Report

if TYPE_CHECKING:
    pass

RELATIVE, ABSOLUTE = 1e-3, 5e-4
"""How far a score from a sketch may deviate from the exact one; good models have calibration errors near 0."""
JUDGED_BY = ("family", "dof", "unit")
"""Settings that a verdict on a regression depends on."""
Settings = Mapping[str, Any]
"""Settings of a report, by name."""


def carried_over(new: Report, old: Report, again: Callable[[], Report] | None) -> Report:
    """Complete the new report with what only the old one has.

    ``again`` scores the same source under the old settings: whatever is equal there and in the new report is
    unaffected by the change. None if nothing was changed.
    """
    then = new if again is None else again()
    kept: dict[str, Settings] = {}
    exact: list[str] = []
    scores = _scores(new, old, then, kept, exact)
    curves = _curves(new, old, then, None if again is None else kept, exact)
    undefined = {key: reason for key, reason in new.undefined.items() if key not in scores}
    undefined |= {key: reason for key, reason in old.undefined.items() if key not in scores | undefined}
    intervals = new.intervals or {
        key: interval
        for key, interval in old.intervals.items()
        if key in scores and (scores[key] == old.scores.get(key) or scores[key] == then.scores.get(key))
    }
    return replace(
        new,
        scores=scores,
        undefined=undefined,
        curves=curves,
        verdicts={**old.verdicts, **new.verdicts},
        intervals=intervals,
        provenance={
            **new.provenance,
            **({"kept": kept} if kept else {}),
            **({"exact": exact} if exact else {}),
        },
        judgement=_judgement(new, old),
        counted_blocks=new.blocks or old.blocks,
        recalibration=new.recalibration or _recalibration(old, changed=again is not None),
    )


def _judgement(new: Report, old: Report) -> Judgement | None:
    """Return the old verdict where it rests on samples that the new report lacks, and on settings that still hold."""
    was = None if new.samples is not None or old.judgement is None else old.judgement.verdict
    if was is None or (was.places is None and was.worth is None):
        return new.judgement
    if all(new.settings.get(name) == old.settings.get(name) for name in JUDGED_BY):
        return Judgement(new.noise, was)
    return new.judgement if was.worth is None else Judgement(new.noise, no_verdict(UNORDERED))


def _is_coarser(new: Report, old: Report, name: str) -> bool:
    """True if the old score or curve was computed from the samples, but the new one from a sketch."""
    was_exact = old.provenance.get("statistics") == "exact" or name in old.provenance.get("exact", ())
    return was_exact and new.provenance.get("statistics") == "sketch"


def _scores(
    new: Report, old: Report, then: Report, kept: dict[str, Settings], exact: list[str]
) -> dict[str, float]:
    """Return scores in the old order, new ones last; note those kept, with their settings, and those still exact."""
    scores = {**{key: new.scores[key] for key in old.scores if key in new.scores}, **new.scores}
    for key, value in old.scores.items():
        is_coarser, why = _is_coarser(new, old, key), new.undefined.get(key)
        if key not in scores:
            # what has no value under the new settings, or by a corrected definition, is gone
            if why is None or has_failed(key, why) or (is_coarser and key in then.undefined):
                scores[key] = value
                kept[key] = _settings_behind(old, key)
        elif (
            is_coarser
            and then.scores.get(key) == scores[key]
            and math.isclose(value, scores[key], rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        ):
            scores[key] = value
            exact.append(key)
    return scores


def _settings_behind(old: Report, name: str) -> Settings:
    """Return the settings of the report from which a score or curve was first kept."""
    known: Mapping[str, Settings] = old.provenance.get("kept", {})
    return known.get(name) or {name: value for name, value in old.settings.items() if value is not None}


def _curves(
    new: Report, old: Report, then: Report, kept: dict[str, Settings] | None, exact: list[str]
) -> dict[str, Curve]:
    """Return new curves, and old ones that cannot be rebuilt or are more exact; note these, if anything changed."""
    curves = dict(new.curves)
    for name, curve in old.curves.items():
        shown = f"curve {name}"
        if name not in curves:
            is_after = name.endswith(RECALIBRATED)
            if name not in then.curves and (not is_after or not new.recalibrations):
                curves[name] = curve
                if kept is not None:
                    kept[shown] = _settings_behind(old, shown)
        elif (
            _is_coarser(new, old, shown)
            and name in then.curves
            and same_curve(then.curves[name], curves[name])
        ):
            curves[name] = curve
            exact.append(shown)
    return curves


def same_curve(one: Curve, other: Curve) -> bool:
    """True if two curves hold the same numbers."""
    if one.columns.keys() != other.columns.keys():
        return False
    return all(np.array_equal(column, other.columns[name]) for name, column in one.columns.items())


def _recalibration(old: Report, *, changed: bool) -> Mapping[str, Any] | None:
    """Return the old recalibrations; if the settings changed, with the settings behind their scores."""
    if not old.recalibration or not changed:
        return old.recalibration
    settings = dict(old.settings)
    methods = {name: {"settings": settings, **entry} for name, entry in old.recalibrations.items()}
    return {**old.recalibration, "methods": methods}
