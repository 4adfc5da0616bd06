"""One interface to distribution objects of scipy, torch, NGBoost, GPyTorch and TensorFlow Probability.

No library is imported for it: an object is read by what it offers (``cdf``, ``log_prob`` or ``logpdf``, ``mean``,
``std`` or ``stddev`` or ``variance``, ``ppf``, ``icdf`` or ``quantile``), as values or as methods.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uq_tracking.errors import InputTypeError
from uq_tracking.inputs.convert import FloatArray, read_floats

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
