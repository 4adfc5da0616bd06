"""The distribution that ``family=`` declares: every score of it against scipy, scoringrules and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import scoringrules
from numpy.testing import assert_allclose
from scipy import integrate, stats

import uq_tracking as uq
from tests.quadrature import crps, integral
from uq_tracking.errors import RecalibrationError
from uq_tracking.families import family_of
from uq_tracking.settings import Settings

S = {
    "gaussian": stats.norm(),
    "laplace": stats.laplace(scale=np.sqrt(0.5)),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
    "logistic": stats.logistic(scale=np.sqrt(3) / np.pi),
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
        assert_allclose(standard.log_pdf(z), S[name].logpdf(z), rtol=1e-10, atol=1e-12)
        assert_allclose(standard.cdf(z), S[name].cdf(z), rtol=1e-10)
        assert_allclose(standard.quantile(p), S[name].ppf(p), rtol=1e-9, atol=1e-12)


def integrals_of(f):
    """A function of a density over its support, in pieces that quadrature resolves."""
    return integral(f, [-np.sqrt(3), -0.5, 0, 0.5, np.sqrt(3)])


def crps_by_quadrature(dist, z):
    return crps(dist, z, [-50.0, -np.sqrt(3), 0.0, np.sqrt(3), 50.0])


@pytest.mark.parametrize("name", FAMILIES)
class TestProperScores:
    def test_the_integral_of_the_squared_density(self, name):
        area = integrals_of(lambda x: S[name].pdf(x) ** 2)
        assert_allclose(family(name).pdf_square_integral, area, rtol=1e-8)

    def test_the_crps_is_its_integral(self, name):
        z = np.asarray([-30.0, -2.2, -0.4, 0.0, 1e-3, 0.9, 4.0])
        expected = [crps_by_quadrature(S[name], float(at)) for at in z]
        assert_allclose(family(name).crps(z), expected, rtol=1e-8)

    @pytest.mark.slow
    def test_reports_hold_the_scores_of_the_family(self, name):
        rng = np.random.default_rng(4)
        std, mean = rng.gamma(3, 0.5, 80), rng.normal(size=80)
        y = mean + std * rng.uniform(-1.7, 1.7, 80)
        z, dist = (y - mean) / std, S[name]
        square = integrals_of(lambda x: dist.pdf(x) ** 2)
        by_quadrature = [s * crps_by_quadrature(dist, float(at)) for s, at in zip(std, z, strict=True)]
        for kind, rtol in (("exact", 1e-9), ("sketch", 1e-5)):
            if kind == "sketch" and name == "uniform":
                rtol = 1e-3  # the density jumps within a bucket
            scores = uq.evaluate(y, mean, std, family=name, dof=4, statistics=kind).scores
            assert_allclose(scores["nll"], np.mean(np.log(std) - dist.logpdf(z)), rtol=rtol)
            assert_allclose(scores["quadratic_score"], np.mean((2 * dist.pdf(z) - square) / std), rtol=rtol)
            spherical = np.mean(dist.pdf(z) / np.sqrt(square * std))
            assert_allclose(scores["spherical_score"], spherical, rtol=rtol)
            assert_allclose(scores["crps"], np.mean(by_quadrature), rtol=max(rtol, 1e-8))


@pytest.mark.parametrize("dof", [0.6, 0.9, 0.9995, 1.0, 1.0005, 1.2, 1.7, 2.0, 2.5, 30.0])
def test_student_t_at_any_degrees_of_freedom(dof):
    standard = family_of(Settings(family="student_t", dof=dof))
    dist = stats.t(dof, scale=np.sqrt((dof - 2) / dof) if dof > 2 else 1)
    z = np.asarray([-3.0, -0.2, 0.0, 0.5, 8.0])
    assert_allclose(standard.cdf(z), dist.cdf(z), rtol=1e-10)
    assert_allclose(standard.crps(z), [crps_by_quadrature(dist, float(at)) for at in z], rtol=2e-6)
    if dof > 1.1:
        assert_allclose(
            standard.crps(z), scoringrules.crps_t(z, dof, 0.0, dist.kwds.get("scale", 1)), rtol=1e-9
        )
    assert_allclose(standard.pdf_square_integral, integrals_of(lambda x: dist.pdf(x) ** 2), rtol=1e-7)


T_DIGITS = {  # at z = .75: log density, integral of the squared density, CRPS; mpmath 1.3, quadrature with 60 digits
    15.0: (-1.2029166880619197, 0.29065965528230685, 0.44867176297661985),
    1e3: (-1.2002035042290051, 0.28220087976062089, 0.44814894221653376),
    1e6: (-1.2001885478534319, 0.28209489755972699, 0.4481442568464749),
    1e10: (-1.2001885332061376, 0.2820947917844567, 0.44814425219701521),
    1e16: (-1.2001885332046727, 0.28209479177387815, 0.44814425219655022),
}


@pytest.mark.parametrize("dof", T_DIGITS)
def test_student_t_of_many_degrees_of_freedom(dof):
    standard, z = family_of(Settings(family="student_t", dof=dof)), np.asarray([0.75])
    found = [standard.log_pdf(z)[0], standard.pdf_square_integral, standard.crps(z)[0]]
    assert_allclose(found, T_DIGITS[dof], rtol=1e-13)
    law = stats.t(dof, scale=np.sqrt((dof - 2) / dof))
    data = uq.Predictions.from_distribution(z, law, quantile_scores=False)
    expected = 2 * np.exp(T_DIGITS[dof][0]) - T_DIGITS[dof][1]
    assert_allclose(uq.evaluate(data).scores["quadratic_score"], expected, rtol=1e-9)


NEAR_ONE = {  # the CRPS at z = .3, 5 and 40 near the distribution without a mean; mpmath 1.3, quadrature
    0.9995: (0.46970742942100835, 3.7756527394998085, 37.45433961934004),
    1.0005: (0.46930124946493856, 3.7760619049105024, 37.45800117844226),
    1.0009: (0.46913923445302025, 3.7762256645321957, 37.45946327612494),
    1.0011: (0.4690583245556332, 3.776307564147341, 37.46019378444679),
}


@pytest.mark.parametrize("dof", NEAR_ONE)
def test_the_crps_of_student_t_near_cauchy(dof):
    found = family_of(Settings(family="student_t", dof=dof)).crps(np.asarray([0.3, 5.0, 40.0]))
    assert_allclose(found, NEAR_ONE[dof], rtol=1e-12)


def test_the_crps_of_a_cauchy_distribution():
    cauchy = family_of(Settings(family="student_t", dof=1))
    assert_allclose(cauchy.crps(np.asarray([0.5])), 0.5178, atol=5e-5)
    rng = np.random.default_rng(1)
    y, scale = rng.standard_cauchy(50_000), np.full(50_000, 2.0)
    report = uq.evaluate(2 * y, 0 * y, scale, family="student_t", dof=1)
    assert_allclose(report.scores["coverage_90"], 0.9, atol=4 * np.sqrt(0.09 / 50_000))
    assert_allclose(report.scores["nll"], np.log(8 * np.pi), atol=4 * 1.9 / np.sqrt(50_000))
    for key in ("z_std", "ence", "uce", "sharpness", "mean_std", "nll_laplace", "crps_uniform"):
        assert "dof=1" in report.undefined[key]
    assert "reliability" not in report.curves
    assert "infinite" in uq.evaluate(y, 0 * y, scale, family="student_t", dof=0.4).undefined["crps"]


def test_without_a_variance_only_the_scale_is_recalibrated():
    rng = np.random.default_rng(1)
    y = 3 * rng.standard_cauchy(20_000)
    data = (y, 0 * y, np.full(20_000, 2.0))
    scale = uq.recalibrate(data, "std_scaling", family="student_t", dof=1)
    assert_allclose(scale.factor, 1.5, rtol=0.05)
    for method in ("std_isotonic", "std_binning"):
        with pytest.raises(RecalibrationError, match="use std_scaling"):
            uq.recalibrate((y, 0 * y, np.abs(y)), method, family="student_t", dof=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_is_recalibrated_and_swept_as_itself(name):
    rng = np.random.default_rng(7)
    std, mean = rng.gamma(3, 0.5, 4000), rng.normal(size=4000)
    y = mean + 1.4 * std * S[name].rvs(4000, random_state=rng)
    factor = uq.recalibrate((y, mean, std), "std_scaling", family=name, dof=4).factor
    assert_allclose(factor, 1.4, rtol=0.05)
    curve = uq.evaluate(y, mean, std, family=name, dof=4, curves="scale_sweep").curves["scale_sweep"]
    expected = uq.evaluate(y, mean, curve.columns["factor"][26] * std, family=name, dof=4).scores
    for key in ("crps", "quadratic_score", "pinball"):
        assert_allclose(curve.columns[key][26], expected[key], rtol=1e-9, err_msg=key)


def test_the_gaussian_prior_stands_beside_another_family():
    rng = np.random.default_rng(3)
    y, mean, std = rng.normal(size=300), np.zeros(300), rng.gamma(3, 0.5, 300)
    keys = ["nll", "crps", "quadratic_score", "spherical_score"]
    plain = uq.evaluate(y, mean, std, metrics=keys).scores
    beside = [f"{key}_gaussian" for key in keys]
    assert "nll_gaussian" not in uq.evaluate(y, mean, std).scores
    found = uq.evaluate(y, mean, std, family="laplace", metrics=beside).scores
    assert found == {f"{key}_gaussian": value for key, value in plain.items()}


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
    from uq_tracking.figures.header import family_text

    y = np.random.default_rng(0).normal(size=50)
    texts = [family_text(uq.evaluate(y, 0 * y, 0 * y + 1, family=name, dof=4)) for name in FAMILIES]
    assert texts == [
        "",
        "Laplace distribution",
        "Logistic distribution",
        "Student t distribution, 4 dof",
        "Uniform distribution",
    ]
