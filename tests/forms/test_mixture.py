"""Mixtures of normals against scoringrules, scipy and quadrature."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scoringrules
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

from uq_tracking.inputs.forms.distribution import mixture_columns, mixture_quantiles, score_mixture
from uq_tracking.inputs.forms.form import EVERY_LEVEL


def made(n=12, members=3, seed=0, gap=3.0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(members), n).T
    return (
        2 * rng.normal(size=n),
        gap * rng.normal(size=(members, n)),
        rng.gamma(3, 0.3, (members, n)),
        weights,
    )


def pdf(x, m, s, w):
    return float(np.sum(w * stats.norm.pdf(x, m, s)))


def cdf(x, m, s, w):
    return float(np.sum(w * stats.norm.cdf(x, m, s)))


def pieces(function, m, s, *breaks):
    edges = sorted({float(v) for k in (-12, -3, 0, 3, 12) for v in m + k * s} | {float(b) for b in breaks})
    return sum(integrate.quad(function, a, b, epsabs=1e-14, epsrel=1e-13)[0] for a, b in pairwise(edges))


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 2, 5])
def test_the_crps_is_scoringrules_and_the_integral(members):
    y, m, s, w = made(members=members)
    found = mixture_columns(y, m, s, w)
    assert_allclose(found["crps"], scoringrules.crps_mixnorm(y, m.T, s.T, w.T), rtol=1e-10)
    for k in range(len(y)):
        own = m[:, k], s[:, k], w[:, k]
        both = pieces(lambda x, own=own, k=k: (cdf(x, *own) - (x >= y[k])) ** 2, *own[:2], y[k])
        assert_allclose(found["crps"][k], both, rtol=1e-10)


@pytest.mark.slow
def test_density_scores_pit_and_moments():
    y, m, s, w = made()
    found = mixture_columns(y, m, s, w)
    for k in range(len(y)):
        own = m[:, k], s[:, k], w[:, k]
        assert_allclose(found["nll"][k], -np.log(pdf(y[k], *own)), rtol=1e-12)
        assert_allclose(found["pit_low"][k], cdf(y[k], *own), rtol=1e-12)
        square = pieces(lambda x, own=own: pdf(x, *own) ** 2, *own[:2])
        assert_allclose(found["quadratic_score"][k], 2 * pdf(y[k], *own) - square, rtol=1e-10)
        assert_allclose(found["spherical_score"][k], pdf(y[k], *own) / np.sqrt(square), rtol=1e-10)
        mean = pieces(lambda x, own=own: x * pdf(x, *own), *own[:2])
        variance = pieces(lambda x, own=own, mean=mean: (x - mean) ** 2 * pdf(x, *own), *own[:2])
        assert_allclose([found["mean"][k], found["std"][k] ** 2], [mean, variance], rtol=1e-9, atol=1e-9)


def test_far_from_every_component_the_log_score_stays_finite():
    found = mixture_columns(np.array([1e3]), np.array([[0.0], [1.0]]), np.ones((2, 1)), np.full((2, 1), 0.5))
    assert_allclose(found["nll"], 0.5 * 999.0**2 + np.log(2) + 0.5 * np.log(2 * np.pi), rtol=1e-12)


def test_the_search_does_not_jump_to_and_fro_across_a_narrow_component():
    m, s = np.array([-4.1, -5.4, -1.3]), np.array([0.3, 0.7, 13.5])
    levels, third = np.arange(1, 100) / 100, np.full(3, 1 / 3)
    expected = [
        optimize.brentq(lambda x, p=p: cdf(x, m, s, third) - p, -100, 100, xtol=1e-13) for p in levels
    ]
    assert_allclose(
        mixture_quantiles(levels, m[:, None], s[:, None], third[:, None])[0], expected, rtol=1e-11
    )


@pytest.mark.slow
@pytest.mark.parametrize("members", [3, 5, 20])
def test_quantiles_of_components_of_very_different_widths(members):
    rng = np.random.default_rng(members)
    m, s = 2 * rng.normal(size=(members, 300)), np.exp(3 * rng.normal(size=(members, 300)))
    w = rng.dirichlet(np.ones(members), 300).T
    found = mixture_quantiles(EVERY_LEVEL, m, s, w)
    width = np.ptp(m[:, :, None] + s[:, :, None] * stats.norm.ppf(EVERY_LEVEL), axis=0)
    reach = 1e-12 * (np.abs(found) + width)
    below, above = (
        np.einsum("mn,mnl->nl", w, stats.norm.cdf(found + side * reach, m[:, :, None], s[:, :, None]))
        for side in (-1, 1)
    )
    assert np.all((below <= EVERY_LEVEL + 1e-15) & (above >= EVERY_LEVEL - 1e-15))


@pytest.mark.parametrize("gap", [0.5, 3.0, 40.0])
def test_quantiles_invert_the_distribution_function(gap):
    _, m, s, w = made(n=30, members=4, gap=gap)
    found = mixture_quantiles(EVERY_LEVEL, m, s, w)
    back = np.einsum("mn,mnl->nl", w, stats.norm.cdf(found, m[:, :, None], s[:, :, None]))
    assert_allclose(back, np.broadcast_to(EVERY_LEVEL, back.shape), atol=1e-11)
    assert np.all(np.diff(found, axis=1) > 0)


def test_one_component_is_a_normal():
    y, m, s, _ = made(members=1)
    found = score_mixture(y, m, s, quantiles=True)
    assert_allclose(found["nll"], -stats.norm.logpdf(y, m[0], s[0]), rtol=1e-12)
    assert_allclose(found["crps"], scoringrules.crps_normal(y, m[0], s[0]), rtol=1e-12)
    assert_allclose(found["interval_width_95"], 2 * stats.norm.ppf(0.975) * s[0], rtol=1e-12)
    p = np.arange(1, 100)[:, None] / 100
    gap = y - stats.norm.ppf(p, m[0], s[0])
    assert_allclose(found["pinball"], np.maximum(p * gap, (p - 1) * gap).mean(axis=0), rtol=1e-12)


def test_two_exact_modes_score_what_the_literature_says():
    """Data of Xiong et al. with two modes: the mixture itself has a log score of about -.79, its moments .77."""
    rng, n = np.random.default_rng(0), 50_000
    m = np.stack([np.full(n, -1.0), np.full(n, 1.0)])
    s = np.full((2, n), 0.08)
    y = rng.choice([-1.0, 1.0], n) + 0.08 * rng.normal(size=n)
    found = mixture_columns(y, m, s, np.full((2, n), 0.5))
    expected = np.log(2) + 0.5 * np.log(2 * np.pi) + np.log(0.08) + 0.5
    assert_allclose(found["nll"].mean(), expected, atol=4 * 0.71 / np.sqrt(n))
    moments = -stats.norm.logpdf(y, found["mean"], found["std"]).mean()
    assert moments - found["nll"].mean() > 1.5
    assert stats.kstest(found["pit_low"], "uniform").statistic < 1.95 / np.sqrt(n)
