"""Distribution objects, scored by their own distribution function and density.

One interface to those of scipy, torch, NGBoost, GPyTorch and TensorFlow Probability: no library is imported for it.
An object is read by what it offers (``cdf``, ``log_prob`` or ``logpdf``, ``mean``, ``std`` or ``stddev`` or
``variance``, ``ppf``, ``icdf`` or ``quantile``), as values or as methods.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from uq_tracking.errors import InputTypeError, ShapeError
from uq_tracking.families import GAUSSIAN, LAPLACE, LOGISTIC, UNIFORM, Standard, StudentT, t_square_integral
from uq_tracking.inputs.convert import FloatArray, Source, read_floats
from uq_tracking.inputs.forms.form import EVERY_LEVEL, QUARTILES_PER_STD, Columns, Scored, quantile_scores
from uq_tracking.inputs.forms.mean_std import Numbers, Wording, of_distribution
from uq_tracking.inputs.forms.mixture import Mixture, score_mixture, wants_quantiles
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.typed import override

STATED = Wording(
    mean="the distribution's mean or F(y)",
    std="the distribution's std",
    non_finite_cure="its parameters must be finite; if it has no variance, pass an object with quantiles",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Distribution(Numbers):
    """A distribution object per sample."""

    name: ClassVar[str] = "distribution"
    made_by: ClassVar[str] = "Predictions.from_distribution"

    wording: Wording = STATED

    @classmethod
    @override
    def read(
        cls, truth: Source, *, dist: Any, quantile_scores: bool | None, **more: Any
    ) -> tuple[Numbers, Sequence[Source]]:
        check_shapes((truth.name, truth.values.shape))
        law, wanted = read_law(dist), wants_quantiles(truth.values.size, quantile_scores)
        kind: type[Numbers] = cls if law.mixture is None else Mixture
        scored = score_distribution(truth.values, dist, law, quantiles=wanted)
        return kind.of(scored, np.dtype(np.float64), wording=cls.wording, **more), []

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        return of_distribution(key)


LOCATION_SCALE: dict[str, Standard] = {
    "norm": GAUSSIAN,
    "laplace": LAPLACE,
    "uniform": UNIFORM,
    "logistic": LOGISTIC,
}
TAIL = 1e-12
"""The CRPS sum of a discrete distribution stops at this tail probability on each side."""
MOST_TERMS = 100_000


def score_distribution(
    target: FloatArray, dist: Any, law: Law | None = None, *, quantiles: bool = False
) -> Scored:
    """Score a distribution object.

    ==========  =======================================================================================
    PIT         ``F(y)``; for a discrete distribution spread over ``[F(y) - P(y), F(y)]``
    ``nll``     minus the log density, or for a discrete distribution the log probability
    ``crps``    in closed form for normal, Laplace, logistic, uniform, Student t, Cauchy, gamma, exponential,
                lognormal and mixtures of normals, as a sum for discrete distributions, else by quadrature to 1e-6
    quadratic   score and spherical score, for the same distributions except discrete ones: where the integral of the
                squared density has a closed form
    ==========  =======================================================================================

    Parameters
    ----------
    target : array, any shape
    dist
        One distribution per sample; its parameters have the target's shape or broadcast to it.
    law : Law, optional
        What `read_law` made of it.
    quantiles : bool
        Whether to also compute the 199 quantiles per sample that interval and quantile scores need.
    """
    law, y = law or read_law(dist), target.astype(np.float64)
    if law.mixture is not None:
        parts = [np.moveaxis(part, -1, 0) for part in law.mixture]
        shape = (len(parts[0]), *target.shape)
        means, stds, weights = (_spread_out(part, shape, dist) for part in parts)
        return score_mixture(target, means, stds, weights, quantiles=quantiles)
    with np.errstate(all="ignore"):
        made = _columns(y, law, dist)
        if quantiles and law.quantile is not None:
            made |= _quantile_columns(y, law)
        facts: dict[str, Any] = {}
        moments = np.isfinite(made["mean"]) & np.isfinite(made["std"])
        if law.quantile is not None and not moments[np.isfinite(y)].all():
            quarter, median, rest = (law.quantile(np.full(y.shape, p)) for p in (0.25, 0.5, 0.75))
            made |= {"mean": median, "std": (rest - quarter) / QUARTILES_PER_STD}
            facts = {"spread": "interquartile"}
    return Scored(made, facts)


def _spread_out(values: FloatArray | None, shape: tuple[int, ...], dist: Any) -> FloatArray:
    if values is None:
        return np.full(shape, np.nan)
    if np.ndim(values) and values.shape != shape and np.size(values) > 1:
        raise ShapeError(
            f"{type(dist).__name__} has shape {values.shape}, the target {shape}; pass one distribution per sample"
        )
    return np.broadcast_to(values, shape)


def _columns(y: FloatArray, law: Law, dist: Any) -> Columns:
    if law.cdf is None or law.log_density is None:
        raise InputTypeError(f"{type(dist).__name__} has no cdf and log density")
    mean = _spread_out(law.mean, y.shape, dist)
    std = _spread_out(law.std, y.shape, dist)
    high = np.clip(law.cdf(y), 0, 1)
    low = high if law.mass is None else np.clip(high - law.mass(y), 0, 1)
    log_density = law.log_density(y)
    return {
        "mean": np.array(mean),
        "std": np.array(std),
        "pit_low": low,
        "pit_high": high,
        "size": np.ones(y.shape),
        "nll": -log_density,
        "crps": _crps(y, law, mean, std),
        **_density_scores(np.exp(log_density), law, std),
    }


def _density_scores(density: FloatArray, law: Law, std: FloatArray) -> Columns:
    """``2 p(y) - integral of p^2`` and ``p(y) / sqrt(integral of p^2)``, where the integral is known."""
    name = getattr(getattr(law.named, "dist", None), "name", "")
    if name in LOCATION_SCALE:
        square = LOCATION_SCALE[name].pdf_square_integral / std
    elif name in SQUARES:
        shapes, _, scale = law.named.dist._parse_args(*law.named.args, **law.named.kwds)
        square = np.broadcast_to(SQUARES[name](*map(np.asarray, shapes)) / scale, density.shape)
    else:
        return {}
    return {"quadratic_score": 2 * density - square, "spherical_score": density / np.sqrt(square)}


def _crps(y: FloatArray, law: Law, mean: FloatArray, std: FloatArray) -> FloatArray:
    name = getattr(getattr(law.named, "dist", None), "name", "")
    if name in LOCATION_SCALE:
        return std * LOCATION_SCALE[name].crps((y - mean) / std)
    if name in CLOSED:
        shapes, loc, scale = law.named.dist._parse_args(*law.named.args, **law.named.kwds)
        return np.asarray(scale * CLOSED[name]((y - loc) / scale, *shapes), dtype=float)
    if law.mass is not None:
        return _discrete(y, law)
    spread = np.where(np.isfinite(std) & (std > 0), std, 1.0)
    centre = np.where(np.isfinite(mean), mean, y)
    if law.quantile is not None:  # for when the moments do not exist or mislead
        quarter, centre, rest = (law.quantile(np.full(y.shape, p)) for p in (0.25, 0.5, 0.75))
        spread = np.where(rest > quarter, rest - quarter, spread)
    cdf, sf = law.cdf, law.sf
    if cdf is None:
        return np.full(y.shape, np.nan)
    return crps_by_quadrature(y, cdf, sf or (lambda x: 1 - cdf(x)), centre, spread)


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


def _exponential(z: FloatArray) -> FloatArray:
    return np.asarray(np.abs(z) + 2 * np.expm1(-np.maximum(z, 0)) + 0.5)


def _lognormal(z: FloatArray, s: Any) -> FloatArray:
    """``z (2 F(z) - 1) - 2 exp(s^2/2) (Phi(log z / s - s) + Phi(s / sqrt 2) - 1)``, Baran and Lerch 2015."""
    log = np.log(np.maximum(z, 0)) / s
    tail = special.ndtr(log - s) + special.ndtr(s / math.sqrt(2)) - 1
    return np.asarray(z * (2 * special.ndtr(log) - 1) - 2 * np.exp(np.square(s) / 2) * tail)


CLOSED: dict[str, Any] = {
    "t": _t,
    "cauchy": lambda z: StudentT(1.0).crps(z),
    "gamma": _gamma,
    "expon": _exponential,
    "lognorm": _lognormal,
}


def _gamma_square(a: FloatArray) -> FloatArray:
    """``Gamma(2a - 1) / (Gamma(a)^2 2^(2a - 1))``; infinite for a <= 1/2, where the density has a pole."""
    log = special.gammaln(2 * a - 1) - 2 * special.gammaln(a) - (2 * a - 1) * math.log(2)
    return np.asarray(np.where(a > 0.5, np.exp(log), np.nan))


SQUARES: dict[str, Any] = {
    "t": t_square_integral,
    "cauchy": lambda: 1 / (2 * math.pi),
    "gamma": _gamma_square,
    "expon": lambda: 0.5,
    "lognorm": lambda s: np.exp(np.square(s) / 4) / (2 * s * math.sqrt(math.pi)),
}
"""Integral of the squared density with scale 1, from the shape parameters."""


def _discrete(y: FloatArray, law: Law) -> FloatArray:
    """Sum over the integers of ``(F(k) - 1[k >= y])^2``; the truth may lie between two integers."""
    if law.cdf is None or law.quantile is None:
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


def _quantile_columns(y: FloatArray, law: Law) -> Columns:
    quantile = law.quantile
    if quantile is None:
        return {}
    found = np.stack([np.asarray(quantile(np.full(y.shape, level))) for level in EVERY_LEVEL], axis=-1)
    made = quantile_scores(y.reshape(-1), found.reshape(-1, len(EVERY_LEVEL)))
    return {name: column.reshape(y.shape) for name, column in made.items()}


Cdf = Callable[[FloatArray], FloatArray]

TOLERANCE = 1e-6
"""Largest relative error at which a value is accepted."""

HALVINGS = 9
"""Step sizes from 1/2 to 1/512."""

REACH = 4.2
"""Where the double exponential substitutions end: weights beyond are below the rounding error of the sum."""


def crps_by_quadrature(
    target: FloatArray, cdf: Cdf, sf: Cdf, centre: FloatArray, scale: FloatArray
) -> FloatArray:
    """``integral of F^2`` below the truth plus ``integral of (1 - F)^2`` above it; NaN where that is too inexact.

    Each of three ranges, from minus infinity to the lower of truth and ``centre``, between them, and on to infinity,
    is integrated by a double exponential substitution [1]_ whose step is halved until the total changes by less than
    a tenth of `TOLERANCE`.

    Parameters
    ----------
    target : float64 array, shape (n,)
    cdf, sf : callable
        Distribution function and its complement, of arrays of shape (n,).
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
        above = np.square(sf(high + scale * out))
        share = 1 / (1 + math.exp(-2 * bend))
        place = low + (high - low) * share
        between = np.where(middle > 0, np.square(cdf(place)), np.square(sf(place)))
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


Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Law:
    """One univariate distribution per sample.

    ``quantile`` and ``sf`` are None if the object lacks them. ``mass`` is the probability function of a discrete
    distribution, and ``log_density`` its log. ``named`` is the scipy distribution behind the object, ``mixture`` the
    (means, stds, weights) of a mixture of normals.
    """

    cdf: Function | None
    log_density: Function | None
    mean: FloatArray | None
    std: FloatArray | None
    quantile: Function | None = None
    sf: Function | None = None
    mass: Function | None = None
    named: Any = None
    mixture: tuple[FloatArray, FloatArray, FloatArray] | None = None


