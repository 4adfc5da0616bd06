"""Xiong's findings at the smallest size at which they show, and the expectations they are held against."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from uq_tracking_papers.datasets import DATASETS, epistemic, heteroscedastic, homoscedastic, multimodal
from uq_tracking_papers.study import Study
from uq_tracking_papers.xiong import (
    ENSEMBLE,
    MODE,
    TRUTH,
    Models,
    figure_4,
    multimodal_findings,
    nll_moments,
    settled,
    table,
)

NORMAL = 0.5 * np.log(2 * np.pi * np.e)
"""Entropy of a standard normal distribution."""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    place = tmp_path_factory.mktemp("xiong")
    study = Study("xiong", place, "test", address=f"dir:{place / 'runs'}")
    found = table(study, Models.trained(study, multimodal))
    multimodal_findings(study, found)
    figure_4(study, Models.trained(study, heteroscedastic))
    study.found = found
    return study


def finding(study, part):
    (found,) = [one for one in study.section.findings if part in one.claim]
    return found


def test_a_gaussian_ensemble_fails_on_two_modes_but_not_in_ause(study):
    assert finding(study, "a Gaussian ensemble fails").verdict == "holds"
    by_ause = finding(study, "Gaussian ensemble is near perfect by AUSE")
    assert by_ause.variants["a mode predicts"] == 1, by_ause.evidence
    assert study.found[ENSEMBLE]["nll"] == pytest.approx(0.79, abs=0.15)  # of the moments of the truth: 0.77


def test_by_auses_alone_what_the_truth_predicts_decides_whether_an_energy_based_model_is_near_it(study):
    shares = finding(study, "all metrics place energy-based regression near the truth").variants
    assert list(shares) == ["a mode predicts", "the mean predicts"]
    assert shares["the mean predicts"] == 0


def test_the_true_mixture_reaches_its_nll_and_a_calibration_error_near_0(study):
    truth = study.found[TRUTH]
    assert truth["nll"] == pytest.approx(nll_moments(multimodal)[0], abs=4 * 0.71 / np.sqrt(2000))
    assert truth["calibration_error"].max() < 5e-4
    assert np.all(study.found[MODE]["ause_mae"] > 10 * truth["ause_mae"])


def test_calibration_error_is_the_most_stable(study):
    found = finding(study, "Calibration error is the most stable metric")
    assert found.share == 1, found.evidence
    rows = [row for row in study.section.rows if row.item == "figure 4"]
    nll = [row.ours for row in rows if row.method == "nll" and row.quantity.startswith("spread")]
    expected = nll_moments(heteroscedastic)[1] / np.sqrt([8, 64, 2048])
    assert_allclose(nll, expected, rtol=0.5)


def test_the_p_value_of_spearman_converges_to_0_and_the_correlation_does_not(study):
    found = finding(study, "converges to 0")
    assert found.verdict == "depends"
    assert found.variants == {"the correlation": 0.0, "its p-value": 1.0}


def test_runs_are_logged_once(study):
    before = sorted((study.folder / "runs").iterdir())
    assert len(before) == 5
    table(study, Models.trained(study, multimodal))
    assert sorted((study.folder / "runs").iterdir()) == before


@pytest.mark.parametrize(
    ("data", "mean", "variance"),
    [
        (homoscedastic, np.log(0.1) + NORMAL, 0.5),
        # log |cos| has mean -log 2 and variance pi^2 / 12.
        (heteroscedastic, np.log(0.4) - np.log(2) + NORMAL, 0.5 + np.pi**2 / 12),
        (epistemic, np.log(0.05) + NORMAL, 0.5),
    ],
)
def test_moments_of_the_nll_in_closed_form(data, mean, variance):
    assert nll_moments(data) == pytest.approx((mean, np.sqrt(variance)), abs=2e-3)


def test_moments_of_the_mixtures_nll_by_simulation():
    sample = multimodal(200_000, 0, quantile_scores=False)
    nll = sample.truth.form.columns["nll"]
    error = nll.std() / np.sqrt(len(nll))
    assert nll_moments(multimodal) == pytest.approx((nll.mean(), nll.std()), abs=4 * error)


def test_a_size_counts_as_settled_only_if_all_larger_ones_do():
    columns = {"samples": np.array([8, 16, 32]), "nll spread": np.array([0.01, 0.03, 0.01])}
    assert settled(columns, "nll") == 32
    assert settled({**columns, "nll spread": np.array([0.01, 0.01, np.nan])}, "nll") == np.inf


def test_training_leaves_out_the_gap():
    assert set(DATASETS) == {"homoscedastic", "heteroscedastic", "multimodal", "epistemic"}
    seen = epistemic(4000, 0, training=True).x
    inside = (seen > 0.35) & (seen < 0.65)
    assert not inside.any()
    assert seen.min() < 0.01
    assert seen.max() > 0.99
    assert (np.abs(epistemic(4000, 0).x - 0.5) < 0.15).mean() == pytest.approx(0.3, abs=0.03)
