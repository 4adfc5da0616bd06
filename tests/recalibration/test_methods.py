from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, special, stats
from sklearn.isotonic import IsotonicRegression

import uq_tracking as uq
from uq_tracking.errors import (
    InputTypeError,
    InvalidValueError,
    RecalibrationError,
    SettingsError,
    ShapeError,
)
from uq_tracking.families import family_of
from uq_tracking.recalibration import FittedOn, StdIsotonic, std
from uq_tracking.recalibration.quantiles import Tabulated, knot_ranks
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import build_statistics
from uq_tracking.statistics.regression import REGRESSION

from .samples import METHODS, overconfident

values = st.integers(-8, 8).map(lambda i: i / 4)
positive = st.integers(1, 12).map(lambda i: i / 4)
rows = st.lists(st.tuples(values, values, positive), min_size=12, max_size=60)


def arrays(samples):
    return tuple(np.asarray(column, dtype=float) for column in zip(*samples, strict=True))


# std scaling


@pytest.mark.slow
@given(rows.filter(lambda samples: any(y != mu for y, mu, _ in samples)))
def test_scaling_makes_the_mean_of_squared_z_one(samples):
    y, mu, s = arrays(samples)
    new_mean, new_std = uq.recalibrate((y, mu, s), "std_scaling").apply(mu, s)
    assert_array_equal(new_mean, mu)
    assert_allclose(np.mean(((y - mu) / new_std) ** 2), 1, rtol=1e-12)


def test_laplace_scaling_makes_the_mean_scale_one():
    y, mu, s = overconfident()
    new = uq.recalibrate((y, mu, s), family="laplace").apply_std(s)
    assert_allclose(np.mean(np.abs(y - mu) / (new / np.sqrt(2))), 1, rtol=1e-12)


@pytest.mark.parametrize("family", ["gaussian", "laplace", "student_t"])
def test_the_factor_has_the_largest_likelihood(family):
    y, mu, s = overconfident(2000)
    pdf, z = family_of(Settings(family=family, dof=6.0)).pdf, (y - mu) / s
    one = uq.recalibrate((y, mu, s), family=family, dof=6.0)
    found = optimize.minimize_scalar(
        lambda f: np.log(f) - np.log(pdf(z / f)).mean(),
        bounds=(0.1, 10),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert_allclose(one.factor, found.x, rtol=1e-6)


@pytest.mark.parametrize("corrupt", [1e3, 1e6, 1e9])
def test_a_corrupt_sample_does_not_hide_the_factor_of_largest_likelihood(corrupt):
    z = np.random.default_rng(3).standard_t(5, 1000)
    z[0] = corrupt
    one = uq.recalibrate((z, 0 * z, np.ones(1000)), family="student_t", dof=5.0)

    def slope(f):  # of the likelihood: the mean of (v + 1) t^2 / (v + t^2) is 1 where it is 0
        return np.mean(6 * np.square(z / f) / (3 + np.square(z / f))) - 1

    assert_allclose(one.factor, optimize.brentq(slope, 0.1, 100, xtol=1e-12), rtol=1e-6)


def test_uniform_scaling_holds_every_target():
    y, mu, s = overconfident()
    report = uq.evaluate(y, mu, uq.recalibrate((y, mu, s), family="uniform").apply_std(s))
    assert "nll_uniform" in report.scores


def test_scaling_leaves_ranking_scores_alone():
    data = uq.Predictions(*overconfident())
    before, after = uq.evaluate(data), uq.evaluate(uq.recalibrate(data).apply_to(data))
    for key in ("ause_rmse", "ause_mae", "aurg_rmse", "spearman", "n_merci", "cv", "rmse", "bias"):
        assert_allclose(after.scores[key], before.scores[key], rtol=0, atol=1e-9, err_msg=key)
    assert after.scores["nll"] < before.scores["nll"]


# cdf_isotonic


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 4000, 60_000])
@pytest.mark.parametrize("kind", ["exact", "sketch"])
def test_corrected_quantiles_hold_their_share_of_the_fit_set(n, kind):
    rng = np.random.default_rng(1)
    mu, s = rng.normal(size=n), rng.gamma(4, 0.25, n)
    y = mu + s * (rng.gamma(2, 1.0, n) - 0.5)  # skewed and biased
    data = uq.Predictions(y, mu, s)
    one = uq.recalibrate(build_statistics(REGRESSION, data, kind), "cdf_isotonic")
    report = uq.evaluate(data, calibration=one, statistics=kind)
    after = report.recalibration["methods"]["cdf_isotonic"]["scores"]
    assert after["calibration_error"] < 2 / n**2 + 1e-9
    assert after["pit_ks"] < 1 / n + 2e-3
    for level in (0.1, 0.5, 0.95):
        share = np.mean(y <= one.quantile(mu, s, level))
        assert_allclose(share, level, atol=1 / n + 1e-3)
        assert_allclose(after["coverage_95"], 0.95, atol=2 / n + 1e-3)


