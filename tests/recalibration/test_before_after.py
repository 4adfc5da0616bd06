from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import RecalibrationError, SettingsError, TrackingWarning
from uq_tracking.evaluation.recalibrated import add_recalibration, halves
from uq_tracking.metrics.registry import select
from uq_tracking.settings import Settings
from uq_tracking.tasks import REGRESSION

from .samples import METHODS, overconfident

Y, MU, S = overconfident(3000)
FIT = overconfident(3000, seed=1)
LIGHT = ("nll", "rmse", "calibration_error", "coverage_95", "ence")


def entry(report, method="std_scaling"):
    return report.recalibration["methods"][method]


def test_a_second_set_in_every_form_gives_the_same():
    data = uq.Predictions(*FIT)
    made = uq.evaluate(*FIT)
    reports = [uq.evaluate(Y, MU, S, calibration=source) for source in (FIT, data, made, made.statistics)]
    for report in reports:
        assert entry(report)["how"] == "second set"
        assert entry(report)["scores"] == entry(reports[0])["scores"]
    assert entry(reports[0])["recalibration"]["fitted_on"]["digest"] == data.digest()
    assert entry(reports[0])["scalars"] == {"std_scale": pytest.approx(2, rel=0.05)}


@pytest.mark.parametrize("source", [(Y, MU, S), uq.recalibrate(uq.Predictions(Y, MU, S))])
def test_a_fit_to_the_samples_that_are_scored_is_told(source):
    with pytest.warns(
        TrackingWarning, match="std_scaling was fitted on the samples it is scored on.*second set"
    ):
        report = uq.evaluate(Y, MU, S, calibration=source, metrics=LIGHT)
    assert entry(report)["how"] == "fitted on the samples it is scored on"


@pytest.mark.parametrize("method", METHODS)
def test_after_scores_are_the_scores_of_recalibrated_predictions(method):
    one = uq.recalibrate(FIT, method)
    report = uq.evaluate(Y, MU, S, calibration=one)
    expected = uq.evaluate(Y, *one.apply(MU, S)).scores
    found = entry(report, method)
    assert found["how"] == "fitted object"
    free = ("crps_laplace", "ence", "rmse", "ause_rmse", "n_merci", "spearman", "z_std", "r2")
    for key in expected if method != "cdf_isotonic" else free:
        assert_allclose(found["scores"][key], expected[key], rtol=1e-9, err_msg=key)
    assert found["scores"].keys() | found["undefined"].keys() >= expected.keys()
    assert uq.Recalibration.from_dict(found["recalibration"]) == one


def test_scores_of_corrected_quantiles_are_of_the_corrected_quantiles():
    one = uq.recalibrate(FIT, "cdf_isotonic")
    report = uq.evaluate(Y, MU, S, calibration=one)
    levels = np.arange(1, 100) / 100
    quantiles = one.quantile(MU, S, levels)
    shares = (quantiles >= Y).mean(axis=1)
    loss = np.maximum(levels[:, None] * (Y - quantiles), (levels[:, None] - 1) * (Y - quantiles))
    scores = entry(report, "cdf_isotonic")["scores"]
    assert_allclose(scores["calibration_error"], np.mean((shares - levels) ** 2), rtol=1e-6)
    assert_allclose(scores["pinball"], loss.mean(), rtol=1e-9)
    fine = (np.arange(4000) + 0.5) / 4000
    quantiles = one.quantile(MU[:200], S[:200], fine)
    gap = Y[:200] - quantiles
    crps = 2 * np.maximum(fine[:, None] * gap, (fine[:, None] - 1) * gap).mean()
    first = uq.evaluate(Y[:200], MU[:200], S[:200], calibration=one)
    assert_allclose(entry(first, "cdf_isotonic")["scores"]["crps"], crps, rtol=2e-4)
    assert "no density" in entry(first, "cdf_isotonic")["undefined"]["nll"]
    observed = entry(report, "cdf_isotonic")["curves"]["calibration"]["columns"]["observed"]
    assert_allclose(observed, shares, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "kind"), [("std_scaling", "exact"), ("std_scaling", "sketch"), ("cdf_isotonic", "exact")]
)
def test_cross_fitting_scores_one_half_by_the_other_halfs_fit(kind, method):
    groups = np.arange(3000) // 100
    data = uq.Predictions(Y, MU, S, groups=groups)
    report = uq.evaluate(data, calibration=method, statistics=kind, seed=3)
    side = halves(REGRESSION.samples(report.statistics, data), 3)
    assert sorted(np.bincount(side)) == [1500, 1500]
    assert all(len(set(side[groups == group])) == 1 for group in range(30))
    rule = uq.recalibrate(tuple(column[side == 0] for column in (Y, MU, S)), method)
    unseen = [column[side == 1] for column in (Y, MU, S)]
    expected = entry(uq.evaluate(*unseen, calibration=rule, statistics=kind), method)["scores"]
    found = entry(report, method)
    assert found["how"] == "fitted on half of the groups, scored on the others"
    assert (found["split"]["fitted"], found["split"]["scored"]) == (1500, 1500)
    assert found["split"]["scalars"] == pytest.approx(rule.scalars(), rel=1e-9)
    assert found["before"] == pytest.approx(uq.evaluate(*unseen, statistics=kind).scores, rel=1e-6)
    assert found["scalars"] == pytest.approx(uq.recalibrate(data, method).scalars(), rel=1e-6)
    for key, value in expected.items():
        assert_allclose(found["scores"][key], value, rtol=1e-9, err_msg=key)


