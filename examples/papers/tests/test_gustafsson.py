"""Gustafsson's findings under a shift at the smallest size, its toys against their definitions, numpyro missing."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from uq_tracking_papers import gustafsson
from uq_tracking_papers.datasets import sine, two_classes
from uq_tracking_papers.study import Study


def study_in(place):
    return Study("gustafsson", place, "test", address=f"dir:{place / 'runs'}")


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    study = study_in(tmp_path_factory.mktemp("gustafsson"))
    gustafsson.shift(study)
    return study.section({})


def test_ause_improves_with_the_number_of_samples(section):
    for part in ("AUSE improves", "AUSE, ECE and mIoU all improve"):
        (found,) = [one for one in section.findings if part in one.claim]
        assert found.holds, found.evidence


def test_rows_hold_both_ends_of_each_curve(section):
    rows = {(row.item, row.method, row.quantity): row for row in section.rows}
    single, eight = (rows["figure 6", "Ensembling", f"RMSE, M = {m}"] for m in (1, 8))
    assert single.low <= single.ours <= single.high
    assert eight.ours < single.ours
    assert {drawing.item for drawing in section.drawings} == {"figure 6", "figure 8"}


def test_without_numpyro_the_toys_are_skipped_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpyro", None)
    monkeypatch.setitem(sys.modules, "numpyro.diagnostics", None)
    monkeypatch.delitem(sys.modules, "uq_tracking_papers.hmc", raising=False)
    monkeypatch.delattr("uq_tracking_papers.hmc", raising=False)
    study = study_in(tmp_path)
    gustafsson.toys(study)
    (found,) = study.section({}).findings
    assert not found.holds
    assert "numpyro" in found.evidence
    assert "pip install uq-tracking-papers" in found.evidence


def test_the_sine_has_the_noise_of_eq_5():
    sample = sine(50_000, 0, training=True)
    assert np.abs(sample.x).max() <= 3
    z = (sample.y - np.sin(sample.x)) / (0.15 / (1 + np.exp(-sample.x)))
    assert_allclose([z.mean(), z.std()], [0, 1], atol=0.02)
    assert_allclose(sample.truth.std, 0.15 / (1 + np.exp(-sample.x)), rtol=1e-12)


def test_training_sees_the_right_half_and_as_many_of_each_class():
    sample = two_classes(300, 0)
    assert sample.x.min(axis=0)[0] >= 0
    assert np.abs(sample.x).max() <= 3
    assert_allclose(np.bincount(sample.y), [300, 300], rtol=0)


def test_classes_follow_their_probability():
    points = np.tile([[1.0, 1.5], [0.0, 0.1]], (20_000, 1))
    drawn = two_classes.at(points, 0)
    share = [drawn.y[k::2].mean() for k in (0, 1)]
    expected = 1 / (1 + np.exp(-4 * np.array([1.5 - 1.5 * np.sin(1), 0.1])))
    assert_allclose(share, expected, atol=0.015)
    assert len(two_classes.grid(10)) == 100
