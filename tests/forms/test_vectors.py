"""Vectors predicted by a covariance or by joint draws, against scipy, scoringrules, quadrature and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scoringrules
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

import uq_tracking as uq
from uq_tracking.errors import InvalidValueError, SettingsError, ShapeError
from uq_tracking.evaluation.scoring import score
from uq_tracking.inputs.forms.draws import draw_vectors, expected_norm, expected_root, gaussian_vectors
from uq_tracking.statistics.collecting import build_statistics
from uq_tracking.statistics.store import read_statistics, write_statistics
from uq_tracking.tasks import REGRESSION

KEYS = ["energy_score", "variogram_score", "joint_nll", "joint_ks", "joint_coverage_50", "joint_coverage_90"]


def vectors(n=200, size=3, seed=0):
    """Truth drawn from the predicted distributions."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, size, size)) + np.eye(size)
    cov, mean = root @ root.swapaxes(1, 2), rng.normal(size=(n, size))
    return mean + np.einsum("nij,nj->ni", root, rng.normal(size=(n, size))), mean, cov


def scores(data, **options):
    return uq.evaluate(data, **options).scores


def test_the_log_score_is_that_of_scipy():
    y, mean, cov = vectors(20)
    literal = [-stats.multivariate_normal(m, c).logpdf(v) for v, m, c in zip(y, mean, cov, strict=True)]
    assert_allclose(gaussian_vectors(y, mean, cov)["joint_nll"], literal, rtol=1e-11)


@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_the_expected_length_is_that_of_chi(size):
    closed = math.sqrt(2) * math.exp(math.lgamma((size + 1) / 2) - math.lgamma(size / 2))
    assert_allclose(expected_norm(np.ones((1, size)), np.zeros((1, size))), closed, rtol=1e-11)


@pytest.mark.parametrize("far", [0.01, 1.0, 30.0, 1e4])
def test_the_expected_length_about_another_centre(far):
    one = far * special.erf(far / math.sqrt(2)) + math.sqrt(2 / math.pi) * math.exp(-far * far / 2)
    assert_allclose(expected_norm(np.ones((1, 1)), np.full((1, 1), far)), one, rtol=1e-11)  # folded normal
    laguerre = math.sqrt(math.pi / 2) * special.eval_genlaguerre(0.5, 0.5, -far * far / 2)
    assert_allclose(
        expected_norm(np.ones((1, 3)), np.array([[far, 0, 0]])), laguerre, rtol=1e-9
    )  # noncentral chi


def test_the_energy_score_is_an_integral_over_the_plane():
    y, mean, cov = vectors(3, 2)
    made = gaussian_vectors(y, mean, cov)["energy_score"]
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    grid = np.stack(np.meshgrid(nodes, nodes), -1).reshape(-1, 2)
    share = np.outer(weights, weights).reshape(-1) / weights.sum() ** 2
    for k in range(3):
        root = np.linalg.cholesky(cov[k])
        near = share @ np.linalg.norm(grid @ root.T + mean[k] - y[k], axis=1)
        apart = share @ np.linalg.norm(math.sqrt(2) * grid @ root.T, axis=1)
        assert_allclose(made[k], near - apart / 2, atol=2e-3)  # the kink of the norm limits the product rule


def test_the_energy_score_of_one_component_is_its_crps():
    y, mean, cov = vectors(50, 1)
    found = scores(uq.Predictions.from_covariance(y, mean, cov))
    assert_allclose(found["energy_score"], found["crps"], rtol=1e-10)
    assert_allclose(found["joint_nll"], found["nll"], rtol=1e-12)
    assert_allclose(found["joint_coverage_90"], found["coverage_90"])


@pytest.mark.parametrize("mean", [0.0, 0.3, 2.0, 12.0, 29.0, 500.0])
def test_the_expected_root_is_an_integral(mean):
    def density(z):
        return math.sqrt(abs(mean + z)) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    parts = [(-12.0, max(-mean, -12.0)), (max(-mean, -12.0), 12.0)]
    literal = sum(integrate.quad(density, *part, epsabs=1e-12, limit=400)[0] for part in parts)
    assert_allclose(expected_root(np.array([mean]), np.array([1.0])), literal, rtol=1e-9)


def test_the_variogram_score_pair_by_pair():
    y, mean, cov = vectors(4)
    literal = np.zeros(4)
    for k, i, j in np.ndindex(4, 3, 3):
        if i != j:
            gap, variance = mean[k, i] - mean[k, j], cov[k, i, i] + cov[k, j, j] - 2 * cov[k, i, j]
            expected = expected_root(np.array([gap]), np.array([variance]))[0]
            literal[k] += (abs(y[k, i] - y[k, j]) ** 0.5 - expected) ** 2
    assert_allclose(gaussian_vectors(y, mean, cov)["variogram_score"], literal, rtol=1e-11)