def test_the_table_follows_ties_and_has_the_extremes_at_its_ends():
    z = np.repeat([-1.0, 0.0, 0.5, 3.0], [10, 60, 20, 10])
    one = uq.recalibrate((z, np.zeros(100), np.ones(100)), "cdf_isotonic")
    assert (one.z[0], one.z[-1]) == (-1, 3)
    assert_allclose(one.quantile(0.0, 1.0, [0, 0.05, 0.3, 0.69, 0.8, 0.95, 1]), [-1, -1, 0, 0, 0.5, 3, 3])
    assert_allclose(one.z_mean, z.mean())
    assert_allclose(one.z_scale, z.std())


def test_the_table_stays_small():
    for n in (10, 1001, 1002, 5000, 10**7, 10**10):
        ranks = knot_ranks(n)
        assert (ranks[0], ranks[-1]) == (1, n)
        assert np.all(np.diff(ranks) > 0)
        assert len(ranks) < 1300


def test_a_tabulated_distribution_is_consistent():
    table = Tabulated((-1.0, 0.0, 0.0, 4.0), (0.0, 0.25, 0.5, 1.0))
    assert_allclose(table.cdf(np.array([-2, -1, -0.5, 0, 2, 5.0])), [0, 0, 0.125, 0.5, 0.75, 1])
    assert_allclose(table.quantile(np.array([0, 0.125, 0.3, 0.75, 1])), [-1, -0.5, 0, 2, 4])
    assert np.isnan(table.pdf(np.array([-2, -0.5, 2, 4.5]))).all()
    half = table.central([0.1, 0.5, 0.9, 1.0])
    held = table.cdf(half) - table.cdf(np.nextafter(-half, -np.inf))
    assert np.all(held >= np.array([0.1, 0.5, 0.9, 1.0]) - 1e-12)
    assert_allclose(half, [0, 2 / 3, 3.2, 4])


# std_isotonic


@given(rows)
@pytest.mark.slow
def test_isotonic_regression_agrees_with_scikit_learn(samples):
    y, mu, s = arrays(samples)
    if np.ptp(s) == 0 or ((y - mu) ** 2)[s == s.min()].sum() == 0:
        return
    statistics = build_statistics(REGRESSION, uq.Predictions(y, mu, s))
    try:
        with patch.object(std, "END_BLOCK", 0):
            one = StdIsotonic.fit(statistics, Settings(), FittedOn(1, "exact"))
    except RecalibrationError:
        assert IsotonicRegression().fit(s**2, (y - mu) ** 2).predict([s.min() ** 2])[0] == 0
        return
    peer = IsotonicRegression(out_of_bounds="clip").fit(s**2, (y - mu) ** 2)
    grid = np.linspace(0.1, 4, 57)
    assert_allclose(one.apply_std(grid) ** 2, peer.predict(grid**2), rtol=1e-9, atol=1e-12)


