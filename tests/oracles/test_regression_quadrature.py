"""Every closed form of a score against numerical integration of its definition."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from . import datasets
from .literal import LEVELS, LITERAL, central, quantile
from .regression import scoring

SQRT3 = math.sqrt(3.0)
CASES = [(e, s) for s in (0.3, 1.0, 2.5) for e in (-4.0, -1.2, -0.1, 0.0, 0.45, 1.7, 6.0)]
DISTRIBUTIONS = {
    "": lambda s: stats.norm(0.0, s),
    "_laplace": lambda s: stats.laplace(0.0, s / math.sqrt(2.0)),
    "_uniform": lambda s: stats.uniform(-s * SQRT3, 2.0 * s * SQRT3),
}
CRPS = {
    "": scoring.crps_gaussian_at,
    "_laplace": scoring.crps_laplace_at,
    "_uniform": scoring.crps_uniform_at,
}


def integral(f, s, *breaks):
    """Integrate piecewise between the places where the integrand or its slope jumps."""
    edges = sorted({-60.0 * s - 10.0, 60.0 * s + 10.0, 0.0, -SQRT3 * s, SQRT3 * s, *breaks})
    pieces = [integrate.quad(f, a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0] for a, b in pairwise(edges)]
    return math.fsum(pieces)


@pytest.mark.parametrize(("e", "s"), CASES)
@pytest.mark.parametrize("prior", DISTRIBUTIONS)
def test_crps_is_the_integrated_squared_difference_of_distribution_functions(prior, e, s):
    f = DISTRIBUTIONS[prior](s)
    below = integral(lambda x: f.cdf(x) ** 2 if x <= e else 0.0, s, e)
    above = integral(lambda x: f.sf(x) ** 2 if x > e else 0.0, s, e)
    assert CRPS[prior](e, s) == pytest.approx(below + above, rel=1e-8)


@pytest.mark.parametrize("s", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("prior", DISTRIBUTIONS)
def test_integral_of_the_squared_density(prior, s):
    density, energy = scoring.DENSITIES[prior]
    assert energy(s) == pytest.approx(integral(lambda x: density(x, s) ** 2, s), rel=1e-8)


@pytest.mark.parametrize(("e", "s"), CASES)
@pytest.mark.parametrize("prior", DISTRIBUTIONS)
def test_quadratic_and_spherical_scores(prior, e, s):
    p = DISTRIBUTIONS[prior](s)
    energy = integral(lambda x: p.pdf(x) ** 2, s)
    one = [e], [0.0], [s]
    assert scoring.quadratic_score(*one, prior) == pytest.approx(2.0 * p.pdf(e) - energy, rel=1e-8)
    assert scoring.spherical_score(*one, prior) == pytest.approx(p.pdf(e) / math.sqrt(energy), rel=1e-8)


@pytest.mark.parametrize("prior", DISTRIBUTIONS)
def test_scores_of_a_data_set_are_means_over_its_samples(prior):
    d = datasets.REGRESSION["few_std"]()
    density = np.array([DISTRIBUTIONS[prior](s).pdf(e) for e, s in zip(d.y - d.mu, d.s, strict=True)])
    energy = np.array([scoring.DENSITIES[prior][1](s) for s in d.s])
    quadratic = LITERAL["quadratic_score" + prior](d.y, d.mu, d.s)
    assert quadratic == pytest.approx(np.mean(2 * density - energy), rel=1e-11)
    spherical = LITERAL["spherical_score" + prior](d.y, d.mu, d.s)
    assert spherical == pytest.approx(np.mean(density / np.sqrt(energy)), rel=1e-11)


@pytest.mark.parametrize(("e", "s"), CASES)
def test_pinball_and_interval_scores_approach_the_crps(e, s):
    """Twice the pinball loss averaged over all levels is the CRPS; 99 levels leave out the two tails."""
    losses = [2.0 * max(q * (e - quantile(q) * s), (q - 1.0) * (e - quantile(q) * s)) for q in LEVELS]
    assert 2.0 * scoring.pinball([e], [0.0], [s]) == pytest.approx(np.mean(losses), rel=1e-12)
    assert 2.0 * scoring.pinball([e], [0.0], [s]) == pytest.approx(scoring.crps_gaussian_at(e, s), rel=0.03)


@pytest.mark.parametrize(("e", "s"), CASES)
def test_interval_score_at_one_level_is_two_pinball_losses(e, s):
    """Winkler's score of level p is (loss at the lower + loss at the upper quantile) * 2 / (1 - p)."""
    total = []
    for p in LEVELS:
        k, tail = central(p) * s, (1.0 - p) / 2.0
        low, high = e + k, e - k
        loss = max(tail * low, (tail - 1.0) * low) + max((1.0 - tail) * high, -tail * high)
        total.append(loss * 2.0 / (1.0 - p))
    assert scoring.interval_score([e], [0.0], [s]) == pytest.approx(np.mean(total), rel=1e-12)


@pytest.mark.parametrize("prior", DISTRIBUTIONS)
def test_a_point_mass_is_the_limit_of_small_standard_deviations(prior):
    assert CRPS[prior](0.7, 0.0) == pytest.approx(CRPS[prior](0.7, 1e-9), rel=1e-8)
    assert scoring.pinball([0.7], [0.0], [0.0]) == pytest.approx(
        scoring.pinball([0.7], [0.0], [1e-12]), rel=1e-9
    )
    assert scoring.interval_score([0.7], [0.0], [0.0]) == pytest.approx(
        scoring.interval_score([0.7], [0.0], [1e-12]), rel=1e-9
    )
