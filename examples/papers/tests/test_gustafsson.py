"""Gustafsson's data are the authors', and the experiments run at the smallest size."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from uq_tracking_papers import gustafsson
from uq_tracking_papers.datasets import sine
from uq_tracking_papers.study import Study


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    place = tmp_path_factory.mktemp("gustafsson")
    study = Study("gustafsson", place, "test", address=f"dir:{place / 'runs'}")
    gustafsson.reproduce(study)
    return study.section


def rows_of(section, item):
    return {(row.method, row.quantity): row for row in section.rows if row.item == item}


def test_every_figure_is_there(section):
    assert [item.name for item in section.items] == [f"figure {number}" for number in range(1, 10)]
    assert {drawing.item for drawing in section.drawings} == {item.name for item in section.items}
    assert {finding.verdict for finding in section.findings} <= {"holds", "fails", "depends", "varies"}


def test_an_ensemble_comes_closer_to_the_authors_hmc_as_members_join(section):
    for toy in ("regression", "classification"):
        (found,) = [
            one
            for one in section.findings
            if one.claim == f"An ensemble comes closer to HMC as members join ({toy})"
        ]
        assert found.verdict == "holds", found.evidence
        rows = rows_of(section, "figure 5")
        one, sixteen = (rows["Ensembling", f"{toy}: KL(HMC || p), M = {count}"] for count in (1, 16))
        assert sixteen.ours < one.ours


def test_stagnation_of_mc_dropout_is_a_claim_of_its_own(section):
    (found,) = [one for one in section.findings if "MC-dropout stagnates" in one.claim]
    assert set(found.variants) == {"rotated by 10 degrees", "rotated by 20 degrees"}


def test_rows_hold_both_ends_of_each_curve(section):
    rows = rows_of(section, "figure 6")
    single, sixteen = (rows["Ensembling", f"terrain: RMSE [m], M = {count}"] for count in (1, 16))
    assert single.low <= single.ours <= single.high
    assert sixteen.ours < single.ours


def test_the_authors_hmc_is_read_as_variances():
    toy = gustafsson.toy_regression(Study("gustafsson", None))
    mean, std = toy.hmc
    assert toy.at[0, 0] == -7
    assert std[0] == pytest.approx(1.383, abs=1e-3)
    z = (toy.y - np.interp(toy.x[:, 0], toy.at[:, 0], mean)) / np.interp(toy.x[:, 0], toy.at[:, 0], std)
    assert np.mean(np.abs(z) <= 1.96) == pytest.approx(0.95, abs=0.02)


def test_the_authors_hmc_tells_the_authors_classes_apart():
    """Nearest places of the grid, by class: rows follow the second coordinate."""
    toy = gustafsson.toy_classification()
    assert_allclose(np.bincount(toy.y), [519, 520])
    assert toy.x[:, 0].min() > 0
    nearest = [np.argmin(np.sum((toy.at - point) ** 2, axis=1)) for point in toy.x]
    assert np.mean(toy.hmc[0][nearest].argmax(axis=1) == toy.y) > 0.97


def test_divergence_of_normal_distributions_in_closed_form():
    toy = gustafsson.toy_regression(Study("gustafsson", None))
    m = len(toy.at)
    narrow, wide = (np.zeros(m), np.full(m, 1.0)), (np.ones(m), np.full(m, 2.0))
    assert toy.divergence(narrow, wide) == pytest.approx(np.log(2) + 2 / 8 - 0.5, rel=1e-9)
    assert toy.divergence(wide, narrow) == pytest.approx(-np.log(2) + 5 / 2 - 0.5, rel=1e-9)


def test_the_sine_has_the_noise_of_eq_5():
    sample = sine(50_000, 0, training=True)
    assert np.abs(sample.x).max() <= 3
    z = (sample.y - np.sin(sample.x)) / (0.15 / (1 + np.exp(-sample.x)))
    assert_allclose([z.mean(), z.std()], [0, 1], atol=0.02)
    assert_allclose(sample.truth.std, 0.15 / (1 + np.exp(-sample.x)), rtol=1e-12)