def test_joint_draws_are_scored_as_scoringrules_does():
    rng = np.random.default_rng(0)
    y, draws = rng.normal(size=(30, 4)), rng.normal(size=(30, 12, 4))
    data = uq.Predictions.from_samples(y, np.moveaxis(draws, 1, 0), joint=True)
    found = scores(data)
    energy = scoringrules.es_ensemble(y, draws, estimator="fair")
    variogram = scoringrules.vs_ensemble(y, draws, p=0.5, estimator="fair")
    assert_allclose(found["energy_score"], energy.mean(), rtol=1e-12)
    assert_allclose(found["variogram_score"], variogram.mean(), rtol=1e-12)
    draws[3, 2, 1] = np.nan  # that draw does not count, in that vector
    part = draw_vectors(y[3:4], np.delete(draws[3:4], 2, axis=1))
    for key, value in draw_vectors(y[3:4], draws[3:4]).items():
        assert_allclose(value, part[key], rtol=1e-12)
    undefined = uq.evaluate(data, metrics=["joint_ks", "joint_nll"]).undefined
    assert "needs the covariance" in undefined["joint_ks"]
    assert "no density" in undefined["joint_nll"]


def test_draws_of_a_normal_vector_converge_to_its_scores():
    y, mean, cov = vectors(300)
    rng = np.random.default_rng(1)
    draws = mean + np.einsum("nij,mnj->mni", np.linalg.cholesky(cov), rng.normal(size=(60, 300, 3)))
    exact = scores(uq.Predictions.from_covariance(y, mean, cov))
    drawn = scores(uq.Predictions.from_samples(y, draws, joint=True))
    assert_allclose(drawn["energy_score"], exact["energy_score"], rtol=0.02)
    assert_allclose(drawn["variogram_score"], exact["variogram_score"], rtol=0.05)


def test_distances_of_true_covariances_are_chi_square():
    n = 4000
    y, mean, cov = vectors(n)
    report = uq.evaluate(uq.Predictions.from_covariance(y, mean, cov))
    z = np.linalg.solve(np.linalg.cholesky(cov), (y - mean)[..., None])[..., 0]
    square = (z * z).sum(axis=1)
    assert_allclose(report.scores["joint_ks"], stats.kstest(square, stats.chi2(3).cdf).statistic, rtol=1e-9)
    assert report.scores["joint_ks"] < 1.95 / math.sqrt(n)
    for level in (50, 90, 95):
        share = np.mean(square <= stats.chi2(3).ppf(level / 100))
        assert_allclose(report.scores[f"joint_coverage_{level}"], share, rtol=1e-12)
        assert abs(share - level / 100) < 4 * math.sqrt(level / 100 * (1 - level / 100) / n)
    curve = report.curves["joint_coverage"].columns
    assert_allclose(curve["observed"][49], report.scores["joint_coverage_50"])
    plain = uq.evaluate(y, mean, np.sqrt(np.einsum("nii->ni", cov))).scores
    assert {key: report.scores[key] for key in plain} == plain  # components are scored as ever


def test_uncorrelated_covariances_are_found_out():
    y, mean, cov = vectors(2000)
    true = scores(uq.Predictions.from_covariance(y, mean, cov))
    marginal = np.where(np.eye(3) > 0, cov, 0.0)
    wrong = scores(uq.Predictions.from_covariance(y, mean, marginal))
    assert wrong["nll"] == true["nll"]
    assert wrong["joint_ks"] > 5 * true["joint_ks"]
    for key in ("energy_score", "variogram_score", "joint_nll"):
        assert wrong[key] > true[key]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["covariance", "draws"])
