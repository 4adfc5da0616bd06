"""Scores of the whole predictive distribution: proper scoring rules under the declared family and under priors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.families import GAUSSIAN, LAPLACE, SQRT2, SQRT3, UNIFORM, FloatArray, Standard, family_of
from uq_tracking.inputs.forms.form import LEVELS as LEVELS
from uq_tracking.metrics.groups import mean_of_z
from uq_tracking.metrics.other_forms import form_score, in_unit
from uq_tracking.metrics.registry import Infinite, Metric, Undefined, intermediate, metric
from uq_tracking.parallel import inner
from uq_tracking.settings import Settings
from uq_tracking.statistics.exact import FEW
from uq_tracking.statistics.orders import SHORT, Block
from uq_tracking.statistics.regression import is_distribution
from uq_tracking.statistics.statistics import Statistics

PRIORS: dict[str, Standard] = {"_gaussian": GAUSSIAN, "_laplace": LAPLACE, "_uniform": UNIFORM}
"""What-if distributions with the same mean and standard deviation (MeRCI 2018), by the suffix of their keys."""


CONSTANTS, CLOSE = (-30.0, 5.0), 1e-9
"""Range of the logarithm of the best constant std over the largest error, and how exactly it is found."""

CELLS = 1 << 12
"""Of more than ``FEW`` samples, the errors are averaged over this many cells, which moves the score by some 1e-8."""

FAMILY_PAYLOADS = ("std", "z", "error", "inv_std", "inv_sqrt_std")


def require_density(statistics: Statistics) -> None:
    """Raise ``Undefined`` if a standard deviation of zero leaves no density."""
    zero = statistics.counts["n_zero_std"]
    if zero and statistics.moments["std"].low <= 0:
        raise Undefined(f"{zero} samples have a standard deviation of 0, which has no density; set std_floor")


@dataclass(frozen=True)
class FamilySums:
    """Sums over samples for the scores under one family; the densities are NaN if there is a zero std."""

    crps: float
    density: float
    """Sum of p(y)."""
    density_root: float
    """Sum of p(y) sqrt(s), the density standardized half-way."""
    distance: float
    """Sum of |z|."""
    inverse: float
    """Sum of 1 / s."""


def family_behind(statistics: Statistics, settings: Settings, suffix: str) -> Standard:
    """The declared family, or the prior that a suffix names, with the same standard deviation."""
    if not suffix:
        return family_of(settings)
    require_variance(statistics, settings)
    return PRIORS[suffix]


def require_variance(statistics: Statistics, settings: Settings) -> None:
    """Raise ``Undefined`` if the predicted distribution has no variance, so that predictions hold scales."""
    if not family_of(settings).has_variance:
        raise Undefined(
            f"a Student t with dof={settings.dof:g} has no variance; its predictions hold a scale"
        )
    if statistics.facts.get("spread"):
        raise Undefined("a predicted distribution has no variance; its scale is the interquartile range")


def density_behind(statistics: Statistics, settings: Settings, suffix: str) -> Standard:
    """``family_behind`` if it has a density: not for a table of shares, nor with a standard deviation of 0."""
    family = family_behind(statistics, settings, suffix)
    if math.isnan(family.pdf_square_integral):
        raise Undefined(
            "the recalibrated distribution is a table of shares, which has no density; crps scores it"
        )
    require_density(statistics)
    return family


@intermediate
def family_sums(statistics: Statistics, family: Standard) -> FamilySums:
    """Sums for one family.

    A function of z is evaluated at the bucket's mean z, weighted like the sum if the statistics know that mean
    (``sum(std z) = sum(error)``): exact for exact statistics, second order in the bucket width of a sketch.
    """

    def block_sums(block: Block) -> list[float]:
        std, inverse, root = block.sums["std"], block.sums["inv_std"], block.sums["inv_sqrt_std"]
        if block.high is block.low:
            plain = centre = _or_zero(block.low)
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                plain = _or_zero(block.sums["z"] / block.count)
                centre = _or_zero(np.clip(block.sums["error"] / std, block.low, block.high))
        missed = float(np.abs(block.sums["error"][np.isinf(block.low)]).sum())  # the CRPS of a point mass
        density = family.pdf(plain)
        crps = inner(std, family.crps(centre, density if centre is plain else None)) + missed
        with np.errstate(invalid="ignore"):
            densities = inner(inverse, density), inner(root, density)
        return [crps, *densities, inner(block.count, np.abs(plain)), float(inverse.sum())]

    passes = statistics.orders["z"].map_blocks(block_sums, FAMILY_PAYLOADS, "unordered")
    return FamilySums(*np.sum(passes, axis=0).tolist())


def _or_zero(z: FloatArray) -> FloatArray:
    """Zeros instead of z for point masses, which have no std and no density."""
    finite = np.isfinite(z)
    return z if finite.all() else np.where(finite, z, 0.0)


def share_within(statistics: Statistics, reach: npt.ArrayLike) -> FloatArray:
    """Share of the samples whose absolute z is at most each of these."""
    order, half = statistics.orders["z"], np.asarray(reach, dtype=np.float64)
    return np.minimum((order.position(half) - order.position(-half, side="left")) / statistics.n, 1.0)


def _nll_of_z(family: Standard, statistics: Statistics) -> float:
    """Mean negative log density of z: of priors by what they have in closed form."""
    if family is GAUSSIAN:
        z = statistics.moments["z"]
        return 0.5 * math.log(2 * math.pi) + 0.5 * (z.variance() + z.mean * z.mean)
    if family is LAPLACE:
        return 0.5 * math.log(2) + SQRT2 * family_sums(statistics, LAPLACE).distance / statistics.n
    if family is UNIFORM:
        inside = share_within(statistics, SQRT3)[0]
        if inside < SHORT:
            raise Infinite(f"{1 - inside:.3g} of the targets lie outside the uniform distribution's support")
        return math.log(2 * SQRT3)
    return -mean_of_z(statistics, lambda z: family.log_pdf(_or_zero(z)))


def _beside_another(statistics: Statistics, settings: Settings) -> bool:
    """Return whether a Gaussian prior differs from the predicted distribution."""
    return is_distribution(statistics) or family_of(settings) is not GAUSSIAN


def _averages_squares(statistics: Any, settings: Settings) -> bool:
    """Return whether the log score is that of Gaussian distributions."""
    return settings.family == "gaussian" and not is_distribution(statistics)


Score = Callable[[Statistics, Settings, str], float]


def proper_score(of_distribution: Metric) -> Callable[[Score], Score]:
    """Declare the score of the predicted distribution, the form's own if it has one, and that under each prior."""
    names = {"_gaussian": "a Gaussian", "_laplace": "a Laplace", "_uniform": "a uniform"}

    def declare(of_family: Score) -> Score:
        @wraps(of_family)
        def score(statistics: Statistics, settings: Settings, suffix: str) -> float:
            if is_distribution(statistics) and not suffix:
                return form_score(statistics, named.key)
            return of_family(statistics, settings, suffix)

        named = of_distribution.named_after(of_family)
        whole = f"{named.summary} under the predicted distribution"
        replace(named, summary=whole, arguments={"suffix": ""})(score)
        for suffix, name in names.items():
            replace(
                named,
                key=named.key + suffix,
                summary=f"{named.summary} under {name} distribution",
                when=_beside_another if suffix == "_gaussian" else None,
                headline=False,
                arguments={"suffix": suffix},
                squares=suffix == "_gaussian" and bool(named.squares),
                of_levels=False,
                in_curves=False,
                means=(),
            )(score)
        return score

    return declare


