"""Distribution objects, scored by their own distribution function and density, and mixtures of normals.

Mixtures are also those of ensembles whose members predict a mean and a standard deviation. There is one interface to
the objects of scipy, torch, NGBoost, GPyTorch and TensorFlow Probability: no library is imported for it. An object is
read by what it offers (``cdf``, ``log_prob`` or ``logpdf``, ``mean``, ``std`` or ``stddev`` or ``variance``, ``ppf``,
``icdf`` or ``quantile``), as values or as methods.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from uq_tracking.checks import check_choice, check_flag, whole_number
from uq_tracking.errors import InputTypeError, SettingsError, ShapeError
from uq_tracking.families import GAUSSIAN, LAPLACE, LOGISTIC, UNIFORM, Standard, StudentT, t_square_integral
from uq_tracking.inputs.convert import FloatArray, Source, read_floats
from uq_tracking.inputs.forms.form import EVERY_LEVEL, Columns, in_blocks, quantile_scores
from uq_tracking.inputs.forms.mean_std import MeanStd, Numbers, Wording
from uq_tracking.inputs.validation import check_shapes, members_first, without_members
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
QUANTILE_TOLERANCE = 1e-13
"""Of a quantile, relative to its size and the width of the first bracket."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Distribution(Numbers):
    """A distribution object per sample."""

    name: ClassVar[str] = "distribution"
    made_by: ClassVar[str] = "Predictions.from_distribution"

    wording: Wording = Wording(
        mean="the distribution's mean or F(y)",
        std="the distribution's std",
        non_finite_cure="its parameters must be finite; if it has no variance, pass an object with quantiles",
    )

    @classmethod
    @override
    def read(
        cls, y_true: Any, *, dist: Any, quantile_scores: bool | None, **more: Any
    ) -> tuple[Numbers, Sequence[Source]]:
        truth = read_floats(y_true, "y_true")
        check_shapes((truth.name, truth.values.shape))
        law, wanted = read_law(dist), wants_quantiles(truth.values.size, quantile_scores)
        kind: type[Numbers] = cls if isinstance(law, Law) else Mixture
        columns, known = score_distribution(truth.values, dist, law, quantiles=wanted)
        return kind.of(columns, np.dtype(np.float64), known=known, wording=cls.wording, **more), [truth]

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        if key in ("pinball", "interval_score", "interval_width_95"):
            return (
                "its quantiles are not known; pass quantile_scores=True if the distribution can provide them"
            )
        return (
            f"the distribution does not provide it ({key} has no closed form here, or quadrature did not reach "
            "1e-6)"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixture(Distribution):
    """A mixture of normal distributions."""

    name: ClassVar[str] = "mixture"
    made_by: ClassVar[str] = "Predictions.from_ensemble"
    splits: ClassVar[tuple[str, ...]] = ("means", "stds")

    wording: Wording = Wording(
        mean="the mean of the mixture",
        std="the std of the mixture",
        non_finite_cure="every component needs a finite mean and a std above 0",
    )

    @classmethod
    @override
    def read(  # type: ignore[override]
        cls,
        y_true: Any,
        *,
        means: Any,
        stds: Any = None,
        axis: int | None,
        combine: str,
        ddof: int,
        quantile_scores: bool | None,
        **more: Any,
    ) -> tuple[Numbers, Sequence[Source]]:
        truth = read_floats(y_true, "y_true")
        check_choice("combine", combine, ("gaussian", "mixture"))
        ddof = whole_number("ddof", ddof)
        fewest = 2 if stds is None else 1
        source = members_first(means, "means", truth, axis, cls.member, fewest=fewest)
        noise = None if stds is None else members_first(stds, "stds", truth, axis, cls.member)
        if noise is not None and noise.values.shape != source.values.shape:
            raise ShapeError(
                f"means has shape {source.values.shape} and stds {noise.values.shape}; they must be equal"
            )
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
        return form, [truth, *(without_members(part) for part in given)]

    @override
    def of_members(self, data: Predictions, chosen: Sequence[int], **options: Any) -> Predictions:
        return super().of_members(data, chosen, combine="mixture", **options)


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
) -> Columns:
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
    shares = np.broadcast_to(1 / len(means), means.shape) if weights is None else weights

    def columns(y: FloatArray, m: FloatArray, s: FloatArray, w: FloatArray) -> Columns:
        made = mixture_columns(y, m, s, w)
        if quantiles:
            made |= quantile_scores(y, mixture_quantiles(EVERY_LEVEL, m, s, w))
        return made

    cost = len(means) * (800 if quantiles else 4)
    return in_blocks(columns, target, means, stds, shares, cost=cost)


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
    return {
        "mean": mean,
        "std": np.sqrt(within + between),
        "pit_low": pit,
        "pit_high": pit,
        "size": np.full(len(target), float(len(means))),
        "nll": -log_density,
        "crps": distance - spread,
        **density_scores(np.exp(log_density), square),
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
        enough = QUANTILE_TOLERANCE * (np.abs(x) + width)
        taken = (step >= low) & (step <= high) & (np.abs(step - x) <= np.maximum(moved / 2, enough))
        new = np.where(gap == 0, x, np.where(taken, step, 0.5 * (low + high)))
        moved, x = np.abs(new - x), new
        if np.all((moved <= enough) | ~np.isfinite(x)):
            break
    return np.asarray(x)


LOCATION_SCALE: dict[str, Standard] = {
    "norm": GAUSSIAN,
    "laplace": LAPLACE,
    "uniform": UNIFORM,
    "logistic": LOGISTIC,
}
QUARTILES_PER_STD = 1.3489795003921634
"""Interquartile range of the standard normal distribution."""
TAIL = 1e-12
"""The CRPS sum of a discrete distribution stops at this tail probability on each side."""
MOST_TERMS = 100_000


def score_distribution(
    target: FloatArray, dist: Any, law: Law | Components | None = None, *, quantiles: bool = False
) -> tuple[Columns, dict[str, Any]]:
    """Score a distribution object, and return what must agree for statistics to be merged, too.

    ==========  =======================================================================================
    PIT         ``F(y)``; for a discrete distribution spread over ``[F(y) - P(y), F(y)]``
    ``nll``     minus the log density, or for a discrete distribution the log probability
    ``crps``    in closed form for normal, Laplace, logistic, uniform, Student t, Cauchy, gamma, beta, exponential,
                lognormal and mixtures of normals, as a sum for discrete distributions, else by quadrature to 1e-6
    quadratic   score and spherical score, for the same distributions except discrete ones: where the integral of the
                squared density has a closed form
    ==========  =======================================================================================

    Parameters
    ----------
    target : array, any shape
    dist
        One distribution per sample; its parameters have the target's shape or broadcast to it.
    law : Law or Components, optional
        What `read_law` made of it.
    quantiles : bool
        Whether to also compute the 199 quantiles per sample that interval and quantile scores need.
    """
    law, y = law or read_law(dist), target.astype(np.float64)
    if not isinstance(law, Law):
        shape = (law[0].shape[-1], *target.shape)
        members = [_spread_out(np.moveaxis(part, -1, 0), shape, dist) for part in law]
        return score_mixture(target, *members, quantiles=quantiles), {}
    with np.errstate(all="ignore"):
        made = _columns(y, law, dist)
        if quantiles and law.quantile is not None:
            found = np.stack([law.quantile(np.full(y.shape, level)) for level in EVERY_LEVEL], axis=-1)
            scores = quantile_scores(y.reshape(-1), found.reshape(-1, len(EVERY_LEVEL)))
            made |= {name: column.reshape(y.shape) for name, column in scores.items()}
        facts: dict[str, Any] = {}
        moments = np.isfinite(made["mean"]) & np.isfinite(made["std"])
        if law.quantile is not None and not moments[np.isfinite(y)].all():
            quarter, median, rest = (law.quantile(np.full(y.shape, p)) for p in (0.25, 0.5, 0.75))
            made |= {"mean": median, "std": (rest - quarter) / QUARTILES_PER_STD}
            facts = {"spread": "interquartile"}
    return made, facts


def _spread_out(values: FloatArray | None, shape: tuple[int, ...], dist: Any) -> FloatArray:
    if values is None:
        return np.full(shape, np.nan)
    if np.ndim(values) and values.shape != shape and np.size(values) > 1:
        raise ShapeError(
            f"{type(dist).__name__} has shape {values.shape}, the target {shape}; pass one distribution per sample"
        )
    return np.broadcast_to(values, shape)


def _columns(y: FloatArray, law: Law, dist: Any) -> Columns:
    mean = _spread_out(law.mean, y.shape, dist)
    std = _spread_out(law.std, y.shape, dist)
    high = np.clip(law.cdf(y), 0, 1)
    low = high if law.mass is None else np.clip(high - law.mass(y), 0, 1)
    log_density = law.log_density(y)
    crps, square = _closed_forms(y, law, mean, std)
    return {
        "mean": np.array(mean),
        "std": np.array(std),
        "pit_low": low,
        "pit_high": high,
        "size": np.ones(y.shape),
        "nll": -log_density,
        "crps": _numerical_crps(y, law, mean, std) if crps is None else crps,
        **({} if square is None else density_scores(np.exp(log_density), square)),
    }


def density_scores(density: FloatArray, square: FloatArray) -> Columns:
    """Quadratic and spherical score, from the density at the truth and the integral of the squared density."""
    return {"quadratic_score": 2 * density - square, "spherical_score": density / np.sqrt(square)}


def _closed_forms(
    y: FloatArray, law: Law, mean: FloatArray, std: FloatArray
) -> tuple[FloatArray | None, FloatArray | None]:
    """CRPS and integral of the squared density, where they are known."""
    name = getattr(getattr(law.named, "dist", None), "name", "")
    if name in LOCATION_SCALE:
        standard = LOCATION_SCALE[name]
        return std * standard.crps((y - mean) / std), standard.pdf_square_integral / std
    if name not in CLOSED:
        return None, None
    crps, square = CLOSED[name]
    shapes, loc, scale = law.named.dist._parse_args(*law.named.args, **law.named.kwds)
    integral = np.broadcast_to(square(*map(np.asarray, shapes)) / scale, y.shape)
    return np.asarray(scale * crps((y - loc) / scale, *shapes), dtype=float), integral


def _numerical_crps(y: FloatArray, law: Law, mean: FloatArray, std: FloatArray) -> FloatArray:
    if law.mass is not None:
        return _discrete(y, law)
    spread = np.where(np.isfinite(std) & (std > 0), std, 1.0)
    centre = np.where(np.isfinite(mean), mean, y)
    if law.quantile is not None:  # for when the moments do not exist or mislead
        quarter, centre, rest = (law.quantile(np.full(y.shape, p)) for p in (0.25, 0.5, 0.75))
        spread = np.where(rest > quarter, rest - quarter, spread)
    return crps_by_quadrature(y, law.cdf, centre, spread)


def _t(z: FloatArray, df: Any) -> FloatArray:
    """Student t for all degrees of freedom that occur; scipy's has location 0 and scale 1."""
    z, df = np.broadcast_arrays(z, np.asarray(df, dtype=float))
    made = np.empty(z.shape)
    for dof in np.unique(df):
        here, family = df == dof, StudentT(float(dof))
        width = math.sqrt(dof / (dof - 2)) if family.has_variance else 1.0
        made[here] = width * family.crps(z[here] / width) if family.has_crps else np.nan
    return made


def _gamma(z: FloatArray, a: Any) -> FloatArray:
    """``z (2 F_a(z) - 1) - a (2 F_(a+1)(z) - 1) - 1 / B(1/2, a)``, Jordan et al. 2019."""
    x = np.maximum(z, 0)
    own, next_one = special.gammainc(a, x), special.gammainc(np.asarray(a) + 1, x)
    return np.asarray(z * (2 * own - 1) - a * (2 * next_one - 1) - 1 / special.beta(0.5, a))


def _lognormal(z: FloatArray, s: Any) -> FloatArray:
    """``z (2 F(z) - 1) - 2 exp(s^2/2) (Phi(log z / s - s) + Phi(s / sqrt 2) - 1)``, Baran and Lerch 2015."""
    log = np.log(np.maximum(z, 0)) / s
    tail = special.ndtr(log - s) + special.ndtr(s / math.sqrt(2)) - 1
    return np.asarray(z * (2 * special.ndtr(log) - 1) - 2 * np.exp(np.square(s) / 2) * tail)


def _gamma_square(a: FloatArray) -> FloatArray:
    """``Gamma(2a - 1) / (Gamma(a)^2 2^(2a - 1))``; infinite for a <= 1/2, where the density has a pole."""
    log = special.gammaln(2 * a - 1) - 2 * special.gammaln(a) - (2 * a - 1) * math.log(2)
    return np.asarray(np.where(a > 0.5, np.exp(log), np.nan))


def _beta(z: FloatArray, a: Any, b: Any) -> FloatArray:
    """``z (2 F_ab(z) - 1) + (a (1 - 2 F_(a+1)b(z)) - 2 B(2a, 2b) / B(a, b)^2) / (a + b)``, Jordan et al. 2019."""
    x = np.clip(z, 0, 1)
    own, next_one = special.betainc(a, b, x), special.betainc(np.asarray(a) + 1, b, x)
    pair = np.exp(special.betaln(2 * a, 2 * b) - 2 * special.betaln(a, b))
    return np.asarray(z * (2 * own - 1) + (a * (1 - 2 * next_one) - 2 * pair) / (a + b))


def _beta_square(a: FloatArray, b: FloatArray) -> FloatArray:
    """``B(2a - 1, 2b - 1) / B(a, b)^2``; infinite where the density has a pole of order 1/2."""
    log = special.betaln(2 * a - 1, 2 * b - 1) - 2 * special.betaln(a, b)
    return np.asarray(np.where(np.minimum(a, b) > 0.5, np.exp(log), np.nan))


CLOSED: dict[str, tuple[Callable[..., FloatArray], Callable[..., Any]]] = {
    "t": (_t, t_square_integral),
    "cauchy": (lambda z: StudentT(1.0).crps(z), lambda: 1 / (2 * math.pi)),
    "gamma": (_gamma, _gamma_square),
    "beta": (_beta, _beta_square),
    "expon": (lambda z: np.abs(z) + 2 * np.expm1(-np.maximum(z, 0)) + 0.5, lambda: 0.5),
    "lognorm": (_lognormal, lambda s: np.exp(np.square(s) / 4) / (2 * s * math.sqrt(math.pi))),
}
"""CRPS at z and integral of the squared density, with location 0 and scale 1, from the shape parameters."""


def _discrete(y: FloatArray, law: Law) -> FloatArray:
    """Sum over the integers of ``(F(k) - 1[k >= y])^2``; the truth may lie between two integers."""
    if law.quantile is None:
        return np.full(y.shape, np.nan)
    first = np.minimum(law.quantile(np.full(y.shape, TAIL)), np.floor(y))
    last = np.maximum(law.quantile(np.full(y.shape, 1 - TAIL)), np.ceil(y))
    begin, end = np.nanmin(first), np.nanmax(last)
    if not end - begin <= MOST_TERMS:
        return np.full(y.shape, np.nan)
    total = np.zeros(y.shape)
    for k in np.arange(begin, end + 1):
        share = law.cdf(np.full(y.shape, k))
        above = np.clip(k + 1 - y, 0, 1)  # the part of [k, k + 1] above the truth
        total += (1 - above) * np.square(share) + above * np.square(1 - share)
    return total


Function = Callable[[FloatArray], FloatArray]

TOLERANCE = 1e-6
"""Largest relative error at which a value is accepted."""

HALVINGS = 9
"""Step sizes from 1/2 to 1/512."""

REACH = 4.2
"""Where the double exponential substitutions end: weights beyond are below the rounding error of the sum."""


def crps_by_quadrature(
    target: FloatArray, cdf: Function, centre: FloatArray, scale: FloatArray
) -> FloatArray:
    """``integral of F^2`` below the truth plus ``integral of (1 - F)^2`` above it; NaN where that is too inexact.

    Each of three ranges, from minus infinity to the lower of truth and ``centre``, between them, and on to infinity,
    is integrated by a double exponential substitution [1]_ whose step is halved until the total changes by less than
    a tenth of `TOLERANCE`.

    Parameters
    ----------
    target : float64 array, shape (n,)
    cdf : callable
        Distribution function of arrays of shape (n,). Its complement is not asked for: what rounds to 0 adds nothing,
        and scipy's ``beta.sf`` takes twelve times as long as ``beta.cdf``.
    centre, scale : float64 arrays, shape (n,)
        Rough location and width of the distribution; they affect the effort, not the result.

    References
    ----------
    .. [1] Takahasi and Mori, 1974, Publications of the RIMS 9.
    """
    low, high = np.minimum(target, centre), np.maximum(target, centre)
    middle = np.where(target > centre, 1.0, 0.0)

    def integrand(t: float) -> FloatArray:
        """The three integrands at one node, times the derivatives of their substitutions."""
        bend = math.pi / 2 * math.sinh(t)
        slope = math.pi / 2 * math.cosh(t)
        out = math.exp(bend)
        below = np.square(cdf(low - scale * out))
        above = np.square(1 - cdf(high + scale * out))
        share = 1 / (1 + math.exp(-2 * bend))
        place = low + (high - low) * share
        between = np.square(cdf(place) - 1 + middle)
        weight = 2 * share * (1 - share)
        return np.asarray(slope * (out * scale * (below + above) + weight * (high - low) * between))

    step = 0.5
    nodes = np.arange(-REACH, REACH + step / 2, step)
    total = sum((integrand(float(t)) for t in nodes), np.zeros_like(target)) * step
    error = np.full_like(target, np.inf)
    for _ in range(HALVINGS):
        step /= 2
        nodes = np.arange(-REACH + step, REACH, 2 * step)
        finer = total / 2 + sum((integrand(float(t)) for t in nodes), np.zeros_like(target)) * step
        error, total = np.abs(finer - total), finer
        if np.all((error <= 0.1 * TOLERANCE * np.abs(total)) | ~np.isfinite(total)):
            break
    return np.asarray(np.where(error <= TOLERANCE * np.abs(total), total, np.nan))


Components = tuple[FloatArray, FloatArray, FloatArray]
"""Means, stds and weights of a mixture of normals, components last."""


@dataclass(frozen=True)
class Law:
    """One univariate distribution per sample.

    ``quantile`` is None if the object lacks it. ``mass`` is the probability function of a discrete
    distribution, and ``log_density`` its log. ``named`` is the scipy distribution behind the object.
    """

    cdf: Function
    log_density: Function
    mean: FloatArray | None
    std: FloatArray | None
    quantile: Function | None = None
    mass: Function | None = None
    named: Any = None


def read_law(dist: Any) -> Law | Components:
    """Read a distribution object, or the components of a mixture of normals."""
    for candidate in (dist, getattr(dist, "dist", None)):  # scipy's own, or one that wraps it as NGBoost's do
        if type(candidate).__module__.startswith("scipy.stats") and hasattr(candidate, "ppf"):
            return _of_scipy(candidate)
    while type(dist).__name__ == "Independent" and hasattr(dist, "base_dist"):
        dist = dist.base_dist  # the marginals that torch wraps
    components = _normal_components(dist)
    if components is not None:
        return components
    shape = getattr(dist, "event_shape", ())
    if not callable(shape) and tuple(shape):
        return _marginals(dist)
    if type(dist).__module__.startswith("torch.distributions") and type(dist).__name__ in TORCH:
        return _of_torch(dist)
    return _by_duck_typing(dist)


def _of_scipy(dist: Any) -> Law:
    discrete = hasattr(dist, "pmf")
    return Law(
        dist.cdf,
        dist.logpmf if discrete else dist.logpdf,
        np.asarray(dist.mean(), dtype=float),
        np.asarray(dist.std(), dtype=float),
        dist.ppf,
        dist.pmf if discrete else None,
        named=dist,
    )


def _values(value: Any) -> FloatArray:
    """An array of floats from any library; methods are called."""
    value = value() if callable(value) else value
    return np.asarray(read_floats(value, "the distribution").values, dtype=np.float64)


def _marginals(dist: Any) -> Law:
    """Normal marginals of a multivariate normal distribution."""
    if "Normal" not in type(dist).__name__ or not hasattr(dist, "mean"):
        raise InputTypeError(
            f"{type(dist).__name__} is multivariate, and its marginals are not known; pass one distribution "
            "per sample, or draws with Predictions.from_samples"
        )
    from scipy import stats

    return _of_scipy(stats.norm(_values(dist.mean), _spread(dist)))


def _spread(dist: Any) -> FloatArray | None:
    for name in ("std", "stddev"):
        if hasattr(dist, name):
            return _values(getattr(dist, name))
    if hasattr(dist, "variance"):
        return np.asarray(np.sqrt(_values(dist.variance)))
    return None


def _normal_components(dist: Any) -> Components | None:
    """What a torch mixture of normals consists of."""
    part = getattr(dist, "component_distribution", None)
    if part is None or type(part).__name__ != "Normal" or not hasattr(dist, "mixture_distribution"):
        return None
    means, stds = _values(part.mean), _spread(part)
    probs = getattr(dist.mixture_distribution, "probs", None)
    if stds is None or probs is None:
        return None
    return means, stds, np.broadcast_to(_values(probs), means.shape)


TORCH: dict[str, tuple[str, dict[str, Any]]] = {
    "Normal": ("norm", {"loc": "loc", "scale": "scale"}),
    "Laplace": ("laplace", {"loc": "loc", "scale": "scale"}),
    "Cauchy": ("cauchy", {"loc": "loc", "scale": "scale"}),
    "StudentT": ("t", {"df": "df", "loc": "loc", "scale": "scale"}),
    "Exponential": ("expon", {"scale": lambda d: 1 / _values(d.rate)}),
    "Gamma": ("gamma", {"a": "concentration", "scale": lambda d: 1 / _values(d.rate)}),
    "LogNormal": ("lognorm", {"s": "scale", "scale": lambda d: np.exp(_values(d.loc))}),
    "Beta": ("beta", {"a": "concentration1", "b": "concentration0"}),
    "Poisson": ("poisson", {"mu": "rate"}),
    "Gumbel": ("gumbel_r", {"loc": "loc", "scale": "scale"}),
    "Uniform": ("uniform", {"loc": "low", "scale": lambda d: _values(d.high) - _values(d.low)}),
}
"""Torch distributions as scipy's, which have every function: names of the parameters, or how to derive them."""


def _of_torch(dist: Any) -> Law:
    """The same distribution from scipy, for an object of ``torch.distributions`` that is in `TORCH`."""
    from scipy import stats

    name, parameters = TORCH[type(dist).__name__]
    made = {
        key: source(dist) if callable(source) else _values(getattr(dist, source))
        for key, source in parameters.items()
    }
    return _of_scipy(getattr(stats, name)(**made))


def _unchecked(dist: Any) -> Any:
    """A copy of a torch distribution that, outside its support, returns density 0 instead of raising."""
    if not hasattr(dist, "_validate_args"):
        return dist
    free = copy.copy(dist)
    free._validate_args = False
    for part in ("base_dist", "component_distribution"):
        if hasattr(dist, part):
            setattr(free, part, _unchecked(getattr(dist, part)))
    return free


def _by_duck_typing(dist: Any) -> Law:
    dist = _unchecked(dist)
    log_density = getattr(dist, "logpdf", None) or getattr(dist, "log_prob", None)
    if not callable(getattr(dist, "cdf", None)) or not callable(log_density):
        raise InputTypeError(
            f"{type(dist).__name__} has no cdf and log density (logpdf or log_prob), which scoring needs; pass "
            "these as arrays with Predictions.from_density, or draws with Predictions.from_samples"
        )
    quantile = next(
        (getattr(dist, name) for name in ("ppf", "icdf", "quantile") if callable(getattr(dist, name, None))),
        None,
    )
    return Law(
        _wrapped(dist, dist.cdf),
        _wrapped(dist, log_density),
        _values(dist.mean) if hasattr(dist, "mean") else None,
        _spread(dist),
        None if quantile is None else _wrapped(dist, quantile),
    )


def _wrapped(dist: Any, function: Callable[[Any], Any]) -> Function:
    """A function of numpy arrays, whatever arrays the object uses: a torch distribution expects its tensors."""

    def call(values: Any) -> FloatArray:
        try:
            mean: Any = getattr(dist, "mean", None)
            if type(mean).__module__.split(".")[0] == "torch":
                import torch

                values = torch.as_tensor(values, dtype=mean.dtype, device=mean.device)
            return _values(function(values))
        except NotImplementedError as error:
            raise InputTypeError(
                f"{type(dist).__name__}.{getattr(function, '__name__', 'function')} is not implemented by its "
                "library; pass draws with Predictions.from_samples, or Predictions.from_density"
            ) from error

    return call
