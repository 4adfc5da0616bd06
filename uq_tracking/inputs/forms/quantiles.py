"""Predictive quantiles at any levels, and central intervals, scored without interpolating between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import special

from uq_tracking.checks import value_text
from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.formatting import format_levels
from uq_tracking.inputs.convert import FloatArray, Source, check_alignment, read_floats
from uq_tracking.inputs.forms.form import PERCENT, Columns, in_blocks
from uq_tracking.inputs.forms.mean_std import Numbers, Wording
from uq_tracking.inputs.validation import members_first, read_equal, without_members
from uq_tracking.settings import check_level
from uq_tracking.typed import Self, override

CLOSE = 1e-9
"""Levels this close count as equal."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Quantiles(Numbers):
    """Predictive quantiles at any levels."""

    name: ClassVar[str] = "quantiles"
    std_caveat: ClassVar[str] = "the std of quantiles is an approximation"
    is_interval: ClassVar[bool] = True
    own_scores: ClassVar[tuple[str, ...]] = ("wis", "inside_widest", "width_widest")
    made_by: ClassVar[str] = "Predictions.from_quantiles"
    splits: ClassVar[tuple[str, ...]] = ("quantiles", "y_pred")
    member: ClassVar[str] = "quantile"

    wording: Wording = Wording(
        mean="the point prediction of the quantiles",
        std="the spread of the quantiles",
        non_finite_cure="every quantile must be finite",
    )

    @classmethod
    @override
    def read(
        cls, y_true: Any, *, quantiles: Any, levels: Any, y_pred: Any = None, axis: int | None, **more: Any
    ) -> tuple[Self, Sequence[Source]]:
        truth = read_floats(y_true, "y_true")
        source = members_first(quantiles, "quantiles", truth, axis, cls.member)
        given, order = _levels(levels, len(source.values))
        own = () if y_pred is None else read_equal(truth, y_pred=y_pred)[1:]
        scored = score_quantiles(truth.values, source.values[order], given, *(point.values for point in own))
        known = {"levels": given.tolist()}
        return cls.of(scored, source.values.dtype, known=known, **more), [
            truth,
            without_members(source),
            *own,
        ]

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
    made_by: ClassVar[str] = "Predictions.from_interval"
    splits: ClassVar[tuple[str, ...]] = ()

    wording: Wording = Wording(
        mean="the midpoint of low and high",
        std="high - low",
        negative_cure="low exceeds high there; swap them",
    )

    @classmethod
    @override
    def read(  # type: ignore[override]
        cls, y_true: Any, *, low: Any, high: Any, y_pred: Any, level: Any, axis: int | None, **more: Any
    ) -> tuple[Quantiles, Sequence[Source]]:
        truth = read_floats(y_true, "y_true")
        if not isinstance(level, Real) and np.ndim(level):
            ends, of_ends = ends_of(truth, low, high, level, axis)
            return Quantiles.read(truth, quantiles=ends, levels=of_ends, y_pred=y_pred, axis=0, **more)
        check_level(level)
        own = {} if y_pred is None else {"y_pred": y_pred}
        sources = read_equal(truth, low=low, high=high, **own)
        _, below, above, *point = (source.values for source in sources)
        levels = np.asarray([(1 - level) / 2, (1 + level) / 2])
        columns = score_quantiles(truth.values, np.stack([below, above]), levels, *point)
        with np.errstate(all="ignore"):  # checks find and name non-finite values
            gap = np.subtract(above, below, dtype=np.float64)
            middle = point[0] if point else below + 0.5 * gap
        columns |= {"std": gap / (2 * special.ndtri(levels[1])), "mean": middle}
        del columns["crps"]  # a trapezoid over two levels says next to nothing about it
        known = {"levels": levels.tolist()}
        return cls.of(columns, np.result_type(below, above), known=known, **more), sources

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        if key == "crps":
            return "an interval alone does not determine it; pass quantiles at more levels"
        return super().why_not(key, facts, size)