@proper_score(
    metric(
        family="scoring",
        direction="lower",
        unit="nats",
        formula="mean -log p(y)",
        source="MeRCI 2018 eq. 5; Levi 2019 eq. 10",
        headline=True,
        swept=True,
        squares=_averages_squares,
        in_curves=True,
        means=("nll",),
    )
)
def nll(statistics: Statistics, settings: Settings, suffix: str) -> float:
    """Negative log likelihood.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score("nll" + family) for family in ("", "_laplace", "_uniform")]
    [0.222825, 0.475533, 0.0789789]
    """
    family = density_behind(statistics, settings, suffix)
    return _nll_of_z(family, statistics) + statistics.sums["log_std"] / statistics.n


@proper_score(
    in_unit(
        formula="mean of integral (F(t) - 1[t >= y])^2 dt, closed form",
        source="MeRCI 2018 eq. 7; Gneiting and Raftery 2007",
        headline=True,
        swept=True,
        of_levels=True,
        means=("crps",),
    )
)
def crps(statistics: Statistics, settings: Settings, suffix: str) -> float:
    """Continuous ranked probability score.

    For a point mass it is the absolute error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score("crps" + family) for family in ("", "_laplace", "_uniform")]
    [0.214086, 0.224836, 0.207686]
    """
    family = family_behind(statistics, settings, suffix)
    if not family.has_crps:
        raise Infinite(f"a Student t with dof={settings.dof:g} has no finite mean distance")
    return family_sums(statistics, family).crps / statistics.n


@metric(
    family="scoring",
    direction="higher",
    formula="1 - CRPS / CRPS of the same means with the constant std that scores best",
    source="Skill score as in Gneiting and Raftery 2007",
    bounds=(-math.inf, 1),
    of_levels=True,
)
def crps_gain(statistics: Statistics, settings: Settings) -> float:
    """Share by which the stds lower the CRPS against the best constant std; 0.05 is good.

    Of calibrated Gaussians whose stds are gamma variables with a coefficient of variation of .25, .5 and 1 it is
    .015, .053 and .145; stds that say nothing, or have the wrong size, score below 0. The constant has the declared
    family; where predictions are other forms or a recalibrated table, it is the std of a Gaussian.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("crps_gain")
    0.0876173
    """
    family = family_of(settings)
    if not family.has_crps:
        raise Undefined(f"a Student t with dof={settings.dof:g} has no finite mean distance")
    score = crps(statistics, settings, "")
    if is_distribution(statistics) or math.isnan(family.pdf_square_integral):
        family = GAUSSIAN
    constant = _crps_of_best_constant(statistics, family)
    if constant == 0:
        raise Undefined(
            "all errors are 0, so a constant std of 0 has a CRPS of 0, and there is no share of it"
        )
    return 1 - score / constant


