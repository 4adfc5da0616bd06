"""Predictive quantiles at any levels, and central intervals, scored without interpolating between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from uq_tracking.errors import SettingsError
from uq_tracking.formatting import format_levels
from uq_tracking.inputs.convert import FloatArray
from uq_tracking.inputs.forms.form import Columns, Scored, in_blocks
from uq_tracking.inputs.forms.numbers import Numbers
from uq_tracking.typed import override

CENTRAL = {f"inside_{percent}": percent / 100 for percent in (50, 68, 80, 90, 95)}
CLOSE = 1e-9
"""Levels this close count as equal."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Quantiles(Numbers):
    """Predictive quantiles at any levels."""

    name: ClassVar[str] = "quantiles"
    takes: ClassVar[tuple[str, ...]] = ()
    std_caveat: ClassVar[str] = "the std of quantiles is an approximation"
    is_interval: ClassVar[bool] = True
    own_scores: ClassVar[tuple[str, ...]] = ("wis", "inside_widest", "width_widest")

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        levels = format_levels(facts["levels"] or ())
        if key in cls.own_scores:
            return f"quantiles at {levels} are not those of central intervals and a median"
        if key.startswith(("inside_", "interval_width")):
            inner = int(key.rsplit("_", 1)[1]) / 100
            low, high = (1 - inner) / 2, (1 + inner) / 2
            return f"it needs quantiles at {low:g} and {high:g}, but those given are at {levels}"
        if key == "interval_score":
            return f"quantiles at {levels} do not determine it; pinball is the mean over these levels"
        return f"quantiles at {levels} have no density"


@dataclass(frozen=True, eq=False, kw_only=True)
class Interval(Quantiles):
    """A central interval: two quantiles."""

    name: ClassVar[str] = "interval"
    std_caveat: ClassVar[str] = "the std of an interval is an approximation"

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        if key == "crps":
            return "an interval alone does not determine it; pass quantiles at more levels"
        return super().why_not(key, facts, size)


def score_quantiles(
    target: FloatArray,
    quantiles: FloatArray,
    levels: FloatArray,
    y_pred: FloatArray | None = None,
) -> Scored:
    """Score quantiles.

    Parameters
    ----------
    target : array, any shape
    quantiles : array, shape (K, ...)
        Quantiles at the levels, which ascend. Crossing ones are sorted, and marked in the column ``crossed``.
    levels : array, shape (K,)
        Between 0 and 1.
    y_pred : array of the target's shape, optional
        The user's own point prediction.

    Raises
    ------
    SettingsError
        No point prediction can be derived and ``y_pred`` is not given, or there is a single level, which has no
        spread.
    """
    if len(levels) < 2:
        raise SettingsError("one quantile has no spread; pass quantiles at two or more levels")
    if y_pred is None and not levels[0] - CLOSE <= 0.5 <= levels[-1] + CLOSE:
        raise SettingsError(
            f"levels from {levels[0]:g} to {levels[-1]:g} do not enclose the median; pass y_pred"
        )

    def columns(y: FloatArray, q: FloatArray) -> Columns:
        return quantile_columns(y, q, levels)

    made = in_blocks(columns, target, quantiles, cost=6 * len(levels))
    if y_pred is not None:
        made["mean"] = np.asarray(y_pred, dtype=np.float64)
    return Scored(made, {"levels": [float(level) for level in levels]})


