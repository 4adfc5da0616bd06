"""Mixtures of normal distributions, such as ensembles whose members predict a mean and a standard deviation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from uq_tracking.checks import check_choice, check_flag, whole_number
from uq_tracking.errors import SettingsError
from uq_tracking.inputs.convert import FloatArray, Source
from uq_tracking.inputs.forms.form import EVERY_LEVEL, Columns, Scored, in_blocks, quantile_scores
from uq_tracking.inputs.forms.mean_std import MeanStd, Numbers, Wording, of_distribution
from uq_tracking.inputs.validation import check_members, members_first, without_members
from uq_tracking.typed import override

if TYPE_CHECKING:
    from uq_tracking.inputs.predictions import Predictions

QUANTILES_UP_TO = 5_000
"""The 199 quantiles that some scores need are computed by default for up to this many samples."""
MEMBERS = Wording(
    mean="the mean of the members",
    std="the std of the members",
    non_finite_cure="a NaN, infinity or negative std in any member invalidates the sample",
)
MOST_STEPS = 200
"""Maximum number of steps in a quantile search; each at least halves the bracket or the step before it."""
TOLERANCE = 1e-13
"""Of a quantile, relative to its size and the width of the first bracket."""


COMPONENTS = Wording(
    mean="the mean of the mixture",
    std="the std of the mixture",
    non_finite_cure="every component needs a finite mean and a std above 0",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixture(Numbers):
    """A mixture of normal distributions."""

    name: ClassVar[str] = "mixture"
    made_by: ClassVar[str] = "Predictions.from_ensemble"
    splits: ClassVar[tuple[str, ...]] = ("means", "stds")

    wording: Wording = COMPONENTS

    @classmethod
    @override
    def read(
        cls,
        truth: Source,
        *,
        means: Any,
        stds: Any = None,
        axis: int | None,
        combine: str,
        ddof: int,
        quantile_scores: bool | None,
        **more: Any,
    ) -> tuple[Numbers, Sequence[Source]]:
        check_choice("combine", combine, ("gaussian", "mixture"))
        ddof = whole_number("ddof", ddof)
        source = members_first(means, "means", truth, axis, cls.member)
        noise = None if stds is None else members_first(stds, "stds", truth, axis, cls.member)
        check_members(truth, source, noise, cls.member)
        if combine == "mixture" and noise is None:
            raise SettingsError(
                "a mixture needs the members' stds; pass them, or combine='gaussian', or draws with from_samples"
            )
        if not 0 <= ddof < len(source.values):
            raise SettingsError(
                f"ddof={ddof} with {len(source.values)} samples leaves no degrees of freedom; pass 0 <= ddof < M"
            )
        given = [part for part in (source, noise) if part is not None]
        members = [part.values for part in given]
        found = in_blocks(
            partial(combined_members, ddof=ddof), truth.values, *members, cost=len(source.values)
        )
        dtype = np.result_type(*members)
        moments: dict[str, Any] = {name: column.astype(dtype) for name, column in found.items()}
        more |= dict(zip(("samples", "member_std"), members, strict=False))
        if combine == "gaussian":
            form: Numbers = MeanStd(wording=MEMBERS, **moments, **more)
        else:
            wanted = wants_quantiles(truth.values.size, quantile_scores)
            scored = score_mixture(truth.values, *members, quantiles=wanted)
            parts = {name: moments[name] for name in ("aleatoric", "epistemic")}
            form = cls.of(scored, dtype, **parts, **more)
        return form, [without_members(part) for part in given]

    @override
    def combined(self, data: Predictions, chosen: list[int], **options: Any) -> Predictions:
        return super().combined(data, chosen, combine="mixture", **options)

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        return of_distribution(key)


def wants_quantiles(size: int, asked: bool | None) -> bool:
    """Return True if the quantiles of a continuous distribution are to be computed."""
    if asked is None:
        return size <= QUANTILES_UP_TO
    check_flag("quantile_scores", asked)
    return bool(asked)


def combined_members(
    target: FloatArray, means: FloatArray, stds: FloatArray | None = None, *, ddof: int
) -> Columns:
    """Match the first two moments of the mixture of M members, arrays (M, n); its parts if members have a std."""
    mean = means.mean(axis=0)
    apart = means - mean
    between = np.einsum("mi,mi->i", apart, apart) / (len(means) - ddof)
    if stds is None:
        return {"mean": mean, "std": np.sqrt(between)}
    within = np.where((stds < 0).any(axis=0), np.nan, np.einsum("mi,mi->i", stds, stds) / len(means))
    return {
        "mean": mean,
        "std": np.sqrt(within + between),
        "aleatoric": np.sqrt(within),
        "epistemic": np.sqrt(between),
    }


def score_mixture(
    target: FloatArray,
    means: FloatArray,
    stds: FloatArray,
    weights: FloatArray | None = None,
    *,
    quantiles: bool = False,
) -> Scored:
    """Score a mixture of normals.

    Parameters
    ----------
    target : array, any shape
    means, stds : arrays, shape (M, ...)
        Means and stds of the components; stds above 0.
    weights : array, shape (M, ...), optional
        Summing to 1 over the components; equal by default.
    quantiles : bool
        Also find the 199 quantiles of every sample that interval and quantile scores need.
    """
    members = (means, stds) if weights is None else (means, stds, weights)
    size = len(means)

    def columns(y: FloatArray, m: FloatArray, s: FloatArray, w: FloatArray | None = None) -> Columns:
        share = np.full_like(m, 1 / size) if w is None else w
        made = mixture_columns(y, m, s, share)
        if quantiles:
            made |= quantile_scores(y, mixture_quantiles(EVERY_LEVEL, m, s, share))
        return made

    return Scored(in_blocks(columns, target, *members, cost=size * (800 if quantiles else 4)))


def mixture_columns(target: FloatArray, means: FloatArray, stds: FloatArray, weights: FloatArray) -> Columns:
    """Everything that a mixture ``sum over k of w_k N(m_k, s_k^2)`` says about each sample.

    ==========  ========================================================================================
    ``nll``     ``-log sum over k of w_k N(y; m_k, s_k^2)``, by log-sum-exp
    PIT         ``sum over k of w_k Phi((y - m_k) / s_k)``
    ``crps``    ``sum over k of w_k A(y - m_k, s_k^2) - 1/2 sum over j, k of w_j w_k A(m_j - m_k, s_j^2 + s_k^2)``,
                ``A(e, v) = e (2 Phi(e / sqrt v) - 1) + 2 sqrt v phi(e / sqrt v)`` [1]_
    integral    of the squared density: ``sum over j, k of w_j w_k N(m_j; m_k, s_j^2 + s_k^2)``, for the quadratic
                and the spherical score
    ==========  ========================================================================================

    Parameters
    ----------
    target : float64 array, shape (n,)
    means, stds, weights : float64 arrays, shape (M, n)

    References
    ----------
    .. [1] Grimit, Gneiting, Berrocal and Johnson, 2006, Quarterly Journal of the Royal Meteorological Society 132.

    Examples
    --------
    >>> one = np.ones((2, 1))
    >>> made = mixture_columns(np.zeros(1), np.array([[-1.0], [1.0]]), one, one / 2)
    >>> {name: round(float(made[name][0]), 6) for name in ("nll", "pit_low", "std")}
    {'nll': 1.418939, 'pit_low': 0.5, 'std': 1.414214}
    """
    stds = np.where(stds > 0, stds, np.nan)
    z = (target - means) / stds
    log_density = special.logsumexp(-0.5 * z * z - np.log(stds), axis=0, b=weights) - 0.5 * math.log(
        2 * math.pi
    )
    mean = (weights * means).sum(axis=0)
    within = (weights * stds * stds).sum(axis=0)
    between = (weights * np.square(means - mean)).sum(axis=0)
    pit = (weights * special.ndtr(z)).sum(axis=0)
    distance = (weights * expected_distance(target - means, stds)).sum(axis=0)
    spread = (np.square(weights) * stds).sum(axis=0) / math.sqrt(math.pi)
    square = (np.square(weights) / stds).sum(axis=0) / (2 * math.sqrt(math.pi))
    for j, k in combinations(range(len(means)), 2):
        both = weights[j] * weights[k]
        gap, width = means[j] - means[k], np.hypot(stds[j], stds[k])
        spread += both * expected_distance(gap, width)
        square += 2 * both * np.exp(-0.5 * np.square(gap / width)) / (width * math.sqrt(2 * math.pi))
    density = np.exp(log_density)
    return {
        "mean": mean,
        "std": np.sqrt(within + between),
        "pit_low": pit,
        "pit_high": pit,
        "size": np.full(len(target), float(len(means))),
        "nll": -log_density,
        "crps": distance - spread,
        "quadratic_score": 2 * density - square,
        "spherical_score": density / np.sqrt(square),
    }


def expected_distance(gap: FloatArray, std: FloatArray) -> FloatArray:
    """Expectation of ``|gap + std Z|`` with Z standard normal."""
    z = gap / std
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return np.asarray(gap * special.erf(z / math.sqrt(2)) + 2 * std * density)


def mixture_quantiles(
    levels: FloatArray, means: FloatArray, stds: FloatArray, weights: FloatArray
) -> FloatArray:
    """Quantiles of mixtures to about 1e-12 of the bracket, shape (n, levels).

    They lie between the smallest and largest quantile of the components. Newton steps are taken while they stay
    inside a shrinking bracket and each is at most half as long as the one before; otherwise the bracket is bisected,
    so the search cannot jump back and forth across a narrow component.
    """
    z = special.ndtri(levels)
    m, s, w = (array.T[:, :, None] for array in (means, stds, weights))  # (n, M, 1)
    of_components = m + s * z
    low, high = of_components.min(axis=1), of_components.max(axis=1)
    width = high - low
    x, moved = 0.5 * (low + high), width
    for _ in range(MOST_STEPS):
        t = (x[:, None, :] - m) / s
        gap = (w * special.ndtr(t)).sum(axis=1) - levels
        low, high = np.where(gap < 0, x, low), np.where(gap > 0, x, high)
        density = (w / s * np.exp(-0.5 * t * t)).sum(axis=1) / math.sqrt(2 * math.pi)
        with np.errstate(all="ignore"):  # the density vanishes far from every component
            step = x - gap / density
        enough = TOLERANCE * (np.abs(x) + width)
        taken = (step >= low) & (step <= high) & (np.abs(step - x) <= np.maximum(moved / 2, enough))
        new = np.where(gap == 0, x, np.where(taken, step, 0.5 * (low + high)))
        moved, x = np.abs(new - x), new
        if np.all((moved <= enough) | ~np.isfinite(x)):
            break
    return np.asarray(x)