def test_one_lucky_sample_does_not_claim_certainty():
    y, mu, s = overconfident(500)
    y[np.argmin(s)] = mu[np.argmin(s)] + 1e-9
    one = uq.recalibrate((y, mu, s), "std_isotonic")
    smallest = np.argsort(s)[:20]
    assert one.apply_std([0.0])[0] > 0.3 * np.sqrt(np.mean((y - mu)[smallest] ** 2))


def test_a_sketch_gives_the_same_isotonic_fit():
    data = uq.Predictions(*overconfident(20_000))
    exact, sketch = (
        uq.recalibrate(build_statistics(REGRESSION, data, kind), "std_isotonic")
        for kind in ("exact", "sketch")
    )
    grid = np.quantile(data.std, np.linspace(0.02, 0.98, 30))
    assert_allclose(sketch.apply_std(grid), exact.apply_std(grid), rtol=0.02)


def test_an_oracle_of_many_levels_is_thinned():
    rng = np.random.default_rng(0)
    s = rng.uniform(1, 2, 20_000)
    one = uq.recalibrate((s * rng.choice([-3, 3], 20_000), np.zeros(20_000), s), "std_isotonic")
    assert len(one.variance) <= 1000
    grid = np.linspace(1.01, 1.99, 50)
    assert_allclose(one.apply_std(grid), 3 * grid, rtol=1e-2)


# std_binning


def test_each_bin_takes_its_root_mean_squared_error():
    y, mu, s = overconfident(1003)
    one = uq.recalibrate((y, mu, s), "std_binning", n_bins=7)
    order = np.argsort(s)
    new = one.apply_std(s)
    for part in np.array_split(order, 7):
        assert_allclose(new[part], np.sqrt(np.mean((y - mu)[part] ** 2)), rtol=1e-12)
    assert_array_equal(one.apply_std([0.0, 1e9]), [one.values[0], one.values[-1]])


def test_bins_never_split_a_tie():
    s = np.repeat([1.0, 2.0], [30, 70])
    e = np.where(s == 1, 3.0, 5.0)
    one = uq.recalibrate((e, np.zeros(100), s), "std_binning")
    assert_array_equal(one.apply_std([1.0, 2.0]), [3, 5])
    constant = uq.recalibrate((e, np.zeros(100), np.ones(100)), "std_binning")
    assert_allclose(constant.values, [np.sqrt(np.mean(e**2))])


# temperature


@pytest.fixture(scope="module")
def classified():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2, size=(40, 25, 4))
    draws = rng.gumbel(size=logits.shape)
    return np.argmax(logits + draws, axis=-1), 3 * logits


def loss(labels, logits, t):
    return -np.mean(np.take_along_axis(special.log_softmax(logits / t, axis=-1), labels[..., None], -1))


def test_temperature_minimizes_the_likelihood(classified):
    labels, logits = classified
    one = uq.recalibrate((labels, logits), "temperature", logits=True, split="val")
    found = optimize.minimize_scalar(lambda t: loss(labels, logits, t), bounds=(0.5, 10), method="bounded")
    assert_allclose(one.temperature, found.x, rtol=1e-4)
    assert loss(labels, logits, one.temperature) < loss(labels, logits, 1.0)
    assert (one.fitted_on.n, one.fitted_on.split) == (1000, "val")
    assert_allclose(
        one.apply(logits, logits=True), special.softmax(logits / one.temperature, axis=-1), rtol=1e-12
    )
    assert one.apply(logits.astype(np.float32), logits=True).dtype == np.float32


def test_temperature_does_not_depend_on_offsets_and_scales_with_the_logits(classified):
    labels, logits = classified
    one = uq.recalibrate((labels, logits), "temperature", logits=True).temperature
    assert_allclose(
        uq.recalibrate((labels, 1e6 * logits + 5e6), "temperature", logits=True).temperature,
        1e6 * one,
        rtol=1e-6,
    )
    as_log_probs = special.log_softmax(logits, axis=-1)
    assert_allclose(
        uq.recalibrate((labels, as_log_probs), "temperature", logits=True).temperature, one, rtol=1e-6
    )


