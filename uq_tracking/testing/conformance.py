r"""Which reading of a score's name a function follows: held against golden data sets and their exact values.

>>> from uq_tracking.testing.conformance import audit
>>> print(*audit(lambda labels, p: ((labels - p) ** 2).mean(), "brier"), sep="\\n")
brier of event: follows "the event alone" in 6 data sets
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from uq_tracking.errors import SettingsError
from uq_tracking.metrics.registry import check_known

TOLERANCE = 1e-5
"""Relative difference up to which values agree: sums of a thousand terms in float32 differ by less."""
FACTORS = (1.0, -1.0, 2.0, 0.5, 100.0, -0.5)
"""What a function may multiply a reading by, such as minus one for "greater is better", or per cent."""


@dataclass(frozen=True)
class Reading:
    """One reading of a score's name, with its values; None where it is undefined."""

    score: str
    kind: str
    text: str
    values: Mapping[str, float | None]
    ours: bool = False
    facts: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Audit:
    """What a function was found to compute, from forecasts of one kind.

    ``follows`` holds the readings it agrees with in all ``found`` values, times ``factor``. If there are none,
    ``nearest`` is the one it agrees with most often, and ``departures`` are the data sets where it does not, with the
    function's value and the reading's. ``failed`` holds what the function raised.
    """

    score: str
    kind: str
    found: Mapping[str, float]
    follows: Sequence[Reading]
    factor: float
    nearest: Reading | None
    departures: Mapping[str, tuple[float, float]]
    failed: Mapping[str, str]

    def __str__(self) -> str:
        head = f"{self.score} of {self.kind}"
        times = "" if self.factor == 1 else f", times {self.factor:g}"
        sets = f"{len(self.found)} data set{'s' * (len(self.found) != 1)}"
        if self.follows:
            lines = [
                f'{head}: follows "{each.text}"{times} in {sets}{" (as uq_tracking)" * each.ours}'
                for each in self.follows
            ]
        elif self.nearest is None:
            lines = [f"{head}: agrees with no known reading in any of {sets}"]
        else:
            lines = [f'{head}: follows no known reading; nearest is "{self.nearest.text}"{times}, except in']
            for name, (value, expected) in self.departures.items():
                lines.append(f"  {name}: {value:.12g}, not {expected:.12g}")
        lines += [f"  {name}: {reason}" for name, reason in self.failed.items()]
        return "\n".join(lines)


def _folder() -> Path:
    """Return the golden data sets: beside this module, or in the repository."""
    installed = Path(__file__).parent / "golden"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "conformance" / "golden"


@cache
def readings() -> tuple[Reading, ...]:
    """Return every known reading of every score."""
    rows = json.loads((_folder() / "readings.json").read_text(encoding="utf-8"))
    return tuple(Reading(**row) for row in rows)


def arrays(name: str) -> dict[str, Any]:
    """Return the arrays of a golden data set by name, in the order in which a score takes them."""
    content = json.loads((_folder() / f"{name}.json").read_text(encoding="utf-8"))["arrays"]
    return {key: np.asarray(value) if isinstance(value, list) else value for key, value in content.items()}


def audit(
    function: Callable[..., Any], score: str, *, kind: str | None = None, tolerance: float = TOLERANCE
) -> list[Audit]:
    """Hold a function against the golden data sets, and return what it computes for each kind of forecast it takes.

    Parameters
    ----------
    function
        A score of arrays, such as ``(labels, p)`` for events, ``(labels, probs)`` for classes, ``(y, mean, std)`` for
        normal forecasts, ``(y, draws)``, ``(y, quantiles, levels)`` or ``(y, low, high, level)``, and after them
        weights or groups. It returns a number.
    score
        The score's name, such as ``"ece"``, ``"crps"`` or ``"ause_rmse"``.
    kind
        Kind of forecast, such as ``"event"`` or ``"normal"``; by default every one that the function takes.
    tolerance
        Largest relative difference between equal values; smaller than 1e-3, since readings may be that close.

    Raises
    ------
    SettingsError
        For a score or kind that is not known, or a function that fails on every data set.
    """
    if not 0 < tolerance < 1e-3:
        raise SettingsError(f"tolerance is {tolerance}; pass a number between 0 and .001")
    check_known(
        [score], sorted({each.score for each in readings()}), "no score is called", "choose one of them"
    )
    known = [each for each in readings() if each.score == score and kind in (None, each.kind)]
    kinds = list(dict.fromkeys(each.kind for each in known))
    if not kinds:
        kinds = sorted({each.kind for each in readings() if each.score == score})
        raise SettingsError(f"{score} has no golden values for {kind!r}; choose from {', '.join(kinds)}")
    audits = [_audit(function, [each for each in known if each.kind == one], tolerance) for one in kinds]
    taken = [each for each in audits if each.found]
    if not taken:
        reason = next(iter(audits[0].failed.values()), "it returned no finite number")
        raise SettingsError(f"the function takes none of the forecasts {', '.join(kinds)}: {reason}")
    return taken


def _audit(function: Callable[..., Any], known: list[Reading], tolerance: float) -> Audit:
    """Hold a function against the readings of one score and kind."""
    found, failed = {}, {}
    for name in known[0].values:
        try:
            value = float(function(*(np.copy(a) if np.ndim(a) else a for a in arrays(name).values())))
        except Exception as error:  # the function is anybody's
            failed[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            continue
        if math.isfinite(value):
            found[name] = value
    agreed = {factor: [_matches(found, each, factor, tolerance) for each in known] for factor in FACTORS}
    factor = max(FACTORS, key=lambda factor: max(agreed[factor]))
    most = max(agreed[factor])
    nearest = [each for each, count in zip(known, agreed[factor], strict=True) if count == most > 0]
    departures = _departures(found, nearest[0], factor, tolerance) if nearest else {}
    follows = [each for each in nearest if not _departures(found, each, factor, tolerance)]
    return Audit(
        score=known[0].score,
        kind=known[0].kind,
        found=found,
        follows=follows,
        factor=factor,
        nearest=nearest[0] if nearest else None,
        departures={} if follows else departures,
        failed=failed,
    )


def _matches(found: Mapping[str, float], reading: Reading, factor: float, tolerance: float) -> int:
    """Return in how many data sets a function agrees with a reading."""
    shared = [name for name in found if reading.values[name] is not None]
    return len(shared) - len(_departures(found, reading, factor, tolerance))


def _departures(
    found: Mapping[str, float], reading: Reading, factor: float, tolerance: float
) -> dict[str, tuple[float, float]]:
    """Return the data sets in which a function departs from a reading, with both values."""
    stated = {name: factor * value for name in found if (value := reading.values[name]) is not None}
    return {
        name: (found[name], expected)
        for name, expected in stated.items()
        if not math.isclose(found[name], expected, rel_tol=tolerance, abs_tol=tolerance / 10)
    }
