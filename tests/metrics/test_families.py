"""The distribution that ``family=`` puts behind coverage, calibration, PIT, interval and pinball scores."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import uq_tracking as uq
from uq_tracking.families import family_of
from uq_tracking.settings import Settings

S = {
    "gaussian": stats.norm(),
    "laplace": stats.laplace(scale=np.sqrt(0.5)),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
    "student_t": stats.t(4, scale=np.sqrt(0.5)),
}
FAMILIES = sorted(S)


def family(name):
    return family_of(Settings(family=name, dof=4))


@pytest.mark.parametrize("name", FAMILIES)
class TestDensity:
    def test_it_has_mass_one_mean_zero_and_variance_one(self, name):
        pdf, end = family(name).pdf, np.inf if name != "uniform" else np.sqrt(3)
        moments = [
            integrate.quad(lambda z, k=k: z**k * float(pdf(np.asarray(z))), -end, end, limit=400)[0]
            for k in range(3)
        ]
        assert_allclose(moments, [1, 0, 1], atol=1e-6)

    def test_its_distribution_function_is_its_integral(self, name):
        standard = family(name)
        for z in (-1.5, -0.2, 0.0, 0.7, 1.6):
            low = -np.sqrt(3) if name == "uniform" else -np.inf
            area = integrate.quad(lambda t: float(standard.pdf(np.asarray(t))), low, z, limit=400)[0]
            assert_allclose(standard.cdf(np.asarray(z)), area, atol=1e-8)

    def test_it_agrees_with_scipy(self, name):
        z, p = np.linspace(-1.7, 1.7, 35), np.linspace(0.01, 0.99, 25)
        standard = family(name)
        assert_allclose(standard.pdf(z), S[name].pdf(z), rtol=1e-10)
        assert_allclose(standard.cdf(z), S[name].cdf(z), rtol=1e-10)
        assert_allclose(standard.quantile(p), S[name].ppf(p), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_of_the_family_are_calibrated_under_it(name):
    n = 40_000
    rng = np.random.default_rng(5)
    std = rng.gamma(3, 0.5, n)
    y = std * S[name].rvs(n, random_state=rng)
    scores = uq.evaluate(y, np.zeros(n), std, family=name, dof=4).scores
    for level in (50, 90, 95):  # four standard errors
        p = level / 100
        assert_allclose(scores[f"coverage_{level}"], p, atol=4 * np.sqrt(p * (1 - p) / n))
    assert scores["pit_ks"] < 1.95 / np.sqrt(n)  # the Kolmogorov statistic's .999 quantile
    assert scores["auce"] < 4 * 0.5 / np.sqrt(n)
    assert scores["calibration_error"] < 4 / n


@pytest.mark.parametrize("name", FAMILIES)
def test_interval_and_pinball_scores_take_the_familys_quantiles(name):
    rng = np.random.default_rng(2)
    std, mean = rng.gamma(3, 0.5, 60), rng.normal(size=60)
    y = mean + std * rng.normal(size=60)
    scores = uq.evaluate(y, mean, std, family=name, dof=4).scores
    levels = np.arange(1, 100) / 100
    gap = y - (mean + S[name].ppf(levels)[:, None] * std)
    assert_allclose(
        scores["pinball"], np.maximum(levels[:, None] * gap, (levels[:, None] - 1) * gap).mean(), rtol=1e-10
    )
    half = S[name].ppf((1 + levels) / 2)[:, None] * std
    outside = np.maximum(np.abs(y - mean) - half, 0)
    assert_allclose(
        scores["interval_score"], (2 * half + 2 / (1 - levels[:, None]) * outside).mean(), rtol=1e-10
    )
    assert_allclose(scores["interval_width_95"], 2 * S[name].ppf(0.975) * std.mean(), rtol=1e-10)


def test_figures_name_a_distribution_other_than_the_gaussian():
    from uq_tracking.figures.source import family_text

    y = np.random.default_rng(0).normal(size=50)
    texts = [family_text(uq.evaluate(y, 0 * y, 0 * y + 1, family=name, dof=4)) for name in FAMILIES]
    assert texts == ["", "Laplace distribution", "Student t distribution, 4 dof", "Uniform distribution"]