def test_temperature_of_predictions_with_classes_on_another_axis(classified):
    labels, logits = classified
    hidden = np.where(np.arange(25) < 5, 255, labels)
    images = np.moveaxis(logits, -1, 0)
    data = uq.Predictions.from_probs(hidden, images, logits=True, class_axis=0, ignore_label=255)
    one = uq.recalibrate(data, "temperature", split="val")
    expected = uq.recalibrate((hidden, logits), "temperature", logits=True, ignore_label=255)
    assert_allclose(one.temperature, expected.temperature, rtol=1e-9)
    assert one.fitted_on == FittedOn(800, "arrays", "val", data.digest())
    assert_allclose(
        one.apply(images, logits=True, class_axis=0),
        np.moveaxis(one.apply(logits, logits=True), -1, 0),
        rtol=1e-12,
    )
    with pytest.raises(SettingsError, match=r"are for arrays; the .* holds its own"):
        uq.recalibrate(data, "temperature", ignore_label=255)


def test_one_wild_logit_does_not_lead_the_search_astray(classified):
    labels, logits = classified
    one = uq.recalibrate((labels, logits), "temperature", logits=True).temperature
    wild = logits.copy()
    wild[0, 0, labels[0, 0]] = 1e7  # right, and already certain: it adds nothing to the loss
    assert_allclose(uq.recalibrate((labels, wild), "temperature", logits=True).temperature, one, rtol=0.02)


def test_temperature_of_one_logit_and_ignored_labels(classified):
    labels, logits = classified
    pair = np.stack([np.zeros((40, 25)), logits[..., 0]], axis=-1)
    truth = (labels == 0).astype(np.uint8)
    two = uq.recalibrate((truth, pair), "temperature", logits=True)
    one = uq.recalibrate((truth, logits[..., 0]), "temperature", logits=True)
    assert_allclose(one.temperature, two.temperature, rtol=1e-9)
    assert_allclose(one.apply(logits[..., 0], logits=True), two.apply(pair, logits=True)[..., 1], rtol=1e-9)
    hidden = np.where(np.arange(25) < 5, 255, labels)
    kept = uq.recalibrate((hidden, logits), "temperature", logits=True, ignore_label=255)
    assert kept.fitted_on.n == 800
    assert_allclose(
        kept.temperature,
        uq.recalibrate((labels[:, 5:], logits[:, 5:]), "temperature", logits=True).temperature,
    )


def test_labels_that_all_have_the_largest_logit_have_no_temperature():
    rng = np.random.default_rng(1)
    for logits in (
        np.array([[5.0, -5.0], [3.0, -3.0], [-4.0, 4.0]]),
        np.array([[5.0, 5.0], [3.0, -3.0], [-4.0, 4.0]]),
        *(3 * rng.normal(size=(rng.integers(2, 40), 3)) for _ in range(20)),
    ):
        for unit in (1e-6, 1.0, 1e6):
            with pytest.raises(RecalibrationError, match="tends to 0: every label already has"):
                uq.recalibrate((logits.argmax(-1), unit * logits), "temperature", logits=True)
    wrong = (np.array([0, 0, 0, 1]), np.array([1.0, 3.0, 4.0, 1e-3]))  # sigmoid(logit) is that of class 1
    with pytest.raises(RecalibrationError, match="tends to infinity"):
        uq.recalibrate(wrong, "temperature", logits=True)
    almost = np.array([1, 1, 1, 0]), np.array([1.0, 3.0, 4.0, 0.5])

    def slope(b):
        return np.mean((special.expit(b * almost[1]) - almost[0]) * almost[1])

    best = 1 / optimize.brentq(slope, 1e-3, 1e3, xtol=1e-14)
    assert_allclose(uq.recalibrate(almost, "temperature", logits=True).temperature, best, rtol=1e-6)


