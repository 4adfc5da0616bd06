"""What of the old report still holds, so that nothing is overwritten with less.

Three things can make a new report poorer than the old one: its source knows less (a sketch of exact statistics),
something cannot be computed again (a score that needs samples, intervals, scores after a recalibration), or a metric
is no longer installed. What the new settings leave as it was is kept; what they change and what cannot be computed is
kept too, and marked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from uq_tracking.curves import Curve
from uq_tracking.curves.spec import RECALIBRATED
from uq_tracking.report import Report
from uq_tracking.rescoring.source import methods_of

RELATIVE, ABSOLUTE = 1e-3, 5e-4
"""How far a score from a sketch may lie beside the exact one; the calibration errors of good models are near 0."""


def carried_over(new: Report, old: Report, again: Callable[[], Report] | None) -> Report:
    """The new report with what it lacks of the old one.

    Parameters
    ----------
    again
        Scores the same source under the old settings: what is equal there and in the new report does not depend on
        what was changed. None when nothing was changed.
    """
    if not _may_lack(new, old):
        return new
    then = new if again is None else again()
    scores, kept = _scores(new, old, then)
    curves, kept_curves = _curves(new, old, then)
    if again is not None:
        kept |= {f"curve {name}": f"as it was, with {_when(old)}" for name in kept_curves}
    undefined = {key: reason for key, reason in new.undefined.items() if key not in scores}
    undefined |= {key: reason for key, reason in old.undefined.items() if key not in scores | undefined}
    provenance = {**new.provenance, **({"kept": kept} if kept else {})}
    return replace(
        new,
        scores=scores,
        undefined=undefined,
        curves=curves,
        verdicts={**old.verdicts, **new.verdicts},
        intervals=new.intervals or _intervals(scores, old, then),
        provenance=provenance,
        recalibration=new.recalibration or _recalibration(old, changed=again is not None),
    )


def _may_lack(new: Report, old: Report) -> bool:
    missing = set(old.scores) - set(new.scores) or set(old.undefined) - {*new.scores, *new.undefined}
    return bool(
        missing
        or _is_coarser(new, old)
        or (old.intervals and not new.intervals)
        or old.verdicts
        or _lost(new, old)
    )


def _lost(new: Report, old: Report) -> bool:
    return bool(set(methods_of(old)) - set(methods_of(new)) or set(old.curves) - set(new.curves))


def _is_coarser(new: Report, old: Report) -> bool:
    return new.provenance.get("statistics") == "sketch" and old.provenance.get("statistics") == "exact"


def _scores(new: Report, old: Report, then: Report) -> tuple[dict[str, float], dict[str, str]]:
    """Scores in the old order, new ones last; and which were kept, with the reason."""
    scores, kept = {**{key: old.scores[key] for key in old.scores if key in new.scores}, **new.scores}, {}
    for key, value in old.scores.items():
        if key in new.undefined and not (_is_coarser(new, old) and key in then.undefined):
            continue  # it has no value under the new settings, or by a corrected definition
        if key not in new.scores:
            scores[key] = value
            kept[key] = f"cannot be computed again; it is of {_when(old)}"
        elif (
            _is_coarser(new, old)
            and then.scores.get(key) == new.scores[key]
            and _close(value, new.scores[key])
        ):
            scores[key] = value
            kept[key] = "exact, as it was; the stored sketch agrees within its bounds"
    return scores, kept


def _when(old: Report) -> str:
    """The settings behind the old scores, in words."""
    return ", ".join(f"{name} {value}" for name, value in old.settings.items() if value is not None)


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _curves(new: Report, old: Report, then: Report) -> tuple[dict[str, Curve], list[str]]:
    """New curves, and old ones where only they are exact or there is no new one; the names of the latter."""
    curves, kept = dict(new.curves), []
    for name, curve in old.curves.items():
        if name not in curves:
            is_after = name.endswith(RECALIBRATED)
            if name not in then.curves and (not is_after or not methods_of(new)):
                curves[name] = curve
                kept.append(name)
        elif _is_coarser(new, old) and name in then.curves and same_curve(then.curves[name], curves[name]):
            curves[name] = curve
    return curves, kept


def same_curve(one: Curve, other: Curve) -> bool:
    """Whether two curves hold the same numbers."""
    if one.columns.keys() != other.columns.keys():
        return False
    return all(np.array_equal(column, other.columns[name]) for name, column in one.columns.items())


def _intervals(scores: Mapping[str, float], old: Report, then: Report) -> dict[str, tuple[float, float]]:
    """Intervals of the scores that are what they were."""
    return {
        key: interval
        for key, interval in old.intervals.items()
        if key in scores and (scores[key] == old.scores.get(key) or scores[key] == then.scores.get(key))
    }


def _recalibration(old: Report, *, changed: bool) -> Mapping[str, Any] | None:
    """The old recalibrations; where the settings changed, with those that their scores are of."""
    if not old.recalibration or not changed:
        return old.recalibration
    settings = dict(old.settings)
    methods = {name: {"settings": settings, **entry} for name, entry in methods_of(old).items()}
    return {**old.recalibration, "methods": methods}
