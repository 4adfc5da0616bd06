"""Scores of the whole predictive distribution: proper scoring rules under three families."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from uq_tracking.families import GAUSSIAN, LAPLACE, SQRT2, SQRT3, UNIFORM, FloatArray, Proper, family_of
from uq_tracking.metrics.registry import Metric, Undefined, shared
from uq_tracking.settings import Settings
from uq_tracking.statistics.grouped import Block
from uq_tracking.parallel import inner
from uq_tracking.statistics.statistics import Statistics

LEVELS = np.arange(1, 100) / 100
"""Levels .01 ... .99 of the interval and quantile scores."""

FAMILIES: dict[str, Proper] = {"": GAUSSIAN, "_laplace": LAPLACE, "_uniform": UNIFORM}


FAMILY_PAYLOADS = ("std", "z", "error", "inv_std", "inv_sqrt_std")


def require_density(statistics: Statistics) -> None:
    """Raise ``Undefined`` where a standard deviation of zero leaves no density."""
    zero = statistics.counts["n_zero_std"]
    if zero and statistics.moments["std"].low <= 0:
        raise Undefined(f"{zero} samples have a standard deviation of 0, which has no density; set std_floor")


@dataclass(frozen=True)
class FamilySums:
    """Sums over samples of what the scores of one family are made of; the densities are NaN beside a zero std."""

    crps: float
    density: float
    """Of p(y)."""
    density_root: float
    """Of p(y) sqrt(s), the density standardised half way."""
    distance: float
    """Of |z|."""


def family_sums(statistics: Statistics, family: Proper) -> FamilySums:
    """Sums of one family; one pass over the z groups makes those of all."""
    return shared(statistics, "family_sums", lambda: _sums_of_families(statistics))[family.name]


def _sums_of_families(statistics: Statistics) -> dict[str, FamilySums]:
    passes = statistics.orders["z"].map_blocks(_block_sums, FAMILY_PAYLOADS, ties=False)
    totals = np.sum(passes, axis=0)
    missed = _missed_point_masses(statistics)
    return {
        one.name: FamilySums(crps + missed, *rest)
        for one, (crps, *rest) in zip(FAMILIES.values(), totals.tolist(), strict=True)
    }


def _block_sums(block: Block) -> list[list[float]]:
    """``FamilySums`` of the groups of a block, for each family.

    A function of z is taken at the group's mean z, weighted as the sum is where the statistics know that mean
    (``sum(std z) = sum(error)``): exact for exact groups, second order in the width of a sketch's buckets.
    """
    std, inverse, root = block.sums["std"], block.sums["inv_std"], block.sums["inv_sqrt_std"]
    if block.high is block.low:
        plain = centre = _or_zero(block.low)
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            plain = _or_zero(block.sums["z"] / block.count)
            centre = _or_zero(np.clip(block.sums["error"] / std, block.low, block.high))
    distance = inner(block.count, np.abs(plain))
    made = []
    for family in FAMILIES.values():
        density = family.pdf(plain)
        with np.errstate(invalid="ignore"):
            sums = [inner(weight, density) for weight in (inverse, root)]
        crps = family.crps(centre, density if centre is plain else None)
        made.append([inner(std, crps), *sums, distance])
    return made


def _or_zero(z: FloatArray) -> FloatArray:
    """Zero in place of the z of point masses, which have no std and no density to ask for."""
    return np.where(np.isfinite(z), z, 0.0)


def _missed_point_masses(statistics: Statistics) -> float:
    """Sum of |e| over samples with std 0 and an error, which is their CRPS."""
    groups = statistics.orders["z"]
    below, above = groups.position([-np.inf])[0], groups.position([np.inf], side="left")[0]
    if below == 0 and above == groups.total:
        return 0.0
    parts = groups.cumulative("error", [below, above, groups.total])
    return float(parts[2] - parts[1] - parts[0])


def _nll_gaussian(statistics: Statistics) -> float:
    return 0.5 * math.log(2 * math.pi) + 0.5 * statistics.orders["z"].sum("z2") / statistics.n


def _nll_laplace(statistics: Statistics) -> float:
    return 0.5 * math.log(2) + SQRT2 * family_sums(statistics, LAPLACE).distance / statistics.n


def _nll_uniform(statistics: Statistics) -> float:
    inside = statistics.orders["z"].position([SQRT3])[0] - statistics.orders["z"].position([-SQRT3], side="left")[0]
    outside = 1 - inside / statistics.n
    if inside < statistics.n:
        raise Undefined(
            f"{outside:.3g} of the targets lie outside the uniform distribution's support, where the log score "
            "is infinite"
        )
    return math.log(2 * SQRT3)


_NLL = {"": _nll_gaussian, "_laplace": _nll_laplace, "_uniform": _nll_uniform}


def nll(statistics: Statistics, suffix: str) -> float:
    """Mean negative log density.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score("nll" + family) for family in ("", "_laplace", "_uniform")]
    [0.222825, 0.475533, 0.0789789]
    """
    require_density(statistics)
    return _NLL[suffix](statistics) + statistics.sums["log_std"] / statistics.n


def crps(statistics: Statistics, suffix: str) -> float:
    """Mean continuous ranked probability score; of a point mass it is the absolute error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score("crps" + family) for family in ("", "_laplace", "_uniform")]
    [0.214086, 0.224836, 0.207686]
    """
    return family_sums(statistics, FAMILIES[suffix]).crps / statistics.n


def quadratic_score(statistics: Statistics, suffix: str) -> float:
    """Mean of ``2 p(y) - integral of p^2``.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score("quadratic_score" + family) for family in ("", "_laplace", "_uniform")]
    [0.961267, 0.348853, 1.06649]
    """
    require_density(statistics)
    family = FAMILIES[suffix]
    square = family.pdf_square_integral * statistics.orders["z"].sum("inv_std")
    return (2 * family_sums(statistics, family).density - square) / statistics.n


def spherical_score(statistics: Statistics, suffix: str) -> float:
    """Mean of ``p(y) / sqrt(integral of p^2)``.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score("spherical_score" + family) for family in ("", "_laplace", "_uniform")]
    [0.931098, 0.685576, 0.994778]
    """
    require_density(statistics)
    family = FAMILIES[suffix]
    return family_sums(statistics, family).density_root / math.sqrt(family.pdf_square_integral) / statistics.n


def interval_score(statistics: Statistics, settings: Settings) -> float:
    """Winkler score averaged over the central levels .01 ... .99.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("interval_score")
    0.948169
    """
    half = family_of(settings).central(LEVELS)
    n, groups = statistics.n, statistics.orders["z"]
    std_sum, error_sum = groups.sum("std"), groups.sum("error")
    low, high = groups.position(-half, side="left"), groups.position(half)
    below = -groups.cumulative("error", low) - half * groups.cumulative("std", low)
    above = (error_sum - groups.cumulative("error", high)) - half * (std_sum - groups.cumulative("std", high))
    score = 2 * half * std_sum + 2 / (1 - LEVELS) * (below + above)
    return float(score.mean() / n)


def pinball(statistics: Statistics, settings: Settings) -> float:
    """Pinball loss averaged over the quantiles .01 ... .99.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("pinball")
    0.108107
    """
    quantile = family_of(settings).quantile(LEVELS)
    n, groups = statistics.n, statistics.orders["z"]
    position = groups.position(quantile)
    whole = groups.sum("error") - quantile * groups.sum("std")
    below = groups.cumulative("error", position) - quantile * groups.cumulative("std", position)
    return float((LEVELS * whole - below).mean() / n)


Score = Callable[[Statistics, str], float]


def _bind(score: Score, suffix: str) -> Callable[[Statistics, Settings], float]:
    def metric(statistics: Statistics, settings: Settings) -> float:
        return score(statistics, suffix)

    metric.__doc__ = score.__doc__
    return metric


def _families(
    key: str,
    score: Score,
    direction: Literal["lower", "higher"],
    unit: Literal["nats", "target", "1/target", "1/sqrt(target)"],
    summary: str,
    formula: str,
    source: str,
    least: float = -math.inf,
) -> list[Metric]:
    names = {"": "Gaussian", "_laplace": "Laplace", "_uniform": "uniform"}
    return [
        Metric(
            key + suffix,
            _bind(score, suffix),
            direction,
            unit,
            f"{summary} under a {name} distribution",
            formula,
            source,
            bounds=(least, math.inf),
        )
        for suffix, name in names.items()
    ]


METRICS = [
    *_families(
        "nll",
        nll,
        "lower",
        "nats",
        "Negative log likelihood",
        "mean -log p(y)",
        "MeRCI 2018 eq. 5; Levi 2019 eq. 10",
    ),
    *_families(
        "crps",
        crps,
        "lower",
        "target",
        "Continuous ranked probability score",
        "mean of integral (F(t) - 1[t >= y])^2 dt, closed form",
        "MeRCI 2018 eq. 7; Gneiting and Raftery 2007",
        least=0,
    ),
    *_families(
        "quadratic_score",
        quadratic_score,
        "higher",
        "1/target",
        "Quadratic score",
        "mean 2 p(y) - integral p^2",
        "MeRCI 2018 eq. 4",
    ),
    *_families(
        "spherical_score",
        spherical_score,
        "higher",
        "1/sqrt(target)",
        "Spherical score",
        "mean p(y) / sqrt(integral p^2)",
        "MeRCI 2018 eq. 6",
        least=0,
    ),
    Metric(
        "interval_score",
        interval_score,
        "lower",
        "target",
        "Winkler score of the central intervals .01 ... .99",
        "mean over levels p of mean (u - l) + 2/(1 - p) ((l - y)+ + (y - u)+)",
        "Gneiting and Raftery 2007 eq. 43; grid as uncertainty-toolbox",
        bounds=(0, math.inf),
    ),
    Metric(
        "pinball",
        pinball,
        "lower",
        "target",
        "Pinball loss of the quantiles .01 ... .99",
        "mean over p of mean max(p (y - q_p), (p - 1)(y - q_p))",
        "Koenker and Bassett 1978; grid as uncertainty-toolbox' check score",
        bounds=(0, math.inf),
    ),
]