def test_without_groups_the_halves_are_random_and_say_so():
    report = uq.evaluate(Y, MU, S, calibration="std_scaling")
    assert entry(report)["how"] == "fitted on a random half of the samples, scored on the others"
    assert entry(report)["split"]["scored"] == 1500
    assert uq.evaluate(Y, MU, S, calibration="std_scaling") == report
    assert entry(uq.evaluate(Y, MU, S, calibration="std_scaling", seed=1)) != entry(report)


def distances(repeats):
    """Distances of z_std to 1 after a cross-fit and of fresh data, and how much the former vary over splits."""
    rng = np.random.default_rng(0)
    crossed, fresh, spread = [], [], []
    for seed in range(repeats):
        std = rng.gamma(4, 0.25, 200)
        data = (2 * std * rng.normal(size=200), np.zeros(200), std)
        found = entry(uq.evaluate(*data, calibration=True, metrics=["z_std"], seed=seed))
        crossed.append(abs(found["scores"]["z_std"] - 1))
        spread.append(found["spread"]["z_std"])
        rule = uq.recalibrate(tuple(column[:100] for column in data))
        other = rng.gamma(4, 0.25, 100)
        z = 2 * other * rng.normal(size=100) / rule.apply_std(other)
        fresh.append(abs(z.std() - 1))
    return crossed, fresh, spread


def test_distances_of_four_cross_fits():
    assert [np.mean(found) for found in distances(4)] == pytest.approx(
        [0.06623184, 0.18828104, 0.067747138], rel=1e-6
    )


@pytest.mark.simulation
def test_after_figures_are_those_of_fresh_data():
    """A fit and a test of n / 2 each: the distance of z_std to 1 is what a fresh test set shows, not less."""
    crossed, fresh, spread = distances(150)
    error = np.hypot(np.std(crossed), np.std(fresh)) / np.sqrt(150)
    assert np.mean(crossed) == pytest.approx(np.mean(fresh), abs=3.5 * error)
    assert np.mean(spread) == pytest.approx(np.mean(fresh), abs=3.5 * error)


def test_cross_fitted_scores_do_not_flatter():
    rng = np.random.default_rng(1)
    n = 60
    s = rng.gamma(4, 0.25, n)
    data = uq.Predictions(s * rng.normal(size=n), np.zeros(n), s)  # calibrated: a fit can only learn noise
    honest = entry(uq.evaluate(data, calibration="std_binning", n_bins=7), "std_binning")["scores"]["nll"]
    with pytest.warns(TrackingWarning, match="fitted on the samples it is scored on"):
        seen = uq.evaluate(data, calibration=data, recalibration="std_binning", n_bins=7)
    flattered = entry(seen, "std_binning")["scores"]["nll"]
    assert flattered < uq.evaluate(data).scores["nll"] < honest


def test_several_methods_keep_their_order_and_the_first_is_drawn():
    report = uq.evaluate(
        Y, MU, S, calibration=FIT, recalibration=["cdf_isotonic", "std_scaling"], metrics=LIGHT
    )
    assert list(report.recalibration["methods"]) == ["cdf_isotonic", "std_scaling"]
    after = report.after()
    assert after.scores == entry(report, "cdf_isotonic")["scores"]
    assert report.after("std_scaling").scores == entry(report)["scores"]
    assert_allclose(
        report.curves["calibration_recalibrated"].columns["observed"],
        after.curves["calibration"].columns["observed"],
    )
    with pytest.raises(RecalibrationError, match="has scores after cdf_isotonic, std_scaling; evaluate with"):
        report.after("std_binning")


