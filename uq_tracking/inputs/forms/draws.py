"""Draws from a predictive distribution, scored by their order alone: nothing is fitted to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from uq_tracking.checks import check_flag
from uq_tracking.inputs.convert import FloatArray, Source
from uq_tracking.inputs.forms.form import EVERY_LEVEL, Columns, Scored, in_blocks, quantile_scores
from uq_tracking.inputs.forms.joint import draw_vectors, spread_over_vectors
from uq_tracking.inputs.forms.mean_std import Numbers, Wording
from uq_tracking.inputs.validation import check_members, members_first, without_members
from uq_tracking.typed import override

if TYPE_CHECKING:
    from typing_extensions import Self

    from uq_tracking.inputs.predictions import Predictions

FEWEST_DRAWS = {"interval_width_95": 39, "pinball": 99, "interval_score": 199}
"""Number of draws needed for a score's outermost quantile to lie between draws: level 1/(M + 1) or above."""


DRAWN = Wording(
    mean="the mean of the draws",
    std="the std of the draws",
    non_finite_cure="every sample needs at least two finite draws; NaN draws are ignored",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Draws(Numbers):
    """Exchangeable draws from the predictive distribution."""

    name: ClassVar[str] = "draws"
    std_caveat: ClassVar[str] = "the std of draws is an estimate"
    noisy_std: ClassVar[bool] = True
    own_scores: ClassVar[tuple[str, ...]] = ("crps_ensemble",)
    made_by: ClassVar[str] = "Predictions.from_samples"
    splits: ClassVar[tuple[str, ...]] = ("draws",)
    member: ClassVar[str] = "draw"

    wording: Wording = DRAWN

    @classmethod
    @override
    def read(
        cls, truth: Source, *, draws: Any, axis: int | None, joint: bool, **more: Any
    ) -> tuple[Self, Sequence[Source]]:
        check_flag("joint", joint)
        source = members_first(draws, "draws", truth, axis, cls.member)
        check_members(truth, source, None, cls.member)
        values = source.values
        if source.left_out is not None:
            values, source = np.where(source.left_out, np.nan, values), source._replace(left_out=None)
        if joint:
            last = np.moveaxis(values, 0, -2)
            cost = last.shape[-2] * (2 + last.shape[-1]) * 3
            more["vectors"] = partial(spread_over_vectors, draw_vectors, (truth.values, last), cost)
        form = cls.of(score_draws(truth.values, values), values.dtype, samples=values, **more)
        return form, [without_members(source)]

    @override
    def combined(self, data: Predictions, chosen: list[int], **options: Any) -> Predictions:
        samples, joint = self.samples, "vector_length" in self.known
        kept = None if samples is None else samples[chosen]
        return type(data).from_samples(data.truth, kept, axis=0, joint=joint, **data.input_options)

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        if key in FEWEST_DRAWS:
            return (
                f"{key} needs {FEWEST_DRAWS[key]} draws per sample, to contain its outermost quantiles; "
                f"the fewest here are {size:.0f}"
            )
        return "draws have no density; crps scores them"


def score_draws(target: FloatArray, draws: FloatArray) -> Scored:
    """Score draws.

    Parameters
    ----------
    target : array, any shape
    draws : array, shape (M, ...)
        NaN draws are left out; a sample with fewer than two has a NaN std.
    """
    quantiles = len(EVERY_LEVEL) if len(draws) >= min(FEWEST_DRAWS.values()) else 0
    return Scored(in_blocks(draw_columns, target, draws, cost=3 * (len(draws) + quantiles)))


def draw_columns(target: FloatArray, draws: FloatArray) -> Columns:
    """Everything that M exchangeable draws say about each sample.

    With r draws below the truth and t equal to it, its probability integral transform is spread over ``[r / (M + 1),
    (r + t + 1) / (M + 1)]``: if the truth is exchangeable with the draws, the result is exactly uniform, for any M.

    ==================  ==========================================================================
    ``mean``            of the draws
    ``std``             root of ``(1 + 1/M)`` times their variance (``ddof=1``): the variance of a further draw
                        about their mean
    ``crps``            fair: ``mean |x - y| - sum over i < j of |x_i - x_j| / (M (M - 1))`` [1]_
    ``crps_ensemble``   of the empirical distribution: the same with ``M^2``
    quantiles           type 6 of Hyndman and Fan 1996, the inverse of the rule above
    ==================  ==========================================================================

    Parameters
    ----------
    target : float64 array, shape (n,)
    draws : float64 array, shape (M, n)

    References
    ----------
    .. [1] Ferro, 2014, Quarterly Journal of the Royal Meteorological Society 140.

    Examples
    --------
    >>> made = draw_columns(np.array([2.0]), np.array([[1.0], [2.0], [4.0]]))
    >>> float(made["pit_low"][0]), float(made["pit_high"][0]), float(made["crps"][0].round(6))
    (0.25, 0.75, 0.0)
    """
    ordered = np.sort(np.ascontiguousarray(draws.T), axis=1)  # NaN sorts last
    there = np.isfinite(ordered) | np.isinf(ordered)
    whole = bool(there.all())
    size = np.full(len(target), float(draws.shape[0])) if whole else there.sum(axis=1).astype(float)
    y = target[:, None]
    below, upto = (ordered < y).sum(axis=1), (ordered <= y).sum(axis=1)
    kept = ordered if whole else np.where(there, ordered, 0.0)
    mean = kept.sum(axis=1) / size
    centered = ordered - mean[:, None]
    if not whole:
        centered[~there] = 0.0
    variance = np.einsum("nm,nm->n", centered, centered) / (size - 1)
    distance = np.abs(centered - (y - mean[:, None]))
    if not whole:
        distance[~there] = 0.0
    distance = distance.sum(axis=1) / size
    weight = 2 * np.arange(1, draws.shape[0] + 1) - size[:, None] - 1
    spread = np.einsum("nm,nm->n", weight, centered)
    made = {
        "mean": mean,
        "std": np.sqrt((1 + 1 / size) * variance),
        "pit_low": below / (size + 1),
        "pit_high": (upto + 1) / (size + 1),
        "size": size,
        "crps": distance - spread / (size * (size - 1)),
        "crps_ensemble": distance - spread / (size * size),
    }
    return {**made, **_quantile_columns(target, ordered, size)}


def _quantile_columns(target: FloatArray, ordered: FloatArray, size: FloatArray) -> Columns:
    """Scores of the draws' quantiles, NaN for samples with too few draws."""
    wanted = {name: least for name, least in FEWEST_DRAWS.items() if len(ordered[0]) >= least}
    if not wanted:
        return {}
    if "pinball" in wanted:
        found = quantile_scores(target, draw_quantiles(ordered, size, EVERY_LEVEL))
    else:
        edges = draw_quantiles(ordered, size, np.asarray([0.025, 0.975]))
        found = {"interval_width_95": edges[:, 1] - edges[:, 0]}
    return {name: np.where(size >= least, found[name], np.nan) for name, least in wanted.items()}


def draw_quantiles(ordered: FloatArray, size: FloatArray, levels: FloatArray) -> FloatArray:
    """Quantiles of type 6 (numpy's "weibull") of sorted draws, NaN last; shape (n, levels).

    Examples
    --------
    >>> draw_quantiles(np.array([[1.0, 2.0, 4.0]]), np.array([3.0]), np.array([0.25, 0.6]))
    array([[1. , 2.8]])
    """
    rank = np.clip((size[:, None] + 1) * levels, 1, size[:, None])
    rank = np.where(np.abs(rank - np.rint(rank)) < 1e-9, np.rint(rank), rank)  # 0.29 * 100 is 28.999...
    left = np.floor(rank).astype(np.int64)
    low = np.take_along_axis(ordered, left - 1, axis=1)
    high = np.take_along_axis(ordered, np.minimum(left, size[:, None].astype(np.int64) - 1), axis=1)
    part = rank - left
    return np.asarray(np.where(part > 0, low + part * (high - low), low))
