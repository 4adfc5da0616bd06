"""Bands of curves over groups: they hold the curve, widen for dependent samples, and are drawn."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from tests.figures import made

BANDED = ("calibration", "coverage", "reliability", "sparsification_rmse")


def images(n=40, pixels=250, seed=0):
    """Images whose errors share a scale: pixels of one image are not independent."""
    rng = np.random.default_rng(seed)
    s = rng.gamma(4, 0.5, (n, pixels))
    mu = rng.normal(size=(n, pixels))
    y = mu + s * rng.normal(size=(n, pixels)) * rng.gamma(8, 1 / 8, (n, 1))
    return y, mu, s


@pytest.fixture(scope="module")
def report():
    return uq.evaluate(*images(), groups=np.arange(40))


@pytest.mark.parametrize("name", BANDED)
def test_a_band_holds_its_curve(report, name):
    curve = report.curves[name]
    main = curve.columns[curve.main]
    assert np.all(curve.columns["low"] <= main)
    assert np.all(curve.columns["high"] >= main)
    assert np.mean(curve.columns["high"] - curve.columns["low"]) > 0.005


def test_dependent_samples_make_a_wider_band_than_independent_ones(report):
    alone = uq.evaluate(*images()).curves["coverage"].columns
    grouped = report.curves["coverage"].columns
    middle = slice(30, 90)
    assert np.all((grouped["high"] - grouped["low"])[middle] > 1.5 * (alone["high"] - alone["low"])[middle])


def test_without_groups_only_shares_have_a_band():
    curves = uq.evaluate(*images()).curves
    assert "low" in curves["calibration"].columns
    assert "low" not in curves["reliability"].columns


def test_few_groups_change_nothing():
    y, mu, s = images(n=5)
    plain, grouped = uq.evaluate(y, mu, s), uq.evaluate(y, mu, s, groups=np.arange(5))
    for name in BANDED:
        before, after = plain.curves[name].columns, grouped.curves[name].columns
        assert before.keys() - after.keys() <= {"chance_low", "chance_high"}  # of independent samples
        for column in after:
            np.testing.assert_array_equal(before[column], after[column])


@pytest.mark.slow
def test_the_band_covers_the_curve_of_many_images():
    truth = uq.evaluate(*images(n=2000, seed=9)).curves["coverage"].columns["observed"]
    inside = []
    for seed in range(8):
        columns = uq.evaluate(*images(seed=seed), groups=np.arange(40)).curves["coverage"].columns
        inside.append(((columns["low"] <= truth) & (truth <= columns["high"]))[20:95].mean())
    assert np.mean(inside) > 0.8  # 0.95 less what 8 sets of 40 images can miss


@pytest.mark.slow
@pytest.mark.parametrize("seed", [10, 18, 22])
def test_the_band_of_groups_that_differ_widely_has_no_spikes(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(30), np.maximum(8, 75 * rng.gamma(2, 0.5, 30)).astype(int))
    std = rng.gamma(4, 0.25, len(groups))
    error = std * (
        rng.normal(0, 0.5, 30)[groups] + np.exp(0.4 * rng.normal(size=30))[groups] * rng.normal(size=len(std))
    )
    columns = uq.evaluate(np.zeros(len(std)), error, std, groups=groups).curves["coverage"].columns
    for end in ("low", "high"):
        assert np.abs(np.diff(columns[end], 2)).max() < 0.03


@pytest.mark.parametrize(
    ("name", "curve"), [("reliability", "reliability"), ("sparsification", "sparsification_rmse")]
)
def test_the_band_is_drawn(report, name, curve):
    curve = report.curves[curve].columns
    drawn = made.draw(name, report).axes[0].collections
    edges = [np.concatenate([path.vertices[:, 1] for path in one.get_paths()]) for one in drawn]
    assert any(np.isin(curve["low"], at).all() and np.isin(curve["high"], at).all() for at in edges)


def test_the_report_reads_back_with_its_bands(report):
    assert uq.Report.from_json(report.to_json()) == report