@pytest.mark.parametrize("how", ["exact", "sketch"])
def test_merged_streamed_and_stored(form, how, tmp_path):
    y, mean, cov = vectors()
    groups = np.arange(200) // 20
    if form == "covariance":
        data = uq.Predictions.from_covariance(y, mean, cov, groups=groups)
    else:
        draws = mean + np.random.default_rng(2).normal(size=(9, 200, 3))
        data = uq.Predictions.from_samples(y, draws, joint=True, groups=groups)
    whole = uq.evaluate(data, statistics=how)
    keep = np.broadcast_to((np.arange(200) < 77)[:, None], (200, 3))
    layout = REGRESSION.layout_for(data.facts)
    parts = [build_statistics(layout, data.part(side), how) for side in (keep, ~keep)]
    write_statistics(tmp_path / "s.npz", parts[0] + parts[1])
    data.save(tmp_path / "p.npz")
    stream = uq.Accumulator(statistics=how)
    for side in (keep, ~keep):
        stream.update(data.part(side))
    found = {
        "merged": score(parts[0] + parts[1]),
        "stored": score(read_statistics(tmp_path / "s.npz")),
        "loaded": uq.evaluate(uq.Predictions.load(tmp_path / "p.npz"), statistics=how),
        "streamed": stream.compute(),
    }
    for name, report in found.items():
        for key in {*KEYS, "crps", "coverage_90"} & whole.scores.keys():
            assert_allclose(report.scores[key], whole.scores[key], rtol=1e-9, err_msg=f"{name} {key}")
    assert found["streamed"].intervals.keys() == whole.intervals.keys()
    low, high = whole.intervals["energy_score"]
    assert low < whole.scores["energy_score"] < high
    assert uq.Predictions.load(tmp_path / "p.npz").digest() == data.digest()


def test_a_sketch_is_near():
    y, mean, cov = vectors(3000)
    data = uq.Predictions.from_covariance(y, mean, cov)
    exact, sketch = scores(data), scores(data, statistics="sketch")
    for key in KEYS:
        assert_allclose(sketch[key], exact[key], rtol=2e-3, atol=1e-3, err_msg=key)


def test_only_whole_vectors_count_as_vectors():
    y, mean, cov = vectors(50)
    y[4, 1], mask = np.nan, np.zeros((50, 3), dtype=bool)
    mask[7] = True
    mask[9, 2] = True
    data = uq.Predictions.from_covariance(y, mean, cov, mask=mask)
    left = np.delete(np.arange(50), [4, 7, 9])
    cut = scores(uq.Predictions.from_covariance(y[left], mean[left], cov[left]))
    found = scores(data)
    for key in KEYS:
        assert_allclose(found[key], cut[key], rtol=1e-10)
    assert data.n == 150 - 5
    mask[:, 0] = True
    nothing = uq.evaluate(uq.Predictions.from_covariance(y, mean, cov, mask=mask), metrics=["energy_score"])
    assert "every vector lacks a component" in nothing.undefined["energy_score"]


def test_one_covariance_for_all_and_one_vector_alone():
    y, mean, cov = vectors(20)
    one = uq.Predictions.from_covariance(y, mean, cov[0])
    every = uq.Predictions.from_covariance(y, mean, np.stack([cov[0]] * 20))
    assert scores(one) == scores(every)
    alone = uq.evaluate(uq.Predictions.from_covariance(y[0], mean[0], cov[0]), metrics=["joint_nll"])
    literal = -stats.multivariate_normal(mean[0], cov[0]).logpdf(y[0])
    assert_allclose(alone.scores["joint_nll"], literal, rtol=1e-12)


def test_after_a_recalibration_the_components_are_scored():
    y, mean, cov = vectors()
    report = uq.evaluate(uq.Predictions.from_covariance(y, mean, cov), calibration=True, curves="scale_sweep")
    after = report.recalibration["methods"]["std_scaling"]["scores"]
    assert {"nll", "crps", "coverage_90"} <= after.keys()
    assert "energy_score" not in after
    assert "crps" in report.curves["scale_sweep"].columns


def test_what_cannot_be_scored_is_named():
    y, mean, cov = vectors(5)
    made = uq.Predictions.from_covariance
    with pytest.raises(ShapeError, match=r"cov has shape \(5, 3\); pass \(5, 3, 3\), or one \(3, 3\)"):
        made(y, mean, mean)
    with pytest.raises(InvalidValueError, match="not symmetric for 5 vectors"):
        made(y, mean, np.triu(cov))
    flat = np.ones((3, 3))
    with pytest.raises(InvalidValueError, match="not positive definite for 5 vectors"):
        made(y, mean, flat)
    assert made(y, mean, flat, joint=False).n == 15
    with pytest.raises(InvalidValueError, match="the root of the diagonal of cov"):
        made(y, mean, -cov)
    with pytest.raises(SettingsError, match="with a covariance, which is scored as that of a normal"):
        uq.evaluate(made(y, mean, cov), family="laplace")
    asked = uq.evaluate(y, mean, np.ones((5, 3)), metrics=["energy_score"])
    assert "it needs vectors" in asked.undefined["energy_score"]
