"""Every point of docs/corrections.md, checked."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import uq_tracking as uq
from uq_tracking.families import Gaussian, Laplace
from uq_tracking_papers.datasets import heteroscedastic

RNG = np.random.default_rng(0)
Z = RNG.normal(0, 1.7, 400)
TOTAL = len(Z)


def best(objective):
    return optimize.minimize_scalar(objective, bounds=(0.1, 10), method="bounded").x


def test_equation_12_of_levi_needs_t_as_well_as_the_sign():
    def printed(s):
        return TOTAL / 2 * np.log(s) - np.sum(Z**2) / (2 * s**2)

    assert printed(1e-3) < printed(1e-2) < printed(1e-1) < -1e4
    root = np.sqrt(np.mean(Z**2))
    sign_alone = best(lambda s: TOTAL / 2 * np.log(s) + np.sum(Z**2) / (2 * s**2))
    both = best(lambda s: TOTAL * np.log(s) + np.sum(Z**2) / (2 * s**2))
    likelihood = best(lambda s: -stats.norm.logpdf(Z, 0, s).sum())
    assert sign_alone == pytest.approx(np.sqrt(2) * root, rel=1e-4)
    assert both == pytest.approx(root, rel=1e-4)
    assert likelihood == pytest.approx(root, rel=1e-4)
    fitted = uq.recalibrate((Z, 0 * Z, np.ones(TOTAL)), "std_scaling")
    assert fitted.scalars()["std_scale"] == pytest.approx(root, rel=1e-12)


def equation_13(distribution):
    first, _ = integrate.quad(lambda u: 2 * u * distribution.sf(u), 0, np.inf)
    second, _ = integrate.quad(distribution.sf, 0, np.inf)
    return first - second**2


def test_equation_13_of_levi_holds_for_targets_that_are_not_negative():
    assert equation_13(stats.gamma(2.5)) == pytest.approx(2.5, rel=1e-6)
    assert equation_13(stats.norm()) == pytest.approx(0.5 - 1 / (2 * np.pi), rel=1e-6)
    assert stats.norm.cdf(0, 1, 1) == pytest.approx(0.16, abs=0.002)


def test_the_whole_formula_has_what_lies_below_zero():
    normal = stats.norm(0.3, 1.2)
    above = integrate.quad(normal.sf, 0, np.inf)[0], integrate.quad(lambda u: u * normal.sf(u), 0, np.inf)[0]
    below = (
        integrate.quad(normal.cdf, -np.inf, 0)[0],
        integrate.quad(lambda u: u * normal.cdf(u), -np.inf, 0)[0],
    )
    mean, square = above[0] - below[0], 2 * above[1] - 2 * below[1]
    assert mean == pytest.approx(0.3, rel=1e-6)
    assert square - mean**2 == pytest.approx(1.44, rel=1e-6)


def test_the_interval_method_of_levi_is_one_factor_too():
    z = Z + 0.2
    before = np.full(TOTAL, 2.0), np.linspace(0.5, 3, TOTAL)
    sample = z * before[1] + before[0], *before
    scaling, interval = (uq.recalibrate(sample, method) for method in ("std_scaling", "cdf_isotonic"))
    scale = interval.apply(*before)[1] / before[1]
    assert scale == pytest.approx(np.full(TOTAL, z.std()), rel=1e-9)
    assert scaling.scalars()["std_scale"] ** 2 - scale[0] ** 2 == pytest.approx(z.mean() ** 2, rel=1e-6)


def test_log_scores_of_merci_are_those_of_a_density_with_a_floor():
    assert np.log(1e-3) == pytest.approx(-6.9, abs=0.01)
    std = 1 / (
        2 * np.sqrt(np.pi) * 28
    )  # where nothing but the integral of the squared density is left of the score
    assert std == pytest.approx(0.01, abs=2e-4)
    assert stats.norm.logpdf(19, 0, std) < -1e5


def test_laplace_and_gaussian_crps_are_near_each_other():
    z = np.linspace(-50, 50, 20_001)
    assert np.abs(Gaussian().crps(z) - Laplace().crps(z)).max() < 0.062


def test_n_merci_can_be_negative():
    errors = np.repeat([1.0, 3.0, 4.0], [10, 9, 1])
    std = np.where(errors == 4, 0.01, errors)
    scores = uq.evaluate(errors, 0 * errors, std).scores
    assert scores["merci"] == pytest.approx(1.8505, rel=1e-12)
    assert scores["mae"] == pytest.approx(2.05, rel=1e-12)
    assert scores["n_merci"] == pytest.approx(-0.21, rel=1e-12)


def test_n_merci_is_undefined_beside_one_huge_error():
    errors = np.append(np.ones(19), 1000.0)
    assert "percentile" in uq.evaluate(errors, 0 * errors, np.arange(1.0, 21)).undefined["n_merci"]


def test_auce_has_99_levels():
    z = RNG.normal(0, 2, 1000)
    levels = np.arange(1, 100) / 100
    covered = np.array([np.mean(np.abs(z) <= stats.norm.ppf((1 + p) / 2)) for p in levels])
    assert uq.evaluate(z, 0 * z, np.ones(1000)).scores["auce"] == pytest.approx(
        np.trapezoid(np.abs(covered - levels), levels), rel=1e-9
    )


def test_spearman_has_average_ranks():
    std, errors = np.array([1, 1, 2, 3, 3, 3, 4.0]), np.array([1, 2, 2, 3, 5, 4, 1.0])

    def correlation(std, how):
        return np.corrcoef(stats.rankdata(std, how), stats.rankdata(errors, how))[0, 1]

    assert correlation(std, "min") == pytest.approx(0.097, abs=5e-4)
    assert correlation(-std, "min") == pytest.approx(-0.432, abs=5e-4)
    assert correlation(std, "average") == pytest.approx(0.248, abs=5e-4)
    assert correlation(-std, "average") == pytest.approx(-correlation(std, "average"), rel=1e-12)
    scores = uq.evaluate(errors, 0 * errors, std).scores
    assert scores["spearman"] == pytest.approx(correlation(std, "average"), rel=1e-12)


def test_the_p_value_of_spearman_converges_to_0_and_the_correlation_does_not():
    found = {}
    for size in (8, 16, 32, 128, 1024):
        sets = [heteroscedastic(size, RNG).truth for _ in range(200)]
        pairs = [stats.spearmanr(one.std, np.abs(one.truth - one.mean)) for one in sets]
        found[size] = np.mean([(pair.statistic, pair.pvalue) for pair in pairs], axis=0)
    assert found[1024][0] == pytest.approx(0.537, abs=0.01)
    p_values = [found[size][1] for size in (8, 16, 32, 128)]
    assert p_values == pytest.approx([0.28, 0.11, 0.02, 0], abs=0.05)


def test_calibration_error_lies_between_0_and_a_third():
    far = np.full(50, 100.0)
    largest = uq.evaluate(far, 0 * far, np.ones(50)).scores["calibration_error"]
    assert largest == pytest.approx(np.mean((np.arange(1, 100) / 100) ** 2), rel=1e-12)
    assert 0.331 < largest < 1 / 3
    for _ in range(50):
        z = RNG.normal(RNG.normal(0, 3), RNG.gamma(1.0), 200)
        assert uq.evaluate(z, 0 * z, np.ones(200)).scores["calibration_error"] <= largest + 1e-12