@intermediate
def _crps_of_best_constant(statistics: Statistics, family: Standard) -> float:
    """Mean CRPS with the constant scale c that makes it lowest.

    It is convex in c. For a symmetric family and z = |e| / c its slope is ``mean of crps(z) - z (2 F(z) - 1)``; of a
    Gaussian it is 0 if ``exp(-z^2 / 2)`` is sqrt(1/2) on average.
    """
    from scipy.optimize import brentq

    order = statistics.orders["abs_error"]
    ends = np.concatenate([[0.0], *order.map_blocks(lambda block: block.ends, (), "free")])
    if len(ends) > FEW + 1:
        ends = ends[np.linspace(0, len(ends) - 1, CELLS + 1).astype(np.int64)]
    held = np.flatnonzero(np.diff(ends) > 0)
    share = np.diff(ends)[held]
    size = np.diff(order.cumulative("abs_error", ends))[held] / share
    share /= share.sum()
    largest = float(size.max())
    if largest == 0:
        return 0.0

    def slope(log_scale: float) -> float:
        z = size / (largest * math.exp(log_scale))
        return inner(share, family.crps(z) - z * (2 * family.cdf(z) - 1))

    if slope(CONSTANTS[0]) >= 0:  # most errors are 0: the best is a point mass
        return inner(share, size)
    scale = largest * math.exp(brentq(slope, *CONSTANTS, xtol=CLOSE))
    return scale * inner(share, family.crps(size / scale))


@proper_score(
    metric(
        family="scoring",
        direction="higher",
        unit="1/target",
        formula="mean 2 p(y) - integral p^2",
        source="MeRCI 2018 eq. 4",
        swept=True,
    )
)
def quadratic_score(statistics: Statistics, settings: Settings, suffix: str) -> float:
    """Quadratic score.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score("quadratic_score" + family) for family in ("", "_laplace", "_uniform")]
    [0.961267, 0.348853, 1.06649]
    """
    family = density_behind(statistics, settings, suffix)
    sums = family_sums(statistics, family)
    return (2 * sums.density - family.pdf_square_integral * sums.inverse) / statistics.n


@proper_score(
    metric(
        family="scoring",
        direction="higher",
        unit="1/sqrt(target)",
        formula="mean p(y) / sqrt(integral p^2)",
        source="MeRCI 2018 eq. 6",
        bounds=(0, math.inf),
        swept=True,
    )
)
def spherical_score(statistics: Statistics, settings: Settings, suffix: str) -> float:
    """Spherical score.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> [example_score("spherical_score" + family) for family in ("", "_laplace", "_uniform")]
    [0.931098, 0.685576, 0.994778]
    """
    family = density_behind(statistics, settings, suffix)
    return family_sums(statistics, family).density_root / math.sqrt(family.pdf_square_integral) / statistics.n


@in_unit(
    formula="mean over levels p of mean (u - l) + 2/(1 - p) ((l - y)+ + (y - u)+)",
    source="Gneiting and Raftery 2007 eq. 43; grid as uncertainty-toolbox",
    swept=True,
    means=("interval_score",),
)
def interval_score(statistics: Statistics, settings: Settings) -> float:
    """Winkler score of the central intervals .01 ... .99.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("interval_score")
    0.948169
    """
    if is_distribution(statistics):
        return form_score(statistics, "interval_score")
    half = family_of(settings).central(LEVELS)
    n, order = statistics.n, statistics.orders["z"]
    std_sum, error_sum = order.sum("std"), order.sum("error")
    low, high = order.position(-half, side="left"), order.position(half)
    below = -order.cumulative("error", low) - half * order.cumulative("std", low)
    above = (error_sum - order.cumulative("error", high)) - half * (std_sum - order.cumulative("std", high))
    score = 2 * half * std_sum + 2 / (1 - LEVELS) * (below + above)
    return float(score.mean() / n)


@in_unit(
    formula="mean over p of mean max(p (y - q_p), (p - 1)(y - q_p))",
    source="Koenker and Bassett 1978; grid as uncertainty-toolbox' check score",
    swept=True,
    of_levels=True,
    means=("pinball",),
)
def pinball(statistics: Statistics, settings: Settings) -> float:
    """Pinball loss of the quantiles .01 ... .99.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("pinball")
    0.108107
    """
    if is_distribution(statistics):
        return form_score(statistics, "pinball")
    quantile = family_of(settings).quantile(LEVELS)
    n, order = statistics.n, statistics.orders["z"]
    position = order.position(quantile)
    whole = order.sum("error") - quantile * order.sum("std")
    below = order.cumulative("error", position) - quantile * order.cumulative("std", position)
    return float((LEVELS * whole - below).mean() / n)
