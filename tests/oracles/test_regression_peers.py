"""The literal regression scores against independent libraries, wherever the conventions agree."""

from __future__ import annotations

import math

import numpy as np
import properscoring
import pytest
import scoringrules
import uncertainty_toolbox as uct
from numpy.testing import assert_allclose
from scipy import stats
from sklearn import metrics as sk

from . import datasets
from .literal import LEVELS, LITERAL, central, kept, quantile
from .literal import Phi as literal_Phi
from .regression.ranking import average_ranks

CONTINUOUS = [
    "calibrated",
    "overconfident",
    "underconfident",
    "biased",
    "student_t",
    "continuous_137",
    "levi",
]
WITH_TIES = [*CONTINUOUS, "integers", "few_std", "repeated_rows", "xiong_heteroscedastic"]


def literal(key, data):
    return LITERAL[key](data.y, data.mu, data.s)


def test_normal_distribution():
    z = np.linspace(-8, 8, 321)
    assert_allclose([literal_Phi(v) for v in z], stats.norm.cdf(z), rtol=1e-13)
    assert_allclose([quantile(p) for p in LEVELS], stats.norm.ppf(LEVELS), rtol=1e-13, atol=1e-16)
    assert_allclose([central(p) for p in LEVELS], stats.norm.interval(LEVELS)[1], rtol=1e-13)
    assert (quantile(0.0), quantile(1.0), central(0.0), central(1.0)) == (-math.inf, math.inf, 0.0, math.inf)


@pytest.mark.parametrize("name", WITH_TIES)
def test_accuracy_of_the_mean(name):
    d = datasets.REGRESSION[name]()
    assert_allclose(literal("mae", d), sk.mean_absolute_error(d.y, d.mu), rtol=1e-12)
    assert_allclose(literal("rmse", d), sk.root_mean_squared_error(d.y, d.mu), rtol=1e-12)
    assert_allclose(literal("medae", d), np.median(np.abs(d.y - d.mu)), rtol=1e-15)
    assert_allclose(literal("r2", d), sk.r2_score(d.y, d.mu), rtol=1e-10)
    assert_allclose(literal("bias", d), np.mean(d.mu - d.y), rtol=1e-10, atol=1e-15)


PRIORS = {
    "": lambda mu, s: stats.norm(mu, s),
    "_laplace": lambda mu, s: stats.laplace(mu, s / math.sqrt(2)),
    "_uniform": lambda mu, s: stats.uniform(mu - s * math.sqrt(3), 2 * s * math.sqrt(3)),
}


@pytest.mark.parametrize("prior", PRIORS)
def test_priors_share_mean_and_standard_deviation(prior):
    mu, s = np.array([-1.0, 0.0, 4.0]), np.array([0.5, 1.0, 3.0])
    assert_allclose(PRIORS[prior](mu, s).mean(), mu, rtol=1e-12, atol=1e-15)
    assert_allclose(PRIORS[prior](mu, s).std(), s, rtol=1e-12)


@pytest.mark.parametrize("name", [*WITH_TIES, "uniform_noise"])
def test_log_scores(name):
    d = datasets.REGRESSION[name]()
    for prior in ("", "_laplace"):
        assert_allclose(literal("nll" + prior, d), -PRIORS[prior](d.mu, d.s).logpdf(d.y).mean(), rtol=1e-11)
    assert_allclose(literal("nll", d), scoringrules.logs_normal(d.y, d.mu, d.s).mean(), rtol=1e-11)
    peer = scoringrules.logs_laplace(d.y, d.mu, d.s / math.sqrt(2)).mean()
    assert_allclose(literal("nll_laplace", d), peer, rtol=1e-11)


def test_log_score_under_the_uniform_prior():
    d = datasets.uniform_noise()
    assert_allclose(literal("nll_uniform", d), -PRIORS["_uniform"](d.mu, d.s).logpdf(d.y).mean(), rtol=1e-11)


@pytest.mark.parametrize("name", WITH_TIES)
def test_crps(name):
    d = datasets.REGRESSION[name]()
    w = d.s * math.sqrt(3)
    assert_allclose(literal("crps", d), scoringrules.crps_normal(d.y, d.mu, d.s).mean(), rtol=1e-12)
    assert_allclose(literal("crps", d), properscoring.crps_gaussian(d.y, d.mu, d.s).mean(), rtol=1e-12)
    assert_allclose(literal("crps", d), uct.crps_gaussian(d.mu, d.s, d.y), rtol=1e-12)
    laplace = scoringrules.crps_laplace(d.y, d.mu, d.s / math.sqrt(2)).mean()
    assert_allclose(literal("crps_laplace", d), laplace, rtol=1e-12)
    uniform = scoringrules.crps_uniform(d.y, d.mu - w, d.mu + w).mean()
    assert_allclose(literal("crps_uniform", d), uniform, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_TIES)