def read_law(dist: Any) -> Law:
    """Read a distribution object."""
    frozen = _scipy_of(dist)
    if frozen is not None:
        return _of_scipy(frozen)
    dist = _unwrapped(dist)
    components = _normal_components(dist)
    if components is not None:
        return Law(None, None, None, None, mixture=components)
    if _is_multivariate(dist):
        return _marginals(dist)
    known = _from_torch(dist)
    return _of_scipy(known) if known is not None else _by_duck_typing(dist)


def _scipy_of(dist: Any) -> Any:
    """The frozen scipy distribution that an object is, or wraps as NGBoost's do."""
    for candidate in (dist, getattr(dist, "dist", None)):
        if type(candidate).__module__.startswith("scipy.stats") and hasattr(candidate, "ppf"):
            return candidate
    return None


def _of_scipy(dist: Any) -> Law:
    discrete = hasattr(dist, "pmf")
    return Law(
        dist.cdf,
        dist.logpmf if discrete else dist.logpdf,
        np.asarray(dist.mean(), dtype=float),
        np.asarray(dist.std(), dtype=float),
        dist.ppf,
        dist.sf,
        dist.pmf if discrete else None,
        named=dist,
    )


def _unwrapped(dist: Any) -> Any:
    """What torch's ``Independent`` wraps: the marginals."""
    while type(dist).__name__ == "Independent" and hasattr(dist, "base_dist"):
        dist = dist.base_dist
    return dist


