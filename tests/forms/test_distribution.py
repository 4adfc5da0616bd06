"""Distribution objects against scipy, scoringrules and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import scoringrules
import torch
from numpy.testing import assert_allclose
from scipy import integrate, stats

import uq_tracking as uq
from tests.quadrature import crps
from uq_tracking.errors import InputTypeError, ShapeError
from uq_tracking.inputs.forms.distribution import crps_by_quadrature, score_distribution

Y = np.array([-1.5, 0.0, 0.2, 0.9, 2.7, 8.0])
SCALE = np.array([0.5, 1.0, 2.0, 0.7, 1.3, 3.0])
CONTINUOUS = {
    "norm": stats.norm(0.3, SCALE),
    "laplace": stats.laplace(0.3, SCALE),
    "logistic": stats.logistic(0.3, SCALE),
    "uniform": stats.uniform(-1, SCALE),
    "t": stats.t(3, 0.3, SCALE),
    "t of mixed dof": stats.t(np.array([1.5, 3, 3, 2, 9, 1.5]), 0.3, SCALE),
    "cauchy": stats.cauchy(0.3, SCALE),
    "gamma": stats.gamma(2.5, scale=SCALE),
    "gamma moved": stats.gamma(0.7, loc=-2, scale=SCALE),
    "expon": stats.expon(-0.5, SCALE),
    "lognorm": stats.lognorm(0.6, scale=SCALE),
    "beta": stats.beta(2, 3, loc=-1, scale=2 * SCALE),
    "gumbel": stats.gumbel_r(0.3, SCALE),
    "weibull": stats.weibull_min(1.7, scale=SCALE),
    "skewnorm": stats.skewnorm(4, 0.3, SCALE),
}


def literal(dist, y):
    """The integral, piece by piece, between quantiles of the distribution."""
    with np.errstate(all="ignore"):
        edges = dist.ppf([1e-9, 1e-4, 0.01, 0.1, 0.5, 0.9, 0.99, 1 - 1e-4, 1 - 1e-9])
    return crps(dist, y, edges)


def one_of(dist, k):
    pick = [np.broadcast_to(np.asarray(value, dtype=float), Y.shape)[k] for value in dist.args]
    named = {key: np.broadcast_to(np.asarray(v, dtype=float), Y.shape)[k] for key, v in dist.kwds.items()}
    return dist.dist(*pick, **named)


KNOWN_SQUARES = (
    "norm",
    "laplace",
    "logistic",
    "uniform",
    "t",
    "t of mixed dof",
    "cauchy",
    "gamma",
    "gamma moved",
)
KNOWN_SQUARES += ("expon", "lognorm", "beta")


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_quadratic_and_spherical_scores_where_the_squared_density_has_a_closed_form(name):
    dist = CONTINUOUS[name]
    columns = score_distribution(Y, dist)[0]
    assert ("quadratic_score" in columns) is ("spherical_score" in columns) is (name in KNOWN_SQUARES)
    if name not in KNOWN_SQUARES:
        return
    for k, y in enumerate(Y):
        one = one_of(dist, k)
        # integral of p(Q(u)) over shares u = v^4, which takes the pole of a gamma density away; at 0 its digits last
        at_zero = one.dist(*one.args, **{**one.kwds, "loc": 0}) if "loc" in one.kwds else one
        square = integrate.quad(
            lambda v, law=at_zero: law.pdf(law.ppf(v**4)) * 4 * v**3, 1e-6, 1, epsabs=1e-12, limit=200
        )[0]
        assert_allclose(columns["quadratic_score"][k], 2 * one.pdf(y) - square, rtol=1e-6, atol=1e-8)
        assert_allclose(columns["spherical_score"][k], one.pdf(y) / np.sqrt(square), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_frozen_distributions_of_scipy(name):
    dist = CONTINUOUS[name]
    found = score_distribution(Y, dist)[0]
    assert_allclose(found["pit_low"], dist.cdf(Y), rtol=1e-12)
    assert_allclose(found["pit_high"], dist.cdf(Y), rtol=1e-12)
    assert_allclose(found["nll"], -dist.logpdf(Y), rtol=1e-12)
    expected = [literal(one_of(dist, k), float(y)) for k, y in enumerate(Y)]
    assert_allclose(found["crps"], expected, rtol=2e-6)


@pytest.mark.slow
def test_the_closed_forms_are_those_of_scoringrules():
    found = {name: score_distribution(Y, dist)[0]["crps"] for name, dist in CONTINUOUS.items()}
    assert_allclose(found["gamma"], scoringrules.crps_gamma(Y, 2.5, 1 / SCALE), rtol=1e-9)
    assert_allclose(found["expon"], scoringrules.crps_exponential(Y + 0.5, 1 / SCALE), rtol=1e-9)
    positive = np.abs(Y) + 0.1
    ours = score_distribution(positive, CONTINUOUS["lognorm"])[0]["crps"]
    assert_allclose(ours, scoringrules.crps_lognormal(positive, np.log(SCALE), 0.6), rtol=1e-9)
    theirs = scoringrules.crps_beta(Y, 2, 3, -1, -1 + 2 * SCALE)
    inside = np.isfinite(theirs)  # where the truth is
    assert inside.sum() == 2
    assert_allclose(found["beta"][inside], theirs[inside], rtol=1e-6)


def test_the_crps_exists_where_the_variance_does_not():
    found, known = score_distribution(np.array([0.5]), stats.cauchy(0.1, 2))
    assert_allclose(score_distribution(np.array([0.5]), stats.cauchy())[0]["crps"], 0.5178, atol=5e-5)
    assert known == {"spread": "interquartile"}
    assert_allclose(found["mean"], 0.1, rtol=1e-12)
    assert_allclose(found["std"], 4 / (2 * stats.norm.ppf(0.75)), rtol=1e-12)


@pytest.mark.parametrize("dist", [stats.poisson(2.5), stats.nbinom(4, 0.4), stats.binom(12, 0.3)])
def test_discrete_distributions_spread_the_pit_over_their_atoms(dist):
    y = np.array([0.0, 1.0, 2.0, 5.0, 11.0])
    found = score_distribution(y, dist)[0]
    assert_allclose(found["pit_high"], dist.cdf(y), rtol=1e-12)
    assert_allclose(found["pit_low"], dist.cdf(y - 1), atol=1e-12)
    assert_allclose(found["nll"], -dist.logpmf(y), rtol=1e-12)
    k = np.arange(400)
    expected = [np.sum((dist.cdf(k) - (k >= at)) ** 2) for at in y]
    assert_allclose(found["crps"], expected, rtol=1e-9)
    between = score_distribution(np.array([1.25]), dist)[0]["crps"]
    by_hand = integrate.quad(
        lambda x: (dist.cdf(np.floor(x)) - (x >= 1.25)) ** 2, 0, 60, points=[*range(1, 60), 1.25], limit=500
    )[0]
    assert_allclose(between, by_hand, rtol=1e-6)


@pytest.mark.slow
def test_poisson_is_calibrated():
    rng = np.random.default_rng(0)
    rate = rng.gamma(3, 1, 60_000)
    found = score_distribution(rng.poisson(rate).astype(float), stats.poisson(rate))[0]
    low, high = found["pit_low"], found["pit_high"]
    for p in (0.05, 0.25, 0.5, 0.9, 0.975):
        assert abs(np.mean(np.clip((p - low) / (high - low), 0, 1)) - p) < 4 * np.sqrt(p * (1 - p) / 60_000)


TORCH = {
    "Normal": (torch.distributions.Normal(0.3, torch.tensor(SCALE)), stats.norm(0.3, SCALE)),
    "Laplace": (torch.distributions.Laplace(0.3, torch.tensor(SCALE)), stats.laplace(0.3, SCALE)),
    "StudentT": (torch.distributions.StudentT(3.0, 0.3, torch.tensor(SCALE)), stats.t(3, 0.3, SCALE)),
    "Gamma": (torch.distributions.Gamma(2.5, 1 / torch.tensor(SCALE)), stats.gamma(2.5, scale=SCALE)),
    "LogNormal": (
        torch.distributions.LogNormal(torch.tensor(np.log(SCALE)), 0.6),
        stats.lognorm(0.6, scale=SCALE),
    ),
    "Gumbel": (torch.distributions.Gumbel(0.3, torch.tensor(SCALE)), stats.gumbel_r(0.3, SCALE)),
}


@pytest.mark.parametrize("name", TORCH)
def test_distributions_of_torch_are_those_of_scipy(name):
    ours, theirs = (score_distribution(np.abs(Y), dist)[0] for dist in TORCH[name])
    for key in ("mean", "std", "pit_low", "nll", "crps"):
        assert_allclose(ours[key], theirs[key], rtol=2e-6, err_msg=key)


@pytest.mark.slow
def test_distributions_of_torch_without_a_counterpart_are_read_as_they_are():
    """A transformed normal: a cdf and a density, and no moments that torch knows."""
    base = torch.distributions.Normal(torch.full((6,), 0.1).double(), torch.tensor(SCALE) / 3)
    dist = torch.distributions.TransformedDistribution(base, [torch.distributions.ExpTransform()])
    moments = stats.lognorm(SCALE / 3, scale=np.exp(0.1))
    dist = WithMoments(dist, torch.tensor(moments.mean()), torch.tensor(moments.std()))
    found = score_distribution(np.abs(Y) + 0.1, dist)[0]
    expected = score_distribution(np.abs(Y) + 0.1, moments)[0]
    for key in ("mean", "std", "pit_low", "nll", "crps"):
        assert_allclose(found[key], expected[key], rtol=2e-6, atol=1e-15, err_msg=key)


def test_mixtures_of_torch_are_exact():
    rng = np.random.default_rng(0)
    m, s, w = rng.normal(size=(6, 3)), rng.gamma(3, 0.3, (6, 3)), rng.dirichlet(np.ones(3), 6)
    dist = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(torch.tensor(w)),
        torch.distributions.Normal(torch.tensor(m), torch.tensor(s)),
    )
    found, _ = score_distribution(Y, dist)
    assert uq.Predictions.from_distribution(Y, dist).form.name == "mixture"
    assert_allclose(found["nll"], -dist.log_prob(torch.tensor(Y)).numpy(), rtol=1e-9)
    assert_allclose(found["crps"], scoringrules.crps_mixnorm(Y, m, s, w), rtol=1e-9)


def test_a_multivariate_normal_gives_its_marginals():
    covariance = np.array([[1.0, 0.5], [0.5, 4.0]])
    dist = torch.distributions.MultivariateNormal(torch.tensor([1.0, 2.0]).double(), torch.tensor(covariance))
    y = np.array([0.0, 1.0])
    found, expected = (
        score_distribution(y, dist)[0],
        score_distribution(y, stats.norm([1, 2], [1, 2]))[0],
    )
    for key in ("mean", "std", "pit_low", "nll", "crps"):
        assert_allclose(found[key], expected[key], rtol=1e-12)


def test_an_independent_normal_is_its_normals():
    base = torch.distributions.Normal(torch.zeros(6).double(), torch.tensor(SCALE))
    wrapped = torch.distributions.Independent(base, 1)
    one, other = (score_distribution(Y, dist)[0] for dist in (base, wrapped))
    assert_allclose(one["nll"], other["nll"])


class Duck:
    """What a library unknown here may offer: names as in TensorFlow Probability."""

    def __init__(self, dist):
        self._dist = dist

    def cdf(self, value):
        return self._dist.cdf(value)

    def log_prob(self, value):
        return self._dist.logpdf(value)

    def mean(self):
        return self._dist.mean()

    def stddev(self):
        return self._dist.std()


class WithMoments:
    """A distribution of torch with a mean and a stddev beside it."""

    def __init__(self, dist, mean, stddev):
        self.mean, self.stddev = mean, stddev
        self.log_prob = dist.log_prob
        self.cdf = lambda x: dist.cdf(torch.clamp(x, min=1e-300))


class Wrapping:
    """As the distributions of NGBoost: scipy's in an attribute."""

    def __init__(self, dist):
        self.dist = dist