def test_interval_and_pinball(name):
    d = datasets.REGRESSION[name]()
    assert_allclose(literal("interval_score", d), uct.interval_score(d.mu, d.s, d.y), rtol=1e-12)
    assert_allclose(literal("pinball", d), uct.check_score(d.mu, d.s, d.y), rtol=1e-12)
    losses = [sk.mean_pinball_loss(d.y, d.mu + quantile(q) * d.s, alpha=q) for q in LEVELS]
    assert_allclose(literal("pinball", d), np.mean(losses), rtol=1e-12)
    winkler = [
        scoringrules.interval_score(d.y, d.mu - central(p) * d.s, d.mu + central(p) * d.s, 1 - p).mean()
        for p in LEVELS
    ]
    assert_allclose(literal("interval_score", d), np.mean(winkler), rtol=1e-12)


@pytest.mark.parametrize("name", WITH_TIES)
def test_interval_proportions(name):
    d = datasets.REGRESSION[name]()
    arguments = d.mu, d.s, d.y
    mace = uct.mean_absolute_calibration_error(*arguments, vectorized=True)
    assert_allclose(literal("mace", d), mace, rtol=1e-12)
    rmsce = uct.root_mean_squared_calibration_error(*arguments, vectorized=True)
    assert_allclose(literal("rmsce", d), rmsce, rtol=1e-12)
    area = uct.miscalibration_area(*arguments, vectorized=True)
    assert_allclose(literal("miscalibration_area", d), area, rtol=1e-11)


@pytest.mark.parametrize("name", WITH_TIES)
def test_coverage_of_central_intervals(name):
    d = datasets.REGRESSION[name]()
    observed = []
    for p in LEVELS:
        low, high = stats.norm.interval(p, d.mu, d.s)
        observed.append(np.mean((low <= d.y) & (d.y <= high)))
    gap = np.array(observed) - LEVELS
    for p in (50, 90, 95):
        assert_allclose(literal(f"coverage_{p}", d), observed[p - 1], rtol=1e-14)
    low, high = stats.norm.interval(0.95, d.mu, d.s)
    assert_allclose(literal("interval_width_95", d), np.mean(high - low), rtol=1e-12)
    assert_allclose(literal("auce", d), np.trapezoid(np.abs(gap), dx=0.01), rtol=1e-11)
    assert_allclose(
        literal("auce_over", d), np.trapezoid((np.abs(gap) - gap) / 2, dx=0.01), rtol=1e-10, atol=1e-15
    )
    assert_allclose(
        literal("auce_under", d), np.trapezoid((np.abs(gap) + gap) / 2, dx=0.01), rtol=1e-10, atol=1e-15
    )


@pytest.mark.parametrize("name", CONTINUOUS)
def test_calibration_error_has_the_residual_the_right_way_round(name):
    """uncertainty-toolbox counts (mu - y)/s below the quantile: swapping y and mu puts it right."""
    d = datasets.REGRESSION[name]()
    _, observed = uct.get_proportion_lists_vectorized(d.y, d.s, d.mu, num_bins=101, prop_type="quantile")
    expected = np.mean((observed[1:-1] - np.array(LEVELS)) ** 2)
    assert_allclose(literal("calibration_error", d), expected, rtol=1e-10)


def test_the_sign_defect_of_quantile_proportions_exists_and_is_not_followed():
    """All targets lie far above the predicted means: no target is below any predicted quantile."""
    y, mu, s = np.full(50, 10.0), np.zeros(50), np.ones(50)
    _, observed = uct.get_proportion_lists_vectorized(mu, s, y, num_bins=101, prop_type="quantile")
    assert_allclose(observed[1:-1], 1.0, rtol=0, atol=0)  # the defect: it reports all of them below
    assert LITERAL["calibration_error"](y, mu, s) == pytest.approx(np.mean(np.square(LEVELS)), rel=1e-12)
    skewed = datasets.REGRESSION["biased"]()
    _, wrong = uct.get_proportion_lists_vectorized(skewed.mu, skewed.s, skewed.y, 101, prop_type="quantile")
    right = np.mean(stats.norm.cdf(skewed.y, skewed.mu, skewed.s)[:, None] <= LEVELS, axis=0)
    assert np.abs(wrong[1:-1] - right).max() > 0.4