def _values(value: Any) -> FloatArray:
    """An array of floats from any library; methods are called."""
    value = value() if callable(value) else value
    return np.asarray(read_floats(value, "the distribution").values, dtype=np.float64)


def _is_multivariate(dist: Any) -> bool:
    shape = getattr(dist, "event_shape", ())
    return bool(tuple(shape)) if not callable(shape) else False


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


def _normal_components(dist: Any) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Means, stds and weights of a torch mixture of normals, components last."""
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


def _from_torch(dist: Any) -> Any:
    """The same distribution from scipy, if an object comes from ``torch.distributions`` and is in `TORCH`."""
    if not type(dist).__module__.startswith("torch.distributions") or type(dist).__name__ not in TORCH:
        return None
    from scipy import stats

    name, parameters = TORCH[type(dist).__name__]
    made = {
        key: source(dist) if callable(source) else _values(getattr(dist, source))
        for key, source in parameters.items()
    }
    return getattr(stats, name)(**made)


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
        _wrapped(dist, dist.sf) if callable(getattr(dist, "sf", None)) else None,
    )


def _wrapped(dist: Any, function: Callable[[Any], Any]) -> Function:
    """A function of numpy arrays, whatever arrays the object uses."""

    def call(values: FloatArray) -> FloatArray:
        try:
            return _values(function(_like(dist, values)))
        except NotImplementedError as error:
            raise InputTypeError(
                f"{type(dist).__name__}.{getattr(function, '__name__', 'function')} is not implemented by its "
                "library; pass draws with Predictions.from_samples, or Predictions.from_density"
            ) from error

    return call


def _like(dist: Any, values: FloatArray) -> Any:
    """Values as the tensors that a torch distribution expects, or unchanged."""
    mean: Any = getattr(dist, "mean", None)
    if type(mean).__module__.split(".")[0] == "torch":
        import torch

        return torch.as_tensor(values, dtype=mean.dtype, device=mean.device)
    return values