# what cannot be done


def test_what_a_verdict_names_is_fitted_to_the_report_that_holds_its_samples():
    rng = np.random.default_rng(0)
    probs = rng.uniform(size=2000)
    labels = (rng.random(2000) < probs**2).astype(int)
    report = uq.evaluate(labels, probs=probs)
    assert report.verdict.cure == "logistic"
    assert uq.recalibrate(report, "logistic") == uq.recalibrate(
        uq.Predictions.from_probs(labels, probs), "logistic"
    )
    stream = uq.Accumulator()
    for start in range(0, 2000, 100):
        stream.update(labels[start : start + 100], probs=probs[start : start + 100])
    counted = stream.compute()
    assert counted.verdict.cure == "logistic"
    fitted = uq.recalibrate(counted, "logistic")
    assert_allclose(fitted.apply(probs), probs**2, atol=0.08)
    assert fitted.fitted_on.digest == counted.provenance["digest"]
    with pytest.raises(SettingsError, match=r"are for arrays; the .* holds its own"):
        uq.recalibrate(report, "logistic", weights=np.ones(2000))
    again = uq.Report.from_json(report.to_json())
    with pytest.raises(RecalibrationError, match="nor do reports that were read back"):
        uq.recalibrate(again, "logistic")


def test_refusals_of_temperature(classified):
    labels, logits = classified
    refused = [
        ((labels, logits[..., :2]), InvalidValueError, r"values outside 0 \.\.\. 1 .*ignore_label"),
        ((labels.astype(float), logits), InputTypeError, "dtype float64, not integers"),
        ((labels, np.where(logits > 5, np.inf, logits)), InvalidValueError, "logits of .* are non-finite"),
        ((logits.argmax(-1), logits), RecalibrationError, "tends to 0: every label already"),
        ((logits.argmin(-1), logits), RecalibrationError, "tends to infinity"),
        ((labels[:5], logits), ShapeError, "labels have shape"),
        ((labels,), RecalibrationError, r"it is fitted on \(labels, probs\), not on 1 arrays"),
    ]
    for source, error, message in refused:
        with pytest.raises(error, match=message):
            uq.recalibrate(source, "temperature", logits=len(source) == 2)
    with pytest.raises(
        RecalibrationError, match="cannot be fitted to probabilities of 0 or 1, which 2 samples"
    ):
        uq.recalibrate(([0, 1, 1], [0.0, 0.5, 1.0]), "temperature")
    with pytest.raises(RecalibrationError, match="statistics do not hold the prob"):
        uq.recalibrate(uq.evaluate(*overconfident(50)), "temperature")
    with pytest.raises(ShapeError, match="fitted to 4 classes"):
        uq.recalibrate((labels, logits), "temperature", logits=True).apply(logits[..., :3], logits=True)


def of(y=None, mu=None, s=None, n=100):
    made = overconfident(n)
    return tuple(made[i] if given is None else given for i, given in enumerate((y, mu, s)))


