"""Figures known in advance: printed ones, closed-form expectations, and limiting cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from . import datasets
from .literal import LITERAL, UndefinedScoreError
from .regression.calibration import coverage
from .regression.ranking import n_merci

PRINTED = {
    "mace": (0.37333, 5),
    "rmsce": (0.416576, 6),
    "miscalibration_area": (0.377104, 6),
    "sharpness": (0.648074, 6),
    "nll": (4.920361, 6),
    "crps": (0.590806, 6),
    "pinball": (0.298014, 6),
    "interval_score": (3.207557, 6),
}


def literal(key, data):
    return LITERAL[key](data.y, data.mu, data.s)


@pytest.mark.parametrize("key", PRINTED)
def test_three_points(key):
    value, digits = PRINTED[key]
    assert abs(literal(key, datasets.three_points()) - value) <= 0.5 * 10.0**-digits


def repeated(key, make, times=16, n=1024):
    """Mean over independent data sets and its standard error."""
    values = [literal(key, make(i, n)) for i in range(times)]
    return np.mean(values), np.std(values, ddof=1) / math.sqrt(times)


def xiong(kind):
    def make(i, n):
        all_of_them = datasets.xiong(kind, 16 * 1024)
        part = slice(i * n, (i + 1) * n)
        return datasets.Regression(all_of_them.y[part], all_of_them.mu[part], all_of_them.s[part])

    return make


def oracle_share(t):
    """E[|z|; |z| < q] / t for a standard normal z with P(|z| < q) = t."""
    q = stats.norm.ppf((1.0 + t) / 2.0)
    return 2.0 * (stats.norm.pdf(0.0) - stats.norm.pdf(q)) / t


def homoscedastic_ause_mae():
    """A constant s orders nothing: 1 minus the area below the oracle of half-normal errors."""
    return 1.0 - integrate.quad(oracle_share, 0.0, 1.0)[0] / math.sqrt(2.0 / math.pi)


def test_homoscedastic_ause_has_a_closed_form():
    assert homoscedastic_ause_mae() == pytest.approx(0.5697, abs=1e-4)


CLOSED_FORMS = [
    ("homoscedastic", "nll", math.log(0.1 * math.sqrt(2.0 * math.pi * math.e))),  # -.8836
    ("homoscedastic", "ause_mae", homoscedastic_ause_mae()),
    ("homoscedastic", "crps", 0.1 / math.sqrt(math.pi)),
    ("homoscedastic", "quadratic_score", 1.0 / (2.0 * 0.1 * math.sqrt(math.pi))),
    ("homoscedastic", "spherical_score", math.sqrt(1.0 / (2.0 * 0.1 * math.sqrt(math.pi)))),
    # E log |cos u| = -log 2, E |cos u| = 2 / pi, over whole periods
    ("heteroscedastic", "nll", math.log(0.2 * math.sqrt(2.0 * math.pi * math.e))),  # -.1905
    ("heteroscedastic", "crps", 0.4 * 2.0 / math.pi / math.sqrt(math.pi)),
    ("heteroscedastic", "mae", 0.4 * 2.0 / math.pi * math.sqrt(2.0 / math.pi)),
    ("heteroscedastic", "coverage_90", 0.90),
    ("heteroscedastic", "z_std", 1.0),
    ("heteroscedastic", "cv", math.sqrt(math.pi**2 / 8.0 - 1.0)),
    ("epistemic", "nll", math.log(0.05 * math.sqrt(2.0 * math.pi * math.e))),
    # the squared gap (p - F_N(p))^2 has expectation p (1 - p) / N
    ("epistemic", "calibration_error", np.mean([p / 100 * (1 - p / 100) for p in range(1, 100)]) / 1024),
]


@pytest.mark.parametrize(("kind", "key", "expected"), CLOSED_FORMS)
def test_expectation_under_the_true_distribution(kind, key, expected):
    """Within four standard errors of the mean over sixteen sets of 1024 samples, plus a bias of order 1/N."""
    value, error = repeated(key, xiong(kind))
    assert abs(value - expected) <= 4.0 * error + abs(expected) / 1024 + 1e-12


PUBLISHED = [
    ("heteroscedastic", "ause_mae", 0.21, 0.01),
    ("heteroscedastic", "ause_rmse", 0.25, 0.015),
    ("multimodal", "calibration_error", 0.02, 0.004),
    ("multimodal", "ause_mae", 0.0071, 0.001),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "key", "expected", "tolerance"), PUBLISHED)
def test_published_figures_of_the_synthetic_sets(kind, key, expected, tolerance):
    value, _ = repeated(key, xiong(kind))
    assert value == pytest.approx(expected, abs=tolerance)


def test_multimodal_prediction_fails_in_calibration_and_not_in_ranking():
    d = datasets.xiong("multimodal", 2048)
    assert literal("ause_mae", d) < 0.02 < 10 * literal("calibration_error", d)


def test_random_uncertainty_is_calibrated_by_its_quantiles_and_not_by_its_size():
    """Levi et al. 2019, section 4.1, recalibrated by the empirical distribution of Phi(z)."""
    d = datasets.levi(5000)
    assert literal("calibration_error", d) > 0.05
    z = (d.y - d.mu) / d.s
    recalibrated = stats.rankdata(z) / len(z)
    error = np.mean([(p / 100 - np.mean(recalibrated <= p / 100)) ** 2 for p in range(1, 100)])
    assert error < 1e-6
    after = datasets.Regression(d.y, d.mu + d.s * z.mean(), d.s * z.std())
    assert literal("ence", after) > 0.3
    assert literal("cv", after) == pytest.approx(literal("cv", d), rel=1e-12)


def test_oracle_and_constant_bound_the_ranking_scores():
    oracle = datasets.oracle()
    for key in ("ause_mae", "ause_rmse", "n_merci"):
        assert literal(key, oracle) == pytest.approx(0.0, abs=1e-14)
    assert literal("spearman", oracle) == pytest.approx(1.0, rel=1e-12)
    constant = datasets.constant_std()
    assert literal("n_merci", constant) == pytest.approx(1.0, rel=1e-12)
    assert literal("cv", constant) == 0.0
    assert literal("aurg_rmse", constant) == pytest.approx(0.0, abs=1e-14)


def test_a_constant_std_gives_any_ause_to_who_takes_the_rows_as_they_come():
    """The untied formula, rows best first and worst first, against the expectation over orders."""
    d = datasets.constant_std()
    a = np.abs(d.y - d.mu)
    counts = np.arange(1, len(a) + 1)

    def as_they_come(rows):
        return np.mean(np.cumsum(rows) / counts - np.cumsum(np.sort(a)) / counts) / a.mean()

    assert as_they_come(np.sort(a)) == pytest.approx(0.0, abs=1e-14)
    assert as_they_come(np.sort(a)[::-1]) > 1.0
    assert literal("ause_mae", d) == pytest.approx(homoscedastic_ause_mae(), abs=0.05)


@pytest.mark.parametrize("factor", [1e-3, 0.5, 7.0, 1e4])
def test_scaling_the_standard_deviations_leaves_ranking_alone(factor):
    d = datasets.gaussian("scaling", 200)
    scaled = datasets.Regression(d.y, d.mu, d.s * factor)
    for key in ("ause_mae", "ause_rmse", "aurg_rmse", "merci", "n_merci", "spearman", "cv"):
        assert literal(key, scaled) == pytest.approx(literal(key, d), rel=1e-10)


def test_half_of_n_merci_lies_half_way_from_oracle_to_constant():
    """Not, as the paper's text says, at uncertainties twice the oracle's."""
    d = datasets.gaussian("half_way", 400)
    a = np.abs(d.y - d.mu)
    top = np.sort(a)[math.ceil(0.95 * 400) - 1]
    merci = LITERAL["merci"](d.y, d.mu, d.s)
    share = n_merci(d.y, d.mu, d.s)
    assert merci == pytest.approx((1 - share) * a.mean() + share * top, rel=1e-12)


def test_coverage_counts_the_ends_of_the_interval():
    half_width = stats.norm.ppf(0.975)
    y = np.array([half_width * (1 - 1e-12), -half_width * (1 - 1e-12), half_width * (1 + 1e-12), 9.0])
    assert coverage(y, np.zeros(4), np.ones(4), 0.95) == 0.5
    assert coverage(np.array([0.0]), np.zeros(1), np.zeros(1), 0.95) == 1.0


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("continuous_1", {"r2", "ence", "uce", "cv", "n_merci", "spearman"}),
        ("perfect", {"crps_gain", "ause_mae", "ause_rmse", "aurg_rmse", "n_merci", "spearman"}),
        ("equal_errors", {"nll_uniform", "n_merci", "spearman"}),
        ("constant_std", {"nll_uniform", "spearman"}),
    ],
)
def test_undefined_scores_say_so(name, keys):
    d = datasets.REGRESSION[name]()
    undefined = set()
    for key, score in LITERAL.items():
        try:
            assert math.isfinite(score(d.y, d.mu, d.s))
        except UndefinedScoreError:
            undefined.add(key)
    assert undefined - {"nll_uniform"} == keys - {"nll_uniform"}