@pytest.mark.slow
@pytest.mark.parametrize("name", ["norm", "gamma", "gumbel", "skewnorm", "laplace", "beta"])
def test_anything_with_a_cdf_and_a_log_density_is_scored(name):
    dist = CONTINUOUS[name]
    expected = score_distribution(Y, dist)[0]
    duck, wrapping = (score_distribution(Y, kind(dist))[0] for kind in (Duck, Wrapping))
    for key in ("mean", "std", "pit_low", "nll", "crps"):
        assert_allclose(wrapping[key], expected[key], rtol=1e-12)
        assert_allclose(duck[key], expected[key], rtol=2e-6, err_msg=key)


@pytest.mark.slow
def test_quantile_scores_are_those_of_the_quantiles():
    found = score_distribution(Y, CONTINUOUS["gamma"], quantiles=True)[0]
    p = np.arange(1, 100)[:, None] / 100
    gap = Y - CONTINUOUS["gamma"].ppf(p)
    assert_allclose(found["pinball"], np.maximum(p * gap, (p - 1) * gap).mean(axis=0), rtol=1e-9)
    low, high = CONTINUOUS["gamma"].interval(p)
    score = high - low + 2 / (1 - p) * (np.maximum(low - Y, 0) + np.maximum(Y - high, 0))
    assert_allclose(found["interval_score"], score.mean(axis=0), rtol=1e-9)
    assert_allclose(
        found["interval_width_95"], np.subtract(*CONTINUOUS["gamma"].interval(0.95)[::-1]), rtol=1e-9
    )
    assert "pinball" not in score_distribution(Y, Duck(CONTINUOUS["gamma"]), quantiles=True)[0]


@pytest.mark.slow
def test_quadrature_says_when_it_fails():
    def jagged(x):
        return np.where(np.sin(1e5 * x) > 0, 0.5, 0.6) * (x > 0)

    found = crps_by_quadrature(np.ones(1), jagged, np.zeros(1), np.ones(1))
    assert np.isnan(found[0])


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(InputTypeError, match="object has no cdf and log density"):
        score_distribution(Y, object())
    with pytest.raises(InputTypeError, match="multivariate"):
        score_distribution(np.zeros(3), torch.distributions.Dirichlet(torch.ones(3)))
    with pytest.raises(ShapeError, match="one distribution per sample"):
        score_distribution(Y, stats.norm(np.zeros(4), 1))