@pytest.mark.parametrize(
    ("method", "source", "message"),
    [
        ("std_scaling", of(n=1), "std_scaling needs at least 2 samples, but there are 1"),
        (
            "std_scaling",
            of(s=np.r_[0.0, np.ones(99)]),
            "divides by std, which is 0 for 1 samples; set std_floor=",
        ),
        ("std_scaling", ([1.0, 2.0], [1.0, 2.0], [1.0, 1.0]), "every error is 0"),
        ("cdf_isotonic", of(n=9), "cdf_isotonic needs at least 10 samples, but there are 9"),
        ("cdf_isotonic", (np.ones(20), np.zeros(20), np.ones(20)), "every standardized error is 1"),
        ("cdf_isotonic", of(s=np.r_[0.0, np.ones(99)]), "divides by std"),
        ("std_isotonic", of(s=np.full(100, 2.0)), "all are 2; use std_scaling"),
        ("std_isotonic", of(n=39), "at least 40 samples"),
        ("std_isotonic", (np.zeros(100), np.zeros(100), np.arange(1.0, 101)), "smallest std have zero error"),
        ("std_binning", of(n=39), "needs 40 samples for 10 bins, but there are 39; lower n_bins"),
        (
            "std_binning",
            (np.arange(100) // 50, np.zeros(100), np.arange(1.0, 101)),
            "bin 1 of 10 has zero error",
        ),
    ],
)
def test_refusals_of_data(method, source, message):
    with pytest.raises(RecalibrationError, match=message):
        uq.recalibrate(source, method)


def test_refusals_of_sources_and_options():
    report = uq.evaluate(*overconfident(50))
    with pytest.raises(RecalibrationError, match=r"holds no statistics, as when read from JSON.*from_npz"):
        uq.recalibrate(uq.Report.from_json(report.to_json()))
    with pytest.raises(RecalibrationError, match="not on 2 arrays"):
        uq.recalibrate(([1.0], [2.0]), "std_scaling")
    with pytest.raises(SettingsError, match=r"pass a tuple: recalibrate\(\(y_true, y_pred, y_std\)\)"):
        uq.recalibrate([1.0], [2.0], [3.0])
    with pytest.raises(SettingsError, match=r"pass a tuple: .* or \(\(labels, probs\)\)"):
        uq.recalibrate(np.array([0, 1]), np.array([0.2, 0.8]))
    with pytest.raises(RecalibrationError, match="cannot fit on a str"):
        uq.recalibrate("std_scaling")
    with pytest.raises(RecalibrationError, match="is a classification's; use method='temperature'"):
        uq.recalibrate(replace(report, task="classification", statistics=report.curves), "std_scaling")
    with pytest.raises(
        SettingsError, match="no recalibration method is called 'platt'; choose from std_scaling"
    ):
        uq.recalibrate(report, "platt")
    with pytest.raises(SettingsError, match="ignore_label= are of class"):
        uq.recalibrate(report, ignore_label=255)
    with pytest.raises(SettingsError, match="n_bins is 0"):
        uq.recalibrate(report, "std_binning", n_bins=0)


def test_the_reports_settings_are_the_defaults():
    report = uq.evaluate(*overconfident(500), family="laplace", n_bins=5)
    assert uq.recalibrate(report).family == "laplace"
    assert uq.recalibrate(report, family="gaussian").family == "gaussian"
    assert len(uq.recalibrate(report, "std_binning").values) == 5
    assert len(uq.recalibrate(report, "std_binning", n_bins=3).values) == 3


@pytest.mark.parametrize("method", METHODS)
def test_a_stored_run_is_enough(method, tmp_path):
    report = uq.evaluate(*overconfident(3000))
    report.to_npz(tmp_path / "run.npz")
    assert uq.recalibrate(uq.Report.from_npz(tmp_path / "run.npz"), method) == uq.recalibrate(report, method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_every_method_improves_the_held_out_likelihood_of_an_overconfident_model(method, seed):
    fit_on, held_out = (uq.Predictions(*overconfident(4000, seed=seed + k, bias=0.2)) for k in (0, 50))
    one = uq.Recalibration.from_json(uq.recalibrate(fit_on, method).to_json())
    before, after = uq.evaluate(held_out).scores, uq.evaluate(one.apply_to(held_out)).scores
    assert after["nll"] < before["nll"] - 0.5
    assert after["crps"] < before["crps"]
    assert after["auce"] < before["auce"]
    assert after["ence"] < before["ence"]


def test_a_normal_table_recovers_the_normal_distribution():
    rng = np.random.default_rng(3)
    z = rng.normal(size=50_000)
    one = uq.recalibrate((z, np.zeros_like(z), np.ones_like(z)), "cdf_isotonic")
    q = np.linspace(0.01, 0.99, 50)
    assert_allclose(one.quantile(0.0, 1.0, q), stats.norm.ppf(q), atol=0.05)
