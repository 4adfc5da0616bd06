"""Proper scores of the predicted distribution, from the definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ..literal import (
    LEVELS,
    LITERAL,
    Floats,
    Phi,
    UndefinedScoreError,
    central,
    errors,
    literal,
    mean,
    phi,
    positive,
    quantile,
)


def gaussian_density(e: float, s: float) -> float:
    return phi(e / s) / s


def laplace_density(e: float, s: float) -> float:
    b = s / math.sqrt(2.0)
    return math.exp(-abs(e) / b) / (2.0 * b)


def uniform_density(e: float, s: float) -> float:
    w = s * math.sqrt(3.0)
    return 1.0 / (2.0 * w) if abs(e) <= w else 0.0


def gaussian_energy(s: float) -> float:
    """Integral of the squared density."""
    return 1.0 / (2.0 * s * math.sqrt(math.pi))


def laplace_energy(s: float) -> float:
    return 1.0 / (4.0 * (s / math.sqrt(2.0)))


def uniform_energy(s: float) -> float:
    return 1.0 / (2.0 * s * math.sqrt(3.0))


DENSITIES: dict[str, tuple[Callable[[float, float], float], Callable[[float], float]]] = {
    "": (gaussian_density, gaussian_energy),
    "_laplace": (laplace_density, laplace_energy),
    "_uniform": (uniform_density, uniform_energy),
}


@literal
def nll(y: Floats, mu: Floats, s: Floats) -> float:
    s = positive(s, "nll")
    return mean(
        [
            0.5 * math.log(2.0 * math.pi) + math.log(d) + 0.5 * (e / d) ** 2
            for e, d in zip(errors(y, mu), s, strict=True)
        ]
    )


@literal
def nll_laplace(y: Floats, mu: Floats, s: Floats) -> float:
    s = positive(s, "nll_laplace")
    return mean(
        [
            math.log(2.0) + math.log(d / math.sqrt(2.0)) + abs(e) / (d / math.sqrt(2.0))
            for e, d in zip(errors(y, mu), s, strict=True)
        ]
    )


@literal
def nll_uniform(y: Floats, mu: Floats, s: Floats) -> float:
    s = positive(s, "nll_uniform")
    if any(abs(e) > d * math.sqrt(3.0) for e, d in zip(errors(y, mu), s, strict=True)):
        raise UndefinedScoreError("a target lies outside the support: the score is infinite")
    return mean([math.log(2.0) + math.log(d * math.sqrt(3.0)) for d in s])


def crps_gaussian_at(e: float, s: float) -> float:
    if s == 0:
        return abs(e)
    z = e / s
    return s * (z * (2.0 * Phi(z) - 1.0) + 2.0 * phi(z) - 1.0 / math.sqrt(math.pi))


def crps_laplace_at(e: float, s: float) -> float:
    if s == 0:
        return abs(e)
    b = s / math.sqrt(2.0)
    return abs(e) + b * math.exp(-abs(e) / b) - 0.75 * b


def crps_uniform_at(e: float, s: float) -> float:
    if s == 0:
        return abs(e)
    w = s * math.sqrt(3.0)
    return e * e / (2.0 * w) + w / 6.0 if abs(e) <= w else abs(e) - w / 3.0


@literal
def crps(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([crps_gaussian_at(e, float(d)) for e, d in zip(errors(y, mu), s, strict=True)])


@literal
def crps_gain(y: Floats, mu: Floats, s: Floats) -> float:
    """Against the constant std c at which ``exp(-e^2 / 2 c^2)`` is sqrt(1/2) on average, found by bisection."""
    errs = errors(y, mu)
    top = max(abs(e) for e in errs)
    if top == 0.0:
        raise UndefinedScoreError("all errors are 0")

    def share(c: float) -> float:
        return mean([math.exp(-0.5 * (e / c) ** 2) for e in errs])

    low, high = top * 1e-12, top * 100.0
    if share(low) >= math.sqrt(0.5):
        return 1.0 - crps(y, mu, s) / mean([abs(e) for e in errs])
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if share(middle) < math.sqrt(0.5) else (low, middle)
    return 1.0 - crps(y, mu, s) / mean([crps_gaussian_at(e, low) for e in errs])


@literal
def crps_laplace(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([crps_laplace_at(e, float(d)) for e, d in zip(errors(y, mu), s, strict=True)])


@literal
def crps_uniform(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([crps_uniform_at(e, float(d)) for e, d in zip(errors(y, mu), s, strict=True)])


def quadratic_score(y: Floats, mu: Floats, s: Floats, prior: str = "") -> float:
    density, energy = DENSITIES[prior]
    s = positive(s, "quadratic_score")
    return mean([2.0 * density(e, d) - energy(d) for e, d in zip(errors(y, mu), s, strict=True)])


def spherical_score(y: Floats, mu: Floats, s: Floats, prior: str = "") -> float:
    density, energy = DENSITIES[prior]
    s = positive(s, "spherical_score")
    return mean([density(e, d) / math.sqrt(energy(d)) for e, d in zip(errors(y, mu), s, strict=True)])


@literal
def interval_score(y: Floats, mu: Floats, s: Floats) -> float:
    """Width plus 2/(1 - p) times how far the target is outside, averaged over samples and 99 levels."""
    scores = []
    for p in LEVELS:
        k = central(p)
        for e, d in zip(errors(y, mu), s, strict=True):
            outside = max(0.0, abs(e) - k * float(d))
            scores.append(2.0 * k * float(d) + 2.0 / (1.0 - p) * outside)
    return mean(scores)


@literal
def pinball(y: Floats, mu: Floats, s: Floats) -> float:
    """Loss q * (y - x) above the predicted quantile x and (1 - q) * (x - y) below, over 99 levels q."""
    losses = []
    for q in LEVELS:
        k = quantile(q)
        for e, d in zip(errors(y, mu), s, strict=True):
            above = e - k * float(d)
            losses.append(q * above if above >= 0.0 else (q - 1.0) * above)
    return mean(losses)


for prior in DENSITIES:
    LITERAL["quadratic_score" + prior] = partial(quadratic_score, prior=prior)
    LITERAL["spherical_score" + prior] = partial(spherical_score, prior=prior)