def ends_of(
    truth: Source, low: Any, high: Any, level: Sequence[float], axis: int | None
) -> tuple[Source, list[float]]:
    """Read the ends of central intervals at K levels as quantiles, shape (2 K, ...), with the levels of these."""
    for one in level:
        check_level(one)
    ends = [members_first(end, name, truth, axis, "level") for end, name in ((low, "low"), (high, "high"))]
    check_alignment([(end.name, end.axes) for end in ends])
    for end in ends:
        if len(end.values) != len(level):
            raise ShapeError(
                f"{end.name} has {len(end.values)} levels, but level has {len(level)}; pass one for each"
            )
    below, above = ends
    masks = [np.False_ if end.left_out is None else end.left_out for end in ends]
    left_out = np.concatenate([np.broadcast_to(mask, below.values.shape) for mask in masks])
    shares = np.asarray(level, dtype=np.float64)
    ends_first = below._replace(
        values=np.concatenate([below.values, above.values]), left_out=left_out if left_out.any() else None
    )
    return ends_first, [*(1 - shares) / 2, *(1 + shares) / 2]


def _levels(levels: Any, size: int) -> tuple[FloatArray, Any]:
    """Levels in ascending order, and the permutation that sorts them."""
    try:
        given = np.asarray([float(level) for level in levels])
    except (TypeError, ValueError, OverflowError):
        raise SettingsError(f"levels is {value_text(levels)}; pass shares, such as [0.1, 0.5, 0.9]") from None
    if given.shape != (size,):
        raise ShapeError(f"levels has shape {given.shape} for {size} quantiles; pass one level for each")
    order = np.argsort(given)
    given = given[order]
    if not (np.all(given > 0) and np.all(given < 1)):
        raise SettingsError("levels holds values not between 0 and 1; pass shares, such as 0.9")
    if np.any(np.diff(given) < CLOSE):
        raise SettingsError("levels contains a duplicate; pass each level once")
    return given, order


def score_quantiles(
    target: FloatArray,
    quantiles: FloatArray,
    levels: FloatArray,
    y_pred: FloatArray | None = None,
) -> Columns:
    """Score quantiles.

    Parameters
    ----------
    target : array, any shape
    quantiles : array, shape (K, ...)
        Quantiles at the levels, which ascend. Crossing ones are sorted; the column ``crossed`` counts the places.
    levels : array, shape (K,)
        Between 0 and 1.
    y_pred : array of the target's shape, optional
        The user's own point prediction.
    """
    if len(levels) < 2:
        raise SettingsError("one quantile has no spread; pass quantiles at two or more levels")
    if y_pred is None and not levels[0] - CLOSE <= 0.5 <= levels[-1] + CLOSE:
        raise SettingsError(
            f"levels from {levels[0]:g} to {levels[-1]:g} do not enclose the median; pass y_pred"
        )
    made = in_blocks(partial(quantile_columns, levels=levels), target, quantiles, cost=6 * len(levels))
    if y_pred is not None:
        made["mean"] = np.asarray(y_pred, dtype=np.float64)
    return made


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
    crossed = (quantiles[1:] < quantiles[:-1]).sum(axis=0, dtype=np.float64)
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
    if len(levels) % 2 == 1 and np.allclose(levels + levels[::-1], 1, atol=CLOSE, rtol=0):
        made["wis"] = 2 * made["pinball"]
    return {**made, **_central(target, q, levels)}


def _median(q: FloatArray, levels: FloatArray, z: FloatArray) -> FloatArray:
    right = min(max(int(np.searchsorted(levels, 0.5 - CLOSE)), 1), len(levels) - 1)
    share = np.clip(-z[right - 1] / (z[right] - z[right - 1]), 0, 1)
    return np.asarray(q[right - 1] + share * (q[right] - q[right - 1]))


def _central(target: FloatArray, q: FloatArray, levels: FloatArray) -> Columns:
    made: Columns = {}
    for percent in PERCENT:
        level = percent / 100
        places = [np.flatnonzero(np.abs(levels - p) < CLOSE) for p in ((1 - level) / 2, (1 + level) / 2)]
        if all(map(len, places)):
            low, high = (q[place[0]] for place in places)
            made[f"inside_{percent}"] = ((low <= target) & (target <= high)).astype(float)
            if percent == 95:
                made["interval_width_95"] = high - low
    if abs(levels[0] + levels[-1] - 1) < CLOSE:
        made["inside_widest"] = ((q[0] <= target) & (target <= q[-1])).astype(float)
        made["width_widest"] = q[-1] - q[0]
    return made