@pytest.mark.parametrize("name", WITH_TIES)
def test_pit_distance_is_kolmogorov_smirnovs(name):
    d = datasets.REGRESSION[name]()
    peer = stats.kstest(stats.norm.cdf((d.y - d.mu) / d.s), "uniform").statistic
    assert_allclose(literal("pit_ks", d), peer, rtol=1e-11)


@pytest.mark.parametrize("name", WITH_TIES)
def test_spread_and_ranks(name):
    d = datasets.REGRESSION[name]()
    a, z = np.abs(d.y - d.mu), (d.y - d.mu) / d.s
    assert_allclose(literal("cv", d), stats.variation(d.s, ddof=1), rtol=1e-11)
    assert_allclose(literal("sharpness", d), uct.sharpness(d.s), rtol=1e-12)
    assert_allclose(literal("mean_std", d), d.s.mean(), rtol=1e-12)
    assert_allclose(literal("z_mean", d), z.mean(), rtol=1e-10, atol=1e-15)
    assert_allclose(literal("z_std", d), z.std(), rtol=1e-11)
    assert_allclose(average_ranks(a), stats.rankdata(a), rtol=0, atol=0)
    assert_allclose(literal("spearman", d), stats.spearmanr(d.s, a).statistic, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_bins_without_ties_are_those_of_array_split(name):
    d = datasets.REGRESSION[name]()
    order = np.argsort(d.s)
    bins = [(d.s[b], (d.y - d.mu)[b]) for b in np.array_split(order, 10)]
    parts = [abs(1 - np.sqrt(np.mean(e**2)) / np.sqrt(np.mean(s**2))) for s, e in bins]
    uce = sum(len(s) / len(d.s) * abs(np.mean(e**2) - np.mean(s**2)) for s, e in bins)
    assert_allclose(literal("ence", d), np.mean(parts), rtol=1e-11)
    assert_allclose(literal("uce", d), uce, rtol=1e-11)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n != "levi"])
def test_ranking_without_ties_by_cumulative_sums(name):
    d = datasets.REGRESSION[name]()
    a, n = np.abs(d.y - d.mu), len(d.y)
    counts = np.arange(1, n + 1)
    by_std, by_error = a[np.argsort(d.s)], np.sort(a)
    gap = np.mean(np.cumsum(by_std) / counts - np.cumsum(by_error) / counts) / a.mean()
    assert_allclose(literal("ause_mae", d), gap, rtol=1e-10)
    at = np.array([max(1, n * (100 - i) // 100) - 1 for i in range(100)])
    full = np.sqrt(np.mean(a**2))
    model = np.sqrt(np.cumsum(by_std**2) / counts)[at] / full
    oracle = np.sqrt(np.cumsum(by_error**2) / counts)[at] / full
    assert_allclose(literal("ause_rmse", d), np.trapezoid(model - oracle, dx=0.01), rtol=1e-10)
    assert_allclose(literal("aurg_rmse", d), np.trapezoid(1 - model, dx=0.01), rtol=1e-9)


@pytest.mark.parametrize("name", WITH_TIES)
def test_merci_is_the_inverted_cdf_percentile_of_the_ratios(name):
    d = datasets.REGRESSION[name]()
    a = np.abs(d.y - d.mu)
    factor = np.quantile(a / d.s, 0.95, method="inverted_cdf")
    assert np.mean(a <= factor * d.s * (1 + 1e-15)) >= 0.95
    assert_allclose(literal("merci", d), factor * d.s.mean(), rtol=1e-12)
    top = np.quantile(a, 0.95, method="inverted_cdf")
    expected = (factor * d.s.mean() - a.mean()) / (top - a.mean())
    assert_allclose(literal("n_merci", d), expected, rtol=1e-10)


def test_the_grid_of_kept_samples_against_floating_point_fractions():
    """``int((1 - f) * N)`` in floating point is never more, and sometimes one less, than in integers."""
    fractions = np.arange(0.0, 1.0, 0.01)
    differences = {kept(n, i) - int((1.0 - f) * n) for n in range(100, 2000) for i, f in enumerate(fractions)}
    assert differences == {0, 1}