def quantile_columns(target: FloatArray, quantiles: FloatArray, levels: FloatArray) -> Columns:
    """Everything that K quantiles at levels ``p_1 < ... < p_K`` say about each sample; ``p_0 = 0``, ``p_(K+1) = 1``.

    ==================  ============================================================================
    PIT                 spread over ``[p_a, p_(b+1)]``, a the number of quantiles below the truth and b of those
                        at or below it
    ``pinball``         mean over the levels of ``max(p (y - q), (p - 1)(y - q))``
    ``wis``             weighted interval score [1]_, twice ``pinball``: for symmetric levels with a median
    ``crps``            approximate: twice the pinball loss integrated by the trapezoid over 0, p_1 ... p_K, 1,
                        where it is 0 at both ends
    ``mean``            the median, interpolated on the normal quantiles of the levels if it was not given
    ``std``             approximate: slope of the least-squares line of the quantiles on the normal quantiles of
                        the levels
    ``inside_50`` ...   whether ``lower <= y <= upper``, if both levels of that interval were given; also for the
                        widest central interval, with its width
    ==================  ============================================================================

    References
    ----------
    .. [1] Bracher, Ray, Gneiting and Reich, 2021, PLOS Computational Biology 17.

    Examples
    --------
    >>> made = quantile_columns(np.array([1.5]), np.array([[0.0], [1.0], [2.0]]), np.array([0.1, 0.5, 0.9]))
    >>> {name: round(float(made[name][0]), 6) for name in ("pit_low", "pit_high", "pinball", "wis", "mean")}
    {'pit_low': 0.5, 'pit_high': 0.9, 'pinball': 0.15, 'wis': 0.3, 'mean': 1.0}
    """
    crossed = np.any(quantiles[1:] < quantiles[:-1], axis=0)
    q = np.sort(quantiles, axis=0) if crossed.any() else quantiles
    q = np.where(np.isnan(quantiles).any(axis=0), np.nan, q)
    padded = np.concatenate([[0.0], levels, [1.0]])
    below, upto = (q < target).sum(axis=0), (q <= target).sum(axis=0)
    gap, p = target - q, levels[:, None]
    loss = np.maximum(p * gap, (p - 1) * gap)
    z = special.ndtri(levels)
    slope = (z - z.mean()) / np.square(z - z.mean()).sum()
    with_ends = np.concatenate([np.zeros((1, len(target))), loss, np.zeros((1, len(target)))])
    made = {
        "mean": _median(q, levels, z),
        "std": slope @ q,
        "pit_low": padded[below],
        "pit_high": padded[upto + 1],
        "size": np.full(len(target), float(len(levels))),
        "pinball": loss.mean(axis=0),
        "crps": 2 * np.trapezoid(with_ends, padded, axis=0),
        "crossed": crossed,
    }
    if symmetric_with_median(levels):
        made["wis"] = 2 * made["pinball"]
    return {**made, **_central(target, q, levels)}


def symmetric_with_median(levels: FloatArray) -> bool:
    """Whether the levels are those of central intervals and the median, as the weighted interval score needs."""
    return len(levels) % 2 == 1 and bool(np.allclose(levels + levels[::-1], 1, atol=CLOSE, rtol=0))


def _median(q: FloatArray, levels: FloatArray, z: FloatArray) -> FloatArray:
    right = min(max(int(np.searchsorted(levels, 0.5 - CLOSE)), 1), len(levels) - 1)
    share = np.clip(-z[right - 1] / (z[right] - z[right - 1]), 0, 1)
    return np.asarray(q[right - 1] + share * (q[right] - q[right - 1]))


def _central(target: FloatArray, q: FloatArray, levels: FloatArray) -> Columns:
    made: Columns = {}
    for name, level in CENTRAL.items():
        edges = _places(levels, level)
        if edges is not None:
            made[name] = ((q[edges[0]] <= target) & (target <= q[edges[1]])).astype(float)
    if abs(levels[0] + levels[-1] - 1) < CLOSE:
        made["inside_widest"] = ((q[0] <= target) & (target <= q[-1])).astype(float)
        made["width_widest"] = q[-1] - q[0]
    edges = _places(levels, 0.95)
    if edges is not None:
        made["interval_width_95"] = q[edges[1]] - q[edges[0]]
    return made


def _places(levels: FloatArray, central: float) -> tuple[int, int] | None:
    """Positions of the two levels of a central interval, if both are present."""
    found = [np.flatnonzero(np.abs(levels - p) < CLOSE) for p in ((1 - central) / 2, (1 + central) / 2)]
    return (int(found[0][0]), int(found[1][0])) if all(len(place) for place in found) else None
