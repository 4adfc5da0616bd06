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
    found = table(study, "table 3", Models.trained(study, multimodal))
    multimodal_findings(study, found)
    figure_4(study, lambda n, rng: heteroscedastic(n, rng).truth)
    study.found = found
    return study


def finding(study, part):
    (found,) = [one for one in study.section({}).findings if part in one.claim]
    return found


def test_a_gaussian_ensemble_fails_on_two_modes_but_not_in_ause(study):
    found = finding(study, "a Gaussian ensemble fails")
    assert found.holds, found.evidence
    assert finding(study, "as a mixture does not help").holds
    assert study.found[ENSEMBLE]["nll"] == pytest.approx(0.79, abs=0.15)  # of the moments of the truth: 0.77


def test_the_true_mixture_reaches_its_nll_and_a_calibration_error_near_0(study):
    truth = study.found[TRUTH]
    assert float(truth["nll"]) == pytest.approx(nll_moments(multimodal)[0], abs=4 * 0.71 / np.sqrt(2000))
    assert float(truth["calibration_error"]) < 5e-4
    assert float(study.found[MODE]["ause_mae"]) > 10 * float(truth["ause_mae"])


def test_calibration_error_settles_before_nll(study):
    found = finding(study, "settles first")
    assert found.holds, found.evidence
    rows = [row for row in study.section({}).rows if row.item == "figure 4"]
    nll = [row.ours for row in rows if row.method == "nll" and row.quantity.startswith("spread")]
    assert_allclose(nll, nll_moments(heteroscedastic)[1] / np.sqrt([8, 2048]), rtol=0.4)


def test_runs_are_logged_once(study):
    assert len(list((study.folder / "runs").iterdir())) >= 5
    before = sorted((study.folder / "runs").iterdir())
    table(study, "table 3", Models.trained(study, multimodal))
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