def test_the_report_with_its_recalibration_survives_its_files(tmp_path):
    report = uq.evaluate(Y, MU, S, calibration=FIT, recalibration=METHODS, metrics=LIGHT)
    json.dumps(report.recalibration, allow_nan=False)
    report.to_npz(tmp_path / "report.npz")
    for read in (uq.Report.from_json(report.to_json()), uq.Report.from_npz(tmp_path / "report.npz")):
        assert read == report
        assert read.after().scores == report.after().scores


@pytest.mark.slow
def test_exact_statistics_are_enough():
    report = uq.evaluate(Y, MU, S)
    options = {"metrics": select("regression"), "settings": Settings()}
    for calibration in (FIT, True):
        alone = add_recalibration(report, calibration, METHODS, **options)
        whole = add_recalibration(report, calibration, METHODS, **options, data=uq.Predictions(Y, MU, S))
        for method in METHODS:
            one, other = entry(alone, method)["scores"], entry(whole, method)["scores"]
            if calibration is FIT:
                for key, value in other.items():
                    assert_allclose(one[key], value, rtol=1e-9, err_msg=key)
            else:
                assert_allclose(one["crps"], other["crps"], rtol=0.05)  # other halves
    sketch = uq.evaluate(Y, MU, S, statistics="sketch")
    with pytest.raises(RecalibrationError, match=r"are a sketch.*pass the predictions"):
        add_recalibration(sketch, FIT, **options)


def test_counts_of_what_was_left_out_stay():
    y = np.where(np.arange(3000) % 5 == 0, np.nan, Y)
    report = uq.evaluate(y, MU, S, calibration=True, metrics=LIGHT)
    assert report.counts["n_missing"] == 600
    split = entry(report)["split"]
    assert split["fitted"] + split["scored"] == 2400


def test_float32_changes_nothing_but_rounding():
    narrow = [column.astype(np.float32) for column in (Y, MU, S)]
    wide = [column.astype(np.float64) for column in narrow]
    one, other = (entry(uq.evaluate(*columns, calibration=FIT))["scores"] for columns in (narrow, wide))
    for key, value in other.items():
        assert_allclose(one[key], value, rtol=1e-6, atol=1e-9, err_msg=key)


def test_what_cannot_be_fitted_is_an_entry_with_the_reason_and_a_warning():
    constant = np.full(3000, 0.5)
    with pytest.warns(TrackingWarning, match="no scores after std_isotonic: .*use std_scaling"):
        report = uq.evaluate(Y, MU, constant, calibration=["std_isotonic", "std_scaling"], metrics=LIGHT)
    assert entry(report, "std_isotonic").keys() == {"how", "refused"}
    assert entry(report)["scores"]["nll"] < report.scores["nll"]
    assert report.after().scores == entry(report)["scores"]
    with pytest.warns(TrackingWarning, match="needs at least two groups"):
        uq.evaluate(Y, MU, S, groups=np.zeros(3000), calibration=True, metrics=LIGHT)


def test_options_that_contradict_each_other():
    one = uq.recalibrate(FIT)
    with pytest.raises(SettingsError, match="omit recalibration="):
        uq.evaluate(Y, MU, S, calibration=one, recalibration="std_scaling")
    with pytest.raises(SettingsError, match="not what to fit them to; pass calibration="):
        uq.evaluate(Y, MU, S, recalibration="std_scaling")
    with pytest.raises(SettingsError, match="no recalibration method is called 'platt'"):
        uq.evaluate(Y, MU, S, calibration="platt")
    with pytest.raises(SettingsError, match="temperature recalibrates a classification; choose"):
        uq.evaluate(Y, MU, S, calibration=True, recalibration=["temperature"])
    temperature = uq.recalibrate(([0, 1, 1], [0.5, 1.0, -0.2]), "temperature", logits=True)
    with pytest.raises(
        SettingsError, match="temperature recalibrates a classification; pass a recalibration"
    ):
        uq.evaluate(Y, MU, S, calibration=temperature)
    with pytest.raises(RecalibrationError, match="cannot fit on a dict"):
        uq.evaluate(Y, MU, S, calibration={"a": 1})


def test_nothing_is_added_unasked():
    for calibration in (None, False):
        report = uq.evaluate(Y, MU, S, calibration=calibration, metrics=LIGHT)
        assert report.recalibration is None
        assert not any("recalibrated" in name for name in report.curves)
    with pytest.raises(RecalibrationError, match="scores after no recalibration"):
        report.after()
